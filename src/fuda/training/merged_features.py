"""Features that always occur together have one weight while a model is trained.

Let the columns of the features k ∈ G be equal. Then so are their weights w_k at the minimum, and
with

    u = √|G| w_k        one column √|G| x_k in place of |G| columns x_k

scores and loss are the same, and so is the L2 term, u² = Σ_{k ∈ G} w_k²; the L1 term is √|G| |u|,
and a curvature h of w_k is |G| h of u. A third to a half of the features of words are of this
kind: those that are in one word only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fuda.data.encoding import Encoded
from fuda.data.graph import ranges
from fuda.data.tables import Table
from fuda.training.crf_loss import Weights

Array = np.ndarray


class _Groups(NamedTuple):
    """The group of each feature of a table, and √|G| of each group."""

    of: Array
    root: Array


class MergedFeatures:
    """The tables of an encoded corpus with one column in place of equal ones.

    Parameters
    ----------
    encoded : Encoded
        A corpus.
    label_count : int
        L, the number of labels.
    merge : bool, default=True
        False leaves all as it is.

    Attributes
    ----------
    tables : list of Table
        The tables with fewer columns.
    """

    def __init__(self, encoded: Encoded, label_count: int, merge: bool = True) -> None:
        self.tables, self._groups, self._merge = [*encoded.tables], list[_Groups](), merge
        if not merge:
            return
        for number, table in enumerate(encoded.tables):
            matrix: Any = table.matrix
            first, of = _equal_columns(matrix)
            root = np.sqrt(np.bincount(of, minlength=len(first)))
            self._groups.append(_Groups(of, root))
            if len(first) < matrix.shape[1]:
                fewer = matrix[:, first]
                fewer.data = fewer.data * root[fewer.indices]
                self.tables[number] = Table.of(fewer, table.unknown, table.beyond)
        self._channels = [c.table for c in (*encoded.channels, *encoded.edge_channels)]
        counts = [len(self._groups[table].root) for table in self._channels]
        of_nodes, of_pairs = counts[: len(encoded.channels)], counts[len(encoded.channels) :]
        self._whole, self._merged = Weights.of(encoded, label_count), Weights(of_nodes, of_pairs, label_count)

    def expand(self, u: Array, power: int = 1) -> Array:
        """Return numbers of all features from those of groups: u / √|G| to a power.

        The power is 1 for weights and 2 for curvatures.
        """
        if not self._merge:
            return u
        w = np.empty(self._whole.size)
        for (of, root), of_features, of_groups in self._parts(w, u):
            divided = of_groups / _along(root**power, of_groups)
            np.take(divided, of, axis=0, out=of_features)
        self._whole.views(w)[1][:] = self._merged.views(u)[1]
        return w

    def reduce(self, w: Array) -> Array:
        """Return the weights of groups that give the same scores as the weights of features."""
        if not self._merge:
            return w
        u = np.zeros(self._merged.size)
        for (of, root), of_features, of_groups in self._parts(w, u):
            if of_features.any():
                np.add.at(of_groups, of, of_features)
                of_groups /= _along(root, of_groups)
        self._merged.views(u)[1][:] = self._whole.views(w)[1]
        return u

    @property
    def roots(self) -> Array:
        """√|G| per weight of a group; a single 1 where all is as it was."""
        if not self._merge:
            return np.ones(1)
        roots = np.ones(self._merged.size)
        of_channels, _, of_edges = self._merged.views(roots)
        for table, part in zip(self._channels, [*of_channels, *of_edges], strict=True):
            part[:] = _along(self._groups[table].root, part)
        return roots

    def _parts(self, w: Array, u: Array) -> Iterator[tuple[_Groups, Array, Array]]:
        """Per channel, the groups of its table, and the parts of w and of u."""
        (ours, _, our_edges), (theirs, _, their_edges) = self._whole.views(w), self._merged.views(u)
        groups = [self._groups[table] for table in self._channels]
        yield from zip(groups, [*ours, *our_edges], [*theirs, *their_edges], strict=True)


def _along(numbers: Array, array: Array) -> Array:
    """Numbers for the rows of an array."""
    return numbers.reshape(-1, *[1] * (array.ndim - 1))


def _equal_columns(matrix: Any) -> tuple[Array, Array]:
    """The first column of each group of equal ones, in order, and the group of each."""
    count = matrix.shape[1]
    if isinstance(matrix, np.ndarray):
        return np.arange(count), np.arange(count)
    columns = matrix.T.tocsr()
    columns.sort_indices()
    starts, sizes = columns.indptr[:-1], np.diff(columns.indptr)
    first = _first_alike(_keys(columns), sizes)
    # Different columns may have the same key: they stay apart.
    theirs = ranges(starts[first], sizes)
    differs = (columns.indices != columns.indices[theirs]) | (columns.data != columns.data[theirs])
    alone = np.repeat(np.arange(count), sizes)[differs]
    first[alone] = alone
    found: tuple[Array, Array] = np.unique(first, return_inverse=True)
    return found


def _first_alike(keys: Array, sizes: Array) -> Array:
    """For each column the first one of the same key and size."""
    order = np.lexsort((sizes, keys))  # stable: the first of a group comes first
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (np.diff(keys[order]) != 0) | (np.diff(sizes[order]) != 0)
    first = np.empty(len(order), dtype=np.int64)
    first[order] = order[is_new][np.cumsum(is_new) - 1]
    return first


def _keys(columns: Any) -> Array:
    """A number of 64 bits for each row of a sparse matrix, the same for equal rows."""
    keys = np.zeros(columns.shape[0], dtype=np.uint64)
    filled = np.flatnonzero(np.diff(columns.indptr))
    places, values = columns.indices.astype(np.uint64), columns.data.astype(np.float64).view(np.uint64)
    if len(filled):
        keys[filled] = np.add.reduceat(_mixed(places + _mixed(values)), columns.indptr[filled])
    return keys


def _mixed(numbers: Array) -> Array:
    """Numbers of 64 bits spread over all of them (the finalizer of SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))
