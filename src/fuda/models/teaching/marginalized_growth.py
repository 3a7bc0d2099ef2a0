"""Labels that are added to a marginalized perceptron; `label_growth` has other models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fuda.errors import DataError
from fuda.marginalized.priors import Prior, uniform_prior
from fuda.marginalized.pruning_stages import NEVER
from fuda.marginalized.support import Support
from fuda.models import priors
from fuda.models.priors import SHARE, PriorSource
from fuda.models.teaching.label_growth import enlarge_classes

Array = np.ndarray
Model = Any  # a `MarginalizedPerceptron`, which imports this module


def grow_marginalized(model: Model, new: list[Any]) -> None:
    """Add labels to a marginalized perceptron.

    The prior of a new label is its share of the uniform prior that a labeler's posterior is mixed
    with, or that of all others where the prior is uniform. Coefficients are changed so that the
    scores of the other labels stay the same, up to a common factor.

    Parameters
    ----------
    model : MarginalizedPerceptron
        A fitted model, whose arrays are replaced and not changed.
    new : list
        The labels.
    """
    if not new:
        return
    source = model.prior_source_
    label_kernel = model._fitted_params["label_kernel"]
    if source.source == priors.GIVEN or source.form == "chain" or label_kernel is not None:
        raise DataError(
            f"the label {new[0]!r} is new: with a label kernel, a chain prior or priors given as arrays "
            "labels cannot be added; fit again with all labels"
        )
    old_count, positions = len(model.classes_), enlarge_classes(model, new)
    count = len(model.classes_)
    model.prior_source_ = PriorSource(source.source, source.form, model.classes_.tolist())
    model.label_kernel_ = np.eye(count)
    if source.source == priors.UNIFORM and model._fitted_params["mixing"] is None:
        model.mixing_ *= float(np.sqrt(count / old_count))  # the weight of a node of a match is unchanged
    model._support = [_grown_support(support, source.source, positions, count) for support in model._support]
    model._memory = [_grown_support(support, source.source, positions, count) for support in model._memory]
    pairs = np.zeros((count, count))
    pairs[np.ix_(positions, positions)] = model._calibration.pairs
    model._calibration = replace(model._calibration, pairs=pairs)
    if model.margins_ is not None:
        margins = np.full((len(model.margins_), count), NEVER)  # new labels have no clear cases
        margins[:, positions] = model.margins_
        model.margins_ = margins


def _grown_support(support: Support, source: Any, positions: Array, count: int) -> Support:
    """Support with a prior and coefficients for more labels."""
    examples = support.examples
    old = examples.prior.nodes
    if source == priors.UNIFORM:
        prior = uniform_prior(examples.encoded.corpus, count)
    else:
        nodes = np.full((len(old), count), SHARE / count)
        nodes[:, positions] = old * (1 - SHARE * (count - len(positions)) / count)
        prior = Prior(nodes)
    alpha = np.zeros((len(old), count))
    alpha[:, positions] = support.alpha * old / prior.nodes[:, positions]
    return Support(replace(examples, prior=prior), alpha)
