"""AdaGrad comes near the minimum of a sum, and never far from a number."""

from __future__ import annotations

import numpy as np
import pytest

from fuda.optimize import AdaGrad
from minimization_cases import logistic


def parts(count: int):
    """Logistic regressions over parts of the data, and the minimum of their sum."""
    functions = [logistic(seed, rows=40, size=6, l2=0.2)[0] for seed in range(count)]

    def whole(x):
        return sum(function(x)[0] for function in functions)

    import scipy.optimize

    return functions, whole, scipy.optimize.minimize(whole, np.zeros(6)).fun


def test_it_gets_near():
    functions, total, best = parts(5)
    start = total(np.zeros(6))
    result = AdaGrad(functions, np.zeros(6), seed=0).minimize(tol=0, max_iter=40)
    assert total(result.x) - best < 0.02 * (start - best)
    assert result.history[-1].objective < result.history[0].objective
    assert len(result.history) == 40


def test_the_seed_decides():
    functions, _, _ = parts(4)
    one, same, other = (AdaGrad(functions, np.zeros(6), seed=s).minimize(max_iter=3).x for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    state = np.random.RandomState(1)
    np.testing.assert_array_equal(AdaGrad(functions, np.zeros(6), seed=state).minimize(max_iter=3).x, one)


def test_it_stops_where_rounds_no_longer_improve():
    functions, _, _ = parts(3)
    result = AdaGrad(functions, np.zeros(6), seed=0).minimize(tol=0.01, max_iter=500)
    assert result.converged
    assert result.reason == "the objective stopped falling"
    assert len(result.history) < 500
    result = AdaGrad(functions, np.zeros(6), seed=0).minimize(tol=0, max_iter=2)
    assert not result.converged
    assert result.reason == "max_iter=2 was reached"


def test_the_start_is_left_alone_and_flat_coordinates_stay():
    start = np.array([3.0, 7.0])

    def function(x):
        return float(x[0] ** 2), np.array([2 * x[0], 0.0])

    result = AdaGrad([function], start).minimize(max_iter=50, tol=0)
    assert start.tolist() == [3.0, 7.0]
    assert result.x[1] == 7.0
    assert 0 <= result.x[0] < 3.0


def test_interrupted():
    functions, _, _ = parts(3)

    def interrupt(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    result = AdaGrad(functions, np.zeros(6)).minimize(tol=0, on_iteration=interrupt)
    assert result.reason == "it was interrupted"
    assert not result.converged
    assert np.isfinite(result.x).all()
    assert result.value == pytest.approx(result.history[1].objective)
