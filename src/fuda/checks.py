"""Checks of parameters and data that models, kernels and formats share.

`is_…` functions answer a question about one value; `check_…` functions raise DataError with the
name of the parameter, what was found and what to give instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
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
