"""Plots of weights of features and of label pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.errors import DataError, described
from fuda.plots.style import NEGATIVE, POSITIVE, color_bar, heat_map, styled


@styled
def feature_weights(model: Any, label: Any, *, n: int = 20, ax: Any = None) -> Any:
    """Draw the features with the largest absolute weights for a label.

    Parameters
    ----------
    model : CRF, MEMM or HMPerceptron
        A fitted model with `state_features_`.
    label : label
        One of its labels.
    n : int, default=20
        How many features to draw.
    ax : Axes, optional
        Where to draw; default: a new figure, as high as it needs to be.

    Returns
    -------
    Axes
        The plot: weights for the label to the right, against it to the left.

    Examples
    --------
    >>> from fuda import CRF
    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> ax = feature_weights(CRF().fit(X, y), "LOC", n=5)
    >>> len(ax.get_yticklabels())
    5
    """
    weights = _weights_by_name(model, "state_features_")
    if label not in list(model.classes_):
        raise DataError(f"label is {described(label)}; give one of {', '.join(map(str, model.classes_))}")
    weights_of_label = [(feature, weight) for (feature, of), weight in weights.items() if of == label]
    largest = sorted(weights_of_label, key=lambda pair: -abs(pair[1]))[:n]
    names, values = [name for name, _ in largest][::-1], np.array([weight for _, weight in largest])[::-1]
    ax.barh(range(len(names)), values, color=np.where(values > 0, POSITIVE, NEGATIVE), height=0.7)
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.axvline(0, color="#80808080", linewidth=0.8)
    ax.grid(False, axis="y")
    ax.set(xlabel=f"weight for {label}", ylim=(-0.6, len(names) - 0.4))
    return ax


@styled
def transition_weights(model: Any, *, ax: Any = None) -> Any:
    """Draw the weights of label pairs.

    Parameters
    ----------
    model : CRF, MEMM or HMPerceptron
        A fitted model with `transition_features_`.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        The plot: labels of the parent, in sequences the previous node, by rows.

    Examples
    --------
    >>> from fuda import CRF
    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> ax = transition_weights(CRF().fit(X, y))
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['LOC', 'O', 'PER']
    """
    pairs = _weights_by_name(model, "transition_features_")
    labels = list(model.classes_)
    values = np.array([[pairs.get((a, b), 0.0) for b in labels] for a in labels])
    texts = np.array([[f"{value:.1f}" if abs(value) >= 0.05 else "" for value in row] for row in values])
    color_bar(ax, heat_map(ax, values, labels, labels, "PuOr", texts), "weight")
    ax.set(xlabel="label", ylabel="label of the previous node or parent")
    return ax


def _weights_by_name(model: Any, attribute: str) -> dict[Any, float]:
    """The weights of a model by name."""
    if not hasattr(type(model), attribute):
        raise DataError(
            f"a {type(model).__name__} has no weights of features; draw those of a CRF, a MEMM or an "
            "HMPerceptron"
        )
    return getattr(model, attribute)
