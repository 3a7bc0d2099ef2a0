"""Model files: sealed files (see `fuda.storage.container`) of a model and of the models within it.

=================  ==========================================================================
meta.json          class and its version, parameters, labels, shape and kind of the structures
vocabularies.json  the feature names
arrays/NAME.npy    the fitted arrays
=================  ==========================================================================

Only the classes of `fuda.registry` can be loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fuda import __version__
from fuda.checks import is_count
from fuda.errors import DataError, ModelFileError, short
from fuda.registry import MODELS, model_class
from fuda.storage import container
from fuda.storage.container import Damaged, check_entries

FORMAT_VERSION = 1

_VOCABULARIES = "vocabularies.json"
_MODEL = container.Format(
    "fuda-model",
    FORMAT_VERSION,
    (_VOCABULARIES,),
    "model",
    "save the model again, or fetch the file again (fuda.compat.load reads CRFsuite, CRF++ and Wapiti)",
)


def save(
    path: str | Path, meta: dict[str, Any], vocabularies: list[list[str]], arrays: dict[str, np.ndarray]
) -> None:
    """Write a model.

    Parameters
    ----------
    path : str or Path
        The file to write.
    meta : dict
        The class, its version, parameters, labels, shape and kind of observations, for JSON.
    vocabularies : list of list of str
        The feature names.
    arrays : dict of ndarray
        The fitted arrays.
    """
    container.write(path, _MODEL, meta, {_VOCABULARIES: vocabularies}, arrays)


def read_meta(path: str | Path) -> dict[str, Any]:
    """Read and check the metadata of a model file, and nothing else.

    Parameters
    ----------
    path : str or Path
        The model file.

    Returns
    -------
    dict
        The content of meta.json.
    """
    with container.opened(path, _MODEL) as file:
        _check_meta(file.meta)
        try:
            for name, part in parts_of(file.meta).items():
                check_part(part, name)
        except DataError as error:
            raise Damaged(str(error)) from None
        return file.meta


def read(path: str | Path) -> tuple[dict[str, Any], list[list[str]], dict[str, np.ndarray]]:
    """Read and check a model file.

    Parameters
    ----------
    path : str or Path
        The model file.

    Returns
    -------
    meta : dict
        The content of meta.json.
    vocabularies : list of list of str
        The feature names.
    arrays : dict of ndarray
        The fitted arrays.
    """
    with container.opened(path, _MODEL) as file:
        _check_meta(file.meta)
        file.check_seal()
        vocabularies = file.json(_VOCABULARIES)
        arrays = file.arrays()
        if not isinstance(vocabularies, list) or not all(map(_distinct_strings, vocabularies)):
            raise Damaged("its vocabularies are not lists of distinct names")
        return file.meta, vocabularies, arrays


def stored_class(name: Any, version: int = 1) -> Any:
    """The registered class of that name, if this version of its state is supported."""
    if not isinstance(name, str) or name not in MODELS:
        raise ModelFileError(
            f"contains a {short(name)}, which is not a model of fuda {__version__} ({', '.join(MODELS)}): "
            "install a newer fuda, or save the model again"
        )
    if not 1 <= version <= MODELS[name].version:
        raise ModelFileError(
            f"contains version {version} of {name}; fuda {__version__} reads up to {MODELS[name].version}: "
            "install a newer fuda"
        )
    return model_class(name)


def _check_meta(meta: dict[str, Any]) -> None:
    """Check the entries of the metadata of a model file."""
    check_entries(_entries(meta) | {"reading": isinstance(meta.get("reading"), dict)})


def parts_of(meta: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of the models within a model."""
    parts = meta.get("parts", {})
    if not isinstance(parts, dict) or not all(isinstance(part, dict) for part in parts.values()):
        raise DataError("its parts are not described")
    return parts


def check_part(meta: dict[str, Any], name: str) -> None:
    """Check the entries of the metadata of a model within a model."""
    for key, valid in _entries(meta).items():
        if not valid:
            raise DataError(f"in its part {short(name)}, {key!r} is missing or has the wrong type")


def _entries(meta: dict[str, Any]) -> dict[str, bool]:
    """Whether each entry that all models have is present and has the right type."""
    observations = meta.get("observations")
    return {
        "class": isinstance(meta.get("class"), str),
        "class_version": is_count(meta.get("class_version")),
        "parameters": isinstance(meta.get("parameters"), dict),
        "labels": _are_labels(meta.get("labels")),
        "shape": meta.get("shape") in ("sequence", "tree", "dag"),
        "observations": isinstance(observations, dict) and is_count(observations.get("size")),
    }


def _are_labels(labels: Any) -> bool:
    """Whether a value is a list of distinct labels, all non-empty strings or all integers."""
    if not isinstance(labels, list) or {type(label) for label in labels} not in ({str}, {int}):
        return False
    return "" not in labels and len(set(labels)) == len(labels)


def _distinct_strings(names: Any) -> bool:
    """Whether a value is a list of distinct strings."""
    strings = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return strings and len(set(names)) == len(names)
