"""Sums over segmentations and the best of them, against all of them one by one."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from fuda import DataError
from fuda.data.graph import Graph
from fuda.data.segments import SegmentLabels
from fuda.inference import expectations as chain_expectations
from fuda.inference.segment_marginals import likely_segments
from fuda.inference.segment_nbest import nbest
from fuda.inference.segments import Limits, expectations, log_partition
from segment_oracle import all_scored, chunks_of, free, random_scores, roles

problems = st.builds(
    lambda seed, sizes, kinds, longest, scale: random_scores(
        np.random.default_rng(seed), sizes, kinds, longest, scale
    ),
    st.integers(0, 10**6),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from([0.0, 1.0, 5.0, 300.0]),
)


def by_hand(scores, i, allow=lambda roles: True):
    """Probabilities of segmentations of one sequence, and log Z."""
    listed = all_scored(scores, i, allow)
    log_z = logsumexp([value for value, _ in listed])
    return log_z, [(np.exp(value - log_z), segments) for value, segments in listed]


@given(problems)
@settings(max_examples=60)
def test_expectations_are_those_of_all_segmentations(scores):
    sums = expectations(scores)
    inside, first, last, single = (np.zeros_like(scores.inside) for _ in range(4))
    lengths, pairs = np.zeros_like(scores.lengths), np.zeros_like(scores.transitions)
    joins, texts = np.zeros_like(scores.joins), np.zeros_like(scores.texts)
    for i, begin in enumerate(scores.offsets[:-1].tolist()):
        log_z, listed = by_hand(scores, i)
        assert sums.log_z[i] == pytest.approx(log_z, abs=1e-9, rel=1e-12)
        for p, segments in listed:
            for kind, s, e in segments:
                inside[begin + s : begin + e, kind] += p
                first[begin + s, kind] += p
                last[begin + e - 1, kind] += p
                single[begin + s, kind] += p * (e - s == 1)
                chunks = chunks_of((kind, s, e), int(scores.longest[kind]))
                joins[kind] += p * (len(chunks) - 1)
                for _, a, b in chunks:
                    lengths[kind, b - a] += p
                    if 2 <= b - a < 4:
                        np.add.at(texts[:, kind], scores.rows[begin + b - 1, b - a - 2], p)
            for (a, *_), (b, *_) in pairwise(segments):
                pairs[a, b] += p
    expected = inside, first, last, single, lengths, pairs, joins
    for ours, theirs in zip(sums[1:-1], expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    np.testing.assert_allclose(sums.texts[:-1], texts[:-1], atol=1e-9)
    np.testing.assert_allclose(log_partition(scores), sums.log_z, rtol=1e-12, atol=1e-12)


@given(problems, st.sampled_from([1e-6, 0.05, 0.3]))
@settings(max_examples=40)
def test_likely_segments_are_those_of_all_segmentations(scores, least):
    for i, listed in enumerate(likely_segments(scores, least)):
        p_of = defaultdict(float)
        for p, segments in by_hand(scores, i)[1]:
            for segment in segments:
                p_of[segment] += p
        likely = {(kind, s, e): p for kind, s, e, p in listed}
        assert len(likely) == len(listed)
        for segment in likely.keys() | {segment for segment, p in p_of.items() if p > least * (1 + 1e-6)}:
            assert likely[segment] == pytest.approx(p_of[segment], abs=1e-9)


@given(problems, st.integers(1, 30))
@settings(max_examples=60)
def test_the_n_best_are_the_first_of_all(scores, n):
    for i, listed in enumerate(nbest(scores, n)):
        size, everything = int(np.diff(scores.offsets)[i]), all_scored(scores, i)
        assert len(listed) == min(n, len(everything))
        np.testing.assert_allclose(
            [value for _, value in listed], [value for value, _ in everything[:n]], rtol=1e-12, atol=1e-9
        )
        value_of = {tuple(roles(size, segments)): value for value, segments in everything}
        assert len({tuple(labels) for labels, _ in listed}) == len(listed)
        for labels, value in listed:
            assert value_of[tuple(labels)] == pytest.approx(value, abs=1e-9, rel=1e-12)


LABELS = {
    "IOB2": ["B-x", "I-x", "B-y", "I-y", "O"],
    "IOE2": ["E-x", "I-x", "E-y", "I-y", "O"],
    "IOBES": ["B-x", "E-x", "I-x", "S-x", "O"],
    "BILOU": ["B-x", "I-x", "L-x", "U-x", "U-y", "O"],
    None: ["A", "B", "O"],
}


@given(st.sampled_from(list(LABELS)), st.integers(0, 10**6), st.data())
@settings(max_examples=80)
def test_known_labels_leave_what_agrees_with_them(scheme, seed, data):
    labels, rng = SegmentLabels(LABELS[scheme], scheme), np.random.default_rng(seed)
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    scores = random_scores(rng, sizes, len(labels.kinds), 3)
    known = np.array(
        [data.draw(st.sampled_from([-1, -1, *range(len(labels.classes))])) for _ in range(sum(sizes))]
    )
    limits = Limits(*labels.limits(known, scores.offsets))
    of_role = labels.label_of.ravel()
    for i, (a, b) in enumerate(pairwise(scores.offsets)):
        one = scores._replace(offsets=np.array([a, b]))

        def agrees(role, known=known[a:b]):
            named = of_role[role]
            return bool((named >= 0).all() and ((known < 0) | (named == known)).all())

        # labels that there are none for are not forbidden by the limits, but by the model
        if (labels.label_of < 0).any():
            continue
        listed = all_scored(scores, i, agrees)
        if not listed:
            with pytest.raises(DataError, match=r"structure 0: no segmentation agrees with its known labels"):
                log_partition(one, limits)
            continue
        assert log_partition(one, limits)[0] == pytest.approx(logsumexp([value for value, _ in listed]))
        assert nbest(one, 1, limits)[0][0][1] == pytest.approx(listed[0][0])
        marginals = expectations(one, limits)
        p = sum(np.exp(value - marginals.log_z[0]) for value, role in listed if role[0][0] == 0)
        assert marginals.inside[a, 0] == pytest.approx(p, abs=1e-9)


def test_limits_that_allow_everything_change_nothing():
    scores = random_scores(np.random.default_rng(0), [4, 6], 3, 4)
    for ours, theirs in zip(expectations(scores), expectations(scores, free(scores)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@given(st.integers(0, 10**6), st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(1, 4))
@settings(max_examples=30)
def test_with_chunks_of_one_node_it_is_a_chain(seed, sizes, kinds):
    """A(a, b) between kinds that differ and C(a) for the same are the transitions of a chain."""
    scores = random_scores(np.random.default_rng(seed), sizes, kinds, 1)
    scores = scores._replace(
        singles=np.ones(kinds, dtype=bool), joins=np.nan_to_num(scores.joins, neginf=-3.0)
    )
    scores.first[:] = scores.last[:] = scores.lengths[:] = 0.0
    transitions = scores.transitions.copy()
    np.fill_diagonal(transitions, scores.joins)
    scores.transitions[np.diag_indices(kinds)] = -np.inf
    weights = np.ones(len(sizes))
    log_z, nodes, pairs = chain_expectations(Graph(scores.offsets), scores.inside, transitions, weights)
    sums = expectations(scores)
    np.testing.assert_allclose(sums.log_z, log_z, rtol=1e-12)
    np.testing.assert_allclose(sums.inside, nodes, atol=1e-12)
    np.testing.assert_allclose(sums.transitions + np.diag(sums.joins), pairs, atol=1e-12)


@pytest.mark.parametrize("part", ["inside", "first", "last", "lengths", "transitions", "joins", "texts"])
def test_expectations_are_derivatives(part):
    scores = random_scores(np.random.default_rng(3), [5, 3], 3, 3)
    weights = np.array([0.5, 2.0])
    derivative = getattr(expectations(scores, weights=weights), part)
    values = getattr(scores, part)
    by_node = (
        np.repeat(weights, np.diff(scores.offsets))[:, None] if part in ("inside", "first", "last") else 1.0
    )
    for at in np.argwhere(np.isfinite(values))[: 20 if part != "texts" else 9]:
        at, h = tuple(at), 1e-5
        if part == "lengths" and not 1 <= at[1] <= scores.longest[at[0]]:
            continue
        ends = []
        for step in (h, -h):
            values[at] += step
            ends.append(float(log_partition(scores) @ weights))
            values[at] -= step
        assert (ends[0] - ends[1]) / (2 * h) == pytest.approx((derivative * by_node)[at], abs=1e-7)


@pytest.mark.parametrize("scale", [1e3, 1e6, 1e12])
def test_extreme_scores_stay_finite(scale):
    scores = random_scores(np.random.default_rng(5), [6, 9, 1], 3, 4, scale)
    sums = expectations(scores)
    assert all(np.isfinite(part).all() for part in sums)
    # As exact as sums are.
    np.testing.assert_allclose(sums.inside.sum(axis=1), 1.0, atol=scale * 1e-14)
    best = [listed[0][1] for listed in nbest(scores, 1)]
    np.testing.assert_allclose(sums.log_z, best, rtol=1e-6)


def test_no_result_depends_on_the_number_of_threads():
    rng = np.random.default_rng(6)
    scores = random_scores(rng, rng.integers(1, 40, 300).tolist(), 3, 6)
    for ours, theirs in zip(expectations(scores, n_jobs=1), expectations(scores, n_jobs=3), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_long_sequences():
    scores = random_scores(np.random.default_rng(7), [30_000], 2, 12)
    sums = expectations(scores)
    np.testing.assert_allclose(sums.inside.sum(axis=1), 1.0, atol=1e-9)
    assert nbest(scores, 1)[0][0][1] < sums.log_z[0]
