from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fuda.selection import Goal, randomization_test


def counted(random, count, correct):
    right = (random.rand(count) < correct).astype(float)
    return np.stack([right, np.ones(count), np.ones(count)], axis=1)[:, None]


def test_p_is_that_of_all_exchanges():
    """Of six structures all 64 exchanges can be enumerated."""
    random = np.random.RandomState(0)
    first = np.array([[[2, 3, 4]], [[1, 1, 1]], [[0, 2, 1]], [[3, 3, 5]], [[2, 2, 2]], [[1, 4, 2]]], float)
    second = first + random.randint(-1, 2, first.shape).clip(0)
    score = Goal("entity F1").score
    observed, reached = abs(score(first) - score(second)), 0
    for exchange in product([False, True], repeat=6):
        swap = np.array(exchange)[:, None, None]
        a, b = np.where(swap, second, first), np.where(swap, first, second)
        reached += abs(score(a) - score(b)) >= observed - 1e-12
    assert 0 < reached < 64
    assert randomization_test(first, second, rounds=20_000) == pytest.approx(reached / 64, abs=0.02)


def test_equal_models_rarely_differ_and_unequal_ones_do():
    random = np.random.RandomState(1)
    equal = [
        randomization_test(counted(random, 80, 0.6), counted(random, 80, 0.6), rounds=199) for _ in range(100)
    ]
    assert np.mean(np.array(equal) < 0.05) <= 0.12
    assert randomization_test(counted(random, 300, 0.8), counted(random, 300, 0.6)) < 0.01


def test_the_order_of_models_does_not_matter_and_the_seed_decides():
    random = np.random.RandomState(2)
    a, b = counted(random, 50, 0.5), counted(random, 50, 0.6)
    assert randomization_test(a, b, seed=3) == randomization_test(b, a, seed=3)
    assert randomization_test(a, b, seed=3) == randomization_test(a, b, seed=3)
