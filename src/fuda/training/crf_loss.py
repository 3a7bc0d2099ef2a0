"""CRF losses and their gradients as functions of the weights.

f(y|x) = exp F(x, y) / Z(x) has node marginals p_t. A loss is ω L₁ + L₀ over structures i
and nodes t:

=============  ======================================  =======  ==========
sequential     L₁ = −Σ_i log f(y⁽ⁱ⁾|x⁽ⁱ⁾)               ω = 1    w = 0
pointwise      L₀ = −Σ_i Σ_t w_t log p_t(y_t)           ω = 0    w given
Markov         M_k = k L₁ + L₀  (theorem 1)             ω = k    w given
=============  ======================================  =======  ==========

For an integer k, M_k is the sum of −log P(y_t..y_{t+k}) over all windows of k+1 nodes, cut off at
the ends; k may be any number ≥ 0, and λ = k/(k+1) is the paper's mixture of the two losses,
L_λ = (1−λ) M_k. Where a label is unknown L₁ sums over it, −log Σ_{y fits} f(y|x), and L₀ omits the
node.

The weights are one vector: (features, L) per channel, then transitions (L, L), then
(features, L, L) per edge channel. Scores are computed once per type and looked up by the nodes;
gradients are summed by type and then by feature.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from fuda import inference
from fuda.checks import is_choice
from fuda.data.encoding import Channel, Encoded
from fuda.errors import DataError, short
from fuda.inference.chain_batches import LANES, Chains, Factors, Gradient, chain_losses
from fuda.inference.pointwise import spread_evidence
from fuda.inference.sum_product import TINY
from fuda.optimize.vectors import Vectors, dot
from fuda.parallel import Block, run
from fuda.training.score_table import ScoreTable

Array = np.ndarray


class Loss(NamedTuple):
    """ω L₁ + L₀.

    Attributes
    ----------
    omega : float
        ω, the weight of the sequential loss L₁.
    pointwise : bool
        Whether the pointwise loss L₀ counts.
    """

    omega: float
    pointwise: bool

    @classmethod
    def named(cls, name: str, order: float) -> Loss:
        """Find a loss by name.

        Parameters
        ----------
        name : {"sequential", "pointwise", "markov"}
            Which loss.
        order : float
            k, the order of the Markov loss.

        Returns
        -------
        Loss
            The weights of L₁ and L₀.

        Examples
        --------
        >>> Loss.named("markov", order=2)
        Loss(omega=2.0, pointwise=True)
        """
        losses = {"sequential": (1.0, False), "pointwise": (0.0, True), "markov": (float(order), True)}
        if not is_choice(name, losses):
            raise DataError(f"loss={short(name)}: choose sequential, pointwise or markov")
        return cls(*losses[name])


class Weights:
    """The layout of the weight vector.

    Parameters
    ----------
    channel_features, edge_features : lists of int
        The number of features of each channel, and of each edge channel.
    labels : int
        L, the number of labels.

    Attributes
    ----------
    size : int
        The length of the weight vector.
    """

    def __init__(self, channel_features: list[int], edge_features: list[int], labels: int) -> None:
        self.labels = L = labels
        self._shapes = [*((n, L) for n in channel_features), (L, L), *((n, L, L) for n in edge_features)]
        self._ends = list(itertools.accumulate(map(math.prod, self._shapes)))
        self.size, self._channels = self._ends[-1], len(channel_features)

    @classmethod
    def of(cls, encoded: Encoded, labels: int) -> Weights:
        """The layout for the features of an encoded corpus."""
        channels, edges = (
            [encoded.tables[channel.table].n_features for channel in part]
            for part in (encoded.channels, encoded.edge_channels)
        )
        return cls(channels, edges, labels)

    def views(self, vector: Array) -> tuple[list[Array], Array, list[Array]]:
        """Views of a weight vector: per channel, transitions, per edge channel."""
        parts = np.split(vector, self._ends[:-1])
        views = [part.reshape(shape) for part, shape in zip(parts, self._shapes, strict=True)]
        return views[: self._channels], views[self._channels], views[self._channels + 1 :]

    def stacked(self, vector: Array) -> Array:
        """The weights of all channels, one below the other: (features, L), a view."""
        features = sum(shape[0] for shape in self._shapes[: self._channels])
        return vector[: features * self.labels].reshape(features, self.labels)


def score_structures(encoded: Encoded, weights: Weights, vector: Array) -> tuple[Array, Array]:
    """Node scores (N, L) and transitions, (L, L) or (N, L, L), under a weight vector."""
    by_channel, transitions, by_edge = weights.views(vector)
    scores = np.zeros((encoded.corpus.size, weights.labels))
    for channel, part in zip(encoded.channels, by_channel, strict=True):
        scores += channel.gather(np.asarray(encoded.tables[channel.table].matrix @ part))
    return scores, pair_scores(encoded, transitions, by_edge)


def pair_scores(encoded: Encoded, transitions: Array, by_edge: list[Array]) -> Array:
    """Transitions (L, L), or (N, L, L) where features of label pairs have weights `by_edge`."""
    if not by_edge:
        return transitions
    L = len(transitions)
    pairs = np.broadcast_to(transitions.reshape(L * L), (encoded.corpus.size, L * L)).copy()
    for channel, part in zip(encoded.edge_channels, by_edge, strict=True):
        table = encoded.tables[channel.table].matrix @ part.reshape(len(part), L * L)
        pairs += channel.gather(np.asarray(table))
    return pairs.reshape(-1, L, L)


def transposed(matrix: Any) -> Any:
    """The transpose of a sparse or dense matrix, stored by rows."""
    return np.ascontiguousarray(matrix.T) if isinstance(matrix, np.ndarray) else matrix.T.tocsr()


def squared(matrix: Any) -> Any:
    """The squares of the entries of a sparse or dense matrix."""
    return matrix**2 if isinstance(matrix, np.ndarray) else matrix.multiply(matrix)


class TrainingLoss:
    """The loss of labelled structures: a call with a weight vector returns value and gradient.

    Parameters
    ----------
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
        The weight w_t of each node in L₀. Default: 1.
    n_jobs : int, optional
        Threads; None means all cores.

    Attributes
    ----------
    weights : Weights
        The layout of the weight vector.

    References
    ----------
    The losses are those of the Markov loss paper; M_k = k L₁ + L₀ is its theorem 1.
    """

    def __init__(
        self,
        encoded: Encoded,
        labels: Array,
        label_count: int,
        loss: Loss,
        sample_weight: Array | None = None,
        position_weight: Array | None = None,
        n_jobs: int | None = None,
    ) -> None:
        corpus = encoded.corpus
        self.encoded, self.labels, self.loss, self.n_jobs = encoded, labels.astype(np.int64), loss, n_jobs
        self.weights = Weights.of(encoded, label_count)
        self.sample_weight = np.ones(len(corpus)) if sample_weight is None else sample_weight
        node_weight = np.ones(corpus.size) if position_weight is None else position_weight.astype(np.float64)
        self.node_weight = np.where(labels >= 0, node_weight, 0.0) if loss.pointwise else np.zeros(0)
        self.transposed = [transposed(table.matrix) for table in encoded.tables]
        known = np.logical_and.reduceat(labels >= 0, corpus.offsets[:-1])
        simple = corpus.is_chain and not encoded.edge_channels
        fast = known & simple
        self._chains = _ChainTables(self, np.flatnonzero(fast)) if fast.any() else None
        self._rest = [] if fast.all() else [_Structures(self, np.flatnonzero(~fast))]
        self._observed = self._observed_counts(known)
        self._vectors = Vectors(self.weights.size, n_jobs)
        self._gradient = np.empty(self.weights.size)

    def __call__(self, vector: Array) -> tuple[float, Array]:
        """The loss and its gradient, an array that the next call overwrites."""
        gradient, rest = self._gradient, self._rest
        value = -self.loss.omega * self._vectors.scale(self._observed, -self.loss.omega, vector, gradient)
        if self._chains:
            part, unsafe = self._chains.add(vector, gradient)
            value += part
            if len(unsafe):
                rest = [*rest, _Structures(self, unsafe)]
        for structures in rest:
            value += structures.add(vector, gradient)
        return value, gradient

    def curvature(self) -> Array:
        """An approximate diagonal of the Hessian at w = 0: Σ x² (1/L)(1 − 1/L) per weight."""
        L = self.weights.labels
        diagonal = np.zeros(self.weights.size)
        by_channel, transitions, by_edge = self.weights.views(diagonal)
        corpus = self.encoded.corpus
        weight = np.repeat(self.sample_weight, np.diff(corpus.offsets))[:, None]
        scale = self.loss.omega + (1.0 if self.loss.pointwise else 0.0)
        channels = self.encoded.channels + self.encoded.edge_channels
        for channel, part in zip(channels, by_channel + by_edge, strict=True):
            share = 1 / L ** (part.ndim - 1)
            squares = squared(self.transposed[channel.table])
            counts = squares @ channel.scatter(weight, squares.shape[1])
            part += scale * share * (1 - share) * counts.reshape(-1, *[1] * (part.ndim - 1))
        transitions += scale * float(weight[corpus.graph.edges[:, 1]].sum()) / L**2 * (1 - 1 / L**2)
        return diagonal

    def _observed_counts(self, known: Array) -> Array:
        """Φ(x, y) summed over the structures whose labels are all known: F(x, y) = Φ · w."""
        corpus, L = self.encoded.corpus, self.weights.labels
        observed = np.zeros(self.weights.size)
        if not self.loss.omega:
            return observed
        by_channel, transitions, by_edge = self.weights.views(observed)
        weight = np.repeat(np.where(known, self.sample_weight, 0.0), np.diff(corpus.offsets))
        one_hot = np.zeros((corpus.size, L))
        counted = np.flatnonzero(weight)
        one_hot[counted, self.labels[counted]] = weight[counted]
        self._add_to_features(self.encoded.channels, by_channel, one_hot)
        parent, child = corpus.graph.edges[weight[corpus.graph.edges[:, 1]] > 0].T
        pair = self.labels[parent] * L + self.labels[child]
        transitions += np.bincount(pair, weights=weight[child], minlength=L * L).reshape(L, L)
        if by_edge:
            pairs = np.zeros((corpus.size, L * L))
            pairs[child, pair] = weight[child]
            self._add_to_features(self.encoded.edge_channels, by_edge, pairs)
        return observed

    def _add_to_features(self, channels: list[Channel], parts: list[Array], node_values: Array) -> None:
        """Add the products of node values, (N, L) or (N, L²), and each channel's features."""
        for channel, part in zip(channels, parts, strict=True):
            table = self.transposed[channel.table]
            part += (table @ channel.scatter(node_values, table.shape[1])).reshape(part.shape)


class _ChainTables:
    """Fully labelled chains, solved several at a time from tables of exponentiated scores."""

    def __init__(self, owner: TrainingLoss, chains: Array) -> None:
        encoded, self.owner = owner.encoded, owner
        sizes = np.diff(encoded.corpus.offsets)
        lengths = sizes[chains]
        self.sorted = chains[np.argsort(lengths, kind="stable")]
        self.blocks = _balanced_blocks(np.sort(lengths))
        self.scores = ScoreTable(encoded, encoded.corpus.nodes_of(self.sorted), owner.n_jobs)
        self.weight = np.zeros(len(sizes))
        self.weight[chains] = owner.sample_weight[chains]
        self.edge_count = float((self.weight[chains] * (lengths - 1)).sum())
        weight, count = np.repeat(self.weight, sizes), self.scores.height
        self.counts = np.sum([np.bincount(column, weight, count) for column in self.scores.rows.T], axis=0)
        # The tables, and a gradient per block, are allocated once for all calls.
        self.table, self.top = np.empty((count, owner.weights.labels)), np.empty(count)
        self.gradients = [np.empty_like(self.table) for _ in self.blocks]

    def add(self, vector: Array, gradient: Array) -> tuple[float, Array]:
        """Add to the gradient; return the loss without ω F(y) and the chains that underflowed."""
        owner, encoded, loss = self.owner, self.owner.encoded, self.owner.loss
        _, transitions, _ = owner.weights.views(vector)
        table, top, rows = self.table, self.top, self.scores.rows
        self.scores.exponentiate(owner.weights.stacked(vector), table, top)
        top_pair = transitions.max()
        direct = np.exp(transitions - top_pair)
        factors = Factors(table, direct, np.ascontiguousarray(direct.T))
        data = Chains(encoded.corpus.offsets, rows, owner.labels, owner.node_weight, self.weight)
        unsafe = np.zeros(len(encoded.corpus), dtype=bool)

        def solve(k: int) -> tuple[float, Array]:
            chains, pairs = self.sorted[slice(*self.blocks[k])], np.zeros_like(direct)
            self.gradients[k].fill(0.0)
            into = Gradient(self.gradients[k], pairs, unsafe)
            return chain_losses(chains, data, factors, loss.omega, into), pairs

        solved = run(solve, range(len(self.blocks)), owner.n_jobs)
        self.scores.add_gradient(self.gradients, owner.weights.stacked(gradient))
        _, pair_gradient, _ = owner.weights.views(gradient)
        pair_gradient += sum(pairs for _, pairs in solved) * direct
        left_out = np.flatnonzero(unsafe)
        value = sum(part for part, _ in solved) + loss.omega * self._shift(top, top_pair, left_out)
        return float(value), left_out

    def _shift(self, top: Array, top_pair: float, left_out: Array) -> float:
        """How much shifting tables and transitions reduced Σ log Z, without `left_out` chains."""
        total = dot(self.counts, top) + self.edge_count * float(top_pair)
        for chain in left_out:
            rows = self.scores.rows[slice(*self.owner.encoded.corpus.offsets[chain : chain + 2])]
            total -= self.weight[chain] * (top[rows].sum() + (len(rows) - 1) * top_pair)
        return float(total)


class _Structures:
    """Structures by general inference: trees, unknown labels, pair features, extreme scores."""

    def __init__(self, owner: TrainingLoss, structures: Array) -> None:
        self.owner, L = owner, owner.weights.labels
        with_edges = owner.loss.pointwise or bool(owner.encoded.edge_channels)
        limit = max(1, (1 << 22) // (L * L if with_edges else L))
        sizes = np.diff(owner.encoded.corpus.offsets)[structures]
        self.groups = np.split(structures, np.flatnonzero(np.diff(np.cumsum(sizes) // limit)) + 1)

    def add(self, vector: Array, gradient: Array) -> float:
        """Add to the gradient: the loss without ω F(y) of fully labelled structures."""
        owner = self.owner
        scores, transitions = score_structures(owner.encoded, owner.weights, vector)
        by_channel, pair_gradient, by_edge = owner.weights.views(gradient)
        node_gradient = np.zeros_like(scores)
        edge_gradient = np.zeros(transitions.shape if transitions.ndim == 3 else (0, 0, 0))
        value = 0.0
        for group in self.groups:
            problem = _Group(owner, group, scores, transitions)
            value += problem.solve(node_gradient, edge_gradient, pair_gradient)
        owner._add_to_features(owner.encoded.channels, by_channel, node_gradient)
        if by_edge:
            pairs = edge_gradient.reshape(len(edge_gradient), -1)
            owner._add_to_features(owner.encoded.edge_channels, by_edge, pairs)
        return value


class _Group:
    """A group of structures as a corpus, with its scores and transitions."""

    def __init__(self, owner: TrainingLoss, structures: Array, scores: Array, transitions: Array) -> None:
        graph, loss = owner.encoded.corpus.graph, owner.loss
        self.graph, self.nodes = graph.take(structures), graph.nodes_of(structures)
        self.scores = scores[self.nodes]
        self.transitions = transitions if transitions.ndim == 2 else transitions[self.nodes]
        self.labels = owner.labels[self.nodes]
        self.weight = owner.sample_weight[structures]
        self.omega, self.n_jobs = loss.omega, owner.n_jobs
        self.node_weight = owner.node_weight[self.nodes] if loss.pointwise else np.zeros(0)

    def solve(self, node_gradient: Array, edge_gradient: Array, pair_gradient: Array) -> float:
        """Add to the gradients: the loss without ω F(y) of fully labelled structures."""
        if len(self.node_weight):
            value, node, edge = self._pointwise()
        else:
            value, node, edge = 0.0, np.zeros_like(self.scores), np.zeros_like(self.transitions)
        if self.omega:
            part, by_node, by_edge = self._sequential(with_edges=edge.ndim == 3)
            value, node, edge = value + part, node + by_node, edge + by_edge
        node_gradient[self.nodes] += node
        if self.transitions.ndim == 3:
            edge_gradient[self.nodes] += edge
        pair_gradient += edge.sum(axis=0) if edge.ndim == 3 else edge
        return value

    def _sequential(self, with_edges: bool) -> tuple[float, Array, Array]:
        """ω Σ log Z, minus log Σ_{y fits} exp F where labels are unknown, and the gradients."""
        value, node, edge = self._expected(self.scores, with_edges, self.weight)
        unknown = self.labels < 0
        if unknown.any():
            fits = self.scores.copy()
            known = np.flatnonzero(~unknown)
            kept = fits[known, self.labels[known]]
            fits[known] = -np.inf
            fits[known, self.labels[known]] = kept
            partly = np.logical_or.reduceat(unknown, self.graph.offsets[:-1])
            # F(y) of fully labelled structures is linear in w and added as a whole: weight 0 here
            part, by_node, by_edge = self._expected(fits, with_edges, self.weight * partly)
            value, node, edge = value - part, node - by_node, edge - by_edge
        return self.omega * value, self.omega * node, self.omega * edge

    def _expected(self, scores: Array, with_edges: bool, weight: Array) -> tuple[float, Array, Array]:
        """Σ weight · log Z and its gradients, which are weighted marginals."""
        by_node, given = self._by_node(weight), (self.graph, scores, self.transitions)
        if with_edges:
            log_z, node, edge = inference.marginals(*given, edges=True, n_jobs=self.n_jobs)
            edge = edge * by_node[:, None, None]
        else:
            log_z, node, edge = inference.expectations(*given, weight, n_jobs=self.n_jobs)
        return float(log_z @ weight), node * by_node[:, None], edge

    def _by_node(self, weight: Array) -> Array:
        """The weights of structures, repeated for their nodes."""
        return np.repeat(weight, np.diff(self.graph.offsets))

    def _pointwise(self) -> tuple[float, Array, Array]:
        """−Σ w log p_t(y_t) and its gradients."""
        given = self.graph, self.scores, self.transitions
        _, node, edge = inference.marginals(*given, edges=True, n_jobs=self.n_jobs)
        counted = np.flatnonzero(self.node_weight > 0)
        gold = node[counted, self.labels[counted]]
        usual = gold >= TINY
        weight, by_node = self.node_weight * self._by_node(self.weight), np.zeros(len(node))
        by_node[counted[usual]] = weight[counted[usual]]
        value = -float(by_node[counted[usual]] @ np.log(gold[usual]))
        node_gradient = np.empty_like(node)
        forest = self.graph.forest((0, len(self.graph)))
        spread_evidence(forest, len(self.graph), self.labels, by_node, node, edge, node_gradient)
        for t in counted[~usual]:
            value += weight[t] * self._by_conditioning(int(t), weight[t], node_gradient, edge)
        return value, node_gradient, edge

    def _by_conditioning(self, t: int, weight: float, node_gradient: Array, edge_gradient: Array) -> float:
        """−log p_t(y_t) as the difference of log Z and log Z given y_t: exact if it is tiny."""
        structure = int(np.searchsorted(self.graph.offsets, t, side="right")) - 1
        nodes = self.graph.nodes((structure, structure + 1))
        graph = self.graph.take(np.array([structure]))
        transitions = self.transitions if self.transitions.ndim == 2 else self.transitions[nodes]
        fits = self.scores[nodes].copy()
        fits[t - nodes.start] = -np.inf
        fits[t - nodes.start, self.labels[t]] = self.scores[t, self.labels[t]]
        (log_z, node, edge), (log_fits, node_fits, edge_fits) = (
            inference.marginals(graph, scores, transitions, edges=True, n_jobs=1)
            for scores in (self.scores[nodes], fits)
        )
        node_gradient[nodes] += weight * (node - node_fits)
        edge_gradient[nodes] += weight * (edge - edge_fits)
        return float(log_z[0] - log_fits[0])


def _balanced_blocks(lengths: Array) -> list[Block]:
    """Ranges of chains sorted by length, of about equal work.

    Each has its own gradient, so they are few. They do not depend on the number of threads, and
    therefore neither does any result.
    """
    parts, work = 4 if len(lengths) > 4 * LANES else 1, np.cumsum(lengths)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, parts) / parts) // LANES * LANES
    return [(a, b) for a, b in itertools.pairwise([0, *cuts.tolist(), len(lengths)]) if b > a]
