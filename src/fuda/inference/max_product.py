"""Max-product (Viterbi): the best labeling of each structure.

Up, children before parents, then down, parents before children:

    v_t(b) = s_t(b) + Σ_{children c} m_c(b),    m_t(a) = max_b A_t(a, b) + v_t(b)
    y_root = argmax_b v_root(b),                y_t = argmax_b A_t(y_p, b) + v_t(b)

Of equal values argmax chooses the smallest label. So of several best labelings the result is the
lexicographically first one, nodes read parents first; a chain and the same chain represented as a
tree have the same result.
"""

from __future__ import annotations

import numpy as np

from fuda.data.graph import Array, Forest, Graph
from fuda.inference.graph import ScoredGraph
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import Block, run


@compiled
def maximize(transposed: Array, vector: Array, out: Array) -> None:
    """Compute out(a) = max_b transposed(b, a) + vector(b), for four b at once.

    A loop over a vectorises, a maximum over b would not: hence the transpose.
    """
    size = len(vector)
    odd = size % 4
    out[:] = -np.inf
    for b in range(odd):
        v = vector[b]
        for a in range(size):
            x = transposed[b, a] + v
            out[a] = x if x > out[a] else out[a]
    for b in range(odd, size, 4):
        v0, v1, v2, v3 = vector[b], vector[b + 1], vector[b + 2], vector[b + 3]
        for a in range(size):
            x0, x1 = transposed[b, a] + v0, transposed[b + 1, a] + v1
            x2, x3 = transposed[b + 2, a] + v2, transposed[b + 3, a] + v3
            x0 = x0 if x0 > x1 else x1
            x2 = x2 if x2 > x3 else x3
            x0 = x0 if x0 > x2 else x2
            out[a] = x0 if x0 > out[a] else out[a]


@compiled
def pass_up(nodes: Array, base: int, parents: Array, transposed: Array, stride: int, values: Array) -> None:
    """Replace s by v in `values`, whose rows count from node `base`."""
    message = np.empty(values.shape[1])
    for j in range(len(nodes) - 1, -1, -1):
        t = nodes[j]
        if parents[t] >= 0:
            maximize(transposed[(t - base) * stride], values[t - base], message)
            above = values[parents[t] - base]
            for a in range(len(message)):
                above[a] += message[a]


@compiled
def _down(forest: Forest, matrices: Array, stride: int, values: Array, labels: Array, best: Array) -> None:
    """The best labels, and the sum of the values of the best root labels, into `best`."""
    first, offsets, parents, order = forest
    base = offsets[first]
    for i in range(len(best)):
        for j in range(offsets[first + i], offsets[first + i + 1]):
            t = order[j]
            parent = parents[t]
            label, top = 0, -np.inf
            for b in range(values.shape[1]):
                x = values[t - base, b]
                if parent >= 0:
                    x += matrices[t * stride, labels[parent], b]
                if x > top:
                    label, top = b, x
            labels[t] = label
            if parent < 0:
                best[i] += top


class MaxProduct:
    """The values v of a graph, block by block.

    Parameters
    ----------
    scored : ScoredGraph
        Graph and scores.
    """

    def __init__(self, scored: ScoredGraph) -> None:
        self.scored = scored
        self._shared = _transpose(scored.matrices) if scored.shared else None

    def values(self, block: Block) -> Array:
        """Return v (nodes of the block, L)."""
        scored, graph = self.scored, self.scored.graph
        scored.check(block)
        nodes = graph.nodes(block)
        transposed = _transpose(scored.matrices[nodes]) if self._shared is None else self._shared
        values = scored.scores[nodes].copy()
        pass_up(graph.order[nodes], nodes.start, graph.heads, transposed, scored.stride, values)
        return values


def _transpose(matrices: Array) -> Array:
    """The transpose of each matrix."""
    return np.ascontiguousarray(matrices.transpose(0, 2, 1))


def viterbi(
    graph: Graph, scores: Array, transitions: Array, n_jobs: int | None = None
) -> tuple[Array, Array]:
    """Find the best labeling of each structure, of equal ones the lexicographically first.

    Parameters
    ----------
    graph : Graph
        The structures of a corpus.
    scores : (N, L) array
        The score of each label at each node; −inf forbids a label.
    transitions : (L, L) or (N, L, L) array
        The scores of label pairs along edges, for all edges or for the edge into each node.
    n_jobs : int or None
        The number of threads; None is all cores.

    Returns
    -------
    labels : (N,) array of int
        The best label of each node.
    best : (n,) array
        The score F of the best labeling of each structure.

    Examples
    --------
    >>> labels, best = viterbi(Graph([0, 2]), [[1.0, 0.0], [0.0, 2.0]], [[0.0, 0.5], [0.0, 0.0]])
    >>> labels.tolist(), best.tolist()
    ([0, 1], [3.5])
    """
    scored = ScoredGraph(graph, scores, transitions)
    labels = np.empty(graph.node_count, dtype=np.int32)
    best = np.zeros(len(graph))
    max_product = MaxProduct(scored)

    def solve(block: Block) -> None:
        values = max_product.values(block)
        part = best[slice(*block)]
        _down(graph.forest(block), scored.matrices, scored.stride, values, labels, part)
        scored.check_possible(block, part)

    run(solve, scored.blocks(), n_jobs)
    return labels, best
