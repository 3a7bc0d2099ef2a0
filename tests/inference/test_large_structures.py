"""What enumeration cannot reach: long chains, deep trees, stars, many labels, threads."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import oracles
from fuda.inference import (
    Graph,
    expectations,
    log_partition,
    marginals,
    nbest,
    viterbi,
)

NODES = 100_000
CHAIN = Graph([0, NODES])
SHAPES = {
    "chain": CHAIN,
    "chain as a tree": Graph([0, NODES], np.arange(NODES) - 1, np.arange(NODES)),
    "backward chain": Graph([0, NODES], np.r_[np.arange(1, NODES), -1], np.arange(NODES)[::-1]),
    "star": Graph([0, NODES], np.r_[-1, np.zeros(NODES - 1, dtype=int)]),
    "binary tree": Graph([0, NODES], (np.arange(NODES) + 1) // 2 - 1),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_hundred_thousand_nodes(shape, scale):
    graph = SHAPES[shape]
    rng = np.random.default_rng(0)
    scores = rng.uniform(-scale, scale, (NODES, 2))
    transitions = rng.uniform(-scale, scale, (2, 2))
    log_z, node, edge = marginals(graph, scores, transitions, edges=True)
    labels, best = viterbi(graph, scores, transitions)
    assert np.isfinite(log_z).all()
    np.testing.assert_allclose(node.sum(axis=1), 1, atol=1e-10)
    child = graph.heads >= 0
    np.testing.assert_allclose(edge[child].sum(axis=1), node[child], atol=1e-10)
    np.testing.assert_allclose(edge[child].sum(axis=2), node[graph.heads[child]], atol=1e-10)
    score = oracles.labeling_score(graph.heads, scores, transitions, labels)
    np.testing.assert_allclose(score, best[0], rtol=1e-10)
    assert best[0] <= log_z[0] <= best[0] + NODES * np.log(2)
    if scale == 1e4:  # all mass lies on few labelings
        np.testing.assert_allclose(log_z, best, rtol=1e-6)
    ranked = nbest(graph, scores, transitions, 3)[0]
    assert ranked[0][1] == pytest.approx(best[0], rel=1e-10)
    assert len({labels.tobytes() for labels, _ in ranked}) == 3


@pytest.mark.parametrize("shape", ["chain", "star", "binary tree"])
def test_independent_nodes_have_a_known_answer(shape):
    """Without transitions log Z is a sum over nodes and the marginals are softmax rows."""
    scores = np.random.default_rng(1).normal(size=(NODES, 3))
    log_z, node = marginals(SHAPES[shape], scores, np.zeros((3, 3)))
    weights = np.exp(scores)
    np.testing.assert_allclose(log_z, np.log(weights.sum(axis=1)).sum(), rtol=1e-12)
    np.testing.assert_allclose(node, weights / weights.sum(axis=1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("size", [1, 2, 9, 300])
def test_a_chain_is_a_tree(scale, size):
    corpus = oracles.random_corpus(
        np.random.default_rng(2), [1, 7, 2, 5], size, chain=True, scale=scale, forbid=0.05
    )
    chain, tree = Graph(corpus.offsets), Graph(corpus.offsets, corpus.parents, corpus.order)
    corpus.scores[corpus.scores == -np.inf] = 0.0 if size == 1 else -np.inf
    corpus.transitions[corpus.transitions == -np.inf] = 0.0 if size == 1 else -np.inf
    arguments = (corpus.scores, corpus.transitions)
    for a, b in zip(
        marginals(chain, *arguments, edges=True), marginals(tree, *arguments, edges=True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(viterbi(chain, *arguments)[0], viterbi(tree, *arguments)[0])


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("size", [3, 300])
def test_shared_transitions_are_those_of_every_edge(scale, size):
    corpus = oracles.random_corpus(np.random.default_rng(3), [4, 1, 6], size, scale=scale)
    graph = Graph(corpus.offsets, corpus.parents, corpus.order)
    matrices = np.repeat(corpus.transitions[None], graph.node_count, axis=0)
    for a, b in zip(
        marginals(graph, corpus.scores, corpus.transitions, edges=True),
        marginals(graph, corpus.scores, matrices, edges=True),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    for a, b in zip(
        viterbi(graph, corpus.scores, corpus.transitions),
        viterbi(graph, corpus.scores, matrices),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_many_labels_against_a_plain_recursion():
    rng = np.random.default_rng(4)
    scores, transitions = rng.normal(size=(5, 300)), rng.normal(size=(300, 300))
    forward = scores[0]
    best = scores[0]
    for row in scores[1:]:
        forward = row + np.logaddexp.reduce(forward[:, None] + transitions, axis=0)
        best = row + (best[:, None] + transitions).max(axis=0)
    graph = Graph([0, 5])
    np.testing.assert_allclose(
        log_partition(graph, scores, transitions), np.logaddexp.reduce(forward), rtol=1e-13
    )
    np.testing.assert_allclose(viterbi(graph, scores, transitions)[1], best.max(), rtol=1e-13)
    _, node, edge = marginals(graph, scores, transitions, edges=True)
    np.testing.assert_allclose(edge[1:].sum(axis=2), node[:-1], atol=1e-13)


def everything(corpus: oracles.RandomCorpus, n_jobs: int) -> list[np.ndarray]:
    graph = Graph(corpus.offsets, corpus.parents, corpus.order)
    arguments = (graph, corpus.scores, corpus.transitions)
    lists = nbest(*arguments, 2, n_jobs=n_jobs)
    return [
        log_partition(*arguments, n_jobs=n_jobs),
        *marginals(*arguments, edges=True, n_jobs=n_jobs),
        *expectations(*arguments, n_jobs=n_jobs),
        *viterbi(*arguments, n_jobs=n_jobs),
        np.concatenate([labels for ranked in lists for labels, _ in ranked]),
    ]


@pytest.fixture(scope="module")
def many_blocks() -> oracles.RandomCorpus:
    rng = np.random.default_rng(6)
    corpus = oracles.random_corpus(rng, rng.integers(1, 60, 1000).tolist(), 20)
    corpus.scores[::997, 0] = 1e4  # some structures on the logarithmic path
    return corpus


@pytest.mark.slow
def test_threads_change_no_bit(many_blocks):
    one = everything(many_blocks, 1)
    for other in (everything(many_blocks, 2), everything(many_blocks, 5)):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_calls_from_several_threads(many_blocks):
    expected = everything(many_blocks, 1)
    results: dict[int, list[np.ndarray]] = {}

    def work(k: int) -> None:
        results[k] = everything(many_blocks, 2)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        for a, b in zip(expected, results[k], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # forking with threads is what is tested
def test_after_a_fork(many_blocks):
    graph = Graph(many_blocks.offsets, many_blocks.parents, many_blocks.order)
    expected = log_partition(graph, many_blocks.scores, many_blocks.transitions, n_jobs=2)
    child = os.fork()
    if child == 0:
        ours = log_partition(graph, many_blocks.scores, many_blocks.transitions, n_jobs=2)
        os._exit(0 if np.array_equal(ours, expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
