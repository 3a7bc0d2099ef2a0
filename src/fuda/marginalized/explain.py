"""The training positions that a score of the marginalized kernel is the sum over.

The score of label σ at node t is a sum over support positions τ, each of which has a *share*:

    S(t,σ) = Σ_τ share_τ(σ),     share_τ(σ) = P(σ|t) κ(τ,t) γ_τ(σ),
    γ_τ(σ) = Σ_ρ α_τ(ρ) P(ρ|τ) k_y(ρ,σ).

What is compared depends on the model, see `calibration` and `memory`: S itself;
a S / max_ρ |S(t,ρ)| + M in a model with a memory of corrections, whose positions have the shares
m_τ(σ) κ₌(τ,t) of M; and, for labelings as a whole, a' S / max_ρ |S(t,ρ)| + b' log P(σ|t) + M. So
the shares of S are multiplied by a number.

**The match** of τ and t. κ(τ,t) is a sum over the features that the two structures share around τ
and t, and a product over the pairs of nodes matched in a feature. So 1 − κ'/κ, with κ' computed
without matching nodes i and j, is the part of κ due to features that match them. The match starts
with (τ,t) and is extended along edges by the pairs that take part in at least half of κ: it is a
run of a sequence, a subtree, or a path.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fuda.data.structures import Structure
from fuda.explanations.base import Explanation, Pair, Verdict, Voice
from fuda.explanations.positions import Positions
from fuda.marginalized.engines import Engine
from fuda.marginalized.numbers import Numbers

__all__ = ["Explanation", "Part", "Verdict", "Voice", "positions_of"]
Array = np.ndarray
_LEAST_PART = 0.5


class Part(NamedTuple):
    """A part of the support of a model.

    Attributes
    ----------
    engine : Engine
        An engine whose only target is the explained structure.
    alpha : array (N, L)
        α of its sources.
    structures : list of Structure
        The source structures.
    factors : array (L,) or float
        By what κ γ of each label is multiplied.
    exponent : int
        It is also divided by 2^(512 exponent).
    by_prior : bool
        Whether P(σ|t) multiplies it too.
    """

    engine: Engine
    alpha: Array
    structures: list[Structure]
    factors: Array | float = 1.0
    exponent: int = 0
    by_prior: bool = True


def positions_of(
    parts: list[Part], classes: Sequence[Any], here: Structure, node: int, prior: Array
) -> Positions:
    """Return the support positions that the scores of a node are sums over.

    Parameters
    ----------
    parts : list of Part
        The support of a model.
    classes : sequence
        The labels.
    here : Structure
        The explained structure, the target of the engines.
    node : int
        The explained node.
    prior : array (L,)
        P(σ|t).

    Returns
    -------
    Positions
        Shares that may exceed the range of doubles are divided by a common power of 2.
    """
    positions: list[_Position] = []
    shares = [Numbers(np.zeros((0, len(classes))))]
    before = 0
    for part in parts:
        problem = part.engine.problem
        gamma = problem.gamma(part.alpha) * part.factors
        for i in range(len(part.structures)):
            nodes = problem.sources.nodes(i)
            at = np.flatnonzero(part.alpha[nodes].any(axis=1))
            positions += [_Position(part, before, i, int(t)) for t in at]
            shares.append((part.engine.kappa(i, 0)[at, node] * gamma[nodes][at]).lowered(part.exponent))
        before += len(part.structures)
    match = cache(lambda k, label: _match(positions[k], here, node, label))

    def voice(k: int, label: int, share: float) -> Voice:
        position = positions[k]
        pairs, observations = match(k, label), position.there.observations
        at = position.before + position.structure, position.node, observations[position.node]
        favourite = classes[int(position.alpha.argmax())]
        return Voice(*at, favourite, share, pairs, [observations[i] for i, _ in pairs])

    by_prior = np.array([position.part.by_prior for position in positions], dtype=bool)
    return Positions(_one_scale(Numbers.concatenate(shares)), prior, by_prior, voice)


class _Position(NamedTuple):
    """A support position in a part; earlier parts have `before` structures."""

    part: Part
    before: int
    structure: int
    node: int

    @property
    def there(self) -> Structure:
        """The structure of the position."""
        return self.part.structures[self.structure]

    @property
    def alpha(self) -> Array:
        """α (L,) of the position."""
        nodes = self.part.engine.problem.sources.nodes(self.structure)
        return self.part.alpha[nodes.start + self.node]

    def kappa(self, node: int, label: int, apart: Pair | None = None) -> Numbers:
        """Return κ between the position and a node with a label, as Numbers of length 1."""
        kappa = self.part.engine.kappa(self.structure, 0, apart)
        return kappa[self.node, node, [min(label, kappa.mantissas.shape[2] - 1)]]


def _one_scale(numbers: Numbers) -> Array:
    """Return numbers as doubles; scaled numbers are divided by a common power of 2."""
    return numbers.map(lambda x: x.reshape(1, -1)).doubles().reshape(numbers.mantissas.shape)


def _match(position: _Position, here: Structure, node: int, label: int) -> list[Pair]:
    """Return the connected pairs of nodes that take part in at least half of κ."""
    point, edges = (position.node, node), (position.there.edges, here.edges)
    full_kappa = position.kappa(node, label)
    match, fresh = [point], [point]
    while fresh:
        at = fresh.pop()
        for near, far in ((0, 1), (1, 0)):  # the parents of both, the children of both
            ends = (e[e[:, far] == i, near].tolist() for e, i in zip(edges, at, strict=True))
            for pair in itertools.product(*ends):
                if any(pair[0] == p or pair[1] == q for p, q in match):
                    continue
                if _ratio(position.kappa(node, label, apart=pair), full_kappa) <= 1.0 - _LEAST_PART:
                    match.append(pair)
                    fresh.append(pair)
    return sorted(match)


def _ratio(a: Numbers, b: Numbers) -> float:
    """Return a / b, or 1 if b = 0."""
    top, bottom = _one_scale(Numbers.concatenate([a, b]))
    return float(top / bottom) if bottom else 1.0
