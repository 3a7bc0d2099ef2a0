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
Atom = tuple[Any, ...]  # a name, and where and of which kind it is


def segment_decision(model: Any, encoded: Encoded, known: Any = None) -> Decision:
    """Return what a semi-Markov CRF decides about one sequence."""
    model._check_live_params()
    if model._decoding == "viterbi":
        return segmentations(model, encoded, known)
    labels = model._best(encoded, known)
    about = encoded.corpus.structures[0], model.classes_.tolist(), labels
    scores = model._problem(encoded, model.outside_penalty)
    table, allowed = model._right(encoded, scores, model._known(encoded, known))

    def terms(node: int, a: int, b: int, top: int) -> list[Contribution]:
        text = f"probability {table[node, a]:.3g}, not {table[node, b]:.3g}"
        return [Contribution("probability", text, float(table[node, a] - table[node, b]), node)]

    if model.scheme_ is None:
        return Pointwise(*about, "probability", lambda node: table[node], terms)
    graph = encoded.corpus.graph
    unit, contexts = "expected number of right labels", pairs(graph.heads, allowed)
    return Labelings(*about, unit, table, contexts, lambda scores: viterbi(graph, scores, allowed)[0], terms)


def segmentations(model: Any, encoded: Encoded, known: Any = None) -> Segmentations:
    """Return the decision of a semi-Markov CRF between whole labelings, however it decodes."""
    corpus, scores = encoded.corpus, model._problem(encoded, model.outside_penalty)
    labels = model._best_of(scores, model._known(encoded, known))[1]
    given = np.full(len(labels), -1) if known is None else model._numbers(known, corpus)
    about = corpus.structures[0], model.classes_.tolist(), labels
    return Segmentations(*about, "score of the best labeling", model, encoded, scores, given)


@dataclass(frozen=True)
class Segmentations:
    """A decision between segmentations as a whole: see `fuda.explanations.decisions.Decision`.

    Attributes
    ----------
    structure, classes, labels, unit
        See `Decision`.
    model : SemiCRF
        The model.
    encoded : Encoded
        The sequence.
    scores : Scores
        What its segmentations score.
    known : (T,) array of int
        The labels that are given, −1 where open.
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
        found: list[tuple[float, Array]] = []
        for label in range(len(self.classes)):
            if label != self.labels[node]:
                known = self.known.copy()
                known[node] = label
                try:
                    found.append(self.model._best_of(self.scores, self.model._limits(self.encoded, known)))
                except DataError:  # no labeling has this label there
                    continue
        return max(found, key=lambda pair: pair[0])[1] if found else None

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
        s, found = self.scores, self.model._labels.segments(labels, self.scores.offsets)
        atoms: dict[Atom, float] = {}
        for a, begin, end in found.tolist():
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
        for (a, *_), (b, at, _) in pairwise(found.tolist()):
            atoms["pair", at, a, b] = float(s.transitions[a, b])
        return atoms

    def _texts(self, start: int, stop: int) -> list[int]:
        """The rows of the texts of a chunk."""
        if not 2 <= stop - start < self.scores.rows.shape[1] + 2:
            return []
        rows = self.scores.rows[stop - 1, stop - start - 2].tolist()
        return [row for row in rows if row < len(self.scores.texts) - 1]

    def _changes(self, other: Array) -> list[tuple[Atom, float, float]]:
        """The atoms that only one labeling has, with 1 or −1, and what they add."""
        ours, theirs = self._atoms(self.labels), self._atoms(other)
        found = [(atom, 1.0, value) for atom, value in ours.items() if atom not in theirs]
        return found + [(atom, -1.0, -value) for atom, value in theirs.items() if atom not in ours]

    def terms(self, other: Array, node: int, top: int) -> list[Contribution]:
        """Return what the difference to another labeling consists of."""
        names, kind_of, found = self.model.kinds_, self.model._labels.kind_of, []
        for t, (a, b) in enumerate(zip(kind_of[self.labels], kind_of[other], strict=True)):
            if a != b and t == node:
                found += self._features("", [(a, 1.0), (b, -1.0)], node)
            elif a != b:
                text = f"{shown(self.structure.observations[t])}: {names[a]}, not {names[b]}"
                found.append(
                    Contribution(
                        "elsewhere", text, float(self.scores.inside[t, a] - self.scores.inside[t, b]), t
                    )
                )
        for atom, sign, value in self._changes(other):
            if atom[0] in ("first", "last") and atom[1] == node:
                found += self._features(atom[0], [(atom[2], sign)], node)
            elif atom[0] != "node":
                found.append(self._named(atom, value, node))
        return found

    def _named(self, atom: Atom, value: float, node: int) -> Contribution:
        """An atom in words."""
        what, at, *rest = atom
        names, words = self.model.kinds_, list(map(shown, self.structure.observations))
        if what == "pair":
            return Contribution(
                "transition", f"{names[rest[0]]} → {names[rest[1]]}, at {words[at]}", value, at
            )
        if what == "join":
            return Contribution("transition", f"{names[rest[0]]} goes on, at {words[at]}", value, at)
        if what in ("length", "text"):
            stop, kind = rest[:2]
            detail = f"nodes={stop - at}" if what == "length" else self.model._texts_.names[rest[2]]
            if at <= node < stop:
                return Contribution("feature", f"{names[kind]}: {detail}", value, at)
            return Contribution(
                "elsewhere", f"{' '.join(words[at:stop])}: {names[kind]}, {detail}", value, at
            )
        return Contribution("elsewhere", f"{words[at]}: {what} of {names[rest[0]]}", value, at)

    def _features(self, what: str, kinds: list[tuple[int, float]], node: int) -> list[Contribution]:
        """What the features of a node add by the weights of kinds, and the penalty of O."""
        layout, K = self.model._layout, len(self.model._layout.longest)
        kinds = [(kind, sign) for kind, sign in kinds if not what or kind in layout.wide]
        start = {"": 0, "first": K, "last": K + len(layout.wide)}[what]
        columns = [start + int(np.searchsorted(layout.wide, kind)) if what else kind for kind, _ in kinds]
        signs = np.array([sign for _, sign in kinds])
        parts = layout.views(self.model.weights_).channels
        weights = [np.column_stack([part[:, columns] @ signs, np.zeros(len(part))]) for part in parts]
        place = f"{what} of {self.model.kinds_[kinds[0][0]]}: " if what and kinds else ""
        found = [
            replace(term, text=f"{place}{term.text}")
            for term in _feature_terms(self.model, self.encoded, weights, node, 0, 1)
        ]
        penalty = -self.model.outside_penalty * sum(
            sign for kind, sign in kinds if not what and self.model._labels.outside[kind]
        )
        return [*found, Contribution("penalty", "penalty of O", penalty, node)]
