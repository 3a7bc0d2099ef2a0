"""What a reader gives and a writer takes: records of a structure, its labels and what else the file said of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fuda.structures import Structure

Label = Any  # str or int; None where the label is not known


@dataclass
class Record:
    """One structure of a file.

    `labels` is None where the file carries none at all. `comments` are its comment lines as they stood, `rows` the source
    rows of the format that read it, kept so that writing the same format back loses nothing but the labels replaced.
    """

    structure: Structure
    labels: list[Label] | None = None
    comments: list[str] = field(default_factory=list)
    rows: list[Any] | None = None


@dataclass
class Dataset:
    """Records in file order. ``X, y = dataset`` unpacks into structures and labels (y is None without labels)."""

    records: list[Record]

    @property
    def X(self) -> list[Structure]:
        return [record.structure for record in self.records]

    @property
    def y(self) -> list[list[Label]] | None:
        labels = [record.labels for record in self.records if record.labels is not None]
        return labels if labels and len(labels) == len(self.records) else None

    def __iter__(self) -> Iterator[Any]:
        yield self.X
        yield self.y

    def __len__(self) -> int:
        return len(self.records)
