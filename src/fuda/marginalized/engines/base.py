"""The protocol of engines, whose smallest unit of work is an epoch.

An engine is made for one `Problem`. It starts at α = 0 and keeps track of every change of α by its
epochs. Engines differ in speed only: the same calls give the same mistakes and coefficients.
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
        Σ_s Δ_s = α and Σ_s s Δ_s, where Δ_s is the change in step s, the visit of one structure.
        Both are updated together, so that they are consistent after an interrupt.
    steps : int
        The number of steps so far.
    base : Numbers or None
        (N, L) scores from coefficients outside of the problem, added to those of the problem.
    """

    sums: Array
    steps: int = 0
    base: Numbers | None = None

    def alpha(self, average: bool) -> Array:
        """Return α, or its mean over all steps so far: α − (1/n) Σ_s s Δ_s."""
        return self.sums[0] - self.sums[1] / self.steps if average and self.steps else self.sums[0]


class PlannedTraining(NamedTuple):
    """The planned training of a perceptron.

    Attributes
    ----------
    members : array
        The structures that it learns from, in increasing order.
    visits : list of arrays
        The structures of each epoch in the order of visits, by their numbers among these.
    """

    members: Array
    visits: list[Array]


class Margins(NamedTuple):
    """The parameters of large-margin training.

    Attributes
    ----------
    labels : array (N,)
        Label numbers, −1 where unknown.
    bounds : array (N,)
        C_t.
    tolerance : float
        The duality gap up to which a position is not updated.
    """

    labels: Array
    bounds: Array
    tolerance: float


class Engine(Protocol):
    """An engine for one problem; epochs require a problem whose targets are its sources."""

    problem: Problem

    def perceptron_epoch(self, visits: Array, labels: Array, amounts: Array, state: PerceptronState) -> int:
        """Visit structures and correct α node by node; later nodes see every correction.

        Parameters
        ----------
        visits : array of int
            The structures to visit, in this order.
        labels : array (N,)
            Label numbers, −1 at nodes to skip.
        amounts : array (N,)
            The change of α for a mistake at each node.
        state : PerceptronState
            The state of training, which is updated.

        Returns
        -------
        int
            The number of mistakes.
        """
        ...

    def margin_epoch(
        self, visits: Array, margins: Margins, alpha: Array, random: np.random.RandomState
    ) -> Array:
        """Visit structures, and optimize α position by position, in random order.

        Parameters
        ----------
        visits : array of int
            The structures to visit, in this order; those without a duality gap above the tolerance
            are skipped.
        margins : Margins
            The parameters of training.
        alpha : array (N, L)
            The coefficients, which are updated.
        random : RandomState
            The source of the random orders.

        Returns
        -------
        array (N, L)
            The scores S of all nodes after the epoch.
        """
        ...

    def can_prune(self) -> bool:
        """Return whether `scores` with margins are approximated, stage by stage."""
        ...

    def scores(self, alpha: Array, pruning_margins: Array | None = None) -> Numbers:
        """Return S (N, L) of all targets from coefficients of all sources, where epochs continue.

        Parameters
        ----------
        alpha : array (N, L)
            The coefficients, which must not be modified afterwards.
        pruning_margins : array (stages, L) or None
            Where given, an engine that can prune approximates scores stage by stage, those of
            nodes whose best label leads by its margin, in units of their largest |score|, no
            better than by the first such stage. Epochs cannot continue then.

        Returns
        -------
        Numbers
            The scores.
        """
        ...

    def kappa(self, source: int, target: int, apart: tuple[int, int] | None = None) -> Numbers:
        """Compute κ(τ,t) of two structures.

        Parameters
        ----------
        source, target : int
            The structures.
        apart : pair of int, optional
            Two nodes: only features that do not match them count.

        Returns
        -------
        Numbers
            (T_source, T_target, 1), or (T_source, T_target, L) under a chain prior.
        """
        ...

    def for_targets(self, problem: Problem) -> Engine:
        """Return an engine at α = 0 for other targets of the same sources, sharing its data."""
        ...

    def plan_joint_training(
        self, planned: list[PlannedTraining], problems: list[Problem], labels: Array, amounts: Array
    ) -> list[Engine] | None:
        """Return engines for several perceptrons, if training them at the same time is faster.

        The calls of their epochs are the same as ever, one perceptron after another, and so are
        their results, also where the orders differ from those that were planned.

        Parameters
        ----------
        planned : list of PlannedTraining
            The perceptrons, on structures of this problem.
        problems : list of Problem
            For each the problem of its own structures alone.
        labels, amounts : arrays (N,)
            As in `perceptron_epoch`, of this problem.

        Returns
        -------
        list of Engine or None
            At α = 0, for `problems`; None if there is nothing to gain.
        """
        ...

    def state(self) -> dict[str, Array]:
        """Return what scores depend on after some epochs, up to the last bit; not copied."""
        ...

    def restore(self, arrays: dict[str, Array]) -> None:
        """Continue from a `state()` of the same problem; raise DataError where it does not fit."""
        ...
