"""Kernels of two observations: of their features, of their equality, or given by their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.checks import is_whole
from fuda.data.tables import Csr, squared_norms
from fuda.errors import DataError, short
from fuda.kernels.algebra import Array, Kernel
from fuda.kernels.forms import PolynomialForm, Sees
from fuda.kernels.points import ByFeature, Points
from fuda.kernels.values import check_values
from fuda.runtime.compiled import compiled


class _OfFeatures(Kernel):
    """A function of the inner product of two feature vectors."""

    sees = Sees.FEATURES

    def inners(self, a: Points, b: Points) -> list[Array]:
        if isinstance(a.features, Csr) and isinstance(b.features, ByFeature):
            products = np.zeros((len(a), len(b)))
            _add_products(a.features[:3], b.features, products)
            return [products]
        dots: Any = a.features @ b.features.T
        return [dots if isinstance(dots, np.ndarray) else dots.toarray()]

    def norms(self, a: Points) -> list[Array]:
        return [squared_norms(a.features) + a.beyond]


@compiled
def _add_products(few: tuple[Array, Array, Array], many: ByFeature, products: Array) -> None:
    """products(i, k) += Σ_f few(i, f) many(k, f); features past the last of `many` are of none."""
    indptr, features, values = few
    starts, rows, entries = many
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            feature, x = features[e], values[e]
            if feature < len(starts) - 1:
                for k in range(starts[feature], starts[feature + 1]):
                    products[i, rows[k]] += x * entries[k]


class OneInnerProduct(Kernel):
    """A kernel that is itself an inner product."""

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        return inners[0]


class Linear(OneInnerProduct, _OfFeatures):
    """⟨a, b⟩, the inner product of the features.

    Examples
    --------
    >>> from fuda import marginalized_kernel
    >>> options = {"features": "word", "prior": (np.ones((1, 1)), np.ones((2, 1)))}  # one label
    >>> K = marginalized_kernel(["ab"], ["ab", "cd"], kernel=Linear(), **options)
    >>> K.ravel().round(2).tolist()
    [1.0, 0.0]
    """

    polynomial = PolynomialForm(1, 0.0, 1.0)


class Polynomial(_OfFeatures):
    """(scale ⟨a, b⟩ + offset)^degree: products of up to `degree` features.

    Parameters
    ----------
    degree : int
        The power, from 1 to 20.
    offset : float
        What is added before, at least 0.
    scale : float
        The factor of the inner product, above 0.

    Examples
    --------
    >>> from fuda import marginalized_kernel
    >>> options = {"features": "word", "prior": (np.ones((1, 1)), np.ones((2, 1)))}  # one label
    >>> K = marginalized_kernel(["ab"], ["ab", "cd"], kernel=Polynomial(2), **options)
    >>> K.ravel().round(2).tolist()
    [4.0, 1.0]
    """

    def __init__(self, degree: int = 2, offset: float = 1.0, scale: float = 1.0) -> None:
        self.degree, self.offset, self.scale = degree, offset, scale

    @property
    def polynomial(self) -> PolynomialForm:  # type: ignore[override]
        """The kernel itself."""
        return PolynomialForm(self.degree, float(self.offset), float(self.scale))

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        base = self.scale * inners[0]
        base += self.offset
        values = base
        for _ in range(self.degree - 1):  # a few products are much faster than a power
            values = values * base
        return values

    def check(self) -> None:
        if type(self.degree) is not int or not 1 <= self.degree <= 20:
            raise DataError(f"Polynomial(degree={short(self.degree)}): give a whole number from 1 to 20")
        self._check_number("offset", "of at least 0, or values would not be those of a kernel")
        self._check_number("scale", "above 0", positive=True)


class RBF(_OfFeatures):
    """exp(−γ ‖a − b‖²).

    Parameters
    ----------
    gamma : float
        γ, above 0.

    Examples
    --------
    >>> from fuda import marginalized_kernel
    >>> options = {"features": "word", "prior": (np.ones((1, 1)), np.ones((2, 1)))}  # one label
    >>> K = marginalized_kernel(["ab"], ["ab", "cd"], kernel=RBF(0.5), **options)
    >>> K.ravel().round(2).tolist()
    [1.0, 0.37]
    """

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        return np.exp(-self.gamma * np.maximum(norms_a[0] + norms_b[0] - 2 * inners[0], 0.0))

    def check(self) -> None:
        self._check_number("gamma", "above 0", positive=True)


class Delta(OneInnerProduct):
    """1 where two observations are equal, else 0.

    Examples
    --------
    >>> from fuda import marginalized_kernel
    >>> prior = np.ones((1, 1)), np.ones((2, 1))  # of a single label
    >>> K = marginalized_kernel(["ab"], ["ab", "cd"], kernel=Delta(), prior=prior)
    >>> K.ravel().round(2).tolist()
    [1.0, 0.0]
    """

    sees = Sees.EQUALITY

    def inners(self, a: Points, b: Points) -> list[Array]:
        return [(a.ids[:, None] == b.ids).astype(np.float64)]

    def norms(self, a: Points) -> list[Array]:
        return [np.ones(len(a))]


class Precomputed(OneInnerProduct):
    """A kernel of integer observations (or labels), by its Gram matrix; 0 at boundary marks.

    Parameters
    ----------
    gram_matrix : array of shape (n, n)
        Symmetric; its rows are the observations 0 to n − 1.

    Examples
    --------
    >>> from fuda import marginalized_kernel
    >>> similar, prior = Precomputed([[1.0, 0.5], [0.5, 1.0]]), (np.ones((1, 1)), np.ones((2, 1)))
    >>> marginalized_kernel([0], [0, 1], kernel=similar, prior=prior).ravel().tolist()
    [1.0, 0.5]
    """

    def __init__(self, gram_matrix: Any) -> None:
        self.gram_matrix = gram_matrix

    def inners(self, a: Points, b: Points) -> list[Array]:
        return [self._matrix()[self._rows(a)[:, None], self._rows(b)]]

    def norms(self, a: Points) -> list[Array]:
        rows = self._rows(a)
        return [self._matrix()[rows, rows]]

    def _matrix(self) -> Array:
        """The Gram matrix with one more row and column of zeros, for boundary marks."""
        return np.pad(np.asarray(self.gram_matrix, dtype=np.float64), (0, 1))

    def _rows(self, a: Points) -> Array:
        """The row of each point."""
        size = len(self.gram_matrix)
        for x in a.observations:
            if x is not None and not (is_whole(x, 0) and x < size):
                raise DataError(
                    f"Precomputed: the observation {short(x)} is not a row of its matrix of {size}; give "
                    f"observations (or labels) as integers from 0 to {size - 1}"
                )
        return np.array([size if x is None else x for x in a.observations], dtype=np.int64)

    def check(self) -> None:
        try:
            matrix = np.asarray(self.gram_matrix, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            matrix = np.empty(0)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
            raise DataError(f"Precomputed({short(self.gram_matrix)}): give a square matrix of numbers")
        check_values(self, matrix, lambda i: f"id {i}")
