"""Arrays by place, as in the CUDA engine, and how they are divided among blocks of threads."""

from __future__ import annotations

import numpy as np
from numba import config

from fuda.data.graph import ranges
from fuda.marginalized.problem import Problem

Array = np.ndarray
WARP = 0 if vars(config)["ENABLE_CUDASIM"] else 5  # the logarithm of the threads of a warp
LANES, PLACES_PER_LANE = 1 << WARP, 4  # threads of a warp, and places of each in a strip
STRIP = LANES * PLACES_PER_LANE
WARPS = 32  # most warps of a block
MAIL = 2 * WARPS  # doubles by which the warps of a belt hand on numbers
TILE = 2112  # the largest number of places of a tile, except for longer structures
_NARROW = 1 << 32  # words from this value on need 64 bits
_ID_OFFSET = 2  # is added to ids to make them positive


class Places:
    """The places of nodes, with an empty one before each structure and at the end.

    Parameters
    ----------
    sizes : array
        The sizes of the structures.
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

    def __init__(self, sizes: Array, edge: int) -> None:
        self._sizes, self._edge, count = sizes, edge, int(sizes.sum())
        before = edge + np.arange(1, len(sizes) + 1)
        self.begins = np.cumsum(sizes) - sizes + before
        self.of_nodes = np.arange(count) + np.repeat(before, sizes)
        self.size = count + len(sizes) + 1 + 2 * edge

    def spread(self, values: Array, empty: float = 0, dtype: type | None = None) -> Array:
        """Return values (…, N) of nodes by place, and `empty` at empty places."""
        spread = np.full((*values.shape[:-1], self.size), empty, dtype=dtype or values.dtype)
        spread[..., self.of_nodes] = values
        return spread

    def nodes(self, places: Array) -> tuple[Array, Array]:
        """Return the nodes at these places, and their structures."""
        owners = np.searchsorted(self.begins, places, side="right") - 1
        return places - owners - 1 - self._edge, owners

    def of_visits(self, visits: Array) -> Array:
        """Return the places in the order of visits of structures."""
        return ranges(self.begins[visits], self._sizes[visits]).astype(np.int32)

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


class Strips:
    """The places of nodes in belts and strips, as in the module of that name.

    There is an empty place before each structure, and at the end of each belt and strip. Those of
    a thread are not beside each other in memory, but those of all threads for the same step: a
    *position* counts along structures, a place in memory.

    Parameters
    ----------
    sizes : array
        The sizes of the structures.
    warps : int
        The number of warps of a block, which is that of the strips of a belt.

    Attributes
    ----------
    begins : array
        The first position of each structure.
    of_nodes : array (N,)
        The place of each node.
    size : int
        The number of places.
    belts, strips : int
        The number of belts, which come first, and of strips, those of belts included.
    """

    def __init__(self, sizes: Array, warps: int) -> None:
        self._sizes, self._offsets = sizes, np.append(0, np.cumsum(sizes))
        self.begins, self.belts, self.strips = _arranged(sizes, warps)
        self.size = self.strips * STRIP
        positions = ranges(self.begins, sizes)
        within = positions % STRIP
        self.of_nodes = positions - within + within % PLACES_PER_LANE * LANES + within // PLACES_PER_LANE
        self._node_at = np.zeros(self.size, dtype=np.int64)
        self._node_at[self.of_nodes] = np.arange(len(positions))

    def spread(self, values: Array, empty: float = 0, dtype: type | None = None) -> Array:
        """Return values (…, N) of nodes by place, and `empty` at empty places."""
        spread = np.full((*values.shape[:-1], self.size), empty, dtype=dtype or values.dtype)
        spread[..., self.of_nodes] = values
        return spread

    def nodes(self, places: Array) -> tuple[Array, Array]:
        """Return the nodes at these places, and their structures."""
        nodes = self._node_at[places]
        return nodes, np.searchsorted(self._offsets, nodes, side="right") - 1

    def of_visits(self, visits: Array) -> Array:
        """Return the places in the order of visits of structures."""
        return self.of_nodes[ranges(self._offsets[visits], self._sizes[visits])].astype(np.int32)


def fit_belts(sizes: Array, warps: int) -> bool:
    """Return whether all structures fit into belts of so many strips."""
    return int(sizes.max()) <= warps * STRIP - 2


def _arranged(sizes: Array, warps: int) -> tuple[Array, int, int]:
    """Return the first position of each structure, and the numbers of belts and strips.

    What is left of a belt or strip goes to the largest structure that fits.
    """
    order, most, begins = np.argsort(sizes, kind="stable"), int(sizes.max()), np.empty(len(sizes), np.int64)
    bounds = np.searchsorted(sizes[order], np.arange(most + 2)).tolist()  # in `order`, of each size
    left = [bounds[size + 1] - bounds[size] for size in range(most + 1)]
    below = [max(0, size - 1) for size in range(most + 1)]

    def largest(size: int) -> int:
        """The largest size that is left, up to this one; 0 if there is none."""
        candidate = size
        while candidate and not left[candidate]:
            candidate = below[candidate]
        while size > candidate:
            below[size], size = candidate, below[size]
        return candidate

    def filled(position: int, capacity: int) -> int:
        """The position after `capacity` more positions, filled with structures."""
        while capacity > 2 and (size := largest(min(most, capacity - 2))):
            left[size] -= 1
            begins[order[bounds[size] + left[size]]] = position + 1
            position, capacity = position + size + 1, capacity - size - 1
        return position + capacity

    position = belts = 0
    while largest(most) > STRIP - 2:
        position, belts = filled(position, warps * STRIP), belts + 1
    while largest(most):
        position = filled(position, STRIP)
    return begins, belts, position // STRIP


class Words:
    """How the column of the table and the id of a node are one number, its word.

    Parameters
    ----------
    problem : Problem
        The problem.
    columns : array
        The classes of targets that have columns.

    Attributes
    ----------
    dtype : type
        That of words, 32 bits where these are enough.
    mask : number
        The bits of the column.
    """

    def __init__(self, problem: Problem, columns: Array) -> None:
        self._columns, self._shift = columns, len(columns).bit_length()
        ids = max(int(problem.targets.ids.max()), int(problem.sources.ids.max())) + _ID_OFFSET
        self.dtype = np.uint64 if (ids + 1) << self._shift > _NARROW else np.uint32
        self.mask = self.dtype((1 << self._shift) - 1)

    def of_targets(self, classes: Array, ids: Array, places: Places | Strips) -> Array:
        """Return the words of targets by place; empty ones have the last column, of zeros."""
        columns = np.searchsorted(self._columns, classes)
        return places.spread(self._shifted(ids) | columns, len(self._columns), self.dtype)

    def of_sources(self, ids: Array, places: Places | Strips) -> Array:
        """Return the sources' ids by place, as in words; empty places match no word."""
        return places.spread(self._shifted(ids), np.iinfo(self.dtype).max, self.dtype)

    def _shifted(self, ids: Array) -> Array:
        return (ids.astype(np.int64) + _ID_OFFSET) << self._shift
