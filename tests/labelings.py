"""Labelings drawn from P(y) ∝ exp F(y), and scores of given labelings, for tests of inference.

Samples are exact: filter up, sample down.

With β from the sum-product recursion, a labeling is drawn parents before children:

    P(y_root = b) ∝ β_root(b),    P(y_t = b | y_p = a) ∝ exp A_t(a, b) β_t(b)
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from fuda.data.graph import Array, Graph
from fuda.errors import DataError
from fuda.inference.graph import ScoredGraph, TreeTask
from fuda.inference.sum_product import log_up
from fuda.parallel import Block, run


@njit(cache=True, nogil=True)
def _down(tree: TreeTask, log_inside: Array, uniforms: Array, labels: Array) -> None:
    """One labeling per row of `labels`, inverting summed weights at a uniform number per node."""
    nodes, base, parents, matrices, stride = tree
    size = log_inside.shape[1]
    weights = np.empty(size)
    for k in range(len(labels)):
        for t in nodes:
            parent = parents[t]
            top = -np.inf
            for b in range(size):
                x = log_inside[t - base, b]
                if parent >= 0:
                    x += matrices[t * stride, labels[k, parent], b]
                weights[b] = x
                top = max(top, x)
            total = 0.0
            for b in range(size):
                total += math.exp(weights[b] - top)
                weights[b] = total
            # Below total, so that the label found has a weight above zero.
            target = uniforms[k, t - base] * total
            label = 0
            while weights[label] <= target:
                label += 1
            labels[k, t] = label


def sample(
    graph: Graph,
    scores: Array,
    transitions: Array,
    size: int,
    seed: int | np.random.Generator | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Array:
    """(size, N) labelings drawn independently from P(y) ∝ exp F(y), determined by the seed.

    >>> transitions = [[0.0, -np.inf], [-np.inf, 0.0]]
    >>> draws = sample(Graph([0, 2]), np.zeros((2, 2)), transitions, size=1000, seed=0)
    >>> bool((draws[:, 0] == draws[:, 1]).all()), 400 < int(draws[:, 0].sum()) < 600
    (True, True)
    """
    scored = ScoredGraph(graph, scores, transitions)
    if size < 0:
        raise DataError(f"size={size}: the number of samples cannot be negative")
    labels = np.empty((size, graph.node_count), dtype=np.int32)
    uniforms = np.random.default_rng(seed).random((size, graph.node_count))

    def solve(block: Block) -> None:
        scored.check(block)
        for structure in range(*block):
            tree = scored.tree(structure)
            nodes = graph.nodes((structure, structure + 1))
            log_inside = scored.scores[nodes].copy()
            total = log_up(tree, log_inside)
            scored.check_possible((structure, structure + 1), np.array([total]))
            _down(tree, log_inside, uniforms[:, nodes], labels)

    run(solve, scored.blocks(), n_jobs)
    return labels


def score_labelings(graph: Graph, scores: Array, transitions: Array, labels: Array) -> Array:
    """(n,) the score F of one labeling of each structure; ``labels`` (N,) are label numbers.

    >>> scores, transitions = [[1.0, 0.0], [0.0, 2.0]], [[0.0, 0.5], [0.0, 0.0]]
    >>> score_labelings(Graph([0, 2]), scores, transitions, [0, 1]).tolist()
    [3.5]
    """
    scored = ScoredGraph(graph, scores, transitions)
    labels = np.asarray(labels)
    if labels.shape != (graph.node_count,) or labels.dtype.kind not in "iu":
        raise DataError(f"labels need one integer a node, {graph.node_count} in all")
    bad = (labels < 0) | (labels >= scored.label_count)
    if bad.any():
        node = int(bad.argmax())
        raise DataError(
            f"{graph.place(node)}: there is no label {labels[node]}; "
            f"labels go from 0 to {scored.label_count - 1}"
        )
    if len(graph) == 0:
        return np.zeros(0)
    for block in scored.blocks():
        scored.check(block)
    total = scored.scores[np.arange(graph.node_count), labels]
    children = np.flatnonzero(graph.heads >= 0)
    matrix = 0 if scored.shared else children
    total[children] += scored.matrices[matrix, labels[graph.heads[children]], labels[children]]
    return np.add.reduceat(total, graph.offsets[:-1])
