"""Sequences under a Markov chain as prior: κ depends on the labels of the two nodes.

With transitions P(ρ'|ρ) = P(y_{τ−1}=ρ' | y_τ=ρ), those of t likewise, and 0 for values out of
range,

    u(τ,t,ρ,σ) = 1 + Σ_{ρ'σ'} P(ρ'|ρ) P(σ'|σ) R(τ−1,t−1,ρ',σ'),    U = c² k_x k_y(ρ,σ) u
    A(τ,t,ρ,σ) = U(τ,t,ρ,σ) + g Σ_{σ'} P(σ'|σ) A(τ,t−1,ρ,σ')
    R(τ,t,ρ,σ) = A(τ,t,ρ,σ) + g Σ_{ρ'} P(ρ'|ρ) R(τ−1,t,ρ',σ)

and d is the same from the other end with P(y_{τ+1} | y_τ). Skipped nodes are summed out by the
same transitions, since the prior is a chain. With κ = c² k_x u d, K = P(ρ|τ) P(σ|t) k_y(ρ,σ)
κ(τ,t,ρ,σ).

`fill` supports any label kernel and gap, in O(L³) per cell, by sums over ρ' and then over σ'. If
k_y is the identity and g = 0, then R = U is 0 off the diagonal; `fill_diagonal` computes κ(τ,t,ρ)
in O(L²) per cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fuda.marginalized.numbers import Array, Cells, empty_cells, number, plus, read, times, write
from fuda.runtime.compiled import compiled


class Steps(NamedTuple):
    """One sequence: the nodes begin … end−1 of a corpus with these transitions, as in `Chain`."""

    before: Array
    after: Array
    begin: int
    end: int


class Chain(NamedTuple):
    """A Markov chain over the labels of T nodes, or of several sequences one after another.

    Transitions are 0 where there is no such node, and where P(y_t = ρ) = 0.

    Attributes
    ----------
    marginals : array (T, L)
        P(y_t = ρ).
    before, after : arrays (T, L, L)
        P(y_{t−1} = ρ' | y_t = ρ) and P(y_{t+1} = ρ' | y_t = ρ) at (t, ρ, ρ').
    """

    marginals: Array
    before: Array
    after: Array

    @property
    def steps(self) -> Steps:
        """The transitions, of one sequence."""
        return Steps(self.before, self.after, 0, len(self.marginals))


def chain(start: Array, transitions: Sequence[Array] | Array) -> Chain:
    """Make a chain from its initial distribution and transition matrices.

    Parameters
    ----------
    start : array (L,)
        P(y_0 = ρ).
    transitions : sequence of arrays (L, L)
        P(y_{t+1} = ρ' | y_t = ρ) at (ρ, ρ') of transitions[t].

    Returns
    -------
    Chain
        The marginals, and the transitions in both directions.

    Examples
    --------
    >>> chain(np.array([0.5, 0.5]), [np.array([[1.0, 0.0], [0.5, 0.5]])]).marginals.tolist()
    [[0.5, 0.5], [0.75, 0.25]]
    """
    size, count = len(start), len(transitions) + 1
    marginals = np.empty((count, size))
    before, after = np.zeros((count, size, size)), np.zeros((count, size, size))
    marginals[0] = start
    for t, transition in enumerate(transitions):
        both = marginals[t][:, None] * transition
        marginals[t + 1] = both.sum(axis=0)
        after[t] = np.where(marginals[t][:, None] > 0.0, transition, 0.0)
        np.divide(both.T, marginals[t + 1][:, None], out=before[t + 1], where=marginals[t + 1][:, None] > 0.0)
    return Chain(marginals, before, after)


@compiled
def fill_diagonal(a: Steps, b: Steps, weight: Array, kappa: Cells, work: Cells) -> None:
    """Write κ(τ,t,ρ) of two sequences into the corner of `kappa`; `work` is (T_b, L)."""
    for backward in (False, True):
        _sweep_diagonal(a, b, weight, backward, kappa, work)


@compiled
def _sweep_diagonal(a: Steps, b: Steps, weight: Array, backward: bool, kappa: Cells, row: Cells) -> None:
    """κ = weight · u, or times d when walking backward; `row` is U(τ−1,·,·), updated in place."""
    near_a, near_b = (a.after, b.after) if backward else (a.before, b.before)
    size_a, size_b, size = a.end - a.begin, b.end - b.begin, near_a.shape[1]
    one = number(1.0, kappa)
    for step_a in range(size_a):
        i = size_a - 1 - step_a if backward else step_a
        for step_b in range(size_b - 1, -1, -1):
            j = size_b - 1 - step_b if backward else step_b
            before_i, before_j = (i + 1, j + 1) if backward else (i - 1, j - 1)
            follows = step_a > 0 and step_b > 0 and weight[before_i, before_j] != 0.0  # else U = 0
            for r in range(size):
                factor = one
                if follows:
                    for s in range(size):
                        shared = near_a[a.begin + i, r, s] * near_b[b.begin + j, r, s]
                        factor = plus(factor, times(shared, read(row, (before_j, s))))
                first = read(kappa, (i, j, r)) if backward else number(weight[i, j], kappa)
                write(kappa, (i, j, r), times(first, factor))
                write(row, (j, r), times(weight[i, j], factor))


@compiled
def fill(a: Steps, b: Steps, weight: Array, label_gram: Array, gap: float, kappa: Cells, work: Cells) -> None:
    """Write κ(τ,t,ρ,σ) of two sequences into the corner of `kappa`."""
    for backward in (False, True):
        _sweep(a, b, weight, label_gram, gap, backward, kappa, work)


@compiled
def _sweep(
    a: Steps,
    b: Steps,
    weight: Array,
    label_gram: Array,
    gap: float,
    backward: bool,
    kappa: Cells,
    work: Cells,
) -> None:
    """κ = weight · u, or times d when walking backward.

    `rests` is R of the row before and `summed` is Σ_ρ' P(ρ'|ρ) R(τ−1,t,ρ',σ), both at t + 1 and
    with 0 at either end; `along` is A of the current row, in the same layout.
    """
    rests, summed, along = work
    near_a, near_b = (a.after, b.after) if backward else (a.before, b.before)
    size_a, size_b, size = a.end - a.begin, b.end - b.begin, near_a.shape[1]
    zero, one = number(0.0, kappa), number(1.0, kappa)
    for j in range(size_b + 2):
        for r in range(size):
            for s in range(size):
                write(rests, (j, r, s), zero)
                write(summed, (j, r, s), zero)
                write(along, (j, r, s), zero)
    for step_a in range(size_a):
        i = size_a - 1 - step_a if backward else step_a
        for j in range(size_b):
            for r in range(size):
                for s in range(size):
                    total = zero
                    for q in range(size):
                        total = plus(total, times(near_a[a.begin + i, r, q], read(rests, (j + 1, q, s))))
                    write(summed, (j + 1, r, s), total)
        for step_b in range(size_b):
            j = size_b - 1 - step_b if backward else step_b
            before = j + 2 if backward else j
            for r in range(size):
                for s in range(size):
                    factor, skipped = one, zero
                    for q in range(size):
                        step = near_b[b.begin + j, s, q]
                        factor = plus(factor, times(step, read(summed, (before, r, q))))
                        skipped = plus(skipped, times(step, read(along, (before, r, q))))
                    first = read(kappa, (i, j, r, s)) if backward else number(weight[i, j], kappa)
                    write(kappa, (i, j, r, s), times(first, factor))
                    product = plus(times(weight[i, j], times(label_gram[r, s], factor)), times(gap, skipped))
                    write(along, (j + 1, r, s), product)
                    write(rests, (j + 1, r, s), plus(product, times(gap, read(summed, (j + 1, r, s)))))


def workspace(is_scaled: bool, size_b: int, label_count: int) -> tuple[Cells, ...]:
    """Allocate the work arrays of `fill`, for second sequences of up to `size_b` nodes."""
    return tuple(empty_cells(is_scaled, size_b + 2, label_count, label_count) for _ in range(3))
