"""Labels that are added to a fitted model by `partial_fit`: its arrays are enlarged for them.

Labels are numbered in sorted order, so that new labels change the numbers of others: `positions`
has the new number of each old label. Array entries of a new label are 0, as if the label had
always been possible and had never occurred.
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
    """Return the labels, including those of the parameter `classes`, that a model does not have.

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
    announced = [] if classes is None else listed(classes)
    if announced is None:
        raise DataError(f"classes={short(classes)}: give a list of labels")
    all_labels = {plain_label(label) for label in announced} | set(labels)
    new = all_labels - {None} - set(model.classes_)
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
    """Add labels to an HM-perceptron; the caller has to prepare its predictions afterwards.

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
    positions = enlarge_classes(model, new)
    model._state = _grown_state(model._state, model.order_, positions, len(model.classes_))
    numbers = positions.astype(np.int32)
    model._changes = [
        change._replace(target=numbers[change.target], predicted=numbers[change.predicted])
        for change in model._changes
    ]
    return positions


def _grown_state(state: State, order: int, positions: Array, count: int) -> State:
    """The state of a perceptron, enlarged for more labels."""
    rows, shapes = len(state.nodes), no_grams(order, count)

    def grow_nodes(old: Array, fill: float = 0.0) -> Array:
        grown = np.full((rows, count), fill)
        grown[:, positions] = old
        return grown

    def grow_short(old: Array, fill: float = 0.0) -> Array:
        grown, a, b = np.full(shapes.short.shape, fill), 0, 0
        for j in range(order):  # contexts of j labels
            sizes = len(positions) ** j, count**j
            part = np.full([count] * (j + 1), fill)
            old_shape = [len(positions)] * (j + 1)
            part[np.ix_(*[positions] * (j + 1))] = old[a : a + sizes[0]].reshape(old_shape)
            grown[b : b + sizes[1]] = part.reshape(sizes[1], count)
            a, b = a + sizes[0], b + sizes[1]
        return grown

    def grow_full(old: Array, fill: float = 0.0) -> Array:
        axes = max(order + 1, 1)
        part = np.full([count] * axes, fill)
        part[np.ix_(*[positions] * axes)] = old.reshape([len(positions)] * axes)
        return part.reshape(shapes.full.shape)

    variances = state.variances
    if len(variances):
        cuts = np.cumsum([state.nodes.size, state.short.size])
        parts = zip((grow_nodes, grow_short, grow_full), np.split(variances, cuts), state[:6:2], strict=True)
        grown_parts = [grow(part.reshape(sums.shape), 1.0).ravel() for grow, part, sums in parts]
        variances = np.concatenate(grown_parts)
    functions = (grow_nodes, grow_nodes, grow_short, grow_short, grow_full, grow_full)
    grown = [grow(part) for grow, part in zip(functions, state[:6], strict=True)]
    return State._make([*grown, state.steps.copy(), variances])
