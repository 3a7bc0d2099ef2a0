"""Datasets of Hugging Face: a column of tokens and one of labels, whose names are kept.

The package ``datasets`` is imported on first use; install it with the extra ``fuda[datasets]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fuda.data import structures
from fuda.data.text import Text
from fuda.errors import DataError, described, place, short
from fuda.formats.dataset import Dataset, Label, Record, labels_to_write

if TYPE_CHECKING:
    import datasets

TOKENS = ("tokens", "words")
LABELS = ("ner_tags", "labels", "tags")
_UNKNOWN = -1  # as ClassLabel writes it; losses write -100


@dataclass(frozen=True)
class Columns:
    """The columns of tokens and labels, and the names of the labels in their order."""

    tokens: str
    labels: str | None
    names: list[str] | None


def from_datasets(
    dataset: datasets.Dataset, tokens: str | None = None, label: str | None = "auto"
) -> Dataset:
    """Convert a split of a dataset; numbers of labels become their names.

    Parameters
    ----------
    dataset : datasets.Dataset
        One split, with a list of tokens and a list of labels per row.
    tokens : str, optional
        The column of the tokens; by default ``tokens`` or ``words``.
    label : str or None
        The column of the labels; by default ``ner_tags``, ``labels`` or ``tags``, if there is one.
        None means that there are no labels.

    Returns
    -------
    Dataset
        One record per row; −1, −100 and missing values are unknown labels. Other columns are in
        ``Record.more``.

    Examples
    --------
    >>> import datasets  # doctest: +SKIP
    >>> rows = {"tokens": [["Ana", "sings"]], "ner_tags": [["PER", "O"]]}
    >>> X, y = from_datasets(datasets.Dataset.from_dict(rows))  # doctest: +SKIP
    >>> y  # doctest: +SKIP
    [['PER', 'O']]
    """
    library = _datasets()
    if isinstance(dataset, dict):
        raise DataError(f"a dict of splits was given; choose one of {', '.join(map(repr, dataset))}")
    if not isinstance(dataset, library.Dataset):
        raise DataError(f"a datasets.Dataset is expected, but {described(dataset)} was given; load one")
    columns = _columns(dataset, tokens, label)
    records = []
    for index, row in enumerate(dataset):
        nodes = row.pop(columns.tokens)
        if not nodes:
            raise DataError(f"{place(index)}: {columns.tokens} is empty; filter such rows out first")
        labels = None if columns.labels is None else _names(index, row.pop(columns.labels), columns)
        if labels is not None and len(labels) != len(nodes):
            problem = f"{len(labels)} labels for {len(nodes)} tokens"
            raise DataError(f"{place(index)}: {problem}; give one per token")
        record = Record(structures.Sequence(nodes), labels, rows=columns, more=row)
        if isinstance(row.get("text"), str) and isinstance(row.get("offsets"), list):
            record.text = Text(row.pop("text"), [(a, b) for a, b in row.pop("offsets")])
        records.append(record)
    return Dataset(records)


def to_datasets(data: Dataset) -> datasets.Dataset:
    """Convert sequences to a dataset with a column of tokens and one of labels.

    Parameters
    ----------
    data : Dataset
        The sequences, whose observations are strings. Labels that are strings become a ClassLabel:
        with the names, and in the column, of the dataset from which they were read, or else in
        alphabetical order after O, in ``ner_tags``.

    Returns
    -------
    datasets.Dataset
        Unknown labels are −1. Offsets and ``Record.more`` become further columns.

    Examples
    --------
    >>> data = Dataset([Record(structures.Sequence(["Ana", "sings"]), ["PER", "O"])])
    >>> to_datasets(data)["tokens"]  # doctest: +SKIP
    [['Ana', 'sings']]
    """
    library = _datasets()
    first_rows = data.records[0].rows if data.records else None
    columns = first_rows if isinstance(first_rows, Columns) else Columns(TOKENS[0], LABELS[0], None)
    rows = []
    label_set: set[Any] = set()
    for index, record in enumerate(data.records):
        if not isinstance(record.structure, structures.Sequence):
            raise DataError(f"{place(index)}: a {record.structure.shape} would lose its edges; write jsonl")
        for node, x in enumerate(record.structure.observations):
            if not isinstance(x, str):
                raise DataError(f"{place(index, node)}: {described(x)} is not a string; give one column")
        labels = labels_to_write(index, record)
        row: dict[str, Any] = {columns.tokens: list(record.structure.observations)}
        if labels is not None:
            row[columns.labels or LABELS[0]] = labels
            label_set |= set(labels) - {None}
        if record.text is not None:
            row |= {"text": record.text.content, "offsets": [list(pair) for pair in record.text.offsets]}
        rows.append(row | {key: value for key, value in record.more.items() if key not in row})
    keys = list(dict.fromkeys(key for row in rows for key in row))
    table = {key: [row.get(key) for row in rows] for key in keys}
    where = columns.labels or LABELS[0]
    if where not in table or not all(isinstance(label, str) for label in label_set):
        return library.Dataset.from_dict(table)
    names = columns.names or []
    if not label_set <= set(names):
        names = names or ["O"] * ("O" in label_set)
        names = [*names, *sorted(label_set - set(names))]
    numbers: dict[Label, int] = {name: number for number, name in enumerate(names)} | {None: _UNKNOWN}
    table[where] = [None if x is None else [numbers[label] for label in x] for x in table[where]]
    feature = library.Sequence(library.ClassLabel(names=names))
    return library.Dataset.from_dict(table).cast_column(where, feature)


def _columns(dataset: Any, tokens: str | None, label: str | None) -> Columns:
    """The columns to read."""
    column_names = dataset.column_names

    def column(given: str | None, usual: tuple[str, ...], option: str) -> str | None:
        if given is not None and given not in column_names:
            raise DataError(f"{option}={given!r}: there is no such column; it has {', '.join(column_names)}")
        return given or next((name for name in usual if name in column_names), None)

    words = column(tokens, TOKENS, "tokens")
    if words is None:
        raise DataError(f"no column of tokens; name it with tokens=; it has {', '.join(column_names)}")
    tags = None if label is None else column(None if label == "auto" else label, LABELS, "label")
    if tags is None:
        return Columns(words, None, None)
    inner = getattr(dataset.features[tags], "feature", None)
    names = getattr(inner, "names", None)
    return Columns(words, tags, None if names is None else list(names))


def _names(index: int, values: Any, columns: Columns) -> list[Label] | None:
    """The labels of a row by name."""
    if values is None:
        return None
    labels: list[Label] = []
    for node, value in enumerate(values):
        if value is None or (value in (_UNKNOWN, -100) and not isinstance(value, str)):
            labels.append(None)
        elif columns.names is None or isinstance(value, str):
            labels.append(value)
        elif 0 <= value < len(columns.names):
            labels.append(columns.names[value])
        else:
            known = f"the labels go from 0 to {len(columns.names) - 1}"
            raise DataError(f"{place(index, node)}: the label {short(value)} has no name; {known}")
    return labels


def _datasets() -> Any:
    """The package datasets."""
    try:
        import datasets
    except ModuleNotFoundError:
        raise DataError("datasets is not installed; install it with: pip install 'fuda[datasets]'") from None
    return datasets
