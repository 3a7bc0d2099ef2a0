"""Labels that come after a fit, in `partial_fit`: fitted models with room for them.

Labels are numbered in sorted order, so that new ones change the numbers of others: `at` holds the
new number of each old label. What belongs to a new label is 0, as if it had always been possible
and had never occurred.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fuda.checks import listed
from fuda.data.labels import as_object_array, plain_label
from fuda.errors import DataError, described, short
from fuda.inference.higher_order import no_grams
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
