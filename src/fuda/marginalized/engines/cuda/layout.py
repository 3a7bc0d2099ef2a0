"""Arrays by place, as the CUDA engine has them, and how they are divided among blocks of threads."""

from __future__ import annotations

import numpy as np

from fuda.marginalized.engines.cpu.push import Values
from fuda.marginalized.problem import Side

Array = np.ndarray
TILE = 2304  # most places of a tile, but for longer structures
_TWINS = 2  # added to twin numbers, which makes them positive


class Places:
    """The places of nodes, with an empty one before each structure and at the end.

    Parameters
    ----------
    side : Side
        The structures.

    Attributes
    ----------
    begins : array
        The first place of each structure.
    of_nodes : array (N,)
        The place of each node.
    size : int
        The number of places.
    """

    def __init__(self, side: Side) -> None:
        self._offsets, sizes = side.offsets, side.sizes
        self.begins = side.offsets[:-1] + np.arange(1, len(sizes) + 1)
        self.of_nodes = np.arange(side.offsets[-1]) + np.repeat(np.arange(1, len(sizes) + 1), sizes)
        self.size = int(side.offsets[-1]) + len(sizes) + 1

    def spread(self, values: Array, empty: float = 0, dtype: type | None = None) -> Array:
        """Return values (…, N) of nodes by place, and `empty` at empty places."""
        spread = np.full((*values.shape[:-1], self.size), empty, dtype=dtype or values.dtype)
        spread[..., self.of_nodes] = values
        return spread

    def owners(self, places: Array) -> Array:
        """Return the structures that have these places."""
        return np.searchsorted(self.begins, places, side="right") - 1

    def visits(self, order: Array) -> Array:
        """Return the places in the order of visits of structures."""
        sizes = np.diff(self._offsets)[order]
        ends = np.cumsum(sizes)
        firsts = np.repeat(self.begins[order] - ends + sizes, sizes)
        return (firsts + np.arange(len(firsts))).astype(np.int32)

    def tiles(self, blocks: int) -> Array:
        """Return bounds of tiles, empty places, so that all blocks have about as many places."""
        count = blocks * -(-self.size // (blocks * TILE))
        empty = np.append(self.begins - 1, self.size - 1)
        wanted = np.linspace(0, self.size - 1, count + 1)
        after = np.searchsorted(empty, wanted).clip(1, len(empty) - 1)
        nearer = np.where(wanted - empty[after - 1] < empty[after] - wanted, after - 1, after)
        return np.unique(empty[nearer])


def words(places: Places, side: Side, values: Values) -> tuple[Array, int]:
    """Return the twin number and the column of each place in one number, and the bits of a column."""
    columns, empty = values.column_of[side.codes].astype(np.int64), values.table.shape[1] - 1
    shift = empty.bit_length()
    both = places.spread((side.twins.astype(np.int64) + _TWINS) << shift | columns, empty)
    return (both.astype(np.int32) if both.max() < 1 << 31 else both), shift


def source_twins(side: Side) -> tuple[Array, int]:
    """Return the twin numbers of sources as `words` has them, and that of empty places."""
    return side.twins.astype(np.int64) + _TWINS, -1
