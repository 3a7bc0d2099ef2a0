"""The engine for CPU cores.

A push is only logged. The pending pushes to a block of targets are applied together when a score
of the block is needed: so a caller that visits structures in order, and pushes after each, gets
the scores of the online order of the papers, but nearly all work is done in large pieces by many
threads over adjacent blocks. There is no matrix over pairs of nodes, and structures that are
never pushed cost nothing.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from fuda.checks import check_arrays, check_memory
from fuda.data.graph import Span
from fuda.errors import DataError
from fuda.marginalized.engines.cpu import pairs
from fuda.marginalized.engines.cpu.graphs import edges, graphs
from fuda.marginalized.engines.cpu.layout import BlockLayout
from fuda.marginalized.engines.cpu.lines import lines
from fuda.marginalized.engines.cpu.pairs import Workspace
from fuda.marginalized.engines.cpu.push import Sources, Task
from fuda.marginalized.engines.cpu.runs import runs
from fuda.marginalized.engines.cpu.trees import families, trees
from fuda.marginalized.engines.cpu.windows import WindowSupport, has_windows
from fuda.marginalized.engines.log import Log, Pushes
from fuda.marginalized.engines.online import OnlineEngine
from fuda.marginalized.engines.values import Values, by_frequency, rows_of, values_by_products, values_of
from fuda.marginalized.numbers import Numbers, empty_cells
from fuda.marginalized.problem import Problem
from fuda.marginalized.products import fill
from fuda.marginalized.recursions import chain_prior, shapes
from fuda.marginalized.recursions.chain_prior import Steps
from fuda.runtime.parallel import blocks, run

Array = np.ndarray
_GROUP_BLOCKS = 16  # adjacent blocks that are updated together
_MIN_GROUP_PUSHES = 64  # with at least so many pending pushes, a whole group is updated
# Bytes of the table of common features between pushed nodes and the nodes of a block.
_COUNT_BYTES = 1 << 25
_TABLE_ENTRIES = 1 << 25  # entries of a table of kernel values computed for a group
_BY_FEATURES: dict[int, tuple[Any, Any]] = {
    shapes.TREE: (families, trees),
    shapes.DAG: (edges, graphs),
    shapes.LINES: (families, lines),
}


class CpuEngine(OnlineEngine):
    """The engine for CPU cores.

    Parameters
    ----------
    problem : Problem
        The problem to solve.
    n_jobs : int or None
        The number of threads.
    like : CpuEngine, optional
        An engine of the same sources, whose preparation is shared.
    """

    def __init__(self, problem: Problem, n_jobs: int | None = None, like: CpuEngine | None = None) -> None:
        self.problem, self._n_jobs = problem, n_jobs
        self._prepared: _Prepared = like._prepared if like else _Prepared(problem)
        side = problem.sources
        self._source = Sources(side.classes, side.ids, problem.self_values, self._prepared.share)
        self._values: Values | None = None
        if like and like.problem is problem:
            self._values = like._values
        elif problem.kernel_classes.products is not None:
            row_of = self._prepared.rows_of(problem)[1]
            self._values = values_by_products(problem.kernel_classes.products, problem.mixing, row_of)
        elif problem.kernel_classes.all_values is not None:
            columns = np.flatnonzero(np.bincount(problem.targets.classes))
            rows, row_of = self._prepared.rows_of(problem)
            self._values = values_of(problem.kernel_classes, problem.mixing, rows, columns, row_of)
        self._layout = BlockLayout(problem, np.arange(len(problem.targets.offsets) - 1))
        self._start(Log(problem.label_count))

    def for_targets(self, problem: Problem) -> CpuEngine:
        """See `Engine`."""
        return CpuEngine(problem, self._n_jobs, self)

    def can_prune(self) -> bool:
        """See `Engine`."""
        return has_windows(self.problem)

    def scores(self, alpha: Array, pruning_margins: Array | None = None) -> Numbers:
        """See `Engine`."""
        if pruning_margins is not None and self.can_prune():
            windows = self._prepared.windows_of(self.problem, alpha)
            return Numbers(windows.scores(self.problem, pruning_margins, self._n_jobs))
        self._start(self._prepared.log_of(self.problem, alpha))
        return self.all_scores()

    def prepare_visits(self, visits: Array) -> None:
        """Lay out targets in the order of visits, for which scores are fast."""
        if np.array_equal(visits, self._layout.visits):
            return
        self._update_all()
        before = self._scores[:, self._layout.places]
        self._layout = BlockLayout(self.problem, visits)
        self._start(self._log)
        self._done[:] = self._log.count
        self._scores[:, self._layout.places] = before

    def state(self) -> dict[str, Array]:
        """See `Engine`."""
        first = int(self._done.min())
        spans, marked, gamma = self._log.since(first)
        arrays = {"visits": self._layout.visits, "done": self._done - first, "scores": self._scores.mantissas}
        if self._scores.exponents is not None:
            arrays["exponents"] = self._scores.exponents
        return arrays | {"spans": spans, "marked": marked, "gamma": gamma}

    @staticmethod
    def state_with(problem: Problem, visits: Array, sums: Numbers) -> dict[str, Array]:
        """Return the state of an engine that has Q (L, N) of all nodes, and no pending pushes."""
        layout, labels = BlockLayout(problem, visits), problem.label_count
        scores = Numbers.zeros(problem.is_scaled, labels, layout.size)
        scores[:, layout.places] = sums
        spans, marked, gamma = Log(labels).since(0)
        done = np.zeros(layout.block_count, dtype=np.int64)
        arrays = {"visits": visits, "done": done, "scores": scores.mantissas}
        if scores.exponents is not None:
            arrays["exponents"] = scores.exponents
        return arrays | {"spans": spans, "marked": marked, "gamma": gamma}

    def restore(self, arrays: dict[str, Array]) -> None:
        """See `Engine`."""
        expected = self.state()
        integer_dtypes = dict.fromkeys(("visits", "done", "exponents", "spans", "marked"), np.int64)
        shapes: dict[str, tuple[int | None, ...]] = {name: array.shape for name, array in expected.items()}
        pending = len(arrays.get("marked", ()))
        shapes |= {"spans": (None, 3), "marked": (pending,), "gamma": (pending, self.problem.label_count)}
        check_arrays(arrays, shapes | {"done": (None,)}, integer_dtypes)
        visits, count = arrays["visits"], len(arrays["spans"]) - 1
        if not np.array_equal(np.sort(visits), np.arange(len(visits))):
            raise DataError("its array 'visits' is not an order of the structures")
        check_pushes(arrays["spans"], arrays["marked"], self.problem.sources.offsets)
        self._layout = BlockLayout(self.problem, visits.copy())
        self._start(Log.restored(*(arrays[name].copy() for name in ("spans", "marked", "gamma"))))
        done = arrays["done"]
        if done.shape != self._done.shape or done.min(initial=0) < 0 or done.max(initial=0) > count:
            raise DataError("its array 'done' does not number its pushes")
        self._done[:], self._scores.mantissas[:] = done, arrays["scores"]
        if self._scores.exponents is not None:
            self._scores.exponents[:] = arrays["exponents"]

    def push(self, structure: int, change: Array) -> None:
        """Add `change` (nodes, L) to the coefficients of a source structure."""
        nodes = self.problem.sources.nodes(structure)
        gamma = self.problem.gamma(change, nodes)
        at = np.flatnonzero(gamma.any(axis=1))
        self._log.add_one(nodes.start, nodes.stop, nodes.start + at, gamma[at])

    def pushes_since(self, first: int) -> tuple[Array, Array, Array]:
        """Return the pushes from a number on, in arrays as a state has them."""
        return self._log.since(first)

    def add_pushes(self, first: int, spans: Array, marked: Array, gamma: Array) -> None:
        """Add another engine's pushes of the same sources from number `first`, but none twice."""
        for (begin, end, row), (_, _, to) in pairwise(spans[self._log.count - first :].tolist()):
            self._log.add_one(begin, end, marked[row:to], gamma[row:to])

    def structure_scores(self, structure: int) -> Numbers:
        """Return S (nodes, L) of a target structure after all pushes so far."""
        self._bring_up(structure)
        return self._read(self._layout.places_of(structure), self.problem.targets.nodes(structure))

    def structure_sums(self, structure: int) -> Numbers:
        """Return Q (L, nodes) of a target structure after all pushes so far."""
        self._bring_up(structure)
        return self._scores[:, self._layout.places_of(structure)]

    def _bring_up(self, structure: int) -> None:
        """Apply all pending pushes to a structure, and to others that are visited soon."""
        block = self._layout.block_of[structure]
        pending = self._log.count - self._done[block]
        if pending >= _MIN_GROUP_PUSHES:
            self._update(self._group(block - block % _GROUP_BLOCKS))
        elif pending:
            self._update(range(block, block + 1))

    def all_scores(self) -> Numbers:
        """Return S (N, L) of all target nodes after all pushes so far."""
        self._update_all()
        return self._read(self._layout.places, slice(None))

    def kappa(self, source: int, target: int, apart: tuple[int, int] | None = None) -> Numbers:
        """See `Engine`."""
        problem, (weight, mass) = self.problem, self.matrices(source, target)
        if apart is not None:
            weight[apart] = 0.0
        a, b = problem.sources.nodes(source), problem.targets.nodes(target)
        _, _, kappa, work = self._workspace(*weight.shape)
        if problem.is_chain_prior:
            source_steps = Steps(*problem.sources.transitions, a.start, a.stop)
            target_steps = Steps(*problem.targets.transitions, b.start, b.stop)
            chain_prior.fill_diagonal(source_steps, target_steps, weight, kappa, work)
            return Numbers.of(kappa)
        here = Span(problem.sources.adjacency, a.start, a.stop)
        there = Span(problem.targets.adjacency, b.start, b.stop)
        shapes.fill(problem.shape, here, there, weight, mass, problem.gap, kappa, work)
        return Numbers.of(kappa).map(lambda x: x[:, :, None])

    def matrices(self, source: int, target: int) -> tuple[Array, Array]:
        """Return weight = c² k_x and mass of two structures; mass is 1 under a chain prior."""
        a, places = self.problem.sources.nodes(source), self._layout.places_of(target)
        shape = a.stop - a.start, places.stop - places.start
        self._check_memory(*shape)
        weight, mass = np.empty(shape), np.ones(shape)
        source_classes, target_classes = self._source.classes[a], self._layout.targets.classes[places]
        values = self._values or self._values_for(source_classes, target_classes)
        task = Task(self._layout.targets, self._source, values, self._log.pushes())
        if len(values.products.levels):
            fill(values.products, source_classes, target_classes, 1.0, weight)
        else:
            pairs.fill_weight(a.start, a.stop, places.start, shape[1], task, weight)
        if not self.problem.is_chain_prior:
            pairs.fill_mass(a.start, a.stop, places.start, shape[1], task, mass)
        return weight, mass

    def sums(self) -> Array:
        """Return Q (L, N) of all target nodes after all pushes so far, for unscaled numbers."""
        self._update_all()
        return self._scores.mantissas[:, self._layout.places]

    def _start(self, log: Log) -> None:
        """Reset the scores; all pushes of a log are pending."""
        self._log, shape = log, (self.problem.label_count, self._layout.size)
        self._scores = Numbers.zeros(self.problem.is_scaled, *shape)
        self._done = np.zeros(self._layout.block_count, dtype=np.int64)

    def _values_for(self, source_classes: Array, target_classes: Array) -> Values:
        """Return the kernel values for these classes."""
        classes, columns = self.problem.kernel_classes, np.unique(target_classes)
        columns = columns[columns < classes.counts[1]]  # not that of empty places
        return values_of(classes, self.problem.mixing, by_frequency(source_classes), columns)

    def _group(self, first: int) -> range:
        """Return a group of blocks."""
        return range(first, min(first + _GROUP_BLOCKS, self._layout.block_count))

    def _update_all(self) -> None:
        """Apply all pending pushes."""
        for first in range(0, self._layout.block_count, _GROUP_BLOCKS):
            self._update(self._group(first))

    def _update(self, group: range) -> None:
        """Apply the pending pushes to these blocks."""
        waiting = [block for block in group if self._done[block] < self._log.count]
        pushes = self._log.pushes() if waiting else None
        while waiting and pushes:
            values, count = self._values, len(waiting)
            if values is None:
                values, count = self._pending_values(waiting, pushes)
            task = Task(self._layout.targets, self._source, values, pushes)
            run(partial(self._apply, task), waiting[:count], self._n_jobs)
            self._done[waiting[:count]] = self._log.count
            waiting = waiting[count:]

    def _pending_values(self, group: list[int], pushes: Pushes) -> tuple[Values, int]:
        """Return the kernel values of pushes to the first blocks of a group, and their number."""
        first = int(self._done[group].min())
        ranges = zip(pushes.begins[first:].tolist(), pushes.ends[first:].tolist(), strict=True)
        classes = np.concatenate([self._source.classes[a:b] for a, b in ranges])
        rows = len(np.unique(classes))
        count, columns = 0, np.empty(0, dtype=np.int32)
        for block in group:
            wider = np.union1d(columns, self._layout.targets.classes[slice(*self._layout.span(block))])
            if count and rows * len(wider) > _TABLE_ENTRIES:
                break
            count, columns = count + 1, wider
        return self._values_for(classes, columns), count

    def _apply(self, task: Task, block: int) -> None:
        """Apply the pending pushes to one block."""
        for first, last in self._stretches(block, task):
            self._push(task, block, first, last)

    def _push(self, task: Task, block: int, first: int, last: int) -> None:
        """Add pushes first … last−1 to one block."""
        problem, layout, scores = self.problem, self._layout, self._scores.cells
        if not problem.is_scaled and problem.shape:
            make, add = _BY_FEATURES[problem.shape % shapes.SIDED]
            make = partial(make, problem.targets.adjacency, problem.shape >= shapes.SIDED)
            shaped = layout.shaped(block, make)
            add(shaped, problem.sources.adjacency, task, first, last, problem.mass, scores)
            return
        if not problem.is_scaled and not problem.gap and not problem.is_chain_prior:
            runs(*layout.span(block), task, first, last, problem.mass, scores)
            return
        structures = layout.structures(block)
        longest = int((task.pushes.ends - task.pushes.begins)[first:last].max())
        workspace = self._workspace(longest, int((structures.ends - structures.begins).max()))
        if problem.is_chain_prior:
            transitions = problem.sources.transitions, problem.targets.transitions
            pairs.chains(structures, transitions, task, first, last, workspace, scores)
            return
        adjacency = problem.sources.adjacency, problem.targets.adjacency
        pairs.pairs(problem.shape, problem.gap, structures, adjacency, task, first, last, workspace, scores)

    def _stretches(self, block: int, task: Task) -> list[tuple[int, int]]:
        """Return the pending pushes of a block, in stretches whose counts fit into a table."""
        first, last = int(self._done[block]), self._log.count
        if not len(task.values.products.levels):
            return [(first, last)]
        begin, end = self._layout.span(block)
        sizes = (task.pushes.ends - task.pushes.begins)[first:last]
        ends = np.append(0, np.cumsum(sizes))
        return [(first + a, first + b) for a, b in blocks(ends, _COUNT_BYTES // (end - begin))]

    def _workspace(self, size_a: int, size_b: int) -> Workspace:
        """Allocate the work arrays of two structures of up to these sizes."""
        self._check_memory(size_a, size_b)
        is_scaled, labels = self.problem.is_scaled, self.problem.label_count
        work: Any = shapes.workspace(is_scaled, size_a, size_b)
        kappa = empty_cells(is_scaled, size_a, size_b)
        if self.problem.is_chain_prior:
            kappa = empty_cells(is_scaled, size_a, size_b, labels)
            work = empty_cells(is_scaled, size_b, labels)
        return Workspace(np.empty((size_a, size_b)), np.empty((size_a, size_b)), kappa, work)

    def _check_memory(self, size_a: int, size_b: int) -> None:
        """Refuse two structures whose kernel of all pairs of nodes does not fit into memory."""
        problem = self.problem
        cells = problem.label_count if problem.is_chain_prior else 5  # κ, and the work arrays
        check_memory(
            8 * size_a * size_b * (2 + cells * (1 + problem.is_scaled)),
            f"the marginalized kernel between structures of {size_a:,} and {size_b:,} nodes",
            "split long structures",
        )

    def _read(self, places: slice | Array, nodes: slice) -> Numbers:
        """Return S = P Q of some nodes, (nodes, L)."""
        return self._scores[:, places].map(np.transpose) * self.problem.targets.prior[nodes]


class _Prepared:
    """The preparation that engines of the same sources share."""

    def __init__(self, problem: Problem) -> None:
        self.share = np.ascontiguousarray(problem.with_labels(problem.sources.prior))
        self._last: tuple[Array | None, Log] = None, Log(problem.label_count)
        self._classes, self._rows = problem.sources.classes, rows_of(problem)
        self._windows: WindowSupport | None = None

    def rows_of(self, problem: Problem) -> tuple[Array, Array]:
        """Return the classes of the sources, the most frequent first, and the place of each."""
        return self._rows if problem.sources.classes is self._classes else rows_of(problem)

    def log_of(self, problem: Problem, alpha: Array) -> Log:
        """Return a log with a push of every source structure; cached for the next call."""
        if self._last[0] is not alpha:
            self._last = alpha, Log.of(problem, alpha)
        return self._last[1].copy()

    def windows_of(self, problem: Problem, alpha: Array) -> WindowSupport:
        """Return the support for scores by windows; kept for the next call."""
        windows = self._windows
        if windows is None or not windows.suits(problem, alpha):
            self._windows = windows = WindowSupport(problem, alpha)
        return windows


def check_pushes(spans: Array, marked: Array, offsets: Array) -> None:
    """Raise DataError where pushes that were stored are not pushes of nodes of structures."""
    begins, ends, firsts = spans[:-1, 0], spans[:-1, 1], spans[:, 2]
    bounds = np.column_stack([offsets[:-1], offsets[1:]])
    at = np.searchsorted(offsets[:-1], begins).clip(max=len(bounds) - 1)
    numbered = len(spans) and firsts[0] == 0 and firsts[-1] == len(marked) and (np.diff(firsts) >= 0).all()
    if not numbered or (bounds[at] != spans[:-1, :2]).any():
        raise DataError("its pushes are not those of structures, one after another")
    counts = np.diff(firsts)
    if ((marked < np.repeat(begins, counts)) | (marked >= np.repeat(ends, counts))).any():
        raise DataError("its pushes mark nodes of other structures")
