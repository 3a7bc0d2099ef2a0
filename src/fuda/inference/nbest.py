"""The n best labelings of each structure, exactly, by deviations from better ones.

With v and m of the max-product recursion, label b at node t under the parent's label a costs the regret

    r_t(a, b) = m_t(a) − (A_t(a, b) + v_t(b)) ≥ 0,

and a labeling scores the best score minus the regrets of all its labels. Labels are chosen parents
first. Let y be a labeling and i the last place in that order where its label is not the best under its
parent's. The labelings that follow from y are, one for each place j ≥ i: y before j; at j the label
next to y_j in value, ties by label; best labels after j. Every labeling follows from exactly one other,
which scores no less: a heap yields them in order.

O(T L²) for v, then O(T L) for each labeling. The heap keeps no more candidates than can still be needed.
"""

from __future__ import annotations

import heapq
import operator

import numpy as np
from numba import njit

from fuda.errors import DataError
from fuda.inference.graph import Array, Graph, Problem, Tree
from fuda.inference.max_product import MaxProduct
from fuda.parallel import Block, run

_MOST = 2**62  # labelings asked for; leaves room for sums in 64 bits


@njit(cache=True, nogil=True)
def _value(tree: Tree, values: Array, labels: Array, t: int, b: int) -> float:
    """A_t(y_p, b) + v_t(b), y_p the label of t's parent in `labels`."""
    _, base, parents, matrices, stride = tree
    value = values[t - base, b]
    if parents[t] >= 0:
        value += matrices[t * stride, labels[parents[t] - base], b]
    return value


@njit(cache=True, nogil=True)
def _next(tree: Tree, values: Array, labels: Array, t: int, after: int) -> tuple[int, float]:
    """The label at t next to `after` in value (the best for −1), and its value; −1 if none is left."""
    bound = np.inf if after < 0 else _value(tree, values, labels, t, after)
    label = -1
    top = -np.inf
    for b in range(values.shape[1]):
        x = _value(tree, values, labels, t, b)
        if x > top and (x < bound or (x == bound and b > after)):
            label, top = b, x
    return label, top


@njit(cache=True, nogil=True)
def _grown(array: Array, size: int) -> Array:
    grown = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown


@njit(cache=True, nogil=True)
def _enumerate(tree: Tree, values: Array, n: int) -> tuple[Array, Array]:
    """At most n labelings of one structure, and their scores, best first."""
    nodes, base, parents, _, _ = tree
    labels = np.empty((1, len(nodes)), dtype=np.int32)
    scores = np.empty(1)
    best = 0.0
    for t in nodes:
        if parents[t] < 0:
            best += values[t - base].max()
    if best == -np.inf:
        return labels[:0], scores[:0]
    # A candidate: −score, the labeling it follows from, the place in the order, the label there.
    heap = [(-best, 0, 0, _next(tree, values, labels[0], nodes[0], -1)[0])]
    bound = np.inf  # of the costs that can still be needed
    found = 0
    while found < n and len(heap) > 0:
        cost, source, place, label = heapq.heappop(heap)
        if found == len(labels):
            labels = _grown(labels, min(2 * found, n))
            scores = _grown(scores, min(2 * found, n))
        scores[found] = -cost
        y = labels[found]
        y[:] = labels[source]
        for j in range(place, len(nodes)):
            t = nodes[j]
            if j > place:
                label, _ = _next(tree, values, y, t, -1)
            y[t - base] = label
            other, value = _next(tree, values, y, t, label)
            if other >= 0:
                total = cost + (_value(tree, values, y, t, label) - value)
                if total <= bound:
                    heapq.heappush(heap, (total, found, j, other))
        found += 1
        needed = n - found
        if needed > 0 and len(heap) > 2 * needed + len(nodes):
            heap.sort()
            heap = heap[:needed]
            bound = heap[-1][0]
    return labels[:found], scores[:found]


def nbest(
    graph: Graph, scores: Array, transitions: Array, n: int, n_jobs: int | None = None
) -> list[list[tuple[Array, float]]]:
    """For each structure its n best labelings, each with its score F, best first; all, where there are fewer.

    The first is the one that ``viterbi`` finds. Forbidden labelings are not listed.

    >>> found = nbest(Graph([0, 2]), [[1.0, 0.0], [0.0, 2.0]], [[0.0, 0.5], [0.0, 0.0]], n=3)
    >>> [(labels.tolist(), score) for labels, score in found[0]]
    [([0, 1], 3.5), ([1, 1], 2.0), ([0, 0], 1.0)]
    """
    n = min(operator.index(n), _MOST)
    if n < 1:
        raise DataError(f"n={n}: give the number of labelings wanted, at least 1")
    problem = Problem(graph, scores, transitions)
    max_product = MaxProduct(problem)

    def solve(block: Block) -> list[list[tuple[Array, float]]]:
        values = max_product.values(block)
        first_node = graph.nodes(block).start
        found = []
        for structure in range(*block):
            nodes = graph.nodes((structure, structure + 1))
            own = values[nodes.start - first_node : nodes.stop - first_node]
            labels, best = _enumerate(problem.tree(structure), own, n)
            problem.check_possible((structure, structure + 1), best.max(initial=-np.inf, keepdims=True))
            found.append(list(zip(labels, best.tolist(), strict=True)))
        return found

    return [one for part in run(solve, problem.blocks(), n_jobs) for one in part]
