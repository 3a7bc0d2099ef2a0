"""Kernels between observations (or labels), and their algebra.

A kernel is a function of inner products: of ⟨a, b⟩, that of two feature vectors, or [a = b], that of two
indicator vectors.

=====================  ==========================================  =============================
Linear()               ⟨a, b⟩                                      of features
Polynomial(d, o, s)    (s ⟨a, b⟩ + o)^d                            of features
RBF(γ)                 exp(−γ ‖a − b‖²)                            of features
Delta()                [a = b]                                     of observations
Precomputed(G)         G[a, b], a and b integers                   of ids
Function(f)            f(a, b)                                     of observations
Constant(v)            v
k + l, k * l           sums and products of kernels
k.normalized()         k(a, b) / √(k(a, a) k(b, b))                0 where a root is 0
=====================  ==========================================  =============================

A window puts the vectors of its observations one after another, so over a window *inner products add*, and a
kernel is evaluated on their sums: ``Polynomial(2)`` on a window of three words has the products of any two
features in it, ``Delta()`` counts the words that agree.

>>> kernel = Polynomial(2).normalized() + 0.5 * Delta()
>>> kernel
Polynomial(degree=2).normalized() + Constant(value=0.5) * Delta()
>>> kernel.set_params(left__kernel__degree=3)
Polynomial(degree=3).normalized() + Constant(value=0.5) * Delta()
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from fuda.errors import DataError, described, short
from fuda.kernels.points import Points

Array = np.ndarray


class Kernel(BaseEstimator):
    """Base of all kernels. A subclass that is a function of k inner products defines

    - `inners(a, b)` and `norms(a)`: lists of k arrays (n, m) and (n,), which add over windows,
    - `evaluate(inners, norms_a, norms_b)`: the kernel's values, elementwise, all arrays broadcast together.
    """

    def inners(self, a: Points, b: Points) -> list[Array]:
        raise NotImplementedError

    def norms(self, a: Points) -> list[Array]:
        raise NotImplementedError

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        raise NotImplementedError

    def gram(self, a: Points, b: Points) -> Array:
        """(n, m) the kernel of each point of a with each of b."""
        norms_a = [norm[:, None] for norm in self.norms(a)]
        values = self.evaluate(self.inners(a, b), norms_a, self.norms(b))
        return np.ascontiguousarray(np.broadcast_to(values, (len(a), len(b))), dtype=np.float64)

    def diagonal(self, a: Points) -> Array:
        """(n,) the kernel of each point with itself."""
        norms = self.norms(a)
        return np.array(np.broadcast_to(self.evaluate(norms, norms, norms), (len(a),)), dtype=np.float64)

    def normalized(self) -> Normalized:
        return Normalized(self)

    def __add__(self, other: Any) -> Kernel:
        return Sum(self, _factor(other)) if _is_factor(other) else NotImplemented

    def __radd__(self, other: Any) -> Kernel:
        return Sum(_factor(other), self) if _is_factor(other) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        return Product(self, _factor(other)) if _is_factor(other) else NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        return Product(_factor(other), self) if _is_factor(other) else NotImplemented

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        parameters = self.get_params(deep=False)
        default = {name: p.default for name, p in self._parameters().items()}
        shown = [f"{k}={_shown(v)}" for k, v in parameters.items() if k in self._always or v != default[k]]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        """Kernels with equal parameters are equal."""
        if type(self) is not type(other):
            return NotImplemented
        ours, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(
            np.array_equal(ours[k], theirs[k]) if k == "gram_matrix" else ours[k] == theirs[k] for k in ours
        )

    __hash__ = None  # type: ignore[assignment]  # parameters may change

    _always: tuple[str, ...] = ()

    @classmethod
    def _parameters(cls) -> Any:
        return inspect.signature(cls).parameters

    def _check(self) -> None:
        """Raise DataError at a parameter that makes no kernel."""

    def to_json(self) -> dict[str, Any]:
        """What `from_json` makes the kernel from again."""
        return {"type": type(self).__name__} | {k: _stored(v) for k, v in self.get_params(deep=False).items()}


class _OfFeatures(Kernel):
    """A function of the inner product of two feature vectors."""

    def inners(self, a: Points, b: Points) -> list[Array]:
        dots: Any = a.features @ b.features.T
        return [dots if isinstance(dots, np.ndarray) else dots.toarray()]

    def norms(self, a: Points) -> list[Array]:
        if sp.issparse(a.features):
            own = np.asarray(a.features.multiply(a.features).sum(axis=1)).ravel()
        else:
            own = np.einsum("ij,ij->i", a.features, a.features)
        return [own + a.beyond]


class Linear(_OfFeatures):
    """⟨a, b⟩, the inner product of the features."""

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        return inners[0]


class Polynomial(_OfFeatures):
    """(scale ⟨a, b⟩ + offset)^degree: products of up to `degree` features."""

    _always = ("degree",)

    def __init__(self, degree: int = 2, offset: float = 1.0, scale: float = 1.0) -> None:
        self.degree = degree
        self.offset = offset
        self.scale = scale

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        base = self.scale * inners[0] + self.offset
        values = base
        for _ in range(self.degree - 1):  # a few products are much faster than a power
            values = values * base
        return values

    def _check(self) -> None:
        if type(self.degree) is not int or not 1 <= self.degree <= 20:
            raise DataError(f"Polynomial(degree={short(self.degree)}): give a whole number from 1 to 20")
        _check_number(self, "offset", 0.0, "0 or more, or values of the kernel would be no inner products")
        _check_number(self, "scale", 0.0, "above 0", above=True)


class RBF(_OfFeatures):
    """exp(−γ ‖a − b‖²), gamma above 0."""

    _always = ("gamma",)

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        return np.exp(-self.gamma * np.maximum(norms_a[0] + norms_b[0] - 2 * inners[0], 0.0))

    def _check(self) -> None:
        _check_number(self, "gamma", 0.0, "above 0", above=True)


class Delta(Kernel):
    """1 where observations are equal, else 0."""

    def inners(self, a: Points, b: Points) -> list[Array]:
        return [(a.ids[:, None] == b.ids).astype(np.float64)]

    def norms(self, a: Points) -> list[Array]:
        return [np.ones(len(a))]

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        return inners[0]


class Precomputed(Kernel):
    """The kernel of integer observations (or of label numbers) by its Gram matrix; 0 at boundary marks."""

    _always = ("gram_matrix",)

    def __init__(self, gram_matrix: Any) -> None:
        self.gram_matrix = gram_matrix

    def inners(self, a: Points, b: Points) -> list[Array]:
        return [self._matrix()[self._rows(a)[:, None], self._rows(b)]]

    def norms(self, a: Points) -> list[Array]:
        rows = self._rows(a)
        return [self._matrix()[rows, rows]]

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        return inners[0]

    def _matrix(self) -> Array:
        """The Gram matrix with one more row and column of zeros, for boundary marks."""
        return np.pad(np.asarray(self.gram_matrix, dtype=np.float64), (0, 1))

    def _rows(self, a: Points) -> Array:
        size = len(self.gram_matrix)
        outside = [x for x in a.observations if not _is_id(x, size)]
        if outside:
            raise DataError(
                f"Precomputed: the observation {short(outside[0])} is no row of its matrix of {size}; "
                f"give observations (or labels) as integers from 0 to {size - 1}"
            )
        return np.array([size if x is None else x for x in a.observations], dtype=np.int64)

    def _check(self) -> None:
        try:
            matrix = np.asarray(self.gram_matrix, dtype=np.float64)
        except (TypeError, ValueError):
            matrix = np.empty(0)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
            raise DataError(f"Precomputed({short(self.gram_matrix)}): give a square matrix of numbers")
        _check_values(self, matrix, lambda i: f"id {i}")


class Function(Kernel):
    """f(a, b) of two observations, by a function of one's own; 0 at boundary marks. Slow; in no file."""

    _always = ("function",)

    def __init__(self, function: Callable[[Any, Any], float]) -> None:
        self.function = function

    def inners(self, a: Points, b: Points) -> list[Array]:
        return [
            np.array([[self._value(x, y) for y in b.observations] for x in a.observations]).reshape(
                len(a), len(b)
            )
        ]

    def norms(self, a: Points) -> list[Array]:
        return [np.array([self._value(x, x) for x in a.observations])]

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        return inners[0]

    def _value(self, x: Any, y: Any) -> float:
        if x is None or y is None:
            return 0.0
        value = self.function(x, y)
        if isinstance(value, bool | int | float | np.number | np.bool_):
            return float(value)
        raise DataError(
            f"the kernel function gave {described(value)} for {short(x)} and {short(y)}; give a number"
        )

    def to_json(self) -> dict[str, Any]:
        raise DataError(
            "a kernel by a function of one's own cannot be stored in a model file; use Precomputed, or "
            "pickle the model"
        )


class Constant(Kernel):
    """The same value for all pairs, 0 or more."""

    _always = ("value",)

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def inners(self, a: Points, b: Points) -> list[Array]:
        return []

    def norms(self, a: Points) -> list[Array]:
        return []

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        return np.array(float(self.value))

    def _check(self) -> None:
        _check_number(self, "value", 0.0, "0 or more, or it would be no kernel")


class _Pair(Kernel):
    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def inners(self, a: Points, b: Points) -> list[Array]:
        return [*self.left.inners(a, b), *self.right.inners(a, b)]

    def norms(self, a: Points) -> list[Array]:
        return [*self.left.norms(a), *self.right.norms(a)]

    def _sides(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> tuple[Array, Array]:
        cut = _count(self.left)
        return (
            self.left.evaluate(inners[:cut], norms_a[:cut], norms_b[:cut]),
            self.right.evaluate(inners[cut:], norms_a[cut:], norms_b[cut:]),
        )

    def _check(self) -> None:
        self.left._check()
        self.right._check()


class Sum(_Pair):
    """left + right."""

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        left, right = self._sides(inners, norms_a, norms_b)
        return left + right

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"{self.left} + {self.right}"


class Product(_Pair):
    """left * right."""

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        left, right = self._sides(inners, norms_a, norms_b)
        return left * right

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return " * ".join(f"({k})" if isinstance(k, Sum) else f"{k}" for k in (self.left, self.right))


class Normalized(Kernel):
    """k(a, b) / √(k(a, a) k(b, b)): every observation is like itself to the degree 1."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def inners(self, a: Points, b: Points) -> list[Array]:
        return self.kernel.inners(a, b)

    def norms(self, a: Points) -> list[Array]:
        return self.kernel.norms(a)

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        own = [_reciprocal_root(self.kernel.evaluate(norms, norms, norms)) for norms in (norms_a, norms_b)]
        return self.kernel.evaluate(inners, norms_a, norms_b) * own[0] * own[1]

    def _check(self) -> None:
        self.kernel._check()

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        inner = f"({self.kernel})" if isinstance(self.kernel, _Pair) else f"{self.kernel}"
        return f"{inner}.normalized()"


KERNELS = {
    cls.__name__: cls
    for cls in (Delta, Linear, Polynomial, RBF, Precomputed, Constant, Sum, Product, Normalized)
}


def as_kernel(value: Any, name: str = "kernel") -> Kernel:
    """A kernel, its parameters checked; a function of two observations becomes a kernel."""
    if isinstance(value, type) and issubclass(value, Kernel):
        raise DataError(f"{name}={value.__name__}: that is a class; write {value.__name__}()")
    if not isinstance(value, Kernel) and callable(value):
        value = Function(value)
    if not isinstance(value, Kernel):
        raise DataError(
            f"{name}={short(value)}: give a kernel of fuda.kernels ({', '.join(KERNELS)}) or a function of "
            "two observations"
        )
    value._check()
    return value


def check_kernel(kernel: Kernel, a: Points, where: Callable[[int], str], most: int = 300) -> None:
    """Raise DataError where the kernel is not finite or not symmetric on some of the points.

    `where(i)` names point i in messages.
    """
    step = max(1, len(a) // most)
    some = np.arange(0, len(a), step)
    values = kernel.gram(a[some], a[some])
    _check_values(kernel, values, lambda i: where(int(some[i])))
    diagonal = kernel.diagonal(a)
    bad = ~(np.isfinite(diagonal) & (diagonal >= 0))
    if bad.any():
        i = int(bad.argmax())
        raise DataError(
            f"the kernel {short(kernel)} gives {diagonal[i]} for the observation of {where(i)} with itself; "
            "a kernel is finite and not negative there: correct it, or scale its features"
        )


def from_json(value: Any) -> Kernel:
    """The kernel that `to_json` described."""
    if not isinstance(value, dict) or value.get("type") not in list(KERNELS):
        raise DataError(f"{short(value)} describes no kernel of fuda.kernels")
    cls = KERNELS[value["type"]]
    given = {k: from_json(v) if isinstance(v, dict) else v for k, v in value.items() if k != "type"}
    if set(given) != set(cls._parameters()):
        raise DataError(f"{short(value)} does not have the parameters of a {cls.__name__} kernel")
    if issubclass(cls, _Pair | Normalized) and not all(isinstance(k, Kernel) for k in given.values()):
        raise DataError(f"{short(value)} is no {cls.__name__} of kernels")
    return as_kernel(cls(**given))


def _check_values(kernel: Kernel, values: Array, where: Callable[[int], str]) -> None:
    """Raise at the first value that is not finite, or that differs from its mirror."""
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        i, j = map(int, bad[0])
        raise DataError(
            f"the kernel {short(kernel)} gives {values[i, j]} for {where(i)} and {where(j)}; a kernel is "
            "finite: correct it, or scale its features"
        )
    size = np.abs(values).max(initial=0.0)
    bad = np.argwhere(np.abs(values - values.T) > 1e-9 * size)
    if len(bad):
        i, j = map(int, bad[0])
        raise DataError(
            f"the kernel {short(kernel)} gives {values[i, j]:g} for {where(i)} and {where(j)}, but "
            f"{values[j, i]:g} the other way round; a kernel is symmetric: correct it"
        )


def _check_number(kernel: Kernel, name: str, least: float, what: str, above: bool = False) -> None:
    value = getattr(kernel, name)
    plain = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not plain or not np.isfinite(value) or value < least or (above and value == least):
        raise DataError(f"{type(kernel).__name__}({name}={short(value)}): give a number {what}")


def _reciprocal_root(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.where(values > 0, 1 / np.sqrt(np.maximum(values, 0.0)), 0.0)


def _count(kernel: Kernel) -> int:
    """How many inner products a kernel is a function of."""
    if isinstance(kernel, _Pair):
        return _count(kernel.left) + _count(kernel.right)
    if isinstance(kernel, Normalized):
        return _count(kernel.kernel)
    return 0 if isinstance(kernel, Constant) else 1


def _is_factor(value: Any) -> bool:
    return isinstance(value, Kernel | int | float | np.number) and not isinstance(value, bool)


def _factor(value: Any) -> Kernel:
    return value if isinstance(value, Kernel) else Constant(float(value))


def _is_id(x: Any, size: int) -> bool:
    return x is None or (isinstance(x, int | np.integer) and not isinstance(x, bool) and 0 <= int(x) < size)


def _stored(value: Any) -> Any:
    if isinstance(value, Kernel):
        return value.to_json()
    return np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic | list) else value


def _shown(value: Any) -> str:
    if hasattr(value, "__name__"):
        return str(value.__name__)
    shape = np.shape(value)
    return f"{shape[0]} × {shape[-1]} matrix" if shape else f"{value!r}"
