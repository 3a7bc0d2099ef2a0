"""The card that the CUDA engine runs on, or an explanation why there is none."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from fuda.errors import DataError, short

# What numba-cuda needs, and what blocks that wait for each other need.
_OLDEST_DRIVER, _OLDEST_CARD = (12, 0), (6, 0)
_SIMULATOR = "simulator"
_OTHERWISE = "or set engine='cpu'"
# What errors of the driver mean, by a part of their names or texts.
_MEANINGS = {
    "INSUFFICIENT_DRIVER": "the NVIDIA driver is too old for the CUDA libraries here; update it",
    "SYSTEM_DRIVER_MISMATCH": "the NVIDIA driver does not fit its own libraries; restart after its update",
    "UNAVAILABLE": "the card is taken by another program, which uses it alone; wait for it",
    "busy": "the card is taken by another program, which uses it alone; wait for it",
    "OUT_OF_MEMORY": "other programs have taken all memory of the card; wait for them",
}


class NoCard(DataError):
    """There is no card, or not what programs need to use it."""


class Refused(DataError):
    """There is a card that cannot be used now, or not for this problem."""


class Card(NamedTuple):
    """A card: its name, number, how many there are, and its number of multiprocessors."""

    name: str
    number: int
    cards: int
    multiprocessors: int

    @property
    def is_simulated(self) -> bool:
        """Whether this is numba's simulator."""
        return self.name == _SIMULATOR

    def __str__(self) -> str:
        card = f"card {self.number} of {self.cards} ({self.name})"
        return card if self.cards == 1 else f"{card}, where CUDA_VISIBLE_DEVICES chooses another one"


@cache
def has_driver() -> bool:
    """Return whether there is a driver at all, without importing numba's CUDA part."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def load() -> Any:
    """Import and return `numba.cuda`; raise NoCard if it is missing or unfit for this NumPy."""
    try:
        from numba import config, cuda
    except (ImportError, AttributeError) as error:  # the latter: NumPy is too new for it
        install = "pip install 'fuda[gpu]'"
        raise NoCard(
            f"engine='cuda' needs numba-cuda ({short(str(error))}); {install}, {_OTHERWISE}"
        ) from error
    vars(config)["CUDA_LOW_OCCUPANCY_WARNINGS"] = 0  # a few sentences are few, whoever counts
    return cuda


def card(cuda: Any) -> Card:
    """Return the current card, with a context on it; raise NoCard or Refused where there is none.

    Parameters
    ----------
    cuda : module
        `numba.cuda`.

    Returns
    -------
    Card
        The card.
    """
    if cuda.config.ENABLE_CUDASIM:
        return Card(_SIMULATOR, 0, 1, 1)
    if not has_driver():
        raise NoCard(f"engine='cuda': there is no NVIDIA driver here (libcuda); install it, {_OTHERWISE}")
    with explained_errors(cuda, RuntimeError, ImportError):
        version = tuple(cuda.cudadrv.driver.driver.get_version())
        if version < _OLDEST_DRIVER:
            raise Refused(
                f"engine='cuda': the NVIDIA driver is too old: it supports CUDA {_dotted(version)}, and "
                f"{_dotted(_OLDEST_DRIVER)} is needed; update it, {_OTHERWISE}"
            )
        if not cuda.is_available():
            raise NoCard(f"engine='cuda': the NVIDIA driver finds no card; {_OTHERWISE[3:]}")
        card = cuda.get_current_device()
        name = card.name.decode() if isinstance(card.name, bytes) else str(card.name)
        if tuple(card.compute_capability) < _OLDEST_CARD:
            raise Refused(
                f"engine='cuda': {name} has compute capability {_dotted(card.compute_capability)}, and "
                f"{_dotted(_OLDEST_CARD)} is needed; {_OTHERWISE[3:]}"
            )
        cuda.current_context()  # refused by a card that another program uses alone
        return Card(name, int(card.id), len(cuda.gpus), int(card.MULTIPROCESSOR_COUNT))


@contextmanager
def explained_errors(cuda: Any, *more: type[Exception]) -> Iterator[None]:
    """Within the block, raise errors of the driver, and of more classes, with an explanation."""
    errors = () if cuda.config.ENABLE_CUDASIM else (cuda.cudadrv.error.CudaDriverError, *more)
    try:
        yield
    except errors as error:
        raise Refused(f"engine='cuda': {_meaning(str(error))}, {_OTHERWISE}") from error


def _meaning(text: str) -> str:
    """Say what an error of the driver means, and what to do."""
    for part, meaning in _MEANINGS.items():
        if part in text:
            return meaning
    return f"the card cannot be used ({short(text)}); look at it with nvidia-smi"


def _dotted(version: Any) -> str:
    return ".".join(map(str, tuple(version)[:2]))
