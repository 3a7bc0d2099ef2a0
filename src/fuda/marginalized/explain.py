"""Explanations of the labels predicted with the marginalized kernel.

The score of label σ at node t is a sum over support positions τ, each of which has a *share*:

    S(t,σ) = Σ_τ share_τ(σ),     share_τ(σ) = P(σ|t) κ(τ,t) γ_τ(σ),
    γ_τ(σ) = Σ_ρ α_τ(ρ) P(ρ|τ) k_y(ρ,σ).

In a model with a memory of corrections, the shares of S are multiplied by a / max_ρ |S(t,ρ)| and
those of its positions, m_τ(σ) κ₌(τ,t), are added: see `memory` and `calibration`.

**The match** of τ and t. κ(τ,t) is a sum over the features that the two structures share around τ
and t, and a product over the pairs of nodes matched in a feature. So 1 − κ'/κ, with κ' computed
without matching nodes i and j, is the part of κ due to features that match them. The match starts
with (τ,t) and is extended along edges by the pairs that take part in at least half of κ: it is a
run of a sequence, a subtree, or a path.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fuda.checks import is_whole
from fuda.data.structures import Structure
from fuda.errors import DataError, short
from fuda.marginalized.engines.base import Engine
from fuda.marginalized.numbers import Numbers

Array = np.ndarray
Pair = tuple[int, int]
_LEAST_PART = 0.5


@dataclass(frozen=True)
class Voice:
    """A support position and its share of a score.

    Attributes
    ----------
    structure, node : int
        The position: an index into `support_structures_`, and a node of that structure.
    observation : object
        The observation there.
    label : object
        The label with the largest α there.
    share : float
        The share of the score.
    match : list of pairs
        The matched nodes (support node, explained node), sorted.
    matched : list
        The observations of the matched support nodes.
    """

    structure: int
    node: int
    observation: Any
    label: Any
    share: float
    match: list[Pair]
    matched: list[Any]

    def __str__(self) -> str:
        nodes = [node for node, _ in self.match]
        words = map(_shown, self.matched)
        marked = (f"[{word}]" if node == self.node else word for node, word in zip(nodes, words, strict=True))
        where = f"structure {self.structure}, node {self.node}"
        return f"{self.share:+.4g}  {self.label}  {' '.join(marked)}  ({where})"


@dataclass(frozen=True)
class Verdict:
    """The score of a label by support position.

    Attributes
    ----------
    label : object
        The label.
    score : float
        Its score, the sum of all shares.
    voices : list of Voice
        The support positions with the largest absolute shares, in decreasing order.
    others : float
        The sum of the other shares.
    other_count : int
        The number of the other positions.
    """

    label: Any
    score: float
    voices: list[Voice]
    others: float
    other_count: int

    def __str__(self) -> str:
        lines = [f"{self.label}: {self.score:.4g}", *(f"  {voice}" for voice in self.voices)]
        if self.other_count:
            lines.append(f"  {self.others:+.4g}  by {self.other_count:,} others")
        return "\n".join(lines)


@dataclass(frozen=True)
class Explanation:
    """The scores of the best label of a node and of the second best.

    Scores that may exceed the range of doubles are divided by a common power of 2.

    Attributes
    ----------
    node : int
        The explained node.
    observation : object
        Its observation.
    chosen : Verdict
        The label with the highest score.
    rival : Verdict or None
        The label with the second highest score; None if there is one label only.
    """

    node: int
    observation: Any
    chosen: Verdict
    rival: Verdict | None

    def __str__(self) -> str:
        first = f"node {self.node}, {_shown(self.observation)}: {self.chosen.label}"
        if self.rival is None:
            return f"{first}\n{self.chosen}"
        return f"{first}, not {self.rival.label}\n{self.chosen}\n{self.rival}"


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
        By what the shares of each label are multiplied.
    exponent : int
        The shares are also divided by 2^(512 exponent).
    """

    engine: Engine
    alpha: Array
    structures: list[Structure]
    factors: Array | float = 1.0
    exponent: int = 0


def explain(
    parts: list[Part], classes: Sequence[Any], here: Structure, node: int, top: int = 5
) -> Explanation:
    """Explain the best label of a node and the second best by their support positions.

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
    top : int
        The number of support positions listed per label, those with the largest shares first.

    Returns
    -------
    Explanation
        The scores of both labels by support position.

    Raises
    ------
    DataError
        If `node` is not a node of the structure, or `top` is not a positive integer.
    """
    if not is_whole(top, 1):
        raise DataError(f"top={short(top)}: give a whole number, at least 1")
    if not is_whole(node, 0, len(here) - 1):
        raise DataError(f"node={short(node)}: give a node of the structure, from 0 to {len(here) - 1}")
    positions: list[_Position] = []
    found = [Numbers(np.zeros((0, len(classes))))]
    before = 0
    for part in parts:
        problem = part.engine.problem
        gamma = problem.gamma(part.alpha) * (problem.targets.prior[node] * part.factors)
        for i in range(len(part.structures)):
            nodes = problem.sources.nodes(i)
            at = np.flatnonzero(part.alpha[nodes].any(axis=1))
            positions += [_Position(part, before, i, int(t)) for t in at]
            found.append((part.engine.kappa(i, 0)[at, int(node)] * gamma[nodes][at]).lowered(part.exponent))
        before += len(part.structures)
    shares = _one_scale(Numbers.concatenate(found))
    totals = shares.sum(axis=0)
    best = np.argsort(-totals, kind="stable")[:2].tolist()
    voices = [_voices(classes, positions, shares[:, k], k, here, node, top) for k in best]
    verdicts = [Verdict(classes[k], float(totals[k]), *v) for k, v in zip(best, voices, strict=True)]
    return Explanation(int(node), here.observations[node], verdicts[0], (*verdicts, None)[1])


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


def _voices(
    classes: Sequence[Any],
    positions: list[_Position],
    shares: Array,
    label: int,
    here: Structure,
    node: int,
    top: int,
) -> tuple[list[Voice], float, int]:
    """Return the largest shares of a label, and the sum and the number of the others."""
    largest = np.argsort(-np.abs(shares), kind="stable")[:top].tolist()
    voices = []
    for k in largest:
        position = positions[k]
        match, observations = _match(position, here, node, label), position.there.observations
        at = position.before + position.structure, position.node, observations[position.node]
        favourite, matched = classes[int(position.alpha.argmax())], [observations[i] for i, _ in match]
        voices.append(Voice(*at, favourite, float(shares[k]), match, matched))
    others = np.delete(shares, largest)
    return voices, float(others.sum()), len(others)


def _match(position: _Position, here: Structure, node: int, label: int) -> list[Pair]:
    """Return the connected pairs of nodes that take part in at least half of κ."""
    point, edges = (position.node, node), (position.there.edges, here.edges)
    whole = position.kappa(node, label)
    match, fresh = [point], [point]
    while fresh:
        at = fresh.pop()
        for near, far in ((0, 1), (1, 0)):  # the parents of both, the children of both
            ends = (e[e[:, far] == i, near].tolist() for e, i in zip(edges, at, strict=True))
            for pair in itertools.product(*ends):
                if any(pair[0] == p or pair[1] == q for p, q in match):
                    continue
                if _ratio(position.kappa(node, label, apart=pair), whole) <= 1.0 - _LEAST_PART:
                    match.append(pair)
                    fresh.append(pair)
    return sorted(match)


def _ratio(a: Numbers, b: Numbers) -> float:
    """Return a / b, or 1 if b = 0."""
    top, bottom = _one_scale(Numbers.concatenate([a, b]))
    return float(top / bottom) if bottom else 1.0


def _shown(observation: Any) -> str:
    """Return an observation as text."""
    return observation if isinstance(observation, str) else short(observation)
