"""Checks of parameters and data that models, kernels and formats share.

`is_…` functions return whether a value has a property; `check_…` functions raise DataError with
the name of the parameter, its value and what to give instead.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fuda.errors import DataError, short
from fuda.runtime.parallel import thread_count

# The largest parameter or feature value: squares and sums of larger ones lose all digits.
LARGEST = 1e12
_UNCHECKED_BYTES = 1 << 28  # less memory is taken without a look at what is available
_GROUPS = [  # the limit of a control group and what it uses, of both versions
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
]
# The smallest parameter that must be above 0: reciprocals and squares stay within doubles.
SMALLEST = 1e-100


def is_whole(value: Any, least: float = -math.inf, most: float = math.inf) -> bool:
    """Whether a value is a whole number (Python's or NumPy's, not a bool) from `least` to `most`.

    >>> is_whole(3), is_whole(3.0), is_whole(True), is_whole(0, least=1)
    (True, False, False, False)
    """
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_integer and least <= int(value) <= most


def is_number(value: Any, least: float = -math.inf, most: float = math.inf) -> bool:
    """Whether a value is a real number, not a bool, from `least` to `most`, finite as a float.

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
    """Check parameters that are numbers from 0 to LARGEST, or from SMALLEST if `positive`."""
    bounds = f"above 0, from {SMALLEST:g} to {LARGEST:g}" if positive else f"from 0 to {LARGEST:g}"
    for name in names:
        if not is_number(getattr(model, name), SMALLEST if positive else 0, LARGEST):
            raise DataError(f"{name}={short(getattr(model, name))}: give a number {bounds}")


def check_counts(model: Any, *names: str, least: int = 1) -> None:
    """Check parameters that are whole numbers of at least `least`."""
    for name in names:
        if not is_whole(getattr(model, name), least):
            raise DataError(f"{name}={short(getattr(model, name))}: give a whole number of at least {least}")


def check_flags(model: Any, *names: str) -> None:
    """Check parameters that are True or False."""
    for name in names:
        if not is_flag(getattr(model, name)):
            raise DataError(f"{name}={short(getattr(model, name))}: give True or False")


def is_choice(value: Any, choices: Iterable[Any]) -> bool:
    """Whether a value is one of a few texts, None or other plain values; arrays and lists are not.

    >>> is_choice("l1", ("l1", None)), is_choice(None, ("l1", None)), is_choice([], ("l1", None))
    (True, True, False)
    """
    return isinstance(value, Hashable) and value in list(choices)


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Check a parameter or option that is one of a few values."""
    known = list(choices)
    if not is_choice(value, known):
        raise DataError(f"{name}={short(value)}: choose one of {', '.join(map(str, known))}")


def check_threads(model: Any) -> None:
    """Check the parameter `n_jobs`, the number of threads."""
    n_jobs = model.n_jobs
    if n_jobs is not None and not is_whole(n_jobs):
        raise DataError(f"n_jobs={short(n_jobs)}: give the number of threads, or None for all cores")
    if n_jobs is not None:
        thread_count(int(n_jobs))


def check_randomness(model: Any) -> None:
    """Check the parameter `random_state`, as scikit-learn defines it."""
    # Slow to import, and readers of files check options too.
    from fuda.runtime.estimators import check_random_state

    try:
        check_random_state(model.random_state)
    except ValueError:
        raise DataError(
            f"random_state={short(model.random_state)}: give a whole number from 0 to 2³² − 1, or None"
        ) from None


def check_callback(model: Any) -> None:
    """Check the parameter `callback`, which is called after every iteration."""
    if model.callback is not None and not callable(model.callback):
        raise DataError(
            f"callback={short(model.callback)}: give a function of one argument, a "
            "fuda.progress.Iteration, or None"
        )


def check_checkpoint(model: Any) -> None:
    """Check the parameter `checkpoint`, the path of a file."""
    if model.checkpoint is not None and not isinstance(model.checkpoint, str | Path):
        raise DataError(f"checkpoint={short(model.checkpoint)}: give the path of a file")


def check_cluster(model: Any) -> None:
    """Check the parameter `cluster`, the address of a scheduler."""
    if model.cluster is not None and not (isinstance(model.cluster, str) and model.cluster):
        raise DataError(
            f"cluster={short(model.cluster)}: give the address of the scheduler of a Dask cluster as text, "
            "such as 'tcp://10.0.0.1:8786' (the attribute scheduler_address of a LocalCluster), or None"
        )


def check_memory(needed: float, what: str, remedy: str) -> None:
    """Refuse work that takes more bytes than there are, before they are allocated.

    Parameters
    ----------
    needed : float
        The number of bytes.
    what : str
        What needs them.
    remedy : str
        What to do instead.
    """
    if needed < _UNCHECKED_BYTES:
        return
    available = available_memory()
    if available is not None and needed > available:
        raise DataError(
            f"{what} needs {needed:,.0f} bytes of memory, and {available:,} are available; {remedy}, or set "
            "the environment variable FUDA_MAX_MEMORY to the number of bytes that may be taken"
        )


def available_memory() -> int | None:
    """How many bytes may be taken: FUDA_MAX_MEMORY, or what the system leaves, if known."""
    setting = os.environ.get("FUDA_MAX_MEMORY")
    if setting:
        if not re.fullmatch("[0-9]{1,18}", setting):
            raise DataError(f"FUDA_MAX_MEMORY={setting!r}: give a whole number of bytes, such as {8 << 30}")
        return int(setting)
    limits = [_left_of_the_system(), *map(_left_of_a_group, _GROUPS), _left_of_the_process()]
    return min((number for number in limits if number is not None), default=None)


def _left_of_the_system() -> int | None:
    """The memory of Linux that can be taken without swapping."""
    match = re.search(r"^MemAvailable: +(\d+) kB", _text("/proc/meminfo"), re.MULTILINE)
    return 1024 * int(match[1]) if match else None


def _left_of_a_group(files: tuple[str, str]) -> int | None:
    """What the limit of a control group (a container) leaves; cached files count as free."""
    limit, used = (_text(file).strip() for file in files)
    cached = re.search(
        r"^inactive_file (\d+)", _text(os.path.dirname(files[1]) + "/memory.stat"), re.MULTILINE
    )
    if not (limit.isdigit() and used.isdigit()):
        return None
    return max(0, int(limit) - int(used) + (int(cached[1]) if cached else 0))


def _left_of_the_process() -> int | None:
    """What a limit on the address space of the process leaves."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    pages = _text("/proc/self/statm").split()[:1]
    if limit == resource.RLIM_INFINITY or not pages:
        return None
    return max(0, limit - int(pages[0]) * resource.getpagesize())


def _text(path: str) -> str:
    """The content of a file of the system, empty where there is none."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def is_count(value: Any) -> bool:
    """Whether a value from JSON is a whole number that can be a size."""
    return type(value) is int and 0 <= value < 1 << 48


def listed(values: Any) -> list[Any] | None:
    """Return values as a list; None if they are not a collection or have no order."""
    if type(values) is list:  # as nearly always, and looking for abstract classes takes a microsecond
        return values.copy()
    if isinstance(values, str | bytes | dict | set | frozenset) or not isinstance(values, Iterable):
        return None
    return None if isinstance(values, np.ndarray) and values.ndim == 0 else list(values)


def check_arrays(
    arrays: dict[str, np.ndarray],
    shapes: Mapping[str, tuple[int | None, ...]],
    dtypes: dict[str, Any] | None = None,
) -> None:
    """Check that the arrays of a file are those that are needed, and finite.

    Parameters
    ----------
    arrays : dict of str to array
    shapes : mapping of str to tuple
        The shape of each array; None for any length.
    dtypes : dict, optional
        The dtypes of arrays that are not float64.
    """
    for name in sorted(arrays.keys() | shapes.keys()):
        if name not in arrays:
            raise DataError(f"its array {name!r} is missing")
        if name not in shapes:
            raise DataError(f"its array {name!r} is not needed")
        array, needed = arrays[name], np.dtype((dtypes or {}).get(name, np.float64))
        lengths = [length in (None, n) for length, n in zip(shapes[name], array.shape, strict=False)]
        if array.dtype != needed or array.ndim != len(shapes[name]) or not all(lengths):
            raise DataError(
                f"its array {name!r} is {array.dtype} of shape {array.shape}, which does not fit: "
                f"{needed} of shape {_shape_text(shapes[name])} is needed"
            )
        if not np.isfinite(array).all():
            raise DataError(f"its array {name!r} is not finite")


def count_in(values: dict[str, Any], name: str) -> int:
    """Return a number that the values of a file count; raise DataError where they do not."""
    value: Any = values.get(name)
    if not is_count(value):
        raise DataError(f"it counts {short(value)} {name}, which cannot be their number")
    return int(value)


def split_prefix(
    arrays: dict[str, np.ndarray], prefix: str
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The arrays whose names begin with the prefix, without it, and the others."""
    prefixed = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return prefixed, {name: array for name, array in arrays.items() if not name.startswith(prefix)}


def _shape_text(shape: tuple[int | None, ...]) -> str:
    """A shape for messages."""
    return f"({', '.join('any' if n is None else str(n) for n in shape)}{',' * (len(shape) == 1)})"
