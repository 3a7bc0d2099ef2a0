"""What the values of a kernel have to be: finite and symmetric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuda.errors import DataError, short

Array = np.ndarray


def check_values(kernel: Any, values: Array, where: Callable[[int], str]) -> None:
    """Raise DataError at the first value that is not finite or differs from its transpose."""
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        i, j = map(int, bad[0])
        raise DataError(
            f"the kernel {short(kernel)} gives {values[i, j]} for {where(i)} and {where(j)}; a kernel is "
            "finite: correct it, or scale its features"
        )
    size = np.abs(values).max(initial=0.0)
    bad = np.argwhere(np.abs(values - values.T) > 1e-9 * size)
    if len(bad):
        i, j = map(int, bad[0])
        raise DataError(
            f"the kernel {short(kernel)} gives {values[i, j]:g} for {where(i)} and {where(j)}, but "
            f"{values[j, i]:g} the other way round; a kernel is symmetric: correct it"
        )
