"""Ordered trees and forests: lines, which are the paths between any two nodes.

A line goes up from one of its ends to its *top* and down to the other one: two descents that start
from different children of the top, of which one or both may be missing. So it reaches siblings and
what is below them, as a subtree does, but the number of lines grows with the square of the number
of nodes, and not exponentially. With k = weight · mass,

    d(τ,t) = 1 + Σ_{v ∈ Ch τ} Σ_{w ∈ Ch t} K_D(v,w),    K_D = k d        descents from τ, t
    L(τ,t) = Σ_{v before τ} Σ_{w before t} K_D(v,w),    R the same after them, over siblings
    u(τ,t) = 1 + k(p,q) · (u(p,q) + L(τ,t) + R(τ,t));    1 if τ or t is a root

where p and q are the parents of τ and t. The point is the top of a line with two descents, or it
has at most one below it:

    κ = weight · ( u d + E ),    E(τ,t) = Σ_{v,w} K_D(v,w) L(v,w).

With sides, K_D(v,w) in these sums, and the second term of u, are 0 where v and w, or τ and t, are
on different sides of their parents.

All pairs of nodes together cost O(T_a T_b), and nothing is subtracted: L and R are prefix sums.
"""

from __future__ import annotations

from fuda.data.graph import Span
from fuda.marginalized.numbers import Array, Cells, number, plus, read, times, write
from fuda.marginalized.recursions.sides import meet
from fuda.runtime.compiled import compiled


@compiled
def fill(a: Span, b: Span, weight: Array, mass: Array, sided: bool, kappa: Cells, work: Cells) -> None:
    """Write κ of two structures into the corner of `kappa`."""
    down, up, below, beside = work  # K_D; u; d; L + R, with the column sums in an extra row
    size_b, zero, one = b.end - b.begin, number(0.0, kappa), number(1.0, kappa)
    for step in range(a.end - 1, a.begin - 1, -1):
        node = a.adjacency.order[step]
        i = node - a.begin
        for j in range(size_b):
            write(kappa, (i, j), zero)
            write(below, (i, j), one)
        for side in (-1, 1):
            _collect(a, node, b, side, kappa, work)
        for j in range(size_b):
            write(kappa, (i, j), times(weight[i, j], read(kappa, (i, j))))
            term = times(weight[i, j], times(mass[i, j], read(below, (i, j))))
            write(down, (i, j), term if meet(a, i, b, j, sided) else zero)
            write(up, (i, j), one)
    near_a, near_b = a.adjacency.children, b.adjacency.children
    for step in range(a.begin, a.end):
        node = a.adjacency.order[step]
        i = node - a.begin
        for j in range(size_b):
            above = read(up, (i, j))
            term = times(weight[i, j], times(read(below, (i, j)), above))
            write(kappa, (i, j), plus(read(kappa, (i, j)), term))
            for v in range(near_a.indptr[node], near_a.indptr[node + 1]):
                for w in range(near_b.indptr[b.begin + j], near_b.indptr[b.begin + j + 1]):
                    at = (near_a.indices[v] - a.begin, near_b.indices[w] - b.begin)
                    if meet(a, at[0], b, at[1], sided):
                        reached = times(mass[i, j], plus(above, read(beside, at)))
                        write(up, at, plus(one, times(weight[i, j], reached)))


@compiled
def _collect(a: Span, node: int, b: Span, side: int, kappa: Cells, work: Cells) -> None:
    """Sum over the children of a node and those of all nodes of b; `side` −1 is L, and +1 is R.

    L also gives d and E of the node, the latter in `kappa`.
    """
    down, _, below, beside = work
    near_a, near_b, i, columns = a.adjacency.children, b.adjacency.children, node - a.begin, a.end - a.begin
    zero, size_b = number(0.0, kappa), b.end - b.begin
    for j in range(size_b):
        write(beside, (columns, j), zero)
    first, count = near_a.indptr[node], near_a.indptr[node + 1] - near_a.indptr[node]
    for v in range(count):
        child = near_a.indices[first + v if side < 0 else first + count - 1 - v] - a.begin
        for j in range(size_b):
            begin, end = near_b.indptr[b.begin + j], near_b.indptr[b.begin + j + 1]
            total = zero
            for w in range(end - begin):
                other = near_b.indices[begin + w if side < 0 else end - 1 - w] - b.begin
                term = read(down, (child, other))
                if side < 0:
                    write(beside, (child, other), total)
                    write(kappa, (i, j), plus(read(kappa, (i, j)), times(term, total)))
                    write(below, (i, j), plus(read(below, (i, j)), term))
                else:
                    write(beside, (child, other), plus(read(beside, (child, other)), total))
                total = plus(total, read(beside, (columns, other)))
        for j in range(size_b):
            write(beside, (columns, j), plus(read(beside, (columns, j)), read(down, (child, j))))
