r"""Feature templates as CRF++ and Wapiti write them, read into channels.

A line ``U05:%x[-1,0]/%x[0,0]`` says: the text ``U05:`` + column 0 of the previous token + ``/`` + column 0 of this one is a
feature of the label (U), or of a pair of labels (B), or of both (\*, Wapiti). Each line becomes one channel whose rows
are the distinct texts it gives, so a line costs one look-up a node, however many tokens it joins. A lone ``B`` stands for label
transitions, which every model here has.

=================  ==========================================================
%x[row,col]        the cell; ``_B-1``, ``_B+1`` … past the ends, as in CRF++
%t[row,col,"re"]   Wapiti: true or false, whether the expression matches
%m[row,col,"re"]   Wapiti: the part of the cell that matches
%X %T %M           the same in lower case
=================  ==========================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fuda.corpus import Corpus
from fuda.encoding import Channel, Encoded, Table, feature_table
from fuda.errors import DataError
from fuda.formats.files import read_text
from fuda.structures import Structure

_MACRO = re.compile(r'%([xXtTmM])\[\s*([+-]?\d+)\s*,\s*(\d+)\s*(?:,\s*"((?:[^"\\]|\\.)*)"\s*)?\]')
_COMMENT = re.compile(r"^\s*#.*|\s#[^%]*$")  # a # inside a line may be text, unless it follows a blank and ends it
_WAPITI_CLASSES = {
    "a": "[^\\W\\d_]",
    "d": "\\d",
    "l": "[a-z]",
    "p": "[^\\w\\s]",
    "s": "\\s",
    "u": "[A-Z]",
    "w": "[^\\W_]",
}


@dataclass(frozen=True)
class Macro:
    """One cell of a line: which token (offset), which column, and what is done with it."""

    offset: int
    column: int
    apply: Callable[[str], str]


@dataclass(frozen=True)
class Line:
    """One template line: texts and macros in turn, for labels, for pairs of labels, or for both."""

    number: int
    name: str
    texts: list[str]
    macros: list[Macro]
    for_labels: bool
    for_pairs: bool


class Template:
    """A CRF++ or Wapiti template; pass it as ``features=``.

    >>> template = Template("U00:%x[-1,0]\\nU01:%x[0,0]/%x[1,0]\\nB")
    >>> [line.name for line in template.lines]
    ['U00', 'U01']
    """

    def __init__(self, text: str, name: str = "template") -> None:
        self.text = text
        self.name = name
        self.lines: list[Line] = []
        has_transitions = False
        for number, raw in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
            line = _COMMENT.sub("", raw).strip()
            if not line:
                continue
            parsed = self._line(line, number)
            has_transitions |= parsed.for_pairs
            if parsed.macros or parsed.for_labels:
                self.lines.append(parsed)
        if not self.lines:
            raise DataError(f"{name}: no feature line; write lines such as U00:%x[0,0]")
        if not has_transitions:
            raise DataError(
                f"{name}:{number}: no line B, which says that neighbouring labels do not depend on each other; "
                "every model here learns label transitions: add a line B"
            )
        names = [line.name for line in self.lines]
        for line in self.lines:
            if names.count(line.name) > 1:
                raise DataError(
                    f"{name}:{line.number}: the name {line.name!r} is used twice, so that two positions would share weights; "
                    "every line has weights of its own: number the lines apart"
                )

    @classmethod
    def read(cls, path: str | Path) -> Template:
        """The template in a file."""
        return cls(read_text(path), str(path))

    def __reduce__(self) -> tuple:
        return Template, (self.text, self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Template({self.name!r}, {len(self.lines)} lines)"

    def _line(self, line: str, number: int) -> Line:
        def refuse(why: str) -> DataError:
            return DataError(f"{self.name}:{number}: {line!r}: {why}")

        kind = line[0].upper()
        if kind not in "UB*":
            raise refuse("a line begins with U (label), B (pair of labels) or * (both)")
        texts, macros, position = [], [], 0
        for found in _MACRO.finditer(line):
            texts.append(line[position : found.start()])
            position = found.end()
            letter, offset, column, expression = found.groups()
            try:
                apply = _function(letter, expression)
            except ValueError as error:
                raise refuse(str(error)) from None
            macros.append(Macro(int(offset), int(column), apply))
        texts.append(line[position:])
        left = "".join(texts)
        if "%" in left:
            at = left[left.index("%") :][:12]
            raise refuse(
                f"{at!r} cannot be expressed; known are %x[row,col], %t[row,col,\"re\"] and %m[row,col,\"re\"] with rows "
                "relative to the token"
            )
        name = line[: line.index(":")] if ":" in texts[0] else line if not macros else texts[0]
        return Line(number, name, texts, macros, kind in "U*", kind in "B*")


def _function(letter: str, expression: str | None) -> Callable[[str], str]:
    """What a macro does to its cell."""
    low = letter.isupper()
    kind = letter.lower()
    if kind == "x":
        if expression is not None:
            raise ValueError("%x takes a row and a column, no expression")
        return str.lower if low else str
    if expression is None:
        raise ValueError(f'%{letter} needs an expression: %{letter}[row,col,"re"]')
    pattern = _wapiti_expression(expression)
    if kind == "t":
        return lambda cell: "true" if pattern.search(cell) else "false"

    def match(cell: str) -> str:
        found = pattern.search(cell)
        part = found.group() if found else ""
        return part.lower() if low else part

    return match


def _wapiti_expression(expression: str) -> re.Pattern[str]:
    r"""Wapiti's small language (. ^ $ ? * and classes \\a \\d \\l \\p \\s \\u \\w, negated in upper case) as a Python pattern."""
    parts = []
    for escaped, plain in re.findall(r"\\(.)|([^\\])", expression):
        if escaped:
            lower = escaped.lower()
            if lower in _WAPITI_CLASSES:
                parts.append(_WAPITI_CLASSES[lower] if escaped == lower else f"(?!{_WAPITI_CLASSES[lower]}).")
                parts[-1] = f"(?:{parts[-1]})"
            else:
                parts.append(re.escape(escaped))
        else:
            parts.append(plain if plain in ".^$?*" else re.escape(plain))
    try:
        return re.compile("".join(parts))
    except re.error as error:
        raise ValueError(f"the expression {expression!r} is not valid: {error}") from None


class TemplateEncoder:
    """One channel a template line, over the columns of sequences."""

    kind = "template"
    vector_size = 0

    def __init__(self, template: Template) -> None:
        self.template = template
        self._vocabularies: list[dict[str, int]] = [{} for _ in template.lines]

    def fit(self, structures: list[Structure]) -> Encoded:
        return self._encode(Corpus(structures), learn=True)

    def encode(self, structures: list[Structure]) -> Encoded:
        return self._encode(Corpus(structures), learn=False)

    def channel_names(self) -> list[str]:
        return [line.name for line in self.template.lines if line.for_labels]

    def edge_channel_names(self) -> list[str]:
        return [line.name for line in self.template.lines if line.for_pairs]

    def feature_names(self, channel: int) -> list[str]:
        line = [i for i, line in enumerate(self.template.lines) if line.for_labels][channel]
        return list(self._vocabularies[line])

    def vocabularies(self) -> list[list[str]]:
        return [list(vocabulary) for vocabulary in self._vocabularies]

    def restore(self, vocabularies: list[list[str]], vector_size: int) -> None:
        """Take back what `vocabularies` gave."""
        if len(vocabularies) != len(self._vocabularies) or vector_size:
            raise DataError("a template has one vocabulary a line, and no vectors")
        self._vocabularies = [{name: i for i, name in enumerate(names)} for names in vocabularies]

    def _encode(self, corpus: Corpus, learn: bool) -> Encoded:
        if not corpus.is_chain:
            raise DataError(
                f"a template reads along a sequence, but structure 0 is a {corpus.shape}; use a feature set and window="
            )
        cells = self._columns(corpus)
        tables: list[Table] = []
        channels: list[Channel] = []
        edge_channels: list[Channel] = []
        for i, line in enumerate(self.template.lines):
            rows, texts = _expand(line, cells, corpus)
            table = feature_table(([text] for text in texts), lambda row: f"row {row}", self._vocabularies[i], learn)
            tables.append(table)
            channel = Channel(line.name, i, rows)
            if line.for_labels:
                channels.append(channel)
            if line.for_pairs:
                edge_channels.append(channel)
        return Encoded(corpus, tables, channels, edge_channels)

    def _columns(self, corpus: Corpus) -> list[list[str]]:
        """Column by column, the cell of each type."""
        first: Any = corpus.observations[0]
        if not isinstance(first, str | tuple):
            raise DataError(f"{corpus.place(0)}: a template reads columns of text, but {first!r} was given")
        rows = [(x,) if isinstance(x, str) else tuple(map(str, x)) for x in corpus.observations]
        for line in self.template.lines:
            for macro in line.macros:
                if macro.column >= len(rows[0]):
                    raise DataError(
                        f"{self.template.name}:{line.number}: asks for column {macro.column}, but observations have "
                        f"{len(rows[0])} (counted from 0)"
                    )
        return [list(column) for column in zip(*rows, strict=True)]


def _expand(line: Line, cells: list[list[str]], corpus: Corpus) -> tuple[np.ndarray, list[str]]:
    """For each node the number of the text that the line gives there, and the texts."""
    numbers = np.zeros(corpus.size, dtype=np.int64)
    texts = [line.texts[0]]
    for macro, tail in zip(line.macros, line.texts[1:], strict=True):
        rows, values = _cells_at(macro, cells[macro.column], corpus)
        pairs, numbers = np.unique(numbers * len(values) + rows, return_inverse=True)
        texts = [texts[pair // len(values)] + values[pair % len(values)] + tail for pair in pairs.tolist()]
    return numbers.astype(np.int32), texts


def _cells_at(macro: Macro, column: list[str], corpus: Corpus) -> tuple[np.ndarray, list[str]]:
    """For each node the number of the cell that the macro reads, and the distinct cells."""
    distinct: dict[str, int] = {}
    of_type = np.array([distinct.setdefault(macro.apply(cell), len(distinct)) for cell in column])
    position = np.arange(corpus.size) + macro.offset
    first = np.repeat(corpus.offsets[:-1], np.diff(corpus.offsets))
    last = np.repeat(corpus.offsets[1:], np.diff(corpus.offsets)) - 1
    rows = of_type[corpus.types[np.clip(position, first, last)]]
    beyond = np.where(position < first, position - first, np.where(position > last, position - last, 0))
    for step in np.unique(beyond[beyond != 0]).tolist():
        rows[beyond == step] = distinct.setdefault(macro.apply(f"_B{step:+d}"), len(distinct))
    return rows, list(distinct)
