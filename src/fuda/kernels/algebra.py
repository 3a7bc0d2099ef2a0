"""The base of all kernels, and their algebra: constants, sums, products and normalization.

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

A window concatenates the vectors of its observations, so over a window *inner products add*, and a
kernel is evaluated on their sums: ``Polynomial(2)`` on a window of three words contains the products of any
two features in it, ``Delta()`` counts the words that agree.

What a kernel can be used for is read from its attributes, never from its class: `inner_count`, `sees` and
`polynomial`. To add a kernel, write a class with these attributes; `fuda.kernels.checked` lists the classes
that model files may name.

>>> from fuda.kernels import Delta, Polynomial
>>> kernel = Polynomial(2).normalized() + 0.5 * Delta()
>>> kernel
Polynomial(degree=2).normalized() + Constant(value=0.5) * Delta()
>>> kernel.set_params(left__kernel__degree=3)
Polynomial(degree=3).normalized() + Constant(value=0.5) * Delta()
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from fuda.checks import is_number
from fuda.errors import DataError, short
from fuda.kernels.points import Points

Array = np.ndarray


class Sees(IntEnum):
    """What a kernel is a function of; each level includes those before it."""

    FEATURES = 0
    EQUALITY = 1  # also of whether two observations are equal
    OBSERVATIONS = 2  # of the observations themselves


class PolynomialForm(NamedTuple):
    """(scale ⟨a, b⟩ + offset)^degree of feature vectors, normalized or not."""

    degree: int
    offset: float
    scale: float
    normalized: bool = False


class Kernel(BaseEstimator):
    """Base of all kernels.

    A subclass that is a function of k inner products defines

    - `inners(a, b)` and `norms(a)`: lists of k arrays (n, m) and (n,), which add over windows,
    - `evaluate(inners, norms_a, norms_b)`: the kernel's values, elementwise, all arrays broadcast together.

    Attributes
    ----------
    inner_count : int
        k, the number of inner products that the kernel is a function of.
    sees : Sees
        What these inner products are taken of.
    polynomial : PolynomialForm or None
        The polynomial of one inner product of features that the kernel is; None for all others.
    parts : tuple of Kernel
        The kernels that this one is made of.
    """

    inner_count: int = 1
    sees: Sees = Sees.OBSERVATIONS
    polynomial: PolynomialForm | None = None

    _operands: ClassVar[tuple[str, ...]] = ()  # parameters that are kernels
    _always_shown: ClassVar[tuple[str, ...]] = ()  # parameters that repr gives even at their defaults
    _binds: ClassVar[int] = 2  # how tightly repr binds: 0 a sum, 1 a product, 2 a call

    @property
    def parts(self) -> tuple[Kernel, ...]:
        operands = (getattr(self, name) for name in self._operands)
        return tuple(operand for operand in operands if isinstance(operand, Kernel))

    def inners(self, a: Points, b: Points) -> list[Array]:
        raise NotImplementedError

    def norms(self, a: Points) -> list[Array]:
        raise NotImplementedError

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        raise NotImplementedError

    def evaluate_self(self, norms: list[Array]) -> Array:
        """The kernel of points with themselves, from their norms."""
        return self.evaluate(norms, norms, norms)

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
        """k(a, b) / √(k(a, a) k(b, b))."""
        return Normalized(self)

    def __add__(self, other: Any) -> Kernel:
        return Sum(self, _operand(other)) if _is_operand(other) else NotImplemented

    def __radd__(self, other: Any) -> Kernel:
        return Sum(_operand(other), self) if _is_operand(other) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        return Product(self, _operand(other)) if _is_operand(other) else NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        return Product(_operand(other), self) if _is_operand(other) else NotImplemented

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Python code that makes the kernel again (but for large matrices and functions without a name)."""
        defaults = {name: p.default for name, p in inspect.signature(type(self)).parameters.items()}
        shown = [
            f"{name}={_shown(value)}"
            for name, value in self.get_params(deep=False).items()
            if name in self._always_shown or value != defaults[name]
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        """Kernels of one class with equal parameters are equal."""
        if type(self) is not type(other):
            return NotImplemented
        ours, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(
            np.array_equal(ours[k], theirs[k]) if k == "gram_matrix" else ours[k] == theirs[k] for k in ours
        )

    __hash__ = None  # type: ignore[assignment]  # parameters may change

    def check(self) -> None:
        """Raise DataError at a parameter for which this is not a kernel."""
        for name in self._operands:
            operand = getattr(self, name)
            if not isinstance(operand, Kernel):
                raise DataError(f"{type(self).__name__}({name}={short(operand)}): give a kernel")
            operand.check()

    def to_json(self) -> dict[str, Any]:
        """A description from which `from_json` makes the kernel again."""
        return {"type": type(self).__name__} | {k: _stored(v) for k, v in self.get_params(deep=False).items()}

    def _check_number(self, name: str, wanted: str, positive: bool = False) -> None:
        """A parameter that is a finite number of at least 0, or above 0."""
        value = getattr(self, name)
        if not is_number(value, least=0) or (positive and value == 0):
            raise DataError(f"{type(self).__name__}({name}={short(value)}): give a number {wanted}")


class Constant(Kernel):
    """The same value for all pairs, 0 or more."""

    inner_count = 0
    sees = Sees.FEATURES
    _always_shown = ("value",)

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def inners(self, a: Points, b: Points) -> list[Array]:
        return []

    def norms(self, a: Points) -> list[Array]:
        return []

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        return np.array(float(self.value))

    def check(self) -> None:
        self._check_number("value", "of at least 0, or values would not be those of a kernel")


class _Composite(Kernel):
    """A kernel of the inner products of its parts, one part's after another's."""

    @property
    def inner_count(self) -> int:  # type: ignore[override]
        return sum(part.inner_count for part in self.parts)

    @property
    def sees(self) -> Sees:  # type: ignore[override]
        return max(part.sees for part in self.parts)

    def inners(self, a: Points, b: Points) -> list[Array]:
        return [inner for part in self.parts for inner in part.inners(a, b)]

    def norms(self, a: Points) -> list[Array]:
        return [norm for part in self.parts for norm in part.norms(a)]


class _Pair(_Composite):
    """Two kernels combined by an operation on their values."""

    _operands = ("left", "right")
    _operation: ClassVar[Callable[[Array, Array], Array]]
    _sign: ClassVar[str]

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        cut = self.left.inner_count
        left = self.left.evaluate(inners[:cut], norms_a[:cut], norms_b[:cut])
        return type(self)._operation(left, self.right.evaluate(inners[cut:], norms_a[cut:], norms_b[cut:]))

    def evaluate_self(self, norms: list[Array]) -> Array:
        cut = self.left.inner_count
        return type(self)._operation(
            self.left.evaluate_self(norms[:cut]), self.right.evaluate_self(norms[cut:])
        )

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        left = f"({self.left})" if self.left._binds < self._binds else f"{self.left}"
        right = f"({self.right})" if self.right._binds <= self._binds else f"{self.right}"
        return f"{left} {self._sign} {right}"


class Sum(_Pair):
    """left + right."""

    _operation, _sign, _binds = operator.add, "+", 0


class Product(_Pair):
    """left * right."""

    _operation, _sign, _binds = operator.mul, "*", 1


class Normalized(_Composite):
    """k(a, b) / √(k(a, a) k(b, b)), so that every observation is 1 with itself; 0 where a root is 0."""

    _operands = ("kernel",)

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    @property
    def polynomial(self) -> PolynomialForm | None:  # type: ignore[override]
        form = self.kernel.polynomial
        return None if form is None else form._replace(normalized=True)

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        # Two calls of evaluate_self, which calls itself once per level, and one of evaluate: no 3^depth.
        of_a, of_b = (_reciprocal_root(self.kernel.evaluate_self(norms)) for norms in (norms_a, norms_b))
        return self.kernel.evaluate(inners, norms_a, norms_b) * of_a * of_b

    def evaluate_self(self, norms: list[Array]) -> Array:
        return (self.kernel.evaluate_self(norms) > 0).astype(np.float64)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        inner = f"({self.kernel})" if self.kernel._binds < 2 else f"{self.kernel}"
        return f"{inner}.normalized()"


def check_values(kernel: Kernel, values: Array, where: Callable[[int], str]) -> None:
    """Raise DataError at the first kernel value that is not finite, or that differs from its transpose."""
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


def _reciprocal_root(values: Array) -> Array:
    """1 / √value, 0 where a value is not positive."""
    with np.errstate(divide="ignore"):
        return np.where(values > 0, 1 / np.sqrt(np.maximum(values, 0.0)), 0.0)


def _is_operand(value: Any) -> bool:
    """Whether a value may stand beside a kernel in a sum or product."""
    return isinstance(value, Kernel) or is_number(value)


def _operand(value: Any) -> Kernel:
    """A kernel as it is, a number as a constant kernel."""
    return value if isinstance(value, Kernel) else Constant(float(value))


def _stored(value: Any) -> Any:
    """A parameter as plain JSON values."""
    if isinstance(value, Kernel):
        return value.to_json()
    return np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic | list) else value


_SHOWN_ENTRIES = 25  # of a matrix, that repr gives in full


def _shown(value: Any) -> str:
    """A parameter as code."""
    if hasattr(value, "__name__"):
        return str(value.__name__)
    if np.size(value) > _SHOWN_ENTRIES:
        return f"<{' × '.join(map(str, np.shape(value)))} matrix>"
    return repr(_stored(value))
