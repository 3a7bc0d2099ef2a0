"""Decisions of models, and the differences that explain them.

**Labelings.** A model that decodes by Viterbi maximizes, over the labelings y that a scheme and
known labels permit,

    G(y) = Σ_t s_t(y_t) + Σ_t A_t(c_t, y_t),

where the context c_t of a node t is the label of its parent, or several labels above it. With ŷ
the best labeling and y' the best one with another label at the node t, the difference is that of
max-marginals,

    G(ŷ) − G(y') = [s_t(ŷ_t) − s_t(y'_t)]
                 + Σ_{u ≠ t} [s_u(ŷ_u) − s_u(y'_u)] + Σ_u [A_u(ĉ_u, ŷ_u) − A_u(c'_u, y'_u)].

Only nodes where the two labelings differ, and the nodes below them, have terms other than 0. The
first bracket is decomposed further, into features, or into training positions and a prior.

**Single nodes.** Posterior decoding maximizes P(y_t|x) at each node. The difference is the log-
odds of the best label and the second best. On a tree it is the sum of the score of the node itself
and the messages along its edges, see `fuda.explanations.messages`:

    log P(ŷ_t) − log P(b) = s_t(ŷ_t) − s_t(b) + Σ_{neighbours u} [m_{u→t}(ŷ_t) − m_{u→t}(b)].

Posterior decoding under a scheme maximizes G(y) = Σ_t P(y_t) over well-formed labelings. There the
bracket of t is P(ŷ_t) − P(y'_t), and the terms of the log-odds, multiplied by

    (P(ŷ_t) − P(y'_t)) / (log P(ŷ_t) − log P(y'_t)),   the logarithmic mean of both,

add up to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fuda.checks import is_whole
from fuda.data.structures import Structure
from fuda.errors import DataError, short
from fuda.explanations.base import Contribution, Explanation, Verdict, Voice, chosen_few
from fuda.explanations.positions import Positions
from fuda.render.text import shown

Array = np.ndarray
Context = tuple[tuple[int, ...], int]  # the labels above a node, the nearest first, and its own
# From a node, two label numbers and how many to list: the contributions to the difference of node
# scores.
NodeTerms = Callable[[int, int, int, int], list[Contribution]]


class Decision(Protocol):
    """The decision of `predict` about one structure."""

    @property
    def structure(self) -> Structure:
        """The structure."""

    @property
    def classes(self) -> Sequence[Any]:
        """The labels."""

    @property
    def labels(self) -> Array:
        """(T,) the numbers of the labels that `predict` gives."""

    @property
    def unit(self) -> str:
        """The name of the score."""

    def rival(self, node: int) -> Array | None:
        """Return the best labels with another label at a node; None if no other is possible."""

    def score(self, labels: Array, node: int) -> float:
        """Return the score that is compared, for the label of a node in a labeling."""

    def difference(self, other: Array, node: int) -> float:
        """Return the score of the labels minus that of others that differ at a node."""

    def terms(self, other: Array, node: int, top: int) -> list[Contribution]:
        """Return the contributions to the difference."""

    def positions(self, node: int) -> Positions | None:
        """Return the training positions that the score of a node is the sum over, if it is one."""


@dataclass(frozen=True)
class Contexts:
    """A(c, b): the score of a label given the labels above it.

    Attributes
    ----------
    heads : (T,) array of int
        Parents, −1 for roots.
    order : int
        How many labels above a node it depends on.
    value : callable
        From a node, the labels above it (the nearest first) and its own to A.
    """

    heads: Array
    order: int
    value: Callable[[int, tuple[int, ...], int], float]

    def of(self, labels: Array, node: int) -> Context:
        """Return the labels above a node, the nearest first, and its own."""
        above: list[int] = []
        at = int(self.heads[node])
        while at >= 0 and len(above) < self.order:
            above.append(int(labels[at]))
            at = int(self.heads[at])
        return tuple(above), int(labels[node])


def pairs(heads: Array, transitions: Array) -> Contexts:
    """Return the contexts of label pairs, with A (L, L) or (T, L, L)."""
    tables = np.broadcast_to(transitions, (len(heads), *transitions.shape[-2:]))
    return Contexts(
        heads, 1, lambda node, above, label: float(tables[node, above[0], label]) if above else 0.0
    )


@dataclass(frozen=True)
class Labelings:
    """A decision between labelings by G.

    Attributes
    ----------
    structure, classes, labels, unit
        See `Decision`.
    scores : (T, L) array
        s; −inf where a label is not permitted.
    contexts : Contexts
        A.
    best : callable
        From other scores (T, L) to the best labeling (T,); raises DataError if there is none.
    node_terms : callable
        Decomposes the first bracket.
    node_positions : callable
        From a node to its training positions, or None.
    edge_terms : callable
        From a node and two contexts with labels to the contributions of features to the
        difference of A.
    """

    structure: Structure
    classes: Sequence[Any]
    labels: Array
    unit: str
    scores: Array
    contexts: Contexts
    best: Callable[[Array], Array]
    node_terms: NodeTerms
    node_positions: Callable[[int], Positions | None] = lambda node: None
    edge_terms: Callable[[int, Context, Context], list[Contribution]] = lambda node, ours, theirs: []

    def rival(self, node: int) -> Array | None:
        """Return the best labeling with another label at a node; None if there is none."""
        others = self.scores.copy()
        others[node, self.labels[node]] = -np.inf
        if not np.isfinite(others[node].max()):
            return None
        try:
            return self.best(others)
        except DataError:  # the scores have been checked, so no labeling is left
            return None

    def score(self, labels: Array, node: int) -> float:
        """Return G."""
        nodes = range(len(labels))
        node_scores = float(self.scores[nodes, labels].sum())
        return node_scores + sum(self.contexts.value(t, *self.contexts.of(labels, t)) for t in nodes)

    def difference(self, other: Array, node: int) -> float:
        """Return G of the best labeling minus G of another one."""
        return sum(value for _, value, _ in self._changes(other))

    def _changes(self, other: Array) -> list[tuple[int, float, Any]]:
        """Nodes and differences: of node scores, or with both contexts, of A."""
        changes: list[tuple[int, float, Any]] = []
        for t, (a, b) in enumerate(zip(self.labels.tolist(), other.tolist(), strict=True)):
            if a != b:
                changes.append((t, float(self.scores[t, a] - self.scores[t, b]), None))
            both = self.contexts.of(self.labels, t), self.contexts.of(other, t)
            if both[0] != both[1]:
                values = [self.contexts.value(t, *context) for context in both]
                changes.append((t, values[0] - values[1], both))
        return changes

    def terms(self, other: Array, node: int, top: int) -> list[Contribution]:
        """Return the contributions to the difference to another labeling."""
        contributions = self.node_terms(node, int(self.labels[node]), int(other[node]), top)
        for t, value, contexts in self._changes(other):
            if contexts is not None:
                text = ", not ".join(map(self._follows, contexts))
                text += "" if t == node else f", at {shown(self.structure.observations[t])}"
                parts = self.edge_terms(t, *contexts) if t == node else []
                value -= sum(part.value for part in parts)
                contributions += [*parts, Contribution("transition", text, value, t)]
            elif t != node:
                ours, theirs = self.classes[self.labels[t]], self.classes[other[t]]
                text = f"{shown(self.structure.observations[t])}: {ours}, not {theirs}"
                contributions.append(Contribution("elsewhere", text, value, t))
        return contributions

    def _follows(self, context: Context) -> str:
        """A context and a label in words."""
        above, label = context
        names = [str(self.classes[k]) for k in reversed(above)]
        start = ["<start>"] if len(above) < self.contexts.order else []
        return f"{' '.join([*start, *names])} → {self.classes[label]}"

    def positions(self, node: int) -> Positions | None:
        """Return the training positions that the score of a node is the sum over, if it is one."""
        return self.node_positions(node)


@dataclass(frozen=True)
class Pointwise:
    """A decision about each node independently.

    Attributes
    ----------
    structure, classes, labels, unit
        See `Decision`.
    values : callable
        From a node to the scores of its labels (L,), −inf where one is not permitted.
    node_terms : callable
        Decomposes the difference of two of them.
    node_positions : callable
        From a node to its training positions, or None.
    """

    structure: Structure
    classes: Sequence[Any]
    labels: Array
    unit: str
    values: Callable[[int], Array]
    node_terms: NodeTerms
    node_positions: Callable[[int], Positions | None] = lambda node: None

    def rival(self, node: int) -> Array | None:
        """Return the labels with the second best one at a node; None if there is none."""
        values = self.values(node).copy()
        values[self.labels[node]] = -np.inf
        if not np.isfinite(values.max()):
            return None
        labels = self.labels.copy()
        labels[node] = values.argmax()
        return labels

    def score(self, labels: Array, node: int) -> float:
        """Return the score of the label of a node."""
        return float(self.values(node)[labels[node]])

    def difference(self, other: Array, node: int) -> float:
        """Return the difference between two labels of a node."""
        return self.score(self.labels, node) - self.score(other, node)

    def terms(self, other: Array, node: int, top: int) -> list[Contribution]:
        """Return the contributions to the difference between two labels of a node."""
        return self.node_terms(node, int(self.labels[node]), int(other[node]), top)

    def positions(self, node: int) -> Positions | None:
        """Return the training positions that the score of a node is the sum over, if it is one."""
        return self.node_positions(node)


def check_question(structure: Structure, node: Any, top: Any) -> None:
    """Raise DataError if a node is not one of a structure, or `top` is not a positive integer."""
    if not is_whole(top, 1):
        raise DataError(f"top={short(top)}: give a whole number, at least 1")
    if not is_whole(node, 0, len(structure) - 1):
        raise DataError(f"node={short(node)}: give a node of the structure, from 0 to {len(structure) - 1}")


def explained(decision: Decision, node: int, top: int) -> Explanation:
    """Explain the label of a node.

    Parameters
    ----------
    decision : Decision
        The decision of `predict`.
    node : int
        The node.
    top : int
        How many contributions of each kind to list by themselves.

    Returns
    -------
    Explanation
        Of the label that `predict` gives and the best other one.
    """
    node, rival = int(node), decision.rival(node)
    positions = decision.positions(node)
    chosen = _verdict(decision, positions, decision.labels, node, top)
    about = node, decision.structure.observations[node], chosen
    if rival is None:
        return Explanation(*about, None, decision.structure, decision.unit)
    return Explanation(
        *about,
        _verdict(decision, positions, rival, node, top),
        decision.structure,
        decision.unit,
        decision.difference(rival, node),
        chosen_few(decision.terms(rival, node, top), top),
    )


def _verdict(decision: Decision, positions: Positions | None, labels: Array, node: int, top: int) -> Verdict:
    """The score of a label, with the training positions that have the largest shares."""
    label, score = int(labels[node]), decision.score(labels, node)
    voices: list[Voice] = []
    count = 0
    if positions is not None:
        voices = positions.voices(label, top)
        count = len(positions.plain) - len(voices)
    is_pointwise = isinstance(decision, Pointwise)
    labeling = None if is_pointwise else [decision.classes[k] for k in labels]
    return Verdict(
        decision.classes[label],
        score,
        voices,
        score - sum(v.share for v in voices) if count or not is_pointwise else 0.0,
        count,
        labeling,
    )
