"""Votes of all the perceptrons that there were in a training.

The training is replayed from the changes that it made, each a structure with its right labels and those that
were predicted. After each change the structures to be labelled are decoded, and every node counts the label
that it gets, once for each step until the next change. That is one Viterbi for every mistake of the training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fuda.compiled import compiled
from fuda.data.encoding import Encoded
from fuda.data.graph import Array, Graph
from fuda.errors import DataError
from fuda.functions.windows import add_expansion, window_of
from fuda.inference.higher_order import Grams, Shape, decode, no_grams, shape_of
from fuda.kernels import Kernel
from fuda.kernels.points import Numbering
from fuda.parallel import Block, blocks, run
from fuda.training.perceptron import change_features, change_grams, fill_scores, node_change, pack_features

_BLOCK_NODES = 4096


class Correction(NamedTuple):
    """A mistake that was corrected: the number of the structure, the step, the weight η of the structure, the
    right labels and those that were predicted."""

    structure: int
    step: int
    eta: float
    target: Array
    predicted: Array


def pack_corrections(changes: Sequence[Correction]) -> dict[str, Array]:
    """Changes as plain arrays."""
    structures, steps, etas, targets, predicted = zip(*changes, strict=True) if changes else [()] * 5
    return {
        "structures": np.array(structures, dtype=np.int64),
        "steps": np.array(steps, dtype=np.int64),
        "eta": np.array(etas, dtype=np.float64),
        "targets": np.concatenate([np.empty(0, dtype=np.int32), *targets]),
        "predicted": np.concatenate([np.empty(0, dtype=np.int32), *predicted]),
    }


def unpack_corrections(arrays: dict[str, Array], sizes: Sequence[int], label_count: int) -> list[Correction]:
    """The changes that were packed, to structures of these sizes; DataError where arrays do not fit."""
    expected = {name: (array.dtype, 1) for name, array in pack_corrections([]).items()}
    if {name: (array.dtype, array.ndim) for name, array in arrays.items()} != expected:
        raise DataError("its changes are missing, or not of their kind")
    structures, steps, etas, targets, predicted = (arrays[name] for name in expected)
    if ((structures < 0) | (structures >= len(sizes))).any():
        raise DataError("its changes are to structures that it does not have")
    bounds = np.cumsum([0, *(sizes[i] for i in structures)])
    if not len(structures) == len(steps) == len(etas) or not len(targets) == len(predicted) == bounds[-1]:
        raise DataError("its changes do not fit its structures")
    labels = np.stack([targets, predicted])
    in_range = ((labels >= 0) & (labels < label_count)).all() and np.isfinite(etas).all()
    if not in_range or (np.diff(steps, prepend=0) <= 0).any():
        raise DataError("its changes are no changes of labels, step after step")
    return [
        Correction(int(i), int(step), float(eta), *labels[:, a:b])
        for i, step, eta, a, b in zip(structures, steps, etas, bounds[:-1], bounds[1:], strict=True)
    ]


class EncodedGraph(NamedTuple):
    """A corpus, and its shape as graphs have it."""

    encoded: Encoded
    graph: Graph


class _PrimalScores:
    """The scores of nodes by weights of features."""

    def __init__(self, support: Encoded, given: Encoded, label_count: int) -> None:
        self.support, self.given = pack_features(support), pack_features(given)
        count = sum(given.tables[channel.table].n_features for channel in given.channels)
        self.weights = np.zeros((count, label_count))

    def change(self, begin: int, change: Correction) -> None:
        change_features(begin, self.support, self.weights, change.target, change.predicted, change.eta)

    def of(self, begin: int, end: int) -> Array:
        scores = np.empty((end - begin, self.weights.shape[1]))
        fill_scores(begin, end, self.given, self.weights, scores)
        return scores


class _DualScores:
    """The scores of nodes by expansion over those of the support."""

    def __init__(
        self, kernel: Kernel, support: Encoded, given: Encoded, size: int, n_jobs: int | None
    ) -> None:
        numbering = Numbering(support.corpus)
        self.kernel, self.n_jobs = kernel, n_jobs
        self.support = window_of(support, kernel, numbering)
        self.given = window_of(given, kernel, numbering)
        self.scores = np.zeros((given.corpus.size, size))

    def change(self, begin: int, change: Correction) -> None:
        beta = change.eta * node_change(change.target, change.predicted, self.scores.shape[1])
        changed = np.flatnonzero(beta.any(axis=1))
        sources = self.support.take(begin + changed)
        add_expansion(self.kernel, sources, beta[changed], self.given, self.scores, self.n_jobs)

    def of(self, begin: int, end: int) -> Array:
        return self.scores[begin:end]


@compiled
def _vote(
    first: int, last: int, offsets: Array, shape: Shape, grams: Grams, scores: Array, sums: Array, count: int,
    votes: Array,
) -> None:  # fmt: skip
    """`scores` are those of the nodes of structures first … last − 1."""
    below, labels = np.empty(len(sums), dtype=np.int64), np.empty(len(sums), dtype=np.int32)
    base = offsets[first]
    for i in range(first, last):
        begin, end = offsets[i], offsets[i + 1]
        decode(begin, end, shape, grams, scores[begin - base : end - base], sums, below, labels)
        for t in range(begin, end):
            votes[t, labels[t - begin]] += count


def votes(
    kernel: Kernel | None,
    support: EncodedGraph,
    given: EncodedGraph,
    changes: Sequence[Correction],
    steps: int,
    order: int,
    label_count: int,
    n_jobs: int | None = None,
) -> Array:
    """(N, L) after how many of the steps each node of `given` would have got each label.

    The structures of the changes, of which there is one at least, are those of `support`. Steps before the
    first change do not count.
    """
    graph, size = given.graph, label_count
    found = np.zeros((graph.node_count, size))
    grams, shape = no_grams(order, size), shape_of(graph, order, size)
    support_shape = shape_of(support.graph, order, size)
    scores: _PrimalScores | _DualScores
    if kernel is None:
        scores = _PrimalScores(support.encoded, given.encoded, size)
    else:
        scores = _DualScores(kernel, support.encoded, given.encoded, size, n_jobs)
    ends = [*(change.step for change in changes[1:]), steps + 1]
    for change, end in zip(changes, ends, strict=True):
        begin = int(support.graph.offsets[change.structure])
        change_grams(begin, support_shape, grams, change.target, change.predicted, change.eta)
        scores.change(begin, change)

        def vote(block: Block, count: int = end - change.step) -> None:
            nodes = graph.nodes(block)
            longest = np.diff(graph.offsets[block[0] : block[1] + 1]).max()
            sums = np.empty((longest, size**order))
            own = scores.of(nodes.start, nodes.stop)
            _vote(*block, graph.offsets, shape, grams, own, sums, count, found)

        run(vote, blocks(graph.offsets, _BLOCK_NODES), n_jobs)
    return found
