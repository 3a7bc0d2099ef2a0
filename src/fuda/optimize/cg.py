"""Nonlinear conjugate gradient, the optimizer of the Markov-loss paper.

d' = −g' + β d with the Polak–Ribière β = max(0, g'·(g' − g) / g·g), restarted from −g' where the
direction would not descend.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fuda.checks import check_arrays
from fuda.optimize.line_search import wolfe
from fuda.optimize.result import Function, Minimizer, Point, Watch
from fuda.optimize.vectors import VectorArithmetic

# The first step is so long that it promises to decrease the value by at least this share of it:
# the search could not tell a smaller decrease from rounding.
_MIN_PROMISED_DECREASE = 1e-12


class ConjugateGradient(Minimizer):
    """Nonlinear conjugate gradient.

    Parameters
    ----------
    function : callable
        From a point to value and gradient there.
    x : ndarray
        The starting point.
    n_jobs : int or None
        The number of threads; None is all cores.
    """

    def __init__(self, function: Function, x: np.ndarray, n_jobs: int | None = None) -> None:
        super().__init__(x)
        self.function, self.vectors = function, VectorArithmetic(len(x), n_jobs)
        self.direction, self.step = np.zeros_like(self.x), 0.0  # of the next iteration

    def _points(self, watch: Watch) -> Iterator[Point]:
        function, vectors = watch.counted(self.function), self.vectors
        value, gradient = function(self.x)
        gradient = gradient.copy()
        if not self.history:
            self.direction, self.step = -gradient, 1.0 / max(vectors.norm(gradient), 1e-300)
        while True:
            yield self.x, value, vectors.norm(gradient), vectors.norm(self.x)
            direction, slope = self.direction, vectors.dot(gradient, self.direction)
            if not slope < 0:
                direction, slope = -gradient, -vectors.dot(gradient, gradient)
            # a sharper curvature condition than quasi-Newton methods need keeps
            # directions conjugate
            step = max(self.step, _MIN_PROMISED_DECREASE * abs(value) / max(-slope, 1e-300))
            accepted = wolfe(function, self.x, value, slope, direction, step, vectors, curvature=0.2)
            if accepted is None:
                return
            x, value, new_gradient, step = accepted
            change = vectors.dot(new_gradient, new_gradient) - vectors.dot(new_gradient, gradient)
            direction *= max(0.0, change / vectors.dot(gradient, gradient))
            direction -= new_gradient
            new_slope = vectors.dot(new_gradient, direction)
            # The same first decrease as last time.
            step *= slope / new_slope if new_slope < 0 else 1.0
            self.x, self.direction, self.step, gradient = x, direction, step, new_gradient

    def state(self, final: bool = False) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what the next iteration depends on."""
        values, arrays = super().state()
        return values, arrays | {"direction": self.direction, "step": np.array([self.step])}

    def restore(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a `state()`; raises DataError where it does not fit this problem."""
        own_arrays = {name: array for name, array in arrays.items() if name in ("direction", "step")}
        super().restore(values, {name: array for name, array in arrays.items() if name not in own_arrays})
        check_arrays(own_arrays, {"direction": self.x.shape, "step": (1,)})
        self.direction, self.step = own_arrays["direction"].copy(), float(own_arrays["step"][0])
