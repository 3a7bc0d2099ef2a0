"""When minimizers stop, and what they report."""

from __future__ import annotations

import math

import numpy as np

from fuda.optimize import Result
from fuda.optimize.result import Watch
from fuda.progress import Iteration


def watched(values, tol=1e-3, max_iter=100):
    watch = Watch(tol, max_iter, None)
    for value in values:
        watch.evaluations += 1
        watch.record(value, 1.0)
    return watch


def test_a_small_gradient_stops():
    watch = Watch(1e-3, 100, None)
    assert watch.verdict(0.5, 7.0, 0.0009) == (True, "the gradient vanished")
    assert watch.verdict(0.5, 7.0, 0.0011) is None
    # relative to ‖x‖ where that is above 1
    assert watch.verdict(20.0, 7.0, 0.019) == (True, "the gradient vanished")


def test_ten_iterations_with_little_gain_stop():
    falling = [100.0 - i for i in range(11)]
    assert watched(falling).verdict(1.0, falling[-1], 1.0) is None
    flat = [100.0 - 0.009 * i for i in range(11)]  # 0.09 of 99.91 in all, less than a thousandth
    assert watched(flat).verdict(1.0, flat[-1], 1.0) == (True, "the objective stopped falling")
    assert watched(flat[:10]).verdict(1.0, flat[9], 1.0) is None
    assert watched([0.0] * 11).verdict(1.0, 0.0, 1.0) == (True, "the objective stopped falling")
    negative = [-100.0 - 0.009 * i for i in range(11)]
    assert watched(negative).verdict(1.0, negative[-1], 1.0) == (True, "the objective stopped falling")


def test_max_iter_stops():
    assert watched([3.0, 2.0], max_iter=2).verdict(1.0, 2.0, 1.0) == (False, "max_iter=2 was reached")
    assert watched([3.0, 2.0], max_iter=3).verdict(1.0, 2.0, 1.0) is None


def test_a_true_answer_to_a_report_stops():
    watch = Watch(1e-3, 100, lambda progress: progress.iteration == 2)
    watch.record(5.0, 0.25)
    assert watch.verdict(1.0, 5.0, 0.25) is None
    watch.record(4.0, 0.25)
    assert watch.verdict(1.0, 4.0, 0.0) == (False, "a callback ended it")
    x = np.zeros(1)
    # An end by a callback is not warned of.
    assert Result(x, False, "a callback ended it", watch.history).solution("model") is x


def test_the_way_is_recorded_and_reported():
    seen = []
    watch = Watch(1e-3, 100, seen.append)
    watch.evaluations = 4
    watch.record(5.0, 0.25)
    (progress,) = watch.history
    assert seen == [progress]
    assert (progress.iteration, progress.evaluations, progress.objective, progress.gradient_norm) == (
        1,
        4,
        5.0,
        0.25,
    )
    assert progress.seconds >= 0


def test_resumed_it_counts_on():
    watch = Watch(1e-3, 100, None)
    watch.resume(
        [Iteration(1, 40.0, 9.0, 1.0, evaluations=3), Iteration(2, 50.0, 8.0, 1.0, evaluations=5)], False
    )
    watch.evaluations += 1  # the last point again
    watch.evaluations += 1
    watch.record(7.0, 1.0)
    assert watch.history[-1].iteration == 3
    assert watch.history[-1].evaluations == 6
    assert watch.history[-1].seconds >= 50.0
    fresh = Watch(1e-3, 100, None)
    fresh.resume([], False)
    assert fresh.evaluations == 0


def test_the_value_of_a_result():
    assert math.isnan(Result(np.zeros(1), True, "").value)
    assert Result(np.zeros(1), True, "", [Iteration(1, 0.0, 4.0, 0.1)]).value == 4.0
