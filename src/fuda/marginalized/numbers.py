"""Two kinds of numbers, one arithmetic.

A *plain* number is a double. A *scaled* number is a pair (m, e) with the value m · 2^(512 e),
where 2^−256 ≤ |m| < 2^256, or m = 0 and e = ZERO. The product of two mantissas is then a normal
double, and a number whose exponent is smaller by more than one does not change a sum: so sums and
products have the precision of doubles at any magnitude, and do not overflow or underflow.

Outside compiled code, `Numbers` is an array of either kind. Compiled code uses its `cells`: an
array of doubles, or a pair (mantissas, exponents) of arrays. A recursion is written once, with
``plus``, ``times``, ``number``, ``read`` and ``write``, and compiled for both kinds of cells;
these five functions work inside compiled code only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from fuda.runtime.compiled import compiled

Array = np.ndarray
Cells = Any  # an array of doubles, or a pair (mantissas, exponents) of arrays

_SUMS: Any = {"fastmath": {"reassoc", "contract", "nsz"}}  # sums may be reordered, to vectorise
_BASE = 2.0**512
_LARGE, _SMALL = 2.0**256, 2.0**-256
_NEGLIGIBLE = -4  # a number whose exponent is smaller by this much does not change a sum
ZERO = -(2**62)  # the exponent of 0, far below all others


def empty_cells(is_scaled: bool, *shape: int) -> Cells:
    """Return uninitialized cells of a shape."""
    return (np.empty(shape), np.empty(shape, dtype=np.int64)) if is_scaled else np.empty(shape)


@dataclass(frozen=True)
class Numbers:
    """An array of numbers.

    Attributes
    ----------
    mantissas : array
        The numbers, or the mantissas m of scaled numbers.
    exponents : array or None
        The exponents e of scaled numbers; None for plain numbers.
    """

    mantissas: Array
    exponents: Array | None = None

    @staticmethod
    def of(cells: Cells) -> Numbers:
        """Return the numbers of cells."""
        return Numbers(*cells) if isinstance(cells, tuple) else Numbers(cells)

    @staticmethod
    def zeros(is_scaled: bool, *shape: int) -> Numbers:
        """Return zeros of either kind."""
        return Numbers(np.zeros(shape), np.full(shape, ZERO) if is_scaled else None)

    @staticmethod
    def concatenate(parts: list[Numbers]) -> Numbers:
        """Concatenate along the first axis; the result is scaled if one part is."""
        if any(part.exponents is not None for part in parts):
            both = zip(*(part._scaled() for part in parts), strict=True)
            return Numbers(*map(np.concatenate, both))
        return Numbers(np.concatenate([part.mantissas for part in parts]))

    @property
    def cells(self) -> Cells:
        """The argument of compiled functions."""
        return self.mantissas if self.exponents is None else (self.mantissas, self.exponents)

    def map(self, function: Callable[[Array], Array]) -> Numbers:
        """Apply a function that rearranges entries, such as a reshape."""
        return Numbers(function(self.mantissas), None if self.exponents is None else function(self.exponents))

    def __getitem__(self, at: Any) -> Numbers:
        return self.map(lambda x: x[at])

    def __setitem__(self, at: Any, values: Numbers) -> None:
        self.mantissas[at] = values.mantissas
        if self.exponents is not None:
            self.exponents[at] = values.exponents

    def __add__(self, other: Numbers) -> Numbers:
        if self.exponents is None and other.exponents is None:
            return Numbers(self.mantissas + other.mantissas)
        (x, e), (y, f) = self._scaled(), other._scaled()
        top = np.maximum(e, f)
        return Numbers(_shifted(x, e - top) + _shifted(y, f - top), top)

    def __mul__(self, factor: Array) -> Numbers:
        """Multiply the entries by an array of doubles."""
        mantissas = self.mantissas * factor
        if self.exponents is None:
            return Numbers(mantissas)
        return Numbers(mantissas, np.array(np.broadcast_to(self.exponents, mantissas.shape)))

    def doubles(self) -> Array:
        """Return the entries as doubles; scaled rows are divided by a common power of 2 each."""
        if self.exponents is None:
            return self.mantissas
        return _shifted(self.mantissas, self.exponents - self.exponents.max(axis=-1, keepdims=True))

    def with_rows(self, rows: Array) -> Numbers:
        """Return numbers whose `doubles` are `rows`, on the scale of the rows of these numbers."""
        if self.exponents is None:
            return Numbers(rows)
        top = self.exponents.max(axis=-1, keepdims=True)
        return Numbers(rows, np.array(np.broadcast_to(top, rows.shape)))

    def lowered(self, exponent: int) -> Numbers:
        """Return the numbers divided by 2^(512 exponent)."""
        if not exponent:
            return self
        mantissas, exponents = self._scaled()
        return Numbers(mantissas, exponents - exponent)

    def clipped(self) -> Array:
        """Return the entries as doubles of one scale, with magnitudes of at most 2^512."""
        if self.exponents is None:
            return np.clip(self.mantissas, -_BASE, _BASE)
        below = _shifted(self.mantissas, np.minimum(self.exponents, 0))
        return np.where(self.exponents > 0, np.sign(self.mantissas) * _BASE, np.clip(below, -_BASE, _BASE))

    def logarithms(self) -> Array:
        """Return log |x| of all entries, −inf where they are 0."""
        mantissas, exponents = self._scaled()
        with np.errstate(divide="ignore"):
            return np.log(np.abs(mantissas)) + 512 * math.log(2) * exponents

    def _scaled(self) -> tuple[Array, Array]:
        """Return mantissas and exponents."""
        if self.exponents is None:
            return self.mantissas, np.zeros(self.mantissas.shape, dtype=np.int64)
        return self.mantissas, self.exponents


def _shifted(mantissas: Array, exponents: Array) -> Array:
    """Return m · 2^(512 e) for exponents e ≤ 0."""
    return np.ldexp(mantissas, 512 * np.maximum(exponents, _NEGLIGIBLE))


@compiled
def normal(mantissa: float, exponent: int) -> tuple[float, int]:
    """Return the scaled number m · 2^(512 e), for any finite double m."""
    if mantissa == 0.0:
        return 0.0, ZERO
    for _ in range(2):  # a product of mantissas needs one step, any double two
        if abs(mantissa) >= _LARGE:
            mantissa /= _BASE
            exponent += 1
        elif abs(mantissa) < _SMALL:
            mantissa *= _BASE
            exponent -= 1
        else:
            break
    return mantissa, exponent


@compiled
def _scaled_sum(x: float, x_exponent: int, y: float, y_exponent: int) -> tuple[float, int]:
    """Return the sum of two scaled numbers."""
    if x_exponent == y_exponent:
        return normal(x + y, x_exponent)
    if x_exponent < y_exponent:
        x, x_exponent, y, y_exponent = y, y_exponent, x, x_exponent
    if x_exponent > y_exponent + 1:
        return x, x_exponent
    return normal(x + y / _BASE, x_exponent)


def plus(x: Any, y: Any) -> Any:
    """Return x + y for two numbers of the same kind."""
    raise NotImplementedError


def times(x: Any, y: Any) -> Any:
    """Return x · y for numbers of any kind; scaled if one of them is."""
    raise NotImplementedError


def read(cells: Cells, at: Any) -> Any:
    """Return the number at an index of cells."""
    raise NotImplementedError


def write(cells: Cells, at: Any, value: Any) -> None:
    """Write a number of the cells' kind at an index of cells."""
    raise NotImplementedError


def number(value: float, cells: Cells) -> Any:
    """Return a double as a number of the cells' kind."""
    raise NotImplementedError


@overload(plus, strict=False, jit_options=_SUMS)
def _plus(x: Any, y: Any) -> Any:
    if isinstance(x, types.BaseTuple):
        return lambda x, y: _scaled_sum(x[0], x[1], y[0], y[1])
    return lambda x, y: x + y


@overload(times, strict=False, jit_options=_SUMS)
def _times(x: Any, y: Any) -> Any:
    left, right = isinstance(x, types.BaseTuple), isinstance(y, types.BaseTuple)
    if left and right:
        return lambda x, y: normal(x[0] * y[0], x[1] + y[1])
    if left:
        return lambda x, y: times(x, normal(y, 0))
    if right:
        return lambda x, y: times(normal(x, 0), y)
    return lambda x, y: x * y


@overload(read, strict=False)
def _read(cells: Any, at: Any) -> Any:
    if isinstance(cells, types.BaseTuple):
        return lambda cells, at: (cells[0][at], cells[1][at])
    return lambda cells, at: cells[at]


@overload(number, strict=False)
def _number(value: Any, cells: Any) -> Any:
    if isinstance(cells, types.BaseTuple):
        return lambda value, cells: normal(value, 0)
    return lambda value, cells: value


@overload(write, strict=False)
def _write(cells: Any, at: Any, value: Any) -> Any:
    def plain(cells: Any, at: Any, value: Any) -> None:
        cells[at] = value

    def scaled(cells: Any, at: Any, value: Any) -> None:
        cells[0][at], cells[1][at] = value

    return scaled if isinstance(cells, types.BaseTuple) else plain
