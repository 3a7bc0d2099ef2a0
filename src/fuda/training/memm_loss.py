"""The loss of the maximum entropy Markov model: multinomial logistic regression of each label.

    L(w) = −Σ_t w_t log P(y_t | y_p, x),     P(b | a, x) = exp(s_t(b) + A(a, b)) / Z_t(a),

over the nodes t whose label and whose parent's label y_p are known; a row "start" of A stands in for
the parent of a root.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda.compiled import compiled
from fuda.data.encoding import Channel, Encoded
from fuda.parallel import Block, run

Array = np.ndarray
_BLOCK_NODES = 1 << 14


class LocalLoss:
    """−Σ_t w_t log P(y_t | y_p, x) as a function of the weights: calling it gives value and gradient.

    The weights are (features, L), channel after channel, then the L + 1 rows of A, the last one "start".
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
        above = np.where(corpus.graph.heads >= 0, labels[corpus.graph.heads], L)
        counted = np.flatnonzero((labels >= 0) & (above >= 0))
        weight = np.ones(corpus.size) if position_weight is None else position_weight
        if sample_weight is not None:
            weight = weight * np.repeat(sample_weight, np.diff(corpus.offsets))
        self.labels, self.weight = labels[counted].astype(np.int64), weight[counted]
        self.label_count, self.n_jobs = L, n_jobs
        seen: list[tuple[Channel, Any]] = [
            (channel, encoded.tables[channel.table].matrix) for channel in encoded.channels
        ]
        seen.append((Channel("above", -1, np.maximum(above, 0)), sp.identity(L + 1, format="csr")))
        self.matrices = [matrix for _, matrix in seen]
        self.transposed = [_rows(matrix.T) for matrix in self.matrices]
        self.rows = _slices([matrix.shape[0] for matrix in self.matrices])
        self.features = _slices([matrix.shape[1] for matrix in self.matrices])
        incidences = [channel.incidence(matrix.shape[0])[counted] for channel, matrix in seen]
        self.incidence: Any = sp.hstack(incidences, format="csr")
        size = len(counted)
        self.blocks = [(a, min(a + _BLOCK_NODES, size)) for a in range(0, size, _BLOCK_NODES)]
        self.by_channel = [_rows(incidence.T) for incidence in incidences]
        # Room kept from call to call.
        self._table = np.empty((self.incidence.shape[1], L))
        self._residuals = np.empty((size, L))
        self._gradient = np.empty((self.features[-1].stop, L))

    def __call__(self, vector: Array) -> tuple[float, Array]:
        """The loss and its gradient, which the next call overwrites."""
        weights, channels = vector.reshape(-1, self.label_count), range(len(self.matrices))

        def fill(c: int) -> None:
            self._table[self.rows[c]] = self.matrices[c] @ weights[self.features[c]]

        def solve(block: Block) -> float:
            seen = self.incidence.indptr, self.incidence.indices
            return _slopes(*seen, self._table, self.labels, self.weight, *block, self._residuals)

        def collect(c: int) -> None:
            by_row = self.by_channel[c] @ self._residuals
            self._gradient[self.features[c]] = self.transposed[c] @ by_row

        run(fill, channels, self.n_jobs)
        value = sum(run(solve, self.blocks, self.n_jobs))
        run(collect, channels, self.n_jobs)
        return value, self._gradient.ravel()

    def curvature(self) -> Array:
        """The diagonal of the Hessian where all labels are alike: Σ w x² (1/L)(1 − 1/L) for each weight."""
        share = 1 / self.label_count
        counts = []
        for matrix, by_row in zip(self.transposed, self.by_channel, strict=True):
            squares = matrix**2 if isinstance(matrix, np.ndarray) else matrix.multiply(matrix)
            counts.append(squares @ (by_row @ self.weight))
        return np.repeat(share * (1 - share) * np.concatenate(counts), self.label_count)


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _slopes(
    indptr: Array, rows: Array, table: Array, labels: Array, weight: Array, begin: int, end: int, out: Array
) -> float:
    """−Σ w_t log P(y_t | y_p, x) over the nodes begin..end, and its slopes in their scores, (nodes, L)."""
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
        mass = 0.0
        for b in range(size):
            scores[b] = math.exp(scores[b] - top)
            mass += scores[b]
        for b in range(size):
            out[t, b] = weight[t] * scores[b] / mass
        out[t, labels[t]] -= weight[t]
        total += weight[t] * (math.log(mass) + top - gold)
    return total


def _slices(sizes: list[int]) -> list[slice]:
    """Ranges of these sizes, one after another."""
    return [slice(int(a), int(b)) for a, b in pairwise(np.cumsum([0, *sizes]))]


def _rows(matrix: Any) -> Any:
    """A matrix laid out by rows."""
    return np.ascontiguousarray(matrix) if isinstance(matrix, np.ndarray) else matrix.tocsr()
