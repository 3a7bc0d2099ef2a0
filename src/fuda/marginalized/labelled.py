"""Kernels between labelled structures, for re-ranking.

A feature is a run of nodes of a sequence, or a connected subtree of an ordered tree that keeps
the order of siblings and may skip some; at each node it has the label, with or without the
observation. A feature of d nodes has the weight c^d. So two nodes match to the degree

    k(τ,t) = c² k_y(y_τ, y'_t) (k_x(x_τ, x'_t) + 1),

and K = Σ_{τ,t} K(τ,t), where K(τ,t) is the sum over all pairs of features that end (in trees: have
their roots) at τ and t:

    sequence   K(τ,t) = (K(τ−1,t−1) + 1) k(τ,t)
    tree       K(τ,t) = S(τ,t) k(τ,t), where S(τ,t) sums the products of K over all ways to match
               some children of τ to some of t in order

On a chain the two are equal. K grows exponentially with the number of consecutive nodes that
agree: numbers are plain doubles if a bound guarantees that they cannot overflow, and scaled
otherwise. The normalized kernel K(a,b) / √(K(a,a) K(b,b)) is a double at any length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from fuda.data.encoding import Encoded
from fuda.data.graph import Adjacency, Span
from fuda.data.labels import number_labels
from fuda.data.structures import as_structures
from fuda.data.window_encoding import WindowEncoder
from fuda.errors import DataError, short
from fuda.kernels import Kernel, as_kernel, check_kernel
from fuda.kernels.points import Numbering, points
from fuda.marginalized.kernel import check_mixing
from fuda.marginalized.numbers import Cells, empty_cells, normal, number, plus, read, times, write
from fuda.marginalized.recursions import shapes
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import Block, blocks, run

Array = np.ndarray
LABELLED_MIXING = 1e-75, 1e75  # the smallest and largest c
_BLOCK_NODES = 2048
_GRAM_VALUES = 1 << 21  # how many values of k_x are computed at a time
_LOG_BASE = 512 * math.log(2)  # the logarithm of the base of scaled numbers
_SEQUENCE = shapes.SHAPES["sequence"]


def labelled_kernel(
    a: Any,
    b: Any,
    labels_a: Any,
    labels_b: Any,
    *,
    kernel: Any,
    label_kernel: Any = None,
    mixing: float = 1.0,
    normalized: bool = False,
    features: Any = "word",
) -> float:
    """Compute the kernel of two labelled sequences, or of two labelled trees.

    Parameters
    ----------
    a, b : structures
        Two sequences or two trees.
    labels_a, labels_b : sequences
        One label per node.
    kernel : Kernel or callable
        k_x, the kernel between observations.
    label_kernel : Kernel or None
        k_y, the kernel between labels; None for [y = y'].
    mixing : float
        c, above 0: a feature of d nodes has the weight c^d.
    normalized : bool
        Whether to divide by √(K(a,a) K(b,b)).
    features : str or callable
        The feature set or function that extracts features from observations.

    Returns
    -------
    float
        K.

    Examples
    --------
    >>> from fuda.kernels import Delta
    >>> labelled_kernel(["a", "b"], ["a", "c"], ["N", "V"], ["N", "V"], kernel=Delta())
    5.0
    """
    encoded = WindowEncoder(features, 0).fit(as_structures([a, b]))
    corpus = encoded.corpus
    if corpus.shape == "dag":
        raise DataError("labelled structures are sequences or trees, but these are DAGs; give them as trees")
    names, labels = number_labels([labels_a, labels_b], corpus)
    if (labels < 0).any():
        where = corpus.place(int((labels < 0).argmax()))
        raise DataError(f"{where}: its label is None; give a label for every node")
    k_x = as_kernel(kernel)
    check_kernel(k_x, points(encoded), corpus.place_of_type, most=len(corpus.observations))
    similarity = Similarity(k_x, _label_gram(label_kernel, names), mixing, normalized, Numbering(corpus))
    both = similarity.prepare(encoded, labels.astype(np.int64), np.arange(3))
    return float(similarity.rows(both, np.array([0]), both)[0, 1])


def _label_gram(label_kernel: Any, labels: list[Any]) -> Array:
    """Return the matrix (L, L) of a kernel on the labels themselves, not on their numbers."""
    if label_kernel is None:
        return np.eye(len(labels))
    k_y = as_kernel(label_kernel, "label_kernel")
    label_points = points(WindowEncoder("word", 0).fit(as_structures([labels])))
    check_kernel(k_y, label_points, lambda i: f"the label {labels[i]!r}", most=len(labels))
    return k_y.gram(label_points, label_points)


class PackedLabelings(NamedTuple):
    """Labelings as arguments of compiled functions.

    Structure i has the labelings first[i] … first[i+1]−1; labeling c is of structure owner[c],
    with the labels labels[starts[c]:], one per node. `log_norms` (m,) is ½ log K of each labeling
    with itself, 0 if the kernel is not normalized.
    """

    adjacency: Adjacency
    offsets: Array
    types: Array
    first: Array
    owner: Array
    starts: Array
    labels: Array
    log_norms: Array


class Labelings:
    """Some labelings of each structure of a corpus.

    Parameters
    ----------
    encoded : Encoded
        The structures.
    labels, first : arrays
        The labelings, in the layout of `PackedLabelings`.
    numbering : Numbering
        The numbers of distinct observations.

    Attributes
    ----------
    owner : array (m,)
        The structure of each labeling.
    packed : PackedLabelings
        The labelings.
    """

    def __init__(self, encoded: Encoded, labels: Array, first: Array, numbering: Numbering) -> None:
        corpus = encoded.corpus
        self.shape = shapes.SHAPES[corpus.shape]
        self.points = points(encoded, numbering)
        self.owner = np.repeat(np.arange(len(corpus)), np.diff(first))
        sizes = np.diff(corpus.offsets)[self.owner]
        nodes = corpus.graph.adjacency, corpus.offsets, corpus.types.astype(np.int64)
        starts, log_norms = np.cumsum(sizes) - sizes, np.zeros(len(sizes))
        self.packed = PackedLabelings(*nodes, first, self.owner, starts, labels, log_norms)

    def types_of(self, structure: int) -> Array:
        """Return the types of the nodes of a structure."""
        return self.packed.types[slice(*self.packed.offsets[structure : structure + 2])]


class Similarity:
    """The kernel between labelings.

    Parameters
    ----------
    kernel : Kernel
        k_x.
    label_gram : array (L, L)
        k_y between label numbers.
    mixing : float
        c.
    normalized : bool
        Whether the kernel is normalized.
    numbering : Numbering
        The numbers of distinct observations.
    n_jobs : int or None
        The number of threads.
    """

    def __init__(
        self,
        kernel: Kernel,
        label_gram: Array,
        mixing: float,
        normalized: bool,
        numbering: Numbering,
        n_jobs: int | None = None,
    ) -> None:
        check_mixing(mixing, LABELLED_MIXING)
        self.kernel, self.label_gram, self.mixing = (
            kernel,
            np.require(label_gram, np.float64, ["C", "A", "W"]),
            mixing,
        )
        self.normalized, self.numbering, self.n_jobs = normalized, numbering, n_jobs

    def prepare(self, encoded: Encoded, labels: Array, first: Array) -> Labelings:
        """Return labelings of the structures of a corpus, laid out as in `PackedLabelings`."""
        labelings = Labelings(encoded, labels, first, self.numbering)

        def solve(structure: int) -> None:
            types = labelings.types_of(structure)
            weight = self._weight(labelings, types, labelings, types)
            _fill_norms(
                labelings.shape,
                labelings.packed,
                structure,
                weight,
                self._workspace(labelings, weight, len(types)),
            )

        if self.normalized:
            run(solve, range(len(encoded.corpus)), self.n_jobs)
        return labelings

    def all_rows(self, a: Labelings, b: Labelings) -> Iterator[Array]:
        """Yield K (n, m) of the n labelings of each structure of a with all of b.

        Values of k_x are computed for many structures at a time: for one structure they take less
        time than the call.
        """
        offsets, first = a.packed.offsets, a.packed.first
        for begin, end in blocks(offsets, max(1, _GRAM_VALUES // len(b.points))):
            weight = self._weight(a, a.packed.types[offsets[begin] : offsets[end]], b, slice(None))
            for i in range(begin, end):
                nodes = slice(offsets[i] - offsets[begin], offsets[i + 1] - offsets[begin])
                yield self._rows(a, np.arange(first[i], first[i + 1]), b, weight[nodes])

    def rows(self, a: Labelings, chosen: Array, b: Labelings) -> Array:
        """Return K (n, m) of labelings `chosen` of a, all of one structure, with all m of b."""
        structure = int(a.owner[chosen[0]])
        return self._rows(a, chosen, b, self._weight(a, a.types_of(structure), b, slice(None)))

    def _rows(self, a: Labelings, chosen: Array, b: Labelings, weight: Array) -> Array:
        """Return K (n, m) from c² (k_x + 1) between nodes of one structure and types of b."""
        out = np.empty((len(chosen), len(b.owner)))

        def solve(block: Block) -> None:
            longest = int(np.diff(b.packed.offsets[block[0] : block[1] + 1]).max())
            work = self._workspace(a, weight, longest)
            _fill_rows(a.shape, a.packed, chosen, b.packed, *block, weight, work, out)

        run(solve, blocks(b.packed.offsets, _BLOCK_NODES), self.n_jobs)
        if not np.isfinite(out).all():
            raise DataError(
                f"mixing={self.mixing:g} with the kernel {short(self.kernel)}: the kernel between labelings, "
                f"one of {len(weight)} nodes, passes 1e308; take normalized=True, a smaller mixing, or "
                "kernel.normalized()"
            )
        return out

    def _weight(self, a: Labelings, types_a: Any, b: Labelings, types_b: Any) -> Array:
        """Return c² (k_x + 1) between types."""
        return self.mixing**2 * (self.kernel.gram(a.points[types_a], b.points[types_b]) + 1.0)

    def _workspace(self, a: Labelings, weight: Array, longest: int) -> Workspace:
        """Allocate arrays for comparisons with structures of up to `longest` nodes."""
        size, largest = len(weight), float(np.abs(weight).max()) * float(np.abs(self.label_gram).max())
        safe = shapes.plain_is_safe(a.shape, size, longest, 0.0, largest, largest)
        new, to_label = np.empty((2, size, longest)), np.empty((len(self.label_gram), longest))
        down, sums = empty_cells(not safe, size, longest), empty_cells(not safe, 1, longest)
        return Workspace(self.label_gram, new[0], new[1], to_label, down, sums)


class Workspace(NamedTuple):
    """k_y, and work arrays for the comparison of two labelings.

    These are c² (k_x + 1) between nodes, k, k_y between labels and the nodes of the second
    labeling, and K(τ,t) and the sums over matchings in plain or scaled numbers.
    """

    label_gram: Array
    weight: Array
    k: Array
    to_label: Array
    down: Cells
    sums: Cells


@compiled
def _fill_rows(
    shape: int,
    a: PackedLabelings,
    chosen: Array,
    b: PackedLabelings,
    begin: int,
    end: int,
    by_type: Array,
    work: Workspace,
    out: Array,
) -> None:
    """Compute K of the chosen labelings of a with those of the structures begin … end−1 of b."""
    for other in range(begin, end):
        for i in range(len(by_type)):
            for j in range(b.offsets[other + 1] - b.offsets[other]):
                work.weight[i, j] = by_type[i, b.types[b.offsets[other] + j]]
        for row in range(len(chosen)):
            for c in range(b.first[other], b.first[other + 1]):
                mantissa, exponent = _compare(shape, a, chosen[row], b, c, work.weight, work)
                log_norm = a.log_norms[chosen[row]] + b.log_norms[c]
                out[row, c] = mantissa * math.exp(_LOG_BASE * exponent - log_norm)


@compiled
def _fill_norms(shape: int, a: PackedLabelings, structure: int, weight: Array, work: Workspace) -> None:
    """Compute ½ log K of the labelings of a structure with themselves."""
    for c in range(a.first[structure], a.first[structure + 1]):
        mantissa, exponent = _compare(shape, a, c, a, c, weight, work)
        a.log_norms[c] = 0.5 * (math.log(mantissa) + _LOG_BASE * exponent)


@compiled
def _compare(
    shape: int, a: PackedLabelings, labeling_a: int, b: PackedLabelings, labeling_b: int, weight: Array,
    work: Workspace,
) -> tuple[float, int]:  # fmt: skip
    """Return K of two labelings as a scaled number, from c² (k_x + 1) between their nodes."""
    begin_a, end_a = a.offsets[a.owner[labeling_a]], a.offsets[a.owner[labeling_a] + 1]
    begin_b, end_b = b.offsets[b.owner[labeling_b]], b.offsets[b.owner[labeling_b] + 1]
    size_a, size_b = end_a - begin_a, end_b - begin_b
    labels_a, labels_b = a.labels[a.starts[labeling_a] :], b.labels[b.starts[labeling_b] :]
    for y in range(len(work.label_gram)):
        for j in range(size_b):
            work.to_label[y, j] = work.label_gram[y, labels_b[j]]
    for i in range(size_a):
        weights, to_label, k = weight[i], work.to_label[labels_a[i]], work.k[i]
        for j in range(size_b):
            k[j] = weights[j] * to_label[j]
    if shape == _SEQUENCE:
        total = _runs(size_a, size_b, work.k, work.down)
    else:
        trees = Span(a.adjacency, begin_a, end_a), Span(b.adjacency, begin_b, end_b)
        total = _subtrees(trees[0], trees[1], work.k, work.down, work.sums)
    return times(total, normal(1.0, 0))


def _runs(size_a: int, size_b: int, k: Array, down: Cells) -> Any:
    """Return Σ K(τ,t) of two sequences, a number of the kind of `down`, in compiled code only."""
    raise NotImplementedError


@overload(_runs, strict=False)
def _either_runs(size_a: Any, size_b: Any, k: Any, down: Any) -> Any:
    if isinstance(down, types.BaseTuple):
        return lambda size_a, size_b, k, down: _scaled_runs(size_a, size_b, k, down)
    return lambda size_a, size_b, k, down: _plain_runs(size_a, size_b, k, down)


@compiled
def _scaled_runs(size_a: int, size_b: int, k: Array, down: Cells) -> Any:
    """Return Σ K(τ,t) in scaled numbers."""
    one, total = number(1.0, down), number(0.0, down)
    for i in range(size_a):
        for j in range(size_b):
            before = plus(one, read(down, (i - 1, j - 1))) if i > 0 and j > 0 else one
            value = times(k[i, j], before)
            write(down, (i, j), value)
            total = plus(total, value)
    return total


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _plain_runs(size_a: int, size_b: int, k: Array, down: Array) -> float:
    """Return Σ K(τ,t); each row is computed by vector instructions."""
    total = 0.0
    for i in range(size_a):
        k_row, row, before = k[i], down[i], down[i - 1]
        row[0] = k_row[0]
        for j in range(1, size_b):
            row[j] = k_row[j] * (1.0 + before[j - 1]) if i > 0 else k_row[j]
        for j in range(size_b):
            total += row[j]
    return total


@compiled
def _subtrees(a: Span, b: Span, k: Array, down: Cells, sums: Cells) -> Any:
    """Return Σ K(τ,t) of two trees from k(τ,t), a number of the kind of `down`."""
    total = number(0.0, down)
    for step in range(a.end - 1, a.begin - 1, -1):
        node = a.adjacency.order[step]
        i = node - a.begin
        for j in range(b.end - b.begin):
            below = _matchings(a, node, b, b.begin + j, down, sums)
            value = times(k[i, j], below)
            write(down, (i, j), value)
            total = plus(total, value)
    return total


@compiled
def _matchings(a: Span, node_a: int, b: Span, node_b: int, down: Cells, sums: Cells) -> Any:
    """Return S, the sum over all ways to match some children of two nodes in order.

    For each child of the first node, either it is matched or not (row 0 of `sums` is S(v,·)):
    S(v,w) = S(v−1,w) + M(v,w) with M(v,w) = M(v,w−1) + K(v,w) S(v−1,w−1) and S(0,·) = S(·,0) = 1.
    """
    one, of_a, of_b = number(1.0, down), a.adjacency.children, b.adjacency.children
    first, count = of_b.indptr[node_b], of_b.indptr[node_b + 1] - of_b.indptr[node_b]
    for w in range(count):
        write(sums, (0, w), one)
    last = one
    for child in of_a.indices[of_a.indptr[node_a] : of_a.indptr[node_a + 1]]:
        matched, diagonal = number(0.0, down), one
        for w in range(count):
            above = read(sums, (0, w))
            at = (child - a.begin, of_b.indices[first + w] - b.begin)
            matched = plus(matched, times(read(down, at), diagonal))
            diagonal = above
            last = plus(above, matched)
            write(sums, (0, w), last)
    return last
