"""Sum-product: the log partition and the marginals of the distribution P(y) ∝ exp F(y).

Up, children before parents, with one message per node to its parent:

    β_t(b) = exp s_t(b) Π_{children c} m_c(b),    m_t(a) = Σ_b exp A_t(a, b) β_t(b)
    Z      = Π_roots Σ_b β(b)

Down, parents before children:

    P(y_root = b)       ∝ β_root(b)
    P(y_p = a, y_t = b) = P(y_p = a) / m_t(a) · exp A_t(a, b) · β_t(b),  0/0 = 0
    P(y_t = b)          = Σ_a P(y_p = a, y_t = b)

A chain is the tree in which t−1 is the parent of t. There are two implementations.

*Scaled.* Scores are shifted by the largest of their node, transitions by the largest of their
matrix, and β_t is divided by its sum, whose logarithm is added to log Z. Nothing is lost as long
as every nonzero factor and every nonzero β is at least TINY: its product with a message is then a
normal number, so that a zero is a forbidden label and never an underflow. On the way down nothing
is amplified: what underflows there is a probability below 1e−300.

*Logarithmic.* A structure in which a nonzero number falls below TINY is computed again with log β
and log m, which is correct for any scores.
"""

from __future__ import annotations

import math

import numpy as np

from fuda.data.graph import Array, Forest, Graph
from fuda.errors import DataError
from fuda.inference.exact_sums import rounded_number
from fuda.inference.graph import ScoredGraph, TreeTask
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import Block, run

TINY = 1e-100
LOG_TINY = math.log(TINY)

# Sums may be reordered and fused, so that they vectorise; infinities are still respected.
_SUMS = {"reassoc", "contract", "nsz"}
_HUGE = 1e100


@compiled(fastmath=_SUMS)
def _multiply(matrix: Array, vector: Array, out: Array) -> None:
    """out(a) = Σ_b matrix(a, b) vector(b), for four rows at once."""
    size = len(vector)
    odd = size % 4
    for a in range(odd):
        total = 0.0
        for b in range(size):
            total += matrix[a, b] * vector[b]
        out[a] = total
    for a in range(odd, size, 4):
        total0 = total1 = total2 = total3 = 0.0
        for b in range(size):
            x = vector[b]
            total0 += matrix[a, b] * x
            total1 += matrix[a + 1, b] * x
            total2 += matrix[a + 2, b] * x
            total3 += matrix[a + 3, b] * x
        out[a], out[a + 1], out[a + 2], out[a + 3] = total0, total1, total2, total3


@compiled
def _shift(forest: Forest, scores: Array, shifted: Array, log_partition: Array, safe: Array) -> None:
    """Scores minus the largest of their node, added to log Z; unsafe if below log TINY."""
    first, offsets, _, _ = forest
    base = offsets[first]
    for i in range(len(safe)):
        for t in range(offsets[first + i], offsets[first + i + 1]):
            top = -np.inf
            for b in range(scores.shape[1]):
                top = max(top, scores[t, b])
            if top > -np.inf:
                log_partition[i] += top
            else:
                top = 0.0
            lost = False
            for b in range(scores.shape[1]):
                x = scores[t, b] - top
                shifted[t - base, b] = x
                lost |= (x < LOG_TINY) & (x > -np.inf)
            safe[i] &= not lost


@compiled(fastmath=_SUMS, error_model="numpy")
def _up(
    forest: Forest, factors: Array, stride: int, inside: Array, messages: Array, log_z: Array, safe: Array
) -> None:
    """β and m of the safe structures; `inside`, exp s, is replaced by β_t divided by its sum."""
    first, offsets, parents, order = forest
    base = offsets[first]
    size = inside.shape[1]
    for i in range(len(safe)):
        if not safe[i]:
            continue
        product = 1.0  # of the sums; its logarithm is computed only at the ends of the range
        for j in range(offsets[first + i + 1] - 1, offsets[first + i] - 1, -1):
            t, parent = order[j], parents[order[j]]
            row = inside[t - base]
            total = 0.0
            for b in range(size):
                total += row[b]
            if total == 0.0:
                safe[i] = False  # forbidden, as the logarithmic implementation will confirm
                break
            product *= total
            if not TINY < product < _HUGE:
                log_z[i] += math.log(product)
                product = 1.0
            scale = 1.0 / total
            for b in range(size):
                row[b] *= scale
            if parent >= 0:
                message = messages[t - base]
                _multiply(factors[(t - base) * stride], row, message)
                above = inside[parent - base]
                lost = False
                for a in range(size):
                    x = above[a] * message[a]
                    above[a] = x
                    lost |= (x < TINY) & (x > 0.0)
                if lost:
                    safe[i] = False
                    break
        log_z[i] += math.log(product)


@compiled(fastmath=_SUMS, error_model="numpy")
def _down(
    forest: Forest, transposed: Array, stride: int, inside: Array, messages: Array, safe: Array, node: Array
) -> None:
    """Marginals of the safe structures; messages m_t(a) become P(y_p = a) / m_t(a), 0 at roots."""
    first, offsets, parents, order = forest
    base = offsets[first]
    size = inside.shape[1]
    for i in range(len(safe)):
        for j in range(offsets[first + i], offsets[first + i + 1]):
            t, parent = order[j], parents[order[j]]
            row, share, out = inside[t - base], messages[t - base], node[t]
            if parent < 0 or not safe[i]:
                for b in range(size):
                    share[b] = 0.0
                    out[b] = row[b]
            else:
                above = node[parent]
                for a in range(size):
                    share[a] = above[a] / share[a] if share[a] > 0.0 else 0.0
                _multiply(transposed[(t - base) * stride], share, out)
                for b in range(size):
                    out[b] *= row[b]


@compiled(fastmath=_SUMS)
def _outer_sum(left: Array, right: Array, total: Array) -> None:
    """total(a, b) += Σ_t left(t, a) right(t, b), for four nodes at once."""
    count, size = left.shape
    odd = count % 4
    for t in range(odd):
        for a in range(size):
            for b in range(size):
                total[a, b] += left[t, a] * right[t, b]
    for t in range(odd, count, 4):
        for a in range(size):
            x0, x1, x2, x3 = left[t, a], left[t + 1, a], left[t + 2, a], left[t + 3, a]
            for b in range(size):
                total[a, b] += (
                    x0 * right[t, b] + x1 * right[t + 1, b] + x2 * right[t + 2, b] + x3 * right[t + 3, b]
                )


@compiled
def _rounded_outer_sum(left: Array, factors: Array, right: Array, total: Array, rounder: float) -> None:
    """total(a, b) += Σ_t factors(a, b) left(t, a) right(t, b), each term rounded; four at once."""
    count, size = left.shape
    for t in range(0, count, 4):
        u, v, w = min(t + 1, count - 1), min(t + 2, count - 1), min(t + 3, count - 1)
        for a in range(size):
            x0, x1, x2, x3 = left[t, a], left[u, a], left[v, a], left[w, a]
            if t + 3 >= count:  # nodes past the end count nothing
                x1, x2, x3 = x1 * (t + 1 < count), x2 * (t + 2 < count), 0.0
            for b in range(size):
                factor = factors[a, b]
                y0 = rounded_number(factor * (x0 * right[t, b]), rounder)
                y1 = rounded_number(factor * (x1 * right[u, b]), rounder)
                y2 = rounded_number(factor * (x2 * right[v, b]), rounder)
                y3 = rounded_number(factor * (x3 * right[w, b]), rounder)
                total[a, b] += (y0 + y1) + (y2 + y3)


@compiled
def _fill_edges(shares: Array, factors: Array, stride: int, inside: Array, edge: Array) -> None:
    """edge(t, a, b) = share_t(a) · exp A_t(a, b) · β_t(b)."""
    count, size = shares.shape
    for t in range(count):
        for a in range(size):
            for b in range(size):
                edge[t, a, b] = shares[t, a] * factors[t * stride, a, b] * inside[t, b]


@compiled
def _log_sum_exp(values: Array) -> float:
    """log Σ exp of the values, −inf where all are −inf."""
    top = -np.inf
    for x in values:
        top = max(top, x)
    if top == -np.inf:
        return top
    total = 0.0
    for x in values:
        total += math.exp(x - top)
    return top + math.log(total)


@compiled
def log_up(tree: TreeTask, log_inside: Array) -> float:
    """Return log Z of one structure; s in `log_inside` becomes log β_t, where β_t sums to one."""
    nodes, base, parents, matrices, stride = tree
    log_z, size = 0.0, log_inside.shape[1]
    terms = np.empty(size)
    for j in range(len(nodes) - 1, -1, -1):
        t, parent = nodes[j], parents[nodes[j]]
        row = log_inside[t - base]
        top = row.max()
        if top == -np.inf:
            return top
        row -= top  # before the rest, which a large score would absorb
        rest = _log_sum_exp(row)
        row -= rest
        log_z += top + rest
        if parent >= 0:
            for a in range(size):
                for b in range(size):
                    terms[b] = matrices[t * stride, a, b] + row[b]
                log_inside[parent - base, a] += _log_sum_exp(terms)
    return log_z


@compiled
def _log_down(
    tree: TreeTask, log_inside: Array, weight: float, node: Array, edge: Array, pairs: Array, rounder: float
) -> None:
    """Marginals of one structure; `edge` and `pairs` are not filled where they have no entries.

    P(y_t | y_p) is normalized here, so that marginals sum to 1 whatever the size of the scores.
    """
    nodes, base, parents, matrices, stride = tree
    size = log_inside.shape[1]
    terms = np.empty(size)
    for t in nodes:
        parent = parents[t]
        if parent < 0:
            for b in range(size):
                node[t, b] = math.exp(log_inside[t - base, b])
            continue
        node[t] = 0.0
        for a in range(size):
            if node[parent, a] == 0.0:  # its message may be −inf
                continue
            for b in range(size):
                terms[b] = matrices[t * stride, a, b] + log_inside[t - base, b]
            terms -= terms.max()
            total = _log_sum_exp(terms)
            for b in range(size):
                both = node[parent, a] * math.exp(terms[b] - total)
                node[t, b] += both
                if len(edge) > 0:
                    edge[t, a, b] = both
                if len(pairs) > 0:
                    pairs[a, b] += rounded_number(weight * both, rounder)


class _Factors:
    """exp A, shifted by the largest entry of each matrix, and its transpose."""

    def __init__(self, matrices: Array) -> None:
        top = matrices.max(axis=(1, 2))
        self.log_shift = np.where(top > -np.inf, top, 0.0)
        shifted = matrices - self.log_shift[:, None, None]
        self.safe = ~((shifted < LOG_TINY) & (shifted > -np.inf)).any(axis=(1, 2))
        self.direct = np.exp(shifted, out=shifted)
        self.transposed = np.ascontiguousarray(self.direct.transpose(0, 2, 1))


class _SumProduct:
    """The recursions over the blocks of a graph; results that are not requested are empty."""

    def __init__(
        self, scored: ScoredGraph, node: bool = True, edge: bool = False, pairs: bool = False,
        weights: Array | None = None, rounder: float = 0.0,
    ) -> None:  # fmt: skip
        size, count = scored.label_count, scored.graph.node_count
        self.scored = scored
        self.pairs = np.zeros((size, size) if pairs else (0, 0))  # edge marginals, summed
        self.weights = weights  # of the structures in that sum; None: all one
        self.rounder = rounder  # of the terms of that sum; 0: they are not rounded
        self.log_partition = np.zeros(len(scored.graph))
        self.node = np.empty((count if node else 0, size))
        self.edge = np.empty((count if edge else 0, size, size))
        with np.errstate(under="ignore"):
            self.factors = _Factors(scored.matrices) if scored.shared else None

    def run(self, n_jobs: int | None) -> _SumProduct:
        """Compute all results."""
        for part in run(self._solve, self.scored.blocks(matrices=len(self.edge) > 0), n_jobs):
            self.pairs += part
        return self

    def _solve(self, block: Block) -> Array:
        """Compute the structures of a block; returns its part of `pairs`."""
        pairs = np.zeros_like(self.pairs)
        self.scored.check(block)
        with np.errstate(under="ignore"):
            safe = self._solve_scaled(block, pairs)
        for i in np.flatnonzero(~safe):
            self._solve_log(block[0] + int(i), pairs)
        self.scored.check_possible(block, self.log_partition[slice(*block)])
        return pairs

    def _solve_scaled(self, block: Block, pairs: Array) -> Array:
        """Compute the structures of a block in which no number is too small; returns which."""
        scored, graph = self.scored, self.scored.graph
        first, last = block
        nodes = graph.nodes(block)
        child = graph.heads[nodes] >= 0
        starts = graph.offsets[first:last] - nodes.start
        factors = self.factors or _Factors(np.where(child[:, None, None], scored.matrices[nodes], 0.0))
        safe = np.logical_and.reduceat(factors.safe | ~child, starts)
        log_partition = self.log_partition[first:last]
        log_partition += np.add.reduceat(factors.log_shift * child, starts)

        inside, messages = np.empty_like(scored.scores[nodes]), np.empty_like(scored.scores[nodes])
        forest = graph.forest(block)
        _shift(forest, scored.scores, inside, log_partition, safe)
        np.exp(inside, out=inside)  # NumPy's exp is vectorised, numba's is not
        _up(forest, factors.direct, scored.stride, inside, messages, log_partition, safe)
        if len(self.node):
            _down(forest, factors.transposed, scored.stride, inside, messages, safe, self.node)
        if len(self.edge):
            _fill_edges(messages, factors.direct, scored.stride, inside, self.edge[nodes])
        if len(pairs):
            if self.weights is not None:
                sizes = np.diff(graph.offsets[first : last + 1])
                messages *= np.repeat(self.weights[first:last], sizes)[:, None]
            if self.rounder:
                _rounded_outer_sum(messages, factors.direct[0], inside, pairs, self.rounder)
            else:
                _outer_sum(messages, inside, pairs)
                pairs *= factors.direct[0]
        return safe

    def _solve_log(self, structure: int, pairs: Array) -> None:
        """Compute one structure in the logarithmic domain."""
        scored = self.scored
        nodes = scored.graph.nodes((structure, structure + 1))
        log_inside = scored.scores[nodes].copy()
        tree = scored.tree(structure)
        self.log_partition[structure] = log_up(tree, log_inside)
        if len(self.node) and self.log_partition[structure] > -np.inf:
            weight = 1.0 if self.weights is None else float(self.weights[structure])
            _log_down(tree, log_inside, weight, self.node, self.edge, pairs, self.rounder)


def log_partition(graph: Graph, scores: Array, transitions: Array, n_jobs: int | None = None) -> Array:
    """Compute log Z = log Σ_y exp F(y) of each structure.

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
    (n,) array
        log Z of each structure.

    Examples
    --------
    >>> scores = [[0.0, 0.0], [0.0, -np.inf]]
    >>> log_partition(Graph([0, 2]), scores, np.zeros((2, 2))).round(4).tolist()
    [0.6931]
    """
    return _SumProduct(ScoredGraph(graph, scores, transitions), node=False).run(n_jobs).log_partition


def marginals(
    graph: Graph, scores: Array, transitions: Array, edges: bool = False, n_jobs: int | None = None
) -> tuple[Array, ...]:
    """Compute the marginals of P(y) ∝ exp F(y).

    Parameters
    ----------
    graph : Graph
        The structures of a corpus.
    scores : (N, L) array
        The score of each label at each node; −inf forbids a label.
    transitions : (L, L) or (N, L, L) array
        The scores of label pairs along edges, for all edges or for the edge into each node.
    edges : bool
        Whether to return edge marginals too.
    n_jobs : int or None
        The number of threads; None is all cores.

    Returns
    -------
    log_partition : (n,) array
        log Z of each structure.
    node : (N, L) array
        P(y_t = b).
    edge : (N, L, L) array
        With ``edges``: entry (t, a, b) is P(y_p = a, y_t = b), where p is the parent of t; 0 at
        roots.

    Examples
    --------
    >>> scores, transitions = [[0.0, 0.0], [0.0, -np.inf]], [[0.0, 0.0], [np.log(3.0), 0.0]]
    >>> _, node = marginals(Graph([0, 2]), scores, transitions)
    >>> node.round(4).tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    """
    solution = _SumProduct(ScoredGraph(graph, scores, transitions), edge=edges).run(n_jobs)
    return (solution.log_partition, solution.node, *([solution.edge] if edges else []))


def expectations(
    graph: Graph,
    scores: Array,
    transitions: Array,
    weights: Array | None = None,
    n_jobs: int | None = None,
    rounder: float = 0.0,
) -> tuple[Array, Array, Array]:
    """Compute node marginals, and edge marginals summed over the corpus.

    This is much cheaper than the marginals of all edges, which are never stored.

    Parameters
    ----------
    graph : Graph
        The structures of a corpus.
    scores : (N, L) array
        The score of each label at each node; −inf forbids a label.
    transitions : (L, L) array
        The scores of label pairs along edges.
    weights : (n,) array, optional
        The weights of the structures in the sum.
    n_jobs : int or None
        The number of threads; None is all cores.
    rounder : float
        What rounds the terms of the sum over edges, see `fuda.inference.exact_sums`; 0 does not.

    Returns
    -------
    log_partition : (n,) array
        log Z of each structure.
    node : (N, L) array
        P(y_t = b).
    pairs : (L, L) array
        The edge marginals P(y_p = a, y_t = b), weighted and summed over all edges.

    Examples
    --------
    >>> _, _, pairs = expectations(Graph([0, 2, 5]), np.zeros((5, 2)), np.zeros((2, 2)))
    >>> pairs.tolist()
    [[0.75, 0.75], [0.75, 0.75]]
    """
    scored = ScoredGraph(graph, scores, transitions)
    if not scored.shared:
        raise DataError("expectations need one (L, L) matrix of transitions; use marginals with edges=True")
    if weights is not None and np.shape(weights) != (len(graph),):
        raise DataError(f"weights need the shape ({len(graph)},), but have {np.shape(weights)}")
    solution = _SumProduct(scored, pairs=True, weights=weights, rounder=rounder).run(n_jobs)
    return solution.log_partition, solution.node, solution.pairs
