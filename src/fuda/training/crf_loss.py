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
gradients are summed by type and then by feature. Sums over structures and nodes have the same bits
in any order (`fuda.inference.exact_sums`), so that parts of a corpus add up to it exactly.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from fuda import inference
from fuda.checks import is_choice
from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded
from fuda.errors import DataError, short
from fuda.inference.chain_batches import Chains, Factors, Gradient, chain_losses
from fuda.inference.exact_sums import rounded, rounder, total
from fuda.inference.pointwise import spread_evidence
from fuda.inference.simd_doubles import LANES
from fuda.inference.sum_product import TINY
from fuda.runtime.parallel import Block, run, thread_count
from fuda.training.score_table import ScoreTable

Array = np.ndarray
# The largest number of threads for chains: each has a gradient as large as the table of scores.
_MOST_THREADS = 8


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
    def by_name(cls, name: str, order: float) -> Loss:
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
        >>> Loss.by_name("markov", order=2)
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
        bounds = itertools.pairwise([0, *self._ends])  # np.split takes much longer
        views = [vector[a:b].reshape(shape) for (a, b), shape in zip(bounds, self._shapes, strict=True)]
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
    rounder : float, optional
        What rounds the terms of the gradient, where other structures count too. Default: that of
        `rounder_of` for these structures.

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
        rounder: float | None = None,
    ) -> None:
        corpus = encoded.corpus
        self.encoded, self.labels, self.loss, self.n_jobs = encoded, labels.astype(np.int64), loss, n_jobs
        self.weights = Weights.of(encoded, label_count)
        given_weights = sample_weight, position_weight
        self.sample_weight, self.node_weight = weights_of(corpus, labels, loss, *given_weights)
        self.transposed = [transposed(table.matrix) for table in encoded.tables]
        self.rounder = rounder or rounder_of(corpus, loss, self.sample_weight, self.node_weight)
        simple = corpus.is_chain and not encoded.edge_channels
        fast = np.logical_and.reduceat(labels >= 0, corpus.offsets[:-1]) & simple
        chains = np.flatnonzero(fast)
        chains = chains[np.argsort(np.diff(corpus.offsets)[chains], kind="stable")]
        self.scores = ScoreTable(encoded, corpus.nodes_of(chains), n_jobs)
        self._chains = _ChainTables(self, chains) if fast.any() else None
        self._rest = [] if fast.all() else [_Structures(self, np.flatnonzero(~fast))]
        self._by_row = self._chains.gradients if self._chains else [self._empty_table()]
        self._losses, self._gradient = np.zeros(len(corpus)), np.empty(self.weights.size)

    def __call__(self, vector: Array) -> tuple[float, Array]:
        """The loss and its gradient, an array that the next call overwrites."""
        losses, gradient = self.by_structure(vector)
        return total(losses), gradient

    def by_structure(self, vector: Array, out: Array | None = None) -> tuple[Array, Array]:
        """The loss of each structure, and the gradient of all, in `out` if that is given.

        The next call overwrites both.
        """
        gradient, rest = self._gradient if out is None else out, self._rest
        _, pair_gradient, by_edge = self.weights.views(gradient)
        pair_gradient[:] = 0.0
        if self._chains:
            unsafe = self._chains.solve(vector, self._losses, pair_gradient)
            if len(unsafe):
                rest = [*rest, _Structures(self, unsafe)]
        else:
            self._by_row[0].fill(0.0)
        for part in by_edge:
            part[:] = 0.0
        for structures in rest:
            self._add_rest(structures, vector, pair_gradient, by_edge)
        self.scores.collect(self._by_row, self.weights.stacked(gradient))
        return self._losses, gradient

    def _add_rest(
        self, structures: _Structures, vector: Array, pair_gradient: Array, by_edge: list[Array]
    ) -> None:
        """Compute structures by general inference."""
        by_node, by_pair = structures.solve(vector, self._losses, pair_gradient)
        for channel, place in zip(self.encoded.channels, self.scores.places, strict=True):
            self._by_row[0][place] += channel.scatter(by_node, len(place))
        for channel, part in zip(self.encoded.edge_channels, by_edge, strict=True):
            table = self.transposed[channel.table]
            part += (table @ channel.scatter(by_pair, table.shape[1])).reshape(part.shape)

    def _empty_table(self) -> Array:
        """An array for numbers per row and label."""
        return np.empty((self.scores.height, self.weights.labels))

    def curvature(self) -> Array:
        """An approximate diagonal of the Hessian at w = 0; see `curvature_at_zero`."""
        return curvature_at_zero(self.encoded, self.weights, self.loss, self.sample_weight)


def weights_of(
    corpus: Corpus, labels: Array, loss: Loss, sample_weight: Array | None, position_weight: Array | None
) -> tuple[Array, Array]:
    """Return the weights of structures, and of nodes in L₀, if that counts."""
    samples = np.ones(len(corpus)) if sample_weight is None else sample_weight.astype(np.float64)
    nodes = np.ones(corpus.size) if position_weight is None else position_weight.astype(np.float64)
    return samples, np.where(labels >= 0, nodes, 0.0) if loss.pointwise else np.zeros(0)


def rounder_of(corpus: Corpus, loss: Loss, sample_weight: Array, node_weight: Array) -> float:
    """Return what rounds the terms of gradients.

    A node has up to ω times the weight of its structure, and up to Σ w_t of all of its nodes times
    that, where labels far apart depend on each other.
    """
    by_structure = np.full(len(corpus), loss.omega)
    if loss.pointwise:
        by_structure += np.add.reduceat(node_weight, corpus.offsets[:-1])
    return rounder(total(sample_weight * np.diff(corpus.offsets) * by_structure))


def curvature_at_zero(encoded: Encoded, weights: Weights, loss: Loss, sample_weight: Array) -> Array:
    """Compute an approximate diagonal of the Hessian at w = 0: Σ x² (1/L)(1 − 1/L) per weight."""
    L, corpus, diagonal = weights.labels, encoded.corpus, np.zeros(weights.size)
    by_channel, transitions, by_edge = weights.views(diagonal)
    weight = np.repeat(sample_weight, np.diff(corpus.offsets))[:, None]
    scale = loss.omega + (1.0 if loss.pointwise else 0.0)
    squares = [squared(transposed(table.matrix)) for table in encoded.tables]
    channels = encoded.channels + encoded.edge_channels
    for channel, part in zip(channels, by_channel + by_edge, strict=True):
        share, table = 1 / L ** (part.ndim - 1), squares[channel.table]
        counts = table @ channel.scatter(weight, table.shape[1])
        part += scale * share * (1 - share) * counts.reshape(-1, *[1] * (part.ndim - 1))
    transitions += scale * float(weight[corpus.graph.edges[:, 1]].sum()) / L**2 * (1 - 1 / L**2)
    return diagonal


class _ChainTables:
    """Fully labelled chains, solved several at a time from tables of exponentiated scores."""

    def __init__(self, owner: TrainingLoss, by_length: Array) -> None:
        self.owner, self.sorted = owner, by_length
        self.threads = min(thread_count(owner.n_jobs), _MOST_THREADS)
        self.blocks = _balanced_blocks(np.diff(owner.encoded.corpus.offsets)[by_length], self.threads)
        # The table, and a gradient per thread, are allocated once for all calls.
        self.table = owner._empty_table()
        self.gradients = [np.empty_like(self.table) for _ in range(min(self.threads, len(self.blocks)))]
        self.observed = self._observed_pairs(by_length)

    def solve(self, vector: Array, losses: Array, pair_gradient: Array) -> Array:
        """Fill losses and gradients, add to the pairs' one; return the chains that underflowed."""
        owner, corpus = self.owner, self.owner.encoded.corpus
        owner.scores.exponentiate(owner.weights.stacked(vector), self.table)
        _, transitions, _ = owner.weights.views(vector)
        direct = np.exp(transitions - transitions.max())
        factors = Factors(self.table, direct, np.ascontiguousarray(direct.T))
        weights = owner.labels, owner.node_weight, owner.sample_weight
        data = Chains(corpus.offsets, owner.scores.rows, *weights)
        unsafe, free = np.zeros(len(corpus), dtype=bool), [*self.gradients]
        run(lambda gradient: gradient.fill(0.0), free, self.threads)

        def solve(block: Block) -> Array:
            gradient, pairs = free.pop(), np.zeros_like(direct)
            into = Gradient(losses, gradient, pairs, unsafe, owner.rounder)
            chain_losses(self.sorted[slice(*block)], data, factors, owner.loss.omega, into)
            free.append(gradient)
            return pairs

        for pairs in run(solve, self.blocks, self.threads):
            pair_gradient += pairs
        left_out = np.flatnonzero(unsafe)
        pair_gradient -= self.observed - (self._observed_pairs(left_out) if len(left_out) else 0.0)
        return left_out

    def _observed_pairs(self, chains: Array) -> Array:
        """ω times the weights of the pairs of labels in chains, each rounded."""
        owner, L = self.owner, self.owner.weights.labels
        nodes, sizes = owner.encoded.corpus.nodes_of(chains), np.diff(owner.encoded.corpus.offsets)[chains]
        weight = rounded(owner.loss.omega * owner.sample_weight[chains], owner.rounder)
        child = np.delete(np.arange(len(nodes)), np.cumsum(sizes) - sizes)
        pair = owner.labels[nodes[child] - 1] * L + owner.labels[nodes[child]]
        counts = np.bincount(pair, np.repeat(weight, sizes)[child], minlength=L * L)
        return counts.reshape(L, L)


class _Structures:
    """Structures by general inference: trees, unknown labels, pair features, extreme scores."""

    def __init__(self, owner: TrainingLoss, structures: Array) -> None:
        self.owner, L = owner, owner.weights.labels
        with_edges = owner.loss.pointwise or bool(owner.encoded.edge_channels)
        limit = max(1, (1 << 22) // (L * L if with_edges else L))
        sizes = np.diff(owner.encoded.corpus.offsets)[structures]
        self.groups = np.split(structures, np.flatnonzero(np.diff(np.cumsum(sizes) // limit)) + 1)

    def solve(self, vector: Array, losses: Array, pair_gradient: Array) -> tuple[Array, Array]:
        """Fill losses, add to the pairs' gradient; return those of nodes and of their pairs."""
        owner = self.owner
        scores, transitions = score_structures(owner.encoded, owner.weights, vector)
        by_node = np.zeros_like(scores)
        by_pair = np.zeros(transitions.shape if transitions.ndim == 3 else (0, 0, 0))
        for structures in self.groups:
            group = _Group(owner, structures, scores, transitions)
            losses[structures], node, edge = group.solve()
            by_node[group.nodes] = rounded(node, owner.rounder)
            edge = rounded(edge, owner.rounder) if edge.ndim == 3 else edge
            if transitions.ndim == 3:
                by_pair[group.nodes] = edge
            pair_gradient += edge.sum(axis=0) if edge.ndim == 3 else edge
        return by_node, by_pair.reshape(len(by_pair), owner.weights.labels**2)


class _Group:
    """A group of structures as a corpus, with its scores and transitions."""

    def __init__(self, owner: TrainingLoss, structures: Array, scores: Array, transitions: Array) -> None:
        graph, loss = owner.encoded.corpus.graph, owner.loss
        self.graph, self.nodes = graph.take(structures), graph.nodes_of(structures)
        self.scores = scores[self.nodes]
        self.transitions = transitions if transitions.ndim == 2 else transitions[self.nodes]
        self.labels = owner.labels[self.nodes]
        self.weight = owner.sample_weight[structures]
        self.omega, self.n_jobs, self.rounder = loss.omega, owner.n_jobs, owner.rounder
        self.node_weight = owner.node_weight[self.nodes] if loss.pointwise else np.zeros(0)

    def solve(self) -> tuple[Array, Array, Array]:
        """The losses, and their gradients by nodes, and by pairs, of each node or all together."""
        if len(self.node_weight):
            losses, node, edge = self._pointwise()
        else:
            losses, node = np.zeros(len(self.graph)), np.zeros_like(self.scores)
            edge = np.zeros_like(self.transitions)
        if self.omega:
            more, by_node, by_edge = self._sequential(with_edges=edge.ndim == 3)
            losses, node, edge = losses + more, node + by_node, edge + by_edge
        return losses, node, edge

    def _sequential(self, with_edges: bool) -> tuple[Array, Array, Array]:
        """ω (log Z − log Σ_{y fits} exp F), and the gradients."""
        weight, unknown = self.omega * self.weight, self.labels < 0
        losses, node, edge = self._expected(self.scores, with_edges, weight)
        partly = np.logical_or.reduceat(unknown, self.graph.offsets[:-1])
        self._subtract_gold(np.where(partly, 0.0, weight), losses, node, edge)
        if partly.any():
            fits = self.scores.copy()
            known = np.flatnonzero(~unknown)
            known_scores = fits[known, self.labels[known]]
            fits[known] = -np.inf
            fits[known, self.labels[known]] = known_scores
            less, by_node, by_edge = self._expected(fits, with_edges, weight * partly)
            losses, node, edge = losses - less, node - by_node, edge - by_edge
        return losses, node, edge

    def _subtract_gold(self, weight: Array, losses: Array, node: Array, edge: Array) -> None:
        """Subtract weight · F(y) and its gradients, where there is weight."""
        by_node, labels, heads = self._by_node(weight), self.labels, self.graph.heads
        counted = np.flatnonzero(by_node)
        node[counted, labels[counted]] -= by_node[counted]
        gold = np.zeros(len(labels))
        gold[counted] = self.scores[counted, labels[counted]]
        child = counted[heads[counted] >= 0]
        pair = labels[heads[child]], labels[child]
        gold[child] += self.transitions[(child, *pair) if self.transitions.ndim == 3 else pair]
        if edge.ndim == 3:
            edge[(child, *pair)] -= by_node[child]
        else:
            np.subtract.at(edge, pair, rounded(by_node[child], self.rounder))
        losses -= weight * np.add.reduceat(gold, self.graph.offsets[:-1])

    def _expected(self, scores: Array, with_edges: bool, weight: Array) -> tuple[Array, Array, Array]:
        """weight · log Z and its gradients, which are weighted marginals."""
        by_node, problem = self._by_node(weight), (self.graph, scores, self.transitions)
        if with_edges:
            log_z, node, edge = inference.marginals(*problem, edges=True, n_jobs=self.n_jobs)
            edge = edge * by_node[:, None, None]
        else:
            log_z, node, edge = inference.expectations(*problem, weight, self.n_jobs, self.rounder)
        return log_z * weight, node * by_node[:, None], edge

    def _by_node(self, weight: Array) -> Array:
        """The weights of structures, repeated for their nodes."""
        return np.repeat(weight, np.diff(self.graph.offsets))

    def _pointwise(self) -> tuple[Array, Array, Array]:
        """−Σ w log p_t(y_t) of each structure, and the gradients."""
        problem = self.graph, self.scores, self.transitions
        _, node, edge = inference.marginals(*problem, edges=True, n_jobs=self.n_jobs)
        counted = np.flatnonzero(self.node_weight > 0)
        gold = node[counted, self.labels[counted]]
        usual = gold >= TINY
        weight, by_node = self.node_weight * self._by_node(self.weight), np.zeros(len(node))
        by_node[counted[usual]] = weight[counted[usual]]
        of_nodes = np.zeros(len(node))
        of_nodes[counted[usual]] = -by_node[counted[usual]] * np.log(gold[usual])
        node_gradient = np.empty_like(node)
        forest = self.graph.forest((0, len(self.graph)))
        spread_evidence(forest, len(self.graph), self.labels, by_node, node, edge, node_gradient)
        for t in counted[~usual]:
            of_nodes[t] = weight[t] * self._by_conditioning(int(t), weight[t], node_gradient, edge)
        return np.add.reduceat(of_nodes, self.graph.offsets[:-1]), node_gradient, edge

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


def _balanced_blocks(lengths: Array, threads: int) -> list[Block]:
    """Ranges of chains sorted by length, of about equal work: a few per thread."""
    parts, work = 4 * threads if threads > 1 and len(lengths) > 4 * LANES else 1, np.cumsum(lengths)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, parts) / parts) // LANES * LANES
    return [(a, b) for a, b in itertools.pairwise([0, *cuts.tolist(), len(lengths)]) if b > a]
