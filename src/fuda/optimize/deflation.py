"""Coordinates in which the largest curvatures of a function are as small as the next ones.

Let the Hessian of f in v have orthonormal eigenvectors v_1..v_r with eigenvalues λ_1 ≥ .. ≥ λ_r ≥
θ, the largest ones. In the coordinates u with

    v = P u      P = I + Σ_i (√(θ/λ_i) − 1) v_i v_iᵀ      P⁻¹ = I + Σ_i (√(λ_i/θ) − 1) v_i v_iᵀ

they all are θ, and a minimizer needs about √(λ_1/θ) times fewer iterations. The eigenvectors come
from the method of Lanczos, which finds the largest eigenvalues first, from products with the
Hessian alone. They need not be exact: P is only a change of coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fuda.checks import check_arrays
from fuda.errors import DataError
from fuda.optimize.vectors import VectorArithmetic
from fuda.runtime.compiled import compiled

Array = np.ndarray


class Spectrum(NamedTuple):
    """The largest eigenvalues of a Hessian, and θ.

    Attributes
    ----------
    at : (n,) ndarray of int
        The variables in which the eigenvectors are not 0.
    ratios : (r,) ndarray
        √(θ/λ_i), between 0 and 1.
    vectors : (r, n) ndarray of float32
        The eigenvectors.
    """

    at: Array
    ratios: Array
    vectors: Array


def leading(product: Callable[[Array], Array], start: Array, steps: int, count: int) -> tuple[Array, Array]:
    """Compute the largest eigenvalues of a symmetric matrix by the method of Lanczos.

    Parameters
    ----------
    product : callable
        From a vector to its product with the matrix.
    start : ndarray
        The vector to begin with.
    steps : int
        The number of products.
    count : int
        How many eigenvalues to find at most.

    Returns
    -------
    tuple of ndarray
        The eigenvalues, largest first, and the eigenvectors by rows.

    Examples
    --------
    >>> matrix = np.diag([1.0, 9.0, 4.0])
    >>> leading(lambda v: matrix @ v, np.ones(3), steps=3, count=2)[0].round(6).tolist()
    [9.0, 4.0]
    """
    steps = min(steps, len(start))
    basis = np.zeros((steps, len(start)), dtype=np.float32)
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    size, done, unit = float(np.linalg.norm(start)), 0, 1.0
    vector = np.array(start, dtype=np.float64)
    while done < steps and size > 1e-6 * max(np.abs(diagonal).max(), 1e-290):
        basis[done] = vector / size
        vector = product(basis[done])
        if not done:  # in units of a power of 2, no square overflows
            unit = 2.0 ** math.frexp(float(np.linalg.norm(vector)))[1]
        vector = (vector / unit).astype(np.float32)
        diagonal[done] = vector @ basis[done]
        for _ in range(2):  # once leaves rounding errors that grow from step to step
            vector -= (basis[: done + 1] @ vector) @ basis[: done + 1]
        size = beside[done] = float(np.linalg.norm(vector))
        done += 1
    if not done:
        return np.empty(0), basis[:0]
    inner = np.diag(diagonal[:done]) + np.diag(beside[: done - 1], 1) + np.diag(beside[: done - 1], -1)
    values, rotations = np.linalg.eigh(inner)
    return unit * values[::-1][:count], rotations.T[::-1][:count] @ basis[:done]


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _scale_along(vectors: Array, factors: Array, at: Array, x: Array) -> None:
    """x(at) += Σ_i factors_i (v_i · x(at)) v_i, where the v_i are orthonormal."""
    part, added = np.empty(len(at), dtype=np.float32), np.zeros(len(at), dtype=np.float32)
    for j in range(len(at)):
        part[j] = x[at[j]]
    for i in range(len(vectors)):
        row = vectors[i]
        along = 0.0
        for j in range(len(part)):
            along += row[j] * part[j]
        factor = np.float32(factors[i] * along)
        for j in range(len(part)):
            added[j] += factor * row[j]
    for j in range(len(at)):
        x[at[j]] += added[j]


class Deflation:
    """The change between the coordinates z = v · scale of a minimizer and u.

    Parameters
    ----------
    scale : ndarray
        Per variable, by what v is multiplied to be z.
    measure : callable
        From z to the spectrum of the Hessian in v there.
    n_jobs : int or None
        The number of threads; None is all cores.

    Attributes
    ----------
    spectrum : Spectrum or None
        The spectrum; None before `begin`.
    """

    def __init__(self, scale: Array, measure: Callable[[Array], Spectrum], n_jobs: int | None = None) -> None:
        self.scale, self.inverse, self.measure = scale, 1.0 / scale, measure
        self.vectors = VectorArithmetic(len(scale), n_jobs)
        self.spectrum: Spectrum | None = None

    def begin(self, z: Array) -> None:
        """Measure the spectrum at a point."""
        self.spectrum = self.measure(z)

    def gradient(self, by_z: Array, by_u: Array) -> Array:
        """Compute the gradient by u from that by z, in another or the same array; returns it."""
        if by_u is by_z:
            self.vectors.multiply_by(by_u, self.scale)
        else:
            self.vectors.multiply(by_z, self.scale, by_u)
        return self._scaled_along(by_u, inverse=False)

    def step(self, u: Array) -> Array:
        """Replace a difference of points in u by the same in z; returns it."""
        self._scaled_along(u, inverse=False)
        self.vectors.multiply_by(u, self.scale)
        return u

    def step_back(self, z: Array) -> Array:
        """Replace a difference of points in z by the same in u; returns it."""
        self.vectors.multiply_by(z, self.inverse)
        return self._scaled_along(z, inverse=True)

    def state(self) -> dict[str, Array]:
        """Return the arrays of the spectrum; none before `begin`."""
        return {} if self.spectrum is None else self.spectrum._asdict()

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over the arrays of a `state()`; raises DataError where they do not fit."""
        if not arrays:
            return
        shapes = {"at": (None,), "ratios": (None,), "vectors": (None, None)}
        check_arrays(arrays, shapes, {"at": np.int64, "vectors": np.float32})
        spectrum = Spectrum(**arrays)
        fits = spectrum.vectors.shape == (len(spectrum.ratios), len(spectrum.at))
        inside = ((spectrum.at >= 0) & (spectrum.at < len(self.scale))).all()
        if not (fits and inside and ((spectrum.ratios > 0) & (spectrum.ratios <= 1)).all()):
            raise DataError("its eigenvectors do not fit this problem")
        self.spectrum = Spectrum(*map(np.array, spectrum))

    def _scaled_along(self, x: Array, inverse: bool) -> Array:
        assert self.spectrum is not None  # it has begun
        at, ratios, vectors = self.spectrum
        _scale_along(vectors, (1.0 / ratios if inverse else ratios) - 1.0, at, x)
        return x
