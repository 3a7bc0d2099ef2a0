"""A race between candidates within a time budget, by cross-validation with successive halving.

Candidates are compared in *heats*. Where there are many structures, the first heats are on parts
of them, so that slow candidates can take part too. The time of the first candidate determines how
large the first part may be for most candidates to be fitted to it, however many labels there are.
A heat has two halves; each half is labelled by models fitted to the other one. That takes about as
long as a single fit to all structures, and tests on all of them. The last heats have five folds of
all structures, repeated with other folds if there is time. After a heat the better half of the
candidates stays in the race (the best of each family of learners first, since a combination gains
more from different learners), except those that are worse by more than chance. The first
candidate, which is the default, always stays. When a heat on more structures follows, so do all
candidates that take little time: models with many features are worse on few structures and may be
better on many.

The time of a fold is predicted from the same candidate's time on fewer nodes. A fold is begun only
if there is time left for it and for fitting the leaders to all structures. The candidates of a
fold run side by side, as many as there are workers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, pairwise
from typing import Any

import numpy as np

from fuda.errors import DataError
from fuda.selection.folds import Split, splits
from fuda.selection.goals import Goal
from fuda.selection.side_by_side import has_processes, side_by_side
from fuda.selection.significance import behind
from fuda.selection.validation import Stopwatch, Times

# The number of folds of the last heats.
FOLDS = 5
# The first heat has at most this many nodes per second of the budget, and this many in all, so
# that slow candidates are noticed early.
_NODES_PER_SECOND, _MAX_FIRST_NODES = 150, 20_000
# The first candidate is timed on a part this many times smaller than the first heat may be, if
# that part has at least so many nodes: the time of smaller parts predicts nothing.
_TIMING_DIVISOR, _MIN_TIMED_NODES = 8, 500
# The assumed mean time of a candidate, in units of the time of the first one.
_MEAN_SLOWNESS = 2.0
# The share of the budget that the first fold of all candidates may take.
_FIRST_FOLD_SHARE = 0.25
# The factor by which the number of structures grows from one set of heats to the next.
_GROWTH = 4
# With up to this many nodes per second of the budget, all folds are repeated, so many times.
_NODES_TO_REPEAT, _REPEATS = 100, 2
# After this share of the budget, no candidate is begun that has not been timed.
_LATEST_START = 0.4
# The assumed exponent of time as a power of the number of nodes, until it can be measured.
_EXPONENT = 1.1
# The time of a fit, in seconds, is taken to be at least this.
_MIN_SECONDS = 1e-6
# How often each candidate is evaluated after the race, for which time is reserved.
_EVALUATIONS = 4
# The share of the budget that plans may use, since measured times vary.
_USABLE_SHARE = 0.92
# Time for the final fit of a leader after the first is reserved if it is below this share of what
# is left.
_RESERVED_SHARE = 0.5
# The largest share of the time left that a fold of one candidate may take.
_MAX_FOLD_SHARE = 0.25
# A candidate that takes at most this share of the time left stays for a heat on more structures.
_CHEAP_SHARE = 0.04
# A comparison on less than this share of all nodes is not representative of all structures.
_REPRESENTATIVE_SHARE = 0.25
# The best candidate of a family stays if its score is less than this below the best score.
_NEAR_SCORE = 0.02
# The number of leaders for whose fit to all structures time is reserved.
_LEADERS = 2
# n threads are assumed to be n to this power times as fast as one.
_SPEEDUP = 0.5
# The ratio of actual to predicted times of fits to all structures; measured were 0.3 to 0.8.
_REFIT_FACTOR = 0.7


@dataclass(frozen=True)
class Candidate:
    """A model to compare with others.

    Attributes
    ----------
    name : str
        The name in reports.
    estimator : estimator
        The model, not fitted.
    quick : dict
        Parameters to set during the comparison, if the model is too slow with its own.
    slower : float
        How many times longer a fit takes without them.
    joins : bool
        Whether it may be combined with others without proof that this improves them.
    learns_words : bool
        Whether it also learns classes and vectors of words from the structures it is fitted to.
    teams : tuple of int
        The numbers of its teams. A team consists of candidates that are good together on most
        data; they all stay in the race, as the first candidate does.
    """

    name: str
    estimator: Any
    quick: dict[str, Any] = field(default_factory=dict)
    slower: float = 1.0
    joins: bool = True
    learns_words: bool = False
    teams: tuple[int, ...] = ()


@dataclass(eq=False)
class Trial:
    """A candidate with its results so far.

    Attributes
    ----------
    candidate : Candidate
        The candidate.
    outputs : list
        What `observe` returned for each fold of the current structures.
    times : list of (int, Times)
        The number of nodes fitted on and the time, for all folds.
    counts : ndarray of shape (n_tested, n_classes, 3)
        The counts of the goal over the structures tested on.
    scores : list of float
        The score of each fold.
    status : str
        Why it left the race; empty as long as it is in the race.
    """

    candidate: Candidate
    outputs: list[Any] = field(default_factory=list)
    times: list[tuple[int, Times]] = field(default_factory=list)
    counts: np.ndarray = field(default_factory=lambda: np.zeros((0, 1, 3)))
    scores: list[float] = field(default_factory=list)
    status: str = ""

    @property
    def family(self) -> str:
        """The classes of the learner and of its prior or base; whether it learns words."""
        estimator, words = self.candidate.estimator, ["words"] * self.candidate.learns_words
        inner = [value for value in estimator.get_params(deep=False).values() if hasattr(value, "fit")]
        return " ".join([*(type(learner).__name__ for learner in [estimator, *inner]), *words])

    def seconds_for(self, nodes: int) -> float:
        """Predict the time of a fold; infinite if the candidate has not been timed."""
        known: dict[int, float] = {}
        for size, times in self.times:  # the first fit may have compiled or loaded code
            known[size // 100] = min(times.wall, known.get(size // 100, math.inf))
        if not known:
            return math.inf
        (last, seconds), exponent = max(known.items()), _EXPONENT
        smaller = [size for size in known if 0 < size < 0.7 * last]
        if smaller:
            times_longer = max(seconds, _MIN_SECONDS) / max(known[max(smaller)], _MIN_SECONDS)
            growth = math.log(times_longer) / math.log(last / max(smaller))
            exponent = min(2.0, max(1.0, growth))
        return float(seconds * max(1.0, nodes / (100 * max(last, 1))) ** exponent)

    def seconds_to_refit(self, nodes: int) -> float:
        """Predict the time of the fit to all structures."""
        return self.candidate.slower * self.seconds_for(nodes)


Observe = Callable[[Candidate, Split, int], Any]
Count = Callable[[list[np.ndarray], list[Any]], np.ndarray]


class Race:
    """A race between candidates.

    Parameters
    ----------
    candidates : list of Candidate
        The candidates: the default first, then the most promising ones.
    sizes : ndarray of shape (n_structures,)
        The numbers of nodes.
    goal : Goal
        The objective.
    budget : float
        Seconds, including the fit of the winner.
    observe : callable
        From a candidate, a split and a number of threads to an output: the predictions for the
        test part of its model, fitted on the training part. It is called in other threads than
        this one if there are several, and pickled where joblib was told to use processes.
    count : callable
        From test parts and outputs to counts of the goal, structure by structure.
    show : callable
        Called with a line of text on every step.
    after_fit : callable
        Called after every fit, in this thread; it may raise StopIteration to end the race.
    workers : int, default=1
        How many candidates can be fitted side by side. If workers are threads, those without a
        candidate are used within the fits.

    Attributes
    ----------
    trials : list of Trial
        One per candidate.
    tests : list of ndarray
        The test parts of the folds that all trials in the race have done on the last structures.
    seed : int
        The seed of the order of structures and of folds, 0 unless it is changed.
    """

    def __init__(
        self,
        candidates: list[Candidate],
        sizes: np.ndarray,
        goal: Goal,
        budget: float,
        observe: Observe,
        count: Count,
        show: Callable[[str], None] = lambda _: None,
        after_fit: Callable[[], None] = lambda: None,
        workers: int = 1,
    ) -> None:
        self.trials = [Trial(candidate) for candidate in candidates]
        self.sizes, self.goal, self.budget, self.workers, self.seed = sizes, goal, budget, workers, 0
        self.observe, self.count, self.show, self.after_fit = observe, count, show, after_fit
        self.clock = Stopwatch()
        self.tests: list[np.ndarray] = []
        self.seconds_to_evaluate, self.has_labelled_all = 0.0, False

    @property
    def running(self) -> list[Trial]:
        """The trials that are in the race, best first."""
        return sorted(
            (trial for trial in self.trials if not trial.status),
            key=lambda trial: -self.goal.score(trial.counts) if len(trial.counts) else 0.0,
        )

    @property
    def seconds_left(self) -> float:
        """The rest of the budget, less a share for what cannot be predicted."""
        return _USABLE_SHARE * self.budget - self.clock().wall

    def run(self) -> None:
        """Run until a few candidates have been compared on all structures, or time has run out."""
        try:
            plan = self._plan(self._first_nodes())
            for (heat, restarts), (following, grows) in pairwise(chain(plan, [([], False)])):
                for k, split in enumerate(heat):
                    is_first = not self.tests
                    if not self._run_fold(split, restarts=restarts and k == 0):
                        return
                    if is_first:  # then the next folds begin with the best candidates
                        self._evaluate()
                self._evaluate()
                self._keep_better_half(following[0] if grows else None)
                self.has_labelled_all = sum(map(len, self.tests)) >= len(self.sizes)
                if len(self.running) == 1:
                    return
        finally:
            self._evaluate()

    def rows(self) -> list[dict[str, Any]]:
        """Scores and times of all candidates, those in the race first, for a `SearchReport`."""
        others = [trial for trial in self.trials if trial.status]
        rows = []
        for trial in [*self.running, *sorted(others, key=lambda trial: -len(trial.outputs))]:
            is_scored = len(trial.counts) > 0
            rows.append(
                {
                    "name": trial.candidate.name,
                    "score": 100 * self.goal.score(trial.counts) if is_scored else None,
                    "spread": 100 * float(np.std(trial.scores)) if is_scored else None,
                    "folds": len(trial.scores),
                    "nodes": trial.times[-1][0] if trial.times else 0,
                    "wall": sum(times.wall for _, times in trial.times),
                    "cpu": sum(times.cpu for _, times in trial.times),
                    "end": trial.status,
                }
            )
        return rows

    def _first_nodes(self) -> int:
        """The number of nodes of the first heat: most candidates have time for a fold of it."""
        most = min(int(self.sizes.sum()), _MAX_FIRST_NODES, int(self.budget * _NODES_PER_SECOND))
        if most < _TIMING_DIVISOR * _MIN_TIMED_NODES:
            return most
        few, default = self._random_part(most // _TIMING_DIVISOR), self.trials[0]
        for _ in self._outputs([default], Split(few, few[:1])):
            self.after_fit()
        # This fit used all threads; when folds run side by side, each uses a few of them only.
        timed_nodes, times = default.times.pop()
        seconds = _FIRST_FOLD_SHARE * self.budget * self.workers / (_MEAN_SLOWNESS * len(self.trials))
        fold = timed_nodes * (seconds / max(times.wall, _MIN_SECONDS)) ** (1 / _EXPONENT)
        return int(min(most, max(timed_nodes, 2 * fold)))

    def _random_part(self, nodes: int) -> np.ndarray:
        """Random structures with so many nodes, at least two; larger parts contain smaller."""
        order = np.random.RandomState(self.seed).permutation(len(self.sizes))
        few = int(np.searchsorted(np.cumsum(self.sizes[order]), nodes, side="right"))
        return np.sort(order[: max(2, few)])

    def _plan(self, heat_nodes: int) -> Iterator[tuple[list[Split], bool]]:
        """Yield the splits of each heat, and whether its structures differ from the last one's.

        The first heat has `heat_nodes` nodes.
        """
        count, nodes = len(self.sizes), int(self.sizes.sum())
        while heat_nodes * _GROWTH <= 2 * nodes:
            members = self._random_part(heat_nodes)
            halves = splits(len(members), 2, self.seed)
            yield [Split(members[train], members[test]) for train, test in halves], True
            heat_nodes *= _GROWTH
        yield splits(count, 2, self.seed), True
        repeats = 1 + _REPEATS if nodes <= self.budget * _NODES_TO_REPEAT else 1
        for repeat in range(repeats if count > 2 else 0):
            yield splits(count, min(FOLDS, count), self.seed + repeat), False

    def _run_fold(self, split: Split, restarts: bool) -> bool:
        """Run one fold of all candidates for which there is time; False if the race is over."""
        nodes = int(self.sizes[split.train].sum())
        running = self.running if self.tests else self.trials
        chosen = self._affordable(running, nodes) if self.tests else running
        if not chosen:
            return False
        for trial in [trial for trial in running if trial not in chosen]:
            trial.status = "no time"
        outputs: dict[int, Any] = {}
        try:
            for trial, output in self._outputs(chosen, split):
                outputs[id(trial)] = output
                self.after_fit()
        except (KeyboardInterrupt, StopIteration):
            if not self.tests:  # there are no other results to choose by
                for trial in chosen:
                    trial.status = trial.status or ("" if id(trial) in outputs else "no time")
                self._add(split, outputs, restarts)
            raise
        self._add(split, outputs, restarts)
        return True

    def _add(self, split: Split, outputs: dict[int, Any], restarts: bool) -> None:
        """Add the outputs of a fold to those of all candidates in the race."""
        running = [trial for trial in self.trials if not trial.status]
        if running:
            self.tests = [split.test] if restarts else [*self.tests, split.test]
        for trial in running:
            trial.outputs = [*([] if restarts else trial.outputs), outputs[id(trial)]]

    def _evaluate(self) -> None:
        """Compute the counts and scores of all candidates in the race that have new outputs."""
        bounds = np.cumsum([0, *map(len, self.tests)])
        for trial in self.running:
            if len(trial.counts) == bounds[-1] or not trial.outputs:
                continue
            stopwatch = Stopwatch()
            trial.counts = self.count(self.tests, trial.outputs)
            self.seconds_to_evaluate = stopwatch().wall
            trial.scores = [self.goal.score(trial.counts[i:j]) for i, j in pairwise(bounds)]

    def _outputs(self, chosen: list[Trial], split: Split) -> Iterator[tuple[Trial, Any]]:
        """Yield the outputs of candidates in a fold; the error of one that fails is its status."""
        nodes, parallel = int(self.sizes[split.train].sum()), min(self.workers, len(chosen))
        if parallel > 1 and self.tests:  # the longest first, so that no thread waits for the last
            chosen = sorted(chosen, key=lambda trial: -trial.seconds_for(nodes))
        # When fits run side by side, the time of the process is not that of one fit.
        cpu = time.process_time if parallel == 1 else time.thread_time
        threads = 1 if has_processes() else self.workers // parallel

        def tasks() -> Iterator[tuple[Trial, Callable[[], Any]]]:
            for trial in chosen:
                is_late = self.clock().wall > _LATEST_START * self.budget
                if trial is not self.trials[0] and not trial.times and is_late:
                    trial.status = "no time"
                    continue
                self.show(f"{trial.candidate.name} on {len(split.train):,} structures")
                observe = partial(self.observe, trial.candidate, split, threads)
                yield trial, partial(_timed, observe, cpu)

        for trial, outcome in side_by_side(tasks(), parallel):
            if not isinstance(outcome, DataError):
                trial.times.append((nodes, outcome[1]))
                yield trial, outcome[0]
            elif trial is self.trials[0]:
                raise outcome
            else:
                trial.status = str(outcome)

    def _affordable(self, running: list[Trial], nodes: int) -> list[Trial]:
        """The candidates for which there is time; none if the race is over.

        Once all structures have been labelled, the best of each family go on together or not at
        all: several models compared on the same folds are worth more than one on a few more.
        """
        default, running = self.trials[0], by_family(running)
        if self.has_labelled_all:
            families = {trial.family for trial in running}
            others = [t for t in running[len(families) :] if t is default or t.candidate.teams]
            finalists = [*running[: len(families)], *others]
            for group in (running, finalists):
                if len(self._in_time(group, nodes, 1.0)) == len(group):
                    return group
            return []
        while running:
            chosen, best = self._in_time(running, nodes, _MAX_FOLD_SHARE), running[0]
            if best in chosen:  # all are compared with the default
                return chosen if default in chosen else []
            if best is default or (self._can_win(best) and behind(self.goal, best.counts, default.counts)):
                return []
            running = running[1:]  # there is no time for another fold of the best
        return []

    @property
    def is_representative(self) -> bool:
        """Whether the structures compared on are enough: the best on few may not be so on all."""
        compared = sum(self.sizes[test].sum() for test in self.tests)
        return bool(compared >= _REPRESENTATIVE_SHARE * self.sizes.sum())

    def seconds_to_refit(self, trial: Trial) -> float:
        """Predict the time of the fit to all structures by all threads; folds have one thread."""
        threads = 1 if has_processes() else min(self.workers, len(self.trials))
        return _REFIT_FACTOR * trial.seconds_to_refit(int(self.sizes.sum())) / threads**_SPEEDUP

    def _can_win(self, trial: Trial) -> bool:
        """Whether a leader may win without further folds, and can be fitted to all structures."""
        return self.is_representative and self.seconds_to_refit(trial) < self.seconds_left

    def _in_time(self, running: list[Trial], nodes: int, share: float) -> list[Trial]:
        """The candidates for which there is time, less that for fits to all structures.

        `running` has the best first. A candidate that is neither the best, nor the default, nor in
        a team may take no more than a share of the time left.
        """
        left, default = self.seconds_left, self.trials[0]
        winners = [t for k, t in enumerate(running) if k < _LEADERS or t.candidate.teams]
        refits = [self.seconds_to_refit(trial) for trial in winners]
        left -= refits[0] + sum(seconds for seconds in refits[1:] if seconds < _RESERVED_SHARE * left)
        staying = max(_LEADERS, len(running) // 2)
        left -= _EVALUATIONS * staying * self.seconds_to_evaluate
        parallel, chosen = min(self.workers, len(running)), []
        first = [t for t in running if t is running[0] or t is default or t.candidate.teams]
        for trial in [*first, *(trial for trial in running if trial not in first)]:
            most = left if trial in first else share * left
            if trial.seconds_for(nodes) <= most:
                left -= trial.seconds_for(nodes) / parallel
                chosen.append(trial)
        return chosen

    def _keep_better_half(self, more: Split | None = None) -> None:
        """Keep the better half of the candidates, but none that is behind by more than chance.

        The best of a family must in addition be behind by more than a margin. If the next heat is
        on more structures, the default and all candidates that take little time there stay too.
        """
        running = self.running
        half, best = max(_LEADERS, math.ceil(len(running) / 2)), running[0]
        staying = {id(trial) for trial in self.trials if trial.candidate.teams} | {id(self.trials[0])}
        if more is not None:
            nodes, most = int(self.sizes[more.train].sum()), _CHEAP_SHARE * self.seconds_left
            staying |= {id(trial) for trial in running if trial.seconds_for(nodes) <= most}
        least, families = self.goal.score(best.counts) - _NEAR_SCORE, set[str]()
        for trial in running:
            is_near = trial.family not in families and self.goal.score(trial.counts) > least
            families.add(trial.family)
            if id(trial) not in staying and not is_near and behind(self.goal, best.counts, trial.counts):
                trial.status = "behind"
        if more is not None:  # candidates without time for the next heat do not count
            possible = self._affordable(self.running, nodes) or self.running
            for trial in [trial for trial in self.running if trial not in possible]:
                trial.status = "no time"
        for trial in by_family(self.running)[half:]:
            if id(trial) not in staying:
                trial.status = "halved"


def _timed(observe: Callable[[], Any], cpu: Callable[[], float]) -> tuple[Any, Times]:
    """An output, and the time that it took."""
    stopwatch = Stopwatch(cpu)
    return observe(), stopwatch()


def by_family(trials: list[Trial]) -> list[Trial]:
    """The best of each family first, then the others; `trials` are in order of score."""
    first = {trial.family: trial for trial in reversed(trials)}
    return sorted(trials, key=lambda trial: first[trial.family] is not trial)
