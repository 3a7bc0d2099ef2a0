"""Directed acyclic graphs: directed paths.

With k = weight · mass, and Pa and Ch the parents and children of a node,

    u(τ,t) = 1 + Σ_{p ∈ Pa τ} Σ_{q ∈ Pa t} K_U(p,q),    K_U = k u
    d(τ,t) = 1 + Σ_{p ∈ Ch τ} Σ_{q ∈ Ch t} K_D(p,q),    K_D = k d

and κ = weight · u · d. The inner sums H(p,t) = Σ_q K_U(p,q) are stored, so that two graphs of T
nodes and E edges each cost O(TE) instead of O(E²). With sides, edges match on the same side only:
there is an H for the parents before their child, and one for those after it.
"""

from __future__ import annotations

from fuda.data.graph import Span
from fuda.marginalized.numbers import Array, Cells, number, plus, read, times, write
from fuda.runtime.compiled import compiled


@compiled
def fill(a: Span, b: Span, weight: Array, mass: Array, sided: bool, kappa: Cells, work: Cells) -> None:
    """Write κ of two structures into the corner of `kappa`."""
    for backward in (False, True):
        _sweep(a, b, (weight, mass), sided, backward, kappa, work)


@compiled
def _sweep(
    a: Span, b: Span, known: tuple[Array, Array], sided: bool, backward: bool, kappa: Cells, work: Cells
) -> None:
    """κ = weight · u, or times d when walking backward; `known` are weight and mass."""
    weight, mass = known
    near_a, near_b = a.adjacency.parents, b.adjacency.parents  # the nodes visited before
    if backward:
        near_a, near_b = a.adjacency.children, b.adjacency.children
    begin_a, end_a, order = a.begin, a.end, a.adjacency.order
    begin_b, end_b = b.begin, b.end
    sums, row = work[:2], work[2]  # H of either side, and K_U of one τ in row 0
    for step in range(begin_a, end_a):
        node_a = order[begin_a + end_a - 1 - step if backward else step]
        i = node_a - begin_a
        for j in range(end_b - begin_b):
            factor = number(1.0, kappa)
            for edge in range(near_a.indptr[node_a], near_a.indptr[node_a + 1]):
                side = 1 if sided and near_a.indices[edge] > node_a else 0
                factor = plus(factor, read(sums[side], (near_a.indices[edge] - begin_a, j)))
            first = read(kappa, (i, j)) if backward else number(weight[i, j], kappa)
            write(kappa, (i, j), times(first, factor))
            write(row, (0, j), times(weight[i, j], times(mass[i, j], factor)))
        for j in range(end_b - begin_b):
            total, after = number(0.0, kappa), number(0.0, kappa)
            for edge in range(near_b.indptr[begin_b + j], near_b.indptr[begin_b + j + 1]):
                term = read(row, (0, near_b.indices[edge] - begin_b))
                if sided and near_b.indices[edge] > begin_b + j:
                    after = plus(after, term)
                else:
                    total = plus(total, term)
            write(sums[0], (i, j), total)
            write(sums[1], (i, j), after)
