"""The gradient of the pointwise loss on trees against conditioning on one label at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oracles
from fuda import inference
from fuda.inference.pointwise import spread_evidence


def spread(corpus, labels, weights):
    """Gradients of L₀ by nodes and by edges, and the marginals."""
    graph = inference.Graph(corpus.offsets, corpus.parents, corpus.order)
    _, node, edge = inference.marginals(graph, corpus.scores, corpus.transitions, edges=True)
    gradient, edge_gradient = np.full_like(node, np.nan), edge.copy()
    spread_evidence(graph.forest((0, len(graph))), len(graph), labels, weights, node, edge_gradient, gradient)
    return gradient, edge_gradient, node, edge


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.5, 3.0, 20.0]),
)
def test_conditioning_on_each_label(seed, lengths, size, chain, matrix_per_edge, scale):
    random = np.random.default_rng(seed)
    corpus = oracles.random_corpus(
        random, lengths, size, chain=chain, matrix_per_edge=matrix_per_edge, scale=scale
    )
    labels = random.integers(size, size=corpus.offsets[-1])
    weights = random.choice([0.0, 1.0, 2.5], size=corpus.offsets[-1])
    labels[weights == 0] = -1  # not looked at
    gradient, edge_gradient, _, _ = spread(corpus, labels, weights)
    for first, (parents, scores, transitions) in zip(corpus.offsets, corpus.structures(), strict=False):
        node, edge = oracles.marginals(parents, scores, transitions)
        expected, expected_edge = np.zeros_like(node), np.zeros_like(edge)
        for t in range(len(parents)):
            if weights[first + t]:
                known = scores.copy()
                known[t] = -np.inf
                known[t, labels[first + t]] = scores[t, labels[first + t]]
                given_node, given_edge = oracles.marginals(parents, known, transitions)
                expected += weights[first + t] * (node - given_node)
                expected_edge += weights[first + t] * (edge - given_edge)
        nodes = slice(first, first + len(parents))
        np.testing.assert_allclose(gradient[nodes], expected, atol=1e-11)
        np.testing.assert_allclose(edge_gradient[nodes], expected_edge, atol=1e-11)


def test_no_weight_no_gradient():
    corpus = oracles.random_corpus(np.random.default_rng(0), [4, 2], 3)
    gradient, edge_gradient, _, _ = spread(corpus, np.zeros(6, dtype=np.int64), np.zeros(6))
    assert not gradient.any()
    assert not edge_gradient.any()


def test_gradients_sum_to_nothing():
    """To raise all scores of a node alike changes nothing, on a tree of two thousand nodes too."""
    random = np.random.default_rng(1)
    corpus = oracles.random_corpus(random, [2000], 4, scale=3.0)
    labels, weights = random.integers(4, size=2000), random.random(2000)
    gradient, edge_gradient, node, _ = spread(corpus, labels, weights)
    np.testing.assert_allclose(gradient.sum(axis=1), 0.0, atol=1e-9)
    np.testing.assert_allclose(edge_gradient.sum(axis=(1, 2)), 0.0, atol=1e-9)
    assert np.isfinite(gradient).all()
    children = np.flatnonzero(corpus.parents >= 0)
    np.testing.assert_allclose(edge_gradient[children].sum(axis=1), gradient[children], atol=1e-9)
    assert np.isfinite(node).all()


def test_labels_that_cannot_be():
    """Labels of probability zero carry nothing on, and divide nothing."""
    corpus = oracles.random_corpus(np.random.default_rng(3), [6], 3)
    corpus.scores[:, 2] = -np.inf
    gradient, edge_gradient, _, _ = spread(corpus, np.zeros(6, dtype=np.int64), np.ones(6))
    assert np.isfinite(gradient).all()
    assert not gradient[:, 2].any()
    assert not edge_gradient[:, 2].any()
