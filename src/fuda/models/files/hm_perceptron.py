"""The state of an HM-perceptron in model files: weights or coefficients, and its support."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.checks import split_prefix
from fuda.errors import DataError
from fuda.models.teaching import perceptron as taught_perceptron
from fuda.storage import structures as stored_structures
from fuda.training.perceptron import State
from fuda.training.perceptron_epochs import unpack_mistakes
from fuda.training.voted_perceptron import pack_corrections, unpack_corrections

Array = np.ndarray


def texts_of(model: Any) -> list[list[str]]:
    """The observations of the structures that predictions need."""
    support = model._support
    return [] if support is None else [stored_structures.pack(support.corpus.structures)[0]]


def arrays_of(model: Any) -> dict[str, Array]:
    """The arrays of a fitted model."""
    arrays = model._state.arrays() | {"mistakes": np.array(model.mistakes_, dtype=np.int64).reshape(-1, 2)}
    if model._support is not None:
        packed = stored_structures.pack(model._support.corpus.structures)[1]
        arrays |= {f"support_{name}": array for name, array in packed.items()}
    if model._curvature is not None:
        arrays |= model._curvature.arrays()
    if model._voted:
        arrays |= {f"change_{name}": array for name, array in pack_corrections(model._changes).items()}
    return arrays


def restore(model: Any, arrays: dict[str, Array], texts: list[list[str]]) -> None:
    """Restore what was learned; raise DataError if it does not fit the parameters and labels."""
    support, arrays = split_prefix(arrays, "support_")
    changes, arrays = split_prefix(arrays, "change_")
    structures = stored_structures.unpack(texts[0], support, model.shape_) if texts else []
    model._support = model.encoder_.encode(structures) if structures else None
    model.mistakes_ = unpack_mistakes(arrays.pop("mistakes", None))
    model._curvature = taught_perceptron.restored(model, arrays)
    sizes = list(map(len, structures))
    nodes = sum(sizes) if model.kernel_ is not None else sum(model._feature_counts())
    model._state = State.of(arrays, nodes, model.order_, len(model.classes_))
    if (model.update == "arow") != (len(model._state.variances) > 0):
        raise DataError("its array 'variances' is missing, or is not needed")
    model._changes = []
    if model._voted:
        last = int(model._state.steps[0])
        model._changes = unpack_corrections(changes, sizes, len(model.classes_), last)
