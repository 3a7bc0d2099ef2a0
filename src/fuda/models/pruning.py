"""How much faster a model with the marginalized kernel can predict, judged by held-out data."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from fuda.data.encoding import Encoded
from fuda.marginalized.engines.cpu.windows import has_windows
from fuda.marginalized.priors import Prior
from fuda.marginalized.support import Support, supports
from fuda.selection.goals import goal_for

Array = np.ndarray
Model = Any  # a `fuda.models.marginalized.MarginalizedLabeler`, which imports this module

# By how much clear cases lead, and the coefficients to remove, as parts of the largest |α|: the
# first of each with which labels are predicted well enough is chosen.
MARGINS = (0.5, 0.7, 0.85, 0.95)
SHARES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


def chosen(
    model: Model, encoded: Encoded, labels: Array, prior: Prior, loss: float
) -> tuple[list[Support], float | None]:
    """Return the support and the margin with which predictions are fastest, and about as good.

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
        How much lower the quality of predicted labels may be than that of the model
        without a margin.

    Returns
    -------
    support : list of Support
        Parts of the support.
    margin : float or None
        The margin of clear cases; None if all scores have to be exact.
    """
    true = model._named(encoded, labels)
    goal = goal_for(true)

    def quality(support: list[Support], margin: float | None) -> float:
        trial = copy(model)
        trial._support = support
        predicted = trial._named(encoded, trial._predicted(encoded, prior, margin))
        return float(goal.score(goal.counts(true, predicted)))

    support = model._support
    enough = quality(support, None) - loss
    problems = (model._support_engine(part, encoded, prior).problem for part in support)
    margins = MARGINS if any(map(has_windows, problems)) else ()  # others cannot be judged
    margin = next((m for m in margins if quality(support, m) >= enough), None)
    smaller = (_without_small(support, share) for share in SHARES)
    return next((part for part in smaller if quality(part, margin) >= enough), support), margin


def _without_small(parts: list[Support], share: float) -> list[Support]:
    """The support without coefficients below a share of the largest."""
    least = share * max((np.abs(part.alpha).max(initial=0.0) for part in parts), default=0.0)
    kept = ((part, np.abs(part.alpha) >= least) for part in parts)
    return [new for part, large in kept for new in supports(part.examples, np.where(large, part.alpha, 0.0))]
