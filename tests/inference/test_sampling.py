from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

import oracles
from fuda.errors import DataError
from fuda.inference import Graph
from labelings import sample, score_labelings


@pytest.mark.parametrize(("chain", "own_matrices", "forbid"), [(True, False, 0.0), (False, True, 0.2)])
def test_frequencies_converge(chain, own_matrices, forbid):
    rng = np.random.default_rng(5)
    corpus = oracles.random_corpus(rng, [3, 4], 3, chain=chain, own_matrices=own_matrices, forbid=forbid)
    graph = Graph(corpus.offsets, corpus.parents, corpus.order)
    size = 40_000
    draws = sample(graph, corpus.scores, corpus.transitions, size, seed=0)
    assert draws.shape == (size, 7)
    assert draws.dtype == np.int32
    for i, structure in enumerate(corpus.structures()):
        samples = draws[:, corpus.offsets[i] : corpus.offsets[i + 1]]
        counts = Counter(map(tuple, samples.tolist()))
        log_z = oracles.log_partition(*structure)
        truth = {y: np.exp(score - log_z) for y, score in oracles.all_labelings(*structure)}
        assert set(counts) <= set(truth)
        for y, probability in truth.items():
            assert abs(counts[y] / size - probability) < 5 * np.sqrt(probability / size) + 1e-4


@settings(max_examples=60, deadline=None, derandomize=True)
@given(oracles.corpora())
def test_never_a_forbidden_labeling(corpus):
    graph = Graph(corpus.offsets, corpus.parents, corpus.order)
    if not corpus.possible:
        with pytest.raises(DataError, match="every labeling is forbidden"):
            sample(graph, corpus.scores, corpus.transitions, 1)
        return
    for labels in sample(graph, corpus.scores, corpus.transitions, 20, seed=1):
        assert (score_labelings(graph, corpus.scores, corpus.transitions, labels) > -np.inf).all()


def test_seeds():
    graph = Graph([0, 50])
    scores, transitions = np.zeros((50, 4)), np.zeros((4, 4))
    one, again, other = (sample(graph, scores, transitions, 3, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    by_generator = sample(graph, scores, transitions, 3, seed=np.random.default_rng(1))
    np.testing.assert_array_equal(one, by_generator)
    assert sample(graph, scores, transitions, 0, seed=1).shape == (0, 50)
    with pytest.raises(DataError, match="size=-1"):
        sample(graph, scores, transitions, -1)
