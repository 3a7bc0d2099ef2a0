"""What a kernel machine has to compute, in plain arrays, whatever engine computes it.

With the coefficients α_τ(ρ) of source nodes τ, the scores of target nodes t are

    S(t,σ) = Σ_{τ,ρ} α_τ(ρ) K(τ,t,ρ,σ) = P(σ|t) Q(t,σ),   Q(t,σ) = Σ_τ κ(τ,t) γ_τ(σ),

where γ_τ(σ) = Σ_ρ α_τ(ρ) P(ρ|τ) k_y(ρ,σ) under a product prior. Under a chain prior k_y is the
identity, κ(τ,t,σ) has a label, and γ_τ(σ) = α_τ(σ) P(σ|τ).

`Examples` are structures with their observations and priors; `Sources` are examples prepared for one
kernel; from these comes the `Problem` of scoring any targets. Parts of examples and of sources are
index operations: observations, codes and kernel values are shared with the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fuda.data.encoding import Encoded
from fuda.data.graph import Links
from fuda.kernels import Kernel
from fuda.kernels.points import Numbering, Points, points
from fuda.marginalized.codes import APART, Codes, Types
from fuda.marginalized.priors import Prior
from fuda.marginalized.recursions import pair

Array = np.ndarray
_OFTEN = 600  # of so many source nodes, more than one has a frequent type


class Settings(NamedTuple):
    """The kernel between observations, the matrix (L, L) of k_y, c, and the price of a skipped node."""

    kernel: Kernel
    label_gram: Array
    mixing: float
    gap: float


@dataclass(frozen=True)
class Examples:
    """Encoded structures, the prior over their labels, and their observations as kernels see them."""

    encoded: Encoded
    numbering: Numbering
    prior: Prior
    points: Points

    @staticmethod
    def of(encoded: Encoded, prior: Prior, numbering: Numbering | None = None) -> Examples:
        """Structures whose observations are numbered by themselves, or by those of others."""
        numbering = Numbering(encoded.corpus) if numbering is None else numbering
        return Examples(encoded, numbering, prior, points(encoded, numbering))

    def take(self, structures: Array) -> Examples:
        """Some of the structures, by their numbers; observations are shared."""
        nodes = self.encoded.corpus.nodes_of(structures)
        return replace(self, encoded=self.encoded.take(structures), prior=self.prior.take(nodes))

    @property
    def offsets(self) -> Array:
        return self.encoded.corpus.offsets

    @property
    def sizes(self) -> Array:
        return np.diff(self.offsets)


class Side(NamedTuple):
    """The structures of one side of a problem, their nodes one after another.

    Structure i has the nodes offsets[i]..offsets[i+1]. Of each node: its type (a row of the points), its
    code and twin number (see `codes`), P(ρ|t) (N, L), and of a chain prior the transitions before and
    after, (N, L, L); `links` are the edges.
    """

    offsets: Array
    types: Array
    codes: Array
    twins: Array
    prior: Array
    before: Array | None
    after: Array | None
    links: Links

    @property
    def sizes(self) -> Array:
        return np.diff(self.offsets)

    @property
    def transitions(self) -> tuple[Array, Array]:
        """The transitions of a chain prior."""
        assert self.before is not None
        assert self.after is not None
        return self.before, self.after

    def nodes(self, structure: int) -> slice:
        return slice(int(self.offsets[structure]), int(self.offsets[structure + 1]))


@dataclass(frozen=True)
class Problem:
    """Scores of targets by coefficients of sources; in training both are the same structures.

    Attributes
    ----------
    shape : int
        The shape of all structures, a value of `recursions.pair.SHAPES`.
    sources, targets : Side
    points : tuple of Points
        The observations of sources and targets, one row per type.
    codes : Codes
        k_x by the codes of sources and targets.
    own : array (N,)
        c² k_x(τ,τ) of source nodes.
    label_gram : array (L, L)
        k_y.
    mixing, gap : float
        c, and the price of a skipped node.
    mass : float
        Σ_{ρσ} P(ρ|τ) P(σ|t) k_y(ρ,σ) where it is the same for all pairs of nodes, else 0.
    is_scaled : bool
        Whether scores may leave the range of doubles, so that scaled numbers are needed.
    """

    shape: int
    sources: Side
    targets: Side
    points: tuple[Points, Points]
    codes: Codes
    own: Array
    label_gram: Array
    mixing: float
    gap: float
    mass: float
    is_scaled: bool

    @property
    def is_chain_prior(self) -> bool:
        return self.sources.before is not None

    @property
    def label_count(self) -> int:
        return len(self.label_gram)

    @cached_property
    def is_identity(self) -> bool:
        """Whether k_y is the identity."""
        return np.array_equal(self.label_gram, np.eye(self.label_count))

    def with_labels(self, values: Array) -> Array:
        """Σ_ρ values(·,ρ) k_y(ρ,·)."""
        return values if self.is_identity else values @ self.label_gram

    def gamma(self, alpha: Array, nodes: slice | Array = slice(None)) -> Array:
        """γ (nodes, L) of coefficients of these source nodes."""
        return self.with_labels(alpha * self.sources.prior[nodes])


class Sources:
    """Examples prepared as the sources of problems: all that does not depend on the targets."""

    def __init__(
        self, settings: Settings, examples: Examples, n_jobs: int | None = None, whole: Sources | None = None
    ) -> None:
        self.settings, self.examples, self._n_jobs = settings, examples, n_jobs
        self._whole = whole or self
        self.types: Types = whole.types if whole else Types(settings.kernel, examples.points)

    def take(self, structures: Array) -> Sources:
        """Some of the structures, by their numbers; codes and kernel values are shared."""
        return Sources(self.settings, self.examples.take(structures), self._n_jobs, self._whole)

    def problem(self, targets: Examples | None = None) -> Problem:
        """The problem of scoring targets, by default the sources themselves."""
        examples, targets = self.examples, self.examples if targets is None else targets
        if targets.points is examples.points:
            codes, types = self._whole._own_codes, self.types
        else:
            types = Types(self.settings.kernel, targets.points)
            codes = Codes(self.types, types, self._frequent, self._n_jobs)
        source = _side(examples, codes.sources, codes.source_twins) if codes.is_shared else self._uncoded
        target = _side(targets, codes.targets, codes.target_twins)
        mass, constant = 0.0, _constant(targets.prior)
        if self._constant_prior is not None and constant is not None:
            mass = float(self._constant_prior @ self.settings.label_gram @ constant)
        return Problem(
            pair.SHAPES[examples.encoded.corpus.shape],
            source,
            target,
            (examples.points, targets.points),
            codes,
            self._own,
            *self.settings[1:],
            mass,
            not self._plain_is_safe(targets, types),
        )

    def largest_product(self) -> float:
        """The largest k(τ,τ) = k_x Σ P(ρ|τ) P(σ|τ) k_y(ρ,σ), which bounds k of any two nodes."""
        return self._largest[1]

    def _plain_is_safe(self, targets: Examples, types: Types) -> bool:
        """Whether scores stay within doubles."""
        settings, shape = self.settings, pair.SHAPES[targets.encoded.corpus.shape]
        bounds = np.array([self._largest, _largest(settings.label_gram, targets, types)])
        weight, product = settings.mixing**2 * np.sqrt(bounds.prod(axis=0))
        longest = int(self.examples.sizes.max()), int(targets.sizes.max())
        return bool(pair.plain_is_safe(shape, *longest, settings.gap, weight, product))

    @cached_property
    def _own_codes(self) -> Codes:
        """Codes of the sources as targets of themselves."""
        return Codes(self.types, self.types, self._frequent, self._n_jobs)

    @cached_property
    def _frequent(self) -> Array:
        """Types that more than one of _OFTEN nodes have."""
        types = self.examples.encoded.corpus.types
        return np.flatnonzero(np.bincount(types) * _OFTEN > len(types))

    @cached_property
    def _uncoded(self) -> Side:
        """The sources where every type is a code."""
        count = len(self.examples.points)
        return _side(self.examples, np.arange(count), np.full(count, APART))

    @cached_property
    def _own(self) -> Array:
        types = self.examples.encoded.corpus.types
        return self.settings.mixing**2 * self.types.diagonal[types]

    @cached_property
    def _largest(self) -> tuple[float, float]:
        return _largest(self.settings.label_gram, self.examples, self.types)

    @cached_property
    def _constant_prior(self) -> Array | None:
        return _constant(self.examples.prior)


def _side(examples: Examples, codes: Array, twins: Array) -> Side:
    """One side of a problem, from the code and the twin number of each type."""
    corpus, prior = examples.encoded.corpus, examples.prior
    types = corpus.types
    return Side(
        corpus.offsets,
        types,
        codes[types].astype(np.int32),
        twins[types].astype(np.int32),
        prior.nodes,
        prior.before,
        prior.after,
        corpus.graph.links,
    )


def _largest(label_gram: Array, examples: Examples, types: Types) -> tuple[float, float]:
    """The largest k_x(τ,τ), and the largest k(τ,τ) = k_x Σ P(ρ|τ) P(σ|τ) k_y(ρ,σ) of its nodes.

    Both bound the kernel of any two nodes. Under a chain prior transitions may be certain, and k is k_x.
    """
    diagonal, prior = types.diagonal[examples.encoded.corpus.types], examples.prior
    if prior.before is not None:
        return float(diagonal.max()), float(diagonal.max())
    products = np.einsum("ts,ts->t", prior.nodes @ label_gram, prior.nodes)
    return float(diagonal.max()), float((diagonal * products).max())


def _constant(prior: Prior) -> Array | None:
    """The prior of every node where it is the same for all, else None."""
    return None if (prior.nodes != prior.nodes[0]).any() else prior.nodes[0]
