"""Values of the kernel between observations, as engines look them up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.marginalized.kernel_classes import KernelClasses
from fuda.marginalized.problem import Problem
from fuda.marginalized.products import NO_PRODUCTS, Products

Array = np.ndarray


class Values(NamedTuple):
    """c² k_x by kernel class: from a table, or by common features where it would be too large.

    Attributes
    ----------
    table : array
        The values, table[row_of[source class], column_of[target class]]. The last column, of empty
        places, is 0.
    row_of, column_of : arrays
        The place of each source class, frequent ones first, and of each target class.
    products : Products
        The values by common features, 0 with empty places; without levels there is a table.
    counts, count_of : arrays
        The common features of those classes that are `counted`, as
        counts[count_of[source class], column_of[target class]].
    """

    table: Array
    row_of: Array
    column_of: Array
    products: Products = NO_PRODUCTS
    counts: Array = np.zeros((0, 0), dtype=np.uint8)
    count_of: Array = np.zeros(0, dtype=np.int32)


def by_frequency(classes: Array) -> Array:
    """Return the distinct classes, the most frequent first."""
    often = np.bincount(classes)
    return np.argsort(-often, kind="stable")[: np.count_nonzero(often)]


def values_of(
    kernel_classes: KernelClasses, mixing: float, rows: Array, columns: Array, row_of: Array | None = None
) -> Values:
    """Return c² k_x for these classes of sources and targets, in this order.

    `row_of` has the place of each source class, where it is known already.
    """
    table = np.empty((len(rows), len(columns) + 1))
    kernel_classes.fill(rows, columns, mixing**2, table[:, :-1])
    table[:, -1] = 0.0
    column_of = places_of(columns, kernel_classes.counts[1] + 1)
    column_of[-1] = len(columns)
    return Values(table, places_of(rows, kernel_classes.counts[0]) if row_of is None else row_of, column_of)


def values_by_products(products: Products, mixing: float, row_of: Array) -> Values:
    """Return c² k_x by common features; `row_of` has the place of each source class."""
    norms, levels = products.column_norms, products.levels * mixing**2
    width = levels.shape[1] // len(levels)
    with_empty = np.pad(levels, ((0, 0), (0, width)))  # the norm of empty places
    norms = np.append(norms, np.int32(levels.shape[1]))
    columns = np.arange(len(norms), dtype=np.int32)
    return Values(np.zeros((0, 0)), row_of, columns, products._replace(levels=with_empty, column_norms=norms))


def rows_of(problem: Problem) -> tuple[Array, Array]:
    """Return the classes of the sources, the most frequent first, and the place of each."""
    rows = by_frequency(problem.sources.classes)
    return rows, places_of(rows, problem.kernel_classes.counts[0])


def places_of(classes: Array, count: int) -> Array:
    """Return the place of each of these classes, of `count` in all; 0 for others."""
    places = np.zeros(count, dtype=np.int32)
    places[classes] = np.arange(len(classes))
    return places
