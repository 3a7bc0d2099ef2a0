"""The scores of a corpus in one launch: every block of threads adds all pushes to its tiles."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import config, cuda

from fuda.marginalized.engines.cuda.kernels import ROWS, SHARED, Array, Span, Task, push_of

# The threads of a block, of which a multiprocessor has one, and registers that leave room for so
# many: for scores where the mass is constant, and for all else.
SCORING, THREADS = (768, 80), (512, 128)


@cache
def score_kernel(constant: bool, staged: bool, wide: bool) -> Any:
    """Return the kernel, compiled at its first call or read from disk.

    Parameters
    ----------
    constant : bool
        Whether the mass is the same for all pairs of nodes.
    staged : bool
        Whether rows of the table fit into shared memory.
    wide : bool
        Whether words need 64 bits.

    Returns
    -------
    callable
        A kernel of a task, which adds all its pushes.
    """
    push, number = push_of(constant, staged), np.uint64 if wide else np.uint32

    @cuda.jit(**options(*scoring(constant)))
    def score(task: Task) -> None:
        buffer = cuda.shared.array(SHARED, np.float64)
        twins = cuda.shared.array(ROWS, number)
        shared = buffer, twins
        tiles, pushes = task.targets.tiles, task.pushes
        tile = cuda.blockIdx.x
        while tile < len(tiles) - 1:
            for p in range(len(pushes.begins)):
                begin, size, first, end = (
                    pushes.begins[p],
                    pushes.sizes[p],
                    pushes.firsts[p],
                    pushes.firsts[p + 1],
                )
                push(Span(begin, size, first, end, tiles[tile] + 1, tiles[tile + 1]), task, shared)
            tile += cuda.gridDim.x

    return score


def scoring(constant: bool) -> tuple[int, int]:
    """Return threads and registers of the kernel `score`."""
    return SCORING if constant else THREADS


def options(_: int, registers: int) -> dict[str, Any]:
    """Return the options of a kernel with so many registers; the simulator knows no registers."""
    return {"cache": True} if config.ENABLE_CUDASIM else {"cache": True, "max_registers": registers}


@cuda.jit(cache=True)
def clear(scores: Array) -> None:
    """Set scores, in one row, to 0."""
    for t in range(cuda.grid(1), len(scores), cuda.gridsize(1)):
        scores[t] = 0.0
