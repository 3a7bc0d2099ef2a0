"""Weights by name: those that are not 0, and the largest for each label."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fuda.checks import is_whole
from fuda.errors import DataError, short


def largest(
    names: list[str], weights: np.ndarray, classes: Iterable[Any], n: int
) -> dict[Any, list[tuple[str, float]]]:
    """Find the names of largest absolute weight for each label.

    Parameters
    ----------
    names : list of str
        Names of the rows.
    weights : ndarray of shape (n_names, n_labels)
        Weights by name and label.
    classes : sequence
        The labels.
    n : int
        How many names to list per label.

    Returns
    -------
    dict
        For each label the n names of largest absolute weight, as pairs (name, weight).

    Examples
    --------
    >>> largest(["a", "b"], np.array([[1.0, 0.0], [-2.0, 0.5]]), ["X", "Y"], 2)
    {'X': [('b', -2.0), ('a', 1.0)], 'Y': [('b', 0.5)]}
    """
    if not is_whole(n, 1):
        raise DataError(f"n={short(n)}: give a whole number of at least 1")
    top = {}
    for i, label in enumerate(classes):
        order = np.argsort(-np.abs(weights[:, i]), kind="stable")[:n]
        top[label] = [(names[k], float(weights[k, i])) for k in order if weights[k, i]]
    return top


def feature_names(encoder: Any) -> list[str]:
    """The features channel by channel: ``[-1] w=in`` is a feature of the previous node."""
    return [
        f"[{channel}] {feature}"
        for c, channel in enumerate(encoder.channel_names())
        for feature in encoder.feature_names(c)
    ]


def named(weights: np.ndarray, rows: list[Any], columns: list[Any]) -> dict[tuple[Any, Any], float]:
    """Name the weights that are not 0.

    Parameters
    ----------
    weights : ndarray of shape (n_rows, n_columns)
        The weights.
    rows, columns : lists
        The names of rows and columns.

    Returns
    -------
    dict
        From pairs (row, column) to weights.

    Examples
    --------
    >>> named(np.array([[1.0, 0.0], [-2.0, 0.5]]), ["a", "b"], ["X", "Y"])
    {('a', 'X'): 1.0, ('b', 'X'): -2.0, ('b', 'Y'): 0.5}
    """
    found = zip(*(at.tolist() for at in np.nonzero(weights)), strict=True)
    return {(rows[a], columns[b]): float(weights[a, b]) for a, b in found}


class NamedWeights:
    """What models with weights of features and of label pairs share."""

    classes_: np.ndarray
    encoder_: Any

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """The weights that are not 0 by (feature, label); names are those of `top_features`."""
        check_is_fitted(self, "classes_")
        labels, names = self.classes_.tolist(), feature_names(self.encoder_)
        weights = np.ravel(self.weights_)[: len(names) * len(labels)]  # type: ignore[attr-defined]
        return named(weights.reshape(-1, len(labels)), names, labels)

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """The weights of label pairs that are not 0 by (label of the parent, label)."""
        check_is_fitted(self, "classes_")
        labels = self.classes_.tolist()
        return named(self.transitions_, labels, labels)  # type: ignore[attr-defined]
