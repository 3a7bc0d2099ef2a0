"""Small convex quadratic programs, solved exactly by an active-set method.

    minimize ½ αᵀQα − bᵀα   subject to   α ≥ 0,  Σα ≤ C

with Q positive semidefinite; C may be infinite. A point is optimal where, with g = Qα − b, there
is a μ ≥ 0 such that g + μ ≥ 0, α · (g + μ) = 0 and μ (C − Σα) = 0.

The method keeps a set of free variables, all others being 0, and whether the sum is at its bound.
It steps towards the minimum over the free variables, as far as the bounds allow, and fixes the
variable (or the sum) that stopped it; at the minimum it frees the variable (or the sum) with the
most negative multiplier. Every step descends.
"""

from __future__ import annotations

import numpy as np

from fuda.runtime.compiled import compiled

Array = np.ndarray
SOLVED, UNBOUNDED, UNFINISHED = 0, 1, 2
# Times the largest diagonal entry; it is added to the diagonal so that a singular Q has a factor.
_RIDGE = 1e-13


@compiled
def _solve(matrix: Array, vector: Array, ridge: float) -> None:
    """vector := (matrix + ridge)⁻¹ vector; the matrix is overwritten by its Cholesky factor."""
    size = len(vector)
    for i in range(size):
        matrix[i, i] += ridge
        for j in range(i + 1):
            x = matrix[i, j]
            for k in range(j):
                x -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = np.sqrt(max(x, ridge)) if i == j else x / matrix[j, j]
    for i in range(size):
        for j in range(i):
            vector[i] -= matrix[i, j] * vector[j]
        vector[i] /= matrix[i, i]
    for i in range(size - 1, -1, -1):
        for j in range(i + 1, size):
            vector[i] -= matrix[j, i] * vector[j]
        vector[i] /= matrix[i, i]


@compiled
def _newton(Q: Array, gradient: Array, free: Array, keep_sum: bool, ridge: float) -> Array:
    """The step to the minimum over the free variables, or (`keep_sum`) with their sum fixed."""
    index = np.flatnonzero(free)
    balance = index[0] if keep_sum else -1
    if keep_sum:
        index = index[1:]
    size = len(index)
    matrix, vector = np.empty((size, size)), np.empty(size)
    for i in range(size):
        vector[i] = -gradient[index[i]]
        for j in range(size):
            matrix[i, j] = Q[index[i], index[j]]
        if keep_sum:
            vector[i] += gradient[balance]
            for j in range(size):
                matrix[i, j] += Q[balance, balance] - Q[index[i], balance] - Q[balance, index[j]]
    _solve(matrix, vector, ridge)
    step = np.zeros(len(free))
    step[index] = vector
    if keep_sum:
        step[balance] = -vector.sum()
    return step


@compiled
def _step_length(
    Q: Array, gradient: Array, alpha: Array, step: Array, ridge: float, slack: float
) -> tuple[float, int]:
    """The length of a step, and what limits it: a variable at 0, the sum (numbered last), or −1.

    `slack` is how much the sum may still grow.
    """
    size = len(step)
    slope, curvature, growth, square = 0.0, 0.0, 0.0, 0.0
    for j in range(size):
        slope += gradient[j] * step[j]
        growth += step[j]
        square += step[j] * step[j]
        for k in range(size):
            curvature += step[j] * Q[j, k] * step[k]
    if curvature > ridge * square:
        length = -slope / curvature
    else:
        length = np.inf  # a ray; its rounding errors must not limit the step
        step[np.abs(step) < 1e-6 * np.abs(step).max()] = 0.0
    stopped = -1
    for j in range(size):
        if step[j] < 0.0 and alpha[j] <= -length * step[j]:
            length, stopped = -alpha[j] / step[j], j
    if growth > 0.0 and slack <= length * growth:
        length, stopped = max(0.0, slack / growth), size
    return length, stopped


@compiled
def _fill_gradient(Q: Array, b: Array, alpha: Array, gradient: Array) -> float:
    """The gradient Qα − b, and the size of the largest of its terms."""
    scale = 0.0
    for j in range(len(b)):
        total, largest = 0.0, abs(b[j])
        for k in range(len(b)):
            x = Q[j, k] * alpha[k]
            total += x
            largest = max(largest, abs(x))
        gradient[j] = total - b[j]
        scale = max(scale, largest)
    return scale


@compiled
def minimize(Q: Array, b: Array, bound: float, alpha: Array, tol: float = 1e-12) -> int:
    """Minimize ½ αᵀQα − bᵀα subject to α ≥ 0 and Σα ≤ bound.

    Parameters
    ----------
    Q : (n, n) ndarray
        Symmetric and positive semidefinite.
    b : (n,) ndarray
        The linear part.
    bound : float
        The largest sum; may be infinite.
    alpha : (n,) ndarray
        A feasible start, overwritten by the solution.
    tol : float
        The error allowed in the multipliers, relative to the size of b and of the gradient's
        terms.

    Returns
    -------
    int
        SOLVED; UNBOUNDED where the objective decreases without end along a ray from `alpha`;
        UNFINISHED where rounding kept the method from ending: the point is then feasible and no
        worse than the start.

    Examples
    --------
    >>> alpha = np.zeros(2)
    >>> minimize(np.eye(2), np.array([1.0, 2.0]), 1.0, alpha) == SOLVED, alpha.round(6).tolist()
    (True, [0.0, 1.0])
    """
    size = len(b)
    if size == 0:
        return SOLVED
    free = alpha > 0.0
    total = alpha.sum()
    at_bound = total >= bound * (1.0 - 1e-14)
    gradient = np.empty(size)
    ridge = 0.0
    for j in range(size):
        ridge = max(ridge, Q[j, j])
    ridge = _RIDGE * ridge if ridge > 0.0 else _RIDGE
    for _ in range(100 + 20 * size):
        scale = _fill_gradient(Q, b, alpha, gradient)
        multiplier, count = 0.0, 0  # of the bound on the sum
        if at_bound:
            for j in range(size):
                if free[j]:
                    multiplier -= gradient[j]
                    count += 1
            multiplier /= max(count, 1)
        residual = 0.0
        for j in range(size):
            if free[j]:
                residual = max(residual, abs(gradient[j] + multiplier))
        if residual > tol * scale:
            step = _newton(Q, gradient, free, at_bound, ridge)
            slack = np.inf if at_bound else bound - total
            length, stopped = _step_length(Q, gradient, alpha, step, ridge, slack)
            if length == np.inf:
                return UNBOUNDED
            for j in range(size):
                alpha[j] = max(0.0, alpha[j] + length * step[j])
            if stopped == size:
                at_bound = True
            elif stopped >= 0:
                alpha[stopped] = 0.0
                free[stopped] = False
            total = alpha.sum()
            if at_bound:
                alpha *= bound / total
                total = bound
        elif multiplier < -tol * scale:
            at_bound = False
        else:
            worst, at = -tol * scale, -1
            for j in range(size):
                if not free[j] and gradient[j] + multiplier < worst:
                    worst, at = gradient[j] + multiplier, j
            if at < 0:
                return SOLVED
            free[at] = True
    return UNFINISHED
