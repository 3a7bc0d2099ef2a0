"""Labels that come after a fit, in `partial_fit`: fitted models with room for them.

Labels are numbered in sorted order, so that new ones change the numbers of others: `at` holds the
new number of each old label. What belongs to a new label is 0, as if it had always been possible
and had never occurred.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from fuda.checks import listed
from fuda.data.labels import as_object_array, plain_label
from fuda.errors import DataError, described, short
from fuda.inference.higher_order import no_grams
from fuda.marginalized.priors import Prior, uniform_prior
from fuda.marginalized.support import Support
from fuda.models import priors
from fuda.models.priors import SHARE, PriorSource
from fuda.training.perceptron import State

Array = np.ndarray
Model = Any  # a `CRF` or a perceptron, which import this module


def added_labels(model: Model, labels: Iterable[Any], classes: Any) -> list[Any]:
    """Return those of the labels, and of the parameter `classes`, that a model does not know yet.

    Parameters
    ----------
    model : HMPerceptron or MarginalizedPerceptron
        A fitted model.
    labels : iterable
        Labels of nodes, None where not known.
    classes : iterable or None
        Labels that may come later.

    Returns
    -------
    list
        In sorted order.
    """
    given = [] if classes is None else listed(classes)
    if given is None:
        raise DataError(f"classes={short(classes)}: give a list of labels")
    found = {plain_label(label) for label in given} | set(labels)
    new = found - {None} - set(model.classes_)
    kind = type(model.classes_[0])
    for label in new:
        if type(label) is not kind:
            raise DataError(
                f"the label {described(label)} is new, where others are like {described(model.classes_[0])}; "
                "labels are all strings or all integers"
            )
    return sorted(new)


def enlarge_classes(model: Model, new: list[Any]) -> Array:
    """Add labels to `classes_`; return the new numbers of the old ones."""
    before = model.classes_.tolist()
    classes = sorted([*before, *new])
    model.classes_ = as_object_array(classes)
    return np.array([classes.index(label) for label in before], dtype=np.int64)


def grow_perceptron(model: Model, new: list[Any]) -> Array:
    """Add labels to an HM-perceptron whose predictions are prepared afterwards.

    Parameters
    ----------
    model : HMPerceptron
        A fitted model, whose arrays are replaced and not changed.
    new : list
        The labels.

    Returns
    -------
    array
        The new numbers of the old labels.
    """
    if not new:
        return np.arange(len(model.classes_))
    at = enlarge_classes(model, new)
    model._state = _grown_state(model._state, model.order_, at, len(model.classes_))
    numbers = at.astype(np.int32)
    model._changes = [
        change._replace(target=numbers[change.target], predicted=numbers[change.predicted])
        for change in model._changes
    ]
    return at


def _grown_state(state: State, order: int, at: Array, count: int) -> State:
    """The state of a perceptron with room for more labels."""
    rows, shapes = len(state.nodes), no_grams(order, count)

    def of_nodes(old: Array, fill: float = 0.0) -> Array:
        grown = np.full((rows, count), fill)
        grown[:, at] = old
        return grown

    def of_short(old: Array, fill: float = 0.0) -> Array:
        grown, a, b = np.full(shapes.short.shape, fill), 0, 0
        for j in range(order):  # contexts of j labels
            sizes = len(at) ** j, count**j
            part = np.full([count] * (j + 1), fill)
            part[np.ix_(*[at] * (j + 1))] = old[a : a + sizes[0]].reshape([len(at)] * (j + 1))
            grown[b : b + sizes[1]] = part.reshape(sizes[1], count)
            a, b = a + sizes[0], b + sizes[1]
        return grown

    def of_full(old: Array, fill: float = 0.0) -> Array:
        axes = max(order + 1, 1)
        part = np.full([count] * axes, fill)
        part[np.ix_(*[at] * axes)] = old.reshape([len(at)] * axes)
        return part.reshape(shapes.full.shape)

    variances = state.variances
    if len(variances):
        cuts = np.cumsum([state.nodes.size, state.short.size])
        parts = zip((of_nodes, of_short, of_full), np.split(variances, cuts), state[:6:2], strict=True)
        variances = np.concatenate([of(part.reshape(own.shape), 1.0).ravel() for of, part, own in parts])
    makers = (of_nodes, of_nodes, of_short, of_short, of_full, of_full)
    grown = [of(part) for of, part in zip(makers, state[:6], strict=True)]
    return State._make([*grown, state.steps.copy(), variances])


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
        model.mixing_ *= float(np.sqrt(count / before))  # a step of a match then counts what it did
    model._support = [_grown_support(support, source.source, at, count) for support in model._support]
    model._memory = [_grown_support(support, source.source, at, count) for support in model._memory]
    pairs = np.zeros((count, count))
    pairs[np.ix_(at, at)] = model._calibration.pairs
    model._calibration = replace(model._calibration, pairs=pairs)


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
