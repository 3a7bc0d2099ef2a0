"""Nonlinear conjugate gradient on functions with known minima."""

from __future__ import annotations

import numpy as np
import pytest

from fuda.optimize import ConjugateGradient, Lbfgs
from minimization_cases import logistic, quadratic, rosenbrock


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("size", [1, 5, 40])
def test_quadratics(size, condition):
    function, best = quadratic(0, size, condition)
    result = ConjugateGradient(function, np.ones(size)).minimize(tol=1e-10, max_iter=3000)
    assert result.converged
    assert result.value == pytest.approx(function(best)[0], rel=1e-8)
    np.testing.assert_allclose(result.x, best, atol=1e-4)


@pytest.mark.parametrize("step", [1e-9, 1e-15])
def test_a_first_step_too_short_to_be_seen_ends_nothing(step):
    """As after a direction along which nearly nothing could be gained."""
    function, best = quadratic(0, 40, 1e4)
    minimizer = ConjugateGradient(function, np.ones(40))
    minimizer.minimize(tol=1e-10, max_iter=300)
    minimizer.step = step
    result = minimizer.minimize(tol=1e-10, max_iter=3000)
    assert result.value == pytest.approx(function(best)[0], rel=1e-8)


def test_rosenbrock():
    result = ConjugateGradient(rosenbrock, np.full(6, -1.2)).minimize(tol=1e-9, max_iter=5000)
    assert result.converged
    assert result.value < 1e-6


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_logistic_regression(scale):
    function, best = logistic(1, scale=scale)
    result = ConjugateGradient(function, np.zeros(len(best))).minimize(tol=1e-9, max_iter=3000)
    assert result.converged
    assert result.value == pytest.approx(function(best)[0], rel=1e-8)
    assert result.value == pytest.approx(Lbfgs(function, np.zeros(15)).minimize(tol=1e-9).value, rel=1e-8)


def test_it_only_descends():
    function, _ = logistic(2)
    values = [
        step.objective for step in ConjugateGradient(function, np.full(15, 3.0)).minimize(tol=1e-9).history
    ]
    assert (np.diff(values) <= 0).all()


def test_interrupted_it_returns_the_last_whole_iteration():
    function, _ = logistic(3)

    def interrupt(progress):
        if progress.iteration == 4:
            raise KeyboardInterrupt

    result = ConjugateGradient(function, np.zeros(15)).minimize(on_iteration=interrupt)
    assert not result.converged
    assert result.reason == "it was interrupted"
    assert function(result.x)[0] == result.value


def test_max_iter():
    result = ConjugateGradient(logistic(3)[0], np.zeros(15)).minimize(tol=1e-9, max_iter=2)
    assert not result.converged
    assert result.reason == "max_iter=2 was reached"
    assert len(result.history) == 2


def test_at_the_minimum_nothing_is_done():
    function, best = quadratic(9, 5, 10.0)
    result = ConjugateGradient(function, best).minimize(tol=1e-6)
    assert result.converged
    assert result.history == []
