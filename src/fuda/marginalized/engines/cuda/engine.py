"""The engine for NVIDIA cards: sequences with product priors, by kernels of numba-cuda.

Epochs and scores of a corpus run on the card as a whole; the kernel of two structures, for
explanations and for single corrections, is that of the CPU engine. What is stored of a training is
as the CPU engine stores it, so that either engine continues what the other began.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fuda.marginalized.engines.base import Engine, PerceptronState, PlannedTraining
from fuda.marginalized.engines.cpu.engine import CpuEngine
from fuda.marginalized.engines.cuda import device
from fuda.marginalized.engines.cuda.ahead import Ahead
from fuda.marginalized.engines.cuda.machine import Machine, OnCard, Shared
from fuda.marginalized.engines.log import Log
from fuda.marginalized.engines.online import OnlineEngine
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.problem import Problem
from fuda.marginalized.recursions.shapes import SHAPES

Array = np.ndarray


def refusal(problem: Problem) -> str | None:
    """Return why the engine does not solve a problem; None if it does."""
    if problem.shape != SHAPES["sequence"]:
        return "trees and DAGs, whatever their parts, are computed by the CPU engine"
    if problem.is_chain_prior:
        return "prior_form='chain' is computed by the CPU engine"
    if problem.gap:
        return "sequences with gaps are computed by the CPU engine"
    if problem.is_scaled:
        return "scores that may exceed the range of doubles are computed by the CPU engine"
    return None


class CudaEngine(OnlineEngine):
    """The engine for NVIDIA cards.

    Parameters
    ----------
    problem : Problem
        The problem to solve.
    n_jobs : int or None
        The number of threads of what is left to the CPU.
    like : CudaEngine, optional
        An engine of the same sources, whose arrays on the card are shared.
    ahead : pair, optional
        Perceptrons that are trained ahead of their calls, and the number of this one: then nothing
        of the problem itself is on the card before it is needed.
    """

    def __init__(
        self,
        problem: Problem,
        n_jobs: int | None = None,
        like: CudaEngine | None = None,
        ahead: tuple[Ahead, int] | None = None,
    ) -> None:
        reason = refusal(problem)
        if reason:
            raise device.Refused(f"engine='cuda': {reason}; set engine='cpu'")
        self.problem, self._n_jobs, self._ahead = problem, n_jobs, ahead
        self._cpu: CpuEngine | None = None
        self._visits = np.arange(len(problem.targets.offsets) - 1)
        self._past: list[tuple[Array, Array, Array]] = []  # epochs that were computed in advance
        if like is None:
            cuda = device.load()
            self._card, self._shared = device.card(cuda), Shared(problem, cuda)
        else:
            self._card, self._shared = like._card, like._shared
        if like and like.problem is problem:
            self._machine = like._machine
        elif ahead is None:
            self._machine = self._on_card()  # now, so that what does not fit is refused

    @cached_property
    def _machine(self) -> Machine:
        return self._on_card()

    def _on_card(self) -> Machine:
        """The problem on the card."""
        with device.explained_errors(self._shared.cuda):
            return Machine(self.problem, self._card, self._shared)

    @cached_property
    def _scores(self) -> OnCard:
        """Q (1, L, places) after repeating the epochs that were computed in advance."""
        scores = self._machine.zeros()
        for visits, labels, amounts in self._past:
            self._machine.epochs(scores, [visits], labels, amounts)
        self._ahead = None
        return scores

    def for_targets(self, problem: Problem) -> CudaEngine:
        """See `Engine`."""
        return CudaEngine(problem, self._n_jobs, self)

    def plan_joint_training(
        self, planned: list[PlannedTraining], problems: list[Problem], labels: Array, amounts: Array
    ) -> list[Engine] | None:
        """See `Engine`."""
        count = min(len(planned), self._machine.plan.perceptrons)
        if count == 1:
            return None
        ahead = Ahead(self._machine, planned[:count], labels, amounts)
        return [
            CudaEngine(problem, self._n_jobs, self if problem is self.problem else None, (ahead, number))
            for number, problem in enumerate(problems)
        ]

    def perceptron_epoch(self, visits: Array, labels: Array, amounts: Array, state: PerceptronState) -> int:
        """See `Engine`."""
        self._visits = visits
        if state.base is not None and state.base.exponents is not None:
            return super().perceptron_epoch(visits, labels, amounts, state)
        with device.explained_errors(self._shared.cuda):
            mistakes = self._foreseen_mistakes(visits, labels, amounts, state)
            if mistakes is None:
                ((at, rivals),) = self._machine.epochs(self._scores, [visits], labels, amounts, state.base)
                mistakes = *self._machine.places.nodes(at), rivals
        nodes, owners, rivals = mistakes
        ranks = np.argsort(visits)[owners]
        changes = np.concatenate([amounts[nodes], -amounts[nodes]])
        where = np.tile(nodes, 2), np.concatenate([labels[nodes], rivals])
        state.sums[:, *where] += [changes, np.tile(state.steps + ranks, 2) * changes]
        state.steps += len(visits)
        return len(nodes)

    def _foreseen_mistakes(
        self, visits: Array, labels: Array, amounts: Array, state: PerceptronState
    ) -> tuple[Array, Array, Array] | None:
        """The nodes, structures and rivals of mistakes of an epoch, if it was planned, or None."""
        if self._ahead is None or state.base is not None:
            return None
        ahead, number = self._ahead
        if not ahead.is_planned(number, len(self._past), visits, labels, amounts):
            return None
        mistakes = ahead.mistakes(number, len(self._past))
        self._past.append((visits, labels, amounts))
        return mistakes

    def scores(self, alpha: Array, pruning_margins: Array | None = None) -> Numbers:
        """See `Engine`; never approximated."""
        with device.explained_errors(self._shared.cuda):
            self._machine.clear(self._scores)
            self._machine.add(self._scores, self._machine.log_of(alpha))
            return self.all_scores()

    def push(self, structure: int, change: Array) -> None:
        """Add `change` (nodes, L) to the coefficients of a source structure."""
        nodes, log = self.problem.sources.nodes(structure), Log(self.problem.label_count)
        gamma = self.problem.gamma(change, nodes)
        at = np.flatnonzero(gamma.any(axis=1))
        log.add(np.array([nodes.start, nodes.stop]), nodes.start + at, gamma[at])
        self._machine.add(self._scores, log)

    def structure_scores(self, structure: int) -> Numbers:
        """Return S (nodes, L) of a target structure after all pushes so far."""
        nodes = self.problem.targets.nodes(structure)
        places = self._machine.places.of_nodes[nodes]
        first = int(places.min())
        some = slice(first, int(places.max()) + 1)
        sums = np.array([row[some].copy_to_host()[places - first] for row in self._scores[0]])
        return Numbers(sums.T * self.problem.targets.prior[nodes])

    def all_scores(self) -> Numbers:
        """Return S (N, L) of all target nodes after all pushes so far."""
        return Numbers(self._sums().T * self.problem.targets.prior)

    def kappa(self, source: int, target: int, apart: tuple[int, int] | None = None) -> Numbers:
        """See `Engine`."""
        if self._cpu is None:
            self._cpu = CpuEngine(self.problem, self._n_jobs)
        return self._cpu.kappa(source, target, apart)

    def state(self) -> dict[str, Array]:
        """See `Engine`."""
        return CpuEngine.state_with(self.problem, self._visits, Numbers(self._sums()))

    def restore(self, arrays: dict[str, Array]) -> None:
        """See `Engine`."""
        stored = CpuEngine(self.problem, self._n_jobs)
        stored.restore(arrays)
        self._visits = arrays["visits"].copy()
        self._scores.copy_to_device(self._machine.places.spread(stored.sums()[None]))

    def _sums(self) -> Array:
        """Q (L, N) of all target nodes."""
        return self._scores.copy_to_host()[0][:, self._machine.places.of_nodes]
