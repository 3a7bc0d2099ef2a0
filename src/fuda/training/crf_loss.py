"""CRF losses and their gradients, from weights to numbers.

f(y|x) = exp F(x, y) / Z(x) with node marginals p_t. A loss is κ L₁ + L₀ over the structures i and nodes t:

=============  ======================================  =======  ==========
sequential     L₁ = −Σ_i log f(y⁽ⁱ⁾|x⁽ⁱ⁾)               κ = 1    w = 0
pointwise      L₀ = −Σ_i Σ_t w_t log p_t(y_t)           κ = 0    w given
Markov         M_k = k L₁ + L₀  (theorem 1)             κ = k    w given
=============  ======================================  =======  ==========

M_k is the sum of −log P(y_t..y_{t+k}) over all windows of k+1 nodes, cut at the ends, for a whole k; k may
be any number ≥ 0, and λ = k/(k+1) is the paper's mixing of the two losses, L_λ = (1−λ) M_k. Where a label is
not known L₁ sums over it: −log Σ_{y fits} f(y|x), and L₀ leaves the node out.

Weights are one vector: for each channel (features, L), then transitions (L, L), then for each edge channel
(features, L, L). Scores are tables over types, looked up by the nodes; gradients are gathered by type and
then by feature.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fuda import inference
from fuda.data.encoding import Channel, Encoded
from fuda.errors import DataError
from fuda.inference.chain_batches import LANES, Chains, Factors, Gradient, chain_losses
from fuda.inference.pointwise import spread_evidence
from fuda.inference.sum_product import TINY
from fuda.optimize.vectors import Vectors, dot
from fuda.parallel import Block, run

Array = np.ndarray


@dataclass(frozen=True)
class Loss:
    """κ L₁ + L₀, where `pointwise` says whether L₀ counts."""

    kappa: float
    pointwise: bool

    @classmethod
    def named(cls, name: str, order: float) -> Loss:
        if name == "sequential":
            return cls(1.0, False)
        if name == "pointwise":
            return cls(0.0, True)
        if name == "markov":
            return cls(float(order), True)
        raise DataError(f"loss={name!r}: choose sequential, pointwise or markov")


class Weights:
    """Where each part of the weight vector lies."""

    def __init__(self, channel_features: list[int], edge_features: list[int], labels: int) -> None:
        self.labels = labels
        L = labels
        shapes = [(n, L) for n in channel_features] + [(L, L)] + [(n, L, L) for n in edge_features]
        bounds = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
        self.size = int(bounds[-1])
        self._parts = list(zip(bounds[:-1], bounds[1:], shapes, strict=True))
        self._channels = len(channel_features)

    @classmethod
    def of(cls, encoded: Encoded, labels: int) -> Weights:
        return cls(
            [encoded.tables[channel.table].n_features for channel in encoded.channels],
            [encoded.tables[channel.table].n_features for channel in encoded.edge_channels],
            labels,
        )

    def views(self, vector: Array) -> tuple[list[Array], Array, list[Array]]:
        """Views of a weight vector: by channel, transitions, by edge channel."""
        parts = [vector[a:b].reshape(shape) for a, b, shape in self._parts]
        return parts[: self._channels], parts[self._channels], parts[self._channels + 1 :]


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


class TrainingLoss:
    """The loss of labelled structures as a function of the weights: calling it gives value and gradient."""

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
        self.transposed = [
            sp.csr_matrix(table.matrix.T)
            if sp.issparse(table.matrix)
            else np.ascontiguousarray(table.matrix.T)
            for table in encoded.tables
        ]
        known = np.logical_and.reduceat(labels >= 0, corpus.offsets[:-1])
        simple = corpus.is_chain and not encoded.edge_channels
        self._fast = np.flatnonzero(known) if simple else np.empty(0, dtype=np.int64)
        self._chains = _ChainTables(self, self._fast) if len(self._fast) else None
        slow = np.flatnonzero(~known) if simple else np.arange(len(corpus))
        self._rest = _Structures(self, slow) if len(slow) else None
        self._observed = self._observed_counts(known)
        self._vectors = Vectors(self.weights.size, n_jobs)
        self._gradient = np.empty(self.weights.size)

    def __call__(self, vector: Array) -> tuple[float, Array]:
        """The loss and its gradient, which the next call overwrites."""
        gradient = self._gradient
        value = -self.loss.kappa * self._vectors.scale(self._observed, -self.loss.kappa, vector, gradient)
        rest = [self._rest] if self._rest else []
        if self._chains:
            part, unsafe = self._chains.add(vector, gradient)
            value += part
            if len(unsafe):
                rest.append(_Structures(self, unsafe))
        for structures in rest:
            value += structures.add(vector, gradient)
        return value, gradient

    def curvature(self) -> Array:
        """A rough diagonal of the Hessian where all labels are alike: Σ x² (1/L)(1 − 1/L) for each weight."""
        L = self.weights.labels
        diagonal = np.zeros(self.weights.size)
        by_channel, transitions, by_edge = self.weights.views(diagonal)
        corpus = self.encoded.corpus
        weight = np.repeat(self.sample_weight, np.diff(corpus.offsets))[:, None]
        scale = self.loss.kappa + (1.0 if self.loss.pointwise else 0.0)
        for channels, parts, share in (
            (self.encoded.channels, by_channel, 1 / L),
            (self.encoded.edge_channels, by_edge, 1 / L**2),
        ):
            for channel, part in zip(channels, parts, strict=True):
                squares = self.transposed[channel.table]
                squares = squares.power(2) if sp.issparse(squares) else squares**2
                counts = squares @ channel.scatter(weight, squares.shape[1])
                part += scale * share * (1 - share) * counts.reshape(-1, *[1] * (part.ndim - 1))
        transitions += scale * float(weight[corpus.graph.edges[:, 1]].sum()) / L**2 * (1 - 1 / L**2)
        return diagonal

    def digest(self) -> str:
        """What tells this problem from another: a hash of structures, features, labels and weights."""
        encoded, digest = self.encoded, hashlib.sha256()
        parts = [
            self.labels,
            self.sample_weight,
            self.node_weight,
            encoded.corpus.offsets,
            encoded.corpus.graph.heads,
        ]
        for channel in (*encoded.channels, *encoded.edge_channels):
            parts += [channel.rows, np.array(channel.table)]
            parts += [] if channel.indptr is None else [channel.indptr]
        for table in self.transposed:
            parts += [table.data, table.indices, table.indptr] if sp.issparse(table) else [table]
        for part in parts:
            digest.update(f"{part.shape}{part.dtype}".encode() + part.tobytes())
        return digest.hexdigest()

    def _observed_counts(self, known: Array) -> Array:
        """Φ(x, y) summed over the structures whose labels are all known: F(x, y) = Φ · w."""
        corpus, L = self.encoded.corpus, self.weights.labels
        observed = np.zeros(self.weights.size)
        if not self.loss.kappa:
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
        for channel, part in zip(channels, parts, strict=True):
            table = self.transposed[channel.table]
            part += (table @ channel.scatter(node_values, table.shape[1])).reshape(part.shape)


class _ChainTables:
    """Fully labelled chains, by the eight-lane loop over exponentiated type tables."""

    def __init__(self, owner: TrainingLoss, chains: Array) -> None:
        encoded = owner.encoded
        self.owner = owner
        lengths = np.diff(encoded.corpus.offsets)[chains]
        self.sorted = chains[np.argsort(lengths, kind="stable")]
        self.blocks = _balanced_blocks(np.sort(lengths))
        sizes = [encoded.tables[channel.table].matrix.shape[0] for channel in encoded.channels]
        self.bounds = np.cumsum([0, *sizes])
        self.rows = np.column_stack(
            [
                channel.rows.astype(np.int64) + start
                for channel, start in zip(encoded.channels, self.bounds, strict=False)
            ]
        ).astype(np.int32)
        counts = np.zeros(self.bounds[-1])
        weight = np.zeros(len(lengths) and len(encoded.corpus))
        weight[chains] = owner.sample_weight[chains]
        self.weight = weight
        node_weight = np.repeat(weight, np.diff(encoded.corpus.offsets))
        for column in self.rows.T:
            counts += np.bincount(column, weights=node_weight, minlength=len(counts))
        self.counts = counts
        self.edge_count = float((weight[chains] * (np.diff(encoded.corpus.offsets)[chains] - 1)).sum())
        # Room for the tables and for the gradient of each block, kept from call to call.
        self.table, self.top = np.empty((self.bounds[-1], owner.weights.labels)), np.empty(self.bounds[-1])
        self.gradients = [np.empty_like(self.table) for _ in self.blocks]

    def add(self, vector: Array, gradient: Array) -> tuple[float, Array]:
        """Add to the gradient; the loss without κ F(y), and the chains that were not safe."""
        owner, encoded, loss = self.owner, self.owner.encoded, self.owner.loss
        by_channel, transitions, _ = owner.weights.views(vector)
        table, top = self.table, self.top

        def fill(c: int) -> None:
            rows = slice(*self.bounds[c : c + 2])
            part = encoded.tables[encoded.channels[c].table].matrix @ by_channel[c]
            part.max(axis=1, out=top[rows])
            part -= top[rows, None]
            np.exp(part, out=table[rows])

        run(fill, range(len(by_channel)), owner.n_jobs)
        top_pair = transitions.max()
        direct = np.exp(transitions - top_pair)
        factors = Factors(table, direct, np.ascontiguousarray(direct.T))
        data = Chains(encoded.corpus.offsets, self.rows, owner.labels, owner.node_weight, self.weight)
        unsafe = np.zeros(len(encoded.corpus), dtype=bool)

        def solve(k: int) -> tuple[float, Array]:
            chains, pairs = self.sorted[slice(*self.blocks[k])], np.zeros_like(direct)
            self.gradients[k].fill(0.0)
            into = Gradient(self.gradients[k], pairs, unsafe)
            value = chain_losses(chains, data, factors, loss.kappa, into)
            return value, pairs

        solved = run(solve, range(len(self.blocks)), owner.n_jobs)
        channel_gradients, pair_gradient, _ = owner.weights.views(gradient)

        def collect(c: int) -> None:
            rows = slice(*self.bounds[c : c + 2])
            total = self.gradients[0][rows]
            for part in self.gradients[1:]:
                total += part[rows]
            channel_gradients[c] += owner.transposed[encoded.channels[c].table] @ total

        run(collect, range(len(by_channel)), owner.n_jobs)
        pair_gradient += sum(pairs for _, pairs in solved) * direct
        left_out = np.flatnonzero(unsafe)
        value = sum(part for part, _ in solved) + loss.kappa * self._taken_out(top, top_pair, left_out)
        return float(value), left_out

    def _taken_out(self, top: Array, top_pair: float, left_out: Array) -> float:
        """What the shift of tables and transitions took out of Σ log Z of the chains that were done."""
        total = dot(self.counts, top) + self.edge_count * float(top_pair)
        for chain in left_out:
            nodes = slice(*self.owner.encoded.corpus.offsets[chain : chain + 2])
            rows = self.rows[nodes]
            total -= self.weight[chain] * (top[rows].sum() + (len(rows) - 1) * top_pair)
        return float(total)


class _Structures:
    """Any structures, by general inference: trees, labels not known, features of pairs, extreme scores."""

    def __init__(self, owner: TrainingLoss, structures: Array) -> None:
        corpus = owner.encoded.corpus
        self.owner = owner
        L = owner.weights.labels
        wants_edges = owner.loss.pointwise or bool(owner.encoded.edge_channels)
        limit = max(1, (1 << 22) // (L * L if wants_edges else L))
        sizes = np.diff(corpus.offsets)[structures]
        self.groups = np.split(structures, np.flatnonzero(np.diff(np.cumsum(sizes) // limit)) + 1)

    def add(self, vector: Array, gradient: Array) -> float:
        owner = self.owner
        scores, transitions = score_structures(owner.encoded, owner.weights, vector)
        by_channel, pair_gradient, by_edge = owner.weights.views(gradient)
        node_gradient = np.zeros_like(scores)
        edge_gradient = np.zeros(transitions.shape if transitions.ndim == 3 else (0, 0, 0))
        value = 0.0
        for group in self.groups:
            part = _Group(owner, group, scores, transitions)
            value += part.solve(node_gradient, edge_gradient, pair_gradient)
        owner._add_to_features(owner.encoded.channels, by_channel, node_gradient)
        if by_edge:
            pairs = edge_gradient.reshape(len(edge_gradient), -1)
            owner._add_to_features(owner.encoded.edge_channels, by_edge, pairs)
        return value


class _Group:
    """A group of structures laid side by side as a graph of their own."""

    def __init__(self, owner: TrainingLoss, structures: Array, scores: Array, transitions: Array) -> None:
        corpus, loss = owner.encoded.corpus, owner.loss
        sizes = np.diff(corpus.offsets)[structures]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        self.nodes = np.repeat(corpus.offsets[structures] - offsets[:-1], sizes) + np.arange(offsets[-1])
        local = np.full(corpus.size + 1, -1)  # its last entry stands for "no parent"
        local[self.nodes] = np.arange(len(self.nodes))
        self.graph = inference.Graph(
            offsets, local[corpus.graph.heads[self.nodes]], local[corpus.graph.order[self.nodes]]
        )
        self.scores = scores[self.nodes]
        self.transitions = transitions if transitions.ndim == 2 else transitions[self.nodes]
        self.labels = owner.labels[self.nodes]
        self.weight = owner.sample_weight[structures]
        self.by_node = np.repeat(self.weight, sizes)
        self.kappa, self.n_jobs = loss.kappa, owner.n_jobs
        self.node_weight = owner.node_weight[self.nodes] if loss.pointwise else np.zeros(0)

    def solve(self, node_gradient: Array, edge_gradient: Array, pair_gradient: Array) -> float:
        """Add the gradients of this group; its loss without κ F(y) of fully labelled structures."""
        if len(self.node_weight):
            value, node, edge = self._pointwise()
        else:
            value, node, edge = 0.0, np.zeros_like(self.scores), np.zeros_like(self.transitions)
        if self.kappa:
            part, by_node, by_edge = self._sequential(with_edges=edge.ndim == 3)
            value, node, edge = value + part, node + by_node, edge + by_edge
        node_gradient[self.nodes] += node
        if self.transitions.ndim == 3:
            edge_gradient[self.nodes] += edge
        pair_gradient += edge.sum(axis=0) if edge.ndim == 3 else edge
        return value

    def _sequential(self, with_edges: bool) -> tuple[float, Array, Array]:
        """κ Σ log Z, less the log of what fits where labels are not known, and the gradients."""
        value, node, edge = self._expected(self.scores, with_edges)
        unknown = self.labels < 0
        if unknown.any():
            fits = self.scores.copy()
            known = np.flatnonzero(~unknown)
            kept = fits[known, self.labels[known]]
            fits[known] = -np.inf
            fits[known, self.labels[known]] = kept
            partly = np.logical_or.reduceat(unknown, self.graph.offsets[:-1])
            # fully labelled structures have their F(y) elsewhere: weight 0 here
            part, by_node, by_edge = self._expected(fits, with_edges, self.weight * partly)
            value, node, edge = value - part, node - by_node, edge - by_edge
        return self.kappa * value, self.kappa * node, self.kappa * edge

    def _expected(
        self, scores: Array, with_edges: bool, weight: Array | None = None
    ) -> tuple[float, Array, Array]:
        weight = self.weight if weight is None else weight
        by_node = np.repeat(weight, np.diff(self.graph.offsets))
        if with_edges:
            log_z, node, edge = inference.marginals(
                self.graph, scores, self.transitions, edges=True, n_jobs=self.n_jobs
            )
            edge = edge * by_node[:, None, None]
        else:
            log_z, node, edge = inference.expectations(
                self.graph, scores, self.transitions, weight, n_jobs=self.n_jobs
            )
        return float(log_z @ weight), node * by_node[:, None], edge

    def _pointwise(self) -> tuple[float, Array, Array]:
        """−Σ w log p_t(y_t) and its gradients."""
        _, node, edge = inference.marginals(
            self.graph, self.scores, self.transitions, edges=True, n_jobs=self.n_jobs
        )
        counted = np.flatnonzero(self.node_weight > 0)
        gold = node[counted, self.labels[counted]]
        usual = gold >= TINY
        weight, by_node = self.node_weight * self.by_node, np.zeros(len(node))
        by_node[counted[usual]] = weight[counted[usual]]
        value = -float(by_node[counted[usual]] @ np.log(gold[usual]))
        node_gradient = np.empty_like(node)
        spread_evidence(
            self.graph.forest((0, len(self.graph))),
            len(self.graph),
            self.labels,
            by_node,
            node,
            edge,
            node_gradient,
        )
        for t in counted[~usual]:
            value += weight[t] * self._by_conditioning(int(t), weight[t], node_gradient, edge)
        return value, node_gradient, edge

    def _by_conditioning(self, t: int, weight: float, node_gradient: Array, edge_gradient: Array) -> float:
        """−log p_t(y_t) as log Z less log Z given y_t: exact where p_t(y_t) is next to nothing."""
        structure = int(np.searchsorted(self.graph.offsets, t, side="right")) - 1
        begin, end = self.graph.offsets[structure : structure + 2].tolist()
        own = slice(begin, end)
        parents = self.graph.heads[own]
        graph = inference.Graph(
            np.array([0, end - begin]),
            np.where(parents >= 0, parents - begin, -1),
            self.graph.order[own] - begin,
        )
        transitions = self.transitions if self.transitions.ndim == 2 else self.transitions[own]
        given = self.scores[own].copy()
        given[t - begin] = -np.inf
        given[t - begin, self.labels[t]] = self.scores[t, self.labels[t]]
        log_z, node, edge = inference.marginals(graph, self.scores[own], transitions, edges=True, n_jobs=1)
        log_given, node_given, edge_given = inference.marginals(
            graph, given, transitions, edges=True, n_jobs=1
        )
        node_gradient[own] += weight * (node - node_given)
        edge_gradient[own] += weight * (edge - edge_given)
        return float(log_z[0] - log_given[0])


def _balanced_blocks(lengths: Array) -> list[Block]:
    """Ranges of chains sorted by length, of about equal work.

    Each has a gradient of its own, so they are few. They do not depend on the number of threads, so that no
    result does.
    """
    parts = 4 if len(lengths) > 4 * LANES else 1
    work = np.cumsum(lengths)
    cuts = [0]
    for part in range(1, parts):
        cut = int(np.searchsorted(work, work[-1] * part / parts))
        cuts.append(cut // LANES * LANES)
    cuts.append(len(lengths))
    return [(a, b) for a, b in itertools.pairwise(cuts) if b > a]
