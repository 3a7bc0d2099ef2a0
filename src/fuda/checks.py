"""Checks of parameters and data that models, kernels and formats share.

`is_…` functions answer a question about one value; `check_…` functions raise DataError with the
name of the parameter, what was found and what to give instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fuda.errors import DataError, short
from fuda.parallel import thread_count

LARGEST = 1e12  # of a parameter or a feature value; squares and sums of larger ones would leave no digits
SMALLEST = 1e-100  # of a parameter that must be above 0; reciprocals and squares stay within doubles


def is_whole(value: Any, least: float = -math.inf, most: float = math.inf) -> bool:
    """Whether a value is a whole number (Python's or NumPy's, not a bool) from `least` to `most`.

    >>> is_whole(3), is_whole(3.0), is_whole(True), is_whole(0, least=1)
    (True, False, False, False)
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and least <= int(value) <= most


def is_number(value: Any, least: float = -math.inf, most: float = math.inf) -> bool:
    """Whether a value is a real number (not a bool) from `least` to `most` that a finite float can hold.

    >>> is_number(0.5), is_number(10**400), is_number(float("nan")), is_number(2, most=1)
    (True, False, False, False)
    """
    if not isinstance(value, float | np.floating) and not is_whole(value):
        return False
    try:
        number = float(value)
    except OverflowError:  # an integer past all floats
        return False
    return math.isfinite(number) and least <= number <= most


def is_flag(value: Any) -> bool:
    """Whether a value is True or False."""
    return isinstance(value, bool | np.bool_)


def check_numbers(model: Any, *names: str, positive: bool = False) -> None:
    """Parameters that are numbers from 0 to LARGEST; from SMALLEST where they must be above 0."""
    wanted = f"above 0, from {SMALLEST:g} to {LARGEST:g}" if positive else f"from 0 to {LARGEST:g}"
    for name in names:
        if not is_number(getattr(model, name), SMALLEST if positive else 0, LARGEST):
            raise DataError(f"{name}={short(getattr(model, name))}: give a number {wanted}")


def check_counts(model: Any, *names: str, least: int = 1) -> None:
    """Parameters that are whole numbers of at least `least`."""
    for name in names:
        if not is_whole(getattr(model, name), least):
            raise DataError(f"{name}={short(getattr(model, name))}: give a whole number of at least {least}")


def check_flags(model: Any, *names: str) -> None:
    """Parameters that are True or False."""
    for name in names:
        if not is_flag(getattr(model, name)):
            raise DataError(f"{name}={short(getattr(model, name))}: give True or False")


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """A parameter or option that is one of a few values."""
    known = list(choices)
    if value not in known:
        raise DataError(f"{name}={short(value)}: choose one of {', '.join(map(str, known))}")


def check_threads(model: Any) -> None:
    """The parameter `n_jobs`, the number of threads."""
    n_jobs = model.n_jobs
    if n_jobs is not None and not is_whole(n_jobs):
        raise DataError(f"n_jobs={short(n_jobs)}: give the number of threads, or None for all cores")
    thread_count(None if n_jobs is None else int(n_jobs))


def check_randomness(model: Any) -> None:
    """The parameter `random_state`, as scikit-learn takes it."""
    from sklearn.utils import check_random_state  # slow to import, and readers of files check options too

    try:
        check_random_state(model.random_state)
    except ValueError:
        raise DataError(
            f"random_state={short(model.random_state)}: give a whole number from 0 to 2³² − 1, or None"
        ) from None


def check_callback(model: Any) -> None:
    """`callback`, which is called after every iteration."""
    if model.callback is not None and not callable(model.callback):
        raise DataError(
            f"callback={short(model.callback)}: give a function of one argument, which gets a "
            "fuda.progress.Iteration, or None"
        )


def is_count(value: Any) -> bool:
    """Whether a value out of JSON is a whole number from 0 to what sizes can be."""
    return type(value) is int and 0 <= value < 1 << 48


def check_arrays(
    arrays: dict[str, np.ndarray],
    shapes: Mapping[str, tuple[int | None, ...]],
    dtypes: dict[str, Any] | None = None,
) -> None:
    """The arrays of a file are those that are needed: finite, of these shapes (None is any length),
    and float64 or what `dtypes` says."""
    for name in sorted(arrays.keys() | shapes.keys()):
        if name not in arrays:
            raise DataError(f"its array {name!r} is missing")
        if name not in shapes:
            raise DataError(f"its array {name!r} is not needed")
        found, needed = arrays[name], np.dtype((dtypes or {}).get(name, np.float64))
        lengths = [length in (None, n) for length, n in zip(shapes[name], found.shape, strict=False)]
        if found.dtype != needed or found.ndim != len(shapes[name]) or not all(lengths):
            raise DataError(
                f"its array {name!r} is {found.dtype} of shape {found.shape}, which does not fit: "
                f"{needed} of shape {_shape_text(shapes[name])} is needed"
            )
        if not np.isfinite(found).all():
            raise DataError(f"its array {name!r} is not finite")


def _shape_text(shape: tuple[int | None, ...]) -> str:
    return f"({', '.join('any' if n is None else str(n) for n in shape)}{',' * (len(shape) == 1)})"
