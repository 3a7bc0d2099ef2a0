"""Checks of parameters and data that models share; each raises DataError."""

from __future__ import annotations

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
