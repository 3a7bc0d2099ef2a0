"""The scores of the rows of all channels in one table, stored in the order in which they are read.

The node scores of a CRF are sums of rows of S = X W, one per channel, where X stacks the features
of all channels. A pass over the corpus reads these rows at random places, and for the gradient
writes them; waiting for memory takes longer than the arithmetic. Most rows occur a few times only.
So those that occur often come first, and stay in the cache; all others follow in the order in
which the nodes are visited, so that the next one needed is mostly the next one in memory. A
gradient by weights adds up rows in the order of the tables all the same, as
`fuda.training.row_scores` does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fuda.data.encoding import Encoded
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import run

Array = np.ndarray
# A row that occurs at least so often is placed with the frequent rows, in front of all others.
_FREQUENT_COUNT = 4
_BLOCK_ROWS = 1 << 13  # rows of a block, which one thread computes


class Product(NamedTuple):
    """A block of a matrix, the rows that its product gives, and those of the other factor.

    A one-dimensional array in place of the matrix chooses rows of the factor.
    """

    matrix: Any
    result: slice
    factor: slice

    def of(self, factor: Array, out: Array) -> Array:
        """Return the block of the product, `out` itself where rows are only chosen.

        Workers of a cluster give memory back at once: for every array it is made and cleared.
        """
        part = factor[self.factor]
        if isinstance(self.matrix, np.ndarray) and self.matrix.ndim == 1:
            return part.take(self.matrix, axis=0, out=out, mode="clip")
        return np.asarray(self.matrix @ part)


class ScoreTable:
    """The features of the rows of all channels, and products with their weights.

    Parameters
    ----------
    encoded : Encoded
        The corpus.
    visited : ndarray of int
        Nodes, in the order of the passes over them. Where there are any, every channel has one
        row per node.
    n_jobs : int or None
        The number of threads; None is all cores.

    Attributes
    ----------
    rows : (N, channels) ndarray of int32
        The rows of the table at each node; empty where none is visited.
    places : list of ndarray
        For each channel, where the rows of its table are.
    height : int
        The number of rows of the table.
    """

    def __init__(self, encoded: Encoded, visited: Array, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs
        matrices: list[Any] = [encoded.tables[channel.table].matrix for channel in encoded.channels]
        starts = np.cumsum([0, *(matrix.shape[0] for matrix in matrices)])
        self.height = int(starts[-1])
        rows = np.empty((0, len(matrices)), dtype=np.int32)
        if len(visited):
            rows = np.column_stack([c.rows + a for c, a in zip(encoded.channels, starts[:-1], strict=True)])
        # Dense rows are multiplied as they are, by BLAS: they stay together, after all others.
        is_dense = np.repeat([isinstance(m, np.ndarray) for m in matrices], np.diff(starts))
        order = _reading_order(rows[visited], is_dense)
        place = np.empty(self.height, dtype=np.int32)
        place[order] = np.arange(self.height, dtype=np.int32)
        self.rows, self.places = place[rows], np.split(place, starts[1:-1])[: len(matrices)]
        columns = np.cumsum([0, *(matrix.shape[1] for matrix in matrices)])
        self._products, self._transposed = list[Product](), list[Product]()
        if all(map(_is_identity, matrices)):
            self._products, self._transposed = _selections(order), _selections(place)
        elif not is_dense.all():
            sparse = _stacked(matrices, columns)
            self._products = blocks(sparse[order[: self.height - int(is_dense.sum())]])
            by_column = sparse.T.tocsr()
            by_column.indices = place[by_column.indices]
            self._transposed = blocks(by_column)
        self._dense = list[Product]()
        for matrix, at, first in zip(matrices, self.places, columns[:-1], strict=True):
            if isinstance(matrix, np.ndarray):
                begin = int(at[0]) if len(at) else 0
                rows_of_channel = slice(begin, begin + len(at))
                weights_of_channel = slice(first, first + matrix.shape[1])
                self._products.append(Product(matrix, rows_of_channel, weights_of_channel))
                self._dense.append(
                    Product(np.ascontiguousarray(matrix.T), weights_of_channel, rows_of_channel)
                )

    def exponentiate(self, weights: Array, table: Array) -> None:
        """Compute exp(S − the largest of each row) into `table`.

        `weights` contains W, the weights of all channels one below the other.
        """

        def fill(product: Product) -> None:
            out = table[product.result]
            part = product.of(weights, out)
            _shift(part)
            np.exp(part, out=out)

        run(fill, self._products, self.n_jobs)

    def collect(self, parts: list[Array], gradient: Array) -> None:
        """Compute Xᵀ times the sum of the parts, which is left in the first, into the gradient."""
        total = parts[0]

        def add(start: int) -> None:
            for part in parts[1:]:
                total[start : start + _BLOCK_ROWS] += part[start : start + _BLOCK_ROWS]

        if len(parts) > 1:
            run(add, range(0, self.height, _BLOCK_ROWS), self.n_jobs)
        multiply(self._transposed, total, gradient, self.n_jobs)
        multiply(self._dense, total, gradient, self.n_jobs)


def multiply(products: list[Product], factor: Array, result: Array, n_jobs: int | None) -> None:
    """Compute the products of a matrix, block by block, into the rows of the result."""

    def fill(product: Product) -> None:
        out = result[product.result]
        part = product.of(factor, out)
        if part is not out:
            out[:] = part

    run(fill, products, n_jobs)


@compiled
def _shift(scores: Array) -> None:
    """Subtract the largest number of each row."""
    for k in range(len(scores)):
        row = scores[k]
        largest = row[0]
        for b in range(1, len(row)):
            largest = max(largest, row[b])
        for b in range(len(row)):
            row[b] -= largest


def _reading_order(read: Array, is_last: Array) -> Array:
    """All rows in the order to store them, from those that each visited node reads."""
    flat = read.ravel()
    counts = np.bincount(flat, minlength=len(is_last))
    first = np.full(len(is_last), len(flat))
    first[flat[::-1]] = np.arange(len(flat))[::-1]
    often = np.where(counts >= _FREQUENT_COUNT, -counts, 0)
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


def blocks(matrix: sp.csr_matrix) -> list[Product]:
    """A matrix by blocks of rows, which do not depend on the number of threads."""
    height, everything = matrix.shape[0], slice(0, matrix.shape[1])
    return [
        Product(matrix[a : a + _BLOCK_ROWS], slice(a, min(a + _BLOCK_ROWS, height)), everything)
        for a in range(0, height, _BLOCK_ROWS)
    ]


def _is_identity(matrix: Any) -> bool:
    """Whether each row has one feature of its own, as on the workers of a cluster."""
    if isinstance(matrix, np.ndarray) or not matrix.shape[0] == matrix.shape[1] == matrix.nnz:
        return False
    return bool((matrix.data == 1.0).all() and (matrix.indices == np.arange(matrix.nnz)).all())


def _selections(chosen: Array) -> list[Product]:
    """The blocks of a permutation."""
    starts = range(0, len(chosen), _BLOCK_ROWS)
    parts = [(slice(a, a + _BLOCK_ROWS), slice(0, len(chosen))) for a in starts]
    return [Product(chosen[at], at, everything) for at, everything in parts]
