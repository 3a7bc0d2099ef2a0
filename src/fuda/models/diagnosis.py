"""How probable the labels are that a model predicts, and which nodes are new to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuda.data.window_encoding import WindowEncoder
from fuda.errors import DataError
from fuda.models.base import Labeler


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
        None for a model without probabilities.
    """
    if not hasattr(model, "predict_marginals"):
        return None
    try:
        marginals = model.predict_marginals(X)
    except DataError:  # of scores that were not calibrated, or of long stretches of labels
        return None
    number = {label: k for k, label in enumerate(model.classes_)}
    return [
        [float(table[t, number[label]]) for t, label in enumerate(own)]
        for table, own in zip(marginals, labels, strict=True)
    ]


def unseen(model: Labeler, X: Any) -> list[np.ndarray] | None:
    """Return which nodes have features that the training data did not have.

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
    own = encoded.channels[model.encoder_.own_channel()]
    table = encoded.tables[own.table]
    if isinstance(table.matrix, np.ndarray):
        return None
    return encoded.corpus.split(table.unknown[own.rows] > 0)
