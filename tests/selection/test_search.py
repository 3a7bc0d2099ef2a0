from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from fuda.errors import DataError
from fuda.selection import Goal
from fuda.selection import search as module
from fuda.selection.search import Candidate, Race, Trial, by_family
from fuda.selection.validation import Times

GOAL = Goal("token accuracy")


class Learner:
    """A substitute estimator that labels a share of nodes correctly, in some seconds per node."""

    def __init__(self, quality, speed=0.0):
        self.quality, self.speed = quality, speed

    def get_params(self, deep=False):
        return {"quality": self.quality, "speed": self.speed}


class Other(Learner):
    pass


class Clock:
    """A clock that only fits advance."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        clock = self

        class Stopwatch:
            def __init__(self, cpu=None):
                self.began = clock.now

            def __call__(self):
                return Times(clock.now - self.began, clock.now - self.began)

        monkeypatch.setattr(module, "Stopwatch", Stopwatch)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(module, "_REFIT_FACTOR", 1.0)  # here, fits take what is foretold
    return Clock(monkeypatch)


def race(clock, candidates, count=100, budget=60.0, observed=None):
    sizes = np.full(count, 10)

    def observe(candidate, split, threads):
        clock.now += candidate.estimator.speed * sizes[split.train].sum()
        if observed is not None:
            observed.append((candidate.name, len(split.train)))
        random = np.random.RandomState(len(split.train))
        right = random.rand(len(split.test), 10) < candidate.estimator.quality
        return np.stack([right.sum(axis=1), np.full(len(right), 10), np.full(len(right), 10)], axis=1)[
            :, None
        ]

    def judge(tests, outputs):
        assert sum(map(len, tests)) == sum(map(len, outputs))
        return np.concatenate(outputs).astype(float)

    named = [Candidate(name, learner) for name, learner in candidates.items()]
    return Race(named, sizes, GOAL, budget, observe, judge)


def test_the_best_wins_and_the_default_stays_to_the_end(clock):
    made = race(
        clock, {"default": Learner(0.5), "bad": Learner(0.3), "good": Learner(0.9), "fair": Other(0.88)}
    )
    made.run()
    assert made.running[0].candidate.name == "good"
    assert not made.trials[0].status
    assert made.trials[1].status == "behind"
    assert len({len(trial.outputs) for trial in made.running}) == 1


def test_those_who_are_behind_take_no_place_among_the_better_half(clock):
    good = {f"good {k}": Learner(0.9 + k / 1000) for k in range(3)}
    made = race(clock, good | {f"bad {k}": type(f"Bad{k}", (Learner,), {})(0.2) for k in range(3)})
    made._run_fold(next(made._plan(1000))[0][0], restarts=True)
    made._evaluate()
    made._keep_better_half()
    assert {trial.candidate.name for trial in made.running} == good.keys()
    assert {trial.status for trial in made.trials} == {"", "behind"}


class Growing(Learner):
    """Is the better the more nodes it has learned from."""


def test_what_takes_little_time_is_compared_on_more_structures_though_it_is_behind_on_few(clock):
    made = race(
        clock, {"default": Learner(0.6), "many features": Growing(0.0), "slow": Other(0.3, 2e-3)}, count=4000
    )
    observe = made.observe

    def growing(candidate, split, threads):
        if isinstance(candidate.estimator, Growing):
            quality = 0.4 if len(split.train) < 1000 else 0.8
            return observe(Candidate(candidate.name, Growing(quality)), split, threads)
        return observe(candidate, split, threads)

    made.observe = growing
    made.run()
    assert made.running[0].candidate.name == "many features"
    assert made.trials[2].status == "behind"


def test_what_there_will_be_no_time_for_takes_no_place_among_the_better_half(clock):
    """Of four that are equal on few structures two go on; two other families are too slow."""
    slow = {f"slow {k}": type(f"Slow{k}", (Learner,), {})(0.6, 1e-3) for k in range(2)}
    made = race(clock, {"default": Learner(0.6), "many features": Learner(0.6, 1.3e-4)} | slow, count=4000)
    observed, observe = [], made.observe
    made.observe = lambda candidate, *where: observed.append(candidate.name) or observe(candidate, *where)
    made.run()
    assert [trial.status for trial in made.trials] == ["", "", "no time", "no time"]
    assert [observed.count(name) for name in slow] == [2, 2]
    assert observed.count("many features") > 2


def test_what_cannot_be_afforded_is_not_begun(clock):
    """A fold of the slow one takes 40 s, a fifth of the budget; the others are quick."""
    observed = []
    slow = {"default": Learner(0.6, 0.001), "slow": Learner(0.9, 0.08), "quick": Learner(0.7, 0.001)}
    made = race(clock, slow, budget=200.0, observed=observed)
    made.run()
    assert clock.now <= 200.0
    left = made.seconds_left
    assert left >= sum(trial.seconds_to_refit(1000) for trial in made.running[:1])
    assert [name for name, _ in observed].count("slow") >= 2


def test_there_is_time_for_the_default_as_long_as_there_is_for_the_best(clock):
    """The default is last in order, and the fold of the second takes all that would be left."""
    made = race(
        clock, {"default": Learner(0.6, 0.02), "best": Other(0.9, 0.02), "second": Learner(0.8, 0.04)}
    )
    for trial, score in zip(made.trials, (0.6, 0.9, 0.8), strict=True):
        trial.times, trial.counts = (
            [(500, Times(trial.candidate.estimator.speed * 500, 0.0))],
            np.zeros((1, 1, 3)),
        )
        trial.counts[0, 0] = [score * 100, 100, 100]
    made.budget = 70.0
    names = [trial.candidate.name for trial in made._affordable(made.running, 500)]
    assert names == ["best", "default"]


def test_the_race_is_over_where_there_is_no_time_for_the_default(clock):
    candidates = {"default": Learner(0.6), "quick": Other(0.9)}
    made = with_scores(race(clock, candidates), (0.6, 0.9), (70.0, 1.0))
    assert made._affordable(made.running, 500) == []
    made = with_scores(race(clock, candidates), (0.6, 0.9), (40.0, 1.0))
    assert names_of(made._affordable(made.running, 500)) == ["quick", "default"]


def with_scores(made, scores, seconds):
    """The race after a fold of 500 nodes, in which candidates had these scores and times."""
    for trial, score, took in zip(made.trials, scores, seconds, strict=True):
        trial.times, trial.counts = [(500, Times(took, 0.0))], np.zeros((50, 1, 3))
        trial.counts[:, 0] = [score * 10, 10, 10]
    return made


def names_of(trials):
    return [trial.candidate.name for trial in trials]


def test_the_best_is_left_behind_where_there_is_no_time_for_it_and_its_lead_is_chance(clock):
    candidates = {"default": Learner(0.6), "slow": Other(0.6), "quick": Learner(0.6)}
    made = with_scores(race(clock, candidates), (0.60, 0.601, 0.6), (1.0, 40.0, 1.0))
    made.trials[1].counts[:25, 0, 0] += 3  # better in some structures and worse in others
    made.trials[1].counts[25:, 0, 0] -= 3
    made.trials[1].counts[0, 0, 0] += 2
    assert made.running[0] is made.trials[1]
    assert names_of(made._affordable(made.running, 500)) == ["default", "quick"]
    clearly = with_scores(race(clock, candidates), (0.6, 0.9, 0.6), (1.0, 20.0, 1.0))
    clearly.tests = [np.arange(25)]
    assert clearly._affordable(clearly.running, 500) == []
    clearly.tests = [np.arange(24)]  # on so small a part of 100 structures it may lead, not on all
    assert names_of(clearly._affordable(clearly.running, 500)) == ["default", "quick"]


def test_the_race_goes_on_without_a_leader_that_could_not_be_fitted_to_everything(clock):
    candidates = {"default": Learner(0.6), "slow": Other(0.9), "quick": Learner(0.7)}
    made = with_scores(race(clock, candidates), (0.6, 0.9, 0.7), (1.0, 40.0, 1.0))
    made.tests = [np.arange(100)]
    assert made.trials[1].seconds_to_refit(1000) > made.seconds_left > 40.0
    assert names_of(made._affordable(made.running, 500)) == ["quick", "default"]


def test_once_all_is_labelled_the_best_of_each_family_go_on_together(clock):
    candidates = {"default": Learner(0.6), "kernel": Other(0.8), "second": Learner(0.7)}
    made = with_scores(race(clock, candidates), (0.6, 0.8, 0.7), (1.0, 1.0, 1.0))
    made.has_labelled_all = True
    assert sorted(names_of(made._affordable(made.running, 500))) == ["default", "kernel", "second"]
    made = with_scores(race(clock, candidates), (0.7, 0.8, 0.6), (1.0, 1.0, 80.0))
    made.has_labelled_all = True
    assert sorted(names_of(made._affordable(made.running, 500))) == ["default", "kernel"]
    made = with_scores(race(clock, candidates), (0.6, 0.7, 0.8), (1.0, 80.0, 1.0))
    made.has_labelled_all = True
    assert made._affordable(made.running, 500) == []


def test_time_is_kept_to_fit_a_team(clock):
    """Without time for the third, whose fit to everything takes 4 s, a fold of all can be done."""
    candidates = {"default": Learner(0.6), "kernel": Other(0.8), "third": Learner(0.5)}
    made = with_scores(race(clock, candidates), (0.6, 0.8, 0.5), (1.0, 1.0, 2.0))
    refits = [made.seconds_to_refit(trial) for trial in made.running]
    made.budget = (refits[0] + refits[1] + 5.0) / 0.92
    assert names_of(made._in_time(made.running, 500, 1.0)) == ["kernel", "default", "third"]
    made.trials[2].candidate = replace(made.trials[2].candidate, teams=(0,))
    assert names_of(made._in_time(made.running, 500, 1.0)) == []


def test_nobody_is_begun_when_much_of_the_time_is_over(clock):
    made = race(clock, {"default": Learner(0.6, 0.06), "second": Learner(0.9), "third": Learner(0.9)})
    made.run()
    assert [trial.status for trial in made.trials] == ["", "no time", "no time"]
    assert len(made.trials[0].outputs) >= 1


def test_many_structures_are_first_seen_in_parts(clock):
    observed = []
    made = race(clock, {"a": Learner(0.6), "b": Learner(0.7)}, count=10_000, budget=60.0, observed=observed)
    made.run()
    sizes = [size for _, size in observed]
    assert sizes[0] == 112  # by which the first one is timed
    assert sizes[1] == 450  # half of 150 nodes per second
    assert sizes == sorted(sizes)
    assert sizes[-1] == 8_000
    assert sum(map(len, made.tests)) == 20_000  # halves and folds of everything, once each


def test_slow_candidates_are_first_seen_on_fewer_structures_so_that_all_are(clock):
    """A fold of each on half of 9,000 nodes would take 36 s; after 24 s nobody is begun."""
    observed = []
    candidates = {f"{k}": type(f"L{k}", (Learner,), {})(0.6 + k / 100, 4e-4) for k in range(20)}
    made = race(clock, candidates, count=1000, observed=observed)
    made.run()
    assert {name for name, _ in observed} == candidates.keys()
    assert clock.now <= 60.0
    assert sum(map(len, made.tests)) >= 1000
    quick = {name: type(learner)(learner.quality, 1e-5) for name, learner in candidates.items()}
    observed.clear()
    race(clock, quick, count=1000, observed=observed).run()
    assert observed[1][1] == 500  # half of all


def test_the_best_of_each_family_comes_first():
    trials = [Trial(Candidate(n, c(0))) for n, c in (("a", Learner), ("b", Learner), ("c", Other))]
    assert [trial.candidate.name for trial in by_family(trials)] == ["a", "c", "b"]


def test_time_is_foretold_from_smaller_parts():
    trial = Trial(Candidate("a", Learner(0.5)))
    assert trial.seconds_for(100) == np.inf
    trial.times = [(1000, Times(9.0, 1.0)), (1000, Times(1.0, 1.0))]  # the first one compiled
    assert trial.seconds_for(500) == 1.0
    assert trial.seconds_for(2000) == pytest.approx(2**1.1)
    trial.times.append((10_000, Times(100.0, 1.0)))
    assert trial.seconds_for(20_000) == pytest.approx(400.0)  # it grew with the square
    assert Trial(Candidate("a", 0, {}, 4.0), times=trial.times).seconds_to_refit(10_000) == 400.0


def test_the_time_by_all_threads_foretells_nothing_of_folds_side_by_side(clock):
    # Its time by two threads on fewer nodes made the default seem to grow with the square.
    made = race(clock, {"default": Learner(0.6, 1e-4), "other": Learner(0.7)}, count=2000)
    made._first_nodes()
    assert clock.now > 0
    assert made.trials[0].times == []


def test_a_candidate_that_cannot_take_the_data_says_why_and_the_default_raises(clock):
    def observe(candidate, split, threads):
        if candidate.name == "broken":
            raise DataError("no such features")
        return np.ones((len(split.test), 1, 3))

    made = race(clock, {"default": Learner(0.6), "broken": Learner(0.9)})
    made.observe = observe
    made.run()
    assert made.trials[1].status == "no such features"
    made = race(clock, {"broken": Learner(0.6), "other": Learner(0.9)})
    made.observe = observe
    with pytest.raises(DataError, match="no such features"):
        made.run()


def test_what_was_found_before_an_interrupt_counts(clock):
    made = race(clock, {"default": Learner(0.6), "good": Learner(0.9), "late": Learner(0.95)})
    observe = made.observe

    def interrupted(candidate, split, threads):
        if candidate.name == "late":
            raise KeyboardInterrupt
        return observe(candidate, split, threads)

    made.observe = interrupted
    with pytest.raises(KeyboardInterrupt):
        made.run()
    assert [trial.candidate.name for trial in made.running] == ["good", "default"]
    assert made.rows()[-1]["end"] == "no time"


def test_candidates_run_side_by_side_with_the_same_results(clock):
    """Fits of a fold wait for one another, which fits one by one would do for ever."""
    candidates = {"default": Learner(0.5), "good": Learner(0.9), "fair": Other(0.88), "bad": Learner(0.3)}
    alone, made = race(clock, candidates), race(clock, candidates)
    alone.run()
    together, threads, observe = threading.Barrier(2, timeout=60), [], made.observe

    def observed(candidate, split, inner):
        threads.append(threading.get_ident())
        if len(split.train) == 50 and len(threads) <= 4:
            together.wait()
        return observe(candidate, split, inner)

    made.observe, made.workers, fits = observed, 2, []
    made.after_fit = lambda: fits.append(threading.get_ident())
    made.run()
    assert len(set(threads)) >= 2
    assert set(fits) == {threading.get_ident()}
    assert names_of(made.running) == names_of(alone.running)
    assert [trial.scores for trial in made.trials] == [trial.scores for trial in alone.trials]


def test_side_by_side_more_folds_are_affordable(clock):
    """Two candidates whose folds take 18 s each, with 30 s left besides their last fits."""
    candidates = {"default": Learner(0.6), "kernel": Other(0.8)}
    made = with_scores(race(clock, candidates), (0.6, 0.8), (18.0, 18.0))
    made.has_labelled_all = True
    made.budget = (30.0 + 2 * made.seconds_to_refit(made.trials[0])) / 0.92
    assert made._affordable(made.running, 500) == []
    made.workers = 2
    assert sorted(names_of(made._affordable(made.running, 500))) == ["default", "kernel"]
