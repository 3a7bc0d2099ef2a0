"""The state of a random generator as an array, so that a training can continue from a file."""

from __future__ import annotations

import numpy as np

from fuda.errors import DataError, short

# The keys of the Mersenne Twister. Its position, a flag and a second normal number follow them.
_KEYS = 624


def stored_random(random: np.random.RandomState) -> np.ndarray:
    """Return the state of a generator, as floats that hold it exactly.

    >>> random = np.random.RandomState(3)
    >>> kept = stored_random(random)
    >>> before = random.rand()
    >>> restore_random(random, kept)
    >>> random.rand() == before
    True
    """
    state = random.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise DataError(
            f"random_state={short(random)}: its state cannot be stored; give RandomState(seed), or a seed"
        )
    inner = state["state"]
    return np.array([*inner["key"], inner["pos"], state["has_gauss"], state["gauss"]], dtype=np.float64)


def restore_random(random: np.random.RandomState, state: np.ndarray) -> None:
    """Set a generator to a state of `stored_random`; raise DataError for what cannot be one."""
    integers = state[: _KEYS + 2]
    if state.shape != (_KEYS + 3,) or state.dtype != np.float64 or not np.isfinite(state).all():
        raise DataError("its array 'random' is missing, or is not the state of a random generator")
    keys, position, flag = integers[:_KEYS], integers[_KEYS], integers[_KEYS + 1]
    counts = (integers >= 0).all() and (integers % 1 == 0).all()
    if not counts or keys.max() >= 1 << 32 or position > _KEYS or flag > 1:
        raise DataError("its array 'random' is not the state of a random generator")
    random.set_state(("MT19937", keys.astype(np.uint32), int(position), int(flag), float(state[-1])))
