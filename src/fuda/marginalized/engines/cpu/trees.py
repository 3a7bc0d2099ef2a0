"""Pushes of trees and forests, whose features are subtrees: the recursions of `tree`, row by row.

The children of a node are a *family*. In a block the w-th children of all families are adjacent,
larger families first, followed by the roots:

    first children of F families | second children of those that have two | third … | roots

So the k-th second child is a sibling of the k-th first child, and a step from all w-th children
to their next siblings is a loop over contiguous memory, from one *rank* to the next:

    S_F(v,w) = S_F(v−1,w) + M(v,w),    M(v,w) = M(v,w−1) + K_D(v,w) S_F(v−1,w−1).

Only the step between a family and its parent is not contiguous: d of the parent is S_F of its last
child, and K_U of the parent is read for all children at once.

All rows K_D are needed, but u and S_B only on the paths from roots to marked nodes. With sides,
rows of K_D and u are masked: nodes on the other side of their parents do not match.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.data.graph import Adjacency
from fuda.marginalized.engines.cpu.push import NODES, Task, add_row, block_of, fill_rows, most_nodes
from fuda.marginalized.numbers import Array
from fuda.marginalized.recursions.sides import side
from fuda.runtime.compiled import compiled


class Families(NamedTuple):
    """The layout of the nodes of a block.

    `places` are those of the nodes, `ranks` the positions of the first node of each rank and of
    the first root, `parents` and `lasts` the positions of the parent and of the last child of
    each family. With sides `masks` (2, nodes) are 1 at nodes before their parents and at those
    after them, and 0 elsewhere; without them it is empty.
    """

    places: Array
    ranks: Array
    parents: Array
    lasts: Array
    masks: Array


def families(adjacency: Adjacency, sided: bool, nodes: Array, place_of: Array) -> Families:
    """Return the families of the nodes of whole structures."""
    near = adjacency.children
    sizes = np.diff(near.indptr)[nodes]
    larger_first = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    heads, sizes = nodes[larger_first], sizes[larger_first]
    counts = [int(np.count_nonzero(sizes > w)) for w in range(int(sizes.max(initial=0)))]
    ranks = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    members = [near.indices[near.indptr[heads[:n]] + w] for w, n in enumerate(counts)]
    roots = nodes[np.diff(adjacency.parents.indptr)[nodes] == 0]
    laid_out = np.concatenate([*members, roots])
    position = dict(zip(laid_out.tolist(), range(len(laid_out)), strict=True))
    parents = np.array([position[head] for head in heads.tolist()], dtype=np.int64)
    children = laid_out[: ranks[-1]]
    is_after = np.ones(len(laid_out), dtype=bool)  # as `side` has it, roots included
    is_after[: ranks[-1]] = children > adjacency.parents.indices[adjacency.parents.indptr[children]]
    masks = np.array([~is_after, is_after], dtype=np.float64) if sided else np.empty((2, 0))
    return Families(place_of[laid_out], ranks, parents, ranks[sizes - 1] + np.arange(len(sizes)), masks)


@compiled
def trees(
    families: Families, adjacency: Adjacency, task: Task, first: int, last: int, mass: float, scores: Array
) -> None:
    """Add pushes first … last−1 to the scores of a block; `adjacency` is that of the sources."""
    _, ranks, parents, lasts, masks = families
    block, pushes, near = block_of(families.places, task, first, last), task.pushes, adjacency.children
    size = len(block.places)
    longest, most = most_nodes(pushes, first, last)
    weight, product = np.empty((longest, size)), np.empty((-(-longest // NODES) * NODES, size))
    down, up = np.empty((longest, size)), np.empty((longest, size))  # K_D and u
    left, right = np.empty((longest, size)), np.empty((longest, size))  # S_F and S_B
    kappa, marks = np.empty((most, size)), np.empty(longest, dtype=np.int64)
    ones, matched, above = np.ones(size), np.empty(size), np.empty(len(parents))
    for p in range(first, last):
        start, stop = pushes.begins[p], pushes.ends[p]
        fill_rows(start, stop, task, block, mass, weight, product)
        on_path = mark(start, stop, pushes.marked[pushes.firsts[p] : pushes.firsts[p + 1]], adjacency, marks)
        for step in range(stop - 1, start - 1, -1):
            node = adjacency.order[step]
            i = node - start
            children = near.indices[near.indptr[node] : near.indptr[node + 1]] - start
            before = ones
            for child in children:
                _match(down[child], before, ranks, matched, left[child])
                before = left[child]
            if on_path[i]:
                after = ones
                for child in children[::-1]:
                    _match_back(down[child], after, ranks, matched, right[child])
                    after = right[child]
            down[i] = product[i]
            m = marks[i]
            if m >= 0:
                kappa[m] = weight[i]
            if len(children) > 0:
                for f in range(len(parents)):
                    down[i, parents[f]] *= before[lasts[f]]
                    if m >= 0:
                        kappa[m, parents[f]] *= before[lasts[f]]
            if masks.size:
                down[i] *= masks[side(adjacency, node)]
        for step in range(start, stop):
            node = adjacency.order[step]
            i = node - start
            if not on_path[i]:
                continue
            if adjacency.parents.indptr[node] == adjacency.parents.indptr[node + 1]:
                up[i] = 1.0
            if marks[i] >= 0:
                kappa[marks[i]] *= up[i]
                add_row(pushes.gamma[pushes.firsts[p] + marks[i]], kappa[marks[i]], block, scores)
            for f in range(len(parents)):
                above[f] = product[i, parents[f]] * up[i, parents[f]]
            children = near.indices[near.indptr[node] : near.indptr[node + 1]] - start
            for v in range(len(children)):
                if on_path[children[v]]:
                    before = left[children[v - 1]] if v > 0 else ones
                    after = right[children[v + 1]] if v + 1 < len(children) else ones
                    _descend(above, before, after, ranks, up[children[v]])
                    if masks.size:
                        keep(masks[side(adjacency, start + children[v])], up[children[v]])


@compiled
def mark(start: int, stop: int, marked: Array, adjacency: Adjacency, marks: Array) -> Array:
    """Return which nodes are marked or above a marked node; `marks` gets their numbers, or −1."""
    marks[: stop - start] = -1
    on_path = np.zeros(stop - start, dtype=np.bool_)
    for m in range(len(marked)):
        marks[marked[m] - start] = m
        node = marked[m]
        on_path[node - start] = True
        while adjacency.parents.indptr[node] < adjacency.parents.indptr[node + 1]:
            node = adjacency.parents.indices[adjacency.parents.indptr[node]]
            on_path[node - start] = True
    return on_path


@compiled
def keep(mask: Array, up: Array) -> None:
    """Set u to 1 where a mask is 0."""
    for t in range(len(up)):
        if mask[t] == 0.0:
            up[t] = 1.0


@compiled
def _match(products: Array, before: Array, ranks: Array, matched: Array, total: Array) -> None:
    """Compute S_F(v,·) from K_D(v,·) and S_F(v−1,·)."""
    for w in range(len(ranks) - 1):
        here, size = ranks[w], ranks[w + 1] - ranks[w]
        if w == 0:
            for f in range(size):
                matched[f] = products[f]
        else:
            back = ranks[w - 1]
            for f in range(size):
                matched[here + f] = matched[back + f] + products[here + f] * before[back + f]
    for t in range(ranks[-1]):
        total[t] = before[t] + matched[t]


@compiled
def _match_back(products: Array, after: Array, ranks: Array, matched: Array, total: Array) -> None:
    """Compute S_B(v,·) from K_D(v,·) and S_B(v+1,·)."""
    following = 0  # the number of nodes with a next sibling
    for w in range(len(ranks) - 2, -1, -1):
        here, there, size = ranks[w], ranks[w + 1], ranks[w + 1] - ranks[w]
        for f in range(following):
            matched[here + f] = matched[there + f] + products[here + f] * after[there + f]
        for f in range(following, size):
            matched[here + f] = products[here + f]
        following = size
    for t in range(ranks[-1]):
        total[t] = after[t] + matched[t]


@compiled
def _descend(above: Array, before: Array, after: Array, ranks: Array, up: Array) -> None:
    """Compute u(v,·) from K_U of the parents, S_F(v−1,·) and S_B(v+1,·)."""
    up[:] = 1.0
    for w in range(len(ranks) - 1):
        here, there, back = ranks[w], ranks[w + 1], ranks[max(w - 1, 0)]
        following = ranks[w + 2] - there if w + 2 < len(ranks) else 0
        for f in range(there - here):
            up[here + f] = above[f]
        if w > 0:
            for f in range(there - here):
                up[here + f] *= before[back + f]
        for f in range(following):
            up[here + f] *= after[there + f]
        for f in range(there - here):
            up[here + f] += 1.0
