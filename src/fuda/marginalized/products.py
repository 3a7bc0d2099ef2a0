"""The observation kernel between two corpora by inner products of binary features.

Such inner products are small integers, and there are few different norms. A kernel of one inner
product then has few values: with the features "text" the 27,801 words of a Dutch corpus have
13 norms and inner products up to 17,

    k_x(a, b) = levels[n(a), n(b) + ⟨a, b⟩],

with n the place of a norm. The inner product of a pair fits into a byte, so that all pairs that
are needed together fit into a cache, and counting common features again takes less time than
reading their numbers from memory. `levels` are computed by the kernel: values are those of a table
to the last bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fuda.kernels import Kernel, Sees
from fuda.runtime.compiled import compiled

Array = np.ndarray
_LARGEST_COUNT = 255  # the largest number of common features that fits into a byte
# The largest number of values in the table of levels, which should stay in a cache.
_LEVELS = 1 << 18
# A feature that more than one in so many columns have is added as a row of 0 and 1.
_DENSE_ONE_IN = 16


class SparseRows(NamedTuple):
    """The features of observations: indices[ends[i]:ends[i + 1]] of observation i, of `size`."""

    ends: Array
    indices: Array
    size: int


class Products(NamedTuple):
    """The values of a kernel by common features.

    Attributes
    ----------
    rows, columns : SparseRows
        The observations.
    levels : array (norms, norms · width)
        The values.
    row_norms, column_norms : arrays of int
        The places of their norms, those of columns in a row of levels.
    """

    rows: SparseRows
    columns: SparseRows
    levels: Array
    row_norms: Array
    column_norms: Array


_NONE = SparseRows(np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.int32), 0)
NO_PRODUCTS = Products(_NONE, _NONE, np.zeros((0, 0)), *[np.zeros(0, dtype=np.int32)] * 2)


def products_of(kernel: Kernel, rows: Any, columns: Any) -> Products | None:
    """Return the values of a kernel by common features; None if there are none.

    Parameters
    ----------
    kernel : Kernel
        k_x.
    rows, columns : Types
        The observations and their norms.

    Returns
    -------
    Products or None
        None where the kernel is of more than one inner product, features have numbers, or values
        are too many.
    """
    sides = rows.points.features, columns.points.features
    if not _is_of_one_product(kernel) or not all(map(_are_binary, sides)):
        return None
    norms, numbers = np.unique(np.concatenate([rows.norms[0], columns.norms[0]]), return_inverse=True)
    width = 1 + min(int(np.diff(side.indptr).max(initial=0)) for side in sides)
    if width - 1 > _LARGEST_COUNT or len(norms) ** 2 * width > _LEVELS:
        return None
    values = kernel.evaluate([np.arange(float(width))], [norms[:, None, None]], [norms[:, None]])
    levels = np.array(np.broadcast_to(values, (len(norms), len(norms), width)), dtype=np.float64)
    size = max(side.shape[1] for side in sides)
    row_features, column_features = (
        SparseRows(side.indptr.astype(np.int32), side.indices.astype(np.int32), size) for side in sides
    )
    row_norms, column_norms = np.split(numbers.astype(np.int32), [len(rows.points)])
    return Products(
        row_features,
        column_features,
        levels.reshape(len(norms), -1),
        row_norms,
        column_norms * np.int32(width),
    )


def _is_of_one_product(kernel: Kernel) -> bool:
    """Return whether a kernel is a function of the inner product of features, and of norms."""
    if kernel.parts:
        with_products = [part for part in kernel.parts if part.inner_count]
        return kernel.inner_count == 1 and all(map(_is_of_one_product, with_products))
    return kernel.polynomial is not None and kernel.sees == Sees.FEATURES


def _are_binary(features: Any) -> bool:
    """Return whether the features of a matrix are 1 or missing."""
    is_matrix = sp.issparse(features)
    return is_matrix and features.has_canonical_format and bool((features.data == 1.0).all())


@compiled
def fill(products: Products, rows: Array, columns: Array, factor: float, table: Array) -> None:
    """Write the values of these rows and columns, times a factor, into a table."""
    counts = common(products, rows, columns)
    for i in range(len(rows)):
        levels = products.levels[products.row_norms[rows[i]]]
        for k in range(len(columns)):
            table[i, k] = levels[products.column_norms[columns[k]] + counts[i, k]] * factor


@compiled
def common(products: Products, rows: Array, columns: Array) -> Array:
    """Return how many features each of these rows has in common with each of these columns."""
    table = np.zeros((len(rows), len(columns)), dtype=np.uint8)
    heads, members, others, counts = _lists(products.columns, columns)
    # Features that many columns have are added as rows of 0 and 1, made when first needed.
    wholes, used = (
        np.zeros((_DENSE_ONE_IN * len(members) // max(1, len(columns)), len(columns)), dtype=np.uint8),
        0,
    )
    for i in range(len(rows)):
        row = table[i]
        for e in range(products.rows.ends[rows[i]], products.rows.ends[rows[i] + 1]):
            feature = products.rows.indices[e]
            at = heads[feature]
            if counts[feature] * _DENSE_ONE_IN > len(columns):
                while at >= 0:
                    wholes[used, members[at]] = 1
                    at = others[at]
                heads[feature], counts[feature], at, used = -2 - used, 0, -2 - used, used + 1
            while at >= 0:
                row[members[at]] += np.uint8(1)
                at = others[at]
            if at < -1:
                row += wholes[-2 - at]
    return table


@compiled
def _lists(features: SparseRows, some: Array) -> tuple[Array, Array, Array, Array]:
    """Return the observations of each feature, by their places in `some`, as linked lists.

    These are the first entry of each feature, −1 if there is none, the observation and the next
    entry of each entry, and the number of observations of each feature.
    """
    size, count = 0, 0
    for observation in some:
        size += features.ends[observation + 1] - features.ends[observation]
    heads, counts = np.full(features.size, -1, dtype=np.int32), np.zeros(features.size, dtype=np.int32)
    members, others = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
    for k in range(len(some)):
        for e in range(features.ends[some[k]], features.ends[some[k] + 1]):
            feature = features.indices[e]
            members[count], others[count] = k, heads[feature]
            heads[feature] = count
            counts[feature] += 1
            count += 1
    return heads, members, others, counts
