"""Pushes of DAGs, whose features are paths: the recursions of `dag`, row by row.

    u(τ,·) = 1 + Σ_{p ∈ Pa τ} H(p,·),    H(p,t) = Σ_{q ∈ Pa t} K_U(p,q),    K_U = k u

and the same for d and children. The first sum is over whole rows. In the second most nodes have
one parent, which is read for all nodes at once; further parents are added edge by edge.

With sides, edges match on the same side only: there is an H for the parents before their child and
one for those after it, and the same for children.

A marked node needs u of its ancestors and d of its descendants, and of no other node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.data.graph import Adjacency, Neighbours
from fuda.marginalized.engines.cpu.push import NODES, Task, add_row, block_of, fill_rows, most_nodes
from fuda.marginalized.numbers import Array
from fuda.runtime.compiled import compiled


class Near(NamedTuple):
    """The neighbours of the nodes of a block, by position in the block.

    `first` has the first neighbour of each node, or the size of the block if there is none;
    further edges are from `sources` (neighbours) to `ends` (nodes). With sides there is a `Near`
    for the neighbours before each node and one for those after it.
    """

    first: Array
    sources: Array
    ends: Array


class Edges(NamedTuple):
    """The places of a block's nodes, parents and children, by side if there are sides."""

    places: Array
    parents: tuple[Near, ...]
    children: tuple[Near, ...]


def edges(adjacency: Adjacency, sided: bool, nodes: Array, place_of: Array) -> Edges:
    """Return the edges of the nodes of whole structures."""
    sides = (False, True) if sided else (None,)
    both = adjacency.parents, adjacency.children
    both_sides = (tuple(_near(near, nodes, side) for side in sides) for near in both)
    return Edges(place_of[nodes], *both_sides)


def _near(near: Neighbours, nodes: Array, after: bool | None) -> Near:
    """Return the neighbours by position among some nodes: all, or those before or after a node."""
    position = dict(zip(nodes.tolist(), range(len(nodes)), strict=True))
    first = np.full(len(nodes), len(nodes), dtype=np.int64)
    more: list[tuple[int, int]] = []
    for t, node in enumerate(nodes.tolist()):
        others = near.indices[near.indptr[node] : near.indptr[node + 1]].tolist()
        others = [position[q] for q in others if after is None or (q > node) == after]
        if others:
            first[t] = others[0]
            more += [(q, t) for q in others[1:]]
    sources, ends = np.array(more, dtype=np.int64).reshape(-1, 2).T.copy()
    return Near(first, sources, ends)


@compiled
def graphs(
    edges: Edges, adjacency: Adjacency, task: Task, first: int, last: int, mass: float, scores: Array
) -> None:
    """Add pushes first … last−1 to the scores of a block; `adjacency` is that of the sources."""
    block, pushes = block_of(edges.places, task, first, last), task.pushes
    size = len(block.places)
    longest, most = most_nodes(pushes, first, last)
    weight, product = np.empty((longest, size)), np.empty((-(-longest // NODES) * NODES, size))
    sums = np.empty((len(edges.parents), longest, size))
    kappa, marks = np.empty((most, size)), np.empty(longest, dtype=np.int64)
    for p in range(first, last):
        start, stop = pushes.begins[p], pushes.ends[p]
        marked = pushes.marked[pushes.firsts[p] : pushes.firsts[p + 1]]
        fill_rows(start, stop, task, block, mass, weight, product)
        marks[: stop - start] = -1
        for m in range(len(marked)):
            marks[marked[m] - start] = m
            kappa[m] = weight[marked[m] - start]
        order = adjacency.order[start:stop]
        _sweep(order, start, adjacency.parents, edges.parents, product, marks, sums, kappa)
        _sweep(order[::-1].copy(), start, adjacency.children, edges.children, product, marks, sums, kappa)
        for m in range(len(marked)):
            add_row(pushes.gamma[pushes.firsts[p] + m], kappa[m], block, scores)


@compiled
def _sweep(
    order: Array,
    start: int,
    near: Neighbours,
    near_in_block: tuple[Near, ...],
    product: Array,
    marks: Array,
    sums: Array,
    kappa: Array,
) -> None:
    """Multiply κ of marked nodes by u, or by d; `order` has neighbours first."""
    size = product.shape[1]
    sided = len(near_in_block) > 1
    needed = np.zeros(len(order), dtype=np.bool_)  # H of a node
    for step in range(len(order) - 1, -1, -1):
        i = order[step] - start
        if marks[i] >= 0 or needed[i]:
            for edge in range(near.indptr[order[step]], near.indptr[order[step] + 1]):
                needed[near.indices[edge] - start] = True
    factor, row = np.empty(size), np.zeros(size + 1)
    for node in order:
        i = node - start
        if marks[i] < 0 and not needed[i]:
            continue
        factor[:] = 1.0
        for edge in range(near.indptr[node], near.indptr[node + 1]):
            side = 1 if sided and near.indices[edge] > node else 0
            factor += sums[side, near.indices[edge] - start]
        if marks[i] >= 0:
            kappa[marks[i]] *= factor
        if needed[i]:
            for t in range(size):
                row[t] = product[i, t] * factor[t]
            for side in range(len(near_in_block)):
                first, sources, ends = near_in_block[side]
                total = sums[side, i]
                for t in range(size):
                    total[t] = row[first[t]]
                for e in range(len(ends)):
                    total[ends[e]] += row[sources[e]]
