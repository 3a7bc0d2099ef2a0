"""Validation of the marginalized models, by scores with the coefficients learned so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fuda.checks import check_arrays, count_in
from fuda.data.encoding import Encoded
from fuda.marginalized.engines import Engine, make_engine
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
    return_to: Callable[[np.ndarray, int], None],
) -> Validation:
    """Return the validation of a training; inner trainings are not validated.

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
    return_to : callable
        Returns to an earlier α and the number of iterations it was reached after.

    Returns
    -------
    Validation
        The validation, before the first iteration.
    """
    engines: list[Engine] = []  # at most one, created by the first prediction

    def predict(encoded: Encoded) -> list[list[Any]]:
        if not engines:
            prior = model._prior_of(encoded.corpus, None)
            targets = Examples.of(encoded, prior, sources.examples.numbering)
            engines.append(make_engine(model.engine, sources.problem(targets), model.n_jobs))
        scores = checked_scores(model, engines[0].scores(alpha()), encoded.corpus).doubles()
        return model._labels_of_numbers(encoded, scores.argmax(axis=1))

    def snapshot() -> State:
        return {"count": len(validation.curve) + 1}, {"alpha": alpha()}

    def return_to_state(values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        check_arrays(arrays, {"alpha": alpha().shape})
        return_to(arrays["alpha"], count_in(values, "count"))

    validation = Validation(training, model._validation_data, predict, snapshot, return_to_state)
    return validation
