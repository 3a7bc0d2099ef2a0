"""The scores of the rows of all channels in one table, stored in the order in which they are read.

The node scores of a CRF are sums of rows of S = X W, one per channel, where X stacks the features
of all channels. A pass over the corpus reads these rows at random places, and for the gradient
writes them; waiting for memory takes longer than the arithmetic. Most rows occur a few times only.
So those that occur often come first, and stay in the cache; all others follow in the order in
which the nodes are visited, so that the next one needed is mostly the next one in memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fuda.compiled import compiled
from fuda.data.encoding import Encoded
from fuda.parallel import run

Array = np.ndarray
_OFTEN = 4  # how often a row occurs that does not wait for its first visit
_ROWS = 1 << 13  # what a thread computes at a time


class _Product(NamedTuple):
    """A block of a matrix, the rows that its product gives, and those of the other factor."""

    matrix: Any
    result: slice
    factor: slice


class ScoreTable:
    """The features of the rows of all channels, and products with their weights.

    Parameters
    ----------
    encoded : Encoded
        The corpus; every channel has one row per node.
    visited : ndarray of int
        Nodes, in the order of the passes over them.
    n_jobs : int or None
        The number of threads; None is all cores.

    Attributes
    ----------
    rows : (N, channels) ndarray of int32
        The rows of the table at each node.
    height : int
        The number of rows of the table.
    """

    def __init__(self, encoded: Encoded, visited: Array, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs
        matrices: list[Any] = [encoded.tables[channel.table].matrix for channel in encoded.channels]
        starts = np.cumsum([0, *(matrix.shape[0] for matrix in matrices)])
        self.height = int(starts[-1])
        rows = np.column_stack([c.rows + a for c, a in zip(encoded.channels, starts[:-1], strict=True)])
        # Dense rows are multiplied as they are, by BLAS: they stay together, after all others.
        is_dense = np.repeat([isinstance(m, np.ndarray) for m in matrices], np.diff(starts))
        order = _reading_order(rows[visited], is_dense)
        place = np.empty(self.height, dtype=np.int32)
        place[order] = np.arange(self.height, dtype=np.int32)
        self.rows = place[rows]
        columns = np.cumsum([0, *(matrix.shape[1] for matrix in matrices)])
        count = self.height - int(is_dense.sum())
        sparse = _stacked(matrices, columns)[order[:count]]
        self._products, self._transposed = _blocks(sparse), _blocks(sparse.T.tocsr())
        for matrix, start, first in zip(matrices, starts[:-1], columns[:-1], strict=True):
            if isinstance(matrix, np.ndarray) and len(matrix):
                at = slice(place[start], place[start] + len(matrix))
                weights = slice(first, first + matrix.shape[1])
                self._products.append(_Product(matrix, at, weights))
                self._transposed.append(_Product(np.ascontiguousarray(matrix.T), weights, at))

    def exponentiate(self, weights: Array, table: Array, top: Array) -> None:
        """Compute exp(S − the largest of each row) into `table`, the largest into `top`.

        `weights` contains W, the weights of all channels one below the other.
        """

        def fill(product: _Product) -> None:
            part, at = product.matrix @ weights[product.factor], product.result
            _shift(part, top[at])
            np.exp(part, out=table[at])

        run(fill, self._products, self.n_jobs)

    def add_gradient(self, parts: list[Array], gradient: Array) -> None:
        """Add Xᵀ times the sum of the parts, which is left in the first, to the gradient by W."""
        total = parts[0]

        def add(start: int) -> None:
            for part in parts[1:]:
                total[start : start + _ROWS] += part[start : start + _ROWS]

        def collect(product: _Product) -> None:
            gradient[product.result] += product.matrix @ total[product.factor]

        run(add, range(0, self.height, _ROWS), self.n_jobs)
        run(collect, self._transposed, self.n_jobs)


@compiled
def _shift(scores: Array, top: Array) -> None:
    """Subtract the largest number of each row, which is left in `top`."""
    for k in range(len(scores)):
        row = scores[k]
        largest = row[0]
        for b in range(1, len(row)):
            largest = max(largest, row[b])
        top[k] = largest
        for b in range(len(row)):
            row[b] -= largest


def _reading_order(read: Array, is_last: Array) -> Array:
    """All rows in the order to store them, from those that each visited node reads."""
    flat = read.ravel()
    counts = np.bincount(flat, minlength=len(is_last))
    first = np.full(len(is_last), len(flat))
    first[flat[::-1]] = np.arange(len(flat))[::-1]
    often = np.where(counts >= _OFTEN, -counts, 0)
    often[is_last] = first[is_last] = 0
    return np.lexsort((first, often, is_last))


def _stacked(matrices: list[Any], columns: Array) -> sp.csr_matrix:
    """X: the matrices one below the other, each with its own columns; dense ones are empty."""
    parts = []
    for matrix, first in zip(matrices, columns[:-1], strict=True):
        if isinstance(matrix, np.ndarray):
            parts.append(sp.csr_matrix((len(matrix), columns[-1])))
        else:
            arrays = matrix.data, matrix.indices + first, matrix.indptr
            parts.append(sp.csr_matrix(arrays, shape=(matrix.shape[0], columns[-1])))
    return sp.vstack(parts, format="csr")


def _blocks(matrix: sp.csr_matrix) -> list[_Product]:
    """A matrix by blocks of rows, which do not depend on the number of threads."""
    height, everything = matrix.shape[0], slice(0, matrix.shape[1])
    return [
        _Product(matrix[a : a + _ROWS], slice(a, min(a + _ROWS, height)), everything)
        for a in range(0, height, _ROWS)
    ]
