"""Kernel values by common features: the same bits as those of tables."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fuda.data.tables import Csr
from fuda.kernels import RBF, Constant, Delta, Linear, Polynomial
from fuda.kernels.points import Points
from fuda.marginalized import kernel_classes, products
from fuda.marginalized.kernel_classes import KernelClasses, Types
from fuda.marginalized.products import fill, products_of

KERNELS = [
    Polynomial(1).normalized(),
    Linear(),
    Linear().normalized() + Constant(0.5),
    (3 * Polynomial(2, offset=0.3)).normalized() * Constant(0.7),
]


def random_points(rng, count, width, first=0):
    """Points whose features are there or not, one of them nearly everywhere and one nowhere."""
    chances = np.concatenate([[0.9, 0.0], rng.random(width - 2) ** 3])
    matrix = sp.csr_matrix((rng.random((count, width)) < chances).astype(float))
    return Points(matrix, first + np.arange(count), rng.integers(0, 3, count) * 1.0, [None] * count)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_values_are_those_of_the_kernel_to_the_last_bit(kernel):
    rng = np.random.default_rng(0)
    rows = Types(kernel, random_points(rng, 40, 12))
    columns = Types(kernel, random_points(rng, 50, 12, 40))
    by_features = products_of(kernel, rows, columns)
    for _ in range(5):
        some, others = rng.integers(0, 40, 9), rng.integers(0, 50, 30)
        table = np.empty((9, 30))
        fill(by_features, some, others, 1.7, table)
        gram = kernel.gram(rows.points[some], columns.points[others])
        np.testing.assert_array_equal(table, gram * 1.7)


def test_rows_and_columns_may_have_different_numbers_of_features():
    kernel, rng = KERNELS[0], np.random.default_rng(1)
    for widths in ((5, 9), (9, 5)):
        sides = [random_points(rng, 20, width, 20 * k) for k, width in enumerate(widths)]
        rows, columns = (Types(kernel, side) for side in sides)
        table, every = np.empty((20, 20)), np.arange(20)
        fill(products_of(kernel, rows, columns), every, every, 1.0, table)
        np.testing.assert_array_equal(table, rows.gram(columns))


@pytest.mark.parametrize("kernel", [RBF(0.3), Delta() + Linear(), Linear() * Linear(), Constant(1.0)])
def test_other_kernels_have_none(kernel):
    types = Types(kernel, random_points(np.random.default_rng(2), 10, 6))
    assert products_of(kernel, types, types) is None


def test_other_features_have_none(monkeypatch):
    kernel, points = KERNELS[0], random_points(np.random.default_rng(3), 10, 6)
    others = points.ids, points.beyond, points.observations
    usual, twice, few = (
        Types(kernel, Points(features, *others))
        for features in (points.features, points.features * 2, Csr.of(points.features))
    )
    assert products_of(kernel, usual, usual) is not None
    assert products_of(kernel, usual, twice) is products_of(kernel, usual, few) is None
    monkeypatch.setattr(products, "_LEVELS", 10)
    assert products_of(kernel, usual, usual) is None


def test_a_table_for_other_engines_has_the_values(monkeypatch):
    monkeypatch.setattr(kernel_classes, "_READ_TABLE", 0)
    types = Types(KERNELS[0], random_points(np.random.default_rng(4), 120, 40))
    codes_of_types = KernelClasses(types, types)
    assert codes_of_types.products is not None
    assert codes_of_types.all_values is None
    assert codes_of_types.counts == (120, 120)
    rows, columns, table = np.array([90, 3, 77]), np.arange(0, 120, 7), np.empty((3, 18))
    codes_of_types.fill(rows, columns, 0.5, table)
    np.testing.assert_array_equal(table, types.gram(types)[rows][:, columns] * 0.5)
