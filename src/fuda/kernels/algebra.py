"""The base of all kernels, and their algebra: constants, sums, products and normalization.

A kernel is a function of inner products: of ⟨a, b⟩, that of two feature vectors, or of [a = b],
that of two indicator vectors.

=====================  ==========================================  =============================
Linear()               ⟨a, b⟩                                      of features
Polynomial(d, o, s)    (s ⟨a, b⟩ + o)^d                            of features
RBF(γ)                 exp(−γ ‖a − b‖²)                            of features
Delta()                [a = b]                                     of observations
Precomputed(G)         G[a, b], a and b integers                   of ids
Substitution(m)        scores of residues, by a matrix m           of observations
Function(f)            f(a, b)                                     of observations
Constant(v)            v
k + l, k * l           l may be a number or a function
k.normalized()         k(a, b) / √(k(a, a) k(b, b))                0 where a root is 0
=====================  ==========================================  =============================

A window concatenates the vectors of its observations, so over a window *inner products add*, and a
kernel is evaluated on their sums: ``Polynomial(2)`` on a window of three words contains the
products of any two of its features, ``Delta()`` counts the words that agree.

Algorithms choose by the attributes of a kernel, never by its class: `inner_count`, `sees` and
`polynomial`. To add a kernel, write a class with these attributes; `fuda.kernels.checked` lists
the classes that model files may name.

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
from typing import Any, ClassVar

import numpy as np

from fuda.checks import LARGEST, SMALLEST, is_flag, is_number
from fuda.errors import DataError, described, short
from fuda.kernels.forms import PolynomialForm, Sees
from fuda.kernels.points import Points
from fuda.runtime.estimators import BaseEstimator

Array = np.ndarray


class Kernel(BaseEstimator):
    """Base of all kernels.

    A subclass that is a function of k inner products defines `inners`, `norms` and `evaluate`.

    Attributes
    ----------
    inner_count : int
        k, the number of inner products that the kernel is a function of.
    sees : Sees
        What these inner products are computed from.
    polynomial : PolynomialForm or None
        The kernel as a polynomial of one inner product of features; None if it is not one.
    parts : tuple of Kernel
        The operands of a composite kernel.

    Examples
    --------
    >>> from fuda.kernels import Delta, Linear
    >>> kernel = Linear() * Delta() + 1
    >>> isinstance(kernel, Kernel), kernel.inner_count, kernel.parts
    (True, 2, (Linear() * Delta(), Constant(value=1.0)))
    """

    inner_count: int = 1
    sees: Sees = Sees.OBSERVATIONS
    polynomial: PolynomialForm | None = None

    _operands: ClassVar[tuple[str, ...]] = ()  # parameters that are kernels
    _precedence: ClassVar[int] = 2  # in expressions: 0 a sum, 1 a product, 2 a call

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The operands of a composite kernel."""
        operands = (getattr(self, name) for name in self._operands)
        return tuple(operand for operand in operands if isinstance(operand, Kernel))

    def inners(self, a: Points, b: Points) -> list[Array]:
        """Compute the inner products of points, which add over windows.

        Parameters
        ----------
        a, b : Points
            n and m points.

        Returns
        -------
        list of (n, m) array
            The k inner products of each point of a with each of b.
        """
        raise NotImplementedError

    def norms(self, a: Points) -> list[Array]:
        """Compute the inner products of points with themselves, which add over windows.

        Parameters
        ----------
        a : Points
            n points.

        Returns
        -------
        list of (n,) array
            The k inner products of each point with itself.
        """
        raise NotImplementedError

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        """Compute the kernel from inner products, elementwise.

        Parameters
        ----------
        inners, norms_a, norms_b : list of array
            k inner products of a with b, of a with a and of b with b, all broadcast together.

        Returns
        -------
        array
            The values of the kernel.
        """
        raise NotImplementedError

    def evaluate_self(self, norms: list[Array]) -> Array:
        """Compute the kernel of points with themselves.

        Parameters
        ----------
        norms : list of array
            The k inner products of the points with themselves.

        Returns
        -------
        array
            The values of the kernel.
        """
        return self.evaluate(norms, norms, norms)

    def gram(self, a: Points, b: Points) -> Array:
        """Compute the kernel of each point of a with each of b.

        Parameters
        ----------
        a, b : Points
            n and m points.

        Returns
        -------
        (n, m) array
            The values of the kernel.
        """
        norms_a = [norm[:, None] for norm in self.norms(a)]
        values = self.evaluate(self.inners(a, b), norms_a, self.norms(b))
        return np.ascontiguousarray(np.broadcast_to(values, (len(a), len(b))), dtype=np.float64)

    def diagonal(self, a: Points) -> Array:
        """Compute the kernel of each point with itself.

        Parameters
        ----------
        a : Points
            n points.

        Returns
        -------
        (n,) array
            The values of the kernel.
        """
        norms = self.norms(a)
        return np.array(np.broadcast_to(self.evaluate(norms, norms, norms), (len(a),)), dtype=np.float64)

    def normalized(self) -> Normalized:
        """Return the kernel k(a, b) / √(k(a, a) k(b, b)).

        Returns
        -------
        Normalized
            Its value for an observation with itself is 1, or 0 where k is 0.
        """
        return Normalized(self)

    def __add__(self, other: Any) -> Kernel:
        return _combined(Sum, self, other)

    def __radd__(self, other: Any) -> Kernel:
        return _combined(Sum, other, self)

    def __mul__(self, other: Any) -> Kernel:
        return _combined(Product, self, other)

    def __rmul__(self, other: Any) -> Kernel:
        return _combined(Product, other, self)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Python code of the kernel, with its first parameter and all that differ from defaults.

        Large matrices and functions without a name are abbreviated.
        """
        shown = [
            f"{p.name}={_shown(getattr(self, p.name))}"
            for k, p in enumerate(inspect.signature(type(self)).parameters.values())
            if k == 0 or getattr(self, p.name) != p.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        """Kernels of one class with equal parameters are equal."""
        if type(self) is not type(other):
            return NotImplemented
        params, other_params = self.get_params(deep=False), other.get_params(deep=False)
        return all(
            np.array_equal(params[k], other_params[k]) if k == "gram_matrix" else params[k] == other_params[k]
            for k in params
        )

    __hash__ = None  # type: ignore[assignment]  # parameters may change

    def check(self) -> None:
        """Raise DataError if a parameter has a value for which this is not a kernel."""
        for name in self._operands:
            operand = getattr(self, name)
            if not isinstance(operand, Kernel):
                raise DataError(f"{type(self).__name__}({name}={short(operand)}): give a kernel")
            operand.check()

    def to_json(self) -> dict[str, Any]:
        """Describe the kernel by plain values, from which `from_json` makes it again.

        Returns
        -------
        dict
            The name of the class, as ``type``, and the parameters.
        """
        return {"type": type(self).__name__} | {k: _stored(v) for k, v in self.get_params(deep=False).items()}

    def _check_number(self, name: str, remedy: str, positive: bool = False) -> None:
        """Check that a parameter is a number of at least 0, or above 0, and not extreme."""
        value = getattr(self, name)
        if not is_number(value, SMALLEST if positive or value else 0, LARGEST):
            argument = f"{type(self).__name__}({name}={short(value)})"
            raise DataError(f"{argument}: give a number {remedy}, at most {LARGEST:g}")


class Constant(Kernel):
    """The same value for all pairs of observations.

    Parameters
    ----------
    value : float
        At least 0.

    Examples
    --------
    >>> from fuda.kernels import Linear
    >>> Linear() + Constant(0.5) == Linear() + 0.5
    True
    """

    inner_count = 0
    sees = Sees.FEATURES

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


class Function(Kernel):
    """A Python function of two observations; 0 at boundary marks.

    It is slow, and cannot be stored in files.

    Parameters
    ----------
    function : callable
        Takes two observations and returns a number.

    Examples
    --------
    >>> from fuda import HMPerceptron
    >>> same_ending = Function(lambda a, b: float(a[-2:] == b[-2:]))
    >>> model = HMPerceptron(kernel=same_ending).fit([["he", "talked"]], [["O", "V"]])
    >>> model.predict([["she", "walked"]])[0]
    ['O', 'V']
    """

    def __init__(self, function: Callable[[Any, Any], float]) -> None:
        self.function = function

    def inners(self, a: Points, b: Points) -> list[Array]:
        values = [[self._value(x, y) for y in b.observations] for x in a.observations]
        return [np.array(values).reshape(len(a), len(b))]

    def norms(self, a: Points) -> list[Array]:
        return [np.array([self._value(x, x) for x in a.observations])]

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        return inners[0]

    def _value(self, x: Any, y: Any) -> float:
        """The function's value, checked to be a number."""
        if x is None or y is None:
            return 0.0
        value = self.function(x, y)
        if is_flag(value) or is_number(value) or isinstance(value, float | np.floating):
            return float(value)  # `check_kernel` rejects values that are not finite
        raise DataError(
            f"the kernel function gave {described(value)} for {short(x)} and {short(y)}; give a number"
        )

    def to_json(self) -> dict[str, Any]:
        """Raise DataError: a function cannot be described by plain values."""
        raise DataError(
            "a Python function cannot be stored in a model file; use Precomputed, or pickle the model"
        )


class _Composite(Kernel):
    """A kernel of the inner products of its parts, concatenated."""

    @property
    def inner_count(self) -> int:  # type: ignore[override]
        """The number of inner products of all parts."""
        return sum(part.inner_count for part in self.parts)

    @property
    def sees(self) -> Sees:  # type: ignore[override]
        """The highest level of all parts."""
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
        self.left, self.right = as_operand(left), as_operand(right)

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        cut = self.left.inner_count
        left = self.left.evaluate(inners[:cut], norms_a[:cut], norms_b[:cut])
        return type(self)._operation(left, self.right.evaluate(inners[cut:], norms_a[cut:], norms_b[cut:]))

    def evaluate_self(self, norms: list[Array]) -> Array:
        cut = self.left.inner_count
        left, right = self.left.evaluate_self(norms[:cut]), self.right.evaluate_self(norms[cut:])
        return type(self)._operation(left, right)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        left = f"({self.left})" if self.left._precedence < self._precedence else f"{self.left}"
        right = f"({self.right})" if self.right._precedence <= self._precedence else f"{self.right}"
        return f"{left} {self._sign} {right}"


class Sum(_Pair):
    """The sum of two kernels.

    Parameters
    ----------
    left, right : Kernel
        The kernels.

    Examples
    --------
    >>> from fuda.kernels import Delta, Linear
    >>> Linear() + Delta() == Sum(Linear(), Delta())
    True
    """

    _operation, _sign, _precedence = operator.add, "+", 0


class Product(_Pair):
    """The product of two kernels.

    Parameters
    ----------
    left, right : Kernel
        The kernels.

    Examples
    --------
    >>> from fuda.kernels import Delta, Linear
    >>> Linear() * Delta() == Product(Linear(), Delta())
    True
    """

    _operation, _sign, _precedence = operator.mul, "*", 1

    @property
    def polynomial(self) -> PolynomialForm | None:  # type: ignore[override]
        """The polynomial of one of the kernels, if the other one is a constant."""
        for one, other in ((self.left, self.right), (self.right, self.left)):
            if isinstance(one, Constant) and (form := other.polynomial) is not None:
                return form._replace(factor=form.factor * float(one.value))
        return None


class Normalized(_Composite):
    """k(a, b) / √(k(a, a) k(b, b)), 0 where a root is 0.

    Parameters
    ----------
    kernel : Kernel
        k.

    Examples
    --------
    >>> from fuda.kernels import Polynomial
    >>> Polynomial(2).normalized() == Normalized(Polynomial(2))
    True
    """

    _operands = ("kernel",)

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = as_operand(kernel)

    @property
    def polynomial(self) -> PolynomialForm | None:  # type: ignore[override]
        """The polynomial of the kernel k, normalized."""
        form = self.kernel.polynomial
        return None if form is None else form._replace(normalized=True, factor=1.0)

    def evaluate(self, inners: list[Array], norms_a: list[Array], norms_b: list[Array]) -> Array:
        # evaluate_self calls itself once per level, so that the cost is not 3^depth
        of_a = _reciprocal_root(self.kernel.evaluate_self(norms_a))
        of_b = of_a if norms_b is norms_a else _reciprocal_root(self.kernel.evaluate_self(norms_b))
        return self.kernel.evaluate(inners, norms_a, norms_b) * of_a * of_b

    def evaluate_self(self, norms: list[Array]) -> Array:
        return (self.kernel.evaluate_self(norms) > 0).astype(np.float64)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        inner = f"({self.kernel})" if self.kernel._precedence < 2 else f"{self.kernel}"
        return f"{inner}.normalized()"


def _reciprocal_root(values: Array) -> Array:
    """1 / √value, 0 where a value is not positive."""
    with np.errstate(divide="ignore"):
        return np.where(values > 0, 1 / np.sqrt(np.maximum(values, 0.0)), 0.0)


def as_operand(value: Any) -> Any:
    """A function of two observations as a kernel; other values as they are."""
    is_function = callable(value) and not isinstance(value, Kernel | type)
    return Function(value) if is_function else value


def _combined(kind: type[_Pair], *operands: Any) -> Kernel:
    """Two kernels, numbers or functions combined; NotImplemented for other operands."""
    kernels = [Constant(float(x)) if is_number(x) else as_operand(x) for x in operands]
    return kind(*kernels) if all(isinstance(x, Kernel) for x in kernels) else NotImplemented


def _stored(value: Any) -> Any:
    """A parameter as plain JSON values."""
    if isinstance(value, Kernel):
        return value.to_json()
    return np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic | list) else value


def _shown(value: Any) -> str:
    """A parameter as code."""
    if hasattr(value, "__name__"):
        return str(value.__name__)
    if np.size(value) > 25:  # entries of a matrix
        return f"<{' × '.join(map(str, np.shape(value)))} matrix>"
    return repr(_stored(value))
