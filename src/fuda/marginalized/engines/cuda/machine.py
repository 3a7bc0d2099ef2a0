"""The arrays of a problem on a card, planned before they are allocated, and launches of kernels."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from fuda.checks import check_memory
from fuda.marginalized.engines.cpu.engine import by_frequency, values_of
from fuda.marginalized.engines.cpu.log import Log
from fuda.marginalized.engines.cuda import device, layout
from fuda.marginalized.engines.cuda.layout import Places
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.problem import Problem

Array = np.ndarray
OnCard = Any  # an array on the card
_SIMULATED = 2  # threads, in the simulator
_LEAST_PUSHES = 64  # of a launch
_FEWEST = 8  # rows of the table in shared memory that are worth it
_CELLS = 2e12  # about the pairs of nodes of a launch, so that Ctrl-C is answered in a few seconds


class Shared:
    """What engines of the same sources have on a card, whatever their targets."""

    def __init__(self, problem: Problem, cuda: Any) -> None:
        self.cuda, self.longest = cuda, int(problem.sources.sizes.max())
        self.places = Places(problem.sources, self.longest)
        self.own = cuda.to_device(self.places.spread(problem.own))
        share = np.ascontiguousarray(problem.with_labels(problem.sources.prior).T)
        self.share = cuda.to_device(self.places.spread(share))
        self._last: tuple[Array | None, Any] = None, None

    def pushes_of(self, problem: Problem, alpha: Array) -> Any:
        """Return a push of every structure with coefficients; cached for the next call."""
        if self._last[0] is not alpha:
            at, log = np.flatnonzero(alpha.any(axis=1)), Log(problem.label_count)
            log.add(problem.sources.offsets, at, problem.gamma(alpha[at], at))
            self._last = alpha, self.sent(log)
        return self._last[1]

    def sent(self, log: Log) -> Any:
        """Return the pushes of a log, on the card."""
        from fuda.marginalized.engines.cuda.kernels import Pushes

        begins, ends, firsts, marked, gamma = log.pushes()
        rows = int(firsts[-1])
        owners = np.repeat(np.arange(len(begins)), np.diff(firsts))
        nodes, (entries, labels) = marked[:rows] - begins[owners], np.nonzero(gamma[:rows])
        heads = np.searchsorted(entries, np.arange(rows + 1))
        whole = (self.places.of_nodes[begins], ends - begins, firsts, nodes, heads, labels)
        sent = (self.cuda.to_device(array.astype(np.int32)) for array in whole)
        return Pushes._make([*sent, self.cuda.to_device(gamma[entries, labels])])


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
    """

    def __init__(self, problem: Problem, card: device.Card, shared: Shared) -> None:
        from fuda.marginalized.engines.cuda import epochs

        self.problem, self._card, self._shared, self._cuda = problem, card, shared, shared.cuda
        self._threads, self._blocks = epochs.THREADS[0], card.multiprocessors
        self._scoring = epochs.scoring(bool(problem.mass))[0]  # threads
        if card.is_simulated:
            self._threads, self._scoring, self._blocks = _SIMULATED, _SIMULATED, 1
        self.places = Places(problem.targets, shared.longest)
        self._tiles = self.places.tiles(self._blocks)
        self._check_memory()
        self._send()

    def _check_memory(self) -> None:
        """Raise DataError unless all arrays of the problem fit into the memory of the card."""
        needed, free = self.bytes_needed(), self._free()
        if needed > free:
            raise device.Refused(
                f"engine='cuda': the problem needs {needed:,} bytes of memory, and {free:,} are free on "
                f"{self._card}; free some, take fewer structures, or set engine='cpu'"
            )

    def _free(self) -> int:
        """The bytes that are free on the card."""
        return int(min(self._cuda.current_context().get_memory_info()[0], 1 << 62))

    def bytes_needed(self) -> int:
        """Return the bytes that the arrays of the problem take on the card."""
        from fuda.marginalized.engines.cuda.kernels import KEPT

        problem, labels, longest = self.problem, self.problem.label_count, self._shared.longest
        rows, columns = len(np.unique(problem.sources.codes)), len(np.unique(problem.targets.codes)) + 1
        check_memory(8 * rows * columns, "the table of kernel values", "use features that observations share")
        training = problem.targets is problem.sources or problem.sources.offsets is problem.targets.offsets
        nodes = self._shared.places.size * (20 + 8 * labels) + self.places.size * (8 + 24 * labels)
        if training:
            nodes += self.places.size * (40 + 8 * labels) + 8 * longest * (2 * longest + 2 * labels)
        return 8 * rows * columns + nodes + 8 * self._blocks * (2 + KEPT) * self._width

    @property
    def _width(self) -> int:
        """The most diagonals of a push to a tile."""
        return int(np.diff(self._tiles).max()) + self._shared.longest

    def _send(self) -> None:
        """Allocate the arrays on the card."""
        from fuda.marginalized.engines.cuda import kernels

        problem, send = self.problem, self._cuda.to_device
        source, target, ours = problem.sources, problem.targets, self._shared.places
        rows, columns = by_frequency(source.codes), np.unique(target.codes)
        values = values_of(problem.codes, problem.mixing, rows, columns)
        coded, coded_twins, mask = layout.words(problem, values, ours, self.places)
        pair_mass = 0.0
        for share, prior in zip(problem.with_labels(source.prior[:1])[0], target.prior[0], strict=True):
            pair_mass += float(share * prior)  # as `fill_mass` adds
        width = values.table.shape[1]
        stride = width + 1 + (0 if problem.mass else problem.label_count)
        staged = min(kernels.ROWS, kernels.SHARED // stride)
        masses = problem.mass, pair_mass
        self._values = kernels.Values(send(values.table.ravel()), width, staged, mask, *masses)
        of_rows = ours.spread(values.row_of[source.codes])
        self._nodes = kernels.Nodes(send(of_rows), send(coded_twins), self._shared.own, self._shared.share)
        self._words, self._on_tiles = send(coded), send(self._tiles)
        self._prior = send(self.places.spread(np.ascontiguousarray(target.prior.T)))
        self._states = self._cuda.device_array((self._blocks, 2, self._width))
        self._kept = self._cuda.device_array((self._blocks, kernels.KEPT, self._width))
        self._variant = bool(problem.mass), staged >= _FEWEST, coded.dtype == np.uint64

    def zeros(self) -> OnCard:
        """Return scores Q (L, places) of 0."""
        scores = self._cuda.device_array((self.problem.label_count, self.places.size))
        self.clear(scores)
        return scores

    def clear(self, scores: OnCard) -> None:
        """Set scores to 0."""
        from fuda.marginalized.engines.cuda.epochs import clear

        clear[self._blocks, self._threads](scores)

    def add(self, scores: OnCard, pushes: Any) -> None:
        """Add pushes to scores."""
        from fuda.marginalized.engines.cuda.epochs import kernels

        if len(pushes.begins):
            kernels(*self._variant).score[self._blocks, self._scoring](self._task(scores, pushes))

    def synchronize(self) -> None:
        """Wait until the card has done all it was told."""
        self._cuda.synchronize()

    def add_log(self, scores: OnCard, log: Log) -> None:
        """Add the pushes of a log to scores."""
        self.add(scores, self._shared.sent(log))

    def pushes_of(self, alpha: Array) -> Any:
        """Return the pushes of all coefficients."""
        return self._shared.pushes_of(self.problem, alpha)

    def epoch(
        self, scores: OnCard, order: Array, labels: Array, amounts: Array, base: Numbers | None
    ) -> tuple[Array, Array]:
        """Run an epoch of the perceptron; return the places of mistakes, and what was predicted there."""
        from fuda.marginalized.engines.cuda import epochs

        places, send, empty = self.places, self._cuda.to_device, np.zeros((1, 1))
        control = np.zeros(epochs.CONTROLS, dtype=np.int64)
        training = epochs.Training._make(
            [
                send(places.visits(order)),
                *self._owners,
                send(places.spread(labels, -1, np.int32)),
                send(places.spread(amounts.astype(np.float64))),
                send(empty if base is None else places.spread(np.ascontiguousarray(base.mantissas.T))),
                send(empty if self.problem.is_identity else np.ascontiguousarray(self.problem.label_gram)),
                send(control),
                *(self._cuda.device_array(len(labels), np.int32) for _ in range(2)),
                self._area,
            ]
        )
        task = self._task(scores, self._marks)
        kernel = epochs.kernels(*self._variant).epoch
        while control[epochs.VISITED] < len(labels):
            control[epochs.PUSHED] = 0
            training.control.copy_to_device(control)
            kernel[self._blocks, self._threads](task, training, self._limit)
            control = training.control.copy_to_host()
        count = int(control[epochs.LOGGED])
        return training.places.copy_to_host()[:count], training.rivals.copy_to_host()[:count]

    @cached_property
    def _owners(self) -> tuple[OnCard, OnCard]:
        """By place, the first place and the size of its structure."""
        sizes, spread = self.problem.targets.sizes, self.places.spread
        begins = spread(np.repeat(self.places.begins, sizes), 0, np.int32)
        return self._cuda.to_device(begins), self._cuda.to_device(
            spread(np.repeat(sizes, sizes), 0, np.int32)
        )

    @cached_property
    def _area(self) -> OnCard:
        """For the kernel of the longest structure with itself, and its scores."""
        most = self._shared.longest
        return self._cuda.device_array(most * (2 * most + 2 + self.problem.label_count))

    @cached_property
    def _marks(self) -> Any:
        """The push that an epoch makes again and again."""
        from fuda.marginalized.engines.cuda.kernels import Pushes

        most, new = self._shared.longest, self._cuda.device_array
        each = 2 if self.problem.is_identity else self.problem.label_count  # entries of a mark
        one, heads = new(1, np.int32), self._cuda.to_device(np.arange(most + 1, dtype=np.int32) * each)
        entries = new(most * each, np.int32), new(most * each)
        return Pushes(one, one, one, new(most, np.int32), heads, *entries)

    @property
    def _limit(self) -> int:
        """The most pushes of a launch."""
        mean = self.places.size / len(self.places.begins)
        return max(_LEAST_PUSHES, int(_CELLS / (mean * self.places.size)))

    def _task(self, scores: OnCard, pushes: Any) -> Any:
        """Return the arguments of a kernel."""
        from fuda.marginalized.engines.cuda.kernels import Targets, Task

        targets = Targets(
            self._words, self._prior, self._prior.reshape(self._prior.size), scores, self._on_tiles
        )
        return Task(self._nodes, targets, self._values, pushes, self._states, self._kept)
