"""One position's coefficients: the small quadratic program against its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuda.training.crammer_singer import _best, ascend, duality_gaps

NUMBERS = st.floats(-5, 5)


@st.composite
def positions(draw):
    """Scores, feasible coefficients, curvatures, a label and a bound."""
    size = draw(st.integers(2, 6))
    label, bound = draw(st.integers(0, size - 1)), draw(st.sampled_from([0.01, 1.0, 30.0]))
    scores = np.array(draw(st.lists(NUMBERS, min_size=size, max_size=size)))
    curvature = np.array(draw(st.lists(st.sampled_from([1e-3, 0.5, 2.0]), min_size=size, max_size=size)))
    alpha = -np.array(draw(st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=size, max_size=size)))
    alpha[label] = 0.0
    if alpha.any():
        alpha *= draw(st.sampled_from([0.5, 1.0])) * bound / -alpha.sum()
    alpha[label] = -alpha.sum()
    return scores, alpha, curvature, label, bound


@given(positions())
def test_the_best_coefficients_meet_all_conditions(position) -> None:
    scores, alpha, curvature, label, bound = position
    new = np.empty_like(scores)
    _best(scores, alpha, curvature.copy(), label, bound, new)
    caps = bound * (np.arange(len(scores)) == label)
    assert new.sum() == pytest.approx(0.0, abs=1e-12)
    assert (new <= caps + 1e-9).all()
    slope = scores - (np.arange(len(scores)) == label) + curvature * (new - alpha)
    free = new < caps - 1e-9
    if free.any():  # one multiplier for all that are free, and none above it
        assert slope[free] == pytest.approx(slope[free][0], abs=1e-6)
        assert (slope[~free] <= slope[free][0] + 1e-6).all()


@given(positions())
def test_a_gap_is_never_negative_and_closes_at_one_position_alone(position) -> None:
    scores, alpha, curvature, label, bound = position
    prior = np.sqrt(curvature)[None]  # so that P² κ is the curvature, with κ = 1
    # As they are where there is nothing else.
    scores, alpha = (curvature * alpha)[None], alpha[None].copy()
    conditions = (np.array([label]), np.array([bound]))
    assert duality_gaps(scores, alpha, *conditions)[0] >= -1e-9
    ascend(np.ones((1, 1, 1)), prior, np.eye(len(curvature)), *conditions, 0.0, np.array([0]), scores, alpha)
    np.testing.assert_allclose(scores[0], curvature * alpha[0], atol=1e-9)
    assert duality_gaps(scores, alpha, *conditions)[0] == pytest.approx(0.0, abs=1e-6)


def test_positions_without_a_label_have_no_gap_and_stay() -> None:
    labels, bounds = np.array([-1, 0]), np.ones(2)
    scores, alpha = np.zeros((2, 2)), np.zeros((2, 2))
    assert duality_gaps(scores, alpha, labels, bounds).tolist() == [0.0, 1.0]
    ascend(
        np.ones((2, 2, 1)), np.full((2, 2), 0.5), np.eye(2), labels, bounds, 0.0, np.arange(2), scores, alpha
    )
    assert not alpha[0].any()
    assert alpha[1].tolist() == [1.0, -1.0]
    assert scores[0].tolist() == [0.25, -0.25]  # it hears the other
