"""Scores of nodes under a polynomial kernel, by its features written out.

The kernel (s ⟨a, b⟩ + o)^d is an inner product of monomials of the features
(`fuda.functions.monomials`). A node with four features has eleven monomials of degree two or
less, so that its score is eleven look-ups in a table of weights, however large the training
corpus is:

    s_t(σ) = ν_t Σ_{f ∈ t} x_tf W(f, σ),      β(t, σ) += δ  means  W(f, σ) += c_f ν_t x_tf δ  for all f ∈ t,

where x_tf is the monomial's value at t and c_f its coefficient; ν_t is 1, or 1/√k(x_t, x_t) where the kernel
is normalized. Monomials that no training node has weigh 0.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fuda.data.encoding import Encoded
from fuda.errors import DataError, short
from fuda.functions.monomials import Monomials, Vectors, coefficients, inner_products
from fuda.functions.pushed import ROW_BYTES, Expansion, KernelScores, window_of
from fuda.kernels import Kernel, Sees, check_kernel
from fuda.kernels.points import Numbering, points
from fuda.parallel import blocks, run

Array = np.ndarray
Features = tuple[Array, Array, Array, Array, Array]
MOST_BYTES = 2_000_000_000  # for the monomials of all nodes
_FEW_WEIGHTS = 1 << 13  # of a node, that cost next to nothing
_BLOCK_BYTES = 200_000_000  # for those of nodes that scores are wanted of
_BLOCK_NODES = 1024
_LARGEST = 1e100  # value of a kernel; squares and sums stay finite


def scores_for(
    kernel: Kernel, encoded: Encoded, label_count: int, n_jobs: int | None = None
) -> KernelScores | FeatureScores:
    """Scores by written-out features where the kernel has few enough of them, else by pushing.

    A node's monomials are read for all labels, and a push is a pass over all nodes for two labels or so, with
    some kernel values to be computed again. Where half of them can be kept, and there is something to save,
    the smaller of the two decides.

    DataError where the kernel is none on these data.
    """
    _check(kernel, encoded)
    if kernel.polynomial is not None:
        vectors = Vectors(kernel, encoded)
        count = vectors.counts(vectors.binary).mean() if len(vectors) else 0.0
        push_is_faster = 4 * len(vectors) ** 2 <= ROW_BYTES and label_count * count > max(
            8 * len(vectors), _FEW_WEIGHTS
        )
        fits = vectors.numerable and vectors.sizes(vectors.binary).sum() <= MOST_BYTES
        if fits and not push_is_faster:
            return FeatureScores(vectors, label_count, n_jobs)
    return KernelScores(encoded, kernel, label_count, n_jobs)


def _check(kernel: Kernel, encoded: Encoded) -> None:
    """Raise DataError where the kernel is not symmetric, or of a node with itself negative or too large."""
    numbering = Numbering(encoded.corpus)
    norms = window_of(encoded, kernel, numbering).norms
    if kernel.sees > Sees.FEATURES:
        types = points(encoded, numbering)[: len(encoded.corpus.observations)]
        check_kernel(kernel, types, encoded.corpus.place_of_type)
    with np.errstate(over="ignore", invalid="ignore"):
        own = np.broadcast_to(kernel.evaluate(norms, norms, norms), (encoded.corpus.size,))
    bad = ~((own >= 0) & (own <= _LARGEST))
    if bad.any():
        node = int(bad.argmax())
        raise DataError(
            f"{encoded.corpus.place(node)}: the kernel {short(kernel)} of the node with itself is "
            f"{own[node]:g}; it is a number from 0 to {_LARGEST:g}: correct the kernel, or scale the features"
        )


def function_for(
    kernel: Kernel, encoded: Encoded, beta: Array, n_jobs: int | None = None
) -> Expansion | MonomialWeights:
    """The function Σ_τ β(τ) k(x_τ, ·) over the nodes τ of a corpus; β is (N, L)."""
    held = scores_for(kernel, encoded, beta.shape[1], n_jobs)
    if isinstance(held, KernelScores):
        held.beta += beta  # the scores of the corpus itself are not wanted: no push
    else:
        held.add(0, len(beta), beta)
    return held.function()


class MonomialWeights:
    """A function from nodes to R^L by weights (F, L) of monomials, and a last row of zeros."""

    def __init__(self, kernel: Kernel, monomials: Monomials, sets: bool, weights: Array) -> None:
        self.kernel, self.monomials, self.sets, self.weights = kernel, monomials, sets, weights

    def of(self, encoded: Encoded, n_jobs: int | None = None) -> Array:
        """(M, L) the scores of the nodes of a corpus."""
        whole = Vectors(self.kernel, encoded)
        parts = []
        for first, last in blocks(np.append(0, np.cumsum(whole.sizes(self.sets))), _BLOCK_BYTES):
            vectors = whole.cut(first, last)
            rows = self.monomials.expand(vectors, self.sets, learn=False)
            parts.append(_score((*rows, vectors.factors, np.empty(0)), self.weights, n_jobs))
        return np.concatenate(parts)


class FeatureScores:
    """Scores of all nodes of a training corpus under a polynomial kernel; used like `KernelScores`.

    `features` are what `score_node` and `update_node` take: monomials in CSR form (bounds, numbers,
    values), ν of each node, and c of each monomial.
    """

    def __init__(self, vectors: Vectors, label_count: int, n_jobs: int | None = None) -> None:
        self.vectors, self.label_count, self.n_jobs = vectors, label_count, n_jobs
        self._monomials = Monomials()
        rows = self._monomials.expand(vectors, vectors.binary, learn=True)
        amounts = coefficients(self._monomials.codes(), vectors)
        self.features: Features = (*rows, vectors.factors, amounts)
        self.weights = np.zeros((self._monomials.count, label_count))
        self.beta = np.zeros((len(vectors), label_count))

    @property
    def scores(self) -> Array:
        """(N, L) the scores of all nodes, computed now."""
        return _score(self.features, self.weights, self.n_jobs)

    def local(self, begin: int, end: int) -> Array:
        """(end − begin, L) the scores of some nodes."""
        scores = np.zeros((end - begin, self.label_count))
        _score_nodes(self.features, self.weights, begin, scores)
        return scores

    def add(self, begin: int, end: int, delta: Array) -> None:
        """β of nodes begin..end grows by delta (end − begin, L); only rows that are not 0 cost anything."""
        delta = np.ascontiguousarray(delta, dtype=np.float64)
        self.beta[begin:end] += delta
        _update_nodes(self.features, self.weights, begin, delta)

    def scale(self, factor: float) -> None:
        """Multiply the function by a number."""
        self.weights *= factor
        self.beta *= factor

    def gram(self, nodes: Array, others: Array) -> Array:
        """(n, m) kernel values between some nodes and others."""
        v = self.vectors
        values = np.empty((len(nodes), len(others)))
        inner_products(v.indptr, v.indices, v.values, nodes, others, values)
        values *= v.scale
        values += v.offset
        return values**v.degree * v.factors[nodes, None] * v.factors[others]

    def function(self) -> MonomialWeights:
        """What was learned, without the training corpus and without weights of 0."""
        used = self.weights.any(axis=1)
        monomials = Monomials(self._monomials.codes()[used])
        weights = np.pad(self.weights[used], ((0, 1), (0, 0)))  # the last for monomials unknown
        return MonomialWeights(self.vectors.kernel, monomials, self.vectors.binary, weights)

    def of(self, encoded: Encoded) -> Array:
        """(M, L) the scores of the nodes of another corpus."""
        return self.function().of(encoded, self.n_jobs)


def _score(features: Features, weights: Array, n_jobs: int | None) -> Array:
    scores = np.zeros((len(features[0]) - 1, weights.shape[1]))

    def fill(begin: int) -> None:
        _score_nodes(features, weights, begin, scores[begin : begin + _BLOCK_NODES])

    run(fill, range(0, len(scores), _BLOCK_NODES), n_jobs)
    return scores


@njit(cache=True, nogil=True)
def score_node(features: Features, weights: Array, t: int, scores: Array) -> None:
    """Add the scores of node t to `scores` (L,)."""
    indptr, ids, values, factors, _ = features
    for e in range(indptr[t], indptr[t + 1]):
        own = weights[ids[e]]
        x = values[e] * factors[t] if len(values) > 0 else factors[t]
        for b in range(len(scores)):
            scores[b] += x * own[b]


@njit(cache=True, nogil=True)
def update_node(features: Features, weights: Array, t: int, delta: Array) -> None:
    """Bring the weights up to date when β of node t grows by `delta` (L,)."""
    indptr, ids, values, factors, coefficients = features
    labels = np.flatnonzero(delta)
    for e in range(indptr[t], indptr[t + 1]):
        own = weights[ids[e]]
        x = values[e] * factors[t] if len(values) > 0 else factors[t]
        x *= coefficients[ids[e]]
        for b in labels:
            own[b] += x * delta[b]


@njit(cache=True, nogil=True)
def _score_nodes(features: Features, weights: Array, begin: int, scores: Array) -> None:
    for n in range(scores.shape[0]):
        score_node(features, weights, begin + n, scores[n])


@njit(cache=True, nogil=True)
def _update_nodes(features: Features, weights: Array, begin: int, delta: Array) -> None:
    for n in range(delta.shape[0]):
        if delta[n].any():
            update_node(features, weights, begin + n, delta[n])
