"""Pushes of DAGs, whose features are paths: the recursions of `dag`, row by row.

    u(τ,·) = 1 + Σ_{p ∈ Pa τ} H(p,·),    H(p,t) = Σ_{q ∈ Pa t} K_U(p,q),    K_U = k u

and the same for d and children. The first sum is over whole rows. In the second most nodes have
one parent, which is read for all nodes at once; further parents are added edge by edge.

A marked node needs u of its ancestors and d of its descendants, and of no other node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.compiled import compiled
from fuda.data.graph import Links, Neighbours
from fuda.marginalized.engines.cpu.push import NODES, Task, add_row, block_of, fill_rows, most_nodes
from fuda.marginalized.numbers import Array


class Near(NamedTuple):
    """The neighbours of the nodes of a block, by position in the block.

    `first` has the first neighbour of each node, or the size of the block if there is none;
    further edges are from `sources` (neighbours) to `ends` (nodes).
    """

    first: Array
    sources: Array
    ends: Array


class Edges(NamedTuple):
    """The places of a block's nodes, their parents and their children."""

    places: Array
    parents: Near
    children: Near


def edges(links: Links, nodes: Array, place_of: Array) -> Edges:
    """Return the edges of the nodes of whole structures."""
    return Edges(place_of[nodes], _near(links.parents, nodes), _near(links.children, nodes))


def _near(near: Neighbours, nodes: Array) -> Near:
    """Return the neighbours by position among some nodes."""
    position = dict(zip(nodes.tolist(), range(len(nodes)), strict=True))
    first = np.full(len(nodes), len(nodes), dtype=np.int64)
    more: list[tuple[int, int]] = []
    for t, node in enumerate(nodes.tolist()):
        others = [position[q] for q in near.indices[near.indptr[node] : near.indptr[node + 1]].tolist()]
        if others:
            first[t] = others[0]
            more += [(q, t) for q in others[1:]]
    sources, ends = np.array(more, dtype=np.int64).reshape(-1, 2).T.copy()
    return Near(first, sources, ends)


@compiled
def graphs(edges: Edges, links: Links, task: Task, first: int, last: int, mass: float, scores: Array) -> None:
    """Add pushes first … last−1 to the scores of a block; `links` are those of the sources."""
    block, pushes = block_of(edges.places, task), task.pushes
    size = len(block.places)
    longest, most = most_nodes(pushes, first, last)
    weight, product = np.empty((longest, size)), np.empty((-(-longest // NODES) * NODES, size))
    sums, kappa, marks = np.empty((longest, size)), np.empty((most, size)), np.empty(longest, dtype=np.int64)
    for p in range(first, last):
        start, stop = pushes.begins[p], pushes.ends[p]
        marked = pushes.marked[pushes.firsts[p] : pushes.firsts[p + 1]]
        fill_rows(start, stop, task, block, mass, weight, product)
        marks[: stop - start] = -1
        for m in range(len(marked)):
            marks[marked[m] - start] = m
            kappa[m] = weight[marked[m] - start]
        order = links.order[start:stop]
        _sweep(order, start, links.parents, edges.parents, product, marks, sums, kappa)
        _sweep(order[::-1].copy(), start, links.children, edges.children, product, marks, sums, kappa)
        for m in range(len(marked)):
            add_row(pushes.gamma[pushes.firsts[p] + m], kappa[m], block, scores)


@compiled
def _sweep(
    order: Array,
    start: int,
    near: Neighbours,
    near_in_block: Near,
    product: Array,
    marks: Array,
    sums: Array,
    kappa: Array,
) -> None:
    """Multiply κ of marked nodes by u, or by d; `order` has neighbours first."""
    size = product.shape[1]
    first, sources, ends = near_in_block
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
            factor += sums[near.indices[edge] - start]
        if marks[i] >= 0:
            kappa[marks[i]] *= factor
        if needed[i]:
            for t in range(size):
                row[t] = product[i, t] * factor[t]
            for t in range(size):
                sums[i, t] = row[first[t]]
            for e in range(len(ends)):
                sums[i, ends[e]] += row[sources[e]]
