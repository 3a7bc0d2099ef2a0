"""Weights by name: the features of largest absolute weight for each label."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

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
