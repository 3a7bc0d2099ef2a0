"""Lanes: against NumPy, on numbers of any size."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuda.compiled import compiled
from fuda.simd_integers import WIDTH, larger, load, minus, plus, spread, store, without, zeros

NUMBERS = st.integers(-(2**31), 2**31 - 1)


@compiled
def _compute(given, row, column, number, results):
    x, y = load(given, row, column), load(given, row + 1, column)
    store(results, 0, column, plus(x, y))
    store(results, 1, column, minus(x, y))
    store(results, 2, column, larger(x, y))
    store(results, 3, column, without(x, y))
    store(results, 4, column, spread(number))


@given(st.data(), st.integers(1, 3 * WIDTH), NUMBERS)
def test_lanes_compute_what_numpy_does(data, columns, number):
    given, results = zeros(3, columns), zeros(5, columns)
    given[:] = np.array(data.draw(st.lists(NUMBERS, min_size=given.size, max_size=given.size))).reshape(
        given.shape
    )
    for column in range(0, given.shape[1], WIDTH):
        _compute(given, 1, column, number, results)
    x, y = given[1], given[2]
    expected = [x + y, x - y, np.maximum(x, y), x & ~y, np.full_like(x, number)]
    assert (results == expected).all()


@given(st.integers(1, 5), st.integers(1, 100))
def test_rows_of_lanes_begin_with_lines_of_the_cache(rows, columns):
    found = zeros(rows, columns)
    assert found.shape == (rows, -(-columns // WIDTH) * WIDTH)
    assert found.flags.c_contiguous
    assert found.dtype == np.int32
    assert not found.any()
    assert found.ctypes.data % 64 == 0
