"""The engine for a Dask cluster: every worker has the scores of a part of the target structures.

Structures are visited in order, so that a visit needs all pushes before it. What saves messages
is that pushes of a *stretch* of some thousand nodes matter at once within the stretch only: at
its beginning the workers bring its scores up to date, from all pushes before it and each for its
own structures; within it, the CPU engine goes on here, from these scores and for these
structures alone. Pushes are added up in the order of the CPU engine, to the same last bit,
whoever answers first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from fuda.data.graph import Graph
from fuda.marginalized.engines.base import Engine, Margins, PerceptronState, PlannedTraining
from fuda.marginalized.engines.cpu.engine import CpuEngine
from fuda.marginalized.engines.log import Log
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.problem import Problem, Side
from fuda.marginalized.recursions.shapes import SHAPES
from fuda.runtime.cluster import Residents, connected, worker_threads
from fuda.runtime.parallel import blocks

Array = np.ndarray
_STRETCH_NODES = 1024  # about the nodes of a stretch, which is worked on here
_client: ContextVar[Any] = ContextVar("client", default=None)


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Within the block, engines for training are those of a cluster, if there is an address."""
    if address is None:
        yield
        return
    with connected(address) as client:
        before = _client.set(client)
        try:
            yield
        finally:
            _client.reset(before)


def current_client() -> Any:
    """Return the client of the cluster that engines run on; None if they do not."""
    return _client.get()


class ClusterEngine:
    """The engine for a Dask cluster.

    Parameters
    ----------
    problem : Problem
        The problem to solve.
    n_jobs : int or None
        The number of threads of what is done here.
    client : distributed.Client
        The client of the cluster.
    """

    def __init__(self, problem: Problem, n_jobs: int | None, client: Any) -> None:
        self.problem, self._n_jobs, self._client = problem, n_jobs, client
        count = len(problem.targets.offsets) - 1
        parts = max(1, min(len(client.nthreads()), count))
        self._members = [np.arange(k, count, parts) for k in range(parts)]
        self._part_of, self._number = np.arange(count) % parts, np.arange(count) // parts
        self._cpu: CpuEngine | None = None
        self._known: list[int | None] = [None] * parts  # pushes that a part has; None: not started
        self._visits_of: list[Array | None] = [None] * parts  # the order of visits that a part has
        self._start(np.arange(count), Log(problem.label_count), None)
        recipes = [(_engine_of_part, part_of(problem, members)) for members in self._members]
        self._workers = Residents(client, recipes, self._forget)

    def plan_joint_training(
        self, planned: list[PlannedTraining], problems: list[Problem], labels: Array, amounts: Array
    ) -> list[Engine] | None:
        """See `Engine`; one perceptron keeps all workers busy."""
        return None

    def for_targets(self, problem: Problem) -> ClusterEngine:
        """See `Engine`."""
        return ClusterEngine(problem, self._n_jobs, self._client)

    def perceptron_epoch(self, visits: Array, labels: Array, amounts: Array, state: PerceptronState) -> int:
        """See `Engine`."""

        def visit(engine: CpuEngine, nodes: Array) -> int:
            base = None if state.base is None else state.base[nodes]
            part_state = PerceptronState(state.sums[:, nodes], state.steps, base)
            count = len(engine.problem.targets.sizes)
            mistakes = engine.perceptron_epoch(np.arange(count), labels[nodes], amounts[nodes], part_state)
            state.sums[:, nodes], state.steps = part_state.sums, part_state.steps
            return mistakes

        return sum(self._epoch(visits, visit))

    def margin_epoch(
        self, visits: Array, margins: Margins, alpha: Array, random: np.random.RandomState
    ) -> Array:
        """See `Engine`."""

        def visit(engine: CpuEngine, nodes: Array) -> int:
            part_alpha, members = alpha[nodes], np.arange(len(engine.problem.targets.sizes))
            part_margins = Margins(margins.labels[nodes], margins.bounds[nodes], margins.tolerance)
            engine.margin_epoch(members, part_margins, part_alpha, random)
            alpha[nodes] = part_alpha
            return 0

        for _ in self._epoch(visits, visit):
            pass
        return np.ascontiguousarray(self._all_scores().doubles())

    def can_prune(self) -> bool:
        """See `Engine`."""
        return False

    def scores(self, alpha: Array, pruning_margins: Array | None = None) -> Numbers:
        """See `Engine`; nothing is approximated."""
        self._start(self._visits, Log.of(self.problem, alpha), None)
        return self._all_scores()

    def kappa(self, source: int, target: int, apart: tuple[int, int] | None = None) -> Numbers:
        """See `Engine`."""
        if self._cpu is None:
            self._cpu = CpuEngine(self.problem, self._n_jobs)
        return self._cpu.kappa(source, target, apart)

    def state(self) -> dict[str, Array]:
        """See `Engine`."""
        return CpuEngine.state_with(self.problem, self._visits, self._sums(np.arange(len(self._part_of))))

    def restore(self, arrays: dict[str, Array]) -> None:
        """See `Engine`."""
        stored = CpuEngine(self.problem, self._n_jobs)
        stored.restore(arrays)
        sums = Numbers.concatenate(
            [stored.structure_sums(i).map(np.transpose) for i in range(len(self._part_of))]
        )
        self._start(arrays["visits"].copy(), Log(self.problem.label_count), sums.map(np.transpose))

    def _start(self, visits: Array, log: Log, sums: Numbers | None) -> None:
        """Begin with scores (L, N), and with all pushes of a log pending."""
        self._visits, self._log, self._first = visits, log, sums
        for number in range(len(self._known)):
            self._forget(number)

    def _forget(self, number: int) -> None:
        """A part is new: it has neither scores nor pushes."""
        self._known[number] = self._visits_of[number] = None

    def _epoch(self, visits: Array, visit: Callable[[CpuEngine, Array], int]) -> Iterator[int]:
        """Visit stretches in order: what `visit` returns for an engine of each and its nodes."""
        self._visits, targets = visits, self.problem.targets
        for first, last in blocks(np.concatenate([[0], np.cumsum(targets.sizes[visits])]), _STRETCH_NODES):
            members = visits[first:last]
            nodes = _nodes_of(targets, members)
            engine = CpuEngine(part_of(part_of(self.problem, members), members, "sources"), self._n_jobs)
            state = CpuEngine.state_with(engine.problem, np.arange(len(members)), self._sums(members))
            engine.restore(state)
            yield visit(engine, nodes)
            spans, marked, gamma = engine.pushes_since(0)
            for (begin, end, row), (_, _, to) in pairwise(spans.tolist()):
                bounds = np.array([nodes[begin], nodes[end - 1] + 1])
                self._log.add(bounds, nodes[marked[row:to]], gamma[row:to])

    def _sums(self, members: Array) -> Numbers:
        """Q (L, nodes) of structures, after all pushes so far."""
        parts, targets = self._part_of[members], self.problem.targets

        def arguments(part: int) -> tuple[Any, ...]:
            members_of_part, known, visits = self._members[part], self._known[part], None
            start = self._first if known is None else None
            if start is not None:
                start = start[:, _nodes_of(targets, members_of_part)]
            if self._visits_of[part] is not self._visits:
                visits = self._number[self._visits[self._part_of[self._visits] == part]]
            requested = self._number[members[parts == part]]
            first = known or 0
            return known is None, start, visits, (first, *self._log.since(first)), requested

        sums_of_parts = []
        for part, sums in enumerate(self._workers.results(_advanced, arguments)):
            self._known[part], self._visits_of[part] = self._log.count, self._visits
            sums_of_parts.append(sums.map(np.transpose))
        together, order = Numbers.concatenate(sums_of_parts), np.argsort(parts, kind="stable")
        places = np.argsort(_nodes_of(targets, members[order]), kind="stable")
        ranks = np.argsort(np.argsort(_nodes_of(targets, members), kind="stable"), kind="stable")
        return together[places[ranks]].map(np.transpose)

    def _all_scores(self) -> Numbers:
        """S (N, L) of all target nodes."""
        sums = self._sums(np.arange(len(self._part_of)))
        return sums.map(np.transpose) * self.problem.targets.prior


def part_of(problem: Problem, structures: Array, side: str = "targets") -> Problem:
    """Return the problem with only some of the structures of one side."""
    old: Side = getattr(problem, side)
    nodes = _nodes_of(old, structures)
    arrays: dict[str, Any] = {
        name: None if array is None else array[nodes]
        for name, array in zip(Side._fields[1:-1], old[1:-1], strict=True)
    }
    offsets = np.concatenate([[0], np.cumsum(old.sizes[structures])])
    is_chain = problem.shape == SHAPES["sequence"]
    graph = Graph.of_chains(offsets) if is_chain else old.graph.take(structures)
    new = Side(offsets=offsets, graph=graph, **arrays)
    if side == "targets":
        return replace(problem, targets=new)
    return replace(problem, sources=new, self_values=problem.self_values[nodes])


def _nodes_of(side: Side, structures: Array) -> Array:
    """The nodes of structures, one structure after another."""
    return np.concatenate(
        [np.empty(0, dtype=np.int64), *(np.arange(*side.offsets[i : i + 2]) for i in structures)]
    )


def _engine_of_part(problem: Problem) -> CpuEngine:
    """The engine of a part, on a worker."""
    return CpuEngine(problem, worker_threads())


def _advanced(
    engine: CpuEngine,
    is_new: bool,
    start: Numbers | None,
    visits: Array | None,
    pushes: tuple[int, Array, Array, Array],
    requested: Array,
) -> Numbers:
    """On a worker: Q (L, nodes) of the requested structures, after further pushes."""
    if is_new:
        count = len(engine.problem.targets.offsets) - 1
        zero = Numbers.zeros(
            engine.problem.is_scaled, engine.problem.label_count, engine.problem.targets.offsets[-1]
        )
        start = zero if start is None else start
        engine.restore(CpuEngine.state_with(engine.problem, np.arange(count), start))
    if visits is not None:
        engine.prepare_visits(visits)
    engine.add_pushes(*pushes)
    empty = Numbers.zeros(engine.problem.is_scaled, 0, engine.problem.label_count)
    sums = [engine.structure_sums(i).map(np.transpose) for i in requested.tolist()]
    return Numbers.concatenate([empty, *sums]).map(lambda rows: np.ascontiguousarray(rows.T))
