"""Datasets: records of a structure, its labels, and what the file contains beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fuda.data.labels import Label
from fuda.data.structures import Observation, Structure
from fuda.data.text import Text, tokenize
from fuda.errors import DataError, described, place, short
from fuda.render.display import Display


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
    text : Text, optional
        The text that the nodes are parts of, and where each of them begins and ends in it.
    more : dict
        Further values of the structure by name, as JSON has them: what a file contains beside
        structure and labels, or what is known of predicted labels. Formats with keys write them.
    marginals : list of dict, optional
        For each node the probabilities of labels; formats of columns write only that of the node's
        label.

    Examples
    --------
    >>> from fuda import Sequence
    >>> record = Record(Sequence(["Ana", "sings"]), ["PER", "O"], more={"source": "letters"})
    >>> record.labels, record.more["source"]
    (['PER', 'O'], 'letters')
    """

    structure: Structure
    labels: list[Label] | None = None
    comments: list[str] = field(default_factory=list)
    rows: Any = None
    text: Text | None = None
    more: dict[str, Any] = field(default_factory=dict)
    marginals: list[dict[Label, float]] | None = None

    def _repr_html_(self) -> str:
        return self.__rich__()._repr_html_()

    def __rich__(self) -> Display:
        return Display([self.structure], None if self.labels is None else [self.labels])


@dataclass(repr=False)
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

    def __getitem__(self, index: Any) -> Any:
        """Return a record by its number, or a dataset of those in a slice or a list of numbers."""
        if isinstance(index, slice):
            return replace(self, records=self.records[index])
        if isinstance(index, Iterable):
            return replace(self, records=[self.records[i] for i in index])
        return self.records[index]

    def __repr__(self) -> str:
        shapes = {structure.shape for structure in self.X}
        shape = shapes.pop() if len(shapes) == 1 else "structure"
        counts = (len(self), shape), (sum(map(len, self.X)), "node"), (len(self._labels()), "label")
        texts = (f"{number:,} {thing}{'' if number == 1 else 's'}" for number, thing in counts)
        return f"{type(self).__name__}({', '.join(texts)})"

    def _labels(self) -> set[Label]:
        """All labels that are known."""
        return {label for record in self.records for label in record.labels or [] if label is not None}

    def _repr_html_(self) -> str:
        return self.__rich__()._repr_html_()

    def __rich__(self) -> Display:
        labels = [record.labels for record in self.records]
        return Display(self.X, labels if self._labels() else None)


def labels_to_write(index: int, record: Record) -> list[Label] | None:
    """The labels of record `index`, after checking that there is one per node."""
    if record.labels is None:
        return None
    if len(record.labels) != len(record.structure):
        problem = f"{len(record.labels)} labels for {len(record.structure)} nodes"
        raise DataError(f"{place(index)}: {problem}; give one per node, None where it is not known")
    return list(record.labels)


def text_to_write(index: int, record: Record) -> Text:
    """The text of record `index` after a check, or else its words with a space between them."""
    if record.text is not None:
        if len(record.text.offsets) != len(record.structure):
            problem = f"{len(record.text.offsets)} offsets for {len(record.structure)} nodes"
            raise DataError(f"{place(index)}: {problem}; set text=None for a structure that was changed")
        return record.text
    content, offsets = "", []
    for node, observation in enumerate(record.structure.observations):
        word = column_values(observation, index, node)[0]
        if not (word.isalnum() or tokenize(word, "blanks")):
            problem = f"an empty word, or one of blanks, has no place in a text: {short(word)}"
            raise DataError(f"{place(index, node)}: {problem}; write jsonl")
        content += " " if node else ""
        offsets.append((len(content), len(content) + len(word)))
        content += word
    return Text(content, offsets)


def probability_text(record: Record, node: int) -> str:
    """The probability of the label of a node, for columns; ``_`` if it is not known."""
    if record.marginals is None or record.labels is None or record.labels[node] is None:
        return "_"
    return f"{record.marginals[node].get(record.labels[node], 0.0):.4f}"


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
