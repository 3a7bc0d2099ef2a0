"""A fitted `CRF` of the labels, features and weights of another program's model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fuda.errors import DataError, ModelFileError, short
from fuda.files import read_bytes
from fuda.models.crf import CRF
from fuda.storage.models import build

_MOST_WEIGHTS = 1 << 28  # two gigabytes; a small file may name many labels and many features


def read_model(path: str | Path) -> bytes:
    """Return the content of a model file, unzipped; ModelFileError if it cannot be read."""
    try:
        return read_bytes(path)
    except DataError as error:
        raise ModelFileError(str(error)) from None


def check_names(names: list[str], what: str) -> list[str]:
    """Return names; ModelFileError where one is empty or given twice."""
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            raise ModelFileError(f"the {what} {short(name)} is {'given twice' if name else 'empty'}")
        seen.add(name)
    return names


def check_size(labels: int, features: int, pair_features: int = 1) -> None:
    """Raise ModelFileError if a model would have more weights than there is room for."""
    if not labels:
        raise ModelFileError("it has no labels")
    count = labels * features + labels * labels * pair_features
    if count > _MOST_WEIGHTS:
        raise ModelFileError(f"it has room for {count:,} weights, more than {_MOST_WEIGHTS:,}")


def finite(weights: np.ndarray) -> np.ndarray:
    """Return weights; ModelFileError where one is not a finite number."""
    if not np.isfinite(weights).all():
        raise ModelFileError("one of its weights is not a finite number")
    return weights


def make_crf(
    path: str | Path, labels: list[str], vocabularies: list[list[str]], weights: np.ndarray, template: Any = None
) -> CRF:
    """Make a fitted CRF on sequences.

    Parameters
    ----------
    path : str or Path
        The file, for messages.
    labels : list of str
        The labels, in the order that weights have.
    vocabularies : list of list of str
        The features, of each line of the template if there is one.
    weights : ndarray
        The weights: of features, of label pairs, of features with label pairs.
    template : dict, optional
        A template, as model files have it, and the number of columns that it reads, "columns". By
        default observations are collections of feature names.

    Returns
    -------
    CRF
        The model.
    """
    parameters: dict[str, Any] = {"window": 0}
    observations: dict[str, Any] = {"kind": "features", "size": 0}
    if template is not None:
        columns = template.pop("columns")
        observations = {"kind": "columns", "size": columns} if columns > 1 else {"kind": "text", "size": 0}
        parameters |= {"features": template}
    meta = {
        "class": "CRF",
        "class_version": 1,
        "parameters": parameters,
        "labels": labels,
        "shape": "sequence",
        "observations": observations,
    }
    model: CRF = build(path, meta, vocabularies, {"weights": weights})
    return model
