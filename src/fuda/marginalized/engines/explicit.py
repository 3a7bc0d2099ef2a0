"""An engine by explicit features of at most d nodes: the primal form, an oracle for tests.

A pointed feature is a shape with a point (a run, a connected subtree with ordered siblings, a
directed path, a line), an observation feature per node, and a label per node. Node t of a
structure, as the point and without its label, has the features

    φ_t = Σ_{substructures s with the point at t} c^|s| ψ_t ⊗ ⨂_{nodes i of s, i ≠ t} ψ_i ⊗ P(·|i),

where ψ are observation features and P is a product prior. With a weight per feature and label,

    S(t,σ) = P(σ|t) ⟨w_σ, φ_t⟩,     a push of α:  w_σ += Σ_t α_t(σ) P(σ|t) φ_t.

⟨φ_τ, φ_t⟩ is κ(τ,t) of the linear kernel with the identity as label kernel, without features of
more than d nodes: for structures of at most d nodes the results equal those of other engines.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda.data.graph import Adjacency, Neighbours
from fuda.kernels.points import Points
from fuda.marginalized.engines.online import OnlineEngine
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.problem import Problem, Side
from fuda.marginalized.recursions.shapes import LINES, SIDED, TREE

Array = np.ndarray
Nodes = tuple[int, ...]
FeatureOfNode = tuple[Hashable, float]  # an observation feature, perhaps with a label, and its value
Feature = tuple[Hashable, ...]  # a shape, and what each node has


class ExplicitEngine(OnlineEngine):
    """An engine by explicit features: slow, an oracle for tests.

    The kernel must be linear, k_y the identity, the prior a product prior, and gap = 0.

    Parameters
    ----------
    problem : Problem
        The problem to solve.
    n_jobs : int or None
        Not used.
    max_nodes : int
        The largest number of nodes of a feature.
    """

    def __init__(self, problem: Problem, n_jobs: int | None = None, max_nodes: int = 4) -> None:
        self.problem, self._max_nodes = problem, max_nodes
        self.weights: dict[Feature, Array] = {}
        self._source = _Substructures(problem, problem.sources, problem.points[0], max_nodes)
        self._target = _Substructures(problem, problem.targets, problem.points[1], max_nodes)

    def for_targets(self, problem: Problem) -> ExplicitEngine:
        """See `Engine`."""
        return ExplicitEngine(problem, max_nodes=self._max_nodes)

    def scores(self, alpha: Array, pruning_margins: Array | None = None) -> Numbers:
        """See `Engine`; never approximated."""
        self.weights = {}
        for structure in range(len(self.problem.sources.sizes)):
            self.push(structure, alpha[self.problem.sources.nodes(structure)])
        return self.all_scores()

    def push(self, structure: int, change: Array) -> None:
        """Add `change` (nodes, L) to the coefficients of a source structure."""
        nodes = self.problem.sources.nodes(structure)
        gamma = self.problem.gamma(change, nodes)
        for i in np.flatnonzero(gamma.any(axis=1)).tolist():
            for feature, value in self._source.of(nodes.start + i).items():
                self.weights[feature] = self.weights.get(feature, 0.0) + value * gamma[i]

    def structure_scores(self, structure: int) -> Numbers:
        """Return S (nodes, L) of a target structure after all pushes so far."""
        nodes = self.problem.targets.nodes(structure)
        scores = np.zeros_like(self.problem.targets.prior[nodes])
        for i, row in enumerate(scores):
            for feature, value in self._target.of(nodes.start + i).items():
                if feature in self.weights:
                    row += value * self.weights[feature]
        return Numbers(scores * self.problem.targets.prior[nodes])

    def all_scores(self) -> Numbers:
        """Return S (N, L) of all target nodes."""
        structures = range(len(self.problem.targets.sizes))
        return Numbers.concatenate([self.structure_scores(i) for i in structures])

    def kappa(self, source: int, target: int, apart: tuple[int, int] | None = None) -> Numbers:
        """Return ⟨φ_τ, φ_t⟩ of two structures (T_source, T_target, 1); `apart` must be None."""
        if apart is not None:
            raise NotImplementedError("the explicit engine does not support apart")
        a, b = self.problem.sources.nodes(source), self.problem.targets.nodes(target)
        here = [self._source.of(node) for node in range(a.start, a.stop)]
        there = [self._target.of(node) for node in range(b.start, b.stop)]
        values = [[[sum(x * q[f] for f, x in p.items() if f in q)] for q in there] for p in here]
        return Numbers(np.array(values, dtype=np.float64))


class _Substructures:
    """The vectors φ of the nodes of a corpus, each a dict feature → value."""

    def __init__(self, problem: Problem, side: Side, points: Points, max_nodes: int) -> None:
        self.side, self.max_nodes, self.mixing = side, max_nodes, problem.mixing
        # All substructures with a node: the shape with the point, and the other nodes in order.
        self._substructures = {TREE: _subtrees, LINES: _lines}.get(problem.shape % SIDED, _paths)
        self._is_sided = problem.shape >= SIDED
        self._sides_of = _path_sides if self._substructures is _paths else _tree_sides
        rows = sp.csr_matrix(points.features)
        bounds = itertools.pairwise(rows.indptr.tolist())
        self._types = [
            list(zip(rows.indices[a:b].tolist(), rows.data[a:b].tolist(), strict=True)) for a, b in bounds
        ]

    def of(self, node: int) -> dict[Feature, float]:
        """Return φ of a node."""
        features: dict[Feature, float] = {}
        for shape, others in self._substructures(self.side.adjacency, node, self.max_nodes):
            scale = self.mixing ** (1 + len(others))
            if self._is_sided:
                shape = shape, self._sides_of(self.side.adjacency, shape, node, others)
            for parts in itertools.product(self._observed(node), *map(self._labelled, others)):
                feature = shape, *(name for name, _ in parts)
                features[feature] = features.get(feature, 0.0) + scale * math.prod(
                    value for _, value in parts
                )
        return features

    def _observed(self, node: int) -> list[FeatureOfNode]:
        """Return ψ of a node."""
        return self._types[self.side.types[node]]

    def _labelled(self, node: int) -> list[FeatureOfNode]:
        """Return ψ ⊗ P of a node: observation features with labels."""
        prior = [(label, p) for label, p in enumerate(self.side.prior[node].tolist()) if p]
        return [((r, label), value * p) for r, value in self._observed(node) for label, p in prior]


def _paths(adjacency: Adjacency, node: int, most: int) -> Iterator[tuple[Hashable, Nodes]]:
    """Directed paths through a node, such as the runs of a sequence."""
    for above in _walks(adjacency.parents, node, most - 1):
        for below in _walks(adjacency.children, node, most - 1 - len(above)):
            yield len(above), above + below


def _walks(near: Neighbours, node: int, most: int) -> Iterator[Nodes]:
    """All walks of at most `most` nodes from a node on, without the node itself."""
    yield ()
    if most:
        for other in _near(near, node):
            for rest in _walks(near, other, most - 1):
                yield other, *rest


def _subtrees(adjacency: Adjacency, node: int, most: int) -> Iterator[tuple[Any, Nodes]]:
    """Connected subtrees that contain a node, with the node or one of its ancestors as root."""
    for walk in _walks(adjacency.parents, node, most - 1):
        for tree in _hanging(adjacency.children, (node, *walk)[-1], most):
            nodes = _listed(tree)
            if node in nodes:
                point = nodes.index(node)
                yield (_shape(tree), point), nodes[:point] + nodes[point + 1 :]


def _lines(adjacency: Adjacency, node: int, most: int) -> Iterator[tuple[Hashable, Nodes]]:
    """Subtrees in which the root has at most two children, and all other nodes at most one."""
    for (shape, point), others in _subtrees(adjacency, node, most):
        if len(shape) <= 2 and all(map(_is_descent, shape)):
            yield (shape, point), others


def _is_descent(shape: tuple[Any, ...]) -> bool:
    """Whether the nodes of a shape have at most one child."""
    return len(shape) <= 1 and all(map(_is_descent, shape))


def _tree_sides(adjacency: Adjacency, shape: Hashable, node: int, others: Nodes) -> Hashable:
    """The side of each node of a substructure of a tree, None for its root."""
    nodes = node, *others
    parents = [next(iter(_near(adjacency.parents, n)), None) for n in nodes]
    return tuple(n > p if p in nodes else None for n, p in zip(nodes, parents, strict=True))


def _path_sides(adjacency: Adjacency, shape: int, node: int, others: Nodes) -> Hashable:
    """The side of each edge of a path, whose shape is the number of nodes above the point."""
    path = *others[:shape][::-1], node, *others[shape:]
    return tuple(a < b for a, b in itertools.pairwise(path))


Subtree = tuple[int, tuple[Any, ...]]  # a node, and the subtrees of some of its children, in order


def _hanging(children: Neighbours, top: int, most: int) -> Iterator[Subtree]:
    """Subtrees of at most `most` nodes with root `top`."""
    for forest in _forests(children, _near(children, top), most - 1):
        yield top, forest


def _forests(children: Neighbours, tops: list[int], most: int) -> Iterator[tuple[Subtree, ...]]:
    """Lists of subtrees with roots among `tops`, of at most `most` nodes altogether."""
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
    """The shape of a subtree, without its nodes."""
    return tuple(map(_shape, tree[1]))


def _near(near: Neighbours, node: int) -> list[int]:
    """The neighbours of a node."""
    return near.indices[near.indptr[node] : near.indptr[node + 1]].tolist()
