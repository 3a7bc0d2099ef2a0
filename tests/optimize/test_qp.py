"""Small quadratic programs: optimality conditions, and every face tried one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuda.optimize.qp import SOLVED, UNBOUNDED, minimize


def value(Q, b, alpha) -> float:
    return 0.5 * alpha @ Q @ alpha - b @ alpha


def best_of_all_faces(Q, b, bound) -> float:
    """The smallest value of a feasible point that is stationary on its face."""
    best = 0.0  # at the origin
    for size in range(1, len(b) + 1):
        for face in map(list, itertools.combinations(range(len(b)), size)):
            block, target = Q[np.ix_(face, face)], b[face]
            points = [np.linalg.lstsq(block, target)[0]]
            if np.isfinite(bound):
                both = np.block([[block, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
                points.append(np.linalg.lstsq(both, np.append(target, bound))[0][:size])
            for point in points:
                if (point >= -1e-9).all() and point.sum() <= bound * (1 + 1e-9):
                    alpha = np.zeros(len(b))
                    alpha[face] = point
                    best = min(best, value(Q, b, alpha))
    return best


def assert_optimal(Q, b, bound, alpha, tol=1e-9):
    gradient = Q @ alpha - b
    scale = max(np.abs(b).max(), np.abs(Q * alpha).max())
    assert (alpha >= 0).all()
    assert alpha.sum() <= bound * (1 + 1e-12)
    at_bound = np.isfinite(bound) and alpha.sum() >= bound * (1 - 1e-9)
    multiplier = max(0.0, -gradient.min()) if at_bound else 0.0
    assert (gradient + multiplier >= -tol * scale).all()
    np.testing.assert_allclose((gradient + multiplier)[alpha > 0], 0.0, atol=tol * scale)


@st.composite
def problems(draw):
    """Q of any rank, by vectors with many equal entries; b of ones, or of several values."""
    size, rank = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    entries = st.lists(st.sampled_from([-1.0, 0.0, 0.0, 1.0, 2.0, 0.3]), min_size=rank, max_size=rank)
    vectors = np.array(draw(st.lists(entries, min_size=size, max_size=size)))
    b = np.array(draw(st.lists(st.sampled_from([1.0, 1.0, 2.0, 0.5, -0.5]), min_size=size, max_size=size)))
    return vectors @ vectors.T * draw(st.sampled_from([1.0, 1e-4, 1e6])), b


@settings(max_examples=80)
@given(problem=problems(), bound=st.sampled_from([0.1, 1.0, 30.0]), warm=st.integers(0, 3))
@pytest.mark.slow
def test_with_a_bound_on_the_sum(problem, bound, warm):
    Q, b = problem
    alpha = np.zeros(len(b))
    alpha[: warm + 1] = [0.0, bound / 6, bound / 12, bound / 3][warm]
    alpha *= min(1.0, bound / max(alpha.sum(), 1e-300))
    start = value(Q, b, alpha)
    assert minimize(Q, b, bound, alpha) == SOLVED
    assert_optimal(Q, b, bound, alpha)
    best = best_of_all_faces(Q, b, bound)
    assert value(Q, b, alpha) == pytest.approx(best, rel=1e-8, abs=1e-10)
    assert value(Q, b, alpha) <= start + 1e-9 * abs(start)


@settings(max_examples=80)
@given(problem=problems(), slack=st.sampled_from([0.0, 0.1, 10.0]))
def test_without_a_bound(problem, slack):
    Q, b = problem
    Q = Q + slack
    alpha = np.zeros(len(b))
    outcome = minimize(Q, b, np.inf, alpha)
    if outcome == UNBOUNDED:
        ray = np.zeros(len(b))
        far = np.array(alpha)
        minimize(Q, b, 1e9, ray)
        assert value(Q, b, ray) < value(Q, b, far) - 1e3
    else:
        assert outcome == SOLVED
        assert_optimal(Q, b, np.inf, alpha)
        assert value(Q, b, alpha) == pytest.approx(best_of_all_faces(Q, b, np.inf), rel=1e-8, abs=1e-10)


def test_no_end_in_sight():
    """Two rows that cancel each other, both wanted: the ray (1, 1)."""
    Q = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert minimize(Q, np.ones(2), np.inf, np.zeros(2)) == UNBOUNDED
    assert minimize(np.zeros((1, 1)), np.ones(1), np.inf, np.zeros(1)) == UNBOUNDED
    alpha = np.zeros(2)
    assert minimize(Q, np.ones(2), 3.0, alpha) == SOLVED
    assert alpha.tolist() == [1.5, 1.5]


def test_many_variables():
    rng = np.random.default_rng(0)
    for size, rank in ((50, 80), (60, 20), (120, 300)):
        vectors = rng.normal(size=(size, rank))
        Q, b = vectors @ vectors.T, rng.choice([1.0, 2.0, 3.0], size)
        for bound in (0.5, 5.0, np.inf):
            alpha = np.zeros(size)
            outcome = minimize(Q, b, bound, alpha)
            assert outcome == (UNBOUNDED if rank == 20 and bound == np.inf else SOLVED)
            if outcome == SOLVED:
                assert_optimal(Q, b, bound, alpha)
