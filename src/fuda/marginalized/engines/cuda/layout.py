"""Arrays by place, as the CUDA engine has them, and how they are divided among blocks of threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.marginalized.engines.cpu.push import Values
from fuda.marginalized.problem import Problem, Side

Array = np.ndarray
TILE = 2112  # most places of a tile, but for longer structures
_NARROW = 1 << 32  # words from which on they need 64 bits
_TWINS = 2  # added to twin numbers, which makes them positive


class Places:
    """The places of nodes, with an empty one before each structure and at the end.

    Parameters
    ----------
    side : Side
        The structures.
    edge : int
        The number of further empty places at either end.

    Attributes
    ----------
    begins : array
        The first place of each structure.
    of_nodes : array (N,)
        The place of each node.
    size : int
        The number of places.
    """

    def __init__(self, side: Side, edge: int) -> None:
        self._sizes, self._edge = side.sizes, edge
        before = edge + np.arange(1, len(self._sizes) + 1)
        self.begins = side.offsets[:-1] + before
        self.of_nodes = np.arange(side.offsets[-1]) + np.repeat(before, self._sizes)
        self.size = int(side.offsets[-1]) + len(self._sizes) + 1 + 2 * edge

    def spread(self, values: Array, empty: float = 0, dtype: type | None = None) -> Array:
        """Return values (…, N) of nodes by place, and `empty` at empty places."""
        spread = np.full((*values.shape[:-1], self.size), empty, dtype=dtype or values.dtype)
        spread[..., self.of_nodes] = values
        return spread

    def nodes(self, places: Array) -> tuple[Array, Array]:
        """Return the nodes at these places, and their structures."""
        owners = np.searchsorted(self.begins, places, side="right") - 1
        return places - owners - 1 - self._edge, owners

    def visits(self, order: Array) -> Array:
        """Return the places in the order of visits of structures."""
        sizes = self._sizes[order]
        ends = np.cumsum(sizes)
        firsts = np.repeat(self.begins[order] - ends + sizes, sizes)
        return (firsts + np.arange(len(firsts))).astype(np.int32)

    def tiles(self, blocks: int) -> Array:
        """Return bounds of tiles, empty places, so that all blocks have about as many places."""
        empty = np.append(self.begins - 1, self.size - 1 - self._edge)
        used = int(empty[-1] - empty[0])
        count = blocks * -(-used // (blocks * TILE))
        most = max(-(-used // count), int(np.diff(empty).max()))  # places of a tile
        while len(bounds := _cut(empty, most)) > count + 1:
            most += max(1, most // 100)
        return bounds


def _cut(empty: Array, most: int) -> Array:
    """Return bounds, among empty places, of tiles of at most so many places."""
    bounds = [0]
    while bounds[-1] < len(empty) - 1:
        bounds.append(int(np.searchsorted(empty, empty[bounds[-1]] + most, side="right")) - 1)
    return empty[bounds]


class Words(NamedTuple):
    """The columns and twin numbers of places in one number: words, twins of sources, bits of columns."""

    targets: Array
    sources: Array
    mask: np.unsignedinteger


def words(problem: Problem, values: Values, ours: Places, theirs: Places) -> Words:
    """Return the words of a problem, with places of sources and of targets."""
    columns, empty = values.column_of[problem.targets.codes].astype(np.int64), values.table.shape[1] - 1
    shift = empty.bit_length()
    of_targets = (problem.targets.twins.astype(np.int64) + _TWINS) << shift | columns
    of_sources = (problem.sources.twins.astype(np.int64) + _TWINS) << shift
    dtype = np.uint64 if max(of_targets.max(), of_sources.max()) >= _NARROW else np.uint32
    none = np.iinfo(dtype).max  # no word is that of an empty place of sources
    columns_only = dtype((1 << shift) - 1)
    return Words(theirs.spread(of_targets, empty, dtype), ours.spread(of_sources, none, dtype), columns_only)
