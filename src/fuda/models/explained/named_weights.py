"""Weights by name: all that are not 0, and the largest for each label."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fuda.checks import is_whole
from fuda.data.template_encoding import TemplateEncoder
from fuda.data.window_encoding import WindowEncoder
from fuda.errors import DataError, short
from fuda.runtime.estimators import check_is_fitted
from fuda.training.crf_loss import Weights

# What determines the names of weights: labels, encoder, whether there are pair features.
NamedBy = tuple[np.ndarray, WindowEncoder | TemplateEncoder, bool]


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
    nonzero = zip(*(indices.tolist() for indices in np.nonzero(weights)), strict=True)
    return {(rows[a], columns[b]): float(weights[a, b]) for a, b in nonzero}


class NamedWeights:
    """Base of models with weights of features and of label pairs."""

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


def named_parts(named_by: NamedBy, vector: np.ndarray) -> dict[tuple[str, str], tuple[list[str], np.ndarray]]:
    """The parts of a weight vector by name, each with the names of its features along axis 0."""
    classes, encoder, pair_features = named_by
    names = [("label", channel) for channel in encoder.channel_names()]
    features = [encoder.feature_names(c) for c in range(len(names))]
    pairs = [("pair", channel) for channel in encoder.edge_channel_names()]
    pair_names = [encoder.edge_feature_names(k) for k in range(len(pairs))]
    if pair_features:
        node_channel = encoder.own_channel()
        pairs.append(("pair", names[node_channel][1]))
        pair_names.append(features[node_channel])
    layout = Weights(list(map(len, features)), list(map(len, pair_names)), len(classes))
    by_channel, transitions, by_edge = layout.views(vector)
    names += [("transitions", ""), *pairs]
    parts = zip([*features, [""], *pair_names], [*by_channel, transitions[None], *by_edge], strict=True)
    return dict(zip(names, parts, strict=True))


def carry_over(last: tuple[NamedBy, np.ndarray], named_by: NamedBy, weights: np.ndarray) -> None:
    """Copy weights of the last fit, `last`, whose feature and labels also exist in this one."""
    before, labels = named_parts(*last), matching(named_by[0], last[0][0])
    for name, (features, part) in named_parts(named_by, weights).items():
        if name in before:
            matches = [matching(features, before[name][0]), *[labels] * (part.ndim - 1)]
            new, old = (np.ix_(*side) for side in zip(*matches, strict=True))
            part[new] = before[name][1][old]


def matching(new: Iterable[Any], old: Iterable[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The indices in `new` and in `old` of the names that are in both."""
    index = {name: i for i, name in enumerate(old)}
    both = [(i, index[name]) for i, name in enumerate(new) if name in index]
    in_new, in_old = np.array(both, dtype=np.int64).reshape(-1, 2).T
    return in_new, in_old
