"""Encoding: from structures to the few numbers per node that models compute with.

Features belong to one observation, so a sparse *table* has one row per type, X[type, feature].
The features of a node come from *channels*. A channel c assigns each node one or more rows of a
table and has separate weights W_c, so that

    s_t(y) = Σ_c Σ_{r ∈ rows_c(t)} (X_c W_c)[r, y]

is a look-up per channel and node, whatever the number of features. A window of size k is 2k+1
channels over one table: offset 0 is the node itself, −d the nodes d steps up, +d those d steps
down. In a sequence that is the d-th neighbour to the left or right; in a tree the d-th ancestor,
and all descendants d steps below; in a DAG all nodes that a directed path of d edges reaches. If
d steps reach no node there is a boundary mark instead, named by the number of steps past the end:
``<-1>`` for one step too far up, ``<+2>`` for two too far down. Marks are rows of the table, after
the types.

A feature set may also have *joints*, such as the lower-cased previous and current word together:
each is one more channel, whose rows are the distinct joint texts. Those seen only once in training
carry no more information than their parts and are left out. If an offset reaches several nodes,
each of them is combined with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from fuda.checks import LARGEST
from fuda.data.corpus import Corpus
from fuda.data.graph import ranges
from fuda.data.observations import Kind
from fuda.data.structures import Structure
from fuda.data.tables import Recoded, Table, TextTable
from fuda.errors import DataError
from fuda.runtime.compiled import compiled


class Channel(NamedTuple):
    """Rows of a table for every node.

    Attributes
    ----------
    name : str
    table : int
        The index of the table.
    rows : array of int
        One row per node if `indptr` is None, else rows[indptr[t]:indptr[t+1]] for node t.
    indptr : array of int or None
    shows_types : bool
        Whether rows are types of the corpus, followed by boundary marks.
    """

    name: str
    table: int
    rows: np.ndarray
    indptr: np.ndarray | None = None
    shows_types: bool = False

    def take(self, nodes: np.ndarray) -> Channel:
        """Return the channel of some of the nodes."""
        if self.indptr is None:
            return self._replace(rows=self.rows[nodes])
        counts = np.diff(self.indptr)[nodes]
        rows = self.rows[ranges(self.indptr[:-1][nodes], counts)]
        return self._replace(rows=rows, indptr=np.concatenate([[0], np.cumsum(counts)]))

    def gather(self, row_values: np.ndarray) -> np.ndarray:
        """Sum row values over the rows of each node: (rows, L) → (N, L)."""
        if self.indptr is None:
            return np.take(row_values, self.rows, axis=0)  # four times as fast as an index
        return self.incidence(len(row_values)) @ row_values

    def scatter(self, node_values: np.ndarray, n_rows: int) -> np.ndarray:
        """Apply the transpose of `gather`: (N, L) → (rows, L)."""
        sums = np.zeros((n_rows, node_values.shape[1]))
        bounds = np.zeros(0, dtype=np.int64) if self.indptr is None else self.indptr.astype(np.int64)
        _add_to_rows(self.rows, bounds, np.ascontiguousarray(node_values, dtype=np.float64), sums)
        return sums

    def incidence(self, n_rows: int) -> sp.csr_matrix:
        """Return the (N, rows) matrix of how often each node has each row."""
        indptr = np.arange(len(self.rows) + 1) if self.indptr is None else self.indptr
        return sp.csr_matrix((np.ones(len(self.rows)), self.rows, indptr), shape=(len(indptr) - 1, n_rows))


@compiled
def _add_to_rows(rows: np.ndarray, bounds: np.ndarray, values: np.ndarray, sums: np.ndarray) -> None:
    """sums(rows of node t) += values(t); each node has one row where there are no bounds."""
    for t in range(len(values)):
        first, last = (bounds[t], bounds[t + 1]) if len(bounds) else (t, t + 1)
        for e in range(first, last):
            for b in range(values.shape[1]):
                sums[rows[e], b] += values[t, b]


@dataclass(frozen=True)
class Encoded:
    """An encoded corpus.

    Attributes
    ----------
    corpus : Corpus
    tables : list of Table
    channels : list of Channel
        Features of a node and its label.
    edge_channels : list of Channel
        Features of a node and a pair of labels.
    """

    corpus: Corpus
    tables: list[Table]
    channels: list[Channel]
    edge_channels: list[Channel]

    def take(self, structures: np.ndarray) -> Encoded:
        """Return some of the structures, by index; tables are shared, nothing is encoded again."""
        nodes = self.corpus.nodes_of(structures)
        return self._with(self.corpus.take(structures), self.tables, lambda channel: channel.take(nodes))

    def keep(self, columns: list[np.ndarray | None]) -> Encoded:
        """Return the encoding for smaller vocabularies: columns per table, None for all."""
        tables = zip(self.tables, columns, strict=True)
        return self._recoded([(table, None) if kept is None else table.keep(kept) for table, kept in tables])

    def widen(self, counts: list[int]) -> Encoded:
        """Return the encoding for larger vocabularies: the number of features per table."""
        return self._recoded([table.widen(count) for table, count in zip(self.tables, counts, strict=True)])

    def followed_by(self, other: Encoded) -> Encoded:
        """Return this encoding followed by another one of the same encoder."""
        ours, theirs = len(self.corpus.observations), len(other.corpus.observations)
        tables = [a.followed_by(b, ours) for a, b in zip(self.tables, other.tables, strict=True)]
        others = iter([*other.channels, *other.edge_channels])

        def joined(a: Channel) -> Channel:
            b = next(others)
            first, second = a.rows, b.rows
            if a.shows_types:  # the types of both, then the marks
                first, second = np.where(first < ours, first, first + theirs), second + np.int32(ours)
            indptr = None
            if a.indptr is not None or b.indptr is not None:
                starts, more = (np.arange(len(c.rows) + 1) if c.indptr is None else c.indptr for c in (a, b))
                indptr = np.concatenate([starts, starts[-1] + more[1:]])
            return a._replace(rows=np.concatenate([first, second]), indptr=indptr)

        return self._with(self.corpus.followed_by(other.corpus), tables, joined)

    def _recoded(self, recoded: list[Recoded]) -> Encoded:
        """The encoding with other tables."""

        def renumbered(channel: Channel) -> Channel:
            rows = recoded[channel.table][1]
            return channel if rows is None else channel._replace(rows=rows[channel.rows])

        return self._with(self.corpus, [table for table, _ in recoded], renumbered)

    def _with(self, corpus: Corpus, tables: list[Table], change: Callable[[Channel], Channel]) -> Encoded:
        """An encoding whose channels are changed ones of this encoding."""
        return Encoded(corpus, tables, [*map(change, self.channels)], [*map(change, self.edge_channels)])

    def check_values(self) -> None:
        """Raise DataError if a feature has a value larger than `LARGEST`."""
        for table in self.tables:
            largest = max(table.matrix.max(), -table.matrix.min()) if table.matrix.size else 0.0
            if largest > LARGEST:
                raise DataError(
                    f"a feature has a value of size {largest:g}; scale features so that none is larger "
                    f"than {LARGEST:g}"
                )


class Encoder:
    """Base class of encoders, which learn a vocabulary from structures and encode others.

    A subclass defines `_encode`; `channel_names`, `feature_names`, `feature_count`,
    `edge_channel_names` and `edge_feature_names`; `settings`, the parameters of the constructor;
    and `vocabularies`, which with `observations` is the whole state, and `restore`, which
    restores it.

    Attributes
    ----------
    observations : Kind
        The kind of the observations that it was fitted on.
    vector_lengths : mapping of str to int
        The lengths of the vectors within these observations, by name, where they are dicts.
    made_lengths : mapping of str to int
        Those of the vectors that a feature function returned for them.
    """

    observations: Kind
    vector_lengths: Mapping[str, int] = MappingProxyType({})
    made_lengths: Mapping[str, int] = MappingProxyType({})
    _least: ClassVar[int] = 1  # how often a text must occur to be in the vocabulary of a TextTable

    def fit(self, structures: list[Structure]) -> Encoded:
        """Learn the vocabulary of structures and encode them."""
        return self.fit_corpus(Corpus(structures))

    def fit_corpus(self, corpus: Corpus) -> Encoded:
        """Learn the vocabulary of a corpus and encode it."""
        self.observations, self.vector_lengths = corpus.kind, corpus.vector_lengths
        return self._encode(corpus, learn=True)

    def encode(self, structures: list[Structure]) -> Encoded:
        """Encode structures of the same kind."""
        return self.encode_corpus(Corpus(structures))

    def encode_corpus(self, corpus: Corpus) -> Encoded:
        """Encode a corpus of the same kind of observations."""
        if corpus.kind != self.observations:
            raise DataError(
                f"{corpus.place(0)} is {corpus.kind}, but the model was fitted on nodes that are each "
                f"{self.observations}; give the same kind of observations"
            )
        self._check_lengths(corpus)
        return self._encode(corpus, learn=False)

    def grown(self, corpus: Corpus) -> tuple[Self, Encoded]:
        """Return an encoder extended by the features of a corpus, and that corpus encoded."""
        self._check_lengths(corpus)
        other = self._with(self.vocabularies())
        other.vector_lengths = {**self.vector_lengths, **corpus.vector_lengths}
        return other, other._encode(corpus, learn=True)

    def widened(self, encoded: Encoded) -> Encoded:
        """Return what an encoder encoded that this one has grown from, with the new features.

        Of these it can have combinations only, which become features when they are seen again.
        """
        counts = list(map(len, self.vocabularies()))
        for table, count in zip(encoded.tables, counts, strict=True):
            if isinstance(table, TextTable) and table.n_features < count:
                return self.encode_corpus(encoded.corpus)
        return encoded.widen(counts)

    def refitted(self, part: Encoded) -> tuple[Self, list[np.ndarray | None]]:
        """Return the encoder as if fitted on a part of the data only, without encoding it again.

        Parameters
        ----------
        part : Encoded
            Part of the encoding of all the data that this encoder was fitted on.

        Returns
        -------
        encoder : Encoder
        columns : list
            The argument of `Encoded.keep` that gives the encoding of any part by that encoder.
        """
        channels, types = [*part.channels, *part.edge_channels], len(part.corpus.observations)
        columns: list[np.ndarray | None] = []
        for number, table in enumerate(part.tables):
            if isinstance(table, TextTable):
                rows = np.concatenate([channel.rows for channel in channels if channel.table == number])
                counts = np.bincount(rows, minlength=table.n_features + 1)[:-1]
                columns.append(np.flatnonzero(counts >= self._least))
            elif isinstance(table.matrix, np.ndarray):
                columns.append(None)
            else:
                marks = np.arange(types, table.matrix.shape[0])
                used = np.concatenate([np.unique(part.corpus.types), marks])
                columns.append(np.unique(table.matrix[used].indices))
        kept = [
            names if chosen is None else [names[k] for k in chosen]
            for names, chosen in zip(self.vocabularies(), columns, strict=True)
        ]
        return self._with(kept), columns

    def _check_lengths(self, corpus: Corpus) -> None:
        """Raise DataError where a vector in an observation has another length than in the fit."""
        for name, length in corpus.vector_lengths.items():
            if length != self.vector_lengths.get(name, length):
                raise DataError(
                    f"{corpus.place_of_vector(name)}: the vector {name!r} has length {length}, but the model "
                    f"was fitted on vectors of length {self.vector_lengths[name]}; give it that length"
                )

    def _with(self, vocabularies: list[list[str]]) -> Self:
        """The same encoder with other vocabularies."""
        other = copy(self)
        other.restore(vocabularies, self.observations)
        return other

    def restore(self, vocabularies: list[list[str]], observations: Kind) -> None:
        """Restore the state of an encoder."""
        raise NotImplementedError

    def vocabularies(self) -> list[list[str]]:
        """Return the feature names of each table."""
        raise NotImplementedError

    def _encode(self, corpus: Corpus, learn: bool) -> Encoded:
        """Encode a corpus, after adding its features to the vocabulary if `learn`."""
        raise NotImplementedError
