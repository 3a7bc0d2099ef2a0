"""Tables of features: a row per observation or text, a column per feature of a vocabulary."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fuda.data.observations import plain_features
from fuda.errors import DataError, described

Array = np.ndarray
_ONLY_TEXT = frozenset([str])


class Parts(NamedTuple):
    """The contents of a `Table`."""

    matrix: sp.csr_matrix | Array
    unknown: Array
    beyond: Array


class Csr(NamedTuple):
    """Rows of a sparse table in the arrays of a matrix of scipy, which takes longer to make."""

    indptr: Array
    indices: Array
    data: Array
    shape: tuple[int, int]

    @classmethod
    def of(cls, matrix: Any) -> Csr:
        """Return the arrays of a matrix, in which the features of each row are sorted."""
        matrix = matrix if sp.issparse(matrix) else sp.csr_matrix(matrix)
        matrix = matrix if matrix.has_sorted_indices else matrix.sorted_indices()
        return cls(matrix.indptr, matrix.indices, matrix.data, matrix.shape)


def squared_norms(rows: Any) -> Array:
    """Return the squared norms of the rows of an array, of a matrix in CSR form or of a `Csr`."""
    if isinstance(rows, np.ndarray):
        return np.einsum("ij,ij->i", rows, rows)
    squares, filled = np.zeros(rows.shape[0]), np.flatnonzero(rows.indptr[1:] > rows.indptr[:-1])
    squares[filled] = np.add.reduceat(rows.data**2, rows.indptr[filled]) if len(filled) else 0.0
    return squares


class Table:
    """Rows of features, computed when they are first needed.

    Parameters
    ----------
    make : callable
        Returns the parts.

    Attributes
    ----------
    matrix : (rows, features) sparse matrix, or array if features are dense vectors
    unknown, beyond : (rows,) arrays
        For the features of a row that are not in the vocabulary, the sum of their absolute values
        and the sum of their squares.
    has_counts : bool
        Whether all values are counts by construction and need no check.
    """

    has_counts = False

    def __init__(self, make: Callable[[], Parts]) -> None:
        self._make = make

    @classmethod
    def of(cls, matrix: sp.csr_matrix | Array, unknown: Array, beyond: Array) -> Table:
        """Return a table of these parts."""
        return Table(partial(Parts, matrix, unknown, beyond))

    @cached_property
    def parts(self) -> Parts:
        """Matrix, unknown and beyond."""
        return self._make()

    @property
    def matrix(self) -> sp.csr_matrix | Array:
        """The values of the features."""
        return self.parts.matrix

    @property
    def unknown(self) -> Array:
        """The sums of the absolute values of unknown features."""
        return self.parts.unknown

    @property
    def beyond(self) -> Array:
        """The sums of the squares of unknown features."""
        return self.parts.beyond

    @property
    def csr(self) -> Csr:
        """The values of the features, row by row."""
        return Csr.of(self.matrix)

    @property
    def squares(self) -> Array:
        """The squared norms of the rows, of features in the vocabulary."""
        return squared_norms(self.matrix)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.matrix.shape[1])

    def keep(self, columns: Array) -> Recoded:
        """Return the table for a vocabulary of only some of the features, in that order."""
        matrix: Any = self.matrix
        dropped = abs(matrix[:, np.setdiff1d(np.arange(self.n_features), columns)])
        unknown = self.unknown + np.asarray(dropped.sum(axis=1)).ravel()
        beyond = self.beyond + np.asarray(dropped.multiply(dropped).sum(axis=1)).ravel()
        return Table.of(matrix[:, columns], unknown, beyond), None

    def widen(self, n_features: int) -> Recoded:
        """Return the table for a larger vocabulary; vectors do not change."""
        matrix: Any = self.matrix.copy()
        if isinstance(matrix, np.ndarray):
            return self, None
        matrix.resize(matrix.shape[0], n_features)
        return Table.of(matrix, self.unknown, self.beyond), None

    def followed_by(self, other: Table, n_rows: int) -> Table:
        """Return a table of the first rows of this table and all rows of another one."""
        both: Any = [self.matrix[:n_rows], other.matrix]
        matrix = np.vstack(both) if isinstance(other.matrix, np.ndarray) else sp.vstack(both, format="csr")
        sums = (np.concatenate([self.parts[k][:n_rows], other.parts[k]]) for k in (1, 2))
        return Table.of(matrix, *sums)


class TextTable(Table):
    """A row per text of a vocabulary, its only feature, and a last row for all other texts.

    Parameters
    ----------
    count : int
        The number of texts in the vocabulary.
    """

    has_counts = True

    def __init__(self, count: int) -> None:
        super().__init__(partial(_one_hot, count))

    @cached_property
    def csr(self) -> Csr:
        """The values of the features, row by row."""
        return Csr.of(self.matrix)

    @cached_property
    def squares(self) -> Array:
        """The squared norms of the rows: 1, and 0 for other texts."""
        return 1.0 - self.beyond

    def keep(self, columns: Array) -> Recoded:
        rows = np.full(self.n_features + 1, len(columns), dtype=np.int32)
        rows[columns] = np.arange(len(columns))
        return TextTable(len(columns)), rows

    def widen(self, n_features: int) -> Recoded:
        return TextTable(n_features), np.append(np.arange(self.n_features), n_features).astype(np.int32)

    def followed_by(self, other: Table, n_rows: int) -> Table:
        return self


# A table for another vocabulary, and for each old row the number of the new row, None
# if unchanged.
Recoded = tuple[Table, Array | None]


class FeatureTable(NamedTuple):
    """The features of the types of a corpus by a set or function, and their vocabulary.

    `lengths` are those of the vectors among them, by name.
    """

    features: Any
    vocabulary: dict[str, int]
    table: Table
    lengths: dict[str, int]


def _one_hot(count: int) -> Parts:
    """The parts of a `TextTable`."""
    indptr = np.append(np.arange(count + 1), count)
    other = np.append(np.zeros(count), 1.0)
    matrix = sp.csr_matrix((np.ones(count), np.arange(count), indptr), shape=(count + 1, count))
    return Parts(matrix, other, other)


class Row(NamedTuple):
    """A row of a sparse table: features, their values, and the sums over unknown features."""

    ids: Array
    values: Array
    unknown: float
    beyond: float


def rows_of(parts: Parts, count: int) -> list[Row]:
    """Return the first rows of a sparse table."""
    matrix: Any = parts.matrix
    bounds = matrix.indptr[: count + 1].tolist()
    others = zip(parts.unknown[:count].tolist(), parts.beyond[:count].tolist(), strict=True)
    return [
        Row(matrix.indices[a:b], matrix.data[a:b], *other)
        for a, b, other in zip(bounds[:-1], bounds[1:], others, strict=True)
    ]


def stacked_rows(rows: list[Row], n_features: int) -> tuple[Csr, Array, Array]:
    """Return these rows one after another, and the sums over their unknown features."""
    ids, values, unknown, beyond = zip(*rows, strict=True)
    indptr = np.array([0, *itertools.accumulate(map(len, ids))])
    csr = Csr(indptr, np.concatenate(ids), np.concatenate(values), (len(rows), n_features))
    return csr, np.array(unknown), np.array(beyond)


def joined(rows: Csr, unknown: Array, beyond: Array) -> Parts:
    """Return the contents of the sparse table of stacked rows."""
    return Parts(sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=rows.shape), unknown, beyond)


def joined_rows(rows: list[Row], n_features: int) -> Parts:
    """Return the contents of the sparse table of these rows."""
    return joined(*stacked_rows(rows, n_features))


def number_texts(texts: Iterable[str], vocabulary: dict[str, int], learn: bool, count: int = -1) -> Array:
    """Return the rows of texts in a `TextTable`; `learn` adds them to its vocabulary first.

    It is faster with the `count` of the texts.
    """
    if learn:
        for text in texts:
            vocabulary.setdefault(text, len(vocabulary))
    get, other = vocabulary.get, len(vocabulary)
    return np.fromiter(map(get, texts, itertools.repeat(other)), dtype=np.int32, count=count)


NamedFeatures = tuple[list[str], list[float] | None]  # names and values, None if all are 1


def feature_row(features: NamedFeatures, vocabulary: dict[str, int]) -> Row:
    """Return the row of the features of one observation for a vocabulary."""
    names, weights = features
    if weights is None and len(set(names)) == len(names):  # by far the most frequent
        ids = sorted([k for k in map(vocabulary.get, names) if k is not None])
        others = float(len(names) - len(ids))
        return Row(np.array(ids, dtype=np.int32), np.ones(len(ids)), others, others)
    values: dict[str, float] = {}  # values of a feature given twice are added
    for name, value in zip(names, weights or itertools.repeat(1.0), strict=False):
        values[name] = values.get(name, 0.0) + value
    known = {vocabulary[name]: value for name, value in values.items() if name in vocabulary}
    rest = [value for name, value in values.items() if name not in vocabulary]
    ids = sorted(known)
    unknown, beyond = float(sum(map(abs, rest))), float(sum(value * value for value in rest))
    return Row(np.array(ids, dtype=np.int32), np.array([known[k] for k in ids]), unknown, beyond)


def feature_table(rows: Iterable[NamedFeatures], vocabulary: dict[str, int]) -> Table:
    """Return a sparse table of the features of each row, which are added to the vocabulary."""
    names: list[str] = []
    values: list[float] = []
    lengths: list[int] = []
    for row_names, weights in rows:
        names += row_names
        values += [1.0] * len(row_names) if weights is None else weights
        lengths.append(len(row_names))
    for name in names:
        vocabulary.setdefault(name, len(vocabulary))
    ids = np.array([vocabulary[name] for name in names], dtype=np.int32)
    cells = np.array(values), (np.repeat(np.arange(len(lengths)), lengths), ids)
    # Features that are given twice are added.
    matrix = sp.csr_matrix(cells, shape=(len(lengths), len(vocabulary)))
    return Table.of(matrix, np.zeros(len(lengths)), np.zeros(len(lengths)))


def named_features(features: Any) -> NamedFeatures:
    """Return names and values of features: {"a": "x"} becomes "a=x", True is 1, False left out."""
    if type(features) is list and _ONLY_TEXT.issuperset(map(type, features)):  # the most frequent
        return features, None
    if not isinstance(features, dict | list | tuple | set | frozenset):
        raise DataError(
            f"{described(features)} is not a collection of features; give a list of names (strings) or a "
            "dict name → value"
        )
    plain = plain_features(features)
    if isinstance(plain, list):
        return plain, None
    items = [(name, value) for name, value in plain.items() if value is not False]
    names = [f"{name}={value}" if isinstance(value, str) else name for name, value in items]
    return names, [1.0 if isinstance(value, str) else float(value) for _, value in items]


def joined_texts(parts: Iterable[tuple[Array, list[str]]], size: int) -> tuple[Array, list[str]]:
    """Number the distinct combinations of texts at nodes.

    Parameters
    ----------
    parts : iterable of (rows, texts)
        For each part, a row per node and the text of each row.
    size : int
        The number of nodes.

    Returns
    -------
    numbers : (size,) array
        The number of the combination at each node.
    texts : list of str
        The text of each combination: the texts of the parts, one after another.
    """
    numbers, joined = np.zeros(size, dtype=np.int64), [""]
    for rows, texts in parts:
        ids: dict[str, int] = {}
        row_ids = np.array([ids.setdefault(text, len(ids)) for text in texts])
        pairs, numbers = np.unique(numbers * len(ids) + row_ids[rows], return_inverse=True)
        before, last = (part.tolist() for part in np.divmod(pairs, len(ids)))
        distinct = list(ids)
        joined = [joined[a] + distinct[b] for a, b in zip(before, last, strict=True)]
    return numbers, joined
