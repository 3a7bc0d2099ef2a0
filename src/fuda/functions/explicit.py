"""Scores of nodes under a polynomial kernel, by weights of its explicit features.

The kernel (s ⟨a, b⟩ + o)^d is an inner product of monomials of the features
(`fuda.functions.monomials`). A node with four features has eleven monomials of degree two or
less, so that its score is eleven look-ups in a table of weights, however large the training
corpus is:

    s_t(σ) = ν_t Σ_{f ∈ t} x_tf W(f, σ),
    β(t, σ) += δ  means  W(f, σ) += c_f ν_t x_tf δ  for all f ∈ t,

where x_tf is the monomial's value at t and c_f its coefficient; ν_t is 1, or 1/√k(x_t, x_t) where
the kernel is normalized. Monomials that no training node has get the weight 0.
"""

from __future__ import annotations

import numpy as np

from fuda.checks import check_arrays, check_memory
from fuda.data.encoding import Encoded
from fuda.functions.base import NodeMonomials, ScoreArrays, score_nodes, update_nodes
from fuda.functions.monomials import Monomials, MonomialVectors, coefficients, inner_products
from fuda.kernels import Kernel
from fuda.runtime.parallel import blocks, run

Array = np.ndarray
_BLOCK_BYTES = 200_000_000  # bytes of the monomials of nodes that are scored together
_BLOCK_NODES = 1024


class MonomialWeights:
    """A function from nodes to R^L by weights of monomials: a `fuda.functions.base.LabelFunction`.

    Parameters
    ----------
    kernel : Kernel
        The polynomial kernel.
    monomials : Monomials
        The F monomials.
    binary_training : bool
        Whether monomials are identified by their sets of features.
    weights : (F + 1, L) array
        The weights of the monomials, and a row of zeros for unknown ones.
    """

    def __init__(self, kernel: Kernel, monomials: Monomials, binary_training: bool, weights: Array) -> None:
        self.kernel, self.monomials, self.weights = kernel, monomials, weights
        self.binary_training = binary_training

    def of(self, encoded: Encoded, n_jobs: int | None = None) -> Array:
        """(M, L) the scores of the nodes of a corpus."""
        all_vectors = MonomialVectors(self.kernel, encoded)
        parts = []
        ends = np.zeros(len(all_vectors) + 1, dtype=np.int64)
        np.cumsum(all_vectors.sizes(self.binary_training), out=ends[1:])
        for first, last in blocks(ends, _BLOCK_BYTES):
            vectors = all_vectors.cut(first, last)
            rows = self.monomials.expand(vectors, self.binary_training, learn=False)
            monomials = NodeMonomials(*rows, vectors.factors, np.empty(0))
            parts.append(_score(_arrays(monomials, self.weights, self.weights), n_jobs))
        return np.concatenate(parts)


class ExplicitScores:
    """Scores of the nodes of a training corpus under a polynomial kernel, by monomials.

    It is a `fuda.functions.base.TrainingScores`.

    Parameters
    ----------
    vectors : MonomialVectors
        The feature vectors of the nodes, and the polynomial.
    label_count : int
        L, the number of labels.
    n_jobs : int, optional
        Threads; None means all cores.
    """

    def __init__(self, vectors: MonomialVectors, label_count: int, n_jobs: int | None = None) -> None:
        self.vectors, self.label_count, self.n_jobs = vectors, label_count, n_jobs
        self._monomials = Monomials()
        rows = self._monomials.expand(vectors, vectors.binary, learn=True)
        factors = vectors.factors, coefficients(self._monomials.keys(), vectors)
        check_memory(
            8.0 * label_count * (self._monomials.count + len(vectors)),
            f"the weights of {self._monomials.count:,} monomials of features for {label_count:,} labels",
            "give fewer features or labels, or a kernel of a smaller degree",
        )
        self.weights = np.zeros((self._monomials.count, label_count))
        self.beta = np.zeros((len(vectors), label_count))
        self._score_arrays = _arrays(NodeMonomials(*rows, *factors), self.weights, self.beta)

    @property
    def scores(self) -> Array:
        """(N, L) the scores of all nodes, computed on access."""
        return _score(self._score_arrays, self.n_jobs)

    def state(self) -> dict[str, Array]:
        """The arrays that all scores to come depend on."""
        return {"beta": self.beta, "weights": self.weights}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Continue from a `state()` of the same corpus."""
        check_arrays(arrays, {"beta": self.beta.shape, "weights": self.weights.shape})
        self.beta[:], self.weights[:] = arrays["beta"], arrays["weights"]

    def local(self, begin: int, end: int) -> Array:
        """(end − begin, L) the scores of the nodes begin … end − 1, in a new array."""
        scores = np.zeros((end - begin, self.label_count))
        score_nodes(self._score_arrays, begin, scores)
        return scores

    def add(self, begin: int, end: int, delta: Array) -> None:
        """Add delta (end − begin, L) to β of the nodes begin … end − 1; rows of 0 cost nothing."""
        update_nodes(self._score_arrays, begin, np.ascontiguousarray(delta, dtype=np.float64))

    def arrays(self, nodes: Array) -> ScoreArrays:
        """The arrays by which compiled loops change β of any nodes."""
        return self._score_arrays

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
        """The function learned, without the training corpus and without weights of 0."""
        used = self.weights.any(axis=1)
        monomials = Monomials(self._monomials.keys()[used])
        weights = np.pad(self.weights[used], ((0, 1), (0, 0)))  # a last row for unknown monomials
        return MonomialWeights(self.vectors.kernel, monomials, self.vectors.binary, weights)


def _arrays(monomials: NodeMonomials, weights: Array, beta: Array) -> ScoreArrays:
    """Score arrays without rows of kernel values."""
    none = np.empty((0, 0))
    return ScoreArrays(monomials, weights, none, np.empty(0, dtype=np.int64), none, beta)


def _score(arrays: ScoreArrays, n_jobs: int | None) -> Array:
    """(N, L) the scores of all nodes, in threads."""
    scores = np.zeros((len(arrays.monomials.indptr) - 1, arrays.weights.shape[1]))

    def fill(begin: int) -> None:
        score_nodes(arrays, begin, scores[begin : begin + _BLOCK_NODES])

    run(fill, range(0, len(scores), _BLOCK_NODES), n_jobs)
    return scores
