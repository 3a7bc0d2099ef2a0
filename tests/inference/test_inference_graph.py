from __future__ import annotations

import numpy as np
import pytest

from fuda.errors import DataError
from fuda.inference import Graph, log_partition, marginals, nbest, viterbi

EVERY = [
    log_partition,
    marginals,
    viterbi,
    lambda *arguments: nbest(*arguments, n=2),
]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2],), "the first 0"),
        (([],), "the first 0"),
        (([0, 2, 2],), "structure 1 has no node"),
        (([0, 2, 3], [-1, 0]), "one entry per node, 3 in all"),
        (([0, 2, 3], [-1, 0, 1]), "structure 1, node 0: its parent is outside its structure"),
        (([0, 2], [-1, 2]), "structure 0, node 1: its parent is outside"),
        (([0, 2], [-2, 0]), "structure 0, node 0: its parent is outside"),
        (([0, 2], [1, -1]), "structure 0, node 0: order must list a parent before its children"),
        (([0, 2], [1, -1], [0, 1]), "a parent before its children"),
        (([0, 2], [0, -1]), "structure 0, node 0: order must list a parent before"),
        (([0, 2], [-1, 0], [0, 0]), "every node of the corpus once"),
        (([0, 1, 2], [-1, -1], [1, 0]), "structure by structure"),
    ],
)
def test_bad_graphs(arguments, message):
    with pytest.raises(DataError, match=message):
        Graph(*arguments)


def test_a_tree_numbered_backwards():
    graph = Graph([0, 3], [1, 2, -1], [2, 1, 0])
    assert graph.order.tolist() == [2, 1, 0]


@pytest.mark.parametrize("function", EVERY)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_scores_are_named(function, bad):
    graph = Graph([0, 2, 5])
    scores = np.zeros((5, 3))
    scores[4, 1] = bad
    with pytest.raises(DataError, match=f"structure 1, node 2: the score of label 1 is {bad}"):
        function(graph, scores, np.zeros((3, 3)))
    shared = np.zeros((3, 3))
    shared[2, 0] = bad
    with pytest.raises(DataError, match=f"^the transition between labels 2 and 0 is {bad}"):
        function(graph, np.zeros((5, 3)), shared)
    matrices = np.zeros((5, 3, 3))
    matrices[3, 1, 2] = bad
    with pytest.raises(
        DataError, match=f"structure 1, node 1: the transition between labels 1 and 2 is {bad}"
    ):
        function(graph, np.zeros((5, 3)), matrices)


@pytest.mark.parametrize("function", EVERY)
@pytest.mark.parametrize("offsets", [[0, 2, 5], [0, 1]])
def test_transitions_into_roots_are_not_read(function, offsets):
    graph = Graph(offsets)
    rng = np.random.default_rng(0)
    scores, matrices = rng.normal(size=(graph.node_count, 3)), rng.normal(size=(graph.node_count, 3, 3))
    expected = function(graph, scores, matrices)
    matrices[graph.heads < 0] = np.nan
    np.testing.assert_equal(function(graph, scores, matrices), expected)


@pytest.mark.parametrize("function", EVERY)
@pytest.mark.parametrize(
    ("scores", "transitions", "message"),
    [
        ((4, 3), (3, 3), r"scores need the shape \(5, labels\), but have \(4, 3\)"),
        ((5,), (3, 3), "scores need the shape"),
        ((5, 0), (0, 0), "scores need the shape"),
        ((5, 3), (2, 2), r"transitions need the shape \(3, 3\) or \(5, 3, 3\), but have \(2, 2\)"),
        ((5, 3), (4, 3, 3), "transitions need the shape"),
    ],
)
def test_bad_shapes(function, scores, transitions, message):
    with pytest.raises(DataError, match=message):
        function(Graph([0, 2, 5]), np.zeros(scores), np.zeros(transitions))
