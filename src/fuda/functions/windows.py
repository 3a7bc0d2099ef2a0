"""What a kernel sees of the nodes of a corpus, and kernel values between such windows.

The point x_t of a node is what its channels show: their feature vectors one after another, so that inner
products add over channels. A kernel is a function of inner products; these are computed between types
(V ≪ N), gathered by the rows of each node, added, and only then is the kernel evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fuda.compiled import compiled
from fuda.data.encoding import Channel, Encoded
from fuda.errors import DataError
from fuda.kernels import Kernel, Sees
from fuda.kernels.points import Numbering, Points, points
from fuda.parallel import run

Array = np.ndarray
_ENTRIES = 1 << 19  # kernel values that a thread holds at once
_TABLE_ENTRIES = 1 << 22  # inner products between types that are held at once


@dataclass(frozen=True)
class ChannelView:
    """What one channel shows of the nodes: point rows[t] of node t or, where there is an `indptr`, the points
    rows[indptr[t]:indptr[t+1]], whose vectors add."""

    points: Points
    rows: Array
    indptr: Array | None

    def take(self, nodes: Array) -> ChannelView:
        """The view of some of the nodes, with their points only."""
        if self.indptr is None:
            rows, indptr = self.rows[nodes], None
        else:
            counts = np.diff(self.indptr)[nodes]
            indptr = np.concatenate([[0], np.cumsum(counts)])
            rows = self.rows[np.repeat(self.indptr[nodes] - indptr[:-1], counts) + np.arange(indptr[-1])]
        distinct, rows = np.unique(rows, return_inverse=True)
        return ChannelView(self.points[distinct], rows, indptr)


class Window:
    """What a kernel sees of some nodes: a view per channel, and the squared norms of the nodes, one (n,)
    array per inner product that the kernel is a function of."""

    def __init__(self, channels: list[ChannelView], norms: list[Array]) -> None:
        self.channels, self.norms = channels, norms

    def __len__(self) -> int:
        view = self.channels[0]
        return len(view.rows if view.indptr is None else view.indptr[1:])

    def take(self, nodes: Array) -> Window:
        """The window of some of the nodes."""
        return Window([view.take(nodes) for view in self.channels], [norm[nodes] for norm in self.norms])


def window_of(encoded: Encoded, kernel: Kernel, numbering: Numbering) -> Window:
    """What a kernel sees of an encoded corpus.

    A kernel of features sees all channels. One that compares observations sees those channels whose rows are
    observations, and not those of joint texts.
    """
    has_observations = any(channel.shows_types for channel in encoded.channels)
    if kernel.sees == Sees.FEATURES:
        channels = [_features(encoded, c, c.shows_types or not has_observations) for c in encoded.channels]
    elif has_observations:
        own = points(encoded, numbering)
        channels = [ChannelView(own, c.rows, c.indptr) for c in encoded.channels if c.shows_types]
    else:
        raise DataError(
            f"the kernel {kernel} compares observations, and the lines of a template are none; take a kernel "
            "of features (Linear, Polynomial, RBF), or a feature set in place of the template"
        )
    return Window(channels, _norms(channels, kernel))


def _features(encoded: Encoded, channel: Channel, with_beyond: bool) -> ChannelView:
    """What a channel shows of features; joint texts that the vocabulary leaves out count for nothing."""
    table, rows = encoded.tables[channel.table], channel.rows
    matrix, beyond = table.matrix, table.beyond
    if matrix.shape[0] > 4 * len(rows):  # a part of a large corpus
        used, rows = np.unique(rows, return_inverse=True)
        matrix, beyond = matrix[used], beyond[used]
    count = matrix.shape[0]
    beyond = beyond if with_beyond else np.zeros(count)
    points = Points(matrix, np.zeros(count, dtype=np.int64), beyond, [None] * count)
    return ChannelView(points, rows, channel.indptr)


def _norms(channels: list[ChannelView], kernel: Kernel) -> list[Array]:
    """Inner products of each node with itself."""
    totals: list[Array] = []
    for view in channels:
        norms = [norm[view.rows] for norm in kernel.norms(view.points)]
        if view.indptr is not None:
            norms = [np.add.reduceat(norm, view.indptr[:-1]) for norm in norms]
            for node in np.flatnonzero(np.diff(view.indptr) > 1):  # the square of a sum of vectors
                several = view.points[view.rows[view.indptr[node] : view.indptr[node + 1]]]
                for norm, inner in zip(norms, kernel.inners(several, several), strict=True):
                    norm[node] = inner.sum()
        totals = [a + b for a, b in zip(totals, norms, strict=True)] if totals else norms
    return totals


def kernel_values(kernel: Kernel, a: Window, b: Window) -> Array:
    """(n, m) the kernel between the nodes of two windows, all at once."""
    return _InnerProducts(kernel, a, b).values(slice(0, len(a)))


def add_expansion(
    kernel: Kernel, sources: Window, beta: Array, targets: Window, scores: Array, n_jobs: int | None = None
) -> None:
    """scores (n, L) += Σ_τ β(τ) k(x_τ, x_t) for all targets t."""

    def add(values: Array, part: slice, block: slice) -> None:
        rows, labels = np.nonzero(beta[part])
        _multiply(values, rows, labels, beta[part][rows, labels], scores[block])

    _evaluate(kernel, sources, targets, add, n_jobs)


def fill_rows(
    kernel: Kernel, sources: Window, targets: Window, rows: Array, places: Array, n_jobs: int | None = None
) -> None:
    """rows(place of τ, t) = k(x_τ, x_t) for all sources τ and targets t."""

    def fill(values: Array, part: slice, block: slice) -> None:
        rows[places[part], block] = values.T

    _evaluate(kernel, sources, targets, fill, n_jobs)


def _evaluate(
    kernel: Kernel,
    sources: Window,
    targets: Window,
    use: Callable[[Array, slice, slice], None],
    n_jobs: int | None,
) -> None:
    """Call `use` with the kernel values (m, n) between a block of targets and a part of the sources, and
    with both slices, for all of them; memory is bounded, and blocks run in threads."""
    most = _TABLE_ENTRIES // max(len(view.points) for view in targets.channels)
    for part in _slices(len(sources), most):
        chosen = sources if part == slice(0, len(sources)) else sources.take(np.arange(len(sources))[part])
        products = _InnerProducts(kernel, targets, chosen)

        def solve(block: slice, part: slice = part, products: _InnerProducts = products) -> None:
            use(products.values(block), part, block)

        run(solve, _slices(len(targets), _ENTRIES // len(chosen)), n_jobs)


def _slices(size: int, most: int) -> list[slice]:
    """Slices of at most `most` numbers, and of one at least, that cover 0 … size − 1."""
    most = max(1, most)
    return [slice(begin, min(begin + most, size)) for begin in range(0, size, most)]


class _InnerProducts:
    """Inner products between the points of the targets and the source nodes, and kernel values from them."""

    def __init__(self, kernel: Kernel, targets: Window, sources: Window) -> None:
        self.kernel, self.targets, self.sources = kernel, targets, sources
        self.tables = []  # by channel, then by inner product: (points of the targets, source nodes)
        for target, source in zip(targets.channels, sources.channels, strict=True):
            tables = kernel.inners(target.points, source.points)
            tables = [table[:, source.rows] for table in tables]
            if source.indptr is not None:
                tables = [np.add.reduceat(table, source.indptr[:-1], axis=1) for table in tables]
            self.tables.append(tables)

    def values(self, block: slice) -> Array:
        """(m, n) the kernel between a block of targets and all sources."""
        size = (block.stop - block.start, len(self.sources))
        totals = [np.zeros(size) for _ in self.targets.norms]
        for view, tables in zip(self.targets.channels, self.tables, strict=True):
            for total, table in zip(totals, tables, strict=True):
                if view.indptr is None:
                    _gather(table, view.rows, block.start, total)
                else:
                    _gather_several(table, view.rows, view.indptr, block.start, total)
        norms = [norm[block, None] for norm in self.targets.norms]
        values = self.kernel.evaluate(totals, norms, self.sources.norms)
        return np.ascontiguousarray(np.broadcast_to(values, size), dtype=np.float64)


@compiled
def _gather(table: Array, rows: Array, begin: int, total: Array) -> None:
    """total(n) += table(row of node begin + n)."""
    for n in range(total.shape[0]):
        row = rows[begin + n]
        for m in range(total.shape[1]):
            total[n, m] += table[row, m]


@compiled
def _gather_several(table: Array, rows: Array, indptr: Array, begin: int, total: Array) -> None:
    for n in range(total.shape[0]):
        for j in range(indptr[begin + n], indptr[begin + n + 1]):
            row = rows[j]
            for m in range(total.shape[1]):
                total[n, m] += table[row, m]


@compiled
def _multiply(values: Array, columns: Array, labels: Array, weights: Array, scores: Array) -> None:
    """scores += values · β, where β is sparse: BLAS is slow on a product this thin."""
    for n in range(values.shape[0]):
        for e in range(len(columns)):
            scores[n, labels[e]] += values[n, columns[e]] * weights[e]
