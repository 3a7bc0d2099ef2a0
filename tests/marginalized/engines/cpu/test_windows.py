"""Scores by windows, against the kernel: exact where windows contain whole sequences."""

from __future__ import annotations

import numpy as np
import pytest

from fuda import Sequence
from fuda.kernels import Polynomial
from fuda.marginalized import kernel_classes, problem
from fuda.marginalized.engines.cpu import windows
from fuda.marginalized.engines.cpu.engine import CpuEngine
from fuda.marginalized.engines.cpu.windows import WindowSupport, has_windows
from fuda.marginalized.kernel import label_gram
from fuda.marginalized.problem import Settings, Sources
from fuda.marginalized.pruning_stages import NEVER, REACHES, leads
from machine_cases import random_prior, random_structures, two_sides

LABELS = 3


def only(stage):
    """Margins by which all nodes are scored by one stage."""
    return np.array([[NEVER if i < stage else -1.0] * LABELS for i in range(len(REACHES) - 1)])


LAST = only(len(REACHES) - 1)


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    monkeypatch.setattr(kernel_classes, "_SMALL_TABLE", 0)
    monkeypatch.setattr(problem, "_FREQUENT_ONE_IN", 5)
    monkeypatch.setattr(windows, "_NUMBER", np.float64)


def problem_of(sources, targets, rng, c=1.5, label_kernel=None):
    priors = (random_prior(rng, side, LABELS, "uniform") for side in (sources, targets))
    sides = two_sides(sources, targets, *priors)
    settings = Settings(Polynomial(2).normalized(), label_gram(label_kernel, LABELS), c, 0.0)
    problem = Sources(settings, sides[0]).problem(sides[1])
    nodes = sum(map(len, sources))
    alpha = rng.integers(-2, 3, (nodes, LABELS)) * (rng.random((nodes, 1)) < 0.6)
    return problem, alpha.astype(float)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("label_kernel", [None, np.eye(3) + 0.2])
def test_windows_of_short_sequences_are_exact(seed, label_kernel):
    rng = np.random.default_rng(seed)
    sources, targets = (random_structures(rng, "sequence", count, 5) for count in (60, 40))
    problem, alpha = problem_of(sources, targets, rng, label_kernel=label_kernel)
    assert problem.kernel_classes.is_shared
    assert (problem.targets.ids >= 0).any()
    expected = CpuEngine(problem).scores(alpha).doubles()
    actual = CpuEngine(problem).scores(alpha, LAST).doubles()
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)
    assert len(WindowSupport(problem, alpha).stages[-1].middles) < np.count_nonzero(alpha.any(axis=1))


def long_case(rng, marks="xy", label_kernel=None):
    """Long sequences; with different marks without a common word."""
    words = [f"{word}{letter}" for word in ("ab", "Cd", "12", "e-f") for letter in "stuvwxyz"]
    sides = [
        [
            Sequence([f"{word}{mark}" for word in rng.choice(words, size)])
            for size in rng.integers(9, 18, 8).tolist()
        ]
        for mark in marks
    ]
    problem, alpha = problem_of(*sides, rng, label_kernel=label_kernel)
    return problem, alpha * (rng.random((len(alpha), 1)) < 0.3)


def one_way(values, step, reach):
    """u (step −1) or d (step 1) of k along a pair's windows, from the middle of 2r + 1 places."""
    middle, value = len(values) // 2, 1.0
    for distance in range(reach, 0, -1):
        value = 1.0 + values[middle + step * distance] * value
    return value


def kappa_of(values, reach):
    return values[len(values) // 2] * one_way(values, -1, reach) * one_way(values, 1, reach)


def by_definition(problem, alpha, reach):
    """Scores pair by pair: κ_r by classes, but by observations where equal ones are near."""
    k, farthest = problem.mixing**2 * problem.mass * problem.kernel_classes.all_values, windows._REACH
    sides, gamma = (problem.sources, problem.targets), problem.gamma(alpha)
    scores = np.zeros((len(problem.targets.classes), LABELS))
    bounds = [list(zip(side.offsets[:-1], side.offsets[1:], strict=True)) for side in sides]
    pairs = [(s, t) for s in bounds[0] for t in bounds[1]]
    for (i, t), source, target in ((p, s, e) for s, e in pairs for p in np.ndindex(s[1] - s[0], e[1] - e[0])):
        i, t = source[0] + i, target[0] + t
        by_code, by_observation = np.zeros((2, 2 * farthest + 1))
        equal_near = False
        for distance in range(-farthest, farthest + 1):
            a, b = i + distance, t + distance
            if source[0] <= a < source[1] and target[0] <= b < target[1]:
                is_equal = sides[0].ids[a] == sides[1].ids[b] >= 0
                equal_near |= is_equal and abs(distance) <= reach
                value = k[sides[0].classes[a], sides[1].classes[b]]
                by_code[farthest + distance] = value
                by_observation[farthest + distance] = (
                    problem.mass * problem.self_values[a] if is_equal else value
                )
        kappa = kappa_of(by_observation, farthest) if equal_near else kappa_of(by_code, reach)
        scores[t] += kappa / problem.mass * gamma[i] * problem.targets.prior[t]
    return scores


@pytest.mark.parametrize("marks", ["xy", "xx"])
@pytest.mark.parametrize("label_kernel", [None, np.eye(3) + 0.2])
def test_windows_of_long_sequences_are_cut(marks, label_kernel):
    problem, alpha = long_case(np.random.default_rng(0), marks, label_kernel)
    assert problem.kernel_classes.is_shared
    assert np.isin(problem.targets.ids, problem.sources.ids[problem.sources.ids >= 0]).any() == (
        marks == "xx"
    )
    for stage, reach in enumerate(REACHES):
        actual = WindowSupport(problem, alpha).scores(problem, only(stage), 1)
        np.testing.assert_allclose(actual, by_definition(problem, alpha, reach), rtol=1e-12, atol=1e-12)


def by_stages(problem, scores, margins):
    """The scores of the stages, of which each node gets the first that is clear."""
    actual, late = scores[0].copy(), np.ones(len(scores[0]), dtype=bool)
    for stage in range(len(margins)):
        best, lead = leads(actual)
        narrow = late & (lead < margins[stage][best])
        for a, b in zip(problem.targets.offsets[:-1], problem.targets.offsets[1:], strict=True):
            at = a + np.flatnonzero(narrow[a:b])
            late[a:b] &= [(np.abs(at - t) <= 1).any() for t in range(a, b)]
        actual[late] = scores[stage + 1][late]
    return actual


def test_narrow_margins_and_their_neighbours_are_scored_again(monkeypatch):
    problem, alpha = long_case(np.random.default_rng(2))
    support = WindowSupport(problem, alpha)
    scores = [support.scores(problem, only(stage), 1) for stage in range(len(REACHES))]
    typical = np.median(leads(scores[0])[1])
    margins = typical * np.array([[0.8, 1.0, 1.2], [0.5, 0.6, 0.3]])
    expected = by_stages(problem, scores, margins)
    actual = support.scores(problem, margins, 1)
    np.testing.assert_array_equal(actual, expected)
    for one in scores:
        assert (actual == one).all(axis=1).any()
        assert not np.array_equal(actual, one)
    monkeypatch.setattr(windows, "_BLOCK", 50)
    np.testing.assert_array_equal(support.scores(problem, margins, 2), expected)


def test_many_equal_windows_have_the_same_scores():
    rng = np.random.default_rng(5)
    sources, targets = (random_structures(rng, "sequence", count, 9) for count in (60, 90))
    problem, alpha = problem_of(sources, [*targets, *targets], rng)
    actual = CpuEngine(problem).scores(alpha, LAST).doubles()
    once, twice = np.split(actual, 2)
    np.testing.assert_array_equal(once, twice)
    assert len(np.unique(once, axis=0)) > windows._TILE  # of more than one tile
    np.testing.assert_allclose(actual, by_definition(problem, alpha, REACHES[-1]), rtol=1e-12, atol=1e-12)


def test_a_support_is_prepared_once():
    rng = np.random.default_rng(6)
    sources, targets = (random_structures(rng, "sequence", count, 5) for count in (60, 40))
    problem, alpha = problem_of(sources, targets, rng)
    engine = CpuEngine(problem)
    engine.scores(alpha, LAST)
    support = engine._prepared.windows_of(problem, alpha)
    assert support is engine._prepared.windows_of(problem, alpha)
    other, _ = problem_of(sources, random_structures(rng, "sequence", 50, 5), rng)
    again = engine.for_targets(other)
    actual = again.scores(alpha, LAST).doubles()
    np.testing.assert_array_equal(actual, CpuEngine(other).scores(alpha, LAST).doubles())
    assert again._prepared is engine._prepared
    assert engine._prepared.windows_of(other, alpha) is support
    assert engine._prepared.windows_of(problem, 2 * alpha) is not support


def test_single_precision_is_enough(monkeypatch):
    problem, alpha = long_case(np.random.default_rng(3))
    expected = WindowSupport(problem, alpha).scores(problem, LAST, 1)
    monkeypatch.setattr(windows, "_NUMBER", np.float32)
    actual = WindowSupport(problem, alpha).scores(problem, LAST, 1)
    assert np.abs(actual - expected).max() < 1e-5 * np.abs(expected).max()


def test_problems_without_windows_are_scored_exactly(monkeypatch):
    rng = np.random.default_rng(4)
    sources, targets = (random_structures(rng, "sequence", count, 9) for count in (60, 40))
    for c, small in ((1.5, 1 << 20), (6.0, 0)):  # classes that are not shared, and large numbers
        monkeypatch.setattr(kernel_classes, "_SMALL_TABLE", small)
        problem, alpha = problem_of(sources, targets, rng, c)
        assert not has_windows(problem)
        expected = CpuEngine(problem).scores(alpha).doubles()
        np.testing.assert_array_equal(CpuEngine(problem).scores(alpha, LAST).doubles(), expected)
