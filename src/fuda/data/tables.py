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
    """What a table consists of; see `Table`."""

    matrix: sp.csr_matrix | Array
    unknown: Array
    beyond: Array


class Table:
    """Rows of features, made when they are first asked for.

    Attributes
    ----------
    matrix : (rows, features) sparse matrix, or array where features are dense vectors
    unknown, beyond : (rows,) arrays
        Of the features of a row that the vocabulary does not know, the sum of the values and
        that of their squares.
    has_counts : bool
        Whether all values are counts by construction, and need not be checked.
    """

    has_counts = False

    def __init__(self, make: Callable[[], Parts]) -> None:
        self._make = make

    @classmethod
    def of(cls, matrix: sp.csr_matrix | Array, unknown: Array, beyond: Array) -> Table:
        """A table of these parts."""
        return Table(partial(Parts, matrix, unknown, beyond))

    @cached_property
    def parts(self) -> Parts:
        return self._make()

    @property
    def matrix(self) -> sp.csr_matrix | Array:
        return self.parts.matrix

    @property
    def unknown(self) -> Array:
        return self.parts.unknown

    @property
    def beyond(self) -> Array:
        return self.parts.beyond

    @property
    def n_features(self) -> int:
        return int(self.matrix.shape[1])

    def keep(self, columns: Array) -> Table:
        """The table by a vocabulary that has only some of the features, in that order."""
        matrix: Any = self.matrix
        others = np.ones(self.n_features, dtype=bool)
        others[columns] = False
        dropped = abs(matrix[:, np.flatnonzero(others)])
        unknown = self.unknown + np.asarray(dropped.sum(axis=1)).ravel()
        beyond = self.beyond + np.asarray(dropped.multiply(dropped).sum(axis=1)).ravel()
        return Table.of(matrix[:, columns], unknown, beyond)

    def widen(self, n_features: int) -> Table:
        """The table by a vocabulary to which features that no row has were added; vectors stay."""
        matrix: Any = self.matrix.copy()
        if isinstance(matrix, np.ndarray):
            return self
        matrix.resize(matrix.shape[0], n_features)
        return Table.of(matrix, self.unknown, self.beyond)


class TextTable(Table):
    """A row per text of a vocabulary, which is its only feature, and a last row for all other texts."""

    has_counts = True

    def __init__(self, count: int) -> None:
        super().__init__(partial(_one_hot, count))


class FeatureTable(NamedTuple):
    """What a feature set or function makes of the types of a corpus, by a vocabulary of its own."""

    features: Any
    vocabulary: dict[str, int]
    table: Table


def _one_hot(count: int) -> Parts:
    indptr = np.append(np.arange(count + 1), count)
    other = np.append(np.zeros(count), 1.0)
    matrix = sp.csr_matrix((np.ones(count), np.arange(count), indptr), shape=(count + 1, count))
    return Parts(matrix, other, other)


class Row(NamedTuple):
    """A row of a sparse table: features, their values, and what the vocabulary does not know."""

    ids: Array
    values: Array
    unknown: float
    beyond: float


def rows_of(parts: Parts, count: int) -> list[Row]:
    """The first rows of a sparse table."""
    matrix: Any = parts.matrix
    bounds = matrix.indptr[: count + 1].tolist()
    others = zip(parts.unknown[:count].tolist(), parts.beyond[:count].tolist(), strict=True)
    return [
        Row(matrix.indices[a:b], matrix.data[a:b], *other)
        for a, b, other in zip(bounds[:-1], bounds[1:], others, strict=True)
    ]


def joined_rows(rows: list[Row], n_features: int) -> Parts:
    """The sparse table of these rows."""
    indptr = np.cumsum([0, *(len(row.ids) for row in rows)])
    ids, values = (np.concatenate([row[k] for row in rows]) for k in (0, 1))
    matrix = sp.csr_matrix((values, ids, indptr), shape=(len(rows), n_features))
    return Parts(matrix, np.array([row.unknown for row in rows]), np.array([row.beyond for row in rows]))


def number_texts(texts: list[str], vocabulary: dict[str, int], learn: bool) -> Array:
    """The rows of texts in the `TextTable` of a vocabulary, which learns them or not."""
    if learn:
        for text in texts:
            vocabulary.setdefault(text, len(vocabulary))
    get, other = vocabulary.get, len(vocabulary)
    return np.array([get(text, other) for text in texts], dtype=np.int32)


NamedFeatures = tuple[list[str], list[float] | None]  # names and values, None where all are 1


def feature_row(features: NamedFeatures, vocabulary: dict[str, int]) -> Row:
    """The features of one observation by a vocabulary."""
    names, weights = features
    if weights is None and len(set(names)) == len(names):  # by far the most frequent
        found = [k for k in map(vocabulary.get, names) if k is not None]
        others = float(len(names) - len(found))
        return Row(np.array(sorted(found), dtype=np.int32), np.ones(len(found)), others, others)
    values: dict[str, float] = {}  # values of a feature given twice are added
    for name, value in zip(names, itertools.repeat(1.0) if weights is None else weights, strict=False):
        values[name] = values.get(name, 0.0) + value
    known: dict[int, float] = {}
    unknown = beyond = 0.0
    for name, value in values.items():
        k = vocabulary.get(name)
        if k is None:
            unknown += abs(value)
            beyond += value * value
        else:
            known[k] = value
    ids = sorted(known)
    return Row(np.array(ids, dtype=np.int32), np.array([known[k] for k in ids]), unknown, beyond)


def feature_table(rows: Iterable[NamedFeatures], vocabulary: dict[str, int]) -> Table:
    """A sparse table from the features of each row, which join the vocabulary."""
    names: list[str] = []
    values: list[float] = []
    lengths: list[int] = []
    for own, weights in rows:
        names += own
        values += [1.0] * len(own) if weights is None else weights
        lengths.append(len(own))
    for name in names:
        vocabulary.setdefault(name, len(vocabulary))
    ids = np.array([vocabulary[name] for name in names], dtype=np.int32)
    row_of = np.repeat(np.arange(len(lengths)), lengths)
    shape = len(lengths), len(vocabulary)
    matrix = sp.csr_matrix((np.array(values), (row_of, ids)), shape=shape)  # those given twice are added
    return Table.of(matrix, np.zeros(len(lengths)), np.zeros(len(lengths)))


def named_features(found: Any) -> NamedFeatures:
    """Features as names and their values: a string value joins the name, true is 1, false is left out."""
    if type(found) is list and _ONLY_TEXT.issuperset(map(type, found)):  # by far the most frequent
        return found, None
    if not isinstance(found, dict | list | tuple | set | frozenset):
        raise DataError(
            f"{described(found)} says no features; they are a list of names (strings) or a dict name → value"
        )
    plain = plain_features(found)
    if isinstance(plain, list):
        return plain, None
    names, values = [], []
    for name, value in plain.items():
        if value is not False:
            names.append(f"{name}={value}" if isinstance(value, str) else name)
            values.append(1.0 if isinstance(value, str) else float(value))
    return names, values


class Joined:
    """Combinations of several texts at each node.

    Parameters
    ----------
    parts : iterable of (rows, texts)
        For each part a row per node, and the text of each row.
    size : int
        The number of nodes.

    Attributes
    ----------
    numbers : (size,) array
        The number of the combination at each node.
    """

    def __init__(self, parts: Iterable[tuple[Array, list[str]]], size: int) -> None:
        self.numbers = np.zeros(size, dtype=np.int64)
        self._values: list[list[str]] = []
        self._combinations = np.zeros((1, 0), dtype=np.int64)  # of each number, the value of each part
        for rows, texts in parts:
            distinct: dict[str, int] = {}
            of_row = np.array([distinct.setdefault(text, len(distinct)) for text in texts])
            self._values.append(list(distinct))
            pairs, self.numbers = np.unique(self.numbers * len(distinct) + of_row[rows], return_inverse=True)
            before, last = np.divmod(pairs, len(distinct))
            self._combinations = np.column_stack([self._combinations[before], last])

    def texts(self, glue: str, wanted: Array | None = None) -> list[str]:
        """The texts of all numbers, or of those wanted."""
        combinations = self._combinations if wanted is None else self._combinations[wanted]
        if not self._values:
            return [""] * len(combinations)
        columns = [
            [values[k] for k in ids]
            for values, ids in zip(self._values, combinations.T.tolist(), strict=True)
        ]
        return [glue.join(together) for together in zip(*columns, strict=True)]
