"""Ordered trees and forests: connected subtrees that keep the order of siblings and may skip some.

With k = weight · mass, and v, w the positions of τ, t among their siblings,

    d(τ,t) = S_F(τ,t; #ch τ, #ch t),    K_D = k d
    u(τ,t) = 1 + K_U(p,q) · S_F(p,q; v−1, w−1) · S_B(p,q; v+1, w+1),    K_U = k u
    where p and q are the parents of τ and t; u = 1 if τ or t is a root

and κ = weight · u · d. S_F(τ,t; v,w) is the sum, over all ways to match some of the first v
children of τ to some of the first w of t in order, of the products of K_D; S_B is the same from
the right. Split by whether the v-th child is matched, it needs no subtraction:

    S(v,w) = S(v−1,w) + M(v,w),    M(v,w) = M(v,w−1) + K_D(v,w) S(v−1,w−1),    S(0,·) = S(·,0) = 1

S(v,w) is stored at the v-th child of τ and the w-th of t, so that each pair of nodes has one
entry, and all pairs together cost O(T_a T_b). With sides, K_D(v,w) in these sums is 0, and u(τ,t)
is 1, where v and w, or τ and t, are on different sides of their parents.
"""

from __future__ import annotations

from fuda.data.graph import Neighbours, Span
from fuda.marginalized.numbers import Array, Cells, number, plus, read, times, write
from fuda.marginalized.recursions.sides import meet
from fuda.runtime.compiled import compiled


@compiled
def fill(a: Span, b: Span, weight: Array, mass: Array, sided: bool, kappa: Cells, work: Cells) -> None:
    """Write κ of two structures into the corner of `kappa`."""
    down, up, left, right = work  # K_D; u, then K_U; S_F; S_B
    begin_a, end_a, near_a = a.begin, a.end, a.adjacency.children
    begin_b, end_b, near_b = b.begin, b.end, b.adjacency.children
    zero, one = number(0.0, kappa), number(1.0, kappa)
    for step in range(end_a - 1, begin_a - 1, -1):
        node = a.adjacency.order[step]
        i = node - begin_a
        first, end = near_a.indptr[node], near_a.indptr[node + 1]
        for v in range(first, end):
            _match(a, node, v, b, -1, down, left)
        for v in range(end - 1, first - 1, -1):
            _match(a, node, v, b, 1, down, right)
        for j in range(end_b - begin_b):
            below = one
            last = near_b.indptr[begin_b + j + 1] - 1
            if first < end and near_b.indptr[begin_b + j] <= last:
                below = read(left, (near_a.indices[end - 1] - begin_a, near_b.indices[last] - begin_b))
            write(kappa, (i, j), times(weight[i, j], below))
            term = times(weight[i, j], times(mass[i, j], below))
            write(down, (i, j), term if meet(a, i, b, j, sided) else zero)
            write(up, (i, j), one)
    for step in range(begin_a, end_a):
        node = a.adjacency.order[step]
        i = node - begin_a
        for j in range(end_b - begin_b):
            above = read(up, (i, j))
            write(kappa, (i, j), times(read(kappa, (i, j)), above))
            write(up, (i, j), times(weight[i, j], times(mass[i, j], above)))
        for v in range(near_a.indptr[node], near_a.indptr[node + 1]):
            _descend(a, node, v, b, sided, (up, left, right))


@compiled
def _sibling(near: Neighbours, node: int, edge: int, step: int, begin: int) -> int:
    """Return the sibling `step` positions from the child at an edge, from `begin` on, or −1."""
    other = edge + step
    return near.indices[other] - begin if near.indptr[node] <= other < near.indptr[node + 1] else -1


@compiled
def _match(span_a: Span, node_a: int, edge_a: int, span_b: Span, side: int, down: Cells, sums: Cells) -> None:
    """Compute S(v,·) of a child in a with all children in b; `side` −1 is S_F and +1 is S_B."""
    a, begin_a, b, begin_b = span_a.adjacency.children, span_a.begin, span_b.adjacency.children, span_b.begin
    child, before = a.indices[edge_a] - begin_a, _sibling(a, node_a, edge_a, side, begin_a)
    for node_b in range(begin_b, span_b.end):
        first, count = b.indptr[node_b], b.indptr[node_b + 1] - b.indptr[node_b]
        matched, diagonal = number(0.0, down), number(1.0, down)  # M(v,w−1) and S(v−1,w−1)
        for w in range(count):
            j = b.indices[first + w if side < 0 else first + count - 1 - w] - begin_b
            above = read(sums, (before, j)) if before >= 0 else number(1.0, down)
            matched = plus(matched, times(read(down, (child, j)), diagonal))
            write(sums, (child, j), plus(above, matched))
            diagonal = above


@compiled
def _descend(span_a: Span, node_a: int, edge_a: int, span_b: Span, sided: bool, work: Cells) -> None:
    """Compute u of a child in a with the children of all nodes of b, from K_U of their parents."""
    up, left, right = work
    a, begin_a, b, begin_b = span_a.adjacency.children, span_a.begin, span_b.adjacency.children, span_b.begin
    child = a.indices[edge_a] - begin_a
    before = _sibling(a, node_a, edge_a, -1, begin_a)
    after = _sibling(a, node_a, edge_a, 1, begin_a)
    one = number(1.0, up)
    for node_b in range(begin_b, span_b.end):
        first, end = b.indptr[node_b], b.indptr[node_b + 1]
        for edge in range(first, end):
            if not meet(span_a, child, span_b, b.indices[edge] - begin_b, sided):
                continue
            value = read(up, (node_a - begin_a, node_b - begin_b))
            if before >= 0 and edge > first:
                value = times(value, read(left, (before, b.indices[edge - 1] - begin_b)))
            if after >= 0 and edge + 1 < end:
                value = times(value, read(right, (after, b.indices[edge + 1] - begin_b)))
            write(up, (child, b.indices[edge] - begin_b), plus(one, value))
