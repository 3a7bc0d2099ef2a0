"""Scores of given labelings, for tests of inference."""

from __future__ import annotations

import numpy as np

from fuda.data.graph import Array, Graph


def score_labelings(graph: Graph, scores: Array, transitions: Array, labels: Array) -> Array:
    """(n,) the score F of one labeling of each structure; ``labels`` (N,) are label numbers.

    >>> scores, transitions = [[1.0, 0.0], [0.0, 2.0]], [[0.0, 0.5], [0.0, 0.0]]
    >>> score_labelings(Graph([0, 2]), scores, transitions, [0, 1]).tolist()
    [3.5]
    """
    scores, transitions, labels = np.asarray(scores), np.asarray(transitions), np.asarray(labels)
    total = scores[np.arange(graph.node_count), labels]
    children = np.flatnonzero(graph.heads >= 0)
    pairs = labels[graph.heads[children]], labels[children]
    total[children] += transitions[pairs] if transitions.ndim == 2 else transitions[children, *pairs]
    return np.add.reduceat(total, graph.offsets[:-1])
