"""How sharply the data determine each weight of a CRF: the diagonal of the Hessian of its loss.

At weights w with node marginals p_t, the weight of feature k and label y has

    ∂² L₁ / ∂w(k, y)² ≈ Σ_t x_tk² p_t(y) (1 − p_t(y)),

where each node counts by itself; a label pair (a, b) has Σ q (1 − q) with q = p_parent(a) p_t(b).
It is stored as log₂(1 + h) in half precision: 3 digits are enough for what it is used for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda import inference
from fuda.data.encoding import Encoded
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import run
from fuda.training.crf_loss import TrainingLoss, Weights, score_structures, squared

Array = np.ndarray
STORED = np.dtype(np.float16)
LARGEST_STORED = 128.0  # 2^128, which no sum of squares of features reaches
_BLOCK = 1 << 14  # nodes that are summed over at a time


def curvature(loss: TrainingLoss, vector: Array) -> Array:
    """Compute the diagonal of the Hessian of a loss.

    Parameters
    ----------
    loss : TrainingLoss
        The loss of labelled structures.
    vector : ndarray
        The weights.

    Returns
    -------
    ndarray
        One number of at least 0 per weight.
    """
    encoded, weights = loss.encoded, loss.weights
    scores, transitions = score_structures(encoded, weights, vector)
    p = inference.marginals(encoded.corpus.graph, scores, transitions, n_jobs=loss.n_jobs)[1]
    counted = loss.loss.omega * np.repeat(loss.sample_weight, np.diff(encoded.corpus.offsets))
    if loss.loss.pointwise:
        counted = counted + loss.node_weight
    return diagonal_at(encoded, weights, p, counted, loss.transposed)


def diagonal_at(encoded: Encoded, weights: Weights, p: Array, counted: Array, transposed: list[Any]) -> Array:
    """Compute the diagonal of the Hessian from marginals.

    Parameters
    ----------
    encoded : Encoded
        The structures.
    weights : Weights
        The layout of the weights.
    p : (N, L) array
        The node marginals.
    counted : (N,) array
        The weights of nodes.
    transposed : list
        The matrices of the tables, transposed.

    Returns
    -------
    ndarray
        One number of at least 0 per weight.
    """
    corpus, L = encoded.corpus, weights.labels
    diagonal = np.zeros(weights.size)
    by_channel, of_pairs, by_edge = weights.views(diagonal)
    squares = [squared(table) for table in transposed]
    of_nodes = 1 - p
    of_nodes *= p
    of_nodes *= counted[:, None]
    for channel, part in zip(encoded.channels, by_channel, strict=True):
        table = squares[channel.table]
        part += table @ channel.scatter(of_nodes, table.shape[1])
    starts = range(0, len(p), _BLOCK)
    for part in run(lambda start: _variances(start, corpus.graph.heads, p, counted), starts):
        of_pairs += part
    if not encoded.edge_channels:
        return diagonal
    parent, child = corpus.graph.edges.T
    above, below = p[parent], p[child]
    for channel, part in zip(encoded.edge_channels, by_edge, strict=True):
        table, at = squares[channel.table], np.zeros((corpus.size, L))
        # One label of the parent at a time: pairs of all nodes may not fit in memory.
        for a in range(L):
            q = above[:, a, None] * below
            at[child] = counted[child, None] * q * (1 - q)
            part[:, a] += table @ channel.scatter(at, table.shape[1])
    return diagonal


@compiled
def _variances(start: int, heads: Array, p: Array, counted: Array) -> Array:
    """Σ q (1 − q) per pair of labels, over the edges to a block of nodes."""
    size = p.shape[1]
    total = np.zeros((size, size))
    for t in range(start, min(len(p), start + _BLOCK)):
        if heads[t] >= 0:
            above, below, count = p[heads[t]], p[t], counted[t]
            for a in range(size):
                for b in range(size):
                    q = above[a] * below[b]
                    total[a, b] += count * q * (1 - q)
    return total


def features_per_node(encoded: Encoded) -> float:
    """Compute the mean over nodes of the sum of absolute values of their features.

    Parameters
    ----------
    encoded : Encoded
        An encoded corpus.

    Returns
    -------
    float
        The mean; the number of features, where their values are 1.
    """
    total = 0.0
    for channel in encoded.channels:
        matrix: Any = encoded.tables[channel.table].matrix
        sizes = np.asarray(abs(matrix).sum(axis=1)).reshape(-1, 1)
        total += float(channel.gather(sizes).sum())
    return total / encoded.corpus.size


def quantized(diagonal: Array) -> Array:
    """Return log₂(1 + h) in half precision.

    Examples
    --------
    >>> dequantized(quantized(np.array([0.0, 7.0, 1e12]))).round(1).tolist()
    [0.0, 7.0, 1008256608220.1]
    """
    logarithms = diagonal + 1
    np.log2(logarithms, out=logarithms)
    np.clip(logarithms, 0.0, LARGEST_STORED, out=logarithms)  # rounding may end below 0
    halves = np.empty(diagonal.shape, dtype=np.uint16)
    _fill_halves(logarithms, logarithms.view(np.uint64), halves)
    return halves.view(STORED)


@compiled
def _fill_halves(numbers: Array, bits: Array, halves: Array) -> None:
    """Compute the bits of halves from numbers from 0 to 128 and their bits; NumPy is slower."""
    one, dropped, bias = np.uint64(1), np.uint64(42), np.uint64(1008 << 10)
    below_half = (one << np.uint64(41)) - one
    for i in range(len(numbers)):
        if numbers[i] < 2.0**-14:
            halves[i] = np.uint16(np.rint(numbers[i] * 2.0**24))
        else:  # rounded to even
            odd = (bits[i] >> dropped) & one
            halves[i] = ((bits[i] + odd + below_half) >> dropped) - bias


def dequantized(stored: Array) -> Array:
    """Return h from log₂(1 + h)."""
    return np.exp2(stored.astype(np.float64)) - 1
