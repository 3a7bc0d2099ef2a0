from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import oracles
from fuda.errors import DataError
from fuda.inference import Graph, viterbi


@settings(max_examples=80, deadline=None, derandomize=True)
@given(oracles.corpora())
def test_equals_enumeration(corpus):
    graph = Graph(corpus.offsets, corpus.parents, corpus.order)
    if not corpus.possible:
        with pytest.raises(DataError, match="every labeling is forbidden"):
            viterbi(graph, corpus.scores, corpus.transitions)
        return
    labels, best = viterbi(graph, corpus.scores, corpus.transitions)
    assert labels.dtype == np.int32
    for i, structure in enumerate(corpus.structures()):
        _, truth = oracles.all_labelings(*structure)[0]
        score = oracles.labeling_score(*structure, labels[corpus.offsets[i] : corpus.offsets[i + 1]])
        np.testing.assert_allclose([best[i], score], truth, rtol=1e-13)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(oracles.corpora(integers=True))
def test_of_equal_labelings_the_first_parents_first(corpus):
    """Integer scores: sums are exact, so that ties are true ties."""
    if not corpus.possible:
        return
    labels, best = viterbi(
        Graph(corpus.offsets, corpus.parents, corpus.order), corpus.scores, corpus.transitions
    )
    for i, structure in enumerate(corpus.structures()):
        nodes = slice(corpus.offsets[i], corpus.offsets[i + 1])
        order = corpus.order[nodes] - corpus.offsets[i]
        ranked = oracles.all_labelings(*structure)
        first = min(tuple(np.array(y)[order]) for y, score in ranked if score == ranked[0][1])
        assert tuple(labels[nodes][order]) == first
        assert best[i] == ranked[0][1]


def test_all_equal_gives_the_smallest_labels():
    labels, _ = viterbi(Graph([0, 4]), np.zeros((4, 7)), np.zeros((7, 7)))
    assert labels.tolist() == [0, 0, 0, 0]
