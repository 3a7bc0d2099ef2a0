"""CSV: a header with column names, a token per row, and a column that identifies the sentence.

::

    sentence,word,pos,tag
    1,Ana,NP,B-PER
    1,sings,VB,O

Consecutive rows with the same value in the column of the sentence are one sequence. An empty cell
stands for the value above it, so that only the first row of a sentence needs one. An empty cell in
the column of the labels is an unknown label. Cells may be quoted. All other columns are kept.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fuda.checks import is_whole
from fuda.data import structures
from fuda.errors import DataError, place, short
from fuda.files import fault, split_lines
from fuda.formats import dataset
from fuda.formats.dataset import Dataset, Label, Record, label_text, labels_to_write

SEPARATORS = (",", ";", "\t")
_SENTENCE = re.compile(r"sent", re.IGNORECASE)
_OFFSETS = ("start", "end")


class IfThere(str):
    """The name of a column of labels that a file may be without."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The names of the columns, and which are the sentence's, the label's and observed.

    `added` is the name of the column of labels that is added to a file without one.
    """

    names: list[str]
    sentence: int
    label: int | None
    observed: list[int]
    added: str = "label"


@dataclass(slots=True)
class Rows:
    """The cells of the rows of a sentence, and their layout."""

    cells: list[list[str]]
    layout: Layout


def read(
    text: str,
    name: str,
    separator: str | None = None,
    sentence: str | None = None,
    columns: str | Sequence[str] | None = None,
    label: str | int | None = -1,
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
        The character between cells; by default a comma, semicolon or tab, whichever the header has
        most of.
    sentence : str, optional
        The column of the sentence; by default the first whose name begins with "sent".
    columns : str or list of str, optional
        The columns of the observation; by default all but the sentence, the label, and ``start``
        and ``end``.
    label : str, int or None
        The column of the label, by name or counted from 1; −1 is the last, None means that there
        are no labels.

    Returns
    -------
    Dataset
        One record per sentence.

    Examples
    --------
    >>> X, y = read("sentence,word,tag\\n1,Ana,B-PER\\n1,sings,O\\n", "example")
    >>> X, y
    ([Sequence(['Ana', 'sings'], 2 nodes)], [['B-PER', 'O']])
    """
    record_iterator = records(split_lines(text, name), name, [], separator, sentence, columns, label)
    return Dataset(list(record_iterator))


def records(
    lines: Iterable[str],
    name: str,
    notes: list[str],
    separator: str | None,
    sentence: str | None,
    columns: str | Sequence[str] | None,
    label: str | int | None,
) -> Iterator[Record]:
    """Yield the records of `read` as soon as their lines have come; there are no notes."""
    lines = (f"{line}\n" for line in lines)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise DataError(f"{name}: no header; name the columns in the first line, such as sentence,word,tag")
    if separator is None:
        separator = max(SEPARATORS, key=first.count)
    elif not isinstance(separator, str) or len(separator) != 1 or separator in '\r\n"':
        raise DataError(f"separator={separator!r}: give one character, such as a comma")
    rows = _rows([first], lines, separator, name)
    _, header = next(rows)
    layout = find_layout(header, name, sentence, columns, label)
    cells: list[list[str]] = []
    current = ""
    empty = True
    for number, row in rows:
        if len(row) != len(header):
            problem = f"{len(row)} cells where the header has {len(header)}: {short(separator.join(row))}"
            raise fault(name, number, f"{problem}; give every row as many, and quote cells with separators")
        if (value := row[layout.sentence]) not in ("", current):
            if cells:
                yield _record(cells, layout)
            cells, current = [], value
        elif not value and not current:
            problem = f"the column {header[layout.sentence]!r} is empty"
            raise fault(name, number, f"{problem}; give the first row of a sentence its value")
        for column in layout.observed:
            if not row[column]:
                raise fault(
                    name, number, f"the column {header[column]!r} is empty; fill it, or leave the row out"
                )
        cells.append(row)
        empty = False
    if empty:
        raise DataError(f"{name}: no rows; give one token per row")
    yield _record(cells, layout)


def write(records: Sequence[Record], separator: str = ",") -> str:
    """Write the rows that were read with new labels, or a table of tokens and labels.

    Parameters
    ----------
    records : list of Record
        The sequences and labels.
    separator : str
        The character between cells.

    Returns
    -------
    str
        The content of the file.
    """
    as_read = all(isinstance(record.rows, Rows) for record in records)
    as_read = as_read and len({tuple(record.rows.layout.names) for record in records}) == 1
    header, rows = _rows_as_read(records) if as_read else _new_rows(records)
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n")
    writer.writerow(header)
    for index, row in rows:
        if any("\r" in cell for cell in row):
            raise DataError(f"{place(index)}: a cell contains a carriage return; remove it, or write jsonl")
        writer.writerow(row)
    return stream.getvalue()


def options_to_store(data: Dataset) -> dict[str, Any]:
    """The names of the columns: other files may have them in another order."""
    layout = data.records[0].rows.layout
    names = {"sentence": layout.names[layout.sentence], "columns": [layout.names[i] for i in layout.observed]}
    return names | ({} if layout.label is None else {"label": layout.names[layout.label]})


def options_for_model(path: str, given: dict, stored: dict | None, labelled: bool) -> dict[str, Any]:
    """Require ``label`` for a model trained on another format, so that no column is replaced.

    What is to be labelled may be without the column of the labels.
    """
    if stored is None and "label" not in given:
        message = "the model was not trained on such files; name the column of the labels with --label"
        raise DataError(f"{path}: {message}, or none where a column is to be added, and --columns")
    options = (stored or {}) | given
    if not labelled and "label" not in given and "label" in options:
        options["label"] = IfThere(options["label"])
    return options


def find_layout(
    names: list[Any], name: str, sentence: Any, columns: Any, label: Any, by_index: bool = False
) -> Layout:
    """The layout of a table with these columns; `by_index` if an index has the sentences."""
    if len(set(names)) < len(names):
        raise DataError(f"{name}: a column's name is given twice in {short(names)}; rename one")

    def index_of(column: Any, option: str) -> int:
        if column in names:
            return names.index(column)
        if is_whole(column, 1, len(names)):
            return int(column) - 1
        hint = "; give label=None (--label none) if there are no labels" if option == "label" else ""
        raise DataError(f"{name}: {option}={column!r}: there is no such column; it has {short(names)}{hint}")

    if by_index:
        place_of_sentence = -1
    elif sentence is not None:
        place_of_sentence = index_of(sentence, "sentence")
    else:
        likely = [i for i, x in enumerate(names) if isinstance(x, str) and _SENTENCE.match(x)]
        if not likely:
            problem = f"no column's name begins with 'sent': {short(names)}"
            raise DataError(f"{name}: {problem}; name that of the sentence (--option sentence=NAME)")
        place_of_sentence = likely[0]
    added = "label"
    if isinstance(label, IfThere) and label not in names:
        label, added = None, str(label)
    of_label = None if label is None else index_of(len(names) if label == -1 else label, "label")
    if columns is None:
        excluded = {place_of_sentence, of_label}
        observed = [i for i, x in enumerate(names) if i not in excluded and x not in _OFFSETS]
    else:
        listed = [columns] if isinstance(columns, str | int) else list(columns)
        observed = [index_of(column, "columns") for column in listed]
    if not observed or {of_label, place_of_sentence} & set(observed) or of_label == place_of_sentence:
        problem = f"sentence, label and observation are columns of their own; it has {short(names)}"
        raise DataError(f"{name}: {problem}; name others with sentence=, label= and columns=")
    return Layout(names, place_of_sentence, of_label, observed, added)


def _rows(
    first: list[str], lines: Iterator[str], separator: str, name: str
) -> Iterator[tuple[int, list[str]]]:
    """The cells of rows that are not blank, with the number of their last line."""

    def all_lines() -> Iterator[str]:
        yield from first
        yield from lines

    reader = csv.reader(all_lines(), delimiter=separator, strict=True)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise fault(
                name, reader.line_num, f"not CSV: {error}; quote cells with quotes, doubled"
            ) from None
        if row:
            yield reader.line_num, row


def _record(cells: list[list[str]], layout: Layout) -> Record:
    """The record of the rows of a sentence."""
    single = layout.observed[0] if len(layout.observed) == 1 else None
    observations: list[Any] = [
        row[single] if single is not None else tuple(row[column] for column in layout.observed)
        for row in cells
    ]
    labels: list[Label] | None = None
    if layout.label is not None:
        labels = [row[layout.label] or None for row in cells]
    return Record(structures.Sequence(observations), labels, rows=Rows(cells, layout))


def _rows_as_read(records: Sequence[Record]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header and the rows of a file with the labels of the records."""
    layout = records[0].rows.layout
    header = list(layout.names)
    added = layout.label is None and any(record.labels is not None for record in records)
    if added:
        header.append(next(x for x in (layout.added, "predicted", "new label") if x not in header))
    rows = []
    for index, record in enumerate(records):
        dataset.check_rows(index, record, len(record.rows.cells))
        labels = labels_to_write(index, record)
        for node, cells in enumerate(record.rows.cells):
            row = list(cells)
            text = "" if labels is None else label_text(labels[node], index, node, "")
            if added:
                row.append(text)
            elif layout.label is not None and labels is not None:
                row[layout.label] = text
            rows.append((index, row))
    return header, rows


def _new_rows(records: Sequence[Record]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """A header and rows for structures of other formats."""
    labelled = any(record.labels is not None for record in records)
    rows = []
    width = None
    for index, record in enumerate(records):
        if not isinstance(record.structure, structures.Sequence):
            raise DataError(
                f"{place(index)}: a {record.structure.shape} in rows would lose its edges; write jsonl"
            )
        labels = labels_to_write(index, record) or [None] * len(record.structure)
        for node, observation in enumerate(record.structure.observations):
            cells = dataset.column_values(observation, index, node)
            if not all(cells) or len(cells) != (width or len(cells)):
                problem = "an empty column, or not as many columns as the first node"
                raise DataError(f"{place(index, node)}: {problem}; write jsonl")
            width = len(cells)
            last = [label_text(labels[node], index, node, "")] if labelled else []
            rows.append((index, [str(index + 1), *cells, *last]))
    words = ["token"] if width == 1 else [f"column{number + 1}" for number in range(width or 0)]
    return ["sentence", *words, *(["label"] if labelled else [])], rows
