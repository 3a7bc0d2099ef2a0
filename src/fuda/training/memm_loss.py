"""The loss of the maximum entropy Markov model: multinomial logistic regression of each label.

    L(w) = −Σ_t w_t log P(y_t | y_p, x),     P(b | a, x) = exp(s_t(b) + A(a, b)) / Z_t(a),

over the nodes t whose label and whose parent's label y_p are known; roots use a row "start" of A
in place of the parent's label.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda.data.encoding import Channel, Encoded
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import Block, run
from fuda.training.crf_loss import squared, transposed

Array = np.ndarray
_BLOCK_NODES = 1 << 14


class LocalLoss:
    """−Σ_t w_t log P(y_t | y_p, x): a call with a weight vector returns value and gradient.

    The weights are (features, L) per channel, then the L + 1 rows of A, the last one "start".

    Parameters
    ----------
    encoded : Encoded
        The training corpus.
    labels : (N,) array of int
        The label of each node, −1 where unknown.
    label_count : int
        L, the number of labels.
    sample_weight : (n,) array, optional
        The weight of each structure. Default: 1.
    position_weight : (N,) array, optional
        The weight of each node. Default: 1.
    n_jobs : int, optional
        Threads; None means all cores.

    Attributes
    ----------
    labels : array of int
        The labels of the nodes that count.
    """

    def __init__(
        self,
        encoded: Encoded,
        labels: Array,
        label_count: int,
        sample_weight: Array | None = None,
        position_weight: Array | None = None,
        n_jobs: int | None = None,
    ) -> None:
        corpus, L = encoded.corpus, label_count
        parents = np.where(corpus.graph.heads >= 0, labels[corpus.graph.heads], L)
        counted = np.flatnonzero((labels >= 0) & (parents >= 0))
        weight = np.ones(corpus.size) if position_weight is None else position_weight
        if sample_weight is not None:
            weight = weight * np.repeat(sample_weight, np.diff(corpus.offsets))
        self.labels, self.weight = labels[counted].astype(np.int64), weight[counted]
        self.label_count, self.n_jobs = L, n_jobs
        channels = [*encoded.channels, Channel("parent", -1, np.maximum(parents, 0))]
        tables = [encoded.tables[channel.table].matrix for channel in encoded.channels]
        self.matrices: list[Any] = [*tables, sp.identity(L + 1, format="csr")]
        self.transposed = [transposed(matrix) for matrix in self.matrices]
        self.rows, self.features = (_slices([matrix.shape[k] for matrix in self.matrices]) for k in (0, 1))
        seen = zip(channels, self.matrices, strict=True)
        incidences = [channel.incidence(matrix.shape[0])[counted] for channel, matrix in seen]
        self.incidence: Any = sp.hstack(incidences, format="csr")
        size = len(counted)
        self.blocks = [(a, min(a + _BLOCK_NODES, size)) for a in range(0, size, _BLOCK_NODES)]
        self.by_channel = [transposed(incidence) for incidence in incidences]
        # Allocated once for all calls.
        self._table = np.empty((self.incidence.shape[1], L))
        self._residuals = np.empty((size, L))
        self._gradient = np.empty((self.features[-1].stop, L))

    def __call__(self, vector: Array) -> tuple[float, Array]:
        """The loss and its gradient, an array that the next call overwrites."""
        weights, channels = vector.reshape(-1, self.label_count), range(len(self.matrices))

        def fill(c: int) -> None:
            self._table[self.rows[c]] = self.matrices[c] @ weights[self.features[c]]

        def solve(block: Block) -> float:
            rows = self.incidence.indptr, self.incidence.indices
            return _residuals(*rows, self._table, self.labels, self.weight, *block, self._residuals)

        def collect(c: int) -> None:
            self._gradient[self.features[c]] = self.transposed[c] @ (self.by_channel[c] @ self._residuals)

        run(fill, channels, self.n_jobs)
        value = sum(run(solve, self.blocks, self.n_jobs))
        run(collect, channels, self.n_jobs)
        return value, self._gradient.ravel()

    def curvature(self) -> Array:
        """The diagonal of the Hessian at w = 0: Σ w_t x² (1/L)(1 − 1/L) per weight."""
        pairs = zip(self.transposed, self.by_channel, strict=True)
        counts = [squared(matrix) @ (by_row @ self.weight) for matrix, by_row in pairs]
        share = 1 / self.label_count
        return np.repeat(share * (1 - share) * np.concatenate(counts), self.label_count)


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _residuals(
    indptr: Array, rows: Array, table: Array, labels: Array, weight: Array, begin: int, end: int, out: Array
) -> float:
    """−Σ w_t log P(y_t | y_p, x) over the nodes begin … end − 1.

    `out` gets its derivatives by the scores of the nodes.
    """
    total = 0.0
    size = table.shape[1]
    scores = np.empty(size)
    for t in range(begin, end):
        scores[:] = 0.0
        for k in range(indptr[t], indptr[t + 1]):
            for b in range(size):
                scores[b] += table[rows[k], b]
        top = scores.max()
        gold = scores[labels[t]]
        normalizer = 0.0
        for b in range(size):
            scores[b] = math.exp(scores[b] - top)
            normalizer += scores[b]
        for b in range(size):
            out[t, b] = weight[t] * scores[b] / normalizer
        out[t, labels[t]] -= weight[t]
        total += weight[t] * (math.log(normalizer) + top - gold)
    return total


def _slices(sizes: list[int]) -> list[slice]:
    """Ranges of these sizes, one after another."""
    return [slice(int(a), int(b)) for a, b in pairwise(np.cumsum([0, *sizes]))]
