"""Sequences: runs, and subsequences with gaps, at a factor g per skipped node.

With k = weight · mass, and 0 for values out of range,

    u(τ,t) = 1 + R(τ−1,t−1),    K_U = k u,
    A(τ,t) = K_U(τ,t) + g A(τ,t−1),    R(τ,t) = A(τ,t) + g R(τ−1,t)

where R(τ,t) is the sum of g^(skipped nodes) K_U over all pairs up to (τ,t). For g = 0 it is
K_U(τ,t): runs. d is the same from the other end, and κ = weight · u · d.
"""

from __future__ import annotations

from fuda.marginalized.numbers import Array, Cells, number, plus, read, times, write
from fuda.runtime.compiled import compiled


@compiled
def fill(size_a: int, size_b: int, weight: Array, mass: Array, gap: float, kappa: Cells, work: Cells) -> None:
    """Write κ(τ,t) of two sequences into the corner (size_a, size_b) of `kappa`."""
    for backward in (False, True):
        _sweep(size_a, size_b, weight, mass, gap, backward, kappa, work[0])


@compiled
def _sweep(
    size_a: int,
    size_b: int,
    weight: Array,
    mass: Array,
    gap: float,
    backward: bool,
    kappa: Cells,
    rests: Cells,
) -> None:
    """κ = weight · u, or times d when walking backward; `rests` is R of the row before."""
    zero, one = number(0.0, kappa), number(1.0, kappa)
    for j in range(size_b):
        write(rests, (0, j), zero)
    for step_a in range(size_a):
        i = size_a - 1 - step_a if backward else step_a
        before, along = zero, zero  # R(τ−1,t−1) and A(τ,t−1)
        for step_b in range(size_b):
            j = size_b - 1 - step_b if backward else step_b
            factor = plus(one, before)
            first = read(kappa, (i, j)) if backward else number(weight[i, j], kappa)
            write(kappa, (i, j), times(first, factor))
            before = read(rests, (0, j))
            along = plus(times(weight[i, j], times(mass[i, j], factor)), times(gap, along))
            write(rests, (0, j), plus(along, times(gap, before)))
