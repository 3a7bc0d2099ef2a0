r"""CRFsuite's data: a line per item, the label and then attributes, between tabs.

::

    B-LOC	w=Lima	title	length:4	__BOS__
    O	w=is	length:2	__EOS__

A blank line ends a sequence. An attribute may have a value after a colon; colons and backslashes
within names are written ``\:`` and ``\\``. ``__BOS__`` and ``__EOS__`` at the ends of sequences
are attributes like any others. The label ``_`` is not known.

Items without values are lists of names, others dicts from names to numbers; fit with ``window=0``,
since attributes commonly show neighbours already. A line ``@weight:2`` gives the weight of the
sequence: it is kept among the comments and written again; to learn by it, pass `sample_weight`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from fuda.data import structures
from fuda.data.tables import named_features
from fuda.errors import DataError, place, short
from fuda.files import fault, split_lines
from fuda.formats.dataset import Dataset, Label, Record, check_line, label_text, labels_to_write

_FIELD = re.compile(r"((?:[^\\:]|\\[:\\]|\\)*)(?::((?:[^\\:]|\\[:\\]|\\)*))?")
_ESCAPED = re.compile(r"\\([:\\])")
_WEIGHT = "@weight"


def read(text: str, name: str) -> Dataset:
    """Read sequences.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.

    Returns
    -------
    Dataset
        One record per sequence.

    Examples
    --------
    >>> X, y = read("PER\\tw=Ana\\tcapital\\nO\\tw=sings\\tlength:5", "example")
    >>> list(X[0].observations), y
    ([['w=Ana', 'capital'], {'w=sings': 1.0, 'length': 5.0}], [['PER', 'O']])
    """
    return Dataset(list(records(split_lines(text, name), name, [])))


def records(lines: Iterable[str], name: str, notes: list[str]) -> Iterator[Record]:
    """Yield the records of `read` as soon as their lines have come; there are no notes."""
    items: list[Any] = []
    labels: list[Label] = []
    comments: list[str] = []
    empty = True
    for number, line in enumerate(chain(lines, [""]), 1):
        fields = [field for field in line.split("\t") if field]
        try:
            if not fields and items:
                yield Record(structures.Sequence(items), labels, comments)
                items, labels, comments, empty = [], [], [], False
            elif fields and fields[0].startswith("@"):
                comments.append(_declaration(line))
            elif fields:
                labels.append(_label(fields[0]))
                items.append(_item(fields[1:]))
        except DataError as error:
            raise fault(name, number, str(error)) from None
    if empty:
        raise DataError(f"{name}: no items; write a line per item: label, tab, attribute, tab, attribute …")


def _declaration(line: str) -> str:
    """The weight of a sequence, as a comment."""
    if not line.startswith(f"{_WEIGHT}:"):
        raise DataError(f"the declaration {short(line)} is not known; only {_WEIGHT}:NUMBER is")
    _number(line.partition(":")[2].strip("\t"))
    return line


def _label(field: str) -> Label:
    text, value = _split(field)
    if value is not None or not text:
        raise DataError(rf"the label {short(field)} has a colon; write it as \:")
    return None if text == "_" else text


def _item(fields: list[str]) -> list[str] | dict[str, float]:
    """Attributes: names, or a dict where one has a value."""
    pairs = list(map(_split, fields))
    if all(value is None for _, value in pairs):
        return [name for name, _ in pairs]
    item: dict[str, float] = {}
    for name, value in pairs:
        item[name] = item.get(name, 0.0) + (1.0 if value is None else value)
    return item


def _split(field: str) -> tuple[str, float | None]:
    """Name and value of an attribute, None where there is no value."""
    match = _FIELD.fullmatch(field)
    if match is None:
        raise DataError(rf"{short(field)} has two colons; write those of the name as \:")
    name = _ESCAPED.sub(r"\1", match[1])
    return name, None if match[2] is None else _number(match[2] or "1")


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise DataError(f"the value {short(text)} is not a finite number")
    return value


def write(records: Sequence[Record], after: Record | None = None) -> str:
    """Write sequences whose observations are collections of features.

    Parameters
    ----------
    records : list of Record
        The sequences and labels.
    after : Record, optional
        The first record of the file, if `records` are to follow others in it.

    Returns
    -------
    str
        The content of the file.
    """
    lines = []
    for index, record in enumerate(records):
        if record.structure.shape != "sequence":
            raise DataError(f"{place(index)} is a {record.structure.shape}; CRFsuite has sequences only")
        labels = labels_to_write(index, record) or [None] * len(record.structure)
        lines += [check_line(text, index) for text in record.comments if text.startswith(f"{_WEIGHT}:")]
        for node, (x, label) in enumerate(zip(record.structure.observations, labels, strict=True)):
            fields = [label_text(label, index, node).replace("\\", "\\\\").replace(":", "\\:")]
            fields += _attributes(x, index, node)
            if fields[0].startswith("@") or not all(fields) or any("\t" in field for field in fields):
                problem = "a label that begins with @, an empty name, or a tab"
                raise DataError(f"{place(index, node)}: {problem} cannot be written; rename it")
            lines.append(check_line("\t".join(fields), index, node))
        lines.append("")
    return "\n".join(lines) + "\n"


def _attributes(x: Any, index: int, node: int) -> list[str]:
    """The attributes of an observation as text."""
    if not isinstance(x, dict | list | set | frozenset):
        raise DataError(
            f"{place(index, node)}: the observation {short(x)} is not a collection of features; CRFsuite "
            "has attributes only, so make features of it, or write conll or jsonl"
        )
    try:
        names, values = named_features(x)
    except DataError as error:
        raise DataError(f"{place(index, node)}: {error}") from None
    escaped = [name.replace("\\", "\\\\").replace(":", "\\:") for name in names]
    if values is None:
        return escaped
    return [f"{name}:{value!r}" for name, value in zip(escaped, values, strict=True)]
