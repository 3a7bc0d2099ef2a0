from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import oracles
from fuda.errors import DataError
from fuda.inference import Graph, expectations, log_partition, marginals
from fuda.inference import sum_product as module

# Even tiny probabilities are right to about the rounding of the largest score, down to the
# smallest doubles.
TOLERANCE = {"rtol": 1e-9, "atol": 1e-280}


def graph_of(corpus: oracles.RandomCorpus) -> Graph:
    return Graph(corpus.offsets, corpus.parents, corpus.order)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(oracles.corpora())
def test_equals_enumeration(corpus):
    graph = graph_of(corpus)
    if not corpus.possible:
        for function in (log_partition, marginals):
            with pytest.raises(DataError, match="every labeling is forbidden"):
                function(graph, corpus.scores, corpus.transitions)
        return
    log_z, node, edge = marginals(graph, corpus.scores, corpus.transitions, edges=True)
    truth = [oracles.marginals(*structure) for structure in corpus.structures()]
    np.testing.assert_allclose(
        log_z, [oracles.log_partition(*structure) for structure in corpus.structures()], **TOLERANCE
    )
    np.testing.assert_allclose(node, np.concatenate([node for node, _ in truth]), **TOLERANCE)
    np.testing.assert_allclose(edge, np.concatenate([edge for _, edge in truth]), **TOLERANCE)
    assert (edge[corpus.parents < 0] == 0).all()
    assert (node[corpus.scores == -np.inf] == 0).all()
    np.testing.assert_array_equal(log_partition(graph, corpus.scores, corpus.transitions), log_z)
    np.testing.assert_array_equal(marginals(graph, corpus.scores, corpus.transitions)[1], node)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(oracles.corpora())
def test_expectations_are_weighted_sums_of_edges(corpus):
    graph = graph_of(corpus)
    if not corpus.possible:
        return
    if corpus.transitions.ndim == 3:
        with pytest.raises(DataError, match="one \\(L, L\\) matrix"):
            expectations(graph, corpus.scores, corpus.transitions)
        return
    log_z, node, edge = marginals(graph, corpus.scores, corpus.transitions, edges=True)
    weights = np.arange(len(graph)) + 0.5
    for given_weights, by_node in (
        (None, 1.0),
        (weights, np.repeat(weights, np.diff(corpus.offsets))[:, None, None]),
    ):
        ours = expectations(graph, corpus.scores, corpus.transitions, given_weights)
        np.testing.assert_array_equal(ours[0], log_z)
        np.testing.assert_array_equal(ours[1], node)
        np.testing.assert_allclose(ours[2], (by_node * edge).sum(axis=0), rtol=1e-12, atol=1e-12)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(oracles.corpora())
def test_scaled_and_logarithmic_kernels_agree(corpus):
    if not corpus.possible:
        return
    arguments = (graph_of(corpus), corpus.scores, corpus.transitions)
    usual = marginals(*arguments, edges=True)
    with pytest.MonkeyPatch.context() as patch:

        def unsafe(self, block, pairs, scaled=module._SumProduct._solve_scaled):
            return np.zeros_like(scaled(self, block, pairs))

        patch.setattr(module._SumProduct, "_solve_scaled", unsafe)
        logarithmic = marginals(*arguments, edges=True)
    for a, b in zip(usual, logarithmic, strict=True):
        np.testing.assert_allclose(a, b, **TOLERANCE)


def test_forbidden_labels_and_pairs_stay_on_the_scaled_path(monkeypatch):
    """Constraints are common: they must not cost the logarithmic kernels."""
    rng = np.random.default_rng(0)
    corpus = oracles.random_corpus(rng, [6] * 20, 4, chain=True)
    corpus.transitions[0, 2] = corpus.transitions[3, 1] = -np.inf
    corpus.scores[::6, 3] = -np.inf
    expected = marginals(graph_of(corpus), corpus.scores, corpus.transitions)
    monkeypatch.delattr(module, "log_up")
    ours = marginals(graph_of(corpus), corpus.scores, corpus.transitions)
    np.testing.assert_array_equal(ours[1], expected[1])


@pytest.mark.parametrize("gap", [200.0, 229.0, 231.0, 400.0, 800.0, 1e4])
def test_a_label_far_below_may_still_decide(gap):
    """The only way on is a label whose score is lower by `gap`: its mass must not be lost."""
    scores = np.array([[0.0, -gap], [0.0, 0.0], [0.0, -gap]])
    transitions = np.array([[-np.inf, -np.inf], [0.0, -gap]])
    log_z, node, edge = marginals(Graph([0, 3]), scores, transitions, edges=True)
    truth_node, truth_edge = oracles.marginals([-1, 0, 1], scores, transitions)
    np.testing.assert_allclose(log_z, [oracles.log_partition([-1, 0, 1], scores, transitions)], rtol=1e-14)
    np.testing.assert_allclose(node, truth_node, rtol=1e-10)
    np.testing.assert_allclose(edge, truth_edge, rtol=1e-10)


def test_one_label():
    graph = Graph([0, 2, 5])
    log_z, node, edge = marginals(graph, np.arange(5.0)[:, None], np.full((1, 1), 0.5), edges=True)
    assert log_z.tolist() == [1.5, 10.0]
    assert (node == 1).all()
    assert edge[:, 0, 0].tolist() == [0, 1, 0, 1, 1]


def test_no_structures():
    log_z, node, edge = marginals(Graph([0]), np.zeros((0, 3)), np.zeros((3, 3)), edges=True)
    assert log_z.shape == (0,)
    assert node.shape == (0, 3)
    assert edge.shape == (0, 3, 3)


def test_names_the_impossible_structure():
    scores = np.zeros((5, 2))
    scores[3] = -np.inf
    with pytest.raises(DataError, match="structure 1: every labeling is forbidden"):
        marginals(Graph([0, 2, 5]), scores, np.zeros((2, 2)))


def test_weights_are_checked():
    with pytest.raises(DataError, match=r"need the shape \(1,\)"):
        expectations(Graph([0, 2]), np.zeros((2, 2)), np.zeros((2, 2)), weights=np.ones(2))


def test_arguments_are_left_alone_and_may_be_read_only():
    rng = np.random.default_rng(1)
    corpus = oracles.random_corpus(rng, [4, 3], 3)
    scores, transitions = corpus.scores.copy(), corpus.transitions.copy()
    expected = marginals(graph_of(corpus), scores, transitions)[1]
    assert (scores == corpus.scores).all()
    assert (transitions == corpus.transitions).all()
    scores.flags.writeable = transitions.flags.writeable = False
    np.testing.assert_array_equal(marginals(graph_of(corpus), scores, transitions)[1], expected)
