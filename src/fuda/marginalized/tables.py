"""Arithmetic on tables of numbers outside compiled code: arrays, or pairs (mantissas, exponents) of scaled
numbers as in `fuda.marginalized.scaled`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuda.marginalized.scaled import Array, Table

_NOTHING = -4  # an exponent by this much smaller leaves nothing


def each(function: Callable[[Array], Array], table: Table) -> Table:
    """What the function makes of an array, or of mantissas and of exponents alike: for reshaping."""
    return (function(table[0]), function(table[1])) if isinstance(table, tuple) else function(table)


def taken(table: Table, at: Any) -> Table:
    """A copy of a part of a table."""
    return each(lambda x: np.array(x[at]), table)


def product(table: Table, factor: Array) -> Table:
    """The entries times those of an array of doubles."""
    if not isinstance(table, tuple):
        return table * factor
    mantissa = table[0] * factor
    return mantissa, np.array(np.broadcast_to(table[1], mantissa.shape))


def added(a: Table, b: Table) -> Table:
    """a + b, scaled when one of them is."""
    if not isinstance(a, tuple) and not isinstance(b, tuple):
        return a + b
    (x, e), (y, f) = _scaled(a), _scaled(b)
    top = np.maximum(e, f)
    return _shifted(x, e - top) + _shifted(y, f - top), top


def put(table: Table, at: Any, values: Table) -> None:
    """Write values, of the table's kind, into a part of it."""
    for whole, part in zip(_arrays(table), _arrays(values), strict=True):
        whole[at] = part


def doubles(table: Table) -> Array:
    """Rows of numbers as doubles; scaled ones are divided, in each row, by the power of 2 of the largest."""
    if not isinstance(table, tuple):
        return table
    mantissa, exponent = table
    return _shifted(mantissa, exponent - exponent.max(axis=-1, keepdims=True))


def _scaled(table: Table) -> tuple[Array, Array]:
    return table if isinstance(table, tuple) else (table, np.zeros(table.shape, dtype=np.int64))


def _arrays(table: Table) -> tuple[Array, ...]:
    return table if isinstance(table, tuple) else (table,)


def _shifted(mantissa: Array, exponent: Array) -> Array:
    return np.ldexp(mantissa, 512 * np.maximum(exponent, _NOTHING))
