"""Checks of parameters and data that models share; each raises DataError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fuda.errors import DataError, short
from fuda.parallel import thread_count

LARGEST = 1e12  # of a parameter or a feature value; squares and sums of larger ones would leave no digits


def check_numbers(model: Any, *names: str) -> None:
    """Numbers from 0 to LARGEST."""
    for name in names:
        value = getattr(model, name)
        plain = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not plain or not 0 <= value <= LARGEST:
            raise DataError(f"{name}={short(value)}: give a number from 0 to {LARGEST:g}")


def check_counts(model: Any, *names: str, least: int = 1) -> None:
    """Whole numbers of at least `least`."""
    for name in names:
        value = getattr(model, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise DataError(f"{name}={short(value)}: give a whole number of at least {least}")


def check_flags(model: Any, *names: str) -> None:
    """True or False."""
    for name in names:
        if not isinstance(getattr(model, name), bool | np.bool_):
            raise DataError(f"{name}={short(getattr(model, name))}: give True or False")


def check_threads(model: Any) -> None:
    """`n_jobs`, the number of threads."""
    n_jobs = model.n_jobs
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer)):
        raise DataError(f"n_jobs={short(n_jobs)}: give the number of threads, or None for all cores")
    thread_count(None if n_jobs is None else int(n_jobs))


def check_randomness(model: Any) -> None:
    """`random_state`, as scikit-learn takes it."""
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
