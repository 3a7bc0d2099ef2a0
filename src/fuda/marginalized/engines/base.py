"""The protocol of engines, whose unit of work is at least an epoch.

An engine is made for one `Problem`. It starts at α = 0 and follows every change that its epochs make
to α. Engines differ in speed alone: the same calls give the same mistakes and coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from fuda.marginalized.numbers import Numbers
from fuda.marginalized.problem import Problem

Array = np.ndarray


@dataclass
class PerceptronState:
    """A perceptron in training.

    Attributes
    ----------
    sums : array (2, N, L)
        Σ_s Δ_s = α and Σ_s s Δ_s, with Δ_s the change made in step s, a step being a structure visited.
        They change together, so that an interrupt finds them consistent.
    steps : int
        The number of steps so far.
    base : Numbers or None
        (N, L) scores of the nodes by coefficients outside of the problem, which are added to its own.
    """

    sums: Array
    steps: int = 0
    base: Numbers | None = None

    def alpha(self, average: bool) -> Array:
        """α, or its mean over all steps so far: α − (1/n) Σ_s s Δ_s."""
        return self.sums[0] - self.sums[1] / self.steps if average and self.steps else self.sums[0]


class Margins(NamedTuple):
    """What a large margin is asked of: labels (N,), −1 where not known; C_t (N,); and the duality gap of
    a position up to which it is left alone."""

    labels: Array
    bounds: Array
    tolerance: float


class Engine(Protocol):
    """Computes scores and epochs of one problem. Epochs need a problem whose targets are its sources."""

    problem: Problem

    def perceptron_epoch(self, order: Array, labels: Array, amounts: Array, state: PerceptronState) -> int:
        """Visit the structures in `order`, correct α node by node, and count the mistakes.

        `labels` (N,) are −1 at nodes that are left alone; a mistake at node t changes α by amounts[t].
        Nodes that come later see every correction at once.
        """
        ...

    def margin_epoch(
        self, order: Array, margins: Margins, alpha: Array, random: np.random.RandomState
    ) -> Array:
        """Visit the structures in `order`, and in each the positions in a random order, drawn where one
        of them has a duality gap above the tolerance; set α (N, L) of each to its best values.

        Returns the scores S (N, L) of all nodes after the epoch.
        """
        ...

    def scores(self, alpha: Array) -> Numbers:
        """S (N, L) of all targets by the coefficients alpha of all sources, from which epochs go on.

        `alpha` is not changed afterwards by the caller.
        """
        ...

    def kappa(self, source: int, target: int, apart: tuple[int, int] | None = None) -> Numbers:
        """κ(τ,t) of two structures, (T_source, T_target, 1), or with labels (T_source, T_target, L) under a
        chain prior; with `apart`, of those features alone in which these two nodes are not matched."""
        ...

    def aimed_at(self, problem: Problem) -> Engine:
        """An engine at α = 0 for a problem with the same sources, whose preparation is shared."""
        ...
