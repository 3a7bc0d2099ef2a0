from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from fuda.errors import DataError
from fuda.inference import Graph, nbest, viterbi


@settings(max_examples=80, deadline=None, derandomize=True)
@given(oracles.corpora(), st.sampled_from([1, 2, 3, 7, 20, 10**4, 10**30]))
def test_equals_sorted_enumeration(corpus, n):
    graph = Graph(corpus.offsets, corpus.parents, corpus.order)
    if not corpus.possible:
        with pytest.raises(DataError, match="every labeling is forbidden"):
            nbest(graph, corpus.scores, corpus.transitions, n)
        return
    ranked = nbest(graph, corpus.scores, corpus.transitions, n)
    first, _ = viterbi(graph, corpus.scores, corpus.transitions)
    assert len(ranked) == len(graph)
    for i, structure in enumerate(corpus.structures()):
        truth = oracles.all_labelings(*structure)
        scores = [score for _, score in ranked[i]]
        np.testing.assert_allclose(scores, [score for _, score in truth[:n]], rtol=1e-12)
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(labels.tolist()) for labels, _ in ranked[i]}) == min(n, len(truth))
        for labels, score in ranked[i]:
            assert labels.dtype == np.int32
            np.testing.assert_allclose(oracles.labeling_score(*structure, labels), score, rtol=1e-12)
        np.testing.assert_array_equal(ranked[i][0][0], first[corpus.offsets[i] : corpus.offsets[i + 1]])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(oracles.corpora(integers=True))
def test_ties_are_all_listed_once(corpus):
    if not corpus.possible:
        return
    graph = Graph(corpus.offsets, corpus.parents, corpus.order)
    ranked = nbest(graph, corpus.scores, corpus.transitions, 10**4)
    for ours, structure in zip(ranked, corpus.structures(), strict=True):
        truth = dict(oracles.all_labelings(*structure))
        assert {tuple(labels.tolist()): score for labels, score in ours} == truth


@pytest.mark.parametrize("n", [1, 2, 5, 40, 300])
def test_few_candidates_kept_change_nothing(n):
    """A long chain has more candidates than needed; dropping them must not change the list."""
    rng = np.random.default_rng(n)
    graph = Graph([0, 400])
    scores, transitions = rng.normal(size=(400, 3)), rng.normal(size=(3, 3))
    ranked = nbest(graph, scores, transitions, n)[0]
    more = nbest(graph, scores, transitions, 1000)[0]
    assert [labels.tolist() for labels, _ in ranked] == [labels.tolist() for labels, _ in more[:n]]
    for labels, score in ranked:
        truth = oracles.labeling_score(graph.heads, scores, transitions, labels)
        np.testing.assert_allclose(score, truth, rtol=1e-12)


def test_n_must_be_positive():
    with pytest.raises(DataError, match="n=0"):
        nbest(Graph([0, 1]), np.zeros((1, 2)), np.zeros((2, 2)), 0)
