"""Sixteen integers of 32 bits side by side, for compiled code: one instruction for all of them.

LLVM makes vector instructions of loops, but only for stretches that are longer than the scores of
a few labels. *Lanes* are sixteen numbers of such a row in registers:

    load(array, i, k)       array[i, k : k + 16]
    store(array, i, k, x)   array[i, k : k + 16] = x
    spread(number)          the number in every lane
    plus(x, y)              x + y
    minus(x, y)             x − y
    larger(x, y)            max(x, y)
    without(x, y)           the bits of x that are not in y

Arrays are those of `zeros`; indices are not checked. Sums that do not fit wrap around. All but
`zeros` work inside compiled code only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

WIDTH = 16
_BYTES = 4 * WIDTH  # the bytes of a line of the cache
_INT = ir.IntType(32)
_VECTOR = ir.VectorType(_INT, WIDTH)


def zeros(rows: int, columns: int) -> np.ndarray:
    """Return zeros for lanes: as many columns as they fill, sixteen to a line of the cache.

    >>> zeros(3, 9).shape
    (3, 16)
    """
    width = -(-columns // WIDTH) * WIDTH
    size = 4 * rows * width
    memory = np.zeros(size + _BYTES, dtype=np.uint8)
    start = -memory.ctypes.data % _BYTES
    return memory[start : start + size].view(np.int32).reshape(rows, width)


class _Lanes(types.Type):
    """The type of lanes."""

    def __init__(self) -> None:
        super().__init__("Lanes")


@register_model(_Lanes)
class _Model(models.PrimitiveModel):
    """What lanes are to LLVM."""

    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


_LANES = _Lanes()


def _place(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """A pointer to the lanes of an array from a row and column on, its first three arguments."""
    array = context.make_array(sig.args[0])(context, builder, args[0])
    row, column = (context.cast(builder, args[k], sig.args[k], types.intp) for k in (1, 2))
    width = builder.extract_value(array.shape, 1)
    first = builder.gep(array.data, [builder.add(builder.mul(row, width), column)])
    return builder.bitcast(first, _VECTOR.as_pointer())


def _load(typing: Any, array: Any, row: Any, column: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_place(context, builder, sig, args), align=4)

    return _LANES(array, row, column), generate


def _store(typing: Any, array: Any, row: Any, column: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[3], _place(context, builder, sig, args), align=4)
        return context.get_dummy_value()

    return types.none(array, row, column, lanes), generate


def _spread(typing: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first = context.cast(builder, args[0], sig.args[0], types.int32)
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        lanes = builder.insert_element(nothing, first, _INT(0))
        return builder.shuffle_vector(lanes, nothing, ir.Constant(_VECTOR, None))

    return _LANES(number), generate


def _of_two(build: Callable[[Any, Any, Any], Any]) -> Any:
    """A function of two lanes, from what builds its instructions."""

    def function(typing: Any, x: Any, y: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return build(builder, *args)

        return _LANES(x, y), generate

    return intrinsic(function)


load: Any = intrinsic(_load)
store: Any = intrinsic(_store)
spread: Any = intrinsic(_spread)
plus = _of_two(lambda builder, x, y: builder.add(x, y))
minus = _of_two(lambda builder, x, y: builder.sub(x, y))
larger = _of_two(lambda builder, x, y: builder.select(builder.icmp_signed(">", x, y), x, y))
without = _of_two(lambda builder, x, y: builder.and_(x, builder.not_(y)))
