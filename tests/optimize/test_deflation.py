"""The largest eigenvalues, the coordinates made of them, and L-BFGS in these."""

from __future__ import annotations

import numpy as np
import pytest

from fuda import DataError
from fuda.optimize import Lbfgs
from fuda.optimize.deflation import Deflation, Spectrum, leading

SIZE = 60


def hessian(seed: int, large: int = 8) -> np.ndarray:
    """A matrix with some eigenvalues from 100 to 10,000 and all others from 1 to 10."""
    random = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(random.normal(size=(SIZE, SIZE)))
    values = np.concatenate([np.geomspace(1e4, 1e2, large), np.linspace(10, 1, SIZE - large)])
    return basis @ np.diag(values) @ basis.T


def deflation(matrix: np.ndarray, scale: np.ndarray, n_jobs: int | None = 1, count: int = 8) -> Deflation:
    """The coordinates by the exact eigenvectors of a Hessian in w = z / scale."""

    def measure(w: np.ndarray) -> Spectrum:
        values, vectors = np.linalg.eigh(matrix)
        values, vectors = values[::-1], vectors.T[::-1].astype(np.float32)
        return Spectrum(np.arange(len(matrix)), np.sqrt(values[count] / values[:count]), vectors[:count])

    return Deflation(scale, measure, n_jobs)


def quartic(matrix: np.ndarray, scale: np.ndarray):
    """½ wᵀHw + Σ w⁴ − b·w of z = w · scale."""
    b = np.random.default_rng(3).normal(size=len(matrix)) * 100

    def function(z):
        w = z / scale
        return float(0.5 * w @ matrix @ w + (w**4).sum() - b @ w), (matrix @ w + 4 * w**3 - b) / scale

    return function


def scales(seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 3.0, SIZE)


def test_the_largest_eigenvalues():
    matrix = hessian(0)
    values, vectors = leading(lambda v: matrix @ v, np.ones(SIZE), steps=30, count=8)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:8], rtol=1e-3)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(8), atol=1e-4)
    np.testing.assert_allclose(matrix @ vectors.T, vectors.T * values, atol=0.02 * values[0])


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_a_matrix_of_low_rank_ends_it_early(rank):
    random = np.random.default_rng(1)
    part = random.normal(size=(SIZE, rank))
    products = []

    def product(v):
        products.append(v)
        return part @ (part.T @ v)

    values, vectors = leading(product, np.ones(SIZE), steps=40, count=20)
    assert len(products) <= rank + 2
    expected = np.sort(np.linalg.eigvalsh(part.T @ part))[::-1]
    np.testing.assert_allclose(values[:rank], expected, rtol=1e-4)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(len(values)), atol=1e-4)


@pytest.mark.parametrize("unit", [2.0**-200, 2.0**200])
def test_eigenvalues_may_be_beyond_single_precision(unit):
    matrix = np.diag([1.0, 9.0, 4.0])
    values, vectors = leading(lambda v: matrix @ v, np.ones(3), steps=3, count=2)
    scaled_values, same_vectors = leading(lambda v: unit * matrix @ v, np.ones(3), steps=3, count=2)
    assert scaled_values.tolist() == (unit * values).tolist()
    assert same_vectors.tolist() == vectors.tolist()


def test_curvatures_become_level():
    """The Hessian by u has none of the large eigenvalues; steps and gradients fit together."""
    matrix, scale = hessian(4), scales()
    change = deflation(matrix, scale)
    change.begin(np.zeros(SIZE))
    to_z = np.stack([change.step(unit.copy()) for unit in np.eye(SIZE)], axis=1)
    by_z = matrix / np.outer(scale, scale)
    levelled = np.linalg.eigvalsh(to_z.T @ by_z @ to_z)
    assert levelled.max() == pytest.approx(10.0, rel=1e-3)
    back = np.stack([change.step_back(unit.copy()) for unit in np.eye(SIZE)], axis=1)
    np.testing.assert_allclose(back @ to_z, np.eye(SIZE), atol=1e-4)
    gradient = np.random.default_rng(5).normal(size=SIZE)
    np.testing.assert_allclose(change.gradient(gradient, np.empty(SIZE)), to_z.T @ gradient, atol=1e-5)


def test_the_same_minimum_in_fewer_iterations():
    matrix, scale = hessian(6), scales()
    function = quartic(matrix, scale)
    plain = Lbfgs(function, np.zeros(SIZE)).minimize(tol=1e-8)
    faster = Lbfgs(function, np.zeros(SIZE), deflation=deflation(matrix, scale)).minimize(tol=1e-8)
    assert len(plain.history) > 40
    assert len(faster.history) < 0.8 * len(plain.history)
    assert faster.value == pytest.approx(plain.value, rel=1e-7)
    np.testing.assert_allclose(faster.x, plain.x, atol=1e-2)
    same = [p.objective for p in plain.history[:22]]
    assert [p.objective for p in faster.history[:22]] == same


@pytest.mark.parametrize("stop", [5, 21, 22, 23, 26])
def test_resumed_from_its_state_it_ends_bit_for_bit_the_same(stop):
    matrix, scale = hessian(7), scales()
    function, states = quartic(matrix, scale), []

    def minimizer():
        return Lbfgs(function, np.zeros(SIZE), memory=4, deflation=deflation(matrix, scale))

    uninterrupted, killed, resumed = minimizer().minimize(tol=1e-8), minimizer(), minimizer()

    def kill(progress):
        if progress.iteration == stop:
            values, arrays = killed.state()
            states.append((values, {name: np.array(part) for name, part in arrays.items()}))
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        killed.minimize(tol=1e-8, on_iteration=kill)
    resumed.restore(*states[0])
    result = resumed.minimize(tol=1e-8)
    assert len(uninterrupted.history) > 26
    np.testing.assert_array_equal(result.x, uninterrupted.x)
    assert [p.objective for p in result.history] == [p.objective for p in uninterrupted.history]


def test_threads_change_nothing():
    random = np.random.default_rng(8)
    size = 150_000  # more than one chunk
    h, scale = np.geomspace(1, 1e4, size), random.uniform(0.5, 2.0, size)
    at = np.arange(size - 50, size)

    def measure(w):
        return Spectrum(at, np.full(50, 0.5), np.eye(50, dtype=np.float32))

    def function(z):
        return float(0.5 * h @ (z - 1) ** 2), h * (z - 1)

    points = []
    for n in (1, 2, 3):
        minimizer = Lbfgs(function, np.zeros(size), n_jobs=n, deflation=Deflation(scale, measure, n))
        points.append(minimizer.minimize(tol=1e-9, max_iter=30).x)
    np.testing.assert_array_equal(points[0], points[1])
    np.testing.assert_array_equal(points[0], points[2])


@pytest.mark.parametrize(
    "change",
    [
        {"at": np.arange(3)},
        {"at": np.full(SIZE, SIZE)},
        {"at": np.full(SIZE, -1)},
        {"ratios": np.full(8, 1.5)},
        {"ratios": np.zeros(8)},
        {"ratios": np.ones(3)},
        {"vectors": np.zeros((8, SIZE))},
    ],
    ids=str,
)
def test_a_state_that_does_not_fit(change):
    matrix, scale = hessian(9), scales()
    before, after = deflation(matrix, scale), deflation(matrix, scale)
    before.begin(np.zeros(SIZE))
    after.restore(before.state())
    np.testing.assert_array_equal(after.spectrum.vectors, before.spectrum.vectors)
    with pytest.raises(DataError, match="fit"):
        after.restore(before.state() | change)
