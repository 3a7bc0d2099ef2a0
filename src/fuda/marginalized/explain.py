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
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fuda.checks import is_whole
from fuda.data.structures import Structure
from fuda.errors import DataError, short
from fuda.marginalized.machine import Machine, Side
from fuda.marginalized.scaled import Table
from fuda.marginalized.tables import doubles, each, product

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
        said = f"node {self.node}, {_shown(self.observation)}: {self.chosen.label}"
        if self.rival is None:
            return f"{said}\n{self.chosen}"
        return f"{said}, not {self.rival.label}\n{self.chosen}\n{self.rival}"


def explain(model: Any, x: Any, node: int, prior: Any = None, top: int = 5) -> Explanation:
    """Which support positions spoke for and against the best label of a node, by score, and its rival.

    The `top` loudest voices on each are given one by one. `prior` is the (nodes, labels) array of x, where
    the model was fitted with arrays.
    """
    if not is_whole(top, 1):
        raise DataError(f"top={short(top)}: ask for at least one voice, a whole number")
    encoded = model._encode([x])
    assert encoded is not None  # there is one structure
    here = encoded.corpus.structures[0]
    if not is_whole(node, 0, len(here) - 1):
        raise DataError(f"node={short(node)}: give a node of the structure, from 0 to {len(here) - 1}")
    of_x = model._prior_of(encoded.corpus, None if prior is None else [prior])
    speakers: list[_Speaker] = []
    tables: list[Table] = []
    before = 0
    for side, alpha in model._support:
        machine = model._machine(side, Side(encoded, side.numbering, of_x))
        gamma = machine.gamma(alpha, slice(None)) * of_x.nodes[node]
        for i in range(len(side.sizes)):
            nodes = side.nodes(i)
            at = np.flatnonzero(alpha[nodes].any(axis=1))
            speakers += [_Speaker(machine, before, i, int(t), alpha[nodes.start + t]) for t in at]
            tables.append(_shares(machine.kappa(i, 0), at, int(node), gamma[nodes][at]))
        before += len(side.sizes)
    shares = _one_scale([np.zeros((0, len(model.classes_))), *tables])
    best = np.argsort(-shares.sum(axis=0), kind="stable")[:2].tolist()
    verdicts = [_verdict(model.classes_, speakers, shares[:, k], k, int(node), top) for k in best]
    return Explanation(int(node), here.observations[node], verdicts[0], (*verdicts, None)[1])


class _Speaker(NamedTuple):
    """A support position: its machine, the structures before those of the machine, and where it is there."""

    machine: Machine
    before: int
    structure: int
    node: int
    alpha: Array

    @property
    def there(self) -> Structure:
        return self.machine.sources.encoded.corpus.structures[self.structure]


def _shares(kappa: Table, rows: Array, column: int, factors: Array) -> Table:
    """κ(τ,t,σ) at some τ and one t, times factors (τ, σ)."""
    return product(each(lambda part: part[rows, column].reshape(len(rows), -1), kappa), factors)


def _one_scale(tables: list[Table]) -> Array:
    """The rows of all tables as doubles; where some are scaled, all are divided by one power of 2."""
    if not any(isinstance(table, tuple) for table in tables):
        return np.concatenate(tables)
    pairs = [t if isinstance(t, tuple) else (t, np.zeros(t.shape, dtype=np.int64)) for t in tables]
    mantissa, exponent = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return doubles((mantissa.reshape(1, -1), exponent.reshape(1, -1))).reshape(mantissa.shape)


def _verdict(
    classes: list[Any], speakers: list[_Speaker], shares: Array, label: int, node: int, top: int
) -> Verdict:
    loudest = np.argsort(-np.abs(shares), kind="stable")[:top].tolist()
    voices = []
    for k in loudest:
        speaker = speakers[k]
        match = _match(speaker, node, label)
        observations = speaker.there.observations
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
    return Verdict(classes[label], float(shares.sum()), voices, float(others.sum()), len(others))


def _match(speaker: _Speaker, node: int, label: int) -> list[Pair]:
    """The pairs of nodes that take part in at least half of κ, connected with the pair of the points."""
    machine, point = speaker.machine, (speaker.node, node)
    there, here = speaker.there.edges, machine.targets.encoded.corpus.structures[0].edges
    whole = _entry(machine.kappa(speaker.structure, 0), point, label)
    match, fresh = [point], [point]
    while fresh:
        i, j = fresh.pop()
        for near, far in ((0, 1), (1, 0)):  # the parents of both, the children of both
            pairs = itertools.product(
                there[there[:, far] == i, near].tolist(), here[here[:, far] == j, near].tolist()
            )
            for pair in pairs:
                if any(pair[0] == p or pair[1] == q for p, q in match):
                    continue
                rest = _entry(machine.kappa(speaker.structure, 0, apart=pair), point, label)
                if _ratio(rest, whole) <= 1.0 - _LEAST_PART:
                    match.append(pair)
                    fresh.append(pair)
    return sorted(match)


def _entry(kappa: Table, point: Pair, label: int) -> tuple[float, int]:
    """κ of the points and a label, as mantissa and exponent."""
    mantissa, exponent = kappa if isinstance(kappa, tuple) else (kappa, np.zeros(kappa.shape, dtype=np.int64))
    at = point if mantissa.ndim == 2 else (*point, label)
    return float(mantissa[at]), int(exponent[at])


def _ratio(a: tuple[float, int], b: tuple[float, int]) -> float:
    """a / b of two scaled numbers; 1 where both are 0."""
    return float(np.ldexp(a[0] / b[0], 512 * max(a[1] - b[1], -4))) if b[0] else 1.0


def _shown(observation: Any) -> str:
    return observation if isinstance(observation, str) else short(observation)
