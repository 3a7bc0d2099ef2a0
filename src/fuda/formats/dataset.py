"""Datasets: records of a structure, its labels, and what the file contains beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fuda.data.labels import Label
from fuda.data.structures import Observation, Structure
from fuda.errors import DataError, described, place, short


@dataclass
class Record:
    """One structure of a file.

    Parameters
    ----------
    structure : Structure
        A sequence, tree or DAG.
    labels : list of str, int or None, optional
        One label per node, None where it is not known; None instead of a list if the file has no
        labels.
    comments : list of str
        The comment lines of the structure, unchanged.
    rows : object, optional
        What the reader of a format keeps for the writer of the same format, so that only labels
        change. Writers of other formats ignore it.
    """

    structure: Structure
    labels: list[Label] | None = None
    comments: list[str] = field(default_factory=list)
    rows: Any = None


@dataclass
class Dataset:
    """Records in file order; ``X, y = dataset`` unpacks into structures and labels.

    Parameters
    ----------
    records : list of Record
        The structures with their labels.
    notes : list of str
        What the reader left out of the file, such as sentences skipped on request; one line each.

    Examples
    --------
    >>> from fuda import Sequence
    >>> X, y = Dataset([Record(Sequence(["Ana", "sleeps"]), ["N", "V"])])
    >>> X, y
    ([Sequence(['Ana', 'sleeps'], 2 nodes)], [['N', 'V']])
    """

    records: list[Record]
    notes: list[str] = field(default_factory=list)

    @property
    def X(self) -> list[Structure]:
        """The structures."""
        return [record.structure for record in self.records]

    @property
    def y(self) -> list[list[Label]] | None:
        """The labels of each structure; None if any structure has none."""
        labels = [record.labels for record in self.records if record.labels is not None]
        return labels if labels and len(labels) == len(self.records) else None

    def with_labels(self, y: Sequence[Sequence[Label]]) -> Dataset:
        """Return the same records with other labels, for example those that a model predicted.

        Parameters
        ----------
        y : list of list of labels
            One list per structure, one label per node.

        Returns
        -------
        Dataset
            A copy that shares the structures.
        """
        if len(y) != len(self):
            raise DataError(f"{len(self)} structures need as many lists of labels, but {len(y)} were given")
        pairs = zip(self.records, y, strict=True)
        return replace(self, records=[replace(record, labels=list(labels)) for record, labels in pairs])

    def __iter__(self) -> Iterator[Any]:
        yield from (self.X, self.y)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, which: Any) -> Any:
        """Return a record by its number, or a dataset of those in a slice or a list of numbers."""
        if isinstance(which, slice):
            return replace(self, records=self.records[which])
        if isinstance(which, Iterable):
            return replace(self, records=[self.records[i] for i in which])
        return self.records[which]


def labels_to_write(index: int, record: Record) -> list[Label] | None:
    """The labels of record `index`, after checking that there is one per node."""
    if record.labels is None:
        return None
    if len(record.labels) != len(record.structure):
        problem = f"{len(record.labels)} labels for {len(record.structure)} nodes"
        raise DataError(f"{place(index)}: {problem}; give one per node, None where it is not known")
    return list(record.labels)


def label_text(label: Label, index: int, node: int, absent: str = "_") -> str:
    """The text of a label, `absent` for None; refuse one that would be read back differently."""
    if label is None:
        return absent
    if not isinstance(label, str) or label in ("", absent):
        raise DataError(
            f"{place(index, node)}: the label {label!r} would not be read back: labels in this format are "
            f"non-empty strings, and {absent!r} is an unknown label; rename it or write jsonl"
        )
    return label


def column_values(observation: Observation, index: int, node: int) -> list[str]:
    """The columns of an observation: one for a string, several for a tuple of strings."""
    values = observation if isinstance(observation, tuple) and len(observation) > 1 else (observation,)
    if not all(isinstance(value, str) for value in values):
        raise DataError(
            f"{place(index, node)}: the observation {described(observation)} is neither a string nor a tuple "
            "of several strings, so it does not fit into columns; write jsonl"
        )
    return list(values)


def check_rows(index: int, record: Record, nodes: int) -> None:
    """Refuse rows that were kept from reading another structure than the one to write."""
    if nodes != len(record.structure):
        raise DataError(
            f"{place(index)}: {len(record.structure)} nodes, but the rows kept from its file have {nodes}; "
            "set rows=None for a structure that was changed"
        )


def check_line(line: str, index: int, node: int | None = None) -> str:
    """The line, after checking that a reader finds it as one line, to its last character."""
    if "\n" in line or line.endswith("\r"):
        message = f"{short(line)} contains or ends in a line break; remove it, or write jsonl"
        raise DataError(f"{place(index, node)}: {message}")
    return line


def trailing_note(name: str, count: int) -> list[str]:
    """A note on comment lines after the last sentence, which belong to no record."""
    note = f"{name}: {count} comment line(s) after the last sentence left out: no sentence has them"
    return [note] if count else []
