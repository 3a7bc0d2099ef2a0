"""Labels that come after a fit of a marginalized perceptron; `label_growth` has other models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fuda.errors import DataError
from fuda.marginalized.engines.cpu.windows import NEVER
from fuda.marginalized.priors import Prior, uniform_prior
from fuda.marginalized.support import Support
from fuda.models import priors
from fuda.models.priors import SHARE, PriorSource
from fuda.models.teaching.label_growth import enlarge_classes

Array = np.ndarray
Model = Any  # a `MarginalizedPerceptron`, which imports this module


def grow_marginalized(model: Model, new: list[Any]) -> None:
    """Add labels to a marginalized perceptron.

    The prior of a new label is what a labeler's posterior is mixed with, or that of all others
    where the prior is uniform; coefficients are changed so that the scores of other labels are
    what they were, up to a factor that is the same for all of them.

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
    of_labels = model._fitted_params["label_kernel"]
    if source.source == priors.GIVEN or source.form == "chain" or of_labels is not None:
        raise DataError(
            f"the label {new[0]!r} is new: with a label kernel, a chain prior or priors given as arrays "
            "labels cannot be added; fit again with all labels"
        )
    before, at = len(model.classes_), enlarge_classes(model, new)
    count = len(model.classes_)
    model.prior_source_ = PriorSource(source.source, source.form, model.classes_.tolist())
    model.label_kernel_ = np.eye(count)
    if source.source == priors.UNIFORM and model._fitted_params["mixing"] is None:
        model.mixing_ *= float(np.sqrt(count / before))  # a step of a match then counts as before
    model._support = [_grown_support(support, source.source, at, count) for support in model._support]
    model._memory = [_grown_support(support, source.source, at, count) for support in model._memory]
    pairs = np.zeros((count, count))
    pairs[np.ix_(at, at)] = model._calibration.pairs
    model._calibration = replace(model._calibration, pairs=pairs)
    if model.margins_ is not None:
        margins = np.full((len(model.margins_), count), NEVER)  # nothing is known of new labels
        margins[:, at] = model.margins_
        model.margins_ = margins


def _grown_support(support: Support, source: Any, at: Array, count: int) -> Support:
    """Support with a prior and coefficients for more labels."""
    examples = support.examples
    old = examples.prior.nodes
    if source == priors.UNIFORM:
        prior = uniform_prior(examples.encoded.corpus, count)
    else:
        nodes = np.full((len(old), count), SHARE / count)
        nodes[:, at] = old * (1 - SHARE * (count - len(at)) / count)
        prior = Prior(nodes)
    alpha = np.zeros((len(old), count))
    alpha[:, at] = support.alpha * old / prior.nodes[:, at]
    return Support(replace(examples, prior=prior), alpha)
