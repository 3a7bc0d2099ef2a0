"""Model files: sealed files (see `fuda.storage.container`) of a labeler and of those that it holds.

=================  ==========================================================================
meta.json          class and its version, parameters, labels, shape and kind of the structures
vocabularies.json  the feature names
arrays/NAME.npy    the fitted arrays
=================  ==========================================================================

Classes come from a closed registry.
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
from fuda.storage.container import Damaged, check_kinds

FORMAT_VERSION = 1

_VOCABULARIES = "vocabularies.json"
_MODEL = container.Format(
    "fuda-model", FORMAT_VERSION, (_VOCABULARIES,), "model", "save the model again, or fetch the file again"
)


def save(
    path: str | Path, meta: dict[str, Any], vocabularies: list[list[str]], arrays: dict[str, np.ndarray]
) -> None:
    """Write a model: `meta` with class, class_version, parameters, labels, shape and so on, and
    what was fitted."""
    container.write(path, _MODEL, meta, {_VOCABULARIES: vocabularies}, arrays)


def read_meta(path: str | Path) -> dict[str, Any]:
    """The checked metadata of a model file; nothing else is read."""
    with container.opened(path, _MODEL) as file:
        _check_meta(file.meta)
        return file.meta


def read(path: str | Path) -> tuple[dict[str, Any], list[list[str]], dict[str, np.ndarray]]:
    """Metadata, vocabularies and arrays of a model file, all checked."""
    with container.opened(path, _MODEL) as file:
        _check_meta(file.meta)
        file.check_seal()
        vocabularies = file.json(_VOCABULARIES)
        arrays = file.arrays()
        if not isinstance(vocabularies, list) or not all(map(_distinct_strings, vocabularies)):
            raise Damaged("its vocabularies are not lists of distinct names")
        return file.meta, vocabularies, arrays


def stored_class(name: Any, version: int = 1) -> Any:
    """The registered class of that name, if this version of its state is understood."""
    if not isinstance(name, str) or name not in MODELS:
        raise ModelFileError(
            f"holds a {short(name)}, which is not a model of fuda {__version__} ({', '.join(MODELS)}): "
            "install a newer fuda, or save the model again"
        )
    if not 1 <= version <= MODELS[name].version:
        raise ModelFileError(
            f"holds version {version} of {name}; fuda {__version__} reads up to {MODELS[name].version}: "
            "install a newer fuda"
        )
    return model_class(name)


def _check_meta(meta: dict[str, Any]) -> None:
    """What the metadata of every model has, each of its kind."""
    check_kinds(_kinds(meta) | {"reading": isinstance(meta.get("reading"), dict)})


def check_part(meta: dict[str, Any], name: str) -> None:
    """What the metadata of a model within a model has."""
    wrong = [key for key, well in _kinds(meta).items() if not well]
    if wrong:
        raise DataError(f"in its part {short(name)}, {wrong[0]!r} is missing or not of its kind")


def _kinds(meta: dict[str, Any]) -> dict[str, bool]:
    """Whether what every stored labeler has is there and of its kind."""
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
    """Distinct labels, all strings that are not empty or all integers."""
    if not isinstance(labels, list) or not labels:
        return False
    kind = type(labels[0])
    of_kind = kind in (str, int) and all(type(label) is kind for label in labels) and "" not in labels
    return of_kind and len(set(labels)) == len(labels)


def _distinct_strings(names: Any) -> bool:
    return (
        isinstance(names, list) and all(isinstance(n, str) for n in names) and len(set(names)) == len(names)
    )
