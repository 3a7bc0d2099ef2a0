"""Encoding: from structures to the few numbers per node that models compute with.

Features belong to one observation, so a sparse *table* holds one row per type, X[type, feature].
What a node sees is a list of *channels*. A channel c gives each node a row of a table (or several)
and has weights W_c of its own, so that

    s_t(y) = Σ_c Σ_{r ∈ rows_c(t)} (X_c W_c)[r, y]

is a look-up per channel and node, whatever the number of features. A window of k offsets is 2k+1
channels over one table: offset 0 the node itself, −d what lies d steps up, +d what lies d steps
down. Along a sequence that is the d-th neighbour to the left or right; in a tree the d-th ancestor,
and all descendants d steps below; in a DAG all nodes that a directed path of d edges reaches. Where
d steps reach no node there is a boundary mark instead, by how many of them are too many: ``<-1>``
for one step too far up, ``<+2>`` for two too far down. Marks are rows of the table like any type,
after the types.

A feature set may also name *joints*, such as the lower-cased previous and current word together:
each is one more channel, whose rows are the distinct joint texts. Those seen once in training say
no more than their parts and are left out. Where an offset leads to several nodes, each of them
joins the others.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from fuda.checks import LARGEST
from fuda.data.corpus import Corpus
from fuda.data.observations import Kind
from fuda.data.structures import Structure
from fuda.data.tables import Table, TextTable
from fuda.errors import DataError


@dataclass(frozen=True)
class Channel:
    """Rows of a table for every node.

    Attributes
    ----------
    name : str
    table : int
        The number of the table.
    rows : array of int
        One row per node where `indptr` is None, else rows[indptr[t]:indptr[t+1]] of node t.
    shows_types : bool
        Whether rows are types of the corpus, and after them boundary marks.
    """

    name: str
    table: int
    rows: np.ndarray
    indptr: np.ndarray | None = None
    shows_types: bool = False

    def take(self, nodes: np.ndarray) -> Channel:
        """The channel of some of the nodes."""
        if self.indptr is None:
            return replace(self, rows=self.rows[nodes])
        counts = np.diff(self.indptr)[nodes]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        at = np.repeat(self.indptr[:-1][nodes] - indptr[:-1], counts) + np.arange(indptr[-1])
        return replace(self, rows=self.rows[at], indptr=indptr)

    def gather(self, row_values: np.ndarray) -> np.ndarray:
        """Σ over the node's rows: (rows, L) → (N, L)."""
        if self.indptr is None:
            return row_values[self.rows]
        return self.incidence(len(row_values)) @ row_values

    def scatter(self, node_values: np.ndarray, n_rows: int) -> np.ndarray:
        """The transpose of gather: (N, L) → (rows, L)."""
        return self.incidence(n_rows).T @ node_values

    def incidence(self, n_rows: int) -> sp.csr_matrix:
        """(N, rows) how often each node has each row."""
        indptr = np.arange(len(self.rows) + 1) if self.indptr is None else self.indptr
        return sp.csr_matrix((np.ones(len(self.rows)), self.rows, indptr), shape=(len(indptr) - 1, n_rows))


@dataclass(frozen=True)
class Encoded:
    """A corpus as models see it; `edge_channels` carry features of an observation and a pair of labels."""

    corpus: Corpus
    tables: list[Table]
    channels: list[Channel]
    edge_channels: list[Channel]

    def take(self, structures: np.ndarray) -> Encoded:
        """Some of the structures, by their numbers; tables are shared, nothing is encoded again."""
        nodes = self.corpus.nodes_of(structures)
        channels, edge_channels = (
            [channel.take(nodes) for channel in some] for some in (self.channels, self.edge_channels)
        )
        return Encoded(self.corpus.take(structures), self.tables, channels, edge_channels)

    def keep(self, columns: list[np.ndarray | None]) -> Encoded:
        """The encoding by vocabularies of some features: of each table the columns, None for all."""
        tables: list[Table] = []
        rows: list[np.ndarray | None] = []
        for table, own in zip(self.tables, columns, strict=True):
            rows.append(None)
            if own is None:
                tables.append(table)
            elif isinstance(table, TextTable):
                tables.append(TextTable(len(own)))
                rows[-1] = moved = np.full(table.n_features + 1, len(own), dtype=np.int32)
                moved[own] = np.arange(len(own))
            else:
                tables.append(table.keep(own))
        return self._recoded(tables, rows)

    def widen(self, counts: list[int]) -> Encoded:
        """The encoding by vocabularies that have grown: of each table the number of features."""
        tables: list[Table] = []
        rows: list[np.ndarray | None] = []
        for table, count in zip(self.tables, counts, strict=True):
            if isinstance(table, TextTable):
                tables.append(TextTable(count))
                rows.append(np.append(np.arange(table.n_features, dtype=np.int32), np.int32(count)))
            else:
                tables.append(table.widen(count))
                rows.append(None)
        return self._recoded(tables, rows)

    def followed_by(self, other: Encoded) -> Encoded:
        """This encoding, and then another by the same encoder."""
        ours, theirs = len(self.corpus.observations), len(other.corpus.observations)
        tables = [
            a if isinstance(a, TextTable) else _stacked(a, b, ours)
            for a, b in zip(self.tables, other.tables, strict=True)
        ]

        def joined(a: Channel, b: Channel) -> Channel:
            first, second = a.rows, b.rows
            if a.shows_types:  # the types of both, then the marks
                first, second = np.where(first < ours, first, first + theirs), second + np.int32(ours)
            indptr = None
            if a.indptr is not None or b.indptr is not None:
                starts, more = (np.arange(len(c.rows) + 1) if c.indptr is None else c.indptr for c in (a, b))
                indptr = np.concatenate([starts, starts[-1] + more[1:]])
            return replace(a, rows=np.concatenate([first, second]), indptr=indptr)

        channels, edge_channels = (
            [joined(a, b) for a, b in zip(*pair, strict=True)]
            for pair in ((self.channels, other.channels), (self.edge_channels, other.edge_channels))
        )
        return Encoded(self.corpus.followed_by(other.corpus), tables, channels, edge_channels)

    def _recoded(self, tables: list[Table], rows: list[np.ndarray | None]) -> Encoded:
        """Other tables, and of each the new number of each row, or None where rows stay."""

        def moved(channel: Channel) -> Channel:
            new = rows[channel.table]
            return channel if new is None else replace(channel, rows=new[channel.rows])

        return Encoded(
            self.corpus, tables, list(map(moved, self.channels)), list(map(moved, self.edge_channels))
        )

    def check_values(self) -> None:
        """Raise DataError at a feature whose value is larger than numbers here may be."""
        for table in self.tables:
            largest = max(table.matrix.max(), -table.matrix.min()) if table.matrix.size else 0.0
            if largest > LARGEST:
                raise DataError(
                    f"a feature has a value of size {largest:g}; scale features so that none is larger "
                    f"than {LARGEST:g}"
                )


def _stacked(a: Table, b: Table, types: int) -> Table:
    """The first rows of one table, and then all of another."""
    both: Any = [a.matrix[:types], b.matrix]
    dense = isinstance(b.matrix, np.ndarray)
    matrix: Any = np.vstack(both) if dense else sp.vstack(both, format="csr")
    unknown, beyond = (np.concatenate([a.parts[k][:types], b.parts[k]]) for k in (1, 2))
    return Table.of(matrix, unknown, beyond)


class Encoder:
    """Base of encoders: they learn a vocabulary from structures, and encode others of the same kind by it.

    A subclass defines `_encode`; of its channels `channel_names`, `feature_names` and `feature_count`, and
    `edge_channel_names` and `edge_feature_names`; `settings`, the parameters it is made from;
    and `vocabularies`, which with `observations` is all its state, and `restore`, which takes both back.
    """

    observations: Kind  # what it was fitted on
    _least: ClassVar[int] = 1  # how often a text of a TextTable is seen that is in the vocabulary

    def fit(self, structures: list[Structure]) -> Encoded:
        """Learn the vocabulary of structures, and encode these."""
        return self.fit_corpus(Corpus(structures))

    def fit_corpus(self, corpus: Corpus) -> Encoded:
        """Learn the vocabulary of a corpus, and encode it."""
        self.observations = corpus.kind
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
        return self._encode(corpus, learn=False)

    def grown(self, corpus: Corpus) -> tuple[Self, Encoded]:
        """An encoder that knows the features of one more corpus too, and that corpus encoded by it."""
        other = self._with(self.vocabularies())
        return other, other._encode(corpus, learn=True)

    def refitted(self, part: Encoded) -> tuple[Self, list[np.ndarray | None]]:
        """The encoder as if it had been fitted on a part of the data only, without encoding it again.

        Parameters
        ----------
        part : Encoded
            Taken from the encoding of all the data that this encoder was fitted on.

        Returns
        -------
        encoder : Encoder
        columns : list
            What `Encoded.keep` makes of any part the encoding by that encoder.
        """
        channels, types = [*part.channels, *part.edge_channels], len(part.corpus.observations)
        columns: list[np.ndarray | None] = []
        for number, table in enumerate(part.tables):
            if isinstance(table, TextTable):
                rows = np.concatenate(
                    [*(c.rows for c in channels if c.table == number), np.empty(0, np.int32)]
                )
                counts = np.bincount(rows, minlength=table.n_features + 1)[:-1]
                columns.append(np.flatnonzero(counts >= self._least))
            elif isinstance(table.matrix, np.ndarray):
                columns.append(None)
            else:
                marks = np.arange(types, table.matrix.shape[0])
                used = np.concatenate([np.unique(part.corpus.types), marks])
                columns.append(np.unique(table.matrix[used].indices))
        kept = [
            names if own is None else [names[k] for k in own]
            for names, own in zip(self.vocabularies(), columns, strict=True)
        ]
        return self._with(kept), columns

    def _with(self, vocabularies: list[list[str]]) -> Self:
        """The same encoder with other vocabularies."""
        other = copy(self)
        other.restore(vocabularies, self.observations)
        return other

    def restore(self, vocabularies: list[list[str]], observations: Kind) -> None:
        raise NotImplementedError

    def vocabularies(self) -> list[list[str]]:
        raise NotImplementedError

    def _encode(self, corpus: Corpus, learn: bool) -> Encoded:
        raise NotImplementedError
