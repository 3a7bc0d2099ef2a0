"""Scores of nodes in a kernel's space, kept up to date by pushing.

A function from nodes to R^L is held as an expansion over the nodes τ of a training corpus,

    s_t(σ) = Σ_τ β(τ, σ) k(x_τ, x_t),

where x_t is what its channels show of a node: their vectors one after another, so that inner products add
over channels. A kernel is a function of inner products; these are computed between types (V ≪ N), gathered
by the rows of each node, added, and only then is the kernel evaluated.

When β changes at a few nodes, the change is *pushed* to the scores of all nodes: N kernel values for each
changed node, and nothing where nothing changes. Those of nodes that changed last are kept, for half of all
nodes at most and in no more than 1 GiB: no N × N matrix is ever held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit

from fuda.data.encoding import Channel, Encoded
from fuda.errors import DataError
from fuda.kernels.algebra import RBF, Constant, Kernel, Linear, Normalized, Polynomial, Product, Sum
from fuda.kernels.points import Numbering, Points, points
from fuda.parallel import run

Array = np.ndarray
_Entries = tuple[Array, Array, Array]  # of a sparse matrix: rows, columns, values
_ENTRIES = 1 << 19  # kernel values that a thread holds at once
ROW_BYTES = 1 << 30  # for rows of kernel values that are kept
_TABLE_ENTRIES = 1 << 22  # inner products between types that are held at once


@dataclass(frozen=True)
class Shown:
    """What one channel shows: one point a node, or points rows[indptr[t]:indptr[t+1]] whose vectors add."""

    points: Points
    rows: Array
    indptr: Array | None

    def take(self, nodes: Array) -> Shown:
        if self.indptr is None:
            rows, indptr = self.rows[nodes], None
        else:
            counts = np.diff(self.indptr)[nodes]
            indptr = np.concatenate([[0], np.cumsum(counts)])
            rows = self.rows[np.repeat(self.indptr[nodes] - indptr[:-1], counts) + np.arange(indptr[-1])]
        distinct, rows = np.unique(rows, return_inverse=True)
        return Shown(self.points[distinct], rows, indptr)


class Window:
    """What a kernel sees of some nodes: the channels, and `norms`, one (n,) array for each inner product that
    the kernel is a function of."""

    def __init__(self, channels: list[Shown], norms: list[Array]) -> None:
        self.channels, self.norms = channels, norms

    def __len__(self) -> int:
        shown = self.channels[0]
        return len(shown.rows if shown.indptr is None else shown.indptr[1:])

    def take(self, nodes: Array) -> Window:
        """The window of some of the nodes."""
        return Window([shown.take(nodes) for shown in self.channels], [norm[nodes] for norm in self.norms])


def window_of(encoded: Encoded, kernel: Kernel, numbering: Numbering) -> Window:
    """What a kernel sees of an encoded corpus.

    A kernel of features sees all channels. One that compares observations sees those channels whose rows are
    observations, and not those of joint texts.
    """
    has_observations = any(channel.shows_types for channel in encoded.channels)
    if only_features(kernel):
        channels = [_features(encoded, c, c.shows_types or not has_observations) for c in encoded.channels]
    elif has_observations:
        own = points(encoded, numbering)
        channels = [Shown(own, c.rows, c.indptr) for c in encoded.channels if c.shows_types]
    else:
        raise DataError(
            f"the kernel {kernel} compares observations, and the lines of a template are none; take a kernel "
            "of features (Linear, Polynomial, RBF), or a feature set in place of the template"
        )
    return Window(channels, _norms(channels, kernel))


def only_features(kernel: Kernel) -> bool:
    """Whether a kernel is a function of features alone, and never asks which observations are equal."""
    if isinstance(kernel, Sum | Product):
        return only_features(kernel.left) and only_features(kernel.right)
    if isinstance(kernel, Normalized):
        return only_features(kernel.kernel)
    return isinstance(kernel, Linear | Polynomial | RBF | Constant)


def _features(encoded: Encoded, channel: Channel, with_beyond: bool) -> Shown:
    """What a channel shows of features; joint texts that the vocabulary leaves out count for nothing."""
    table = encoded.tables[channel.table]
    used, rows = np.unique(channel.rows, return_inverse=True)
    beyond = table.beyond[used] if with_beyond else np.zeros(len(used))
    count = len(used)
    own = Points(table.matrix[used], np.zeros(count, dtype=np.int64), beyond, [None] * count)
    return Shown(own, rows, channel.indptr)


def _norms(channels: list[Shown], kernel: Kernel) -> list[Array]:
    """Inner products of each node with itself."""
    totals: list[Array] = []
    for shown in channels:
        norms = [norm[shown.rows] for norm in kernel.norms(shown.points)]
        if shown.indptr is not None:
            norms = [np.add.reduceat(norm, shown.indptr[:-1]) for norm in norms]
            for node in np.flatnonzero(np.diff(shown.indptr) > 1):  # the square of a sum of vectors
                several = shown.points[shown.rows[shown.indptr[node] : shown.indptr[node + 1]]]
                for norm, inner in zip(norms, kernel.inners(several, several), strict=True):
                    norm[node] = inner.sum()
        totals = [a + b for a, b in zip(totals, norms, strict=True)] if totals else norms
    return totals


def kernel_values(kernel: Kernel, a: Window, b: Window) -> Array:
    """(n, m) the kernel between the nodes of two windows, all at once."""
    return _Tables(kernel, a, b).values(0, len(a))


def add_expansion(
    kernel: Kernel, sources: Window, beta: Array, targets: Window, scores: Array, n_jobs: int | None = None
) -> None:
    """scores (n, L) += Σ_τ β(τ) k(x_τ, x_t) for all targets t; in blocks of sources and of targets."""
    most = _TABLE_ENTRIES // max(len(shown.points) for shown in targets.channels)
    for begin, end in _cut(len(sources), max(1, most)):
        whole = end - begin == len(sources)
        part = sources if whole else sources.take(np.arange(begin, end))
        tables = _Tables(kernel, targets, part)

        columns, labels = np.nonzero(beta[begin:end])
        entries = columns, labels, beta[begin:end][columns, labels]

        def add(block: tuple[int, int], tables: _Tables = tables, entries: _Entries = entries) -> None:
            _multiply(tables.values(*block), *entries, scores, block[0])

        run(add, list(_cut(len(targets), max(1, _ENTRIES // (end - begin)))), n_jobs)


class _Tables:
    """Inner products between the points of the targets and the source nodes, of which kernel values come."""

    def __init__(self, kernel: Kernel, targets: Window, sources: Window) -> None:
        self.kernel, self.targets, self.sources = kernel, targets, sources
        self.inners = []  # by channel, then by inner product: (points of the targets, source nodes)
        for target, source in zip(targets.channels, sources.channels, strict=True):
            tables = kernel.inners(target.points, source.points)
            tables = [table[:, source.rows] for table in tables]
            if source.indptr is not None:
                tables = [np.add.reduceat(table, source.indptr[:-1], axis=1) for table in tables]
            self.inners.append(tables)

    def values(self, begin: int, end: int) -> Array:
        """(end − begin, m) the kernel between targets begin..end and all sources."""
        size = (end - begin, len(self.sources))
        totals = [np.zeros(size) for _ in self.targets.norms]
        for shown, tables in zip(self.targets.channels, self.inners, strict=True):
            for total, table in zip(totals, tables, strict=True):
                if shown.indptr is None:
                    _gather(table, shown.rows, begin, total)
                else:
                    _gather_several(table, shown.rows, shown.indptr, begin, total)
        norms = [norm[begin:end, None] for norm in self.targets.norms]
        values = self.kernel.evaluate(totals, norms, self.sources.norms)
        return np.ascontiguousarray(np.broadcast_to(values, size), dtype=np.float64)


def _cut(size: int, most: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(begin + most, size)) for begin in range(0, size, most))


@njit(cache=True, nogil=True)
def _gather(table: Array, rows: Array, begin: int, total: Array) -> None:
    """total(n) += table(row of node begin + n)."""
    for n in range(total.shape[0]):
        row = rows[begin + n]
        for m in range(total.shape[1]):
            total[n, m] += table[row, m]


@njit(cache=True, nogil=True)
def _gather_several(table: Array, rows: Array, indptr: Array, begin: int, total: Array) -> None:
    for n in range(total.shape[0]):
        for j in range(indptr[begin + n], indptr[begin + n + 1]):
            row = rows[j]
            for m in range(total.shape[1]):
                total[n, m] += table[row, m]


@njit(cache=True, nogil=True)
def _multiply(
    values: Array, columns: Array, labels: Array, weights: Array, scores: Array, begin: int
) -> None:
    """scores(begin + n) += values(n) · β, where β is sparse: BLAS is slow on a product this thin."""
    for n in range(values.shape[0]):
        for e in range(len(columns)):
            scores[begin + n, labels[e]] += values[n, columns[e]] * weights[e]


class Expansion:
    """A function from nodes to R^L by its expansion over some nodes."""

    def __init__(self, kernel: Kernel, numbering: Numbering, sources: Window, beta: Array) -> None:
        self.kernel, self.numbering, self.sources, self.beta = kernel, numbering, sources, beta

    def of(self, encoded: Encoded, n_jobs: int | None = None) -> Array:
        """(M, L) the scores of the nodes of a corpus."""
        targets = window_of(encoded, self.kernel, self.numbering)
        scores = np.zeros((len(targets), self.beta.shape[1]))
        if len(self.beta):
            add_expansion(self.kernel, self.sources, self.beta, targets, scores, n_jobs)
        return scores


class KernelScores:
    """Scores of all nodes of a training corpus under any kernel.

    `scores` (N, L) are kept up to date as `beta` (N, L) grows; `of` gives the scores of other nodes.

    >>> from fuda import Sequence
    >>> from fuda.data.window_encoding import WindowEncoder
    >>> encoder = WindowEncoder("word", 0)
    >>> held = KernelScores(encoder.fit([Sequence(["a", "b"]), Sequence(["b"])]), Linear(), 2)
    >>> held.add(1, 2, np.array([[0.5, -0.5]]))
    >>> held.scores.tolist()
    [[0.0, 0.0], [0.5, -0.5], [0.5, -0.5]]
    >>> held.of(encoder.encode([Sequence(["b", "c"])])).tolist()
    [[0.5, -0.5], [0.0, 0.0]]
    """

    def __init__(self, encoded: Encoded, kernel: Kernel, label_count: int, n_jobs: int | None = None) -> None:
        self.kernel, self.label_count, self.n_jobs = kernel, label_count, n_jobs
        self.numbering = Numbering(encoded.corpus)
        self.window = window_of(encoded, kernel, self.numbering)
        size = len(self.window)
        self.beta = np.zeros((size, label_count))
        self.scores = np.zeros((size, label_count), order="F")  # label by label, so that a push is fast
        self._rows = np.empty((max(1, min(size // 2, ROW_BYTES // (8 * size))), size))  # of kernel values
        self._row_of = np.full(size, -1)  # of each node
        self._node_of = np.full(len(self._rows), -1)  # of each row
        self._next = 0

    def add(self, begin: int, end: int, delta: Array) -> None:
        """β of nodes begin..end grows by delta (end − begin, L); only rows that are not 0 cost anything."""
        changed = np.flatnonzero(delta.any(axis=1))
        nodes, rows = begin + changed, np.ascontiguousarray(delta[changed], dtype=np.float64)
        self.beta[nodes] += rows
        if len(nodes) <= len(self._rows):
            self._compute(nodes)
            _push(self._rows, self._row_of[nodes], rows, self.scores)
        else:
            add_expansion(self.kernel, self.window.take(nodes), rows, self.window, self.scores, self.n_jobs)

    def _compute(self, nodes: Array) -> None:
        """Compute the rows of those nodes that have none, in the place of others."""
        missing = nodes[self._row_of[nodes] < 0]
        if not len(missing):
            return
        places = (self._next + np.arange(len(self._rows))) % len(self._rows)
        places = places[~np.isin(self._node_of[places], nodes)][: len(missing)]
        self._next = int(places[-1]) + 1
        before = self._node_of[places]
        self._row_of[before[before >= 0]] = -1
        self._row_of[missing], self._node_of[places] = places, missing
        tables = _Tables(self.kernel, self.window, self.window.take(missing))

        def fill(block: tuple[int, int]) -> None:
            self._rows[places, slice(*block)] = tables.values(*block).T

        run(fill, list(_cut(len(self.window), max(1, _ENTRIES // len(missing)))), self.n_jobs)

    def scale(self, factor: float) -> None:
        """Multiply the function by a number."""
        self.beta *= factor
        self.scores *= factor

    def local(self, begin: int, end: int) -> Array:
        """(end − begin, L) the scores of some nodes."""
        return self.scores[begin:end].copy()

    def gram(self, nodes: Array, others: Array) -> Array:
        """(n, m) kernel values between some nodes and others."""
        if len(others) > len(self._rows):
            return kernel_values(self.kernel, self.window.take(nodes), self.window.take(others))
        self._compute(others)
        return self._rows[self._row_of[others][:, None], nodes].T

    def function(self) -> Expansion:
        """What was learned, without the nodes where β is 0."""
        support = np.flatnonzero(self.beta.any(axis=1))
        return Expansion(self.kernel, self.numbering, self.window.take(support), self.beta[support])

    def of(self, encoded: Encoded) -> Array:
        """(M, L) the scores of the nodes of another corpus."""
        return self.function().of(encoded, self.n_jobs)


@njit(cache=True, nogil=True)
def _push(rows: Array, places: Array, delta: Array, scores: Array) -> None:
    """scores(n) += Σ_k rows(place of k, n) delta(k)."""
    for k in range(len(places)):
        row = rows[places[k]]
        for b in range(delta.shape[1]):
            x = delta[k, b]
            if x != 0.0:
                for n in range(len(row)):
                    scores[n, b] += x * row[n]
