"""The decision of a semi-Markov CRF for explanations.

The score of a segmentation is a sum of *atoms*: of a node by its kind, of the first and the last
node of a segment, of the length and the text of a chunk, of two segments next to each other. Two
labelings differ by the atoms that only one of them has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from fuda.data.encoding import Encoded
from fuda.data.structures import Structure
from fuda.errors import DataError
from fuda.explanations.base import Contribution
from fuda.explanations.decisions import Decision, Labelings, Pointwise, pairs
from fuda.explanations.positions import Positions
from fuda.inference import viterbi
from fuda.inference.segments import Scores
from fuda.models.explained.markov import _feature_terms
from fuda.render.text import shown

Array = np.ndarray
Atom = tuple[Any, ...]  # the kind of the atom, its position, and the kinds of segments


def segment_decision(model: Any, encoded: Encoded, known: Any = None) -> Decision:
    """Return the decision of a semi-Markov CRF about one sequence."""
    model._check_live_params()
    if model._decoding == "viterbi":
        return segmentations(model, encoded, known)
    labels = model._best_labels(encoded, known)
    about = encoded.corpus.structures[0], model.classes_.tolist(), labels
    scores = model._segment_scores(encoded, model.outside_penalty)
    table, transitions = model._constrained_marginals(encoded, scores, model._limits_of_known(encoded, known))

    def terms(node: int, a: int, b: int, top: int) -> list[Contribution]:
        text = f"probability {table[node, a]:.3g}, not {table[node, b]:.3g}"
        return [Contribution("probability", text, float(table[node, a] - table[node, b]), node)]

    if model.scheme_ is None:
        return Pointwise(*about, "probability", lambda node: table[node], terms)
    graph = encoded.corpus.graph

    def best(scores: Array) -> Array:
        return viterbi(graph, scores, transitions)[0]

    unit, contexts = "expected number of right labels", pairs(graph.heads, transitions)
    return Labelings(*about, unit, table, contexts, best, terms)


def segmentations(model: Any, encoded: Encoded, known: Any = None) -> Segmentations:
    """Return the decision of a semi-Markov CRF between labelings, however it decodes."""
    corpus, scores = encoded.corpus, model._segment_scores(encoded, model.outside_penalty)
    labels = model._best_labelings(scores, model._limits_of_known(encoded, known))[1]
    known_numbers = np.full(len(labels), -1) if known is None else model._label_numbers(known, corpus)
    about = corpus.structures[0], model.classes_.tolist(), labels
    return Segmentations(*about, "score of the best labeling", model, encoded, scores, known_numbers)


@dataclass(frozen=True)
class Segmentations:
    """A decision between segmentations of the whole sequence.

    It is a `fuda.explanations.decisions.Decision`.

    Attributes
    ----------
    structure, classes, labels, unit
        See `Decision`.
    model : SemiCRF
        The model.
    encoded : Encoded
        The sequence.
    scores : Scores
        The scores of its segments.
    known : (T,) array of int
        The labels that are known, −1 where open.
    """

    structure: Structure
    classes: Sequence[Any]
    labels: Array
    unit: str
    model: Any
    encoded: Encoded
    scores: Scores
    known: Array

    def rival(self, node: int) -> Array | None:
        """Return the best labeling with another label at a node; None where there is none."""
        if self.known[node] >= 0:
            return None
        rivals: list[tuple[float, Array]] = []
        for label in range(len(self.classes)):
            if label != self.labels[node]:
                known = self.known.copy()
                known[node] = label
                try:
                    limits = self.model._limits(self.encoded, known)
                    rivals.append(self.model._best_labelings(self.scores, limits))
                except DataError:  # no labeling has this label there
                    continue
        return max(rivals, key=lambda pair: pair[0])[1] if rivals else None

    def score(self, labels: Array, node: int) -> float:
        """Return F of a labeling."""
        return sum(self._atoms(labels).values())

    def difference(self, other: Array, node: int) -> float:
        """Return by how much the labels are ahead of others."""
        return sum(value for *_, value in self._changes(other))

    def positions(self, node: int) -> Positions | None:
        """Return None: there are no training positions in a score."""
        return None

    def _atoms(self, labels: Array) -> dict[Atom, float]:
        """The parts of the score of a labeling."""
        s, segments = self.scores, self.model._labels.segments(labels, self.scores.offsets)
        atoms: dict[Atom, float] = {}
        for a, begin, end in segments.tolist():
            for t in range(begin, end):
                atoms["node", t, a] = float(s.inside[t, a])
            atoms["first", begin, a] = float(s.first[begin, a])
            atoms["last", end - 1, a] = float(s.last[end - 1, a])
            for start in range(begin, end, s.longest[a]):
                stop = min(end, start + int(s.longest[a]))
                atoms["length", start, stop, a] = float(s.lengths[a, stop - start])
                if start > begin:
                    atoms["join", start, a] = float(s.joins[a])
                for row in self._texts(start, stop):
                    atoms["text", start, stop, a, row] = float(s.texts[row, a])
        for (a, *_), (b, start, _) in pairwise(segments.tolist()):
            atoms["pair", start, a, b] = float(s.transitions[a, b])
        return atoms

    def _texts(self, start: int, stop: int) -> list[int]:
        """The rows of the texts of a chunk."""
        if not 2 <= stop - start < self.scores.rows.shape[1] + 2:
            return []
        rows = self.scores.rows[stop - 1, stop - start - 2].tolist()
        return [row for row in rows if row < len(self.scores.texts) - 1]

    def _changes(self, other: Array) -> list[tuple[Atom, float, float]]:
        """The atoms that only one labeling has: each with its sign (1 or −1) and signed score."""
        ours, theirs = self._atoms(self.labels), self._atoms(other)
        changes = [(atom, 1.0, value) for atom, value in ours.items() if atom not in theirs]
        return changes + [(atom, -1.0, -value) for atom, value in theirs.items() if atom not in ours]

    def terms(self, other: Array, node: int, top: int) -> list[Contribution]:
        """Return the contributions to the difference to another labeling."""
        names, kind_of, contributions = self.model.kinds_, self.model._labels.kind_of, []
        for t, (a, b) in enumerate(zip(kind_of[self.labels], kind_of[other], strict=True)):
            if a != b and t == node:
                contributions += self._features("", [(a, 1.0), (b, -1.0)], node)
            elif a != b:
                text = f"{shown(self.structure.observations[t])}: {names[a]}, not {names[b]}"
                value = float(self.scores.inside[t, a] - self.scores.inside[t, b])
                contributions.append(Contribution("elsewhere", text, value, t))
        for atom, sign, value in self._changes(other):
            if atom[0] in ("first", "last") and atom[1] == node:
                contributions += self._features(atom[0], [(atom[2], sign)], node)
            elif atom[0] != "node":
                contributions.append(self._in_words(atom, value, node))
        return contributions

    def _in_words(self, atom: Atom, value: float, node: int) -> Contribution:
        """An atom in words."""
        role, start, *rest = atom
        names, words = self.model.kinds_, list(map(shown, self.structure.observations))
        if role == "pair":
            text = f"{names[rest[0]]} → {names[rest[1]]}, at {words[start]}"
            return Contribution("transition", text, value, start)
        if role == "join":
            return Contribution("transition", f"{names[rest[0]]} goes on, at {words[start]}", value, start)
        if role in ("length", "text"):
            stop, kind = rest[:2]
            detail = f"nodes={stop - start}" if role == "length" else self.model._texts_.names[rest[2]]
            if start <= node < stop:
                return Contribution("feature", f"{names[kind]}: {detail}", value, start)
            text = f"{' '.join(words[start:stop])}: {names[kind]}, {detail}"
            return Contribution("elsewhere", text, value, start)
        return Contribution("elsewhere", f"{words[start]}: {role} of {names[rest[0]]}", value, start)

    def _features(self, role: str, kinds: list[tuple[int, float]], node: int) -> list[Contribution]:
        """The contributions of the features of a node, and of the penalty of O.

        `role` is "first" or "last" for the weights of the first or last node of a segment, "" for
        those of any node; `kinds` has pairs (kind, sign).
        """
        layout, K = self.model._layout, len(self.model._layout.longest)
        kinds = [(kind, sign) for kind, sign in kinds if not role or kind in layout.wide]
        start = {"": 0, "first": K, "last": K + len(layout.wide)}[role]
        columns = [start + int(np.searchsorted(layout.wide, kind)) if role else kind for kind, _ in kinds]
        signs = np.array([sign for _, sign in kinds])
        parts = layout.views(self.model.weights_).channels
        weights = [np.column_stack([part[:, columns] @ signs, np.zeros(len(part))]) for part in parts]
        place = f"{role} of {self.model.kinds_[kinds[0][0]]}: " if role and kinds else ""
        contributions = [
            replace(term, text=f"{place}{term.text}")
            for term in _feature_terms(self.model, self.encoded, weights, node, 0, 1)
        ]
        penalty = -self.model.outside_penalty * sum(
            sign for kind, sign in kinds if not role and self.model._labels.outside[kind]
        )
        return [*contributions, Contribution("penalty", "penalty of O", penalty, node)]
