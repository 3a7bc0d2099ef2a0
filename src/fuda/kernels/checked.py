"""Checks of kernels: as parameters of models, on data, and in files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuda.errors import DataError, short
from fuda.kernels import algebra, observations, substitution
from fuda.kernels.algebra import Kernel
from fuda.kernels.points import Points
from fuda.kernels.values import check_values

DEEPEST = 100  # the largest number of levels of kernels within kernels
LARGEST_VALUE = 1e100  # the largest value of a kernel, with which squares and sums stay finite

# The kernels that files may name: all public ones of fuda that can be stored.
KERNELS: dict[str, type[Kernel]] = {
    name: value
    for name, value in {**vars(observations), **vars(substitution), **vars(algebra)}.items()
    if isinstance(value, type)
    and issubclass(value, Kernel)
    and not name.startswith("_")
    and value not in (Kernel, algebra.Function, observations.OneInnerProduct)
}


def as_kernel(value: Any, name: str = "kernel") -> Kernel:
    """Return a kernel with checked parameters.

    Parameters
    ----------
    value : Kernel or callable
        A function of two observations becomes a `Function` kernel.
    name : str
        The name of the parameter, for messages.

    Returns
    -------
    Kernel
        The value itself, or a `Function`.

    Examples
    --------
    >>> from fuda.kernels import Delta
    >>> as_kernel(Delta()), type(as_kernel(lambda a, b: float(a == b))).__name__
    (Delta(), 'Function')
    """
    if isinstance(value, type) and issubclass(value, Kernel):
        raise DataError(f"{name}={value.__name__}: that is a class; write {value.__name__}()")
    value = algebra.as_operand(value)
    if not isinstance(value, Kernel):
        of_text = "; parse_kernel makes one of text" if isinstance(value, str) else ""
        raise DataError(
            f"{name}={short(value)}: give a kernel of fuda.kernels ({', '.join(KERNELS)}) or a function of "
            f"two observations{of_text}"
        )
    level, depth = [value], 0
    while level:
        level, depth = [part for kernel in level for part in kernel.parts], depth + 1
        if depth > DEEPEST:
            raise DataError(
                f"{name}: sums and products of kernels are nested more than {DEEPEST} deep; add them in "
                "pairs, or leave some out"
            )
    value.check()
    return value


def check_kernel(kernel: Kernel, a: Points, where: Callable[[int], str], most: int = 300) -> None:
    """Raise DataError where the kernel is not finite or not symmetric on some of the points.

    Parameters
    ----------
    kernel : Kernel
        The kernel to check.
    a : Points
        The points to check it on.
    where : callable
        From a point's number to its name in messages.
    most : int
        About how many points are compared with each other.

    Examples
    --------
    >>> words = Points(np.eye(2), np.arange(2), np.zeros(2), ["Ana", "Bo"])
    >>> bad = as_kernel(lambda a, b: float(a < b))
    >>> try:
    ...     check_kernel(bad, words, lambda i: f"word {i}")
    ... except DataError:
    ...     print("not symmetric")
    not symmetric
    """
    some = np.arange(0, len(a), max(1, len(a) // most))
    with np.errstate(over="ignore", invalid="ignore"):
        values, diagonal = kernel.gram(a[some], a[some]), kernel.diagonal(a)
    check_values(kernel, values, lambda i: where(int(some[i])))
    bad = ~((diagonal >= 0) & (diagonal <= LARGEST_VALUE))
    if bad.any():
        i = int(bad.argmax())
        raise DataError(
            f"the kernel {short(kernel)} gives {diagonal[i]} for the observation of {where(i)} with "
            f"itself, not a number from 0 to {LARGEST_VALUE:g}; correct the kernel, or scale its features"
        )


def from_json(value: Any) -> Kernel:
    """Return the kernel that `Kernel.to_json` described.

    Parameters
    ----------
    value : dict
        The description.

    Returns
    -------
    Kernel
        The kernel, with checked parameters.

    Raises
    ------
    DataError
        If the value does not describe a kernel.

    Examples
    --------
    >>> from_json({"type": "Polynomial", "degree": 3, "offset": 1.0, "scale": 1.0})
    Polynomial(degree=3)
    """
    return as_kernel(_restored(value, DEEPEST))


def _restored(value: Any, depth: int) -> Kernel:
    """The kernel of a description, its parameters not yet checked."""
    if not depth:
        raise DataError(f"a kernel is nested more than {DEEPEST} deep; add kernels in pairs")
    if not isinstance(value, dict) or value.get("type") not in list(KERNELS):
        raise DataError(
            f"{short(value)} does not describe a kernel of fuda.kernels; give what its to_json returns"
        )
    cls = KERNELS[value["type"]]
    parameters = {
        k: _restored(v, depth - 1) if isinstance(v, dict) else v for k, v in value.items() if k != "type"
    }
    if set(parameters) != set(cls._get_param_names()):
        raise DataError(
            f"{short(value)}: give the parameters of a {cls.__name__} kernel: {list(cls._get_param_names())}"
        )
    return cls(**parameters)
