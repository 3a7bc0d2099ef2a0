"""AdaGrad over the parts of a sum, for a fast start: min Σ_j f_j(x).

Each step uses one part f_j, in random order: x ← x − η g_j / √(Σ g²), coordinate by coordinate. It
reaches the neighbourhood of the minimum in a few rounds over the data, and never the minimum
itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fuda.optimize.result import Function, OnIteration, Point, Result, Watch


def adagrad(
    parts: Sequence[Function], x: np.ndarray, rate: float = 0.5, tol: float = 1e-3, max_iter: int = 10,
    seed: int | np.random.RandomState | None = None, on_iteration: OnIteration | None = None,
) -> Result:  # fmt: skip
    """Minimize a sum of functions.

    Parameters
    ----------
    parts : sequence of callables
        The functions f_j, each from a point to its value and gradient there.
    x : ndarray
        The starting point.
    rate : float
        η, the learning rate.
    tol : float
        The relative size of gradient and improvement at which to stop.
    max_iter : int
        The largest number of rounds over the parts.
    seed : int, RandomState or None
        Determines the order of the parts.
    on_iteration : callable or None
        Called after every round; a true result stops the minimization.

    Returns
    -------
    Result
        Its objectives are the sums of the values computed during a round, while x moves.

    References
    ----------
    Duchi, Hazan & Singer (2011), "Adaptive subgradient methods for online learning and stochastic
    optimization".
    """
    random = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
    watch = Watch(tol, max_iter, on_iteration)
    x = np.array(x, dtype=np.float64)

    def points() -> Iterator[Point]:
        """The start, and the point after each round."""
        squares = np.full(len(x), 1e-8)
        yield x, np.inf, np.inf, 0.0
        while True:
            total, slope = 0.0, np.zeros(len(x))
            for j in random.permutation(len(parts)):
                value, gradient = parts[j](x)
                total += value
                slope += gradient
                squares += gradient * gradient
                x[:] -= rate * gradient / np.sqrt(squares)
            watch.evaluations += 1
            yield x, total, float(np.linalg.norm(slope)), float(np.linalg.norm(x))

    return watch.follow(points(), x)
