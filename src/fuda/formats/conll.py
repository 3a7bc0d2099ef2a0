"""CoNLL columns: one token a line, its columns side by side, a blank line after each sentence.

::

    # a comment
    Ana    NP  B-PER
    lives  VB  O

- *Columns* are separated by tabs if the first token's line has one, else by runs of spaces and tabs; or by
  the one character given as `separator`. Every token has the same number of them.
- *Labels* stand in the last column, or the one given as `label`. ``_`` is a label not known (None).
- *Document marks* are lines that start with ``-DOCSTART-``. They end a sentence and are never a token.
- *Comments* stand before the first token of a sentence and start with ``#``. A token may start with ``#``
  too, so such a line is a comment only if its number of columns is not that of the tokens, or if it
  reads ``# name = value`` without a tab.
- Comments, document marks and further blank lines before a sentence are kept in ``Record.comments`` as they
  stood.

Writing gives a file that was read back byte for byte, labels replaced, if its lines end in a line feed alone
and every sentence in exactly one blank line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from fuda.checks import check_choice, is_whole
from fuda.data import structures
from fuda.errors import DataError, place, short
from fuda.files import fault, split_lines
from fuda.formats.dataset import (
    Dataset,
    Label,
    Record,
    check_line,
    check_rows,
    column_values,
    label_text,
    labels_to_write,
)

DOCUMENT_MARK = "-DOCSTART-"
UNKNOWN = "_"
_NAMED_VALUE = re.compile(r"# [^ \t]+ = [^\t]*\Z")
_cells_between_blanks = re.compile(r"[^ \t]+").findall


@dataclass(frozen=True, slots=True)
class Table:
    """How the columns of a file stand: `separator` None is runs of spaces and tabs, `label` counts from 0."""

    separator: str | None
    width: int
    label: int | None


@dataclass(slots=True)
class Rows:
    """The lines of the tokens of one sentence as they stood, and the table they belong to."""

    lines: list[str]
    table: Table


def read(
    text: str,
    name: str,
    separator: str | None = None,
    columns: int | Sequence[int] | None = None,
    label: int | None = -1,
    width: int | None = None,
) -> Dataset:
    """Sentences as sequences; the observation of a token is a string, or a tuple if it has several columns.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.
    separator : str, optional
        The character between columns; by default a tab if the first token's line has one, else runs of
        spaces and tabs.
    columns : int or list of int, optional
        The columns of the observation, counted from 1; by default all but the label's.
    label : int or None
        The column of the label; −1 is the last, None means that there are no labels.
    width : int, optional
        The number of columns of a file with labels. A file that lacks just the last of them has no labels,
        and others need `columns`.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> X, y = read("Ana NP B-PER\\nlives VB O\\n\\n", "example", columns=1)
    >>> X, y
    ([Sequence(['Ana', 'lives'], 2 nodes)], [['B-PER', 'O']])
    """
    lines = split_lines(text, name)
    first = _first_row(lines, name, separator)
    if separator is None and "\t" in lines[first]:
        separator = "\t"
    split = _splitter(separator)
    found = len(split(lines[first]))
    if width is not None:
        _check_width(width, found, columns is None, name, first + 1)
        if found < width and label in (-1, width):
            label = None
    width = found
    table = Table(separator, width, _label_index(label, width, name))
    observe = itemgetter(*_observed(columns, table, name))

    records: list[Record] = []
    pending: list[str] = []  # what stands before the next sentence
    rows: list[str] = []
    observations: list[str | tuple[str, ...]] = []
    labels: list[Label] = []

    def end_sentence() -> None:
        nonlocal pending, rows, observations, labels
        sequence = structures.Sequence(observations)
        records.append(Record(sequence, None if table.label is None else labels, pending, Rows(rows, table)))
        pending, rows, observations, labels = [], [], [], []

    for number, line in enumerate(lines, 1):
        cells = split(line)
        if not cells or _is_document_mark(line, separator):
            ends = bool(rows)
            if ends:
                end_sentence()
            if cells or not ends:
                pending.append(line)
            continue
        if not rows and _is_comment(line, len(cells), width):
            pending.append(line)
            continue
        if len(cells) != width or "" in cells:
            raise _bad_row(name, number, line, cells, table, first + 1)
        observations.append(observe(cells))
        if table.label is not None:
            cell = cells[table.label]
            labels.append(None if cell == UNKNOWN else cell)
        rows.append(line)
    if rows:
        end_sentence()
    left = sum(bool(split(line)) for line in pending)
    notes = [f"{name}: {left} comment line(s) after the last sentence left out: no sentence has them"]
    return Dataset(records, notes if left else [])


def write(records: Sequence[Record], separator: str | None = None, flatten: bool = False) -> str:
    """Columns of the observation, and the label last; or the rows that were read, labels replaced.

    Parameters
    ----------
    records : list of Record
    separator : str, optional
        The character between columns; by default that of the file read, else a tab.
    flatten : bool
        Whether to write the nodes of a tree or DAG as a sequence. Otherwise they are refused, because
        columns cannot hold their edges.

    Returns
    -------
    str
    """
    explicit = separator is not None
    check_choice("flatten", flatten, (True, False))
    if separator is not None:
        _check_separator(separator)
    else:
        known = {record.rows.table.separator if isinstance(record.rows, Rows) else "\t" for record in records}
        separator = known.pop() if len(known) == 1 else "\t"
    labelled = any(record.labels is not None for record in records)
    width = 0
    lines: list[str] = []
    for index, record in enumerate(records):
        if index == 0:
            width = _width(record, labelled)
            if width == 1 and not explicit:
                separator = None  # a reader finds no tab to go by
        elif (found := _width(record, labelled)) != width:
            raise DataError(
                f"{place(index)}: {found} columns where structure 0 has {width}; every token of a file has "
                "the same number of columns: write two files, or jsonl"
            )
        if not isinstance(record.structure, structures.Sequence) and not flatten:
            raise DataError(
                f"{place(index)}: a {record.structure.shape} in columns would lose its edges; pass "
                "flatten=True "
                "to write its nodes as a sequence, or write conllu or jsonl"
            )
        rows = _rows_as_read if isinstance(record.rows, Rows) else _rows_of_observations
        body = rows(index, record, separator, labelled)
        if index == 0 and separator is None and "\t" in body[0]:
            body[0] = " ".join(_splitter(None)(body[0]))  # else the tab would be taken for the separator
        lines += _heading(index, record, separator, width)
        _check_lines(index, body, separator, width)
        lines += body
        lines.append("")
    return "\n".join(lines) + "\n"


def _splitter(separator: str | None) -> Callable[[str], list[str]]:
    """The function from a line to its cells; a line of nothing but spaces and tabs has none."""
    if separator is None:
        return _cells_between_blanks
    return lambda line: line.split(separator) if line.strip(" \t") else []


def _is_document_mark(line: str, separator: str | None) -> bool:
    if not line.startswith(DOCUMENT_MARK):
        return False
    after = line[len(DOCUMENT_MARK) : len(DOCUMENT_MARK) + 1]
    return after in ("", " ", "\t", separator)


def _is_comment(line: str, cells: int, width: int) -> bool:
    return line.startswith("#") and (cells != width or _NAMED_VALUE.match(line) is not None)


def _first_row(lines: list[str], name: str, separator: str | None) -> int:
    """The line by which the table is known: the first that is surely a token, else the last one."""
    if separator is not None:
        _check_separator(separator)
    last = None
    for index, line in enumerate(lines):
        if not line.strip(" \t") or _is_document_mark(line, separator) or _NAMED_VALUE.match(line):
            continue
        if not line.startswith("#"):
            return index
        last = index  # of lines that all start with "#" the last one is the least likely to be a comment
    if last is None:
        raise DataError(f"{name}: no tokens; give one token a line, its columns separated by spaces or tabs")
    return last


def _check_separator(separator: str) -> None:
    if not isinstance(separator, str) or len(separator) != 1 or separator in "\r\n":
        raise DataError(
            f"separator={separator!r}: give the one character between columns, such as a tab or a comma"
        )


def _check_width(width: int, found: int, all_observed: bool, name: str, number: int) -> None:
    """A file with all columns observed has `width` of them, or one less if it has no labels."""
    if not is_whole(width, 2):
        raise DataError(f"{name}: width={width!r}: give the number of columns with labels, at least 2")
    if all_observed and found not in (width, width - 1):
        raise fault(
            name,
            number,
            f"{found} column{'s' if found != 1 else ''} where {width} are expected with labels and "
            f"{width - 1} without; give the same columns, or name those observed with columns= (on the "
            "command line --columns)",
        )


def _label_index(label: int | None, width: int, name: str) -> int | None:
    if label is None:
        return None
    if width == 1:
        raise DataError(
            f"{name}: one column only; for a file without labels pass label=None (on the command line "
            "--label none)"
        )
    if label == -1:
        return width - 1
    return _column_index(label, width, name, "label")


def _column_index(column: int, width: int, name: str, option: str) -> int:
    if not is_whole(column, 1, width):
        raise DataError(f"{name}: {option}={column!r}: count columns from 1 to {width}, the last")
    return column - 1


def _observed(columns: int | Sequence[int] | None, table: Table, name: str) -> list[int]:
    if columns is None:
        return [column for column in range(table.width) if column != table.label]
    if isinstance(columns, int):
        columns = [columns]
    if not isinstance(columns, list | tuple) or not columns:
        raise DataError(
            f"{name}: columns={columns!r}: give a column number from 1 to {table.width}, or a list of them"
        )
    chosen = [_column_index(column, table.width, name, "columns") for column in columns]
    if table.label in chosen:
        raise DataError(
            f"{name}: column {table.label + 1} is both observed and the label; leave it out of columns, or "
            "name another label"
        )
    return chosen


def _bad_row(name: str, number: int, line: str, cells: list[str], table: Table, first: int) -> DataError:
    if len(cells) == table.width:
        column = cells.index("") + 1
        return fault(
            name, number, f"column {column} is empty: {short(line)}; fill it, or write _ for an unknown label"
        )
    between = {None: "spaces or tabs", "\t": "tabs"}.get(table.separator, repr(table.separator))
    found = f"{len(cells)} column{'s' if len(cells) != 1 else ''} where {table.width} are expected"
    remedy = (
        "a comment stands before the first token" if line.startswith("#") else "a blank line ends a sentence"
    )
    return fault(
        name,
        number,
        f"{found} (line {first} has {table.width}, separated by {between}): {short(line)}; give every token "
        f"the same columns ({remedy})",
    )


def _width(record: Record, labelled: bool) -> int:
    """How many columns a record is written into."""
    if isinstance(record.rows, Rows):
        return record.rows.table.width + (labelled and record.rows.table.label is None)
    first = record.structure.observations[0]
    return (len(first) if isinstance(first, tuple) else 1) + labelled


def _rows_as_read(index: int, record: Record, separator: str | None, labelled: bool) -> list[str]:
    """The lines of a record as they were read, with its labels in their column, or in a new last one."""
    kept: Rows = record.rows
    check_rows(index, record, len(kept.lines))
    labels = labels_to_write(index, record)
    if labels is None and labelled and kept.table.label is None:
        labels = [None] * len(kept.lines)
    split = _splitter(kept.table.separator)
    lines = []
    for node, line in enumerate(kept.lines):
        if labels is not None:
            label = label_text(labels[node], index, node, UNKNOWN)
            _check_cells([label], index, node, kept.table.separator)
            line = _with_label(line, label, kept.table, split)
        if separator != kept.table.separator:
            line = _join(split(line), index, node, separator)
        lines.append(line)
    return lines


def _with_label(line: str, label: str, table: Table, split: Callable[[str], list[str]]) -> str:
    if table.label is None:
        return line + (table.separator or " ") + label
    if split(line)[table.label] == label:
        return line
    if table.separator is not None:
        cells = split(line)
        cells[table.label] = label
        return table.separator.join(cells)
    start, end = [match.span() for match in re.finditer(r"[^ \t]+", line)][table.label]
    return line[:start] + label + line[end:]


def _rows_of_observations(index: int, record: Record, separator: str | None, labelled: bool) -> list[str]:
    """A line a node: the columns of its observation and its label."""
    labels = labels_to_write(index, record) or [None] * len(record.structure)
    width = _width(record, labelled)
    lines = []
    for node, observation in enumerate(record.structure.observations):
        cells = column_values(observation, index, node)
        if labelled:
            cells.append(label_text(labels[node], index, node, UNKNOWN))
        if len(cells) != width:
            raise DataError(
                f"{place(index, node)}: {len(cells)} columns where the first node has {width}; give every "
                "observation the same columns, or write jsonl"
            )
        lines.append(_join(cells, index, node, separator))
    return lines


def _join(cells: list[str], index: int, node: int, separator: str | None) -> str:
    _check_cells(cells, index, node, separator)
    return (separator or " ").join(cells)


def _check_cells(cells: list[str], index: int, node: int, separator: str | None) -> None:
    """Refuse cells that a reader would not find again between the separators."""
    forbidden = " \t" if separator in (None, " ") else separator
    for cell in cells:
        if not cell.strip(" \t") or "\n" in cell or any(character in cell for character in forbidden or ""):
            raise DataError(
                f"{place(index, node)}: the cell {short(cell)} is empty, or holds a line end or the "
                "separator of the columns; write with another separator, or jsonl"
            )


def _heading(index: int, record: Record, separator: str | None, width: int) -> list[str]:
    """The lines before a sentence; a comment of another format gets a ``#``."""
    split = _splitter(separator)
    heading = []
    for comment in record.comments:
        line = comment
        if split(line) and not _is_document_mark(line, separator):
            line = line if line.startswith("#") else f"# {line}"
            if not _is_comment(line, len(split(line)), width):
                raise DataError(
                    f"{place(index)}: the comment {short(line)} has as many columns as a token and would be "
                    "read as one; reword it, or write jsonl"
                )
        heading.append(check_line(line, index))
    return heading


def _check_lines(index: int, lines: list[str], separator: str | None, width: int) -> None:
    """Lines that a reader would take for something else than a token."""
    if _is_comment(lines[0], len(_splitter(separator)(lines[0])), width):
        raise DataError(
            f"{place(index, 0)}: {short(lines[0])} would be read as a comment; write with a tab, or jsonl"
        )
    for node, line in enumerate(lines):
        check_line(line, index, node)
        if _is_document_mark(line, separator):
            raise DataError(
                f"{place(index, node)}: {short(line)} would be read as a document mark; write jsonl"
            )


def from_command(options: dict[str, Any]) -> dict[str, Any]:
    """The word "tab" as a separator means the character."""
    named = {"tab": "\t", "\\t": "\t"}
    return {k: named.get(v, v) if k == "separator" and isinstance(v, str) else v for k, v in options.items()}


def remembered(dataset: Dataset) -> dict[str, Any]:
    """The number of columns: a file that lacks the last of them has no labels."""
    return {"width": dataset.records[0].rows.table.width}
