"""Scores by windows, against the kernel: exact where windows contain whole sequences."""

from __future__ import annotations

import numpy as np
import pytest

from fuda import Sequence
from fuda.kernels import Polynomial
from fuda.marginalized import codes, problem
from fuda.marginalized.engines.cpu import windows
from fuda.marginalized.engines.cpu.engine import CpuEngine
from fuda.marginalized.engines.cpu.windows import WindowSupport, has_windows
from fuda.marginalized.kernel import label_gram
from fuda.marginalized.problem import Settings, Sources
from machine_cases import random_prior, random_structures, two_sides

LABELS = 3
ALL, NONE = 3.0, -1.0  # margins with which all nodes, or none, are scored with the whole reach


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    monkeypatch.setattr(codes, "_SMALL", 0)
    monkeypatch.setattr(problem, "_OFTEN", 5)
    monkeypatch.setattr(windows, "_NUMBER", np.float64)


def problem_of(sources, targets, rng, c=1.5, label_kernel=None):
    priors = (random_prior(rng, side, LABELS, "uniform") for side in (sources, targets))
    sides = two_sides(sources, targets, *priors)
    settings = Settings(Polynomial(2).normalized(), label_gram(label_kernel, LABELS), c, 0.0)
    made = Sources(settings, sides[0]).problem(sides[1])
    nodes = sum(map(len, sources))
    alpha = rng.integers(-2, 3, (nodes, LABELS)) * (rng.random((nodes, 1)) < 0.6)
    return made, alpha.astype(float)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("label_kernel", [None, np.eye(3) + 0.2])
def test_windows_of_short_sequences_are_exact(seed, label_kernel):
    rng = np.random.default_rng(seed)
    sources, targets = (random_structures(rng, "sequence", count, 5) for count in (60, 40))
    made, alpha = problem_of(sources, targets, rng, label_kernel=label_kernel)
    assert made.codes.is_shared
    assert (made.targets.twins >= 0).any()
    expected = CpuEngine(made).scores(alpha).doubles()
    found = CpuEngine(made).scores(alpha, ALL).doubles()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert len(WindowSupport(made, alpha)._whole.rights) < np.count_nonzero(alpha.any(axis=1))


def long_case(rng):
    """Long sequences without a common word."""
    words = [f"{word}{letter}" for word in ("ab", "Cd", "12", "e-f") for letter in "stuvwxyz"]
    sides = [
        [
            Sequence([f"{word}{mark}" for word in rng.choice(words, size)])
            for size in rng.integers(9, 18, 8).tolist()
        ]
        for mark in "xy"
    ]
    return problem_of(*sides, rng)


def by_definition(made, alpha, reach):
    """Scores by κ_r, one pair of nodes after another."""
    k = made.mixing**2 * made.mass * made.codes.whole
    sides, gamma = (made.sources, made.targets), made.gamma(alpha)
    scores = np.zeros((len(made.targets.codes), LABELS))

    def one_way(places, ends, step):
        value = 0.0
        at = [place + step * reach for place in places]
        for _ in range(reach):
            if all(first <= i < last for i, (first, last) in zip(at, ends, strict=True)):
                value = k[sides[0].codes[at[0]], sides[1].codes[at[1]]] * (1.0 + value)
            else:
                value = 0.0
            at = [i - step for i in at]
        return 1.0 + value

    bounds = [list(zip(side.offsets[:-1], side.offsets[1:], strict=True)) for side in sides]
    for source in bounds[0]:
        for target in bounds[1]:
            for i in filter(alpha.any(axis=1).__getitem__, range(*source)):
                for t in range(*target):
                    u, d = (one_way((i, t), (source, target), step) for step in (-1, 1))
                    kappa = k[sides[0].codes[i], sides[1].codes[t]] * u * d / made.mass
                    scores[t] += kappa * gamma[i] * made.targets.prior[t]
    return scores


def test_windows_of_long_sequences_are_cut():
    made, alpha = long_case(np.random.default_rng(0))
    alpha *= np.random.default_rng(1).random((len(alpha), 1)) < 0.3
    assert made.codes.is_shared
    for margin, reach in ((ALL, windows._REACH), (NONE, windows._NEAR)):
        found = WindowSupport(made, alpha).scores(made, margin, 1)
        np.testing.assert_allclose(found, by_definition(made, alpha, reach), rtol=1e-12, atol=1e-12)


def test_narrow_margins_and_their_neighbours_are_scored_again(monkeypatch):
    made, alpha = long_case(np.random.default_rng(2))
    support = WindowSupport(made, alpha)
    near, whole = (support.scores(made, margin, 1) for margin in (NONE, ALL))
    margin = float(np.median(windows._margins(near)))
    expected = near.copy()
    for a, b in zip(made.targets.offsets[:-1], made.targets.offsets[1:], strict=True):
        narrow = np.flatnonzero(windows._margins(near[a:b]) < margin)
        for t in range(b - a):
            if (np.abs(narrow - t) <= windows._SPREAD).any():
                expected[a + t] = whole[a + t]
    found = support.scores(made, margin, 1)
    np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(found, near)
    assert not np.array_equal(found, whole)
    monkeypatch.setattr(windows, "_BLOCK", 50)
    np.testing.assert_array_equal(support.scores(made, margin, 2), expected)


def test_single_precision_is_enough(monkeypatch):
    made, alpha = long_case(np.random.default_rng(3))
    expected = WindowSupport(made, alpha).scores(made, ALL, 1)
    monkeypatch.setattr(windows, "_NUMBER", np.float32)
    found = WindowSupport(made, alpha).scores(made, ALL, 1)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


def test_problems_without_windows_are_scored_exactly(monkeypatch):
    rng = np.random.default_rng(4)
    sources, targets = (random_structures(rng, "sequence", count, 9) for count in (60, 40))
    for c, small in ((1.5, 1 << 20), (6.0, 0)):  # codes that are not shared, and large numbers
        monkeypatch.setattr(codes, "_SMALL", small)
        made, alpha = problem_of(sources, targets, rng, c)
        assert not has_windows(made)
        expected = CpuEngine(made).scores(alpha).doubles()
        np.testing.assert_array_equal(CpuEngine(made).scores(alpha, ALL).doubles(), expected)
