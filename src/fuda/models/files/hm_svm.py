"""The state of an `HMSVM` in model files: its support, and the scale of its probabilities.

Version 1 has no scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.checks import check_arrays
from fuda.errors import DataError
from fuda.models.likeliest import LARGEST_SCALE
from fuda.storage import structures as stored_structures

Array = np.ndarray
Model = Any  # an `HMSVM`, which imports this module


def arrays_of(model: Model) -> dict[str, Array]:
    """The arrays to store."""
    return stored_structures.pack(support_structures(model))[1] | {
        "structures": model._structures,
        "owners": model._owners,
        "right": np.concatenate([*model._rights, np.empty(0, dtype=np.int64)]),
        "labelings": np.concatenate([*model._labelings, np.empty(0, dtype=np.int64)]),
        "alpha": model._alpha,
        "square": np.array([model.square_]),
        "scale": np.array([model._scale]),
    }


def texts_of(model: Model) -> list[list[str]]:
    """The texts to store: the observations of the support."""
    return [stored_structures.pack(support_structures(model))[0]]


def support_structures(model: Model) -> list[Any]:
    """The structures with support sequences."""
    return [] if model._support is None else model._support.corpus.structures


def restore(model: Model, arrays: dict[str, Array], texts: list[list[str]]) -> None:
    """Set what was stored; raises DataError where parts do not fit each other."""
    if len(texts) != 1:
        raise DataError("it does not have the observations of its support")
    structures = stored_structures.unpack(texts[0], arrays, model.shape_)
    model._support = model.encoder_.encode(structures) if structures else None
    count = len(structures)
    sizes = np.array([len(s) for s in structures], dtype=np.int64)
    numbers = {"structures": np.iinfo(np.int64).max, "owners": count}
    numbers |= {"right": len(model.classes_), "labelings": len(model.classes_)}
    for name, end in numbers.items():
        array = arrays.get(name, np.empty(0))
        if array.dtype != np.int64 or array.ndim != 1 or ((array < 0) | (array >= end)).any():
            raise DataError(f"its array {name!r} does not fit its labels and structures")
    owners, alpha = arrays["owners"], arrays.get("alpha", np.empty(0))
    arrays = {"scale": np.ones(1)} | arrays
    check_arrays(
        {name: arrays[name] for name in ("alpha", "square", "scale") if name in arrays},
        {"alpha": owners.shape, "square": (1,), "scale": (1,)},
    )
    if not 0 < arrays["scale"][0] <= LARGEST_SCALE:
        raise DataError(f"the scale of its scores is not above 0 and up to {LARGEST_SCALE:g}")
    fits = len(arrays["structures"]) == count and len(arrays["right"]) == sizes.sum()
    if not fits or len(arrays["labelings"]) != sizes[owners].sum():
        raise DataError("its support sequences do not fit its structures")
    model._structures, model._owners, model._alpha = arrays["structures"], owners, alpha
    model._rights = np.split(arrays["right"], np.cumsum(sizes)[:-1]) if count else []
    model._labelings = np.split(arrays["labelings"], np.cumsum(sizes[owners])[:-1]) if len(owners) else []
    model.square_, model._scale = float(arrays["square"][0]), float(arrays["scale"][0])
