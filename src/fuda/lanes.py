"""Sixteen integers of 32 bits side by side, for compiled code: one instruction for all of them.

LLVM makes vector instructions of loops, but only of stretches that are longer than a row of scores
of a few labels. `Lanes` are sixteen numbers of a row of an array, 64 bytes, in registers:

    load(array, i, k)       array[i, k : k + 16]
    store(array, i, k, x)   array[i, k : k + 16] = x
    spread(number)          the number in every lane
    plus(x, y)              x + y
    minus(x, y)             x − y
    larger(x, y)            max(x, y)
    without(x, y)           the bits of x that are not in y

Arrays are C-contiguous (n, width) arrays of int32, their width a multiple of 16. Nothing is checked
here, bounds included. These functions work inside compiled code only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

WIDTH = 16
_INT = ir.IntType(32)
_VECTOR = ir.VectorType(_INT, WIDTH)


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
    """A pointer to the lanes that an array has at a row and column."""
    array = context.make_array(sig.args[0])(context, builder, args[0])
    row, column = (context.cast(builder, args[k], sig.args[k], types.intp) for k in (1, 2))
    width = builder.extract_value(array.shape, 1)
    number = builder.gep(array.data, [builder.add(builder.mul(row, width), column)])
    return builder.bitcast(number, _VECTOR.as_pointer())


def _is_table(array: Any) -> bool:
    """Whether lanes can be read from arrays of a type."""
    return isinstance(array, types.Array) and (array.dtype, array.ndim, array.layout) == (types.int32, 2, "C")


@intrinsic
def load(typing: Any, array: Any, row: Any, column: Any) -> Any:
    """Read the lanes of a row, from a column on."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_place(context, builder, sig, args), align=4)

    return (_LANES(array, row, column), generate) if _is_table(array) else None


@intrinsic
def store(typing: Any, array: Any, row: Any, column: Any, lanes: Any) -> Any:
    """Write lanes to a row, from a column on."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[3], _place(context, builder, sig, args), align=4)
        return context.get_dummy_value()

    return (types.none(array, row, column, lanes), generate) if _is_table(array) else None


@intrinsic
def spread(typing: Any, number: Any) -> Any:
    """Put a number into every lane."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        number = context.cast(builder, args[0], sig.args[0], types.int32)
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        one = builder.insert_element(nothing, number, _INT(0))
        return builder.shuffle_vector(one, nothing, ir.Constant(_VECTOR, None))

    return _LANES(number), generate


def _of_two(build: Callable[[Any, Any, Any], Any]) -> Any:
    """The function of two lanes that an LLVM instruction computes."""

    @intrinsic
    def function(typing: Any, x: Any, y: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return build(builder, *args)

        return _LANES(x, y), generate

    return function


plus = _of_two(lambda builder, x, y: builder.add(x, y))
minus = _of_two(lambda builder, x, y: builder.sub(x, y))
larger = _of_two(lambda builder, x, y: builder.select(builder.icmp_signed(">", x, y), x, y))
without = _of_two(lambda builder, x, y: builder.and_(x, builder.not_(y)))
