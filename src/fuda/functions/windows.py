"""What a kernel sees of the nodes of a corpus, and kernel values between such windows.

The point x_t of a node is the concatenation of the feature vectors of its channels, so that inner
products add over channels. A kernel is a function of inner products; these are computed between
types (V ≪ N), gathered by the rows of each node, added, and only then is the kernel evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fuda.checks import check_memory
from fuda.data.encoding import Channel, Encoded
from fuda.errors import DataError
from fuda.kernels import Kernel, Sees
from fuda.kernels.points import Numbering, Points, points
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import run

Array = np.ndarray
_ENTRIES = 1 << 19  # the largest number of kernel values in memory per thread
_TABLE_ENTRIES = 1 << 22  # the largest number of inner products between types in memory


class ChannelView(NamedTuple):
    """A channel and the points that its rows are numbers of; the vectors of several rows add."""

    points: Points
    channel: Channel

    def take(self, nodes: Array) -> ChannelView:
        """The view of some of the nodes, with their points only."""
        channel = self.channel.take(nodes)
        distinct, rows = np.unique(channel.rows, return_inverse=True)
        return ChannelView(self.points[distinct], channel._replace(rows=rows.astype(np.int32)))


class Window(NamedTuple):
    """What a kernel sees of some nodes.

    Attributes
    ----------
    channels : list of ChannelView
        A view per channel.
    norms : list of (n,) arrays
        The squared norms of the nodes, per inner product that the kernel is a function of.
    """

    channels: list[ChannelView]
    norms: list[Array]

    @property
    def size(self) -> int:
        """The number of nodes."""
        channel = self.channels[0].channel
        return len(channel.rows if channel.indptr is None else channel.indptr[1:])

    def take(self, nodes: Array) -> Window:
        """The window of some of the nodes."""
        return Window([view.take(nodes) for view in self.channels], [norm[nodes] for norm in self.norms])


def window_of(encoded: Encoded, kernel: Kernel, numbering: Numbering) -> Window:
    """What a kernel sees of an encoded corpus.

    A kernel of features sees all channels. One that compares observations sees only the channels
    whose rows are observations, not those of joint texts.

    Parameters
    ----------
    encoded : Encoded
        The corpus.
    kernel : Kernel
        The kernel between its nodes.
    numbering : Numbering
        The numbers of observations.

    Returns
    -------
    Window
        All nodes of the corpus.

    Raises
    ------
    DataError
        Where the kernel compares observations, and no channel has any.
    """
    channels = views_of(encoded, kernel, numbering)
    return Window(channels, norms_of(channels, kernel))


def views_of(encoded: Encoded, kernel: Kernel, numbering: Numbering) -> list[ChannelView]:
    """The channels of the window of an encoded corpus, see `window_of`."""
    has_observations = any(channel.shows_types for channel in encoded.channels)
    if kernel.sees == Sees.FEATURES:
        return [_features(encoded, c, c.shows_types or not has_observations) for c in encoded.channels]
    if has_observations:
        types = points(encoded, numbering)
        return [ChannelView(types, channel) for channel in encoded.channels if channel.shows_types]
    raise DataError(
        f"the kernel {kernel} compares observations, and the lines of a template are not observations; "
        "choose a kernel of features (Linear, Polynomial, RBF), or a feature set in place of the template"
    )


def _features(encoded: Encoded, channel: Channel, with_beyond: bool) -> ChannelView:
    """The features of a channel; joint texts that are not in the vocabulary have none."""
    table, rows = encoded.tables[channel.table], channel.rows
    matrix, beyond = table.matrix, table.beyond
    if matrix.shape[0] > 4 * len(rows):  # a part of a large corpus
        used, rows = np.unique(rows, return_inverse=True)
        rows = rows.astype(np.int32)
        matrix, beyond = matrix[used], beyond[used]
    count = matrix.shape[0]
    beyond = beyond if with_beyond else np.zeros(count)
    points = Points(matrix, np.zeros(count, dtype=np.int64), beyond, [None] * count)
    return ChannelView(points, channel._replace(rows=rows))


def norms_of(channels: list[ChannelView], kernel: Kernel) -> list[Array]:
    """Inner products of each node with itself."""
    totals: list[Array] = []
    for view in channels:
        rows, indptr = view.channel.rows, view.channel.indptr
        norms = [norm[rows] for norm in kernel.norms(view.points)]
        if indptr is not None:
            norms = [np.add.reduceat(norm, indptr[:-1]) for norm in norms]
            for node in np.flatnonzero(np.diff(indptr) > 1):  # the square of a sum of vectors
                squares = _squares_of_sum(kernel, view.points, rows[indptr[node] : indptr[node + 1]])
                for norm, square in zip(norms, squares, strict=True):
                    norm[node] = square
        totals = [a + b for a, b in zip(totals, norms, strict=True)] if totals else norms
    return totals


def _squares_of_sum(kernel: Kernel, points: Points, rows: Array) -> list[float]:
    """The inner products with itself of a sum of some points."""
    if len(rows) ** 2 <= _TABLE_ENTRIES:
        several = points[rows]
        return [float(inner.sum()) for inner in kernel.inners(several, several)]
    rows, counts = np.unique(rows, return_counts=True)
    totals: list[float] = []
    for part in _slices(len(rows), _TABLE_ENTRIES // len(rows)):
        inners = kernel.inners(points[rows[part]], points[rows])
        squares = [float(counts[part] @ inner @ counts) for inner in inners]
        totals = [a + b for a, b in zip(totals, squares, strict=True)] if totals else squares
    return totals


def kernel_values(kernel: Kernel, a: Window, b: Window) -> Array:
    """(n, m) kernel values between the nodes of two windows, all at once."""
    tables = sum(len(view.points) for view in a.channels)
    check_memory(
        8 * b.size * (3 * a.size + tables),
        f"a table of kernel values between {a.size:,} and {b.size:,} nodes",
        "split long structures, or choose a linear or polynomial kernel of sparse features",
    )
    return _InnerProducts(kernel, a, b).values(slice(0, a.size))


def add_expansion(
    kernel: Kernel, sources: Window, beta: Array, targets: Window, scores: Array, n_jobs: int | None = None
) -> None:
    """Add Σ_τ β(τ) k(x_τ, x_t) to the scores of all targets t.

    Parameters
    ----------
    kernel : Kernel
        The kernel between nodes.
    sources : Window
        The m nodes τ.
    beta : (m, L) array
        Their coefficients β.
    targets : Window
        The n nodes t.
    scores : (n, L) array
        The scores, changed in place.
    n_jobs : int, optional
        Threads; None means all cores.
    """

    def add(values: Array, part: slice, block: slice) -> None:
        rows, labels = map(np.ascontiguousarray, np.nonzero(beta[part]))
        _multiply(values, rows, labels, beta[part][rows, labels], scores[block])

    _evaluate(kernel, sources, targets, add, n_jobs)


def fill_rows(
    kernel: Kernel, sources: Window, targets: Window, rows: Array, places: Array, n_jobs: int | None = None
) -> None:
    """Write k(x_τ, x_t) to rows[place of τ, t], for all sources τ and targets t.

    Parameters
    ----------
    kernel : Kernel
        The kernel between nodes.
    sources, targets : Window
        The m nodes τ, and the n nodes t.
    rows : (rows, n) array
        Kernel values, changed in place.
    places : (m,) array of int
        The row of each source.
    n_jobs : int, optional
        Threads; None means all cores.
    """

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
    """Compute kernel values between all targets and sources, in bounded memory and in threads.

    `use` is called with values (m, n) between a block of targets and a part of the sources, and
    with the slices of both.
    """
    most = _TABLE_ENTRIES // max(len(view.points) for view in targets.channels)
    for part in _slices(sources.size, most):
        has_all_sources = part == slice(0, sources.size)
        chosen = sources if has_all_sources else sources.take(np.arange(part.start, part.stop))
        products = _InnerProducts(kernel, targets, chosen)

        def solve(block: slice, part: slice = part, products: _InnerProducts = products) -> None:
            use(products.values(block), part, block)

        run(solve, _slices(targets.size, _ENTRIES // chosen.size), n_jobs)


def _slices(size: int, most: int) -> list[slice]:
    """Slices of at most max(1, `most`) numbers that cover 0 … size − 1."""
    most = max(1, most)
    return [slice(begin, min(begin + most, size)) for begin in range(0, size, most)]


class _InnerProducts:
    """Inner products between targets' points and source nodes, and the kernel values from them."""

    def __init__(self, kernel: Kernel, targets: Window, sources: Window) -> None:
        self.kernel, self.targets, self.sources = kernel, targets, sources
        self.tables = []  # by channel and inner product: (points of targets, source nodes)
        for target, source in zip(targets.channels, sources.channels, strict=True):
            rows, indptr = source.channel.rows, source.channel.indptr
            tables = [table.take(rows, axis=1) for table in kernel.inners(target.points, source.points)]
            if indptr is not None:
                tables = [np.add.reduceat(table, indptr[:-1], axis=1) for table in tables]
            self.tables.append(tables)

    def values(self, block: slice) -> Array:
        """(m, n) kernel values between a block of targets and all sources."""
        size = (block.stop - block.start, self.sources.size)
        totals = [np.zeros(size) for _ in self.targets.norms]
        for view, tables in zip(self.targets.channels, self.tables, strict=True):
            for total, table in zip(totals, tables, strict=True):
                add_rows(table, view.channel, total, block.start)
        norms = [norm[block, None] for norm in self.targets.norms]
        values = self.kernel.evaluate(totals, norms, self.sources.norms)
        if np.shape(values) != size:
            values = np.broadcast_to(values, size).copy()
        return np.ascontiguousarray(values, dtype=np.float64)


def add_rows(table: Array, channel: Channel, totals: Array, begin: int = 0) -> None:
    """Add to totals[n] the rows of the table that a channel gives node begin + n."""
    if channel.indptr is None:
        _add_row(table, channel.rows, begin, totals)
    else:
        _add_several_rows(table, channel.rows, channel.indptr, begin, totals)


@compiled
def _add_row(table: Array, rows: Array, begin: int, totals: Array) -> None:
    """totals(n) += table(row of node begin + n)."""
    for n in range(totals.shape[0]):
        row = rows[begin + n]
        for m in range(totals.shape[1]):
            totals[n, m] += table[row, m]


@compiled
def _add_several_rows(table: Array, rows: Array, indptr: Array, begin: int, totals: Array) -> None:
    """totals(n) += Σ over the rows of node begin + n of table(row)."""
    for n in range(totals.shape[0]):
        for j in range(indptr[begin + n], indptr[begin + n + 1]):
            row = rows[j]
            for m in range(totals.shape[1]):
                totals[n, m] += table[row, m]


@compiled
def _multiply(values: Array, columns: Array, labels: Array, weights: Array, scores: Array) -> None:
    """scores += values · β, where β is sparse: BLAS is slow on a product this thin."""
    for n in range(values.shape[0]):
        for e in range(len(columns)):
            scores[n, labels[e]] += values[n, columns[e]] * weights[e]
