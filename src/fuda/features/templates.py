r"""Feature templates in the format of CRF++ and Wapiti.

A line ``U05:%x[-1,0]/%x[0,0]`` means: the text ``U05:`` + column 0 of the previous token + ``/`` +
column 0 of this one is a feature of the label (U), or of a pair of labels (B), or of both (\*,
Wapiti). Each line becomes one channel whose rows are the distinct texts of the line, so a line
costs one look-up per node, however many tokens it joins. A lone ``B`` means label transitions,
which every model here has.

=================  ==============================================================
%x[row,col]        the cell; ``_B-1``, ``_B+1`` … past the ends, as in CRF++
%t[row,col,"re"]   Wapiti: true or false, whether the expression matches
%m[row,col,"re"]   Wapiti: the part of the cell that matches
%X %T %M           the same in lower case
=================  ==============================================================

Wapiti's expressions are a small language, see `fuda.features.expressions`. Past the ends they are
matched against ``_x-1``, ``_x+1`` …

Refused, besides what is not in this format, is what those programs compute otherwise: a template
without a line B, and two lines with one text, which share their weights there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from fuda.errors import DataError, short
from fuda.features.expressions import Expression
from fuda.files import read_text

# Only %t and %m, the second group, have an expression.
_MACRO = re.compile(r'%([xX]|([tTmM]))\[\s*([+-]?\d+)\s*,\s*(\d+)\s*(?(2),\s*"((?:[^"\\]|\\.)*)"\s*)\]')
_COMMENT = re.compile(r"\s#")
_MAX_OFFSET = 100


@dataclass(frozen=True)
class Macro:
    """One cell of a line: the offset of the token, the column, and the function of the cell."""

    offset: int
    column: int
    mark: str  # the text past the ends, before the number of steps
    apply: Callable[[str], str]
    most_steps: int = _MAX_OFFSET  # beyond them, # stands for their number

    def past(self, steps: int) -> str:
        """Return the cell so many steps past an end: −1 is before the first token."""
        return f"{self.mark}{steps:+d}" if abs(steps) <= self.most_steps else f"{self.mark}{'-+'[steps > 0]}#"


@dataclass(frozen=True)
class Line:
    """One template line: alternating texts and macros, for labels, pairs of labels, or both."""

    number: int
    name: str
    texts: list[str]
    macros: list[Macro]
    for_labels: bool
    for_pairs: bool


class Template:
    """A CRF++ or Wapiti template; pass it as ``features=``.

    Parameters
    ----------
    text : str
        The lines of the template.
    name : str, optional
        The name of the file, for messages.
    wapiti : bool, default=False
        Whether texts are exactly Wapiti's: cells past the ends are ``_x-1`` to ``_x-4`` and
        ``_x-#`` in ``%x`` too, lines begin in lower case, and capitals lower ASCII letters only.

    Attributes
    ----------
    lines : list of Line
        The lines with features.

    Examples
    --------
    >>> template = Template("U00:%x[-1,0]\\nU01:%x[0,0]/%x[1,0]\\nB")
    >>> [line.name for line in template.lines]
    ['U00', 'U01']
    """

    def __init__(self, text: str, name: str = "template", wapiti: bool = False) -> None:
        self.text, self.name, self.wapiti = text, name, wapiti
        self.lines: list[Line] = []
        has_transitions = False
        seen: dict[tuple[str, ...], int] = {}
        for number, raw in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
            line = _without_comment(raw).strip()
            if not line:
                continue
            line = line[0].lower() + line[1:] if wapiti else line
            parsed = _parse(line, f"{name}:{number}", number, wapiti)
            has_transitions |= line[0] in "Bb*"
            if not parsed.for_labels and not parsed.for_pairs:
                continue
            if (first := seen.setdefault(tuple(parsed.texts), number)) != number:
                raise DataError(
                    f"{name}:{number}: {short(line)} has the text of line {first}, but every line has "
                    "separate weights; give the lines different names"
                )
            if parsed.name in (other.name for other in self.lines):
                parsed = replace(parsed, name=line)
            self.lines.append(parsed)
        if not self.lines:
            raise DataError(f"{name}: no feature line; write lines such as U00:%x[0,0]")
        if not has_transitions:
            raise DataError(
                f"{name}:{number}: ends without a line B, but every model here learns label transitions; "
                "add a line B"
            )

    @classmethod
    def read(cls, path: str | Path) -> Template:
        """Return the template in a file.

        Parameters
        ----------
        path : str or Path
            The file; ``-`` is standard input.

        Returns
        -------
        Template
            The template.
        """
        return cls(read_text(path), str(path))

    def __reduce__(self) -> tuple:
        return Template, (self.text, self.name, self.wapiti)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and (self.text, self.wapiti) == (other.text, other.wapiti)

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Template({self.name!r}, {len(self.lines)} lines)"


def _without_comment(line: str) -> str:
    """A line without its comment: a line with a leading #, or the part after a blank and a #.

    A # that is followed by a macro is part of the text.
    """
    if line.lstrip().startswith("#"):
        return ""
    comment = _COMMENT.search(line, line.rfind("%") + 1)
    return line[: comment.start()] if comment else line


def _parse(line: str, where: str, number: int, wapiti: bool) -> Line:
    """One line, or an error that names it and the part that is not supported."""

    def refuse(why: str) -> DataError:
        return DataError(f"{where}: {short(line)}: {why}")

    kind = line[0].upper()
    if kind not in "UB*":
        raise refuse("a line begins with U (label), B (pair of labels) or * (both)")
    texts, macros, position = [], [], 0
    for match in _MACRO.finditer(line):
        texts.append(line[position : match.start()])
        position = match.end()
        try:
            macros.append(_macro(wapiti, *match.group(1, 3, 4, 5)))
        except ValueError as error:
            raise refuse(str(error)) from None
    texts.append(line[position:])
    for text in texts:
        if "%" in text:
            raise refuse(
                f"{text[text.index('%') :][:12]!r} is not supported; write %x[row,col], "
                '%t[row,col,"re"] and %m[row,col,"re"] with rows relative to the token'
            )
    name = texts[0].rstrip(":=") if macros else line
    return Line(number, name, texts, macros, kind in "U*", kind in "B*" and bool(macros))


def _macro(wapiti: bool, letter: str, row: str, column: str, expression: str | None) -> Macro:
    """A macro from its parts; ValueError if it is not supported."""
    kind = letter.lower()
    lower: Callable[[str], str] = str
    if letter.isupper():
        lower = _ascii_lower if wapiti else str.lower
    most = 4 if wapiti else _MAX_OFFSET
    if len(row) > 4 or abs(int(row)) > _MAX_OFFSET or len(column) > 4:
        raise ValueError(
            f"row {row[:12]}, column {column[:12]}: give a row from −{_MAX_OFFSET} to {_MAX_OFFSET}"
        )
    if expression is None:
        return Macro(int(row), int(column), "_x" if wapiti else "_B", lower, most)
    matcher = Expression(expression)

    def apply(cell: str) -> str:
        match = matcher.search(cell)
        if kind == "t":
            return "false" if match is None else "true"
        return lower(match or "")

    return Macro(int(row), int(column), "_x", apply, most)


def _ascii_lower(text: str) -> str:
    return text.encode().lower().decode()  # bytes have a lower case in ASCII only
