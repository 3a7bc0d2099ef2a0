"""Lanes: against NumPy, on numbers of any size."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuda.runtime.compiled import compiled
from fuda.runtime.simd_integers import WIDTH, larger, load, minus, plus, spread, store, without, zeros

NUMBERS = st.integers(-(2**31), 2**31 - 1)


@compiled
def _compute(operands, row, column, number, results):
    x, y = load(operands, row, column), load(operands, row + 1, column)
    store(results, 0, column, plus(x, y))
    store(results, 1, column, minus(x, y))
    store(results, 2, column, larger(x, y))
    store(results, 3, column, without(x, y))
    store(results, 4, column, spread(number))


@given(st.data(), st.integers(1, 3 * WIDTH), NUMBERS)
def test_lanes_compute_what_numpy_does(data, columns, number):
    operands, results = zeros(3, columns), zeros(5, columns)
    operands[:] = np.array(
        data.draw(st.lists(NUMBERS, min_size=operands.size, max_size=operands.size))
    ).reshape(operands.shape)
    for column in range(0, operands.shape[1], WIDTH):
        _compute(operands, 1, column, number, results)
    x, y = operands[1], operands[2]
    expected = [x + y, x - y, np.maximum(x, y), x & ~y, np.full_like(x, number)]
    assert (results == expected).all()


@given(st.integers(1, 5), st.integers(1, 100))
def test_rows_of_lanes_begin_with_lines_of_the_cache(rows, columns):
    lanes = zeros(rows, columns)
    assert lanes.shape == (rows, -(-columns // WIDTH) * WIDTH)
    assert lanes.flags.c_contiguous
    assert lanes.dtype == np.int32
    assert not lanes.any()
    assert lanes.ctypes.data % 64 == 0
