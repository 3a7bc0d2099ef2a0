"""Pointwise mutual information and its decomposition against dense NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from fuda.vectors.ppmi import SMOOTHING, ppmi, truncated_svd


def dense_ppmi(counts: np.ndarray) -> np.ndarray:
    joint = counts / counts.sum()
    rows = joint.sum(axis=1, keepdims=True)
    columns = counts.sum(axis=0) ** SMOOTHING
    columns = columns / columns.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.maximum(np.log(joint / (rows * columns)), 0.0), nan=0.0)


@given(st.integers(0, 10_000))
def test_ppmi_is_that_of_dense_numbers(seed):
    random = np.random.default_rng(seed)
    counts = random.poisson(0.7, (random.integers(1, 8), random.integers(1, 8)))
    if not counts.sum():
        counts[0, 0] = 1
    actual = ppmi(sp.csr_matrix(counts))
    np.testing.assert_allclose(actual.toarray(), dense_ppmi(counts), atol=1e-12)


@pytest.mark.parametrize("shape", [(40, 30), (30, 40), (5, 60), (60, 3)])
def test_the_decomposition_is_that_of_dense_numbers(shape):
    random = np.random.default_rng(0)
    falling = np.exp(-0.7 * np.arange(min(shape)))  # as far apart as in practice
    left = np.linalg.qr(random.standard_normal((shape[0], min(shape))))[0]
    right = np.linalg.qr(random.standard_normal((shape[1], min(shape))))[0]
    table = (left * falling) @ right.T
    vectors, values = truncated_svd(sp.csr_matrix(table), 5)
    u, s, _ = np.linalg.svd(table)
    size = min(5, *shape)
    assert vectors.shape == (shape[0], size)
    np.testing.assert_allclose(values, s[:size], rtol=1e-9)
    np.testing.assert_allclose(np.abs((u[:, :size] * vectors).sum(axis=0)), 1.0, rtol=1e-7)
    assert (vectors[np.abs(vectors).argmax(axis=0), np.arange(size)] > 0).all()
