"""Wapiti's models: text in netstrings, and what ``wapiti dump`` writes.

A model is ``#mdl#2#``, the number of weights that are not 0; ``#rdr#``, the number of patterns,
and these; ``#qrk#``, the number of labels, and these; ``#qrk#``, the number of observations, and
these; then ``number=weight`` lines, weights in hexadecimal. An observation has weights for labels
if it begins with u, for pairs of labels if with b, and for both if with ``*``. Strings are
netstrings, ``3:b00,``.

A dump has a line per weight, ``observation previous label weight`` between tabs, ``#`` for no
previous label. It does not contain patterns.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from fuda.compat.models import check_size, make_template_crf, read_model
from fuda.errors import DataError, ModelFileError, short
from fuda.features.templates import Template
from fuda.models.crf import CRF

MAGIC = b"#mdl#"
_CRF = b"2"
_MODEL = re.compile(rb"#mdl#(\d{1,9})#(\d{1,18})\n")
_READER = re.compile(rb"#rdr#(\d{1,18})/\d+(?:/\d+)?\n")
_QUARK = re.compile(rb"#qrk#(\d{1,18})\n")
_LENGTH = re.compile(rb"(\d{1,10}):")
_WEIGHT = re.compile(rb"(\d{1,18})=(\S+)\n?")


def read(path: str | Path, template: Template | None = None) -> CRF:
    """Read a model of Wapiti, or a dump of one.

    Observations of the model are strings, or tuples of columns where the patterns read several.

    Parameters
    ----------
    path : str or Path
        The file, which may be gzipped.
    template : Template, optional
        The patterns with which a dumped model was trained; ``Template(text, name, wapiti=True)``.

    Returns
    -------
    CRF
        A fitted model.

    Raises
    ------
    ModelFileError
        If it is not such a file, or is damaged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> template = Template("u:0=%x[0,0]\\nb", "words", wapiti=True)
    >>> dump = "u:0=Ana\\t#\\tPER\\t1.5\\nu:0=Ana\\t#\\tO\\t-1.5\\n"
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "dump.txt"
    ...     _ = path.write_text(dump)
    ...     model = read(path, template)
    >>> model.predict([["Ana"]])[0]
    ['PER']
    """
    data = read_model(path)
    if not data.startswith(MAGIC) and template is None:
        problem = "it does not begin with #mdl#; a dump has no patterns, so give them by template="
    else:
        try:
            if data.startswith(MAGIC):
                labels, patterns, weights = _model(data)
                template = Template(patterns, "patterns", wapiti=True)
            else:
                labels, weights = _dump(data.decode())
            assert template is not None
            columns = 1 + max((macro.column for line in template.lines for macro in line.macros), default=0)
            return make_template_crf(path, labels, template, columns, weights)
        except (DataError, UnicodeDecodeError) as error:
            problem = str(error)
    raise ModelFileError(f"{path}: not a usable Wapiti model: {problem}; write it again")


class _Reader:
    """The bytes of a model, read one after another."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def match(self, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
        match = pattern.match(self.data, self.at)
        if match is None:
            raise ModelFileError(f"{self.data[self.at : self.at + 30]!r} at byte {self.at:,} is not expected")
        self.at = match.end()
        return match

    def strings(self, count: int) -> list[str]:
        """Netstrings, each followed by a line feed."""
        strings = []
        for _ in range(count):
            length = int(self.match(_LENGTH)[1])
            end = self.at + length
            if self.data[end : end + 2] != b",\n":
                raise ModelFileError(f"the string at byte {self.at:,} does not have {length:,} bytes")
            strings.append(self.data[self.at : end].decode())
            self.at = end + 2
        return strings


def _model(data: bytes) -> tuple[list[str], str, dict[str, np.ndarray]]:
    """Labels, patterns and weights of a model."""
    reader = _Reader(data)
    kind, active = reader.match(_MODEL).groups()
    if kind != _CRF:
        raise ModelFileError(f"it is of type {kind.decode()} (maxent 0, memm 1), and only crf (2) is read")
    patterns = reader.strings(int(reader.match(_READER)[1]))
    if not patterns:
        raise ModelFileError("it has no patterns")
    labels = reader.strings(int(reader.match(_QUARK)[1]))
    observations = reader.strings(int(reader.match(_QUARK)[1]))
    L = len(labels)
    sizes = [_size(text, L) for text in observations]
    check_size(len(data), L, sum(sizes) // max(L, 1), 1)
    bounds = np.append(0, np.cumsum(sizes, dtype=np.int64))
    weights = np.zeros(bounds[-1])
    for _ in range(int(active)):
        number, text = reader.match(_WEIGHT).groups()
        if int(number) >= len(weights):
            raise ModelFileError(f"there is no weight {int(number):,}")
        weights[int(number)] = _hexadecimal(text)
    if not any(line[:1] in "bB*" for line in patterns):
        patterns.append("b")  # every model here has transitions; they are 0
    return labels, "\n".join(patterns), dict(zip(observations, np.split(weights, bounds[1:-1]), strict=True))


def _size(observation: str, L: int) -> int:
    """How many weights an observation has."""
    if observation[:1] not in ("u", "b", "*"):
        raise ModelFileError(f"the observation {short(observation)} begins with neither u, b nor *")
    return {"u": L, "b": L * L, "*": L + L * L}[observation[0]]


def _hexadecimal(text: bytes) -> float:
    try:
        return float.fromhex(text.decode("ascii"))
    except (ValueError, OverflowError):
        raise ModelFileError(f"the weight {text[:30]!r} is not a number") from None


def _dump(text: str) -> tuple[list[str], dict[str, np.ndarray]]:
    """Labels and weights of a dump."""
    rows: list[Any] = []
    number: dict[str, int] = {}
    for at, line in enumerate(text.split("\n"), 1):
        if not line:
            continue
        fields = line.rsplit("\t", 3)
        try:
            observation, before, label, weight = fields[0], fields[1], fields[2], float(fields[3])
        except (IndexError, ValueError):
            raise ModelFileError(f"line {at} is not an observation, two labels and a weight") from None
        for name in (label, before):
            if name != "#":
                number.setdefault(name, len(number))
        rows.append((observation, before, label, weight))
    L = len(number)
    observations = dict.fromkeys(row[0] for row in rows)
    check_size(len(text), L, sum(_size(observation, L) for observation in observations) // max(L, 1))
    weights = {observation: np.zeros(_size(observation, L)) for observation in observations}
    for observation, before, label, weight in rows:
        vector, column = weights[observation], number.get(label)
        if column is None or observation[0] == ("b" if before == "#" else "u"):
            raise ModelFileError(f"the weight of {short(observation)} for {short(label)} has no place")
        vector[column if before == "#" else column + L * number[before] - L * L] = weight
    return list(number), weights
