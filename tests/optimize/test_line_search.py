"""Steps satisfy the weak Wolfe conditions, from first guesses far too short and far too long."""

from __future__ import annotations

import numpy as np
import pytest

from fuda.optimize.line_search import DECREASE, wolfe
from fuda.optimize.result import Watch
from fuda.optimize.vectors import VectorArithmetic
from minimization_cases import logistic, rosenbrock


@pytest.mark.parametrize("first", [1e-8, 1e-3, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("curvature", [0.2, 0.9])
@pytest.mark.parametrize("function", [rosenbrock, logistic(0)[0]])
def test_conditions(function, curvature, first):
    x = np.linspace(-1.0, 2.0, 15)
    value, gradient = function(x)
    direction = -gradient.copy()
    slope = float(gradient @ direction)
    watch = Watch(1e-3, 100, None)
    end = wolfe(watch.counted(function), x, value, slope, direction, first, VectorArithmetic(15), curvature)
    assert end is not None
    point, new_value, new_gradient, step = end
    np.testing.assert_allclose(point, x + step * direction)
    assert new_value <= value + DECREASE * step * slope
    assert new_gradient @ direction >= curvature * slope
    assert (new_value, *new_gradient) == (function(point)[0], *function(point)[1])
    assert 1 <= watch.evaluations <= 30


def test_no_step_improves():
    """The slope given is wrong: all along the direction the function rises."""
    x = np.ones(3)
    assert wolfe(lambda x: (float(x @ x), 2 * x), x, 3.0 - 1e-9, -1.0, x, 1.0, VectorArithmetic(3)) is None


def test_values_that_are_no_numbers_are_stepped_back_from():
    def function(x):
        return (float("nan"), x) if x[0] > 0.5 else (float((x[0] - 0.4) ** 2), 2 * (x - 0.4))

    end = wolfe(function, np.zeros(1), 0.16, -0.8, np.ones(1), 8.0, VectorArithmetic(1))
    assert end is not None
    assert 0 < end[0][0] <= 0.5
