"""The engine for NVIDIA cards: sequences with product priors, by kernels of numba-cuda.

Epochs and scores of a corpus run on the card as a whole; the kernel of two structures, for
explanations and for single corrections, is that of the CPU engine. What is stored of a training is as
the CPU engine stores it, so that either engine continues what the other began.
"""

from __future__ import annotations

import numpy as np

from fuda.marginalized.engines.base import PerceptronState
from fuda.marginalized.engines.cpu.engine import CpuEngine
from fuda.marginalized.engines.cpu.layout import Layout
from fuda.marginalized.engines.cpu.log import Log
from fuda.marginalized.engines.cuda import device
from fuda.marginalized.engines.cuda.machine import Machine, Shared
from fuda.marginalized.engines.online import OnlineEngine
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.problem import Problem
from fuda.marginalized.recursions.pair import SHAPES

Array = np.ndarray


def refusal(problem: Problem) -> str | None:
    """Return why the engine does not solve a problem; None if it does."""
    if problem.shape != SHAPES["sequence"]:
        return "trees and DAGs are computed by the CPU engine"
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
    """

    def __init__(self, problem: Problem, n_jobs: int | None = None, like: CudaEngine | None = None) -> None:
        reason = refusal(problem)
        if reason:
            raise device.Refused(f"engine='cuda': {reason}; set engine='cpu'")
        self.problem, self._n_jobs = problem, n_jobs
        self._cpu: CpuEngine | None = None
        self._visits = np.arange(len(problem.targets.offsets) - 1)
        if like is None:
            cuda = device.load()
            self._card, self._shared = device.card(cuda), Shared(problem, cuda)
        else:
            self._card, self._shared = like._card, like._shared
        is_same = like is not None and like.problem is problem
        self._machine: Machine = (
            like._machine if like and is_same else Machine(problem, self._card, self._shared)
        )
        self._scores = self._machine.zeros()

    def aimed_at(self, problem: Problem) -> CudaEngine:
        """See `Engine`."""
        return CudaEngine(problem, self._n_jobs, self)

    def perceptron_epoch(self, order: Array, labels: Array, amounts: Array, state: PerceptronState) -> int:
        """See `Engine`."""
        self._visits = order
        if state.base is not None and state.base.exponents is not None:
            return super().perceptron_epoch(order, labels, amounts, state)
        at, rivals = self._machine.epoch(self._scores, order, labels, amounts, state.base)
        nodes, owners = self._machine.places.nodes(at)
        ranks = np.argsort(order)[owners]
        changes = np.concatenate([amounts[nodes], -amounts[nodes]])
        where = np.tile(nodes, 2), np.concatenate([labels[nodes], rivals])
        state.sums[:, *where] += [changes, np.tile(state.steps + ranks, 2) * changes]
        state.steps += len(order)
        return len(at)

    def scores(self, alpha: Array, margin: float | None = None) -> Numbers:
        """See `Engine`; never approximated."""
        self._machine.clear(self._scores)
        self._machine.add(self._scores, self._machine.pushes_of(alpha))
        return self.all_scores()

    def push(self, structure: int, change: Array) -> None:
        """Add `change` (nodes, L) to the coefficients of a source structure."""
        nodes, log = self.problem.sources.nodes(structure), Log(self.problem.label_count)
        gamma = self.problem.gamma(change, nodes)
        at = np.flatnonzero(gamma.any(axis=1))
        log.add(np.array([nodes.start, nodes.stop]), nodes.start + at, gamma[at])
        self._machine.add_log(self._scores, log)

    def structure_scores(self, structure: int) -> Numbers:
        """Return S (nodes, L) of a target structure after all pushes so far."""
        nodes, first = self.problem.targets.nodes(structure), int(self._machine.places.begins[structure])
        places = slice(first, first + nodes.stop - nodes.start)
        sums = np.array([self._scores[label, places].copy_to_host() for label in range(len(self._scores))])
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
        layout, labels = Layout(self.problem, self._visits), self.problem.label_count
        scores = np.zeros((labels, layout.size))
        scores[:, layout.places] = self._sums()
        arrays = {
            "visits": self._visits,
            "done": np.zeros(layout.block_count, dtype=np.int64),
            "scores": scores,
        }
        spans, marked, gamma = Log(labels).since(0)
        return arrays | {"spans": spans, "marked": marked, "gamma": gamma}

    def restore(self, arrays: dict[str, Array]) -> None:
        """See `Engine`."""
        stored = CpuEngine(self.problem, self._n_jobs)
        stored.restore(arrays)
        self._visits = arrays["visits"].copy()
        self._scores.copy_to_device(self._machine.places.spread(np.ascontiguousarray(stored.sums())))

    def _sums(self) -> Array:
        """Q (L, N) of all target nodes."""
        return self._scores.copy_to_host()[:, self._machine.places.of_nodes]
