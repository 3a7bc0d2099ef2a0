"""AdaGrad (Duchi, Hazan & Singer 2011) over parts of a sum, for a fast start: min Σ_j f_j(x).

Each step takes one part f_j in random order: x ← x − η g_j / √(Σ g²), coordinate by coordinate. It reaches
the neighbourhood of the minimum in a few rounds over the data and never the minimum itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuda.interrupts import is_inner
from fuda.optimize.result import INTERRUPTED, Function, OnIteration, Result, Watch


def adagrad(
    parts: Sequence[Function],
    x: np.ndarray,
    rate: float = 0.5,
    tol: float = 1e-3,
    max_iter: int = 10,
    seed: int | np.random.RandomState | None = None,
    on_iteration: OnIteration | None = None,
) -> Result:
    """Minimize Σ_j parts[j](x) in at most `max_iter` rounds, whose values are the sums seen on the way."""
    random = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
    watch = Watch(tol, max_iter, on_iteration)
    x = np.array(x, dtype=np.float64)
    squares = np.full(len(x), 1e-8)
    converged, reason = False, ""
    try:
        while True:
            total, slope = 0.0, np.zeros(len(x))
            for j in random.permutation(len(parts)):
                value, gradient = parts[j](x)
                total += value
                slope += gradient
                squares += gradient * gradient
                x -= rate * gradient / np.sqrt(squares)
            watch.evaluations += 1
            gradient_norm = float(np.linalg.norm(slope))
            watch.record(total, gradient_norm)
            stop = watch.verdict(float(np.linalg.norm(x)), total, gradient_norm)
            if stop:
                converged, reason = stop
                break
    except KeyboardInterrupt:
        if is_inner():
            raise
        reason = INTERRUPTED
    return Result(x, converged, reason, watch.history)
