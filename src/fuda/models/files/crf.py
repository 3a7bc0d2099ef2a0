"""The arrays of a CRF in model files.

An L1 term makes most weights 0: where fewer than half are not, these are stored with
their indices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.checks import check_arrays
from fuda.errors import DataError
from fuda.training.crf_curvature import LARGEST_STORED, STORED

Array = np.ndarray
Model = Any  # a `CRF`, which imports this module
# Files of more weights do not store only those that are not 0.
_MOST_SPARSE = 1 << 28


def arrays_of(model: Model) -> dict[str, Array]:
    """Return the arrays to store."""
    weights, curvature = model.weights_, model._curvature
    used = np.flatnonzero(weights)
    # Without an L1 term `partial_fit` needs the curvature at weights of 0 too.
    sparse = 2 * len(used) < len(weights) <= _MOST_SPARSE
    if not sparse or not (curvature is None or model._fitted_params["l1"]):
        return {"weights": weights} | ({} if curvature is None else {"curvature": curvature})
    arrays = {"used": used, "values": weights[used]}
    return arrays | ({} if curvature is None else {"curvature": curvature[used]})


def restore(model: Model, arrays: dict[str, Array]) -> None:
    """Restore the arrays of a model that has its labels and features."""
    size, values = model._layout.size, "values" if "values" in arrays else "weights"
    count = None if values == "values" else size
    shapes: dict[str, tuple[int | None, ...]] = {name: (count,) for name in arrays if name == "curvature"}
    shapes |= {values: (count,)} | ({"used": (None,)} if count is None else {})
    check_arrays(arrays, shapes, {"used": np.int64, "curvature": STORED})
    curvature = arrays.get("curvature")
    if curvature is not None and not ((curvature >= 0) & (curvature <= LARGEST_STORED)).all():
        raise DataError("its array 'curvature' has values that no data give")
    model.weights_, model._curvature = arrays[values], curvature
    if count is not None:
        return
    used = arrays["used"]
    ascending = (np.diff(used, prepend=-1, append=size) > 0).all()
    if size > _MOST_SPARSE or not ascending or {len(array) for array in arrays.values()} != {len(used)}:
        raise DataError("its weights that are not 0 do not fit its features and labels")
    model.weights_ = _placed(arrays[values], used, size)
    model._curvature = None if curvature is None else _placed(curvature, used, size)


def _placed(values: Array, used: Array, size: int) -> Array:
    """An array that has values at some indices, and 0 at all others."""
    placed = np.zeros(size, dtype=values.dtype)
    placed[used] = values
    return placed
