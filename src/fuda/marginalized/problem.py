"""The problem that engines solve, in plain arrays: the scores of a kernel machine.

With the coefficients α_τ(ρ) of source nodes τ, the scores of target nodes t are

    S(t,σ) = Σ_{τ,ρ} α_τ(ρ) K(τ,t,ρ,σ) = P(σ|t) Q(t,σ),   Q(t,σ) = Σ_τ κ(τ,t) γ_τ(σ),

where γ_τ(σ) = Σ_ρ α_τ(ρ) P(ρ|τ) k_y(ρ,σ) under a product prior. Under a chain prior k_y is the
identity, κ(τ,t,σ) has a label, and γ_τ(σ) = α_τ(σ) P(σ|τ).

`Examples` are structures with their observations and priors; `Sources` are examples prepared for
one kernel, and make the `Problem` of scoring any targets. Subsets of examples and of sources are
index operations: observations, classes and kernel values are shared with the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fuda.data.encoding import Encoded
from fuda.data.graph import Adjacency, Graph
from fuda.kernels import Kernel
from fuda.kernels.points import Numbering, Observed, Points
from fuda.marginalized.kernel_classes import APART, CachedColumns, KernelClasses, Types
from fuda.marginalized.parts import shape_of_features
from fuda.marginalized.priors import Prior
from fuda.marginalized.recursions import shapes

Array = np.ndarray
_FREQUENT_ONE_IN = 600  # a type is frequent if it occurs more often than once in so many source nodes


class Settings(NamedTuple):
    """The parameters of the kernel.

    Attributes
    ----------
    kernel : Kernel
        k_x, the kernel between observations.
    label_gram : array (L, L)
        k_y.
    mixing, gap : float
        c, and the factor g per skipped node.
    parts : str or None
        The parts that features are, see `fuda.marginalized.parts`; None are those of the papers.
    """

    kernel: Kernel
    label_gram: Array
    mixing: float
    gap: float
    parts: str | None = None


@dataclass(frozen=True)
class Examples:
    """Structures with priors.

    Attributes
    ----------
    encoded : Encoded
        The structures.
    numbering : Numbering
        The numbers of distinct observations.
    prior : Prior
        The prior over their labels.
    observed : Observed
        Their observations as arguments of kernels.
    """

    encoded: Encoded
    numbering: Numbering
    prior: Prior
    observed: Observed

    @staticmethod
    def of(encoded: Encoded, prior: Prior, numbering: Numbering | None = None) -> Examples:
        """Return examples with observations numbered by `numbering`, by default their own."""
        numbering = Numbering(encoded.corpus) if numbering is None else numbering
        return Examples(encoded, numbering, prior, Observed(encoded, numbering))

    def take(self, structures: Array) -> Examples:
        """Return some of the structures, by index; observations are shared."""
        nodes = self.encoded.corpus.nodes_of(structures)
        return replace(self, encoded=self.encoded.take(structures), prior=self.prior.take(nodes))

    @property
    def points(self) -> Points:
        """Their observations, one point per type."""
        return self.observed.points

    @property
    def offsets(self) -> Array:
        """The bounds of the structures."""
        return self.encoded.corpus.offsets

    @property
    def sizes(self) -> Array:
        """The numbers of nodes of the structures."""
        return self.offsets[1:] - self.offsets[:-1]


class Side(NamedTuple):
    """The structures of one side of a problem, with their nodes numbered consecutively.

    Attributes
    ----------
    offsets : array
        Structure i has the nodes offsets[i] … offsets[i+1]−1.
    types : array (N,)
        The row of each node in the points.
    classes, ids : arrays (N,)
        The kernel class and the id of each node, see `kernel_classes`.
    prior : array (N, L)
        P(ρ|t).
    before, after : arrays (N, L, L) or None
        The transitions of a chain prior.
    graph : Graph
        The edges.
    """

    offsets: Array
    types: Array
    classes: Array
    ids: Array
    prior: Array
    before: Array | None
    after: Array | None
    graph: Graph

    @property
    def adjacency(self) -> Adjacency:
        """The edges, as arguments of compiled functions."""
        return self.graph.adjacency

    @property
    def sizes(self) -> Array:
        """The numbers of nodes of the structures."""
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def transitions(self) -> tuple[Array, Array]:
        """The transitions of a chain prior, before and after."""
        assert self.before is not None
        assert self.after is not None
        return self.before, self.after

    def nodes(self, structure: int) -> slice:
        """Return the nodes of a structure."""
        return slice(int(self.offsets[structure]), int(self.offsets[structure + 1]))


@dataclass(frozen=True)
class Problem:
    """Scores of targets from coefficients of sources; in training both are the same structures.

    Attributes
    ----------
    shape : int
        The shape of features, by `parts.shape_of_features`.
    sources, targets : Side
        Both sides.
    observed : tuple of Observed
        The observations of sources and targets.
    kernel_classes : KernelClasses
        k_x by the classes of sources and targets.
    self_values : array (N,)
        c² k_x(τ,τ) of source nodes.
    label_gram : array (L, L)
        k_y.
    mixing, gap : float
        c, and the factor g per skipped node.
    mass : float
        Σ_{ρσ} P(ρ|τ) P(σ|t) k_y(ρ,σ) if it is the same for all pairs of nodes, else 0.
    is_scaled : bool
        Whether scores may exceed the range of doubles, so that scaled numbers are needed.
    """

    shape: int
    sources: Side
    targets: Side
    observed: tuple[Observed, Observed]
    kernel_classes: KernelClasses
    self_values: Array
    label_gram: Array
    mixing: float
    gap: float
    mass: float
    is_scaled: bool

    @property
    def points(self) -> tuple[Points, Points]:
        """The observations of sources and targets, one point per type."""
        return self.observed[0].points, self.observed[1].points

    @property
    def is_chain_prior(self) -> bool:
        """Whether the priors are chains."""
        return self.sources.before is not None

    @property
    def label_count(self) -> int:
        """L."""
        return len(self.label_gram)

    @cached_property
    def is_identity(self) -> bool:
        """Whether k_y is the identity."""
        return np.array_equal(self.label_gram, np.eye(self.label_count))

    def with_labels(self, values: Array) -> Array:
        """Return Σ_ρ values(·,ρ) k_y(ρ,·)."""
        return values if self.is_identity else values @ self.label_gram

    def gamma(self, alpha: Array, nodes: slice | Array = slice(None)) -> Array:
        """Return γ (nodes, L) of coefficients of these source nodes."""
        return self.with_labels(alpha * self.sources.prior[nodes])


class Sources:
    """Examples prepared as sources of problems: everything that does not depend on targets.

    Parameters
    ----------
    settings : Settings
        The parameters of the kernel.
    examples : Examples
        The source structures.
    n_jobs : int or None
        The number of threads that compute kernel values.
    parent : Sources, optional
        Sources of which these are a part, with the same observations.
    """

    def __init__(
        self, settings: Settings, examples: Examples, n_jobs: int | None = None, parent: Sources | None = None
    ) -> None:
        self.settings, self.examples, self._n_jobs = settings, examples, n_jobs
        self._parent = parent or self
        self.types: Types = parent.types if parent else Types(settings.kernel, examples.points)

    def take(self, structures: Array) -> Sources:
        """Return some of the structures, by index; classes and kernel values are shared."""
        return Sources(self.settings, self.examples.take(structures), self._n_jobs, self._parent)

    def problem(self, targets: Examples | None = None) -> Problem:
        """Return the problem of scoring targets, by default the sources themselves."""
        examples, targets = self.examples, self.examples if targets is None else targets
        if targets.observed is examples.observed:
            classes, diagonal = self._parent._source_classes, self.types.diagonal
        elif self._parent._columns.suit(targets.encoded.corpus):
            classes, diagonal = self._parent._columns.of(targets.encoded.corpus, targets.observed)
        else:
            types = Types(self.settings.kernel, targets.points)
            classes, diagonal = KernelClasses(self.types, types, self._frequent, self._n_jobs), types.diagonal
        source = _side(examples, classes.sources, classes.source_ids) if classes.is_shared else self._unshared
        target = _side(targets, classes.targets, classes.target_ids)
        mass, constant = 0.0, _constant(targets.prior)
        largest = _largest(self.settings.label_gram, targets, diagonal, constant)
        if self._constant_prior is not None and constant is not None:
            mass = float(self._constant_prior @ self.settings.label_gram @ constant)
        shape = shape_of_features(examples.encoded.corpus.shape, self.settings.parts)
        is_scaled, both = not self._plain_is_safe(targets, largest), (examples.observed, targets.observed)
        return Problem(
            shape, source, target, both, classes, self._self_values, *self.settings[1:4], mass, is_scaled
        )

    def largest_product(self) -> float:
        """Return the largest k_x Σ P(ρ|τ) P(σ|τ) k_y(ρ,σ), a bound on k of any two nodes."""
        return self._largest[1]

    def _plain_is_safe(self, targets: Examples, largest: tuple[float, float]) -> bool:
        """Return whether scores cannot exceed the range of doubles."""
        settings, corpus = self.settings, targets.encoded.corpus
        shape = shape_of_features(corpus.shape, settings.parts)
        bounds = zip(self._largest, largest, strict=True)
        weight, product = (
            settings.mixing**2 * math.sqrt(source_bound * target_bound)
            for source_bound, target_bound in bounds
        )
        longest = self._longest, int(targets.sizes.max())
        return bool(shapes.plain_is_safe(shape, *longest, settings.gap, weight, product))

    @cached_property
    def _longest(self) -> int:
        """The largest number of nodes of a structure."""
        return int(self.examples.sizes.max())

    @cached_property
    def _source_classes(self) -> KernelClasses:
        """The classes of the sources as targets of themselves."""
        return KernelClasses(self.types, self.types, self._frequent, self._n_jobs)

    @cached_property
    def _columns(self) -> CachedColumns:
        """Kernel values of targets, by observation."""
        return CachedColumns(self.types)

    @cached_property
    def _frequent(self) -> Array:
        """The frequent types."""
        types = self.examples.encoded.corpus.types
        return np.flatnonzero(np.bincount(types) * _FREQUENT_ONE_IN > len(types))

    @cached_property
    def _unshared(self) -> Side:
        """The sources with every type as a class."""
        count = len(self.examples.points)
        return _side(self.examples, np.arange(count), np.full(count, APART))

    @cached_property
    def _self_values(self) -> Array:
        """c² k_x(τ,τ) of all nodes."""
        types = self.examples.encoded.corpus.types
        return self.settings.mixing**2 * self.types.diagonal[types]

    @cached_property
    def _largest(self) -> tuple[float, float]:
        """The largest k_x(τ,τ) and k(τ,τ)."""
        return _largest(self.settings.label_gram, self.examples, self.types.diagonal, self._constant_prior)

    @cached_property
    def _constant_prior(self) -> Array | None:
        """The prior of every node if it is the same for all, else None."""
        return _constant(self.examples.prior)


def _side(examples: Examples, classes: Array, ids: Array) -> Side:
    """Return one side of a problem, from the class and the id of each type."""
    corpus = examples.encoded.corpus
    classes, ids = classes[corpus.types].astype(np.int32), ids[corpus.types].astype(np.int32)
    return Side(corpus.offsets, corpus.types, classes, ids, *examples.prior[:3], corpus.graph)


def _largest(
    label_gram: Array, examples: Examples, of_types: Array, constant: Array | None
) -> tuple[float, float]:
    """Return the largest k_x(τ,τ), and the largest k(τ,τ) = k_x Σ P(ρ|τ) P(σ|τ) k_y(ρ,σ).

    Both bound the kernel of any two nodes. Transitions of a chain prior may be certain, so k is
    k_x. `constant` is the prior of every node, if it is the same for all.
    """
    diagonal, prior = of_types[examples.encoded.corpus.types], examples.prior
    largest = float(diagonal.max())
    if prior.before is not None:
        return largest, largest
    if constant is not None:
        return largest, float(largest * (constant @ label_gram @ constant))
    products = np.einsum("ts,ts->t", prior.nodes @ label_gram, prior.nodes)
    return largest, float((diagonal * products).max())


def _constant(prior: Prior) -> Array | None:
    """Return the prior of every node if it is the same for all, else None."""
    return None if (prior.nodes != prior.nodes[0]).any() else prior.nodes[0]
