"""The order of target nodes in memory, for a given order of visits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuda.inference.graph import as_doubles
from fuda.marginalized.engines.cpu.pairs import Block
from fuda.marginalized.engines.cpu.push import Targets
from fuda.marginalized.kernel_classes import NONE
from fuda.marginalized.problem import Problem, Side
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import blocks

Array = np.ndarray
_BLOCK = 1024  # nodes per block, whose rows should fit into the cache of a core


class BlockLayout:
    """Target structures in blocks, with an empty place before each structure and at the end.

    Structures of one node that have the same scores share a place where they are most of the
    nodes: single words that occur again and again.

    Parameters
    ----------
    problem : Problem
        The problem.
    visits : array of int
        The structures in the order of visits.

    Attributes
    ----------
    visits : array
        The structures in the order of visits.
    size : int
        The number of places.
    places : array (N,)
        The place of each node.
    block_of : array
        The block of each structure.
    block_count : int
        The number of blocks.
    targets : Targets
        The arguments of pushes, per place.
    """

    def __init__(self, problem: Problem, visits: Array) -> None:
        side, self.visits = problem.targets, visits
        self._offsets, self._sizes = side.offsets, side.sizes
        alike = _alike(side, visits)
        self._placed = visits if alike is None else visits[alike[visits] == visits]
        offsets = np.zeros(len(self._placed) + 1, dtype=np.int64)
        np.cumsum(self._sizes[self._placed], out=offsets[1:])
        self._first = np.empty(len(visits), dtype=np.int64)
        self._first[self._placed] = offsets[:-1] + np.arange(len(self._placed)) + 1
        self.size = int(offsets[-1]) + len(self._placed) + 1
        self._blocks = blocks(offsets, _BLOCK)
        self.block_count = len(self._blocks)
        self.block_of = np.empty(len(visits), dtype=np.int64)
        for block, (first, last) in enumerate(self._blocks):
            self.block_of[self._placed[first:last]] = block
        if alike is not None:
            self._first, self.block_of = self._first[alike], self.block_of[alike]
        bounds, empty = (side.offsets, self._first, self.size), problem.kernel_classes.counts[1]
        self.places, *of_places = _spread(*bounds, empty, side.classes, side.ids, as_doubles(side.prior))
        self.targets = Targets(*of_places)
        self._shaped: dict[int, Any] = {}

    def span(self, block: int) -> tuple[int, int]:
        """Return the places of a block, from the empty one before it to the empty one after it."""
        first, last = self._placed[self._blocks[block][0]], self._placed[self._blocks[block][1] - 1]
        return int(self._first[first]) - 1, int(self._first[last] + self._sizes[last]) + 1

    def places_of(self, structure: int) -> slice:
        """Return the places of a structure."""
        place = int(self._first[structure])
        return slice(place, place + int(self._sizes[structure]))

    def members(self, block: int) -> Array:
        """Return the structures of a block, one of those that share a place."""
        return self._placed[slice(*self._blocks[block])]

    def structures(self, block: int) -> Block:
        """Return the structures of a block, as an argument of compiled functions."""
        members = self.members(block)
        return Block(self._first[members], self._offsets[members], self._offsets[members + 1])

    def shaped(self, block: int, make: Callable[[Array, Array], Any]) -> Any:
        """Return `make` of the nodes of a block and the places of all nodes; cached."""
        if block not in self._shaped:
            spans = [np.arange(self._offsets[i], self._offsets[i + 1]) for i in self.members(block)]
            self._shaped[block] = make(np.concatenate(spans), self.places)
        return self._shaped[block]


@compiled
def _spread(
    offsets: Array, first: Array, size: int, empty: int, classes: Array, ids: Array, prior: Array
) -> tuple[Array, Array, Array, Array]:
    """Return the place of each node, and classes, ids and P(σ|t) (L, places) by place.

    `first` has the first place of each structure, `empty` is the class of empty places.
    """
    places, share = np.empty(len(classes), dtype=np.int64), np.zeros((prior.shape[1], size))
    placed_classes, placed_ids = np.full(size, empty, dtype=np.int32), np.full(size, NONE, dtype=np.int32)
    for i in range(len(first)):
        for t in range(offsets[i], offsets[i + 1]):
            place = first[i] + t - offsets[i]
            places[t], placed_classes[place], placed_ids[place] = place, classes[t], ids[t]
            for label in range(prior.shape[1]):
                share[label, place] = prior[t, label]
    return places, placed_classes, placed_ids, share


def _alike(side: Side, visits: Array) -> Array | None:
    """For each structure the first visited one with the same scores; None if most nodes differ.

    Scores of a structure of one node follow from its observation and its prior.
    """
    if 2 * np.count_nonzero(side.sizes == 1) <= len(side.types):
        return None
    single = visits[side.sizes[visits] == 1]
    nodes = side.offsets[single]
    priors = side.prior[nodes]
    if (priors == priors[0]).all():
        keys = side.types[nodes]
    else:
        keys = np.ascontiguousarray(np.column_stack([side.types[nodes], priors]))
        keys = keys.view([("", keys.dtype)] * keys.shape[1]).ravel()
    _, first, of = np.unique(keys, return_index=True, return_inverse=True)
    if 2 * (len(single) - len(first)) <= len(side.types):
        return None
    alike = np.arange(len(visits))
    alike[single] = single[first[of]]
    return alike
