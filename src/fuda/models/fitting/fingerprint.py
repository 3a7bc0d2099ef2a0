"""The fingerprint of a fit: a checkpoint is continued only with the same data and parameters."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from fuda.data.encoding import Encoded
from fuda.data.observations import to_stored
from fuda.features.templates import Template
from fuda.runtime.randomness import stored_random

# Parameters that do not change the result of a fit.
_UNRELATED = {"callback", "checkpoint", "cluster", "n_jobs", "verbose"}


def parameters(model: Any, without: frozenset[str] = frozenset()) -> list[Any]:
    """Describe a model or a kernel by its class and parameters, the same in every process.

    Parameters
    ----------
    model : object
        The model or kernel.
    without : frozenset of str
        Parameters to leave out.

    Returns
    -------
    list
        Values for JSON. Functions are told apart by their names only.
    """
    params = model.get_params(deep=False)
    names = sorted(params.keys() - _UNRELATED - without)
    return [type(model).__name__, {name: _described(params[name]) for name in names}]


def _described(value: Any) -> Any:
    """Values for JSON, equal for equal parameters."""
    if isinstance(value, Template):
        return ["template", value.text]
    if hasattr(value, "get_params") and not isinstance(value, type):
        fitted = value._arrays().values() if hasattr(value, "classes_") else []
        return [*parameters(value), *map(digest, fitted)]
    if isinstance(value, np.random.RandomState):
        return digest(stored_random(value))
    if isinstance(value, np.ndarray):
        return digest(value)
    if isinstance(value, list | tuple):
        return [_described(item) for item in value]
    if callable(value):
        return f"{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', '?')}"
    return value.item() if isinstance(value, np.generic) else value


def content(encoded: Encoded) -> list[Any]:
    """Describe an encoded corpus by its observations and a digest of features and structures."""
    corpus = encoded.corpus
    parts: list[np.ndarray | None] = [corpus.offsets, corpus.types, corpus.graph.edges]
    for channel in (*encoded.channels, *encoded.edge_channels):
        parts += [np.array(channel.table), channel.rows, channel.indptr]
    for table in encoded.tables:
        matrix = table.matrix
        parts += [matrix] if isinstance(matrix, np.ndarray) else [matrix.data, matrix.indices, matrix.indptr]
    return [corpus.shape, *map(to_stored, corpus.observations), *map(digest, parts)]


def digest(array: np.ndarray | None) -> str | None:
    """Return a hash of an array."""
    if array is None:
        return None
    plain = np.ascontiguousarray(array)
    return hashlib.sha256(f"{plain.shape}{plain.dtype}".encode() + plain.tobytes()).hexdigest()
