"""A step along a direction that satisfies the weak Wolfe conditions

    f(x + s d) ≤ f(x) + c₁ s g·d      and      g(x + s d)·d ≥ c₂ g·d,

by interpolation between the bounds found so far.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fuda.optimize.result import Function
from fuda.optimize.vectors import Vectors

DECREASE = 1e-4
_MOST_TRIALS = 30


def wolfe(
    function: Function,
    x: np.ndarray,
    value: float,
    slope: float,
    direction: np.ndarray,
    step: float,
    vectors: Vectors,
    curvature: float = 0.9,
    count: Callable[[], None] = lambda: None,
    spare: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, float, np.ndarray, float] | None:
    """The new point, its value and gradient, and the step; None where no step improves any more.

    Point and gradient are in the arrays `spare`, if given and the first good step will do.
    """
    low, high = 0.0, np.inf
    best = None
    point, kept = spare or (np.empty_like(x), np.empty_like(x))
    for _ in range(_MOST_TRIALS):
        vectors.move(x, step, direction, point)
        new_value, gradient = function(point)
        count()
        if new_value <= value + DECREASE * step * slope:
            best = point, new_value, vectors.copy(gradient, kept), step
            new_slope = vectors.dot(gradient, direction)
            if new_slope >= curvature * slope:
                return best
            point, kept = np.empty_like(x), np.empty_like(x)  # a longer step may fail: what is found stays
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
