"""Validation of the marginalized models: by the scores of the coefficients learned so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fuda.checks import check_arrays, count_in
from fuda.data.encoding import Encoded
from fuda.marginalized.engines import make_engine
from fuda.marginalized.engines.base import Engine
from fuda.marginalized.problem import Examples, Sources
from fuda.models.fitting.validation import State, Validation
from fuda.models.machines.checks import checked_scores
from fuda.storage.checkpoint import Learner

if TYPE_CHECKING:
    from fuda.models.marginalized import MarginalizedLabeler


def validation_of(
    model: MarginalizedLabeler,
    sources: Sources,
    training: Learner,
    alpha: Callable[[], np.ndarray],
    go_back: Callable[[np.ndarray, int], None],
) -> Validation:
    """Return the validation of a training, which validates nothing in inner trainings.

    Labels are those of the largest scores: probabilities are fitted when training has ended.

    Parameters
    ----------
    model : MarginalizedLabeler
        The model that is being fitted.
    sources : Sources
        The training structures.
    training : Learner
        The training.
    alpha : callable
        Returns α (N, L) as it would be if training ended now; not changed later.
    go_back : callable
        Returns to an earlier α, after a number of iterations.

    Returns
    -------
    Validation
        Not yet begun.
    """
    engines: list[Engine] = []  # one, made when it is needed

    def predict(encoded: Encoded) -> list[list[Any]]:
        if not engines:
            prior = model._prior_of(encoded.corpus, None)
            targets = Examples.of(encoded, prior, sources.examples.numbering)
            engines.append(make_engine(model.engine, sources.problem(targets), model.n_jobs))
        scores = checked_scores(model, engines[0].scores(alpha()), encoded.corpus).doubles()
        return model._named(encoded, scores.argmax(axis=1))

    def keep() -> State:
        return {"count": len(validation.curve) + 1}, {"alpha": alpha()}

    def return_to(values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        check_arrays(arrays, {"alpha": alpha().shape})
        go_back(arrays["alpha"], count_in(values, "count"))

    validation = Validation(
        training,
        model._validating,
        predict,
        keep,
        return_to,
    )
    return validation
