"""Pruning: faster predictions of a model with the marginalized kernel, tested on held-out data.

Approximate scores come in stages (`fuda.marginalized.pruning_stages`). At every stage but the
last, each label σ has a margin: the least m for which at most a share ε of cases with the best
label σ and a lead of m or more get another label from the last stage. With e errors among n such
cases of the held-out nodes, the share is estimated as (e + 1) / (n + 1), so that few cases prove
nothing. The largest ε is chosen at which labels are predicted well enough with the margins of
other parts of the held-out data. ε is a small multiple of the permitted loss: the F1 of some
thousand entities varies by more than such a loss, so that a larger ε could pass by chance.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from fuda.data.encoding import Encoded
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.priors import Prior
from fuda.marginalized.pruning_stages import NEVER, REACHES, doubtful, leads
from fuda.marginalized.support import Support, supports
from fuda.selection.goals import goal_for

Array = np.ndarray
Model = Any  # a `fuda.models.marginalized.MarginalizedLabeler`, which imports this module

# The values of ε to try, in units of the loss, and the shares of the largest |α| below which
# coefficients are removed. Of each, the first is chosen at which labels are predicted well enough.
ERRORS = (5.0, 3.0, 2.0, 1.0)
SHARES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
# The number of parts of the held-out data.
_PARTS = 5


class Pruning:
    """A search for a part of the support with which predictions are fast and about as good.

    Parameters
    ----------
    model : MarginalizedLabeler
        A fitted model; not changed.
    encoded : Encoded
        Structures that it was not fitted on.
    labels : array (N,)
        Their label numbers, −1 where not known.
    prior : Prior
        Their prior.
    loss : float
        How much lower the quality of predicted labels may be than that of the model itself.
    """

    def __init__(self, model: Model, encoded: Encoded, labels: Array, prior: Prior, loss: float) -> None:
        self._model, self._encoded, self._prior = model, encoded, prior
        self._true = model._labels_of_numbers(encoded, labels)
        self._goal = goal_for(self._true)
        self._loss, self._enough = loss, self._quality(model._predict_numbers(encoded, prior, None)) - loss

    def chosen(self) -> tuple[list[Support], Array | None]:
        """Return parts of the support, and the margins; None if all scores have to be exact."""
        support, margins = self._model._support, self._margins()
        smaller = (_without_small(support, share) for share in SHARES)
        return next((part for part in smaller if self._suffices(part, margins)), support), margins

    def _margins(self) -> Array | None:
        """The margins (stages − 1, L), or None."""
        model, corpus = self._model, self._encoded.corpus
        engines = (model._support_engine(s, self._encoded, self._prior) for s in model._support)
        if not any(engine.can_prune() for engine in engines):
            return None
        staged = Staged([self._scores(stage) for stage in range(len(REACHES))], corpus.offsets)
        if not self._is_enough(staged.scores[-1]):
            return None
        parts = np.array_split(np.arange(len(corpus)), min(_PARTS, len(corpus)))
        nodes_of_parts, all_nodes = [corpus.nodes_of(part) for part in parts], np.arange(corpus.size)
        for error in (units * self._loss for units in ERRORS):
            scores = np.empty_like(staged.scores[0])
            for nodes in nodes_of_parts:
                margins = staged.margins(np.setdiff1d(all_nodes, nodes), error)
                scores[nodes] = staged.scores_with(margins, nodes)
            if self._is_enough(scores):
                return staged.margins(all_nodes, error)
        return np.full((len(REACHES) - 1, len(model.classes_)), NEVER)

    def _scores(self, stage: int) -> Array:
        """The scores of all nodes by one stage."""
        margins = np.full((len(REACHES) - 1, len(self._model.classes_)), -1.0)  # below all leads
        margins[:stage] = NEVER
        model, support = self._model, self._model._support
        return np.asarray(model._scores_by(support, self._encoded, self._prior, margins=margins).doubles())

    def _is_enough(self, scores: Array) -> bool:
        """Whether labels are predicted well enough by scores."""
        inputs = self._model._inputs_with_memory(self._encoded, self._prior, Numbers(scores))
        return self._quality(self._model._decode(self._encoded, inputs)) >= self._enough

    def _suffices(self, support: list[Support], margins: Array | None) -> bool:
        """Whether labels are predicted well enough by a support."""
        trial = copy(self._model)
        trial._support = support
        return self._quality(trial._predict_numbers(self._encoded, self._prior, margins)) >= self._enough

    def _quality(self, labels: Array) -> float:
        """The quality of predicted label numbers."""
        return float(
            self._goal.score(
                self._goal.counts(self._true, self._model._labels_of_numbers(self._encoded, labels))
            )
        )


class Staged:
    """The scores of nodes by all stages.

    Parameters
    ----------
    scores : list of arrays (N, L)
        Of one stage after another.
    offsets : array
        The bounds of the structures.
    """

    def __init__(self, scores: list[Array], offsets: Array) -> None:
        self.scores, self._offsets = scores, offsets
        self._labels = leads(scores[-1])[0]

    def margins(self, nodes: Array, error: float) -> Array:
        """Return the least margins with at most a share of errors at the nodes of structures."""
        margins = []
        for scores in self.scores[:-1]:
            margins.append(margins_of(scores[nodes], self._labels[nodes], error))
            nodes = doubtful(scores, nodes, margins[-1], self._offsets)
        return np.array(margins)

    def scores_with(self, margins: Array, nodes: Array) -> Array:
        """Return the scores of nodes of structures, each from the stage that margins select."""
        selected, unclear = self.scores[0].copy(), nodes
        for scores, later, margin in zip(self.scores, self.scores[1:], margins, strict=False):
            unclear = doubtful(scores, unclear, margin, self._offsets)
            selected[unclear] = later[unclear]
        return selected[nodes]


def margins_of(scores: Array, labels: Array, error: float) -> Array:
    """Return the least margins with at most a share of errors; `labels` are the right ones."""
    best, lead = leads(scores)
    margins = np.full(scores.shape[1], NEVER)
    for label in range(len(margins)):
        nodes = np.flatnonzero(best == label)
        nodes = nodes[np.argsort(-lead[nodes], kind="stable")]
        shares = (np.cumsum(labels[nodes] != label) + 1) / np.arange(2, len(nodes) + 2)
        clear = np.flatnonzero(shares <= error)
        if len(clear):
            margins[label] = lead[nodes[clear[-1]]]
    return margins


def _without_small(parts: list[Support], share: float) -> list[Support]:
    """The support without coefficients below a share of the largest."""
    least = share * max((np.abs(part.alpha).max(initial=0.0) for part in parts), default=0.0)
    large_alphas = ((part, np.where(np.abs(part.alpha) >= least, part.alpha, 0.0)) for part in parts)
    return [new for part, alpha in large_alphas for new in supports(part.examples, alpha)]
