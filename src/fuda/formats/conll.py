"""CoNLL columns: one token per line, its columns side by side, a blank line after each sentence.

::

    # a comment
    Ana    NP  B-PER
    lives  VB  O

- *Columns* are separated by tabs if the line of the first token has one, else by runs of spaces
  and tabs; or by the single character `separator`. Every token has the same number of columns,
  or with ``ragged=True`` at least those that are read.
- *Labels* are in the last column, or in column `label`. ``_`` is an unknown label (None).
- *Document marks* are lines that start with ``-DOCSTART-``. They end a sentence and are never a
  token.
- *Comments* precede the first token of a sentence and start with ``#``. A token may start with
  ``#`` too, so such a line is a comment only if its number of columns is not that of the tokens,
  or if it has the form ``# name = value`` without a tab.
- Comments, document marks and further blank lines before a sentence are kept unchanged in
  ``Record.comments``.

Where probabilities of labels are known, that of a token's label is written in a further column.

Writing reproduces a file that was read byte for byte, except for the labels, if its lines end in a
single line feed and every sentence in exactly one blank line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

from fuda.checks import check_choice, is_whole
from fuda.data import structures
from fuda.errors import DataError, place, short
from fuda.files import fault, split_lines
from fuda.formats import dataset
from fuda.formats.dataset import Dataset, Label, Record, check_line, label_text

DOCUMENT_MARK = "-DOCSTART-"
UNKNOWN = "_"
_NAMED_VALUE = re.compile(r"# [^ \t]+ = [^\t]*\Z")
_CELL = re.compile(r"[^ \t]+")


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a file; `separator` None is runs of blanks, `label` counts from 0."""

    separator: str | None
    width: int
    label: int | None
    ragged: bool = False


@dataclass(slots=True)
class Rows:
    """The lines of the tokens of one sentence, unchanged, and the layout of their columns."""

    lines: list[str]
    layout: Layout


def read(
    text: str,
    name: str,
    separator: str | None = None,
    columns: int | Sequence[int] | None = None,
    label: int | None = -1,
    width: int | None = None,
    ragged: bool = False,
) -> Dataset:
    """Read sentences as sequences.

    The observation of a token is a string, or a tuple of strings if several columns are observed.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.
    separator : str, optional
        The character between columns; by default a tab if the line of the first token has one,
        else runs of spaces and tabs.
    columns : int or list of int, optional
        The columns of the observation, counted from 1; by default all but that of the label.
    label : int or None
        The column of the label; −1 is the last, None means that there are no labels.
    width : int, optional
        The number of columns of a file with labels. A file without the last of them has no labels.
        More columns are an error, and fewer unless those observed are named.
    ragged : bool
        Whether tokens may have different numbers of columns, as in files of several annotators;
        `columns` and `label` must be named. A line that starts with ``#`` is then a comment if it
        has too few columns for a token.

    Returns
    -------
    Dataset
        One record per sentence.

    Examples
    --------
    >>> X, y = read("Ana NP B-PER\\nlives VB O\\n\\n", "example", columns=1)
    >>> X, y
    ([Sequence(['Ana', 'lives'], 2 nodes)], [['B-PER', 'O']])
    """
    notes: list[str] = []
    record_iterator = records(split_lines(text, name), name, notes, separator, columns, label, width, ragged)
    return Dataset(list(record_iterator), notes)


def records(
    lines: Iterable[str],
    name: str,
    notes: list[str],
    separator: str | None,
    columns: int | Sequence[int] | None,
    label: int | None,
    width: int | None,
    ragged: bool,
) -> Iterator[Record]:
    """Yield the records of `read` as soon as their lines have come; notes are added at the end."""
    lines = iter(lines)
    head, first = _head(lines, name, separator)
    if separator is None and "\t" in head[first]:
        separator = "\t"
    split = _splitter(separator)
    actual_width = len(split(head[first]))
    if width is not None:
        _check_width(width, actual_width, columns is None, name, first + 1)
        if actual_width < width and label in (-1, width):
            label = None
    if ragged and (columns is None or label == -1):
        raise DataError(f"{name}: ragged={ragged!r}: name the columns observed and that of the label, too")
    layout = Layout(separator, actual_width, _label_index(label, actual_width, name), bool(ragged))
    observed = _observed(columns, layout, name)
    observe = itemgetter(*observed)
    least = max(*observed, -1 if layout.label is None else layout.label) + 1

    def fits(cells: list[str]) -> bool:
        return len(cells) >= least if ragged else len(cells) == layout.width

    pending: list[str] = []  # comments, marks and blank lines before the next sentence
    rows: list[str] = []

    def sentence(end: int) -> Record:
        nonlocal pending, rows
        table = [split(line) for line in rows]
        for row, cells in enumerate(table):
            if not fits(cells) or "" in cells:
                raise _bad_row(name, end, row, rows, layout, first + 1)
        labels: list[Label] | None = None
        if layout.label is not None:
            labels = [None if (cell := cells[layout.label]) == UNKNOWN else cell for cells in table]
        sequence = structures.Sequence([observe(cells) for cells in table])
        record = Record(sequence, labels, pending, Rows(rows, layout))
        pending, rows = [], []
        return record

    number = 0
    for number, line in enumerate(chain(head, lines), 1):
        is_mark = line.startswith(DOCUMENT_MARK) and _is_document_mark(line, separator)
        if is_mark or not line.strip(" \t"):
            ends = bool(rows)
            if ends:
                yield sentence(number)
            if is_mark or not ends:
                pending.append(line)
        elif not rows and line.startswith("#") and (not fits(split(line)) or _NAMED_VALUE.match(line)):
            pending.append(line)
        else:
            rows.append(line)
    if rows:
        yield sentence(number + 1)
    notes += dataset.trailing_note(name, sum(bool(split(line)) for line in pending))


def write(
    records: Sequence[Record],
    separator: str | None = None,
    flatten: bool = False,
    after: Record | None = None,
) -> str:
    """Write observations and labels as columns, or the rows that were read with new labels.

    Parameters
    ----------
    records : list of Record
        At least one.
    separator : str, optional
        The character between columns; by default that of the file read, else a tab.
    flatten : bool
        Whether to write the nodes of a tree or DAG as a sequence. Otherwise these are refused,
        because columns cannot contain edges.
    after : Record, optional
        The first record of the file, if `records` are to follow others in it.

    Returns
    -------
    str
        The content of the file.
    """
    check_choice("flatten", flatten, (True, False))
    first = after or records[0]
    labelled = any(record.labels is not None for record in (first, *records))
    width = _width(first, labelled)
    if separator is not None:
        _check_separator(separator)
    elif width > 1:  # a reader finds no tab in a single column
        known = {
            record.rows.layout.separator if isinstance(record.rows, Rows) else "\t"
            for record in (first, *records)
        }
        separator = known.pop() if len(known) == 1 else "\t"
    lines: list[str] = []
    for index, record in enumerate(records):
        if (count := _width(record, labelled)) != width:
            raise DataError(
                f"{place(index)}: {count} columns where the first structure has {width}; every token of a "
                "file has the same number of columns: write two files, or jsonl"
            )
        if not isinstance(record.structure, structures.Sequence) and not flatten:
            raise DataError(
                f"{place(index)}: a {record.structure.shape} in columns would lose its edges; pass "
                "flatten=True to write its nodes as a sequence, or write conllu or jsonl"
            )
        rows = _rows_as_read if isinstance(record.rows, Rows) else _rows_of_observations
        body = rows(index, record, separator, labelled)
        if record is first and separator is None and "\t" in body[0]:
            body[0] = " ".join(_splitter(None)(body[0]))  # a tab would become the separator
        lines += _heading(index, record, separator, width)
        ragged = isinstance(record.rows, Rows) and record.rows.layout.ragged
        _check_lines(index, body, separator, len(_splitter(separator)(body[0])) if ragged else width)
        lines += [*body, ""]
    return "\n".join(lines) + "\n"


def from_command(options: dict[str, Any]) -> dict[str, Any]:
    """Replace the word "tab" as separator by the character."""
    names = {"tab": "\t", "\\t": "\t"}
    return {k: names.get(v, v) if k == "separator" and isinstance(v, str) else v for k, v in options.items()}


def options_to_store(data: Dataset) -> dict[str, Any]:
    """The number of columns: a file without the last of them has no labels."""
    layout = data.records[0].rows.layout
    return {} if layout.ragged else {"width": layout.width}


def options_for_model(path: str, given: dict, stored: dict | None, labelled: bool) -> dict[str, Any]:
    """Allow any number of columns only if those observed and that of the label are both named."""
    options = (stored or {}) | given
    if {"columns", "label"} <= given.keys() and "width" not in given:
        options.pop("width", None)
    return options


def _splitter(separator: str | None) -> Callable[[str], list[str]]:
    """The function from a line to its cells; a line of only spaces and tabs has none."""
    if separator is None:
        return _cells_between_blanks
    return lambda line: line.split(separator) if line.strip(" \t") else []


def _cells_between_blanks(line: str) -> list[str]:
    """The cells of a line between runs of spaces and tabs."""
    cells = line.split(" ")  # several times faster than the pattern, where it is enough
    return _CELL.findall(line) if "" in cells or "\t" in line else cells


def _is_document_mark(line: str, separator: str | None) -> bool:
    """Whether a line is a document mark, alone or before other columns."""
    return line.startswith(DOCUMENT_MARK) and line[len(DOCUMENT_MARK) :][:1] in ("", " ", "\t", separator)


def _is_comment(line: str, cells: int, width: int) -> bool:
    """Whether a line before the first token, of that many cells, is a comment."""
    return line.startswith("#") and (cells != width or _NAMED_VALUE.match(line) is not None)


def _head(lines: Iterator[str], name: str, separator: str | None) -> tuple[list[str], int]:
    """The first lines, and which of them determines the layout: the first that must be a token.

    Without such a line these are all lines, and the last one that can be a token determines it.
    """
    if separator is not None:
        _check_separator(separator)
    head: list[str] = []
    last = None
    for index, line in enumerate(lines):
        head.append(line)
        if not line.strip(" \t") or _is_document_mark(line, separator) or _NAMED_VALUE.match(line):
            continue
        if not line.startswith("#"):
            return head, index
        last = index  # if all lines start with "#", the last is the least likely comment
    if last is None:
        raise DataError(
            f"{name}: no tokens; give one token per line, its columns separated by spaces or tabs"
        )
    return head, last


def _check_separator(separator: str) -> None:
    """Refuse a separator that is not a single character."""
    if not isinstance(separator, str) or len(separator) != 1 or separator in "\r\n":
        raise DataError(f"separator={separator!r}: give one character, such as a tab or a comma")


def _check_width(width: int, actual: int, all_observed: bool, name: str, number: int) -> None:
    """Refuse a file with too many columns, or too few where all are observed."""
    if not is_whole(width, 2):
        raise DataError(f"{name}: width={width!r}: give the number of columns with labels, at least 2")
    if actual > width or (all_observed and actual < width - 1):
        message = (
            f"{_columns(actual)} where {width} are expected with labels and {width - 1} without; give "
            "one token per line with the same columns, or name both the columns observed and that of the "
            "label (--columns and --label); read raw text with format='text' (--format text, tag --text)"
        )
        raise fault(name, number, message)


def _columns(count: int) -> str:
    """A number of columns in words."""
    return f"{count} column{'s' if count != 1 else ''}"


def _label_index(label: int | None, width: int, name: str) -> int | None:
    """The index of the column of the label, None without labels."""
    if label is not None and width == 1:
        remedy = "for a file without labels pass label=None (on the command line --label none)"
        raise DataError(f"{name}: one column only; {remedy}")
    return label if label is None else _column_index(width if label == -1 else label, width, name, "label")


def _column_index(column: int, width: int, name: str, option: str) -> int:
    """The index of a column that the user counts from 1."""
    if not is_whole(column, 1, width):
        raise DataError(f"{name}: {option}={column!r}: count columns from 1 to {width}, the last")
    return column - 1


def _observed(columns: int | Sequence[int] | None, layout: Layout, name: str) -> list[int]:
    """The indices of the observed columns."""
    if columns is None:
        return [column for column in range(layout.width) if column != layout.label]
    if isinstance(columns, int):
        columns = [columns]
    if not isinstance(columns, list | tuple) or not columns:
        remedy = f"give a column number from 1 to {layout.width}, or a list of them"
        raise DataError(f"{name}: columns={columns!r}: {remedy}")
    indices = [_column_index(column, layout.width, name, "columns") for column in columns]
    if layout.label in indices:
        message = f"column {layout.label + 1} is both observed and the label; leave it out of columns"
        raise DataError(f"{name}: {message}, or name another label")
    return indices


def _bad_row(name: str, end: int, row: int, rows: list[str], layout: Layout, first: int) -> DataError:
    """The error for a row, before line `end`, with an empty column or too few or too many."""
    line, number, table = rows[row], end - len(rows) + row, list(map(_splitter(layout.separator), rows))
    cells, widths = table[row], list(map(len, table))
    if "" in cells and (len(cells) == layout.width or layout.ragged):
        problem = f"column {cells.index('') + 1} is empty: {short(line)}"
        return fault(name, number, f"{problem}; fill it, or write _ for an unknown label")
    between = {None: "spaces or tabs", "\t": "tabs"}.get(layout.separator, repr(layout.separator))
    hint = "a comment comes before the first token" if line[0] == "#" else "a blank line ends a sentence"
    remedy = f"give all the same columns ({hint}) or pass ragged=True"
    if layout.separator is None and len(rows) > 2 and widths.count(layout.width) < len(rows) / 2:
        remedy = "running text has no columns: label it with `fuda label`, or read it with format='text'"
    expected = f"{layout.width} are expected (line {first} has {layout.width}, separated by {between})"
    return fault(name, number, f"{_columns(len(cells))} where {expected}: {short(line)}; {remedy}")


def _width(record: Record, labelled: bool) -> int:
    """The number of columns of a record when written."""
    if isinstance(record.rows, Rows):
        width = record.rows.layout.width + (labelled and record.rows.layout.label is None)
    else:
        first = record.structure.observations[0]
        width = (len(first) if isinstance(first, tuple) else 1) + labelled
    return width + (record.marginals is not None)


def _rows_as_read(index: int, record: Record, separator: str | None, labelled: bool) -> list[str]:
    """The lines of a record as they were read, with its labels in their column or a new one."""
    lines, layout = record.rows.lines, record.rows.layout
    dataset.check_rows(index, record, len(lines))
    labels = dataset.labels_to_write(index, record)
    if labels is None and labelled and layout.label is None:
        labels = [None] * len(lines)
    if labels is not None:
        texts: dict[Label, str] = {}
        for node, label in enumerate(labels):
            if not isinstance(label, str) or label not in texts:
                text = label_text(label, index, node, UNKNOWN)
                texts[label] = text
                _check_cells([text], index, node, layout.separator)
        lines = _with_labels(lines, [texts[label] for label in labels], layout)
    if separator != layout.separator:
        split = _splitter(layout.separator)
        lines = [_join(split(line), index, node, separator) for node, line in enumerate(lines)]
    if record.marginals is not None:
        between = separator or " "
        lines = [
            f"{line}{between}{dataset.probability_text(record, node)}" for node, line in enumerate(lines)
        ]
    return lines


def _with_labels(lines: list[str], labels: list[str], layout: Layout) -> list[str]:
    """The lines with other labels; all else stays, spaces between columns included."""
    pairs = zip(lines, labels, strict=True)
    between = layout.separator or " "
    if layout.label == layout.width - 1 and not layout.ragged:
        text = "\n".join([*lines, ""])
        if layout.separator or ("\t" not in text and " \n" not in text):  # then the label is last
            return [line[: line.rfind(between) + 1] + label for line, label in pairs]
    return [_with_label(line, label, layout) for line, label in pairs]


def _with_label(line: str, label: str, layout: Layout) -> str:
    """The line with another label, in any column."""
    if layout.label is None:
        return line + (layout.separator or " ") + label
    if layout.separator is None:
        start, end = [match.span() for match in _CELL.finditer(line)][layout.label]
        return line[:start] + label + line[end:]
    cells = line.split(layout.separator)
    cells[layout.label] = label
    return layout.separator.join(cells)


def _rows_of_observations(index: int, record: Record, separator: str | None, labelled: bool) -> list[str]:
    """One line per node: the columns of its observation and its label."""
    labels = dataset.labels_to_write(index, record) or [None] * len(record.structure)
    width = _width(record, labelled)
    lines = []
    for node, observation in enumerate(record.structure.observations):
        cells = dataset.column_values(observation, index, node)
        if labelled:
            cells.append(label_text(labels[node], index, node, UNKNOWN))
        if record.marginals is not None:
            cells.append(dataset.probability_text(record, node))
        if len(cells) != width:
            message = f"{len(cells)} columns where the first node has {width}; give every observation"
            raise DataError(f"{place(index, node)}: {message} the same columns, or write jsonl")
        lines.append(_join(cells, index, node, separator))
    return lines


def _join(cells: list[str], index: int, node: int, separator: str | None) -> str:
    """The line of the cells, after checking them."""
    _check_cells(cells, index, node, separator)
    return (separator or " ").join(cells)


def _check_cells(cells: list[str], index: int, node: int, separator: str | None) -> None:
    """Refuse cells that a reader would not find again between the separators."""
    forbidden = "\n \t" if separator in (None, " ") else f"\n{separator}"
    for cell in cells:
        if not cell.strip(" \t") or not set(cell).isdisjoint(forbidden):
            raise DataError(
                f"{place(index, node)}: the cell {short(cell)} is empty, or contains a line break or the "
                "separator of the columns; write with another separator, or jsonl"
            )


def _heading(index: int, record: Record, separator: str | None, width: int) -> list[str]:
    """The lines before a sentence; ``#`` is added to a comment of another format."""
    split = _splitter(separator)
    heading = []
    for line in record.comments:
        if split(line) and not _is_document_mark(line, separator):
            line = line if line.startswith("#") else f"# {line}"
            if not _is_comment(line, len(split(line)), width):
                message = f"the comment {short(line)} has as many columns as a token and would be read as one"
                raise DataError(f"{place(index)}: {message}; reword it, or write jsonl")
        heading.append(check_line(line, index))
    return heading


def _check_lines(index: int, lines: list[str], separator: str | None, width: int) -> None:
    """Refuse tokens whose lines a reader would take for something else."""
    if _is_comment(lines[0], len(_splitter(separator)(lines[0])), width):
        message = f"{short(lines[0])} would be read as a comment; write with a tab, or jsonl"
        raise DataError(f"{place(index, 0)}: {message}")
    text = "\n".join([*lines, ""])
    if text.count("\n") == len(lines) and "\r\n" not in text and DOCUMENT_MARK not in text:
        return  # as nearly always
    for node, line in enumerate(lines):
        check_line(line, index, node)
        if _is_document_mark(line, separator):
            message = f"{short(line)} would be read as a document mark; write jsonl"
            raise DataError(f"{place(index, node)}: {message}")
