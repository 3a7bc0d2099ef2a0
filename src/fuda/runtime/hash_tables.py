"""Hash tables from whole numbers ≥ 0, for compiled code: open addressing in 2ⁿ slots."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.runtime.compiled import compiled

Array = np.ndarray
FREE = -1  # the key of a free slot


@compiled
def slot_of(keys: Array, key: int) -> int:
    """Return the slot of a key, or the free slot for it; one slot at least must be free."""
    mask = len(keys) - 1
    slot: Any = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
    while keys[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot
