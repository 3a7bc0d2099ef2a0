"""Why a model with the marginalized kernel labels a node as it does.

The score of label σ at node t is a sum over support positions τ, so that each has its *share*:

    S(t,σ) = Σ_τ share_τ(σ),     share_τ(σ) = P(σ|t) κ(τ,t) γ_τ(σ),     γ_τ(σ) = Σ_ρ α_τ(ρ) P(ρ|τ) k_y(ρ,σ).

**The match** of τ and t. κ(τ,t) sums over all features that the two structures share around τ and t, and
each pair of nodes that meet in a feature is a factor of it. So 1 − κ'/κ, with κ' computed as if nodes i and j
never met, is the part of κ in which they do. The match is what grows from (τ,t) along edges, pair by pair, as
long as a pair takes part in at least half of κ: a stretch of a sequence, a subtree, a path.
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

    `structure` counts the model's `support_structures_`; `label` is the label that the position speaks for
    most; `match` has the pairs (node there, node here) that are matched, and `matched` the observations
    there, in the order of the nodes.
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
    """A label's score, those who spoke loudest for or against it, and the sum of the shares of all others."""

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
    """The verdicts on the best label of a node, by score, and on its closest rival (None if it has none).

    Where scores may pass all doubles, those in here are divided by one power of 2.
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
    """A part of a model: an engine whose target is the structure in question, α (N, L) of its sources,
    and the source structures."""

    engine: Engine
    alpha: Array
    structures: list[Structure]


def explain(
    parts: list[Part], classes: Sequence[Any], here: Structure, node: int, top: int = 5
) -> Explanation:
    """Which support positions decided for and against the best label of a node, by score, and its rival.

    Parameters
    ----------
    parts : list of Part
        All support of a model.
    classes : sequence
        The labels.
    here : Structure
        The target of the engines.
    node : int
        The node of `here` whose label is explained.
    top : int
        How many voices are given one by one for each label, the loudest first.
    """
    if not is_whole(top, 1):
        raise DataError(f"top={short(top)}: ask for at least one voice, a whole number")
    if not is_whole(node, 0, len(here) - 1):
        raise DataError(f"node={short(node)}: give a node of the structure, from 0 to {len(here) - 1}")
    speakers: list[_Speaker] = []
    found = [Numbers(np.zeros((0, len(classes))))]
    before = 0
    for part in parts:
        problem = part.engine.problem
        gamma = problem.gamma(part.alpha) * problem.targets.prior[node]
        for i in range(len(part.structures)):
            nodes = problem.sources.nodes(i)
            at = np.flatnonzero(part.alpha[nodes].any(axis=1))
            speakers += [_Speaker(part, before, i, int(t)) for t in at]
            found.append(part.engine.kappa(i, 0)[at, int(node)] * gamma[nodes][at])
        before += len(part.structures)
    shares = _one_scale(Numbers.concatenate(found))
    best = np.argsort(-shares.sum(axis=0), kind="stable")[:2].tolist()
    verdicts = [
        Verdict(
            classes[k],
            float(shares[:, k].sum()),
            *_voices(classes, speakers, shares[:, k], k, here, node, top),
        )
        for k in best
    ]
    return Explanation(int(node), here.observations[node], verdicts[0], (*verdicts, None)[1])


class _Speaker(NamedTuple):
    """A support position: its part of the model, the structures before those of the part, and where it
    is there."""

    part: Part
    before: int
    structure: int
    node: int

    @property
    def there(self) -> Structure:
        return self.part.structures[self.structure]

    @property
    def alpha(self) -> Array:
        nodes = self.part.engine.problem.sources.nodes(self.structure)
        return self.part.alpha[nodes.start + self.node]

    def kappa(self, node: int, label: int, apart: Pair | None = None) -> Numbers:
        """κ of the position and a node with a label, one number."""
        kappa = self.part.engine.kappa(self.structure, 0, apart)
        return kappa[self.node, node, [min(label, kappa.mantissas.shape[2] - 1)]]


def _one_scale(numbers: Numbers) -> Array:
    """Numbers as doubles; scaled ones are all divided by one power of 2."""
    return numbers.map(lambda x: x.reshape(1, -1)).doubles().reshape(numbers.mantissas.shape)


def _voices(
    classes: Sequence[Any],
    speakers: list[_Speaker],
    shares: Array,
    label: int,
    here: Structure,
    node: int,
    top: int,
) -> tuple[list[Voice], float, int]:
    """The loudest voices on a label, the sum of the shares of all others, and their number."""
    loudest = np.argsort(-np.abs(shares), kind="stable")[:top].tolist()
    voices = []
    for k in loudest:
        speaker = speakers[k]
        match, observations = _match(speaker, here, node, label), speaker.there.observations
        voices.append(
            Voice(
                speaker.before + speaker.structure,
                speaker.node,
                observations[speaker.node],
                classes[int(speaker.alpha.argmax())],
                float(shares[k]),
                match,
                [observations[i] for i, _ in match],
            )
        )
    others = np.delete(shares, loudest)
    return voices, float(others.sum()), len(others)


def _match(speaker: _Speaker, here: Structure, node: int, label: int) -> list[Pair]:
    """The pairs of nodes that take part in at least half of κ, connected with the pair of the points."""
    point, edges = (speaker.node, node), (speaker.there.edges, here.edges)
    whole = speaker.kappa(node, label)
    match, fresh = [point], [point]
    while fresh:
        at = fresh.pop()
        for near, far in ((0, 1), (1, 0)):  # the parents of both, the children of both
            ends = (e[e[:, far] == i, near].tolist() for e, i in zip(edges, at, strict=True))
            for pair in itertools.product(*ends):
                if any(pair[0] == p or pair[1] == q for p, q in match):
                    continue
                if _ratio(speaker.kappa(node, label, apart=pair), whole) <= 1.0 - _LEAST_PART:
                    match.append(pair)
                    fresh.append(pair)
    return sorted(match)


def _ratio(a: Numbers, b: Numbers) -> float:
    """a / b of two numbers; 1 where both are 0."""
    top, bottom = _one_scale(Numbers.concatenate([a, b]))
    return float(top / bottom) if bottom else 1.0


def _shown(observation: Any) -> str:
    return observation if isinstance(observation, str) else short(observation)
