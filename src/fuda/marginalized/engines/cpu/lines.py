"""Pushes of trees and forests, whose features are lines: the recursions of `lines`, row by row.

The nodes of a block are laid out by families, as in `trees`. With C(v,t) = Σ_{s before v}
K_D(s,t), the sum of rows of K_D over the siblings before v,

    L(v,w) = L(v,w−1) + C(v,w−1)

is a loop over contiguous memory from one rank to the next, and so is R. All rows K_D are needed,
but u, L and R only on the paths from roots to marked nodes, and E at marked nodes.
"""

from __future__ import annotations

import numpy as np

from fuda.data.graph import Adjacency
from fuda.marginalized.engines.cpu.push import NODES, Task, add_row, block_of, fill_rows, most_nodes
from fuda.marginalized.engines.cpu.trees import Families, mark
from fuda.marginalized.numbers import Array
from fuda.marginalized.recursions.sides import side
from fuda.runtime.compiled import compiled


@compiled
def lines(
    families: Families, adjacency: Adjacency, task: Task, first: int, last: int, mass: float, scores: Array
) -> None:
    """Add pushes first … last−1 to the scores of a block; `adjacency` is that of the sources."""
    _, ranks, parents, _, masks = families
    sided = masks.shape[1] > 0
    block, pushes, near = block_of(families.places, task, first, last), task.pushes, adjacency.children
    size, one_side = len(block.places), np.ones(len(block.places))
    longest, most = most_nodes(pushes, first, last)
    weight, product = np.empty((longest, size)), np.empty((-(-longest // NODES) * NODES, size))
    down, up, below = np.empty((longest, size)), np.empty((longest, size)), np.empty((longest, size))
    beside, twice = np.empty((longest, size)), np.zeros((most, size))  # L + R, and E
    marks, column, before = np.empty(longest, dtype=np.int64), np.empty(size), np.empty(size)
    for p in range(first, last):
        start, stop = pushes.begins[p], pushes.ends[p]
        fill_rows(start, stop, task, block, mass, weight, product)
        on_path = mark(start, stop, pushes.marked[pushes.firsts[p] : pushes.firsts[p + 1]], adjacency, marks)
        for step in range(stop - 1, start - 1, -1):
            node = adjacency.order[step]
            i = node - start
            children = near.indices[near.indptr[node] : near.indptr[node + 1]] - start
            below[i] = 1.0
            column[:] = 0.0
            if marks[i] >= 0:
                twice[marks[i]] = 0.0
            for child in children:
                if marks[i] >= 0 or on_path[child]:
                    _sum_before(column, ranks, beside[child])
                if marks[i] >= 0:
                    _add_products(down[child], beside[child], ranks, parents, twice[marks[i]])
                column += down[child]
            _add_families(column, ranks, parents, below[i])
            column[:] = 0.0
            for child in children[::-1]:
                if on_path[child]:
                    _sum_after(column, ranks, before)
                    beside[child] += before
                column += down[child]
            mask = masks[side(adjacency, node)] if sided else one_side
            for t in range(size):
                down[i, t] = product[i, t] * below[i, t] * mask[t]
        for step in range(start, stop):
            node = adjacency.order[step]
            i = node - start
            if not on_path[i]:
                continue
            if adjacency.parents.indptr[node] == adjacency.parents.indptr[node + 1]:
                up[i] = 1.0
            m = marks[i]
            if m >= 0:
                for t in range(size):
                    column[t] = weight[i, t] * (up[i, t] * below[i, t] + twice[m, t])
                add_row(pushes.gamma[pushes.firsts[p] + m], column, block, scores)
            for child in near.indices[near.indptr[node] : near.indptr[node + 1]] - start:
                if on_path[child]:
                    mask = masks[side(adjacency, start + child)] if sided else one_side
                    _descend(product[i], up[i], beside[child], mask, ranks, parents, up[child])


@compiled
def _sum_before(column: Array, ranks: Array, total: Array) -> None:
    """Compute L(v,·) from C(v,·); 0 at roots."""
    total[:] = 0.0
    for w in range(1, len(ranks) - 1):
        here, back = ranks[w], ranks[w - 1]
        for f in range(ranks[w + 1] - here):
            total[here + f] = total[back + f] + column[back + f]


@compiled
def _sum_after(column: Array, ranks: Array, total: Array) -> None:
    """Compute R(v,·) from the sum of rows over the siblings after v; 0 at roots."""
    total[:] = 0.0
    for w in range(len(ranks) - 3, -1, -1):
        here, there = ranks[w], ranks[w + 1]
        for f in range(ranks[w + 2] - there):
            total[here + f] = total[there + f] + column[there + f]


@compiled
def _add_families(column: Array, ranks: Array, parents: Array, total: Array) -> None:
    """Add the sums of a row over families to their parents."""
    for w in range(len(ranks) - 1):
        here = ranks[w]
        for f in range(ranks[w + 1] - here):
            total[parents[f]] += column[here + f]


@compiled
def _add_products(products: Array, before: Array, ranks: Array, parents: Array, total: Array) -> None:
    """Add the sums of K_D(v,·) L(v,·) over families to their parents."""
    for w in range(1, len(ranks) - 1):
        here = ranks[w]
        for f in range(ranks[w + 1] - here):
            total[parents[f]] += products[here + f] * before[here + f]


@compiled
def _descend(
    product: Array, above: Array, beside: Array, mask: Array, ranks: Array, parents: Array, up: Array
) -> None:
    """Compute u of a child from k, u of its parent, and L + R."""
    up[:] = 1.0
    for w in range(len(ranks) - 1):
        here = ranks[w]
        for f in range(ranks[w + 1] - here):
            t, q = here + f, parents[f]
            up[t] += mask[t] * product[q] * (above[q] + beside[t])
