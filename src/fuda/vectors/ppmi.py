"""Vectors from counts: positive pointwise mutual information, and its truncated SVD.

    M(w, c) = max(0, log P(c | w) / P'(c)),     P'(c) ∝ #(c)^α
    M ≈ U Σ Vᵀ,   the vector of w is row w of U Σ^½

after Levy, Goldberg and Dagan (2015), "Improving distributional similarity with lessons learned
from word embeddings", TACL 3. The decomposition is that of Halko, Martinsson and Tropp (2011),
"Finding structure with randomness", SIAM Review 53, from a fixed start.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

Array = np.ndarray
SMOOTHING = 0.75  # the exponent α of the counts of contexts
# The randomized decomposition has 20 more directions than vectors, and 4 rounds.
_EXTRA_DIRECTIONS, _ROUNDS = 20, 4


def ppmi(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Return the positive pointwise mutual information of rows and columns of a count table."""
    table = counts.astype(np.float64)
    rows, columns = (np.asarray(table.sum(axis=axis)).ravel() for axis in (1, 0))
    smoothed = columns**SMOOTHING
    of_rows = np.repeat(rows, np.diff(table.indptr))
    table.data = table.data * smoothed.sum() / (of_rows * smoothed[table.indices])
    table.data = np.log(np.maximum(table.data, 1.0))
    table.eliminate_zeros()
    return table


def truncated_svd(table: sp.csr_matrix, size: int) -> tuple[Array, Array]:
    """Return the first left singular vectors, as columns, and singular values.

    There are fewer than `size` where the table has fewer rows or columns. The sign of a vector is
    such that its largest entry is positive. Computed by one thread, since BLAS rounds by
    their number.
    """
    size = min(size, *table.shape)
    width = min(size + _EXTRA_DIRECTIONS, *table.shape)
    with threadpool_limits(1):
        start = np.random.RandomState(0).standard_normal((table.shape[1], width))
        projected = table @ start
        for _ in range(_ROUNDS):
            projected = table @ np.linalg.qr(table.T @ np.linalg.qr(projected)[0])[0]
        basis = np.linalg.qr(projected)[0]
        left, values, _ = np.linalg.svd((table.T @ basis).T, full_matrices=False)
        vectors = (basis @ left)[:, :size]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(size)]
    return vectors * np.where(largest < 0, -1.0, 1.0), values[:size]
