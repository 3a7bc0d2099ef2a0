"""L-BFGS and OWL-QN: known minima, optimality conditions, and a stop that leaves no trace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuda import CRF
from fuda.datasets import load_product_usage
from fuda.optimize import Lbfgs
from minimization_cases import logistic, quadratic, rosenbrock


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("size", [1, 5, 60])
def test_quadratics(size, condition):
    function, best = quadratic(0, size, condition)
    result = Lbfgs(function, np.ones(size)).minimize(tol=1e-10, max_iter=2000)
    assert result.converged
    np.testing.assert_allclose(result.x, best, atol=1e-4)
    assert result.value == pytest.approx(function(best)[0], rel=1e-9)


@pytest.mark.parametrize("memory", [1, 3, 10])
@pytest.mark.parametrize("size", [2, 20])
def test_rosenbrock(size, memory):
    result = Lbfgs(rosenbrock, np.full(size, -1.2), memory=memory).minimize(tol=1e-9, max_iter=3000)
    assert result.converged
    assert result.value < 1e-8


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_logistic_regression(scale):
    function, best = logistic(1, scale=scale)
    result = Lbfgs(function, np.zeros(len(best))).minimize(tol=1e-9)
    assert result.converged
    assert result.value == pytest.approx(function(best)[0], rel=1e-9)
    np.testing.assert_allclose(result.x, best, rtol=1e-3, atol=1e-4)


def test_it_only_descends():
    for l1 in (None, np.full(15, 0.5)):
        function, _ = logistic(2)
        values = [step.objective for step in Lbfgs(function, np.full(15, 3.0), l1).minimize(tol=1e-9).history]
        assert (np.diff(values) <= 0).all()


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("l1", [0.01, 0.5, 3.0, 1e4])
def test_l1_optimality(l1, scale):
    """At a minimum of f + l1 ‖x‖₁ the slope of f is −l1 sign(x), or at most l1 where x = 0."""
    function, _ = logistic(3, scale=scale)
    result = Lbfgs(function, np.ones(15), np.full(15, l1)).minimize(tol=1e-9, max_iter=3000)
    assert result.converged
    slope = function(result.x)[1]
    zero = result.x == 0
    np.testing.assert_allclose(slope[~zero], -l1 * np.sign(result.x[~zero]), atol=1e-3 * max(1.0, l1))
    assert (np.abs(slope[zero]) <= l1 * (1 + 1e-9)).all()
    if l1 == 1e4:
        assert zero.all()
    assert result.value == pytest.approx(function(result.x)[0] + l1 * np.abs(result.x).sum())


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_lasso_with_a_penalty_for_each_coordinate(seed, size):
    """Separable: min Σ ½ h (x − c)² + l1 |x| is the soft threshold of c at l1 / h."""
    random = np.random.default_rng(seed)
    h, c, l1 = random.uniform(0.1, 10, size), random.normal(size=size), random.uniform(0, 3, size)
    l1[random.random(size) < 0.3] = 0.0

    def function(x):
        return float(0.5 * h @ (x - c) ** 2), h * (x - c)

    result = Lbfgs(function, random.normal(size=size), l1).minimize(tol=1e-10, max_iter=2000)
    np.testing.assert_allclose(result.x, np.sign(c) * np.maximum(np.abs(c) - l1 / h, 0), atol=1e-5)


def test_l1_against_bound_constrained_scipy():
    """x = p − q with p, q ≥ 0 makes the problem smooth, for scipy's L-BFGS-B."""
    import scipy.optimize

    function, _ = logistic(4)

    def split(pq):
        value, gradient = function(pq[:15] - pq[15:])
        return value + 0.7 * pq.sum(), np.concatenate([gradient + 0.7, 0.7 - gradient])

    expected = scipy.optimize.minimize(
        split, np.zeros(30), jac=True, bounds=[(0, None)] * 30, options={"ftol": 1e-15, "gtol": 1e-9}
    )
    result = Lbfgs(function, np.zeros(15), np.full(15, 0.7)).minimize(tol=1e-10)
    assert result.value == pytest.approx(expected.fun, rel=1e-9)
    np.testing.assert_allclose(result.x, expected.x[:15] - expected.x[15:], atol=1e-4)


@pytest.mark.parametrize("l1", [None, 0.5])
@pytest.mark.parametrize("stop", [1, 2, 7, 14])
def test_resumed_from_its_state_it_ends_bit_for_bit_the_same(stop, l1):
    """Stopped by an error after any iteration, taken up by another minimizer."""
    penalties = None if l1 is None else np.full(15, l1)
    uninterrupted = Lbfgs(logistic(5)[0], np.zeros(15), penalties, memory=4).minimize(tol=1e-9)
    assert len(uninterrupted.history) > 14
    killed = Lbfgs(logistic(5)[0], np.zeros(15), penalties, memory=4)
    states = []

    def kill(progress):
        if progress.iteration == stop:
            values, arrays = killed.state()
            states.append((values, {name: np.array(part) for name, part in arrays.items()}))
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        killed.minimize(tol=1e-9, on_iteration=kill)
    resumed = Lbfgs(logistic(5)[0], np.zeros(15), penalties, memory=4)
    resumed.restore(*states[0])
    result = resumed.minimize(tol=1e-9)
    np.testing.assert_array_equal(result.x, uninterrupted.x)
    assert result.reason == uninterrupted.reason
    steps = [(p.iteration, p.evaluations, p.objective, p.gradient_norm) for p in uninterrupted.history]
    assert [(p.iteration, p.evaluations, p.objective, p.gradient_norm) for p in result.history] == steps
    seconds = [p.seconds for p in result.history]
    assert seconds == sorted(seconds)


def test_threads_change_nothing():
    random = np.random.default_rng(6)
    size = 150_000  # more than one chunk
    h, c = random.uniform(0.5, 5, size), random.normal(size=size)

    def function(x):
        return float(0.5 * h @ (x - c) ** 2), h * (x - c)

    results = [Lbfgs(function, np.zeros(size), n_jobs=n).minimize(tol=1e-7, max_iter=12).x for n in (1, 2, 3)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_interrupted_it_returns_the_last_whole_iteration():
    function, _ = logistic(7)
    points = []
    minimizer = Lbfgs(function, np.zeros(15))

    def interrupt(progress):
        points.append(minimizer.x.copy())
        if progress.iteration == 4:
            raise KeyboardInterrupt

    result = minimizer.minimize(tol=1e-9, on_iteration=interrupt)
    assert not result.converged
    assert result.reason == "it was interrupted"
    assert len(result.history) == 4
    np.testing.assert_array_equal(result.x, points[-1])
    assert function(result.x)[0] == result.value


def test_interrupted_in_the_function():
    function, _ = logistic(7)
    calls = []

    def interrupted(x):
        calls.append(x.copy())
        if len(calls) == 6:
            raise KeyboardInterrupt
        return function(x)

    result = Lbfgs(interrupted, np.zeros(15)).minimize(tol=1e-9)
    assert result.reason == "it was interrupted"
    assert function(result.x)[0] == result.value


def test_stopped_by_max_iter_it_can_go_on():
    function, best = logistic(8)
    minimizer = Lbfgs(function, np.zeros(15))
    first = minimizer.minimize(tol=1e-9, max_iter=3)
    assert not first.converged
    assert first.reason == "max_iter=3 was reached"
    second = minimizer.minimize(tol=1e-9)
    assert second.converged
    assert [p.iteration for p in second.history] == list(range(1, len(second.history) + 1))
    np.testing.assert_allclose(second.x, best, atol=1e-4)


def test_at_the_minimum_nothing_is_done():
    function, best = quadratic(9, 5, 10.0)
    result = Lbfgs(function, best).minimize(tol=1e-6)
    assert result.converged
    assert result.history == []
    np.testing.assert_array_equal(result.x, best)


def test_regions_without_a_value_are_avoided():
    """−Σ log x + x·1 has a minimum at 1 and is NaN below 0, infinite at 0."""

    def function(x):
        with np.errstate(all="ignore"):
            return float(x.sum() - np.log(x).sum()), 1 - 1 / x

    result = Lbfgs(function, np.array([0.01, 5.0, 90.0])).minimize(tol=1e-9)
    np.testing.assert_allclose(result.x, 1.0, atol=1e-5)


def test_a_function_without_minimum_ends():
    """It falls for ever: the point runs away, and the gradient is soon small beside it."""
    result = Lbfgs(lambda x: (-float(x.sum()), -np.ones(3)), np.zeros(3)).minimize(max_iter=100)
    assert np.isfinite(result.x).all()
    assert result.reason == "the gradient vanished"


def test_curvature_that_is_not_positive_drops_the_pairs():
    """cos has concave stretches, where s·y < 0."""

    def function(x):
        return float(np.cos(x).sum() + 0.01 * x @ x), -np.sin(x) + 0.02 * x

    result = Lbfgs(function, np.array([0.1, -0.2, 7.0, 12.0])).minimize(tol=1e-9)
    assert np.linalg.norm(function(result.x)[1]) < 1e-5


def test_the_l1_term_of_a_crf_does_not_slow_it_down():
    """With all coordinates aligned with the gradient, not only zeros, it takes 359 iterations."""
    model = CRF(l1=0.3, l2=0.0, features="spelling", max_iter=300).fit(load_product_usage()[:20])
    assert model.result_.converged
    assert model.result_.value == pytest.approx(109.84, abs=0.02)
