"""Pointed features of at most d nodes, one by one: the primal of the kernel machine, and its oracle.

A pointed feature is a shape with a point (a run, a connected subtree with the order of siblings, a directed
path), an observation feature for each of its nodes, and a label for each node. Node t of a structure, as the
point and with its own label left open, has

    φ_t = Σ_{substructures s with the point at t} c^|s| ψ_t ⊗ ⨂_{nodes i of s, i ≠ t} ψ_i ⊗ P(·|i),

where ψ are observation features and P is a product prior. With one weight for each feature and label,

    S(t,σ) = P(σ|t) ⟨w_σ, φ_t⟩,     a push of α:  w_σ += Σ_t α_t(σ) P(σ|t) φ_t.

⟨φ_τ, φ_t⟩ is κ(τ,t) of the linear kernel, the identity as label kernel, and all features of more than d nodes
left out: so where structures have at most d nodes this is the dual machine, number by number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda.data.graph import Neighbours
from fuda.marginalized.machine import Side

Array = np.ndarray
Nodes = tuple[int, ...]
Part = tuple[Hashable, float]  # what is seen at a node, and its value
Feature = tuple[Hashable, ...]  # a shape, and for each node what is seen there


class PrimalMachine:
    """As `machine.Machine`, by explicit features: pushes from `sources`, scores of `targets`."""

    is_scaled = False

    def __init__(self, max_nodes: int, mixing: float, sources: Side, targets: Side) -> None:
        self.sources, self.targets = sources, targets
        self.label_gram = np.eye(sources.prior.nodes.shape[1])
        self.weights: dict[Feature, Array] = {}
        self._source = _Features(sources, max_nodes, mixing)
        self._target = self._source if targets is sources else _Features(targets, max_nodes, mixing)

    def visit_in(self, order: Array) -> None:
        """As of `Machine`; here all orders are alike."""

    def push(self, structure: int, alpha: Array) -> None:
        """Let the coefficients of a source structure grow by alpha (nodes, L)."""
        nodes = self.sources.nodes(structure)
        gamma = self.gamma(alpha, nodes)
        for i in np.flatnonzero(gamma.any(axis=1)).tolist():
            for feature, value in self._source.of(nodes.start + i).items():
                self.weights[feature] = self.weights.get(feature, 0.0) + value * gamma[i]

    def push_all(self, alpha: Array) -> None:
        """Let the coefficients of all source nodes grow by alpha (N, L)."""
        for structure, part in enumerate(self.sources.encoded.corpus.split(alpha)):
            self.push(structure, part)

    def gamma(self, alpha: Array, nodes: slice) -> Array:
        """α_τ(σ) P(σ|τ) of these source nodes."""
        return alpha * self.sources.prior.nodes[nodes]

    def scores(self, structure: int) -> Array:
        """S (nodes, L) of a target structure after all pushes so far."""
        nodes = self.targets.nodes(structure)
        scores = np.zeros_like(self.targets.prior.nodes[nodes])
        for i, row in enumerate(scores):
            for feature, value in self._target.of(nodes.start + i).items():
                if feature in self.weights:
                    row += value * self.weights[feature]
        return scores * self.targets.prior.nodes[nodes]

    def all_scores(self) -> Array:
        """S (N, L) of all target nodes."""
        return np.concatenate([self.scores(i) for i in range(len(self.targets.sizes))])

    def kappa(self, source: int, target: int) -> Array:
        """⟨φ_τ, φ_t⟩ of two structures, (T_source, T_target)."""
        a, b = self.sources.nodes(source), self.targets.nodes(target)
        here = [self._source.of(node) for node in range(a.start, a.stop)]
        there = [self._target.of(node) for node in range(b.start, b.stop)]
        return np.array([[sum(x * q[f] for f, x in p.items() if f in q) for q in there] for p in here])


class _Features:
    """The vectors φ of the nodes of a corpus, each a dict feature → value."""

    def __init__(self, side: Side, max_nodes: int, mixing: float) -> None:
        self.side, self.max_nodes, self.mixing = side, max_nodes, mixing
        rows = sp.csr_matrix(side.points.features)
        bounds = itertools.pairwise(rows.indptr.tolist())
        self._types = [
            list(zip(rows.indices[a:b].tolist(), rows.data[a:b].tolist(), strict=True)) for a, b in bounds
        ]

    def of(self, node: int) -> dict[Feature, float]:
        found: dict[Feature, float] = {}
        for shape, others in substructures(self.side, node, self.max_nodes):
            scale = self.mixing ** (1 + len(others))
            for parts in itertools.product(self._observed(node), *map(self._labelled, others)):
                feature = shape, *(name for name, _ in parts)
                found[feature] = found.get(feature, 0.0) + scale * math.prod(value for _, value in parts)
        return found

    def _observed(self, node: int) -> list[Part]:
        """ψ."""
        return self._types[self.side.encoded.corpus.types[node]]

    def _labelled(self, node: int) -> list[Part]:
        """ψ ⊗ P: observation features joined with labels."""
        prior = [(label, p) for label, p in enumerate(self.side.prior.nodes[node].tolist()) if p]
        return [((r, label), value * p) for r, value in self._observed(node) for label, p in prior]


def substructures(side: Side, node: int, most: int) -> Iterator[tuple[Hashable, Nodes]]:
    """All substructures of at most `most` nodes that hold a node: their shape with the point, and the other
    nodes in an order that the shape fixes."""
    if side.encoded.corpus.shape == "tree":
        return _subtrees(side, node, most)
    return _paths(side, node, most)


def _paths(side: Side, node: int, most: int) -> Iterator[tuple[Hashable, Nodes]]:
    """Directed paths through a node; the runs of a sequence are such."""
    for above in _walks(side.links.parents, node, most - 1):
        for below in _walks(side.links.children, node, most - 1 - len(above)):
            yield len(above), above + below


def _walks(near: Neighbours, node: int, most: int) -> Iterator[Nodes]:
    """All walks of at most `most` nodes from a node on, without the node itself."""
    yield ()
    if most:
        for other in _near(near, node):
            for rest in _walks(near, other, most - 1):
                yield other, *rest


def _subtrees(side: Side, node: int, most: int) -> Iterator[tuple[Hashable, Nodes]]:
    """Connected subtrees that hold a node: those that hang from it or from one of its ancestors."""
    for walk in _walks(side.links.parents, node, most - 1):
        for tree in _hanging(side.links.children, (node, *walk)[-1], most):
            nodes = _listed(tree)
            if node in nodes:
                point = nodes.index(node)
                yield (_shape(tree), point), nodes[:point] + nodes[point + 1 :]


Subtree = tuple[int, tuple[Any, ...]]  # a node, and the subtrees of some of its children, in order


def _hanging(children: Neighbours, top: int, most: int) -> Iterator[Subtree]:
    for forest in _forests(children, _near(children, top), most - 1):
        yield top, forest


def _forests(children: Neighbours, tops: list[int], most: int) -> Iterator[tuple[Subtree, ...]]:
    """Subtrees of at most `most` nodes in all, that hang from some of the tops."""
    yield ()
    if most:
        for i, top in enumerate(tops):
            for tree in _hanging(children, top, most):
                for rest in _forests(children, tops[i + 1 :], most - len(_listed(tree))):
                    yield tree, *rest


def _listed(tree: Subtree) -> Nodes:
    """The nodes of a subtree, parents first."""
    top, forest = tree
    return top, *itertools.chain.from_iterable(map(_listed, forest))


def _shape(tree: Subtree) -> tuple[Any, ...]:
    return tuple(map(_shape, tree[1]))


def _near(near: Neighbours, node: int) -> list[int]:
    return near.indices[near.indptr[node] : near.indptr[node + 1]].tolist()
