"""A step along a direction that satisfies the weak Wolfe conditions

    f(x + s d) ≤ f(x) + c₁ s g·d      and      g(x + s d)·d ≥ c₂ g·d,

by interpolation between the bounds found so far.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fuda.optimize.result import Function

DECREASE = 1e-4
_MOST_TRIALS = 30


def wolfe(
    function: Function,
    x: np.ndarray,
    value: float,
    slope: float,
    direction: np.ndarray,
    step: float,
    curvature: float = 0.9,
    count: Callable[[], None] = lambda: None,
) -> tuple[np.ndarray, float, np.ndarray, float] | None:
    """The new point, its value and gradient, and the step; None where no step improves, at the limit of precision."""
    low, high = 0.0, np.inf
    best = None
    for _ in range(_MOST_TRIALS):
        point = x + step * direction
        new_value, gradient = function(point)
        count()
        new_slope = float(gradient @ direction)
        if not new_value <= value + DECREASE * step * slope:
            high = step
            excess = new_value - value - slope * step
            guess = -slope * step * step / (2 * excess) if np.isfinite(excess) and excess > 0 else 0.1 * step
            step = low + min(max(guess - low, 0.1 * (high - low)), 0.6 * (high - low)) if low else guess
            step = min(max(step, 0.05 * high), 0.6 * high) if not low else step
            continue
        best = point, new_value, gradient, step
        if new_slope >= curvature * slope:
            return best
        low = step
        if high < np.inf:
            step = (low + high) / 2
        else:
            guess = step * slope / (slope - new_slope) if new_slope > slope else 4 * step
            step = min(max(guess, 1.5 * step), 5 * step)
        if high - low < 1e-12 * high:
            break
    return best
