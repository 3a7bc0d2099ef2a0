"""A step along a direction that satisfies the weak Wolfe conditions.

    f(x + s d) ≤ f(x) + c₁ s g·d      and      g(x + s d)·d ≥ c₂ g·d,

found by interpolation between the bounds on s known so far.
"""

from __future__ import annotations

import numpy as np

from fuda.optimize.result import Function
from fuda.optimize.vectors import VectorArithmetic

DECREASE = 1e-4  # c₁
_MOST_TRIALS = 30


def wolfe(
    function: Function, x: np.ndarray, value: float, slope: float, direction: np.ndarray, step: float,
    vectors: VectorArithmetic, curvature: float = 0.9, spare: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, float, np.ndarray, float] | None:  # fmt: skip
    """Search a step that satisfies the weak Wolfe conditions.

    Parameters
    ----------
    function : callable
        From a point to value and gradient there.
    x : ndarray
        The point.
    value, slope : float
        f(x), and g·d there.
    direction : ndarray
        d, a direction of descent.
    step : float
        The first step to try.
    vectors : VectorArithmetic
        Operations on vectors of this length.
    curvature : float
        c₂.
    spare : pair of ndarray, optional
        Where to write the new point and its gradient, if the first sufficient decrease will do.

    Returns
    -------
    tuple or None
        The new point, its value and gradient, and the step; None where no step improves the value.
    """
    low, high = 0.0, np.inf
    best = None
    point, gradient_buffer = spare or (np.empty_like(x), np.empty_like(x))
    for _ in range(_MOST_TRIALS):
        vectors.move(x, step, direction, point)
        new_value, gradient = function(point)
        if new_value <= value + DECREASE * step * slope:
            best = point, new_value, vectors.copy(gradient, gradient_buffer), step
            new_slope = vectors.dot(gradient, direction)
            if new_slope >= curvature * slope:
                return best
            point, gradient_buffer = np.empty_like(x), np.empty_like(x)  # a longer step may fail
            low = step
            guess = step * slope / (slope - new_slope) if new_slope > slope else 4 * step
            step = (low + high) / 2 if high < np.inf else min(max(guess, 1.5 * step), 5 * step)
        else:
            high = step
            excess = new_value - value - slope * step
            guess = -slope * step * step / (2 * excess) if np.isfinite(excess) and excess > 0 else 0.0
            step = low + min(max(guess - low, 0.1 * (high - low)), 0.6 * (high - low))
        if high - low < 1e-12 * high:
            break
    return best
