"""What a reader gives and a writer takes: records of a structure, its labels and what else the file said of
it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fuda.data.labels import Label
from fuda.data.structures import Observation, Structure
from fuda.errors import DataError, place, short


@dataclass
class Record:
    """One structure of a file.

    `labels` is None where the file carries none at all. `comments` are its comment lines as they stood.
    `rows` is what the reader of a format keeps for its own writer, so that writing the same format back loses
    nothing but the labels replaced; the writers of other formats pass it over.
    """

    structure: Structure
    labels: list[Label] | None = None
    comments: list[str] = field(default_factory=list)
    rows: Any = None


@dataclass
class Dataset:
    """Records in file order. ``X, y = dataset`` unpacks into structures and labels (y is None without
    labels).

    `notes` say in a line each what the reader left out of the file, such as sentences skipped on request.
    """

    records: list[Record]
    notes: list[str] = field(default_factory=list)

    @property
    def X(self) -> list[Structure]:
        return [record.structure for record in self.records]

    @property
    def y(self) -> list[list[Label]] | None:
        labels = [record.labels for record in self.records if record.labels is not None]
        return labels if labels and len(labels) == len(self.records) else None

    def with_labels(self, y: Sequence[Sequence[Label]]) -> Dataset:
        """The same records with the labels `y`, one list a structure: what a labeler predicted, ready to
        write."""
        if len(y) != len(self):
            raise DataError(f"{len(self)} structures need as many lists of labels, but {len(y)} were given")
        pairs = zip(self.records, y, strict=True)
        return replace(self, records=[replace(record, labels=list(labels)) for record, labels in pairs])

    def __iter__(self) -> Iterator[Any]:
        yield self.X
        yield self.y

    def __len__(self) -> int:
        return len(self.records)


def labels_to_write(index: int, record: Record) -> list[Label] | None:
    """The labels of record `index`, checked to be one a node."""
    if record.labels is None:
        return None
    if len(record.labels) != len(record.structure):
        raise DataError(
            f"{place(index)}: {len(record.labels)} labels for {len(record.structure)} nodes; give one a "
            "node, None where it is not known"
        )
    return list(record.labels)


def label_text(label: Label, index: int, node: int, absent: str = "_") -> str:
    """A label as a cell of text, `absent` for None; only strings come back from text as they were."""
    if label is None:
        return absent
    if not isinstance(label, str) or label in ("", absent):
        raise DataError(
            f"{place(index, node)}: the label {label!r} would not be read back as it is: labels in this "
            f"format are non-empty strings, and {absent!r} stands for a label not known; rename the label "
            "or write jsonl"
        )
    return label


def column_values(observation: Observation, index: int, node: int) -> list[str]:
    """An observation as the values of its columns: a string is one, a tuple of strings several."""
    if isinstance(observation, str):
        return [observation]
    if (
        isinstance(observation, tuple)
        and len(observation) > 1
        and all(isinstance(value, str) for value in observation)
    ):
        return list(observation)
    raise DataError(
        f"{place(index, node)}: the observation {short(observation)} ({type(observation).__name__}) is "
        "neither a string nor a tuple of several strings, so it does not fit into columns; write jsonl"
    )


def check_rows(index: int, record: Record, nodes: int) -> None:
    """Rows kept from reading must be those of the structure they are written for."""
    if nodes != len(record.structure):
        raise DataError(
            f"{place(index)}: {len(record.structure)} nodes, but the rows kept from its file have {nodes}; "
            "set rows=None for a structure that was changed"
        )


def check_line(line: str, index: int, node: int | None = None) -> str:
    """The line, if a reader will find it as one line, to its last character."""
    if "\n" in line or line.endswith("\r"):
        raise DataError(
            f"{place(index, node)}: {short(line)} holds or ends in a line end; remove it, or write jsonl"
        )
    return line
