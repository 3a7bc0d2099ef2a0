"""A loss with its L2 term, in coordinates that balance the curvature of its variables."""

from __future__ import annotations

import numpy as np

from fuda.optimize.result import Function
from fuda.optimize.vectors import VectorArithmetic


def l2_regularized(loss: Function, l2: float, scale: np.ndarray, n_jobs: int | None = None) -> Function:
    """Return z ↦ loss(w) + l2 ‖w‖² at w = z / scale, with the gradient in z.

    Parameters
    ----------
    loss : callable
        From weights w to loss and gradient there.
    l2 : float
        The factor of ‖w‖².
    scale : ndarray
        Per weight, what it is multiplied by.
    n_jobs : int or None
        The number of threads; None is all cores.

    Returns
    -------
    callable
        From z to value and gradient there.

    Examples
    --------
    >>> scale = np.array([1.0, 2.0])
    >>> function = l2_regularized(lambda w: (float(w.sum()), np.ones(2)), 0.5, scale)
    >>> function(np.array([1.0, 4.0]))
    (5.5, array([2. , 1.5]))
    """
    vectors = VectorArithmetic(len(scale), n_jobs)
    factors = 1.0 / scale
    w = np.empty_like(scale)

    def function(z: np.ndarray) -> tuple[float, np.ndarray]:
        square = vectors.multiply(z, factors, w)
        value, gradient = loss(w)
        return value + l2 * square, vectors.regularize(gradient, w, 2 * l2, factors)

    return function
