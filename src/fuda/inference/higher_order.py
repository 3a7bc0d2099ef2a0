"""Viterbi for models that score up to k + 1 consecutive labels along a chain, or down a tree.

With c_t the *context* of node t, the labels of its k nearest ancestors (on a chain: the k labels
before it),

    F(y) = Σ_t s_t(y_t) + G(c_t, y_t).

Up, children before parents, then down, parents before children:

    m_t(c) = max_b s_t(b) + G(c, b) + Σ_{children u} m_u(b ∘ c)
    y_t    = argmax_b s_t(b) + G(c_t, b) + Σ_{children u} m_u(b ∘ c_t)

where b ∘ c is the context of a child: b, then c, cut to k labels. That is O(L^{k+1}) per node. Of
equal values argmax chooses the smallest label, so that of several best labelings the result is the
lexicographically first, nodes read parents first.

Nodes fewer than k steps below a root have shorter contexts, with separate scores. The contexts of
j labels are numbered from 0 to L^j − 1 with the nearest label as the first digit, so that contexts
which differ only in the farthest label are adjacent, and lead to the same context below.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from fuda.checks import is_whole
from fuda.data.graph import Array, Graph
from fuda.errors import DataError, short
from fuda.inference.graph import ScoredGraph, as_doubles
from fuda.inference.max_product import maximize
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import Block, run

_LARGEST_GRAMS = 1 << 27  # the largest number of scores of label n-grams, which take a gigabyte


class Grams(NamedTuple):
    """The scores G.

    Attributes
    ----------
    short : (contexts of fewer than k labels, L) ndarray
        ``short[bounds[j] + c, b]`` for contexts c of j < k labels.
    full : (L^(k−1), L, L) ndarray
        ``full[c // L, b, c % L]`` for contexts c of k labels; (1, L, 1) where k is 0.
    """

    short: Array
    full: Array


# A graph for compiled code: its nodes, parents first; their parents; the lengths of contexts; and
# the bounds of the contexts of 0, 1, …, k labels, numbered over all lengths.
Shape = tuple[Array, Array, Array, Array]


def no_grams(order: int, label_count: int) -> Grams:
    """Return scores of 0 for all n-grams of `order` + 1 labels and, near roots, of fewer.

    Parameters
    ----------
    order : int
        k, the number of labels in a context.
    label_count : int
        L.

    Returns
    -------
    Grams
        The scores.

    Examples
    --------
    >>> [part.shape for part in no_grams(order=2, label_count=3)]
    [(4, 3), (3, 3, 3)]
    """
    if not is_whole(order, 0):
        raise DataError(f"order={short(order)}: give how many labels before a label count, 0 or more")
    if order > 30 or label_count ** (order + 1) > _LARGEST_GRAMS:
        raise DataError(
            f"order={order} with {label_count} labels: there are {label_count}^{order + 1} label "
            f"n-grams, but at most {_LARGEST_GRAMS:,} are possible; choose a lower order"
        )
    last = label_count if order else 1
    shorter = sum(label_count**j for j in range(order))
    return Grams(np.zeros((shorter, label_count)), np.zeros((label_count**order // last, label_count, last)))


def by_context(grams: Grams, order: int) -> list[Array]:
    """Return G(c, b) for contexts of j = 0, 1, …, k labels: arrays (L^j, L)."""
    size = grams.full.shape[1]
    bounds = np.cumsum([0, *(size**j for j in range(order))])
    short = [grams.short[a:b] for a, b in itertools.pairwise(bounds)]
    return [*short, grams.full.transpose(0, 2, 1).reshape(-1, size)]


def with_pairs(grams: Grams, order: int, pairs: Array) -> Grams:
    """Return G plus the scores (L, L) of each label after the nearest one; k is 1 or more."""
    size = len(pairs)
    start, *parts = by_context(grams, order)
    parts = [part + np.repeat(pairs, len(part) // size, axis=0) for part in parts]
    full = parts.pop().reshape(-1, size, size).transpose(0, 2, 1)
    return Grams(np.concatenate([start, *parts]), np.ascontiguousarray(full))


def shape_of(graph: Graph, order: int, label_count: int) -> Shape:
    """Return a graph for compiled code."""
    depths = np.zeros(graph.node_count, dtype=np.int64)
    _fill_depths(graph.order, graph.heads, order, depths)
    bounds = np.cumsum([0, *(label_count**j for j in range(order + 1))])
    return graph.order, graph.heads, depths, bounds


@compiled
def _fill_depths(order: Array, parents: Array, most: int, depths: Array) -> None:
    """The lengths of the contexts, at most `most`."""
    for t in order:
        if parents[t] >= 0:
            depths[t] = min(depths[parents[t]] + 1, most)


@compiled
def _below(bounds: Array, size: int, depth: int, context: int, label: int) -> int:
    """b ∘ c, for a context c of `depth` labels; `size` is L."""
    count = bounds[depth + 1] - bounds[depth]
    if depth < len(bounds) - 2:
        return label * count + context
    return label * (count // size) + context // size


@compiled
def add_to_gram(grams: Grams, bounds: Array, depth: int, context: int, label: int, amount: float) -> None:
    """Add to G(c, b), for a context c of `depth` labels."""
    if depth < len(bounds) - 2:
        grams.short[bounds[depth] + context, label] += amount
    else:
        last = grams.full.shape[2]
        grams.full[context // last, label, context % last] += amount


@compiled
def fill_contexts(begin: int, end: int, shape: Shape, size: int, labels: Array, contexts: Array) -> None:
    """Compute the contexts of the nodes begin … end − 1 of one structure, given their labels.

    The rows of `labels` and `contexts` count from begin; `size` is L.
    """
    order, parents, depths, bounds = shape
    for i in range(begin, end):
        t, p = order[i], parents[order[i]]
        contexts[t - begin] = 0
        if p >= 0:
            contexts[t - begin] = _below(bounds, size, depths[p], contexts[p - begin], labels[p - begin])


@compiled
def _up(begin: int, end: int, shape: Shape, grams: Grams, scores: Array, sums: Array) -> None:
    """sums(t, c) = Σ_{children u of t} m_u(c)."""
    order, parents, depths, bounds = shape
    size, most = scores.shape[1], len(bounds) - 2
    values, message = np.empty(size), np.empty(size)
    for i in range(end - 1, begin - 1, -1):
        t, p = order[i], parents[order[i]]
        if p < 0:
            continue
        below, above, depth = sums[t - begin], sums[p - begin], depths[t]
        count = bounds[depth + 1] - bounds[depth]
        if depth == most:
            stride = count // size
            for r in range(stride):
                for b in range(size):
                    values[b] = scores[t - begin, b] + below[b * stride + r]
                maximize(grams.full[r], values, message)
                for last in range(size):
                    above[r * size + last] += message[last]
        else:
            for c in range(count):
                top = -np.inf
                for b in range(size):
                    x = scores[t - begin, b] + below[b * count + c] + grams.short[bounds[depth] + c, b]
                    top = max(x, top)
                above[c] += top


@compiled
def _decode_pairs(
    begin: int, end: int, shape: Shape, grams: Grams, scores: Array, values: Array, labels: Array
) -> float:
    """Do what `decode` does for k = 1, where the context of a node is the label of its parent.

    Faster, since nothing has to be divided to number contexts. `values` become
    s_t(b) + Σ_{children u} m_u(b).
    """
    order, parents = shape[0], shape[1]
    start, pairs, size = grams.short[0], grams.full[0], scores.shape[1]
    message = np.empty(size)
    values[: end - begin] = scores[: end - begin]
    for i in range(end - 1, begin - 1, -1):
        t, p = order[i] - begin, parents[order[i]] - begin
        if p < 0:
            continue
        message[:] = -np.inf
        for b in range(size):
            value = values[t, b]
            for a in range(size):
                x = pairs[b, a] + value
                message[a] = x if x > message[a] else message[a]
        for a in range(size):
            values[p, a] += message[a]
    total = 0.0
    for i in range(begin, end):
        t, p = order[i] - begin, parents[order[i]] - begin
        gram = pairs[:, labels[max(p, 0)]]
        if p < 0:
            gram = start
        label, top = 0, -np.inf
        for b in range(size):
            x = values[t, b] + gram[b]
            if x > top:
                label, top = b, x
        labels[t] = label
        total += scores[t, label] + gram[label]
    return total


@compiled
def decode(
    begin: int, end: int, shape: Shape, grams: Grams, scores: Array, sums: Array, below: Array, labels: Array
) -> float:  # fmt: skip
    """Find the best labels of the nodes begin … end − 1 of one structure; returns their score.

    The rows of all arrays count from begin; `sums` is memory for L^k numbers per node, `below` for
    one.
    """
    order, parents, depths, bounds = shape
    size, most, last = scores.shape[1], len(bounds) - 2, grams.full.shape[2]
    if most == 1:
        return _decode_pairs(begin, end, shape, grams, scores, sums, labels)
    sums[: end - begin] = 0.0
    if most > 0:
        _up(begin, end, shape, grams, scores, sums)
    total = 0.0
    for i in range(begin, end):
        t, p = order[i], parents[order[i]]
        depth = depths[t]
        context = 0 if p < 0 else below[p - begin]
        gram = grams.full[context // last, :, context % last]
        if depth < most:
            gram = grams.short[bounds[depth] + context]
        first = _below(bounds, size, depth, context, 0)  # the context below label 0
        stride = _below(bounds, size, depth, context, 1) - first  # to the next label's
        label, top = 0, -np.inf
        for b in range(size):
            x = scores[t - begin, b] + sums[t - begin, first + b * stride] + gram[b]
            if x > top:
                label, top = b, x
        labels[t - begin], below[t - begin] = label, first + label * stride
        total += scores[t - begin, label] + gram[label]
    return total


@compiled
def _decode_all(
    first: int, last: int, offsets: Array, shape: Shape, grams: Grams, scores: Array, sums: Array,
    labels: Array, best: Array,
) -> None:  # fmt: skip
    """The best labels and scores of the structures first … last − 1."""
    below = np.empty(len(sums), dtype=np.int64)
    for i in range(first, last):
        begin, end = offsets[i], offsets[i + 1]
        best[i] = decode(begin, end, shape, grams, scores[begin:end], sums, below, labels[begin:end])


def viterbi(
    graph: Graph, scores: Array, grams: Grams, order: int, n_jobs: int | None = None
) -> tuple[Array, Array]:
    """Find the best labeling of each structure, of equal ones the lexicographically first.

    Parameters
    ----------
    graph : Graph
        The structures of a corpus.
    scores : (N, L) array
        s.
    grams : Grams
        G.
    order : int
        k.
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
    >>> grams = no_grams(order=2, label_count=2)
    >>> grams.full[1, 1, 1] = 1.0  # a third 1 in a row
    >>> labels, best = viterbi(Graph([0, 3]), [[0.0, 0.0], [0.5, 0.0], [0.0, 0.0]], grams, order=2)
    >>> labels.tolist(), best.tolist()
    ([1, 1, 1], [1.0])
    """
    scored = ScoredGraph(graph, scores, np.zeros((np.shape(scores)[-1],) * 2))
    size = scored.label_count
    grams = Grams(*map(as_doubles, grams))
    shapes, expected = ([part.shape for part in parts] for parts in (grams, no_grams(order, size)))
    if shapes != expected:
        raise DataError(f"grams need the shapes {expected}, but have {shapes}")
    if not all(part.max(initial=-np.inf) < np.inf for part in grams):
        raise DataError("the score of a label n-gram is inf or NaN; scores are finite, or -inf to forbid")
    shape = shape_of(graph, order, size)
    labels, best = np.empty(graph.node_count, dtype=np.int32), np.empty(len(graph))

    def solve(block: Block) -> None:
        scored.check(block)
        longest = np.diff(graph.offsets[block[0] : block[1] + 1]).max()
        sums = np.empty((longest, size**order))
        _decode_all(*block, graph.offsets, shape, grams, scored.scores, sums, labels, best)
        scored.check_possible(block, best[slice(*block)])

    run(solve, scored.blocks(), n_jobs)
    return labels, best
