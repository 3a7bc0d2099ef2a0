"""Decisions of a Reranker, for explanations."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from fuda.data.encoding import Encoded
from fuda.explanations.base import Contribution
from fuda.render.text import shown

Array = np.ndarray


class RankedCandidates:
    """The decision of a Reranker between the candidates of its base labeler, by

        g(x, y) = v log P(y|x) + Σ_s α_s K((x_s, y_s), (x, y)).

    The difference between the best candidate ŷ and the best one with another label at a node has
    two parts: v times log P(ŷ|x) − log P(y'|x) = F(x, ŷ) − F(x, y') is explained as a decision of
    the base labeler, and the rest by training structures.
    """

    unit = "score of the best candidate"

    def __init__(self, model: Any, encoded: Encoded) -> None:
        self.model, self.structure = model, encoded.corpus.structures[0]
        self.classes = model.classes_.tolist()
        listed = model._candidates(encoded)
        self.ranking = model._ranking(encoded, listed)
        self.candidates = model._flat(listed.labels).reshape(len(self.ranking), -1)
        self.labels = self.candidates[self.ranking.argmax()]
        base = copy(model.base_)
        base.outside_penalty = 0.0  # candidates do not depend on it
        self._base = cache(lambda: base._labeling_decision(base._encode_corpus(encoded.corpus)))
        self._shares = cache(lambda: self._by_structure(encoded, listed))

    def _by_structure(self, encoded: Encoded, listed: Any) -> Array:
        """The parts of the sum over s, by support structure and candidate."""
        model = self.model
        if not len(model.alpha_):
            return np.zeros((0, len(self.ranking)))
        similarity, support = model._cached_for(model.alpha_, model._support)
        new = similarity.prepare(encoded, self.candidates.ravel(), listed.first)
        bounds = pairwise(model.support_first_.tolist())
        return np.array(
            [model.alpha_[a:b] @ similarity.rows(support, np.arange(a, b), new) for a, b in bounds]
        )

    def _number(self, labels: Array) -> int:
        """The number of a candidate."""
        return int((self.candidates == labels).all(axis=1).argmax())

    def rival(self, node: int) -> Array | None:
        """Return the best candidate with another label at a node; None where there is none."""
        ranking = np.where(self.candidates[:, node] == self.labels[node], -np.inf, self.ranking)
        return self.candidates[ranking.argmax()] if np.isfinite(ranking.max()) else None

    def score(self, labels: Array, node: int) -> float:
        """Return g of a candidate."""
        return float(self.ranking[self._number(labels)])

    def difference(self, other: Array, node: int) -> float:
        """Return g of the best candidate minus g of another one."""
        return self.score(self.labels, node) - self.score(other, node)

    def terms(self, other: Array, node: int, top: int) -> list[Contribution]:
        """Return the contributions to the difference to another candidate."""
        base, weight = self._base(), self.model._fitted_params["base_weight"]
        number = {label: k for k, label in enumerate(base.classes)}
        ours, theirs = (np.array([number[self.classes[k]] for k in y]) for y in (self.labels, other))
        base_terms = replace(base, labels=ours).terms(theirs, node, top)
        contributions = [replace(term, value=weight * term.value) for term in base_terms]
        shares = self._shares()
        differences = shares[:, self._number(self.labels)] - shares[:, self._number(other)]
        for i, value in enumerate(differences.tolist()):
            words = " ".join(map(shown, self.model.support_structures_[i].observations))
            text = f"structure {i}: {words if len(words) <= 60 else words[:59] + '…'}"
            contributions.append(Contribution("structure", text, value, node))
        return contributions

    def positions(self, node: int) -> None:
        """Return None: candidates are compared as a whole."""
