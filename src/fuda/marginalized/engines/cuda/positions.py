"""From positions along structures to places in memory and back, in kernels."""

from __future__ import annotations

from typing import Any

from numba.cuda import jit

from fuda.marginalized.engines.cuda.layout import LANES, PLACES_PER_LANE, STRIP


@jit(device=True)
def folded(position: int) -> int:
    """Return the place of a position in strips, see `layout.Strips`."""
    within = position & (STRIP - 1)
    return position - within + (within & (PLACES_PER_LANE - 1)) * LANES + within // PLACES_PER_LANE


@jit(device=True)
def place_of(position: int, task: Any) -> int:
    """Return the place of a position, in strips or tiles."""
    return folded(position) if task.targets.strips > 0 else position


@jit(device=True)
def position_of(place: int, task: Any) -> int:
    """Return the position at a place, in strips or tiles."""
    within = place & (STRIP - 1)
    unfolded = place - within + (within & (LANES - 1)) * PLACES_PER_LANE + within // LANES
    return unfolded if task.targets.strips > 0 else place
