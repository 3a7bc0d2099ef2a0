"""Inspection of fitted models: weights by kind, probabilities, and nodes with unseen features."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from fuda.data.window_encoding import WindowEncoder
from fuda.errors import DataError
from fuda.inference import higher_order
from fuda.models.base import Labeler
from fuda.models.explained.named_weights import NamedWeights, feature_names
from fuda.models.semi_crf import SemiCRF


class NamedTable(NamedTuple):
    """Weights (rows, L) of labels or kinds of segments, with the names of the rows."""

    names: list[str]
    weights: np.ndarray


def weighted(model: Labeler) -> list[Any]:
    """Return the names of the columns of weights: kinds of segments of a SemiCRF, else labels.

    Parameters
    ----------
    model : Labeler
        A fitted model.

    Returns
    -------
    list
        The names.
    """
    return model.kinds_ if isinstance(model, SemiCRF) else model.classes_.tolist()


def feature_weights(model: Labeler) -> NamedTable | None:
    """Return the weights of features by label; those of an HMM are log P(feature | label).

    Parameters
    ----------
    model : Labeler
        A fitted model.

    Returns
    -------
    NamedTable or None
        None for a model without weights of features.
    """
    if hasattr(model, "emissions_"):
        return NamedTable(feature_names(model.encoder_), np.concatenate(model.emissions_))
    if isinstance(model, SemiCRF):
        return NamedTable(*model._named_weights())
    if not isinstance(model, NamedWeights) or getattr(model, "kernel_", None) is not None:
        return None
    names, size = feature_names(model.encoder_), len(model.classes_)
    weights = np.ravel(model.weights_)[: len(names) * size]
    return NamedTable(names, weights.reshape(-1, size))


def pair_weights(model: Labeler) -> NamedTable | None:
    """Return the weights of features with label pairs, which a CRF may have.

    Parameters
    ----------
    model : Labeler
        A fitted model.

    Returns
    -------
    NamedTable or None
        Names such as ``[0] w=in after O``; None for a model without such weights.
    """
    if not hasattr(model, "has_pairs_"):
        return None
    encoder: Any = model.encoder_
    features = [encoder.edge_feature_names(k) for k in range(len(encoder.edge_channel_names()))]
    channels = list(encoder.edge_channel_names())
    if model.has_pairs_:
        node_channel = encoder.own_channel()
        features = [*features, encoder.feature_names(node_channel)]
        channels = [*channels, encoder.channel_names()[node_channel]]
    names = [
        f"[{channel}] {feature} after {label}"
        for channel, names_of_channel in zip(channels, features, strict=True)
        for feature in names_of_channel
        for label in model.classes_
    ]
    parts = model._layout.views(model.weights_)[2]
    size = len(model.classes_)
    return NamedTable(names, np.concatenate([part.reshape(-1, size) for part in parts])) if names else None


def transition_weights(model: Labeler) -> NamedTable | None:
    """Return the weights of labels after others; those of an HMM are log-probabilities.

    Parameters
    ----------
    model : Labeler
        A fitted model.

    Returns
    -------
    NamedTable or None
        Rows are the labels above, the nearest last; None for a model without such weights.
    """
    labels = list(map(str, weighted(model)))
    if getattr(model, "order_", 1) > 1:
        order: int = model.order_
        names, tables = [], higher_order.by_context(model._grams, order)
        for length in range(len(tables)):
            start = [] if length == order else ["<start>"]
            names += [" ".join([*start, *above[::-1]]) for above in product(labels, repeat=length)]
        return NamedTable(names, np.concatenate(tables))
    weights = getattr(model, "transitions_", None)
    return None if weights is None else NamedTable(labels, weights)


def probabilities(model: Labeler, X: Any, labels: Sequence[Sequence[Any]]) -> list[list[float]] | None:
    """Return the marginal probabilities of labels.

    Parameters
    ----------
    model : Labeler
        A fitted model.
    X : list of structures
        Structures of its shape.
    labels : list of lists
        A label for each node.

    Returns
    -------
    list of list of float, or None
        None for a model without probabilities; those of perceptrons and SVMs are only preferences.
    """
    estimates = getattr(model, "_estimates_probabilities", True)
    if not hasattr(model, "predict_marginals") or not estimates:
        return None
    try:
        marginals = model.predict_marginals(X)
    except DataError:  # scores were not calibrated, or the order of labels is above 1
        return None
    number = {label: k for k, label in enumerate(model.classes_)}
    return [
        [float(table[t, number[label]]) for t, label in enumerate(labels_of_x)]
        for table, labels_of_x in zip(marginals, labels, strict=True)
    ]


def unseen(model: Labeler, X: Any) -> list[np.ndarray] | None:
    """Return which nodes have features that do not occur in the training data.

    For feature sets that contain the word itself, these are the words that the model has not seen.

    Parameters
    ----------
    model : Labeler
        A fitted model.
    X : list of structures
        Structures of its shape.

    Returns
    -------
    list of (n_nodes,) arrays of bool, or None
        None for a model whose features are templates or dense vectors, where nothing is a word.
    """
    encoded = model._encode(X)
    if encoded is None or not isinstance(model.encoder_, WindowEncoder):
        return None
    node_channel = encoded.channels[model.encoder_.own_channel()]
    table = encoded.tables[node_channel.table]
    if isinstance(table.matrix, np.ndarray):
        return None
    return encoded.corpus.split(table.unknown[node_channel.rows] > 0)
