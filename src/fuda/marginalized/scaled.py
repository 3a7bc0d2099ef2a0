"""Two kinds of numbers, one arithmetic.

A *plain* number is a double. A *scaled* number is a pair (m, e) that stands for m · 2^(512 e), with
2^−256 ≤ |m| < 2^256, or m = 0 and e = ZERO. A product of two mantissas is then a normal double, and of two
numbers whose exponents differ by more than one the smaller does not change the sum: so sums and products
keep the precision of doubles at any size, and nothing overflows or underflows.

A recursion is written once, with ``plus``, ``times``, ``number``, ``read`` and ``write``; compiled for tables
that are arrays it works in doubles, for tables that are pairs (mantissas, exponents) of arrays in scaled
numbers. These five work inside compiled code only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

Array = np.ndarray
Table = Any  # an array, or a pair (mantissas, exponents) of arrays

_SUMS: Any = {"fastmath": {"reassoc", "contract", "nsz"}}  # sums may be reordered, to vectorise
_BASE = 2.0**512
_LARGE, _SMALL = 2.0**256, 2.0**-256
ZERO = -(2**62)  # the exponent of 0, far below all others


def plain_table(*shape: int) -> Array:
    return np.empty(shape)


def scaled_table(*shape: int) -> tuple[Array, Array]:
    return np.empty(shape), np.empty(shape, dtype=np.int64)


def logarithms(table: Table) -> Array:
    """log |x| of the entries of a scaled table, −inf where 0."""
    mantissa, exponent = table
    with np.errstate(divide="ignore"):
        return np.log(np.abs(mantissa)) + 512 * math.log(2) * exponent


@njit(cache=True, nogil=True)
def normal(mantissa: float, exponent: int) -> tuple[float, int]:
    """The scaled number m · 2^(512 e), for any double m that is finite."""
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


@njit(cache=True, nogil=True)
def _scaled_sum(x: float, x_exponent: int, y: float, y_exponent: int) -> tuple[float, int]:
    if x_exponent == y_exponent:
        return normal(x + y, x_exponent)
    if x_exponent < y_exponent:
        x, x_exponent, y, y_exponent = y, y_exponent, x, x_exponent
    if x_exponent > y_exponent + 1:
        return x, x_exponent
    return normal(x + y / _BASE, x_exponent)


def plus(x: Any, y: Any) -> Any:
    """x + y of two numbers of one kind."""
    raise NotImplementedError


def times(x: Any, y: Any) -> Any:
    """x · y of two numbers of any kind; scaled when one of them is."""
    raise NotImplementedError


def read(table: Table, at: Any) -> Any:
    """The number at an index of a table."""
    raise NotImplementedError


def write(table: Table, at: Any, value: Any) -> None:
    """Put a number, plain or of the table's kind, at an index of a table."""
    raise NotImplementedError


def number(value: float, table: Table) -> Any:
    """A double as a number of the table's kind."""
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
def _read(table: Any, at: Any) -> Any:
    if isinstance(table, types.BaseTuple):
        return lambda table, at: (table[0][at], table[1][at])
    return lambda table, at: table[at]


@overload(number, strict=False)
def _number(value: Any, table: Any) -> Any:
    if isinstance(table, types.BaseTuple):
        return lambda value, table: normal(value, 0)
    return lambda value, table: value


@overload(write, strict=False)
def _write(table: Any, at: Any, value: Any) -> Any:
    if not isinstance(table, types.BaseTuple):

        def plain(table: Any, at: Any, value: Any) -> None:
            table[at] = value

        return plain
    if isinstance(value, types.BaseTuple):

        def scaled(table: Any, at: Any, value: Any) -> None:
            table[0][at] = value[0]
            table[1][at] = value[1]

        return scaled

    def promoted(table: Any, at: Any, value: Any) -> None:
        write(table, at, normal(value, 0))

    return promoted
