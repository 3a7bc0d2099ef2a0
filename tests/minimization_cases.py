"""Functions to minimize, each a point ↦ (value, gradient), with a minimum known in another way."""

from __future__ import annotations

import numpy as np
import scipy.optimize


def quadratic(seed: int, size: int, condition: float):
    """½ xᵀHx − b·x with eigenvalues from 1 to `condition`, and its minimum."""
    random = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(random.normal(size=(size, size)))
    hessian = basis @ np.diag(np.geomspace(1.0, condition, size)) @ basis.T
    b = random.normal(size=size)

    def function(x):
        return float(0.5 * x @ hessian @ x - b @ x), hessian @ x - b

    return function, np.linalg.solve(hessian, b)


def rosenbrock(x):
    """A curved valley; the minimum is 0 at (1, …, 1)."""
    return float(scipy.optimize.rosen(x)), scipy.optimize.rosen_der(x)


def logistic(seed: int, rows: int = 80, size: int = 15, l2: float = 0.1, scale: float = 1.0):
    """Logistic regression with an L2 term, and its minimum by scipy; `scale` spreads features."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, size)) * np.geomspace(1.0, scale, size)
    signs = np.sign(features @ random.normal(size=size) + random.normal(size=rows))
    gradient = np.empty(size)  # handed out again at every call, as the losses do

    def function(x):
        margins = signs * (features @ x)
        np.dot(features.T, -signs * np.exp(-np.logaddexp(0.0, margins)), out=gradient)
        gradient[:] += 2 * l2 * x
        return float(np.logaddexp(0.0, -margins).sum() + l2 * x @ x), gradient

    best = scipy.optimize.minimize(
        lambda x: (function(x)[0], function(x)[1].copy()),
        np.zeros(size),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-8},
    )
    return function, best.x
