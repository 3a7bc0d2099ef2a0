"""Vector operations against numpy, on lengths around the chunk size, by any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from fuda.optimize.vectors import VectorArithmetic

CHUNK = 1 << 16


@pytest.mark.parametrize("size", [0, 1, 7, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_operations(size):
    random = np.random.default_rng(size)
    a, b, c, out = random.normal(size=(4, size))
    results = []
    for n_jobs in (1, 2, 3):
        vectors = VectorArithmetic(size, n_jobs)
        assert vectors.dot(a, b) == pytest.approx(a @ b, abs=1e-9)
        assert vectors.norm(a) == pytest.approx(np.linalg.norm(a))
        np.testing.assert_allclose(vectors.move(a, 0.3, b, out), a + 0.3 * b, atol=1e-15)
        np.testing.assert_array_equal(vectors.move(a, -1.0, b, out), a - b)
        assert vectors.multiply(a, b, out) == pytest.approx((a * b) @ (a * b), abs=1e-9)
        np.testing.assert_array_equal(out, a * b)
        for product in (a.copy(), a.astype(np.float32)):
            expected = (product * b).astype(product.dtype)
            vectors.multiply_by(product, b)
            np.testing.assert_array_equal(product, expected)
        assert vectors.scale(a, -0.5, b, out) == pytest.approx(a @ b, abs=1e-9)
        np.testing.assert_array_equal(out, -0.5 * a)
        np.testing.assert_array_equal(vectors.copy(a, out), a)
        gradient = c.copy()
        assert vectors.regularize(gradient, a, 0.7, b) is gradient
        np.testing.assert_allclose(gradient, (c + 0.7 * a) * b, atol=1e-14)
        results.append((vectors.dot(a, b), gradient.tobytes()))
    assert results[0] == results[1] == results[2]
