"""Perceptrons that are trained ahead of their calls, all at the same time on one card.

A training visits structures in orders that are known before it begins: those of several
perceptrons to be averaged, and of folds, which visit a part of the structures. `Ahead` runs an
epoch of all of them when the first asks for it, and keeps the mistakes; the others find theirs
when their time comes. Who visits in another order than was planned, because a perceptron before
it ended sooner, finds nothing.
"""

from __future__ import annotations

import numpy as np

from fuda.data.graph import ranges
from fuda.marginalized.engines.base import PlannedTraining
from fuda.marginalized.engines.cuda.machine import Machine, Mistakes, OnCard

Array = np.ndarray


class Ahead:
    """Perceptrons of one problem.

    Parameters
    ----------
    machine : Machine
        The problem on a card.
    planned : list of PlannedTraining
        The perceptrons.
    labels, amounts : arrays (N,)
        As in `Engine.perceptron_epoch`, of the whole problem.
    """

    def __init__(
        self, machine: Machine, planned: list[PlannedTraining], labels: Array, amounts: Array
    ) -> None:
        self._machine, self._planned, self._epoch_data = machine, planned, (labels, amounts)
        side = machine.problem.targets
        parts = {id(perceptron.members): perceptron.members for perceptron in planned}
        nodes = {key: ranges(side.offsets[part], side.sizes[part]) for key, part in parts.items()}
        self._nodes = [nodes[id(perceptron.members)] for perceptron in planned]
        self._known: list[tuple[Array, Array] | None] = [None] * len(planned)  # labels, amounts
        self._done: list[list[Mistakes]] = []  # by epoch
        self._scores: OnCard = None

    def is_planned(self, number: int, epoch: int, visits: Array, labels: Array, amounts: Array) -> bool:
        """Return whether this epoch of a perceptron was planned, on its own structures."""
        if number >= len(self._planned) or epoch >= len(self._planned[number].visits):
            return False
        known = self._known[number]
        if known is None or known[0] is not labels or known[1] is not amounts:
            pairs, nodes = zip((labels, amounts), self._epoch_data, strict=True), self._nodes[number]
            if not all(np.array_equal(array, full[nodes]) for array, full in pairs):
                return False
            self._known[number] = labels, amounts
        return np.array_equal(visits, self._planned[number].visits[epoch])

    def mistakes(self, number: int, epoch: int) -> tuple[Array, Array, Array]:
        """Return an epoch's mistakes: nodes, structures (the perceptron's numbers) and rivals."""
        while len(self._done) <= epoch:
            self._advance()
        at, rivals = self._done[epoch][number]
        nodes, owners = self._machine.places.nodes(at)
        members = self._planned[number].members
        return np.searchsorted(self._nodes[number], nodes), np.searchsorted(members, owners), rivals

    def _advance(self) -> None:
        """Run the next epoch of all perceptrons."""
        if self._scores is None:
            self._scores = self._machine.zeros(len(self._planned))
        epoch = len(self._done)
        visits = [
            f.members[f.visits[epoch]] if epoch < len(f.visits) else f.members[:0] for f in self._planned
        ]
        self._done.append(self._machine.epochs(self._scores, visits, *self._epoch_data))
