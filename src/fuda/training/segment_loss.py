"""The loss of the semi-Markov CRF and its gradient as functions of the weights.

    L(w) = −Σ_i w_i log P(y⁽ⁱ⁾ | x⁽ⁱ⁾),     P(y|x) = exp F(x, y) / Z(x)

with F as in `fuda.inference.segments`. A sequence whose labels are partly known adds
−log Σ_{y fits} P(y|x). For all labels known the sum has a single term; what is linear in w is then
counted once.

The kinds that have segments of several nodes are *wide*. The weights are one vector:

=============  ====================  ==========================================================
channels       (features, K + 2 W)   of nodes of each kind; of the first, of the last of a segment
transitions    (K, K)                A
joins          (K,)                  C
lengths        (buckets, W)          `length_features`
texts          (texts, W)            of whole chunks, `fuda.data.segment_texts`
=============  ====================  ==========================================================
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from fuda.checks import check_memory
from fuda.data.encoding import Encoded
from fuda.functions.windows import add_rows
from fuda.inference.segments import FREE, Expected, Limits, Scores, expectations
from fuda.runtime.parallel import run
from fuda.training.crf_loss import squared, transposed

Array = np.ndarray


def length_features(most: int) -> Array:
    """Features of the lengths 0 … most: the bucket of each length, and its logarithm.

    >>> length_features(3).round(2).tolist()
    [[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.69], [0.0, 0.0, 1.0, 1.1]]
    """
    bucket = np.array([_bucket(length) for length in range(1, most + 1)])
    table = np.zeros((most + 1, bucket[-1] + 2))
    table[np.arange(1, most + 1), bucket] = 1.0
    table[1:, -1] = np.log(np.arange(1, most + 1))
    return table


def length_names(most: int) -> list[str]:
    """The names of `length_features`."""
    lengths_of_bucket: dict[int, list[int]] = {}
    for length in range(1, most + 1):
        lengths_of_bucket.setdefault(_bucket(length), []).append(length)
    buckets = [
        f"nodes={lengths[0]}" if len(lengths) == 1 else f"nodes={lengths[0]}-{lengths[-1]}"
        for lengths in lengths_of_bucket.values()
    ]
    return [*buckets, "log(nodes)"]


def _bucket(length: int) -> int:
    """The bucket of a length: its own up to 8, then a quarter of an octave each."""
    return length - 1 if length <= 8 else 7 + int(4 * math.log2(length / 8) + 1e-9) + 1


class Parts(NamedTuple):
    """Views of a weight vector, or of its gradient."""

    channels: list[Array]
    transitions: Array
    joins: Array
    lengths: Array
    texts: Array


# The longest segments, the scores of lengths, transitions and joins, whether segments may be
# single nodes; and the scores of texts.
ByKind = tuple[tuple[Array, Array, Array, Array, Array], Array]


class PossibleSegmentations(NamedTuple):
    """Which segmentations exist at all: kinds after kinds, joined chunks, segments of one node."""

    transitions: Array
    joins: Array
    singles: Array


class SegmentWeights:
    """The layout of the weight vector.

    Parameters
    ----------
    features : list of int
        The number of features of each channel.
    longest : (K,) array of int
        D of each kind.
    texts : int
        The number of texts.

    Attributes
    ----------
    wide : (W,) array of int
        The kinds with segments of several nodes.
    size : int
        The length of the weight vector.
    """

    def __init__(self, features: list[int], longest: Array, texts: int) -> None:
        self.longest, self.wide = longest, np.flatnonzero(longest > 1)
        K, W = len(longest), len(self.wide)
        self.columns, self.table = K + 2 * W, length_features(int(longest.max()))
        buckets = self.table.shape[1] if W else 0
        self._shapes = [*((n, self.columns) for n in features), (K, K), (K,), (buckets, W), (texts, W)]
        self._ends = list(itertools.accumulate(map(math.prod, self._shapes)))
        self.size = self._ends[-1]

    def views(self, vector: Array) -> Parts:
        """Views of a weight vector."""
        bounds = itertools.pairwise([0, *self._ends])  # np.split takes much longer
        views = [vector[a:b].reshape(shape) for (a, b), shape in zip(bounds, self._shapes, strict=True)]
        return Parts(views[:-4], *views[-4:])

    def by_kind(self, parts: Parts, possible: PossibleSegmentations) -> ByKind:
        """The parts of the scores of segmentations that do not depend on nodes."""
        K = len(self.longest)
        lengths, texts = np.zeros((K, len(self.table))), np.zeros((len(parts.texts) + 1, K))
        if len(self.wide):
            lengths[self.wide] = (self.table @ parts.lengths).T
            texts[:-1, self.wide] = parts.texts
        transitions = np.where(possible.transitions, parts.transitions, -np.inf)
        joins = np.where(possible.joins, parts.joins, -np.inf)
        return (self.longest, lengths, transitions, joins, possible.singles), texts

    def scores(self, nodes: Array, by_kind: ByKind, offsets: Array, rows: Array) -> Scores:
        """What segmentations score, from node scores (N, K + 2 W) and scores by kind."""
        K, W = len(self.longest), len(self.wide)
        check_memory(
            8.0 * float(np.diff(offsets).max()) * len(self.table) * K,
            "a sequence by lengths and kinds",
            "give a smaller max_length, or shorter sequences",
        )
        first, last = np.zeros((2, len(nodes), K))
        first[:, self.wide], last[:, self.wide] = nodes[:, K : K + W], nodes[:, K + W :]
        inside, (of_kinds, texts) = np.ascontiguousarray(nodes[:, :K]), by_kind
        return Scores(offsets, inside, first, last, *of_kinds, rows, texts)

    def add(self, expected: Expected, weight: Array, into: Parts) -> Array:
        """Add expectations to a gradient; return those of the columns of nodes, (N, K + 2 W)."""
        into.transitions[...] += expected.transitions
        into.joins[...] += expected.joins
        if len(self.wide):
            into.lengths[...] += self.table.T @ expected.lengths[self.wide].T
            into.texts[...] += expected.texts[:-1, self.wide]
        by_node = [expected.inside, expected.first[:, self.wide], expected.last[:, self.wide]]
        return np.concatenate(by_node, axis=1) * weight[:, None]


class SegmentLoss:
    """−Σ log P(y|x) of labelled sequences: a call with a weight vector returns value and gradient.

    Parameters
    ----------
    encoded : Encoded
        The training corpus.
    rows : (N, M, keys) array of int
        The texts of all runs of nodes.
    limits : Limits
        What the labels leave.
    known : (n,) array of bool
        Whether all labels of a sequence are known.
    weights : SegmentWeights
        The layout.
    possible : PossibleSegmentations
        Which segmentations exist.
    sample_weight : (n,) array, optional
        The weight of each sequence. Default: 1.
    n_jobs : int, optional
        Threads; None means all cores.
    """

    def __init__(
        self,
        encoded: Encoded,
        rows: Array,
        limits: Limits,
        known: Array,
        weights: SegmentWeights,
        possible: PossibleSegmentations,
        sample_weight: Array | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.encoded, self.rows, self.limits = encoded, rows, limits
        self.weights, self.possible, self.n_jobs = weights, possible, n_jobs
        self.transposed = [transposed(table.matrix) for table in encoded.tables]
        seen = [(channel, encoded.tables[channel.table].matrix.shape[0]) for channel in encoded.channels]
        self.by_row = [transposed(channel.incidence(count)) for channel, count in seen]
        self.sample_weight = np.ones(len(encoded.corpus)) if sample_weight is None else sample_weight
        self.partly = np.where(known, 0.0, self.sample_weight)
        self._gradient = np.empty(weights.size)
        # with all labels known there is one segmentation, whose expectations are counts
        self._observed = np.zeros(weights.size)
        self._add(
            np.zeros(weights.size), limits, np.where(known, self.sample_weight, 0.0), self._observed, 1.0
        )

    def __call__(self, vector: Array) -> tuple[float, Array]:
        """The loss and its gradient, an array that the next call overwrites."""
        gradient = self._gradient
        np.negative(self._observed, out=gradient)
        value = -float(self._observed @ vector)
        value += self._add(vector, FREE, self.sample_weight, gradient, 1.0)
        if self.partly.any():
            value -= self._add(vector, self.limits, self.partly, gradient, -1.0)
        return value, gradient

    def _add(self, vector: Array, limits: Limits, weight: Array, gradient: Array, sign: float) -> float:
        """Add sign · the gradient of Σ weight · log Z; return that sum."""
        parts, into = self.weights.views(vector), self.weights.views(gradient)
        encoded, corpus = self.encoded, self.encoded.corpus
        channels = range(len(encoded.channels))
        tables = run(
            lambda c: np.asarray(encoded.tables[encoded.channels[c].table].matrix @ parts.channels[c]),
            channels,
            self.n_jobs,
        )
        nodes = np.zeros((corpus.size, self.weights.columns))
        for channel, table in zip(encoded.channels, tables, strict=True):
            add_rows(table, channel, nodes)
        by_kind = self.weights.by_kind(parts, self.possible)
        scores = self.weights.scores(nodes, by_kind, corpus.offsets, self.rows)
        expected = expectations(scores, limits, sign * weight, self.n_jobs)
        columns = self.weights.add(expected, np.repeat(sign * weight, np.diff(corpus.offsets)), into)

        def collect(c: int) -> None:
            into.channels[c][...] += self.transposed[encoded.channels[c].table] @ (self.by_row[c] @ columns)

        run(collect, channels, self.n_jobs)
        return float(expected.log_z @ weight)

    def curvature(self) -> Array:
        """An approximate diagonal of the Hessian at w = 0: Σ x² p (1 − p) per weight, p = 1/K."""
        diagonal, corpus = np.zeros(self.weights.size), self.encoded.corpus
        parts, share = self.weights.views(diagonal), 1 / len(self.weights.longest)
        weight = np.repeat(self.sample_weight, np.diff(corpus.offsets))[:, None]
        for channel, by_row, part in zip(self.encoded.channels, self.by_row, parts.channels, strict=True):
            part += share * (1 - share) * (squared(self.transposed[channel.table]) @ (by_row @ weight))
        total = float(weight.sum())
        parts.transitions[...] = parts.joins[...] = total * share**2 * (1 - share**2)
        parts.lengths[...] = total * share * (1 - share)
        counts = np.zeros(len(parts.texts) + 1)
        for k in range(self.rows.shape[2]):
            counts += np.bincount(self.rows[..., k].ravel(), minlength=len(counts))
        parts.texts[...] = share * (1 - share) * counts[:-1, None]
        return diagonal
