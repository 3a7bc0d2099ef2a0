"""A race between candidates within a time budget, by cross-validation with successive halving.

Candidates are compared in *heats*. Where there are many structures, first heats are on parts of
them, so that even slow candidates show what they can. The pace of the first candidate tells how
large the first part may be for most candidates to have their turn, however many labels there are.
A heat has two halves, each of which is labelled by what was learned from the other: that costs as
much as a single fit to everything, and tests on everything. The last heats have five folds of all
structures, where time allows with several beginnings. After a heat the better half of the
candidates goes on (the best of each family of learners first, since different learners are worth
more to each other), unless a candidate is behind by more than chance. The first candidate, which
is the one to use where nothing is known, always goes on, and so do, from part of the structures to
more of them, all that take little time: what has many features is behind on few structures and may
lead on many.

The time of a fold is foretold from the same candidate's time on fewer nodes. A fold is begun only
where there is time left for it and for fitting the leaders to everything. The candidates of a fold
run side by side, as many as there are workers.
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

FOLDS = 5
_NODES_A_SECOND = 150  # of the budget: nodes of the structures of the first heats,
_MOST_NODES = 20_000  # and how many they are at most, so that slow candidates are soon known
_PART_TIMED = 8  # the first candidate is timed on a part so many times smaller,
_LEAST_TIMED = 500  # if that has so many nodes: fewer take no time worth foretelling
_PACE = 2.0  # time of a candidate in units of the first one's, roughly
_TURNS = 0.25  # of the budget, for the first fold of all candidates
_GROWTH = 4  # of structures from one set of heats to the next
_SMALL = 100  # nodes per second of budget up to which all folds are repeated with other starts
_REPEATS = 2
_FIRST_SHARE = 0.4  # of the budget, after which no candidate without a known time is begun
_EXPONENT = 1.1  # of time in nodes, where nothing is known
_LEAST = 1e-6  # seconds of a fit
_JUDGED = 4  # how often each candidate is judged after the race
_PROMISED = 0.92  # of the budget, since times vary
_SHARE = 0.5  # of the time left, which the fit of the second leader may take
_MOST_OF_TIME = 0.25  # left, which a fold of one candidate may take
# Share of the time left: a fold on more structures is worth it, whoever leads on fewer.
_LITTLE_TIME = 0.04
_ENOUGH = 0.25  # of all nodes: who leads on fewer may not lead on all
_NEAR = 0.02  # so far behind, the best of its family may still be worth something to others
_LEADERS = 2  # for whose fit to everything time is kept
_SPEEDUP = 0.5  # exponent: how many times faster so many threads are
_REFITTED = 0.7  # of what is foretold: fits to everything took 0.3 to 0.8 of it


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
        Parameters that it has during the comparison, where it would take too long.
    slower : float
        How much longer it takes without them.
    joins : bool
        Whether it may decide together with others that it has not been shown to improve.
    learns_words : bool
        Whether it also learns classes and vectors of words from the structures it is fitted to.
    teams : tuple of int
        The numbers of the teams that it is in: candidates that are good together on most data, all
        of which go on as the first candidate does.
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
    """What is known of a candidate.

    Attributes
    ----------
    candidate : Candidate
        The candidate.
    outputs : list
        What was observed in each fold of the current structures.
    times : list of (int, Times)
        The number of nodes fitted on and the time, for all folds.
    counts : ndarray of shape (n_tested, n_classes, 3)
        The counts of the goal over the structures tested on.
    scores : list of float
        The score of each fold.
    status : str
        Why it went no further, empty where it was in the race to the end.
    """

    candidate: Candidate
    outputs: list[Any] = field(default_factory=list)
    times: list[tuple[int, Times]] = field(default_factory=list)
    counts: np.ndarray = field(default_factory=lambda: np.zeros((0, 1, 3)))
    scores: list[float] = field(default_factory=list)
    status: str = ""

    @property
    def family(self) -> str:
        """The class of the learner and of the one that it begins from; whether it learns words."""
        estimator, words = self.candidate.estimator, ["words"] * self.candidate.learns_words
        inner = [value for value in estimator.get_params(deep=False).values() if hasattr(value, "fit")]
        return " ".join([*(type(each).__name__ for each in [estimator, *inner]), *words])

    def seconds_for(self, nodes: int) -> float:
        """Foretell the time of a fold; unknown is infinite."""
        known: dict[int, float] = {}
        for size, times in self.times:  # the first fit may have compiled or loaded code
            known[size // 100] = min(times.wall, known.get(size // 100, math.inf))
        if not known:
            return math.inf
        (last, seconds), exponent = max(known.items()), _EXPONENT
        smaller = [size for size in known if 0 < size < 0.7 * last]
        if smaller:
            times_longer = max(seconds, _LEAST) / max(known[max(smaller)], _LEAST)
            growth = math.log(times_longer) / math.log(last / max(smaller))
            exponent = min(2.0, max(1.0, growth))
        return float(seconds * max(1.0, nodes / (100 * max(last, 1))) ** exponent)

    def seconds_to_refit(self, nodes: int) -> float:
        """Foretell the time of the fit to everything."""
        return self.candidate.slower * self.seconds_for(nodes)


Observe = Callable[[Candidate, Split, int], Any]
Judge = Callable[[list[np.ndarray], list[Any]], np.ndarray]


class Race:
    """A race between candidates.

    Parameters
    ----------
    candidates : list of Candidate
        The candidates, the one to use where nothing is known first, then by promise.
    sizes : ndarray of shape (n_structures,)
        The numbers of nodes.
    goal : Goal
        What is to be large.
    budget : float
        Seconds, those for the fit of the winner included.
    observe : callable
        From a candidate, a split and a number of threads to an output: what its model, fitted on
        one part, says of the other. Called in other threads than this one where there are several,
        and pickled where joblib was told to use processes.
    judge : callable
        From test parts and outputs to counts of the goal, structure by structure.
    show : callable
        Called with a line of text on every step.
    after_fit : callable
        Called after every fit, in this thread; it may raise StopIteration to end the race.
    workers : int, default=1
        How many candidates can be fitted side by side. Where they are threads, those that there
        are no candidates for work within the fits.

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
        judge: Judge,
        show: Callable[[str], None] = lambda _: None,
        after_fit: Callable[[], None] = lambda: None,
        workers: int = 1,
    ) -> None:
        self.trials = [Trial(candidate) for candidate in candidates]
        self.sizes, self.goal, self.budget, self.workers, self.seed = sizes, goal, budget, workers, 0
        self.observe, self.judge, self.show, self.after_fit = observe, judge, show, after_fit
        self.clock = Stopwatch()
        self.tests: list[np.ndarray] = []
        self.seconds_to_judge, self.is_settled = 0.0, False

    @property
    def running(self) -> list[Trial]:
        """The trials that are in the race, best first."""
        return sorted(
            (trial for trial in self.trials if not trial.status),
            key=lambda trial: -self.goal.score(trial.counts) if len(trial.counts) else 0.0,
        )

    @property
    def seconds_left(self) -> float:
        """What is left of the budget, less a share for what cannot be foretold."""
        return _PROMISED * self.budget - self.clock().wall

    def run(self) -> None:
        """Run until a few candidates have been compared on all structures, or time is over."""
        try:
            plan = self._plan(self._first_nodes())
            for (heat, restarts), (following, grows) in pairwise(chain(plan, [([], False)])):
                for k, split in enumerate(heat):
                    is_first = not self.tests
                    if not self._run_fold(split, restarts=restarts and k == 0):
                        return
                    if is_first:  # from now on, the better ones come first
                        self._judge()
                self._judge()
                self._halve(following[0] if grows else None)
                self.is_settled = sum(map(len, self.tests)) >= len(self.sizes)
                if len(self.running) == 1:
                    return
        finally:
            self._judge()

    def rows(self) -> list[dict[str, Any]]:
        """What each candidate reached and took, those in the race first; for a `SearchReport`."""
        others = [trial for trial in self.trials if trial.status]
        rows = []
        for trial in [*self.running, *sorted(others, key=lambda trial: -len(trial.outputs))]:
            tried = len(trial.counts) > 0
            rows.append(
                {
                    "name": trial.candidate.name,
                    "score": 100 * self.goal.score(trial.counts) if tried else None,
                    "spread": 100 * float(np.std(trial.scores)) if tried else None,
                    "folds": len(trial.scores),
                    "nodes": trial.times[-1][0] if trial.times else 0,
                    "wall": sum(times.wall for _, times in trial.times),
                    "cpu": sum(times.cpu for _, times in trial.times),
                    "end": trial.status,
                }
            )
        return rows

    def _first_nodes(self) -> int:
        """How many nodes the first heat has: most candidates have their turn in its first fold."""
        most = min(int(self.sizes.sum()), _MOST_NODES, int(self.budget * _NODES_A_SECOND))
        if most < _PART_TIMED * _LEAST_TIMED:
            return most
        few, default = self._part(most // _PART_TIMED), self.trials[0]
        for _ in self._outputs([default], Split(few, few[:1])):
            self.after_fit()
        known, times = default.times.pop()  # by all threads, of which folds side by side have a few
        turn = _TURNS * self.budget * self.workers / (_PACE * len(self.trials))
        fold = known * (turn / max(times.wall, _LEAST)) ** (1 / _EXPONENT)
        return int(min(most, max(known, 2 * fold)))

    def _part(self, nodes: int) -> np.ndarray:
        """Random structures with so many nodes, at least two; more nodes contain fewer."""
        order = np.random.RandomState(self.seed).permutation(len(self.sizes))
        few = int(np.searchsorted(np.cumsum(self.sizes[order]), nodes, side="right"))
        return np.sort(order[: max(2, few)])

    def _plan(self, some: int) -> Iterator[tuple[list[Split], bool]]:
        """Yield the splits of each heat, and whether its structures differ from the last one's.

        The first heat has `some` nodes.
        """
        count, nodes = len(self.sizes), int(self.sizes.sum())
        while some * _GROWTH <= 2 * nodes:
            members = self._part(some)
            halves = splits(len(members), 2, self.seed)
            yield [Split(members[train], members[test]) for train, test in halves], True
            some *= _GROWTH
        yield splits(count, 2, self.seed), True
        repeats = 1 + _REPEATS if nodes <= self.budget * _SMALL else 1
        for repeat in range(repeats if count > 2 else 0):
            yield splits(count, min(FOLDS, count), self.seed + repeat), False

    def _run_fold(self, split: Split, restarts: bool) -> bool:
        """Run one fold of all candidates for which there is time; False where the race is over."""
        nodes = int(self.sizes[split.train].sum())
        running = self.running if self.tests else self.trials
        chosen = self._affordable(running, nodes) if self.tests else running
        if not chosen:
            return False
        for trial in [trial for trial in running if trial not in chosen]:
            trial.status = "no time"
        found: dict[int, Any] = {}
        try:
            for trial, output in self._outputs(chosen, split):
                found[id(trial)] = output
                self.after_fit()
        except (KeyboardInterrupt, StopIteration):
            if not self.tests:  # what has been found is all that is known
                for trial in chosen:
                    trial.status = trial.status or ("" if id(trial) in found else "no time")
                self._add(split, found, restarts)
            raise
        self._add(split, found, restarts)
        return True

    def _add(self, split: Split, found: dict[int, Any], restarts: bool) -> None:
        """Add the outputs of a fold to those of all candidates in the race."""
        running = [trial for trial in self.trials if not trial.status]
        if running:
            self.tests = [split.test] if restarts else [*self.tests, split.test]
        for trial in running:
            trial.outputs = [*([] if restarts else trial.outputs), found[id(trial)]]

    def _judge(self) -> None:
        """Find the counts and scores of all candidates in the race that have new outputs."""
        bounds = np.cumsum([0, *map(len, self.tests)])
        for trial in self.running:
            if len(trial.counts) == bounds[-1] or not trial.outputs:
                continue
            stopwatch = Stopwatch()
            trial.counts = self.judge(self.tests, trial.outputs)
            self.seconds_to_judge = stopwatch().wall
            trial.scores = [self.goal.score(trial.counts[i:j]) for i, j in pairwise(bounds)]

    def _outputs(self, chosen: list[Trial], split: Split) -> Iterator[tuple[Trial, Any]]:
        """Yield outputs of candidates in a fold; what makes one impossible becomes its status."""
        nodes, together = int(self.sizes[split.train].sum()), min(self.workers, len(chosen))
        if together > 1 and self.tests:  # the longest first, so that no thread waits for the last
            chosen = sorted(chosen, key=lambda trial: -trial.seconds_for(nodes))
        # Where fits run side by side, the process tells nothing of the time of one of them.
        cpu = time.process_time if together == 1 else time.thread_time
        threads = 1 if has_processes() else self.workers // together

        def tasks() -> Iterator[tuple[Trial, Callable[[], Any]]]:
            for trial in chosen:
                is_late = self.clock().wall > _FIRST_SHARE * self.budget
                if trial is not self.trials[0] and not trial.times and is_late:
                    trial.status = "no time"
                    continue
                self.show(f"{trial.candidate.name} on {len(split.train):,} structures")
                observe = partial(self.observe, trial.candidate, split, threads)
                yield trial, partial(_timed, observe, cpu)

        for trial, outcome in side_by_side(tasks(), together):
            if not isinstance(outcome, DataError):
                trial.times.append((nodes, outcome[1]))
                yield trial, outcome[0]
            elif trial is self.trials[0]:
                raise outcome
            else:
                trial.status = str(outcome)

    def _affordable(self, running: list[Trial], nodes: int) -> list[Trial]:
        """Those of the candidates for which there is time; none where the race is over.

        Once all structures have been labelled, the best of each family go on together or
        not at all: several models with the same evidence are worth more than one with a
        little more of it.
        """
        default, running = self.trials[0], by_family(running)
        if self.is_settled:
            families = {trial.family for trial in running}
            others = [t for t in running[len(families) :] if t is default or t.candidate.teams]
            finalists = [*running[: len(families)], *others]
            for group in (running, finalists):
                if len(self._in_time(group, nodes, 1.0)) == len(group):
                    return group
            return []
        while running:
            chosen, best = self._in_time(running, nodes, _MOST_OF_TIME), running[0]
            if best in chosen:  # all are compared with the default
                return chosen if default in chosen else []
            if best is default or (self._can_win(best) and behind(self.goal, best.counts, default.counts)):
                return []
            running = running[1:]  # more folds of the others are worth more
        return []

    @property
    def is_telling(self) -> bool:
        """Whether candidates were compared on enough: on many others may lead than on few."""
        compared = sum(self.sizes[test].sum() for test in self.tests)
        return bool(compared >= _ENOUGH * self.sizes.sum())

    def seconds_to_refit(self, trial: Trial) -> float:
        """Foretell the time of the fit to everything, by all threads that folds had one of."""
        threads = 1 if has_processes() else min(self.workers, len(self.trials))
        return _REFITTED * trial.seconds_to_refit(int(self.sizes.sum())) / threads**_SPEEDUP

    def _can_win(self, trial: Trial) -> bool:
        """Whether a leader may win without further folds, and there is time to fit it to all."""
        return self.is_telling and self.seconds_to_refit(trial) < self.seconds_left

    def _in_time(self, running: list[Trial], nodes: int, share: float) -> list[Trial]:
        """The candidates, best first, for which there is time if the best are fitted to all.

        One that is neither the best, nor the default, nor in a team may take no
        more than a share of the time left.
        """
        left, default = self.seconds_left, self.trials[0]
        winners = [t for k, t in enumerate(running) if k < _LEADERS or t.candidate.teams]
        refits = [self.seconds_to_refit(trial) for trial in winners]
        left -= refits[0] + sum(seconds for seconds in refits[1:] if seconds < _SHARE * left)
        left -= _JUDGED * max(_LEADERS, len(running) // 2) * self.seconds_to_judge  # half of them go on
        together, chosen = min(self.workers, len(running)), []
        first = [t for t in running if t is running[0] or t is default or t.candidate.teams]
        for trial in [*first, *(trial for trial in running if trial not in first)]:
            most = left if trial in first else share * left
            if trial.seconds_for(nodes) <= most:
                left -= trial.seconds_for(nodes) / together
                chosen.append(trial)
        return chosen

    def _halve(self, more: Split | None = None) -> None:
        """Let the better half go on, but nobody who is behind by more than chance.

        The best of a family is left behind only by more than that. Where the next heat is on more
        structures, the default and whatever takes little time there go on anyway.
        """
        running = self.running
        kept, best = max(_LEADERS, math.ceil(len(running) / 2)), running[0]
        staying = {id(trial) for trial in self.trials if trial.candidate.teams} | {id(self.trials[0])}
        if more is not None:
            nodes, most = int(self.sizes[more.train].sum()), _LITTLE_TIME * self.seconds_left
            staying |= {id(trial) for trial in running if trial.seconds_for(nodes) <= most}
        least, families = self.goal.score(best.counts) - _NEAR, set[str]()
        for trial in running:
            is_near = trial.family not in families and self.goal.score(trial.counts) > least
            families.add(trial.family)
            if id(trial) not in staying and not is_near and behind(self.goal, best.counts, trial.counts):
                trial.status = "behind"
        if more is not None:  # what there will be no time for takes no place
            possible = self._affordable(self.running, nodes) or self.running
            for trial in [trial for trial in self.running if trial not in possible]:
                trial.status = "no time"
        for trial in by_family(self.running)[kept:]:
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
