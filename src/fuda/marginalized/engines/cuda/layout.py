"""Arrays by place, as in the CUDA engine, and how they are divided among blocks of threads."""

from __future__ import annotations

import numpy as np

from fuda.data.graph import ranges
from fuda.marginalized.problem import Problem

Array = np.ndarray
TILE = 2112  # most places of a tile, but for longer structures
_NARROW = 1 << 32  # words from which on they need 64 bits
_TWINS = 2  # added to twin numbers, which makes them positive


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

    def visits(self, order: Array) -> Array:
        """Return the places in the order of visits of structures."""
        return ranges(self.begins[order], self._sizes[order]).astype(np.int32)

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


class Words:
    """How the column of the table and the twin number of a node are one number, its word.

    Parameters
    ----------
    problem : Problem
        The problem.
    columns : array
        The codes of targets that have columns.

    Attributes
    ----------
    dtype : type
        That of words, 32 bits where these are enough.
    mask : number
        The bits of the column.
    """

    def __init__(self, problem: Problem, columns: Array) -> None:
        self._columns, self._shift = columns, len(columns).bit_length()
        twins = max(int(problem.targets.twins.max()), int(problem.sources.twins.max())) + _TWINS
        self.dtype = np.uint64 if (twins + 1) << self._shift > _NARROW else np.uint32
        self.mask = self.dtype((1 << self._shift) - 1)

    def of_targets(self, codes: Array, twins: Array, places: Places) -> Array:
        """Return the words of targets by place; empty ones have the last column, of zeros."""
        columns = np.searchsorted(self._columns, codes)
        return places.spread(self._shifted(twins) | columns, len(self._columns), self.dtype)

    def of_sources(self, twins: Array, places: Places) -> Array:
        """Return the sources' twin numbers by place, as in words; empty places match no word."""
        return places.spread(self._shifted(twins), np.iinfo(self.dtype).max, self.dtype)

    def _shifted(self, twins: Array) -> Array:
        return (twins.astype(np.int64) + _TWINS) << self._shift
