"""The best labeling other than a given one, against every labeling one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from fuda.inference import Graph
from fuda.inference.best_other import best_others


def most_violated(corpus, right, loss):
    graph = Graph(corpus.offsets, corpus.parents, corpus.order)
    labels, excess = np.empty(len(right), dtype=np.int64), np.empty(len(graph))
    forest = graph.forest((0, len(graph)))
    best_others(forest, corpus.transitions, corpus.scores.copy(), right, loss, labels, excess)
    return labels, excess


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 4),
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    chain=st.booleans(),
    integers=st.booleans(),
    best=st.booleans(),
    rescaled=st.booleans(),
)
def test_the_best_of_all_others(seed, size, lengths, chain, integers, best, rescaled):
    """Also where the given labeling is the best, and where many score alike."""
    rng = np.random.default_rng(seed)
    corpus = oracles.random_corpus(rng, lengths, size, chain=chain, integers=integers)
    right = rng.integers(0, size, corpus.offsets[-1])
    if best:
        tops = [oracles.all_labelings(*structure)[0][0] for structure in corpus.structures()]
        right = np.concatenate(tops).astype(np.int64)
    loss = rng.integers(0, 3, len(right)).astype(float) if rescaled else np.empty(0)
    labels, excess = most_violated(corpus, right, loss)
    for i, (parents, scores, transitions) in enumerate(corpus.structures()):
        nodes = slice(*corpus.offsets[i : i + 2])
        losses = loss[nodes] if rescaled else np.zeros(len(parents))

        def total(y, losses=losses, nodes=nodes, shape=(parents, scores, transitions)):
            return oracles.labeling_score(*shape, y) + losses @ (np.array(y) != right[nodes])

        every = [y for y, _ in oracles.all_labelings(parents, scores, transitions)]
        others = [y for y in every if rescaled or y != tuple(right[nodes])]
        if not others:
            assert excess[i] == -np.inf
            continue
        top = max(map(total, others)) - total(right[nodes])
        assert excess[i] == pytest.approx(top, abs=1e-9)
        assert tuple(labels[nodes]) in others
        assert total(labels[nodes]) - total(right[nodes]) == pytest.approx(top, abs=1e-9)


def test_where_all_score_alike_one_label_differs():
    corpus = oracles.random_corpus(np.random.default_rng(0), [5, 4], 3)
    corpus.scores[:], corpus.transitions[:] = 0.0, 0.0
    right = np.array([2, 1, 0, 2, 1, 0, 0, 1, 2])
    labels, excess = most_violated(corpus, right, np.empty(0))
    assert excess.tolist() == [0.0, 0.0]
    assert [(labels[nodes] != right[nodes]).sum() for nodes in (slice(0, 5), slice(5, 9))] == [1, 1]
