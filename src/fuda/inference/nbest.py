"""The n best labelings of each structure, exactly, by deviations from better ones.

With v and m of the max-product recursion, label b at node t under the parent's label a has the
regret

    r_t(a, b) = m_t(a) − (A_t(a, b) + v_t(b)) ≥ 0,

and a labeling scores the best score minus the regrets of all its labels. Labels are chosen parents
first. Let y be a labeling and i the last place in that order where its label is not the best under
its parent's. The successors of y are, one for each place j ≥ i: y before j; at j the label next to
y_j in value, ties by label; best labels after j. Every labeling is the successor of exactly one
other, which scores no less: a heap returns them in order.

O(T L²) for v, then O(T L) per labeling. The heap keeps no more candidates than can still be
needed.
"""

from __future__ import annotations

import heapq
import operator

import numpy as np

from fuda.data.graph import Array, Graph
from fuda.errors import DataError
from fuda.inference.graph import ScoredGraph, TreeTask
from fuda.inference.max_product import MaxProduct
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import Block, run

_LARGEST_N = 2**60  # the largest n; sums of such numbers fit into 64 bits


@compiled
def _fill_choices(tree: TreeTask, values: Array, labels: Array, t: int, choices: Array) -> None:
    """choices(b) = A_t(y_p, b) + v_t(b), where y_p is the label of t's parent in `labels`."""
    _, base, parents, matrices, stride = tree
    for b in range(len(choices)):
        choices[b] = values[t - base, b]
        if parents[t] >= 0:
            choices[b] += matrices[t * stride, labels[parents[t] - base], b]


@compiled
def _next(choices: Array, after: int) -> int:
    """The label next to `after` in value, ties by label; the best for −1; −1 if none is left."""
    bound = np.inf if after < 0 else choices[after]
    label, top = -1, -np.inf
    for b in range(len(choices)):
        if choices[b] > top and (choices[b] < bound or (choices[b] == bound and b > after)):
            label, top = b, choices[b]
    return label


@compiled
def _grown(array: Array, size: int) -> Array:
    """A copy with `size` rows, those beyond the given ones undefined."""
    grown = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    old, new = array.reshape(-1), grown.reshape(-1)
    for i in range(len(old)):
        new[i] = old[i]
    return grown


@compiled
def _enumerate(tree: TreeTask, values: Array, n: int) -> tuple[Array, Array]:
    """At most n labelings of one structure, and their scores, best first."""
    nodes, base, parents, _, _ = tree
    labels = np.empty((1, len(nodes)), dtype=np.int32)  # grown as labelings are found
    scores = np.empty(1)
    choices = np.empty(values.shape[1])
    best = 0.0
    for t in nodes:
        if parents[t] < 0:
            best += values[t - base].max()
    if best == -np.inf:
        return labels[:0], scores[:0]
    # A candidate: −score, the labeling it succeeds, the place in the order, the label there.
    heap = [(-best, 0, 0, _next(values[nodes[0] - base], -1))]
    bound = np.inf  # on the costs that can still be needed
    count = 0
    while count < n and len(heap) > 0:
        cost, source, place, label = heapq.heappop(heap)
        if count == len(labels):
            labels = _grown(labels, min(2 * count, n))
            scores = _grown(scores, min(2 * count, n))
        scores[count] = -cost
        needed = n - count - 1
        y = labels[count]
        for j in range(len(y)):
            y[j] = labels[source, j]
        for j in range(place, len(nodes)):
            t = nodes[j]
            _fill_choices(tree, values, y, t, choices)
            if j > place:
                label = _next(choices, -1)
            y[t - base] = label
            other = _next(choices, label) if needed > 0 else -1
            if other >= 0 and cost + (choices[label] - choices[other]) <= bound:
                heapq.heappush(heap, (cost + (choices[label] - choices[other]), count, j, other))
        count += 1
        if needed > 0 and len(heap) > 2 * needed + len(nodes):
            heap = [heapq.heappop(heap) for _ in range(needed)]
            bound = heap[-1][0]
    return labels[:count], scores[:count]


def nbest(
    graph: Graph, scores: Array, transitions: Array, n: int, n_jobs: int | None = None
) -> list[list[tuple[Array, float]]]:
    """Find the n best labelings of each structure.

    Parameters
    ----------
    graph : Graph
        The structures of a corpus.
    scores : (N, L) array
        The score of each label at each node; −inf forbids a label.
    transitions : (L, L) or (N, L, L) array
        The scores of label pairs along edges, for all edges or for the edge into each node.
    n : int
        The number of labelings, at least 1.
    n_jobs : int or None
        The number of threads; None is all cores.

    Returns
    -------
    list of lists of (array, float)
        For each structure its labelings with their scores F, best first; fewer than n where there
        are fewer. The first is that of ``viterbi``. Forbidden labelings are not listed.

    Examples
    --------
    >>> found = nbest(Graph([0, 2]), [[1.0, 0.0], [0.0, 2.0]], [[0.0, 0.5], [0.0, 0.0]], n=3)
    >>> [(labels.tolist(), score) for labels, score in found[0]]
    [([0, 1], 3.5), ([1, 1], 2.0), ([0, 0], 1.0)]
    """
    n = min(operator.index(n), _LARGEST_N)
    if n < 1:
        raise DataError(f"n={n}: give the number of labelings, at least 1")
    scored = ScoredGraph(graph, scores, transitions)
    max_product = MaxProduct(scored)

    def solve(block: Block) -> list[list[tuple[Array, float]]]:
        values = max_product.values(block)
        first_node = graph.nodes(block).start
        listed = []
        for structure in range(*block):
            nodes = graph.nodes((structure, structure + 1))
            part = values[nodes.start - first_node : nodes.stop - first_node]
            labels, best = _enumerate(scored.tree(structure), part, n)
            scored.check_possible((structure, structure + 1), best.max(initial=-np.inf, keepdims=True))
            listed.append(list(zip(labels, best.tolist(), strict=True)))
        return listed

    return [labelings for part in run(solve, scored.blocks(), n_jobs) for labelings in part]
