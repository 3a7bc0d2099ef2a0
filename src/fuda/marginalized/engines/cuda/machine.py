"""The arrays of a problem on a card, and launches of kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fuda.data.graph import ranges
from fuda.marginalized.engines.cuda import device
from fuda.marginalized.engines.cuda.layout import STRIP, WARP, Places, Strips, Words, fit_belts
from fuda.marginalized.engines.cuda.plan import Plan, is_training, loads, plan_of, sizes_of
from fuda.marginalized.engines.log import Log
from fuda.marginalized.engines.values import Values, by_frequency, values_of
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.problem import Problem

Array = np.ndarray
OnCard = Any  # an array on the card
Mistakes = tuple[Array, Array]  # the places of an epoch's mistakes, and the predicted labels
_SIMULATED = 3  # the number of threads in the simulator
_LEAST_PUSHES = 64  # a launch makes at least so many pushes
# With at least so many strips per warp, strips are faster than tiles under any prior.
_MIN_STRIPS_PER_WARP = 4
# Rows of the table are staged in shared memory only if at least so many fit.
_MIN_STAGED_ROWS = 8
# About the pairs of nodes of a launch: few enough that Ctrl-C is answered in a few seconds.
_LAUNCH_CELLS = 2e12


class SourcePart(NamedTuple):
    """Some source structures on the card: nodes and places; by place self values and shares."""

    nodes: Array
    places: Places
    self_values: OnCard
    share: OnCard


class Shared:
    """What engines of the same sources have on a card, whatever their targets."""

    def __init__(self, problem: Problem, cuda: Any) -> None:
        self.cuda, self.longest = cuda, int(problem.sources.sizes.max())
        self._problem = problem
        self._log: tuple[Array | None, Log] = None, Log(problem.label_count)
        self._sent: tuple[Log | None, Any] = None, None

    def part(self, structures: Array) -> SourcePart:
        """Return some structures."""
        problem, source = self._problem, self._problem.sources
        nodes = ranges(source.offsets[structures], source.sizes[structures])
        places = Places(source.sizes[structures], self.longest)
        share = np.ascontiguousarray(problem.with_labels(source.prior[nodes]).T)
        on_card = (self.cuda.to_device(places.spread(array)) for array in (problem.self_values[nodes], share))
        return SourcePart(nodes, places, *on_card)

    @cached_property
    def everything(self) -> SourcePart:
        """All structures."""
        return self.part(np.arange(len(self._problem.sources.sizes)))

    def log_of(self, problem: Problem, alpha: Array) -> Log:
        """Return a log of pushes of all structures with coefficients; cached for the next call."""
        if self._log[0] is not alpha:
            self._log = alpha, Log.of(problem, alpha)
        return self._log[1]

    def sent(self, log: Log) -> Any:
        """Return the pushes of a log, with all structures on the card; cached for later calls."""
        if self._sent[0] is not log:
            begins = self.everything.places.begins[self.structures(log)]
            self._sent = log, self.pushes(log, slice(0, log.count), begins)
        return self._sent[1]

    def structures(self, log: Log) -> Array:
        """Return the structure of each push."""
        return np.searchsorted(self._problem.sources.offsets, log.pushes().begins)

    def pushes(self, log: Log, some: slice, at: Array) -> Any:
        """Return some pushes of a log, on the card, with the first places of their structures."""
        from fuda.marginalized.engines.cuda.kernels import Pushes

        begins, ends, firsts, marked, gamma = log.pushes()
        rows = slice(int(firsts[some.start]), int(firsts[some.stop]))
        begins, ends, firsts = begins[some], ends[some], firsts[some.start : some.stop + 1] - rows.start
        nodes = marked[rows] - np.repeat(begins, np.diff(firsts))
        entries, labels = np.nonzero(gamma[rows])
        heads = np.searchsorted(entries, np.arange(len(nodes) + 1))
        arrays = (at, ends - begins, firsts, nodes, heads, labels)
        sent = (self.cuda.to_device(array.astype(np.int32)) for array in arrays)
        return Pushes._make([*sent, self.cuda.to_device(gamma[rows][entries, labels])])


class Load(NamedTuple):
    """Sources with the rows of the table that they need, as arguments of kernels."""

    nodes: Any
    values: Any


class Machine:
    """A problem on a card.

    Parameters
    ----------
    problem : Problem
        The problem.
    card : Card
        The card.
    shared : Shared
        What is there of its sources.

    Attributes
    ----------
    plan : Plan
        What is on the card at a time.
    places : Places
        Those of the targets.
    """

    def __init__(self, problem: Problem, card: device.Card, shared: Shared) -> None:
        from fuda.marginalized.engines.cuda import kernels, scores

        self.problem, self._shared, self._cuda = problem, shared, shared.cuda
        self._columns = np.unique(problem.targets.classes)
        self._words = Words(problem, self._columns)
        stride = len(self._columns) + 2 + (0 if problem.mass else problem.label_count)
        self._staged = min(kernels.ROWS, kernels.SHARED // stride)
        variant = scores.Variant(
            bool(problem.mass),
            self._staged >= _MIN_STAGED_ROWS,
            self._words.dtype == np.uint64,
            problem.label_count,
        )
        self._blocks, self._threads = card.multiprocessors, scores.threads(variant)[0]
        if card.is_simulated:
            self._blocks, self._threads = 1, _SIMULATED
        if not self._suits_strips():
            variant = variant._replace(strips=0)
            self._threads = _SIMULATED if card.is_simulated else scores.threads(variant)[0]
        self._variant = variant
        self._scoring = _SIMULATED if card.is_simulated else scores.scoring(variant)[0]  # threads
        work = self._placed(shared.longest)
        sizes = sizes_of(problem, self.places.size, 8 * int(sum(map(np.prod, work))))
        self.plan: Plan = plan_of(problem, sizes, self._free(), card)
        self._send(work)

    def _suits_strips(self) -> bool:
        """Whether strips are faster than tiles: with many of them, or priors in a training."""
        problem, warps = self.problem, self._threads >> WARP
        sizes, has_priors = problem.targets.sizes, is_training(problem) and not problem.mass
        is_large = int(sizes.sum()) >= _MIN_STRIPS_PER_WARP * self._blocks * warps * STRIP
        return (has_priors or is_large) and fit_belts(sizes, warps)

    def _placed(self, longest: int) -> tuple[tuple[int, ...], ...]:
        """Give the targets their places; return the shapes of work space."""
        from fuda.marginalized.engines.cuda import kernels

        sizes, warps = self.problem.targets.sizes, self._threads >> WARP
        if self._variant.strips:
            strips = Strips(sizes, warps)
            self.places: Places | Strips = strips
            self._tiles, self._divided = np.zeros(1, dtype=np.int64), (strips.belts, strips.strips)
            return (1, 1, 1), (self._blocks, warps, kernels.STORED_MARKS, STRIP)
        places = Places(sizes, longest)
        self.places, self._tiles, self._divided = places, places.tiles(self._blocks), (0, 0)
        width = int(np.diff(self._tiles).max()) + longest  # most diagonals of a push
        return (self._blocks, 2, width), (self._blocks, 1, kernels.STORED_MARKS, width)

    def _free(self) -> int:
        """The bytes that are free on the card, after those no longer used were given back."""
        context = self._cuda.current_context()
        if waiting := getattr(getattr(context, "memory_manager", None), "deallocations", None):
            waiting.clear()
        return int(min(context.get_memory_info()[0], 1 << 62))

    def _send(self, work: Sequence[tuple[int, ...]]) -> None:
        """Allocate the targets on the card, and all sources if they fit."""
        problem, send, target = self.problem, self._cuda.to_device, self.problem.targets
        prior = send(self.places.spread(np.ascontiguousarray(target.prior.T)))
        words = send(self._words.of_targets(target.classes, target.ids, self.places))
        self._targets = words, prior, prior.reshape(prior.size), send(self._tiles)
        self._buffers: tuple[OnCard, ...] | None = None
        self._last: tuple[Any, ...] = (None,) * 4
        self._work = tuple(self._cuda.device_array(shape) for shape in work)
        shared, classes = self._shared, problem.sources.classes
        self._all = self._load(shared.everything, by_frequency(classes)) if self.plan.has_one_load else None

    def _load(self, part: SourcePart, rows: Array) -> Load:
        """Return sources on the card, with the rows of some classes."""
        from fuda.marginalized.engines.cuda import kernels

        problem, send, source = self.problem, self._cuda.to_device, self.problem.sources
        values = self._values_of(rows)
        pair_mass = 0.0
        for share, prior in zip(
            problem.with_labels(source.prior[:1])[0], problem.targets.prior[0], strict=True
        ):
            pair_mass += float(share * prior)  # as `fill_mass` adds
        of_rows = part.places.spread(values.row_of[source.classes[part.nodes]])
        ids = self._words.of_sources(source.ids[part.nodes], part.places)
        return Load(
            kernels.Nodes(send(of_rows), send(ids), part.self_values, part.share),
            kernels.Values(
                send(values.table.ravel()), values.table.shape[1], self._staged, self._words.mask,
                problem.mass, pair_mass,
            ),
        )  # fmt: skip

    def _values_of(self, rows: Array) -> Values:
        """Return the rows of the table for some classes."""
        problem = self.problem
        if self.plan.has_one_load or not self.plan.keeps_table:
            return values_of(problem.kernel_classes, problem.mixing, rows, self._columns)
        row_of = np.zeros_like(self._table.row_of)
        row_of[rows] = np.arange(len(rows))
        return Values(self._table.table[self._table.row_of[rows]], row_of, self._table.column_of)

    @cached_property
    def _table(self) -> Values:
        """The whole table, which is not on the card."""
        every = by_frequency(self.problem.sources.classes)
        return values_of(self.problem.kernel_classes, self.problem.mixing, every, self._columns)

    def zeros(self, count: int = 1) -> OnCard:
        """Return scores Q (count, L, places) of 0."""
        scores = self._cuda.device_array((count, self.problem.label_count, self.places.size))
        self.clear(scores)
        return scores

    def clear(self, scores: OnCard) -> None:
        """Set scores to 0."""
        from fuda.marginalized.engines.cuda.scores import clear

        clear[self._blocks, self._threads](scores.reshape(scores.size))

    def add(self, scores: OnCard, log: Log) -> None:
        """Add the pushes of a log to scores (1, L, places)."""
        from fuda.marginalized.engines.cuda.scores import score_kernel

        kernel = score_kernel(self._variant)
        for load, pushes in self._loaded(log) if log.count else ():
            kernel[self._blocks, self._scoring](self._task(load, scores[0], pushes))

    def _loaded(self, log: Log) -> Iterator[tuple[Load, Any]]:
        """The pushes of a log, with their sources."""
        if self._all is not None:
            yield self._all, self._shared.sent(log)
            return
        structures, source = self._shared.structures(log), self.problem.sources
        sizes = source.sizes[structures]
        classes = source.classes[ranges(source.offsets[structures], sizes)]
        for some in loads(self.plan, classes, sizes):
            part = self._shared.part(structures[some])
            load = self._load(part, by_frequency(source.classes[part.nodes]))
            yield load, self._shared.pushes(log, some, part.places.begins)

    def synchronize(self) -> None:
        """Wait until the card has finished all launches."""
        self._cuda.synchronize()

    def log_of(self, alpha: Array) -> Log:
        """Return a log of a push of all coefficients."""
        return self._shared.log_of(self.problem, alpha)

    def epochs(
        self, scores: OnCard, visits: list[Array], labels: Array, amounts: Array, base: Numbers | None = None
    ) -> list[Mistakes]:
        """Run an epoch of several perceptrons at the same time.

        Parameters
        ----------
        scores : array (perceptrons, L, places) on the card
            Q of each, which is updated.
        visits : list of arrays
            The structures that each visits; one array where the table comes in loads.
        labels, amounts : arrays (N,)
            As in `Engine.perceptron_epoch`.
        base : Numbers, optional
            Scores from outside.

        Returns
        -------
        list of Mistakes
            In the order of visits.
        """
        examples = self._training_data(labels, amounts, base)
        if self._all is not None:
            return self._launched(self._all, scores, visits, examples)
        (order,), source, mistakes = visits, self.problem.sources, []
        sizes, ends = source.sizes[order], np.cumsum(source.sizes[order])
        classes = source.classes[ranges(source.offsets[order], sizes)]
        for some in loads(self.plan, classes, sizes):
            rows = by_frequency(classes[ends[some.start] - sizes[some.start] : ends[some.stop - 1]])
            load = self._load(self._shared.everything, rows)
            mistakes += self._launched(load, scores, [order[some]], examples)
        return [
            (np.concatenate([at for at, _ in mistakes]), np.concatenate([rival for _, rival in mistakes]))
        ]

    def _launched(self, load: Load, scores: OnCard, visits: list[Array], examples: Any) -> list[Mistakes]:
        """Launch kernels until an epoch of each perceptron is over."""
        from fuda.marginalized.engines.cuda import epochs

        visited = [self.places.of_visits(order) for order in visits]
        counts = np.array([len(places) for places in visited])
        padded = np.zeros((len(visits), max(1, counts.max())), dtype=np.int32)
        for row, places in zip(padded, visited, strict=True):
            row[: len(places)] = places
        control = np.zeros((len(visits), epochs.CONTROLS), dtype=np.int64)
        control[:, epochs.VISITS] = counts
        arrays = self._perceptron_arrays(scores, padded, control)
        task, limit = self._task(load, scores[0], self._push), self._limit // len(visits)
        kernel = epochs.epoch_kernel(self._variant)
        while (control[:, epochs.VISITED] < counts).any():
            control[:, epochs.PUSHED] = 0
            arrays.control.copy_to_device(control)
            kernel[self._blocks, self._threads](task, examples, arrays, max(limit, _LEAST_PUSHES))
            control = arrays.control.copy_to_host()
        logged = control[:, epochs.LOGGED].tolist()
        return [
            (arrays.places[i, :count].copy_to_host(), arrays.rivals[i, :count].copy_to_host())
            for i, count in enumerate(logged)
        ]

    def _training_data(self, labels: Array, amounts: Array, base: Numbers | None) -> Any:
        """Return what all perceptrons learn from; cached for later epochs, so never modified."""
        from fuda.marginalized.engines.cuda.epochs import TrainingData

        if self._last[0] is labels and self._last[1] is amounts and self._last[2] is base:
            return self._last[3]
        places, send, empty = self.places, self._cuda.to_device, np.zeros((1, 1))
        sent = TrainingData(
            *self._owners,
            send(places.spread(labels, -1, np.int32)),
            send(places.spread(amounts.astype(np.float64))),
            send(empty if base is None else places.spread(np.ascontiguousarray(base.mantissas.T))),
            send(empty if self.problem.is_identity else np.ascontiguousarray(self.problem.label_gram)),
        )
        self._last = labels, amounts, base, sent
        return sent

    def _perceptron_arrays(self, scores: OnCard, visits: Array, control: Array) -> Any:
        """Return the arrays that perceptrons do not share."""
        from fuda.marginalized.engines.cuda.epochs import PerceptronArrays

        count, new, labels, most = len(visits), self._cuda.device_array, len(scores[0]), self._shared.longest
        if self._buffers is None or len(self._buffers[0]) != count:
            entries = most * (2 if self.problem.is_identity else labels)
            self._buffers = (
                *(new((count, self.places.size), np.int32) for _ in range(2)),
                new((count, most * (2 * most + 2 + labels))),
                new((count, most), np.int32),
                new((count, entries), np.int32),
                new((count, entries)),
            )
        sent = self._cuda.to_device(visits), self._cuda.to_device(control)
        return PerceptronArrays(scores, *sent, *self._buffers)

    @cached_property
    def _owners(self) -> tuple[OnCard, OnCard, OnCard]:
        """By place, the first place of its structure as a source, its first position, its size."""
        sizes, send, of_sources = self.problem.targets.sizes, self._cuda.to_device, self._shared.everything
        by_structure = of_sources.places.begins, self.places.begins, sizes
        source, begin, size = (
            send(self.places.spread(np.repeat(all_, sizes), 0, np.int32)) for all_ in by_structure
        )
        return source, begin, size

    @cached_property
    def _push(self) -> Any:
        """A push without marks, which each perceptron adds, but with the entries of each mark."""
        from fuda.marginalized.engines.cuda.kernels import Pushes

        entries_per_mark = 2 if self.problem.is_identity else self.problem.label_count  # entries of a mark
        empty, send = np.zeros(1, dtype=np.int32), self._cuda.to_device
        heads = np.arange(self._shared.longest + 1, dtype=np.int32) * entries_per_mark
        return Pushes._make(map(send, (empty, empty, empty, empty, heads, empty, np.zeros(1))))

    @property
    def _limit(self) -> int:
        """About the most pushes of a launch."""
        mean = self.places.size / len(self.places.begins)
        return int(_LAUNCH_CELLS / (mean * self.places.size))

    def _task(self, load: Load, scores: OnCard, pushes: Any) -> Any:
        """Return the arguments of a kernel."""
        from fuda.marginalized.engines.cuda.kernels import Targets, Task

        words, prior, flat, tiles = self._targets
        targets = Targets(words, prior, flat, scores, tiles, *self._divided)
        return Task(load.nodes, targets, load.values, pushes, *self._work)
