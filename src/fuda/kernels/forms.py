"""What kernels are functions of, and those that are polynomials: algorithms choose by these."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Sees(IntEnum):
    """What a kernel is a function of; each level includes those before it.

    Examples
    --------
    >>> from fuda.kernels import Delta, Linear
    >>> Linear().sees.name, Delta().sees.name, Linear().sees < Delta().sees
    ('FEATURES', 'EQUALITY', True)
    """

    FEATURES = 0
    EQUALITY = 1  # also of whether two observations are equal
    OBSERVATIONS = 2  # of the observations themselves


class PolynomialForm(NamedTuple):
    """factor · (scale ⟨a, b⟩ + offset)^degree of feature vectors, the power normalized or not.

    Parameters
    ----------
    degree : int
        The power.
    offset : float
        What is added before.
    scale : float
        The factor of the inner product.
    normalized : bool
        Whether k(a, b), the power, is divided by √(k(a, a) k(b, b)).
    factor : float
        The factor of all values.

    Examples
    --------
    >>> from fuda.kernels import Polynomial
    >>> (3 * Polynomial(2).normalized()).polynomial
    PolynomialForm(degree=2, offset=1.0, scale=1.0, normalized=True, factor=3.0)
    """

    degree: int
    offset: float
    scale: float
    normalized: bool = False
    factor: float = 1.0
