"""Leads of labels, and the nodes that the next stage scores again."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuda.marginalized.pruning_stages import doubtful, leads

LABELS = 3


@given(st.lists(st.lists(st.integers(-3, 3), min_size=LABELS, max_size=LABELS), min_size=1, max_size=9))
def test_leads_are_in_units_of_the_largest_score(rows):
    scores = np.array(rows, dtype=float)
    best, lead = leads(scores)
    np.testing.assert_array_equal(best, scores.argmax(axis=1))
    ordered, largest = np.sort(scores, axis=1), np.abs(scores).max(axis=1)
    np.testing.assert_allclose(lead * largest, ordered[:, -1] - ordered[:, -2], atol=1e-12)
    assert (lead[largest == 0] == 0).all()


def test_doubtful_nodes_are_narrow_or_next_to_a_narrow_one_of_their_structure():
    scores = np.array([[9.0, 0.0], [9.0, 0.0], [9.0, 8.0], [9.0, 0.0], [9.0, 8.0], [0.0, 9.0], [0.0, 9.0]])
    offsets, margins = np.array([0, 3, 7]), np.array([0.5, 0.5])
    assert doubtful(scores, np.arange(7), margins, offsets).tolist() == [1, 2, 3, 4, 5]
    assert doubtful(scores, np.array([0, 1, 4, 6]), margins, offsets).tolist() == [4]
