"""The loss of a CRF over parts of the corpus that stay on the workers of a cluster.

Loss, gradient and curvature are sums over structures. Each worker keeps the structures of its part
and knows the scores of rows only (`fuda.training.row_scores`), those that occur in it: they go
there, and the gradient by them comes back, in messages or, where a worker is on the same machine,
in memory that it shares. Products with features stay here. The sums of the parts add up without
rounding (`fuda.inference.exact_sums`), so that the loss and its gradient have the same bits as
without a cluster, on processors of the same kind. Dense tables are an exception: their features go
to workers, and sums differ in the last digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.encoding import Channel, Encoded
from fuda.data.tables import Table
from fuda.inference.exact_sums import total
from fuda.runtime.cluster import Residents, connected, worker_threads
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import run
from fuda.runtime.shared_memory import Offer, accepted, offered
from fuda.training.crf_curvature import curvature
from fuda.training.crf_loss import Loss, TrainingLoss, Weights, curvature_at_zero, rounder_of, weights_of
from fuda.training.row_scores import RowScores

Array = np.ndarray
_Pair = tuple[tuple[Array, Array], Array]  # weights of all parts, the rows that a part has, and its weights


@contextmanager
def distributed_loss(address: str, *arguments: Any) -> Iterator[DistributedLoss]:
    """Within the block the loss is on a cluster; see `DistributedLoss` for the arguments."""
    with connected(address) as client:
        yield DistributedLoss(client, *arguments)


class DistributedLoss:
    """The loss of labelled structures on a cluster, with the interface of `TrainingLoss`.

    Parameters
    ----------
    client : distributed.Client
        The client of the cluster; each of its workers gets a part.
    encoded : Encoded
        The training corpus.
    labels : (N,) array of int
        The label of each node, −1 where unknown.
    label_count : int
        L, the number of labels.
    loss : Loss
        Which loss.
    sample_weight : (n,) array, optional
        The weight of each structure. Default: 1.
    position_weight : (N,) array, optional
        The weight of each node in the pointwise loss. Default: 1.
    n_jobs : int, optional
        Threads here; None means all cores.

    Attributes
    ----------
    weights : Weights
        The layout of the weight vector.
    """

    def __init__(
        self,
        client: Any,
        encoded: Encoded,
        labels: Array,
        label_count: int,
        loss: Loss,
        sample_weight: Array | None = None,
        position_weight: Array | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.encoded, self.weights, self.loss = encoded, Weights.of(encoded, label_count), loss
        self.rows = RowScores(encoded, label_count, n_jobs)
        self._scores, self._by_row = (np.empty(self.rows.weights.size) for _ in range(2))
        self._gradient = np.empty(self.weights.size)
        problem = labels, label_count, loss, sample_weight, position_weight
        self._sample_weight, node_weight = weights_of(encoded.corpus, labels, loss, *problem[3:])
        rounder = rounder_of(encoded.corpus, loss, self._sample_weight, node_weight)
        self._parts: list[CorpusPart] = []
        recipes = []
        for members in _shares(encoded.corpus.offsets, max(1, len(client.nthreads()))):
            part, arguments = part_of(members, self.rows.encoded, *problem, n_jobs)
            recipes.append((PartLoss, *arguments, rounder))
            self._parts.append(part)
        self._shares_memory = [False] * len(self._parts)
        self._workers = Residents(client, recipes, self._forget)
        self._share_memory()

    def __call__(self, vector: Array) -> tuple[float, Array]:
        """The loss and its gradient, an array that the next call overwrites."""
        losses = self._summed(_by_structure, vector)
        self.rows.collect(self._by_row, self._gradient)
        return total(np.concatenate(losses)), self._gradient

    def curvature(self) -> Array:
        """An approximate diagonal of the Hessian at w = 0."""
        return curvature_at_zero(self.encoded, self.weights, self.loss, self._sample_weight)

    def curvature_at(self, vector: Array) -> Array:
        """The diagonal of the Hessian, as `fuda.training.crf_curvature.curvature` computes it."""
        diagonal = np.empty(self.weights.size)
        self._summed(_curvature_at, vector)
        self.rows.collect_curvature(self._by_row, diagonal)
        return diagonal

    def _summed(self, function: Callable[..., Any], vector: Array) -> list[Any]:
        """Sum a function's arrays by rows over all parts; return what else each part has."""
        self.rows.of(vector, self._scores)
        answers = self._workers.results(function, self._scores_for)
        self._by_row.fill(0.0)
        answered = list[Any]()
        for number, (other, array) in enumerate(answers):
            answered.append(other)
            self._parts[number].add(self._memory[number][1] if array is None else array, self._by_row)
        return answered

    def _scores_for(self, number: int) -> tuple[Array | None]:
        """The scores of a part; None where its worker has them in the memory that it shares."""
        scores = self._parts[number].of(self._scores, self._memory[number][0])
        return (None if self._shares_memory[number] else scores,)

    def _share_memory(self) -> None:
        """Let workers on this machine share memory: the scores of parts, and their gradients."""
        ends = np.cumsum([0, *(2 * part.part_weights.size for part in self._parts)])
        places = [slice(a, b) for a, b in itertools.pairwise(ends.tolist())]
        with offered(int(ends[-1])) as (numbers, offer):
            self._memory = [numbers[place].reshape(2, -1) for place in places]
            if offer is not None:
                answers = self._workers.results(_accept, lambda number: (offer, places[number]))
                for number, has_accepted in enumerate(answers):
                    self._shares_memory[number] = has_accepted

    def _forget(self, number: int) -> None:
        """A part is made, perhaps on a machine where there is nothing to share."""
        self._shares_memory[number] = False


class PartLoss:
    """The loss of a part, on a worker.

    Parameters
    ----------
    encoded, labels, label_count, loss, sample_weight, position_weight, rounder
        The arguments of its `TrainingLoss`.

    Attributes
    ----------
    loss : TrainingLoss
        The loss.
    memory : (2, n) ndarray or None
        Scores and their gradient, in memory that the client shares.
    """

    def __init__(
        self,
        encoded: Encoded,
        labels: Array,
        label_count: int,
        loss: Loss,
        sample_weight: Array | None,
        position_weight: Array | None,
        rounder: float,
    ) -> None:
        weights = sample_weight, position_weight
        self.loss = TrainingLoss(encoded, labels, label_count, loss, *weights, worker_threads(), rounder)
        self.memory: Array | None = None


def _accept(part: PartLoss, offer: Offer, place: slice) -> bool:
    """Share a place in memory with the client, if it is within reach."""
    numbers = accepted(offer)
    part.memory = None if numbers is None else numbers[place].reshape(2, -1)
    return numbers is not None


def _by_structure(part: PartLoss, scores: Array | None) -> tuple[Array, Array | None]:
    """The losses, and the gradient if the scores came in a message."""
    if scores is None:
        assert part.memory is not None  # it was accepted
        return part.loss.by_structure(*part.memory)[0], None
    # Dask may leave an array anywhere in a message, and NumPy copies one that is not aligned
    # whenever it looks something up in it.
    return part.loss.by_structure(np.require(scores, requirements="A"))


def _curvature_at(part: PartLoss, scores: Array | None) -> tuple[None, Array | None]:
    """The curvature if the scores came in a message."""
    if scores is not None:
        return None, curvature(part.loss, scores)
    assert part.memory is not None
    part.memory[1] = curvature(part.loss, part.memory[0])
    return None, None


class CorpusPart:
    """Which weights a part has: the rows of the weights of all parts, by channel."""

    def __init__(
        self, part: Encoded, columns: list[Array], total_weights: Weights, n_jobs: int | None = None
    ) -> None:
        self.n_jobs = n_jobs
        self.total_weights, self.part_weights = total_weights, Weights.of(part, total_weights.labels)
        self.by_channel, self.by_edge = (
            [columns[channel.table] for channel in channels]
            for channels in (part.channels, part.edge_channels)
        )

    def of(self, vector: Array, out: Array | None = None) -> Array:
        """The weights of the part, in `out` if that is given."""
        cut = np.empty(self.part_weights.size) if out is None else out

        def take(pair: _Pair) -> None:
            (total_array, rows), part_array = pair
            np.take(total_array, rows, axis=0, out=part_array, mode="clip")

        run(take, self._pairs(vector, cut), self.n_jobs)
        self.part_weights.views(cut)[1][:] = self.total_weights.views(vector)[1]
        return cut

    def add(self, values: Array, total: Array) -> None:
        """Add values of the weights of the part."""

        def add(pair: _Pair) -> None:
            (total_array, rows), part_array = pair
            if len(rows):
                _add_rows(total_array.reshape(len(total_array), -1), rows, part_array.reshape(len(rows), -1))

        run(add, self._pairs(total, values), self.n_jobs)
        self.total_weights.views(total)[1][:] += self.part_weights.views(values)[1]

    def _pairs(self, total_weights: Array, part_weights: Array) -> list[_Pair]:
        """Per channel: the weights of all parts, the rows that the part has, and its weights."""
        total_views, _, total_edges = self.total_weights.views(total_weights)
        part_views, _, part_edges = self.part_weights.views(part_weights)
        rows = zip([*total_views, *total_edges], [*self.by_channel, *self.by_edge], strict=True)
        return list(zip(rows, [*part_views, *part_edges], strict=True))


@compiled
def _add_rows(total: Array, rows: Array, values: Array) -> None:
    """total(rows) += values."""
    for k in range(len(rows)):
        row, value = total[rows[k]], values[k]
        for b in range(len(value)):
            row[b] += value[b]


def part_of(
    members: Array,
    encoded: Encoded,
    labels: Array,
    label_count: int,
    loss: Loss,
    sample_weight: Array | None = None,
    position_weight: Array | None = None,
    n_jobs: int | None = None,
) -> tuple[CorpusPart, tuple[Any, ...]]:
    """Cut some structures out of the arguments of a `TrainingLoss`.

    Parameters
    ----------
    members : ndarray of int
        The numbers of the structures.
    encoded, labels, label_count, loss, sample_weight, position_weight
        The arguments for all structures.
    n_jobs : int or None
        The number of threads that find the weights of the part.

    Returns
    -------
    tuple
        Which weights the part has, and the arguments of its loss.
    """
    part, columns = _cut(encoded, members)
    nodes = encoded.corpus.nodes_of(members)
    weights = [
        None if weight is None else weight[at]
        for weight, at in ((sample_weight, members), (position_weight, nodes))
    ]
    arguments = part, labels[nodes], label_count, loss, *weights
    return CorpusPart(part, columns, Weights.of(encoded, label_count), n_jobs), arguments


def _shares(offsets: Array, count: int) -> list[Array]:
    """Ranges of structures of about equally many nodes, at most `count`, none empty."""
    ends = np.searchsorted(offsets, offsets[-1] * np.arange(1, count) / count)
    bounds = np.unique([0, *ends, len(offsets) - 1])
    return [np.arange(first, last) for first, last in itertools.pairwise(bounds)]


def _cut(encoded: Encoded, members: Array) -> tuple[Encoded, list[Array]]:
    """Some structures with only their rows and features, and the features of each table."""
    part = encoded.take(members)
    tables, columns, renumbered = [], [], []
    for number, table in enumerate(part.tables):
        matrix: Any = table.matrix
        channel_rows = [c.rows for c in (*part.channels, *part.edge_channels) if c.table == number]
        rows = np.unique(np.concatenate([np.empty(0, dtype=np.int32), *channel_rows]))
        matrix, used_columns = matrix[rows], np.arange(matrix.shape[1])
        if not isinstance(matrix, np.ndarray):
            used_columns = np.unique(matrix.indices)
            matrix = matrix[:, used_columns]
        new = np.zeros(table.matrix.shape[0], dtype=np.int32)
        new[rows] = np.arange(len(rows))
        tables.append(Table.of(matrix, np.zeros(len(rows)), np.zeros(len(rows))))
        columns.append(used_columns)
        renumbered.append(new)

    def cut(channel: Channel) -> Channel:
        return channel._replace(rows=renumbered[channel.table][channel.rows])

    corpus = _bare(part.corpus)
    return Encoded(corpus, tables, [*map(cut, part.channels)], [*map(cut, part.edge_channels)]), columns


def _bare(corpus: Corpus) -> Corpus:
    """A corpus without what only encoders need."""
    if corpus.is_chain:
        return Corpus.of_rows(corpus.offsets, corpus.kind)
    bare = copy(corpus)
    bare.observations, bare.feature_tables, bare.vectors = [], {}, None
    return bare
