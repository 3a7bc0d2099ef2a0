"""Weights by name: which features speak most for and against each label."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.checks import is_whole
from fuda.errors import DataError, short


def largest(
    names: list[str], weights: np.ndarray, classes: list[Any], n: int
) -> dict[Any, list[tuple[str, float]]]:
    """For each label the n names of largest weight, by magnitude, as (name, weight); `weights` is (names, L).

    >>> largest(["a", "b"], np.array([[1.0, 0.0], [-2.0, 0.5]]), ["X", "Y"], 2)
    {'X': [('b', -2.0), ('a', 1.0)], 'Y': [('b', 0.5)]}
    """
    if not is_whole(n, 1):
        raise DataError(f"n={short(n)}: ask for at least one feature, a whole number")
    top = {}
    for i, label in enumerate(classes):
        order = np.argsort(-np.abs(weights[:, i]), kind="stable")[:n]
        top[label] = [(names[k], float(weights[k, i])) for k in order if weights[k, i]]
    return top


def feature_names(encoder: Any) -> list[str]:
    """The features of all channels, channel after channel: ``[-1] w=in`` is one of the previous node."""
    return [
        f"[{channel}] {feature}"
        for c, channel in enumerate(encoder.channel_names())
        for feature in encoder.feature_names(c)
    ]
