"""The scores of a corpus in one launch: every block of threads adds all pushes to its tiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import config, cuda

from fuda.marginalized.engines.cuda.kernels import ROWS, SHARED, Array, Span, Task, push_of
from fuda.marginalized.engines.cuda.layout import MAIL
from fuda.marginalized.engines.cuda.strips import strips_of

# The threads of a block, of which a multiprocessor has one, and registers that leave room for so
# many: for scores in tiles where the mass is constant, for strips with priors in registers, and
# for all else.
SCORING, WITH_PRIORS, THREADS = (768, 80), (384, 168), (512, 128)


class Variant(NamedTuple):
    """What kernels are compiled for.

    Attributes
    ----------
    constant : bool
        Whether the mass is the same for all pairs of nodes.
    staged : bool
        Whether rows of the table fit into shared memory.
    wide : bool
        Whether words need 64 bits.
    strips : int
        The number of labels where targets are in strips, 0 where they are in tiles.
    """

    constant: bool
    staged: bool
    wide: bool
    strips: int


def tiled(push: Callable[..., None]) -> Callable[..., None]:
    """Return the function by which a block of threads adds a push to its tiles."""

    @cuda.jit(device=True)
    def push_tiles(span: Span, task: Task, shared: Any) -> None:
        tiles, tile, step = task.targets.tiles, cuda.blockIdx.x, cuda.gridDim.x
        while tile < len(tiles) - 1:
            begin, size, first, end, _, _ = span
            push(Span(begin, size, first, end, tiles[tile] + 1, tiles[tile + 1]), task, shared)
            tile += step

    return push_tiles


def pushes_of(variant: Variant) -> Callable[..., None]:
    """Return the function by which a block of threads adds a push to its share of the targets."""
    if variant.strips:
        return strips_of(variant.constant, variant.staged, variant.strips)
    return tiled(push_of(variant.constant, variant.staged))


@cache
def score_kernel(variant: Variant) -> Any:
    """Return the kernel, compiled at its first call or read from disk.

    Parameters
    ----------
    variant : Variant
        What it is compiled for.

    Returns
    -------
    callable
        A kernel of a task, which adds all its pushes.
    """
    push, number = pushes_of(variant), np.uint64 if variant.wide else np.uint32

    @cuda.jit(**options(*scoring(variant)))
    def score(task: Task) -> None:
        buffer = cuda.shared.array(SHARED, np.float64)
        ids = cuda.shared.array(ROWS, number)
        shared, pushes = (buffer, ids, cuda.shared.array(MAIL, np.float64)), task.pushes
        for p in range(len(pushes.begins)):
            begin, size, first, end = (
                pushes.begins[p],
                pushes.sizes[p],
                pushes.firsts[p],
                pushes.firsts[p + 1],
            )
            push(Span(begin, size, first, end, 0, 0), task, shared)

    return score


def scoring(variant: Variant) -> tuple[int, int]:
    """Return threads and registers of the kernel `score`."""
    return SCORING if variant.constant and not variant.strips else threads(variant)


def threads(variant: Variant) -> tuple[int, int]:
    """Return threads and registers of the kernel `epoch`."""
    return WITH_PRIORS if variant.strips and not variant.constant else THREADS


def options(_: int, registers: int) -> dict[str, Any]:
    """Return the options of a kernel with so many registers; the simulator knows no registers."""
    return {"cache": True} if config.ENABLE_CUDASIM else {"cache": True, "max_registers": registers}


@cuda.jit(cache=True)
def clear(scores: Array) -> None:
    """Set scores, in one row, to 0."""
    for t in range(cuda.grid(1), len(scores), cuda.gridsize(1)):
        scores[t] = 0.0
