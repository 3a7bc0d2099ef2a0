"""Curvatures: sums over edges one by one, and half precision as NumPy makes it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuda.data.structures import as_structures
from fuda.data.window_encoding import WindowEncoder
from fuda.training.crf_curvature import STORED, dequantized, diagonal_at, quantized
from fuda.training.crf_loss import Weights


@given(st.lists(st.floats(0, 1e38), max_size=40))
def test_curvatures_are_stored_in_half_precision(numbers):
    curvature = np.array(numbers)
    expected = np.minimum(np.log2(1 + curvature), 128).astype(STORED)
    assert quantized(curvature).tolist() == expected.tolist()


def test_every_number_of_half_precision_is_stored_as_it_is():
    bits = np.arange(np.array(7.0, dtype=STORED).view(np.uint16) + 1, dtype=np.uint16)
    smaller = dequantized(bits.view(STORED))
    between = (smaller[1:] + smaller[:-1]) / 2
    for numbers in (smaller, between, np.nextafter(between, 0), np.nextafter(between, 1)):
        assert (quantized(numbers) == np.log2(1 + numbers).astype(STORED)).all()


def test_the_curvature_of_pairs_is_a_sum_over_edges():
    encoded = WindowEncoder("word", 0).fit(as_structures([["a", "b", "a"], ["b"], ["b", "b"]]))
    weights = Weights.of(encoded, 2)
    q = np.random.default_rng(0).random(6)
    p, counted = np.column_stack([q, 1 - q]), np.array([1.0, 1, 1, 0, 2, 2])
    tables = [table.matrix.T for table in encoded.tables]
    _, pairs, _ = weights.views(diagonal_at(encoded, weights, p, counted, tables))
    of_edges = [counted[t] * np.outer(p[t - 1], p[t]) * (1 - np.outer(p[t - 1], p[t])) for t in (1, 2, 5)]
    np.testing.assert_allclose(pairs, sum(of_edges))


def test_what_rounding_leaves_below_0_is_stored_as_0():
    assert quantized(np.array([-1e-16, -1e-7])).tolist() == [0, 0]
