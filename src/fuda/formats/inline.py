r"""Text with inline marks: one sentence or paragraph per line, labelled parts in brackets.

::

    [Ana Díaz](PER) lives in [Lima](LOC).

Marks do not nest. A backslash stands before brackets and backslashes of the text, and before
parentheses of a label; ``\n`` and ``\r`` are line breaks within a text. What is between the marks
is cut into tokens and labelled as described in `fuda.formats.spans`. A line without marks is
labelled O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fuda.data.text import tokenize
from fuda.errors import DataError, short
from fuda.files import fault, split_lines
from fuda.formats.dataset import Dataset, Record
from fuda.formats.spans import Span, check_spans, labelled_record, spans_of
from fuda.formats.text import Before, blank_lines

_PART = re.compile(r"\\(.)|(\[)|(\])(?:\(((?:[^()\\]|\\.)*)\))?|[^\\\[\]]+|\\")
_ESCAPED = re.compile(r"\\(.)")
_TEXT_SIGNS = str.maketrans({"\\": "\\\\", "[": "\\[", "]": "\\]", "\n": "\\n", "\r": "\\r"})
_LABEL_SIGNS = str.maketrans({"\\": "\\\\", "(": "\\(", ")": "\\)", "\n": "\\n", "\r": "\\r"})
_BREAKS = {"n": "\n", "r": "\r"}


def read(text: str, name: str, scheme: str | None = "IOB2", tokenizer: str = "words") -> Dataset:
    """Read lines as sequences of labelled tokens.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.
    scheme : str or None
        The tag scheme of the labels; None gives each token the label of its mark.
    tokenizer : {"words", "blanks"}
        How tokens are found: by the rules of `fuda.data.text`, or between blanks.

    Returns
    -------
    Dataset
        One record per line that is not blank.

    Examples
    --------
    >>> read("[Ana Díaz](PER) sings.", "example").y
    [['B-PER', 'I-PER', 'O', 'O']]
    """
    return Dataset(list(records(split_lines(text, name), name, [], scheme, tokenizer)))


def records(
    lines: Iterable[str], name: str, notes: list[str], scheme: str | None, tokenizer: str
) -> Iterator[Record]:
    """Yield the records of `read` as soon as their lines have come; there are no notes."""
    start = 0
    before, empty = Before(), True
    for number, line in enumerate(lines, 1):
        try:
            content, spans = _parse(line)
            if spans or tokenize(content, tokenizer):
                record = labelled_record(content, spans, scheme, tokenizer, start=start)
                record.rows, before, empty = before, Before(), False
                yield record
            else:
                before.append(line)
        except DataError as error:
            raise fault(name, number, str(error)) from None
        start += len(content) + 1
    if empty:
        raise DataError(f"{name}: no text; write one sentence or paragraph per line")


def write(records: Sequence[Record], after: Record | None = None) -> str:
    """Write the text of each structure on a line, with its labels as marks.

    Parameters
    ----------
    records : list of Record
        The structures and labels.
    after : Record, optional
        The first record of the file, if `records` are to follow others in it.

    Returns
    -------
    str
        The content of the file.
    """
    lines: list[str] = []
    for index, record in enumerate(records):
        check_spans(index, record, "inline")
        text, spans = spans_of(index, record)
        parts, position = [], 0
        for start, end, label in spans:
            marked = f"[{text.content[start:end].translate(_TEXT_SIGNS)}]({label.translate(_LABEL_SIGNS)})"
            parts += [text.content[position:start].translate(_TEXT_SIGNS), marked]
            position = end
        parts.append(text.content[position:].translate(_TEXT_SIGNS))
        lines += [*blank_lines(record), "".join(parts)]
    return "\n".join([*lines, ""])


def _parse(line: str) -> tuple[str, list[Span]]:
    """The text of a line without its marks, and the spans of the marks."""
    content, spans = "", []
    opened: int | None = None
    for match in _PART.finditer(line):
        escaped, opens, closes, label = match.groups()
        if escaped is not None:
            content += _BREAKS.get(escaped, escaped)
        elif opens:
            if opened is not None:
                raise _fault(line, match.start(), "opens a mark within a mark")
            opened = len(content)
        elif closes:
            if opened is None or not label:
                raise _fault(line, match.start(), "closes no mark" if opened is None else "has no label")
            spans.append((opened, len(content), _ESCAPED.sub(_unescaped, label)))
            opened = None
        elif match[0] == "\\":
            raise DataError("the line ends in a backslash; write two for one of the text")
        else:
            content += match[0]
    if opened is not None:
        raise _fault(line, line.rfind("["), "opens a mark that is not closed")
    return content, spans


def _unescaped(match: re.Match[str]) -> str:
    """The character that follows a backslash."""
    return _BREAKS.get(match[1], match[1])


def _fault(line: str, position: int, problem: str) -> DataError:
    """An error at a bracket."""
    remedy = r"write a mark as [text](LABEL), and brackets of the text as \[ and \]"
    return DataError(f"column {position + 1}: the bracket of {short(line[position:])} {problem}; {remedy}")
