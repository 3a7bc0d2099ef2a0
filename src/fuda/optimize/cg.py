"""Nonlinear conjugate gradient, the optimizer of the Markov-loss paper.

d' = −g' + β d with the Polak–Ribière β = max(0, g'·(g' − g) / g·g), restarted from −g' where the
direction would not descend.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fuda.optimize.line_search import wolfe
from fuda.optimize.result import Function, OnIteration, Point, Result, Watch
from fuda.optimize.vectors import Vectors


def conjugate_gradient(
    function: Function, x: np.ndarray, tol: float = 1e-5, max_iter: int = 1000,
    on_iteration: OnIteration | None = None, n_jobs: int | None = None,
) -> Result:  # fmt: skip
    """Minimize a smooth function.

    Ctrl-C ends it after the last whole iteration, unless it is part of a larger training.

    Parameters
    ----------
    function : callable
        From a point to value and gradient there.
    x : ndarray
        The starting point.
    tol : float
        The relative size of gradient and improvement at which to stop.
    max_iter : int
        The largest number of iterations.
    on_iteration : callable or None
        Called after every iteration; a true result stops the minimization.
    n_jobs : int or None
        The number of threads; None is all cores.

    Returns
    -------
    Result
        The last point, and why it is the last.
    """
    watch = Watch(tol, max_iter, on_iteration)
    function = watch.counted(function)
    vectors = Vectors(len(x), n_jobs)
    x = np.array(x, dtype=np.float64)
    value, gradient = function(x)
    return watch.follow(_points(function, x, value, gradient.copy(), vectors), x)


def _points(
    function: Function, x: np.ndarray, value: float, gradient: np.ndarray, vectors: Vectors
) -> Iterator[Point]:
    """The start, and the point after each iteration, until no step improves the objective."""
    direction = -gradient
    step = 1.0 / max(vectors.norm(gradient), 1e-300)
    while True:
        yield x, value, vectors.norm(gradient), vectors.norm(x)
        slope = vectors.dot(gradient, direction)
        if not slope < 0:
            direction, slope = -gradient, -vectors.dot(gradient, gradient)
        # a sharper curvature condition than quasi-Newton methods need keeps directions conjugate
        found = wolfe(function, x, value, slope, direction, step, vectors, curvature=0.2)
        if found is None:
            return
        x, value, new_gradient, step = found
        change = vectors.dot(new_gradient, new_gradient) - vectors.dot(new_gradient, gradient)
        direction *= max(0.0, change / vectors.dot(gradient, gradient))
        direction -= new_gradient
        new_slope = vectors.dot(new_gradient, direction)
        step *= slope / new_slope if new_slope < 0 else 1.0  # the same first decrease as last time
        gradient = new_gradient
