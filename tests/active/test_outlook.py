"""How far one is: the curve, and whether bands hold what they promise on simulated curves."""

from __future__ import annotations

import numpy as np
import pytest

from fuda.active.outlook import learning_curve, outlook


def test_the_curve_sums_over_a_window_and_its_band_contains_it():
    random = np.random.RandomState(0)
    total = random.randint(1, 20, size=60)
    right = [random.randint(0, n + 1) for n in total]
    points = learning_curve(right, total, window=10)
    assert [point.n for point in points] == list(range(1, 61))
    for n, accuracy, low, high in points:
        part = slice(max(0, n - 10), n)
        assert accuracy == pytest.approx(sum(right[part]) / sum(total[part]))
        assert 0 <= low <= accuracy <= high <= 1


def test_f1_is_that_of_the_entities_in_the_window():
    proposed, taught, both = [3, 2, 0, 4], [2, 2, 1, 4], [1, 2, 0, 3]
    either = [p + t - b for p, t, b in zip(proposed, taught, both, strict=True)]
    points = learning_curve(both, either, window=2, f1=True)
    for n, f1, low, high in points:
        part = slice(max(0, n - 2), n)
        assert f1 == pytest.approx(2 * sum(both[part]) / (sum(proposed[part]) + sum(taught[part])))
        assert 0 <= low <= f1 <= high <= 1
    learned = [10 - round(10 / n**0.5) for n in range(1, 101)]
    share, f1 = outlook(learned, [10] * 100), outlook(learned, [10] * 100, f1=True)
    now, then = 0.9, 0.9 + share.gain
    assert f1.gain == pytest.approx(2 * then / (1 + then) - 2 * now / (1 + now), rel=0.1)
    assert "points of F1" in f1.text


def test_structures_without_labels_have_no_point():
    assert [point.n for point in learning_curve([0, 0, 2], [0, 1, 2])] == [2, 3]
    assert learning_curve([], []) == []


def test_a_band_narrows_with_more_labels():
    few, many = (learning_curve([9 * k], [10 * k])[0] for k in (1, 100))
    assert many.high - many.low < few.high - few.low


def simulated(random, n, a, b, floor):
    """Labels predicted right, with errors in bunches, and the true error at each number."""
    total = random.randint(5, 40, size=n)
    error = floor + a * np.arange(1, n + 51) ** -b
    bunched = error[:n] * random.gamma(2.0, 0.5, size=n)
    return total - random.binomial(total, np.minimum(bunched, 1.0)), total, error


@pytest.mark.parametrize(
    ("a", "b", "floor"), [(0.4, 0.5, 0.0), (0.3, 0.3, 0.0), (0.4, 0.6, 0.02), (0.1, 0.0, 0.0)]
)
def test_the_band_of_the_gain_covers_the_truth_in_most_curves(a, b, floor):
    random, covered = np.random.RandomState(1), []
    for n in (40, 100, 300) * 20:
        right, total, error = simulated(random, n, a, b, floor)
        estimate = outlook(right, total)
        assert estimate.low <= estimate.gain <= estimate.high
        covered.append(estimate.low <= error[n - 1] - error[n + 49] <= estimate.high)
    assert np.mean(covered) >= 0.8  # of 90 %


def test_nothing_is_estimated_from_too_little():
    assert outlook([3] * 10, [5] * 10) is None
    assert outlook([5] * 100, [5] * 100) is None


def test_words():
    learned = outlook([20 - (n % 100 == 0) for n in range(2000)], [20] * 2000)
    assert learned.text == "the next 50 will hardly change anything"
    right, total, _ = simulated(np.random.RandomState(0), 60, 0.5, 0.5, 0.0)
    assert outlook(right, total).text.startswith("the next 50 should bring ")
