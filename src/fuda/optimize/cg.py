"""Nonlinear conjugate gradient, the Markov-loss paper's optimizer.

d' = −g' + β d with the Polak–Ribière β = max(0, g'·(g' − g) / g·g), which begins anew where the direction
would not descend.
"""

from __future__ import annotations

import numpy as np

from fuda.interrupts import is_inner
from fuda.optimize.line_search import wolfe
from fuda.optimize.result import INTERRUPTED, Function, OnIteration, Result, Watch
from fuda.optimize.vectors import Vectors


def conjugate_gradient(
    function: Function,
    x: np.ndarray,
    tol: float = 1e-5,
    max_iter: int = 1000,
    on_iteration: OnIteration | None = None,
    n_jobs: int | None = None,
) -> Result:
    """Minimize a smooth function. Ctrl-C ends it after the last whole iteration, unless it is part of
    larger work."""
    watch = Watch(tol, max_iter, on_iteration)
    x = np.array(x, dtype=np.float64)
    vectors = Vectors(len(x), n_jobs)
    value, gradient = function(x)
    gradient = gradient.copy()
    watch.evaluations += 1

    def count() -> None:
        watch.evaluations += 1

    direction = -gradient
    step = 1.0 / max(vectors.norm(gradient), 1e-300)
    converged, reason = False, ""
    try:
        while True:
            stop = watch.verdict(vectors.norm(x), value, vectors.norm(gradient))
            if stop:
                converged, reason = stop
                break
            slope = vectors.dot(gradient, direction)
            if not slope < 0:
                direction, slope = -gradient, -vectors.dot(gradient, gradient)
            # a sharper curvature condition than quasi-Newton methods need keeps directions conjugate
            found = wolfe(function, x, value, slope, direction, step, vectors, curvature=0.2, count=count)
            if found is None:
                converged, reason = True, "no step improves the objective any more"
                break
            x, value, new_gradient, taken = found
            change = vectors.dot(new_gradient, new_gradient) - vectors.dot(new_gradient, gradient)
            direction *= max(0.0, change / vectors.dot(gradient, gradient))
            direction -= new_gradient
            new_slope = vectors.dot(new_gradient, direction)
            # so that the first decrease will be the same as last time
            step = taken * slope / new_slope if new_slope < 0 else taken
            gradient = new_gradient
            watch.record(value, vectors.norm(gradient))
    except KeyboardInterrupt:
        if is_inner():
            raise
        reason = INTERRUPTED
    return Result(x, converged, reason, watch.history)
