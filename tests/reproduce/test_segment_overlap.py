"""SOV against a brute-force oracle over sets of positions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuda.reproduce.segment_overlap import segment_overlap


def runs(labels):
    """The segments as sets of positions."""
    segments = []
    for position, label in enumerate(labels):
        if position and labels[position - 1] == label:
            segments[-1][1].add(position)
        else:
            segments.append((label, {position}))
    return segments


def oracle(observed, predicted):
    total = norm = 0
    for state in set(observed):
        for one in (positions for label, positions in runs(observed) if label == state):
            overlapping = [s for label, s in runs(predicted) if label == state and s & one]
            for other in overlapping:
                minov, maxov = len(one & other), len(one | other)
                delta = min(maxov - minov, minov, len(one) // 2, len(other) // 2)
                total += (minov + delta) / maxov * len(one)
            norm += len(one) * max(1, len(overlapping))
    return 100 * total / norm


@given(st.lists(st.tuples(st.sampled_from("HEC"), st.sampled_from("HEC")), min_size=1, max_size=30))
def test_overlap_is_that_of_sets(pairs):
    observed, predicted = zip(*pairs, strict=True)
    assert segment_overlap(observed, predicted) == pytest.approx(oracle(observed, predicted))
    assert segment_overlap(observed, observed) == 100


def test_ends_that_are_off_by_little_cost_little():
    observed = "CCCHHHHHHHHCCC"
    assert segment_overlap(observed, "CCHHHHHHHHHCCC") > 95
    assert segment_overlap(observed, "CCCHHHHCHHHCCC") < segment_overlap(observed, "CCCCHHHHHHHCCC")
    assert segment_overlap(observed, "E" * 14) == 0


# Table 1 of T. Liu, Z. Wang, "SOV_refine", Source Code Biol. Med. 13 (2018) 1: SOV'99 of
# CHHHHHHHHHHC.
PUBLISHED = {
    "CHCHCHCHCHCC": 0.125,
    "CHHHCHHHCHHC": 0.406,
    "CHHCCHHHHHCC": 0.523,
    "CCCHHHHCCCCC": 0.544,
    "CCCHHHHHCCCC": 0.632,
    "CCCHHHHHHCCC": 0.806,
    "CCCHHHHHHHCC": 0.903,
    "CCCHHHHHHHHC": 0.944,
}


@pytest.mark.parametrize("predicted", PUBLISHED)
def test_published_values(predicted):
    overlap = segment_overlap("CHHHHHHHHHHC", predicted) / 100
    assert overlap == pytest.approx(PUBLISHED[predicted], abs=5e-4)
