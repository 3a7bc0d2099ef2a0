"""The card that the CUDA engine runs on, or a sentence that says why there is none."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, NamedTuple

from fuda.errors import DataError, short

_OLDEST_DRIVER, _OLDEST_CARD = (12, 0), (6, 0)  # what numba-cuda, and waiting for other blocks, need
_SIMULATOR = "simulator"
_INSTALL = "pip install 'fuda[gpu]'"


class Card(NamedTuple):
    """A card: its name, number, how many there are, and its number of multiprocessors."""

    name: str
    number: int
    count: int
    multiprocessors: int

    @property
    def is_simulated(self) -> bool:
        """Whether this is numba's simulator."""
        return self.name == _SIMULATOR

    def __str__(self) -> str:
        which = f"card {self.number} of {self.count} ({self.name})"
        return which if self.count == 1 else f"{which}; CUDA_VISIBLE_DEVICES chooses another one"


@cache
def has_driver() -> bool:
    """Return whether there is a driver at all, which is found out without importing numba's part."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def load() -> Any:
    """Import and return `numba.cuda`; raise DataError where it is not installed."""
    try:
        from numba import cuda
    except ImportError as error:
        raise DataError(f"engine='cuda' needs numba-cuda ({short(str(error))}); {_INSTALL}") from error
    return cuda


def card(cuda: Any) -> Card:
    """Return the current card; raise DataError where none can be used.

    Parameters
    ----------
    cuda : module
        `numba.cuda`.

    Returns
    -------
    Card
        The card, with a context on it.
    """
    if cuda.config.ENABLE_CUDASIM:
        return Card(_SIMULATOR, 0, 1, 1)
    try:
        if not cuda.is_available():
            raise DataError(_why_not_available(cuda))
        version = tuple(cuda.runtime_of_driver()) if hasattr(cuda, "runtime_of_driver") else _version(cuda)
        if version < _OLDEST_DRIVER:
            raise DataError(
                f"engine='cuda': the NVIDIA driver is too old, it supports CUDA {_dotted(version)} and "
                f"{_dotted(_OLDEST_DRIVER)} is needed; update the driver, or set engine='cpu'"
            )
        found = cuda.get_current_device()
        name = found.name.decode() if isinstance(found.name, bytes) else str(found.name)
        if tuple(found.compute_capability) < _OLDEST_CARD:
            raise DataError(
                f"engine='cuda': {name} has compute capability {_dotted(found.compute_capability)}, and "
                f"{_dotted(_OLDEST_CARD)} is needed; set engine='cpu'"
            )
        cuda.current_context()  # which a card used by others alone refuses
        return Card(name, int(found.id), len(cuda.gpus), int(found.MULTIPROCESSOR_COUNT))
    except (RuntimeError, OSError) as error:  # numba's own errors are of these classes
        raise DataError(_refusal(error)) from error


def _why_not_available(cuda: Any) -> str:
    """A sentence on why numba finds no card."""
    reason = cuda.cuda_error()
    text = f" ({short(str(reason))})" if reason else ""
    if not has_driver():
        return "engine='cuda': there is no NVIDIA driver here (libcuda was not found); install it, or set engine='cpu'"
    return f"engine='cuda': the NVIDIA driver finds no card that it can use{text}; set engine='cpu'"


def _version(cuda: Any) -> tuple[int, ...]:
    return tuple(cuda.cudadrv.driver.driver.get_version())


def _refusal(error: Exception) -> str:
    """A sentence on an error of the driver."""
    text = str(error)
    if any(name in text for name in ("DEVICE_UNAVAILABLE", "DEVICES_UNAVAILABLE", "all CUDA-capable devices are busy")):
        return "engine='cuda': the card is taken by another program, which uses it alone; wait, or set engine='cpu'"
    if any(name in text for name in ("INSUFFICIENT_DRIVER", "SYSTEM_DRIVER_MISMATCH")):
        return "engine='cuda': the NVIDIA driver is too old for the CUDA libraries here; update it, or set engine='cpu'"
    if "OUT_OF_MEMORY" in text:
        return "engine='cuda': the card has no memory left, other programs have it; wait, or set engine='cpu'"
    return f"engine='cuda': the card cannot be used ({short(text)}); set engine='cpu'"


def _dotted(version: Any) -> str:
    return ".".join(map(str, tuple(version)[:2]))
