"""Kernels from text, such as ``polynomial(2).normalized() + 0.5 * delta()``.

The language is what `repr` of a kernel prints: calls of the kernels of this package with literal
parameters, sums, products, numbers, parentheses and ``.normalized()``. Upper and lower case are
the same, and a kernel without parameters needs no parentheses. A text is parsed, never executed.
"""

from __future__ import annotations

import ast
import inspect
from typing import Any

from fuda.checks import is_number
from fuda.errors import DataError, short
from fuda.kernels.algebra import Constant, Kernel, Product, Sum
from fuda.kernels.checked import KERNELS, as_kernel

_LONGEST = 100_000  # the largest number of characters of an expression
_COMBINED = {"Sum", "Product", "Normalized"}  # written as +, * and .normalized()
_BY_NAME = {name.lower(): kind for name, kind in KERNELS.items() if name not in _COMBINED}
_EXAMPLE = "write kernels such as polynomial(2).normalized() + 0.5 * delta()"


def parse_kernel(text: str) -> Kernel:
    """Return the kernel that a text describes.

    Parameters
    ----------
    text : str
        An expression such as `repr` of a kernel prints. Functions, and matrices that are
        abbreviated there, cannot be written.

    Returns
    -------
    Kernel
        The kernel, with checked parameters.

    Raises
    ------
    DataError
        If the text does not describe a kernel.

    Examples
    --------
    >>> parse_kernel("polynomial(2).normalized() + 0.5*delta")
    Polynomial(degree=2).normalized() + Constant(value=0.5) * Delta()
    """
    return kernel_of(syntax_of(text, _EXAMPLE))


def syntax_of(text: str, remedy: str) -> ast.expr:
    """Return the syntax of an expression.

    Parameters
    ----------
    text : str
        The expression.
    remedy : str
        What to write, for the message where the text is not an expression.

    Returns
    -------
    ast.expr
        The syntax, of which nothing has been looked at yet.
    """
    try:
        if len(text) > _LONGEST:
            raise ValueError
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError, SystemError):
        raise DataError(f"{short(text)} is not an expression; {remedy}") from None


def kernel_of(syntax: ast.expr) -> Kernel:
    """Return the kernel of an expression, with checked parameters."""
    try:
        kernel = _kernel(syntax)
    except RecursionError:
        raise DataError(f"kernels are nested too deep; {_EXAMPLE}") from None
    return as_kernel(kernel)


def _kernel(syntax: ast.expr) -> Kernel:
    match syntax:
        case ast.BinOp(left, ast.Add(), right):
            return Sum(_kernel(left), _kernel(right))
        case ast.BinOp(left, ast.Mult(), right):
            return Product(_kernel(left), _kernel(right))
        case ast.Call(ast.Attribute(inner, "normalized"), [], []):
            return _kernel(inner).normalized()
        case ast.Call(ast.Name(name), arguments, keywords):
            return _called(name, arguments, keywords)
        case ast.Name(name):
            return _called(name, [], [])
        case ast.Constant(int() | float() as value) if is_number(value):
            return Constant(float(value))
    raise DataError(f"{short(ast.unparse(syntax))} is not a kernel; {_EXAMPLE}")


def _called(name: str, arguments: list[ast.expr], keywords: list[ast.keyword]) -> Kernel:
    """A kernel by its name and parameters."""
    kind = _BY_NAME.get(name.lower())
    if kind is None:
        raise DataError(f"there is no kernel {name!r}; there are {', '.join(_BY_NAME)}")
    known = list(inspect.signature(kind).parameters)
    names = [*known[: len(arguments)], *(str(keyword.arg) for keyword in keywords)]
    if len(arguments) > len(known) or len(set(names)) < len(names) or not set(names) <= set(known):
        raise DataError(
            f"{name}: has the parameters {', '.join(known) or 'none'}, each given once; {_EXAMPLE}"
        )
    values = map(literal_of, [*arguments, *(keyword.value for keyword in keywords)])
    try:
        return kind(**dict(zip(names, values, strict=True)))
    except TypeError:
        raise DataError(f"{name}: needs its parameters {', '.join(known)}") from None


def literal_of(syntax: ast.expr) -> Any:
    """Return the value of a literal; a name is its own text, or true, false or none.

    >>> texts = "2", "-0.5", "'a'", "word", "true", "[[1, 0]]"
    >>> [literal_of(syntax_of(text, "")) for text in texts]
    [2, -0.5, 'a', 'word', True, [[1, 0]]]
    """
    if isinstance(syntax, ast.Name):
        constants = {"true": True, "false": False, "none": None}
        return constants.get(syntax.id.lower(), syntax.id)
    try:
        return ast.literal_eval(syntax)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise DataError(f"{short(ast.unparse(syntax))} is not a number or a text; write one") from None
