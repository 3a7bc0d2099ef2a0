"""Saving and loading models: the content of a model file, and how a model is restored from it.

A model is stored as its parameters, its labels, the vocabularies of its encoder, and what its
methods return: arrays by name (`_arrays`), lists of distinct texts (`_texts`), and the fitted
models within it (`_parts`), each stored in the same way. Parameters may be kernels, templates, and
unfitted models.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from fuda.checks import is_count
from fuda.data.encoders import make_encoder
from fuda.data.labels import as_object_array
from fuda.data.observations import Kind
from fuda.errors import DataError, ModelFileError, short
from fuda.features.templates import Template
from fuda.features.votes import text_and_votes
from fuda.kernels import Kernel, as_kernel, from_json
from fuda.registry import MODELS
from fuda.storage import model_file
from fuda.storage.tables import extract_tables, insert_tables
from fuda.vectors import Vectors


class Storable(Protocol):
    """The attributes and methods of a model that can be saved and loaded."""

    _shapes: ClassVar[tuple[str, ...]]
    _live_params: ClassVar[tuple[str, ...]]
    features: Any
    window: int | None
    classes_: Any
    shape_: str
    encoder_: Any
    reading_: dict[str, Any]
    _learned_names: frozenset[str]
    _defaults: ClassVar[dict[str, Any]]
    _defaulted: list[str]

    @classmethod
    def _get_param_names(cls) -> list[str]: ...
    def set_params(self, **params: Any) -> Any: ...
    def _remember_params(self) -> None: ...
    def _params_to_save(self) -> dict[str, Any]: ...
    def _check_parameters(self) -> None: ...
    def _arrays(self) -> dict[str, np.ndarray]: ...
    def _texts(self) -> list[list[str]]: ...
    def _parts(self) -> Any: ...
    def _restore(self, arrays: Any, texts: Any, parts: Any) -> None: ...


_MAX_DEPTH = 4  # models within models are not nested deeper
_NOT_STORED = ("callback", "checkpoint", "cluster")  # they belong to a fit, not to its result
# Stored where they are not None, so that other files are as they were.
_NEWER = ("class_weight", "parts")
# Feature functions of the package, which need not be passed to `load`.
_FUNCTIONS = {f"{function.__module__}.{function.__qualname__}": function for function in (text_and_votes,)}
_LARGEST = 1e100  # no trained array comes near it; sums and products of such numbers are finite


def save(model: Storable, path: str | Path) -> None:
    """Write a fitted model to a file that `load` reads.

    Parameters
    ----------
    model : Storable
        A fitted model of fuda.
    path : str or Path
        The file to write.
    """
    meta, vocabularies, arrays = _serialize(model)
    try:
        _check_numbers(arrays)
    except DataError as error:
        raise DataError(f"{path}: cannot be written: {error}; scale the features, and fit again") from None
    model_file.save(path, meta | {"reading": model.reading_}, vocabularies, arrays)


def load(path: str | Path, features: Any = None) -> Any:
    """Load a model that was written by its ``save`` method.

    Parameters
    ----------
    path : str or Path
        The model file.
    features : callable, optional
        The feature function with which the model was fitted. A file contains only the name of such
        a function, so it must be passed again; `fuda.features.text_and_votes` need not be.

    Returns
    -------
    Labeler
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file cannot be read, is damaged, or was written by a newer version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import fuda
    >>> model = fuda.CRF().fit([["Ana", "lives", "in", "Lima"]], [["PER", "O", "O", "LOC"]])
    >>> with TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/names.fuda")
    ...     same = fuda.load(f"{folder}/names.fuda")
    >>> same.predict([["Ana", "is", "in", "Lima"]])[0]
    ['PER', 'O', 'O', 'LOC']
    """
    meta, vocabularies, arrays = model_file.read(path)
    if features is not None and not (callable(features) and _names_function(meta)):
        raise DataError(
            f"features={short(features)}: give the function that the model in {path} was fitted with, or "
            "leave features out where it was fitted with none; its features are "
            f"{short(meta['parameters'].get('features'))}"
        )
    model = build(path, meta, vocabularies, arrays, features)
    model.reading_ = meta["reading"]
    return model


def build(
    path: str | Path,
    meta: dict[str, Any],
    vocabularies: list[list[str]],
    arrays: dict[str, np.ndarray],
    features: Any = None,
) -> Any:
    """Make a fitted model of the content of a file, of fuda's or of another program's.

    Parameters
    ----------
    path : str or Path
        The file, for messages.
    meta : dict
        The class, its parameters, labels, shape and kind of observations, as in meta.json.
    vocabularies : list of list of str
        The feature names.
    arrays : dict of ndarray
        The fitted arrays.
    features : callable, optional
        The feature function with which the model was fitted.

    Returns
    -------
    Labeler
        The fitted model.

    Raises
    ------
    ModelFileError
        If the content does not make a model.
    """
    try:
        _check_numbers(arrays)
        return _deserialize(meta, vocabularies, arrays, features, _MAX_DEPTH)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except DataError as error:
        raise ModelFileError(f"{path}: not a usable model file: {error}; save the model again") from None
    except MemoryError:
        raise ModelFileError(f"{path}: not enough memory to load it; use a larger machine") from None
    except Exception as error:  # a foreign file may cause any error
        why = f"{type(error).__name__}: {short(str(error))}"
        raise ModelFileError(f"{path}: not a usable model file ({why}); save the model again") from error


def check_resumed(model: Storable, path: str | Path) -> None:
    """Check a model whose fit went on from a checkpoint, as if it were read from a file.

    Numbers that no training reaches may come of a checkpoint that was tampered with.

    Parameters
    ----------
    model : Storable
        The fitted model.
    path : str or Path
        The checkpoint, for messages.

    Raises
    ------
    ModelFileError
        If no file may have such a model.
    """
    with np.errstate(all="ignore"):
        try:
            meta, vocabularies, arrays = _serialize(model)
        except DataError:  # it cannot be saved, as with a user's kernel function
            meta, vocabularies, arrays = {}, [], model._arrays()
        try:
            _check_numbers(arrays)
            if meta and not _names_function(meta):
                _deserialize(meta, vocabularies, arrays, None, _MAX_DEPTH)
        except DataError as error:
            problem = f"not a usable checkpoint file: of the model that it leads to, {error}"
            raise ModelFileError(f"{path}: {problem}; delete it or pass another path") from None


def _names_function(meta: dict[str, Any]) -> bool:
    """Whether a model, or one within it, was fitted with a feature function."""
    pending = [meta["parameters"], meta.get("parts")]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            stored = part.get("features")
            if isinstance(stored, dict) and "function" in stored:
                return True
            pending += part.values()
    return False


def _serialize(model: Storable) -> tuple[dict[str, Any], list[list[str]], dict[str, np.ndarray]]:
    """Metadata, vocabularies and arrays of a model and of the models within it."""
    if type(model).__name__ not in MODELS:
        problem = f"{type(model).__name__} is not a model of fuda, so a file of it could not be loaded"
        raise DataError(f"{problem}; pickle it instead")
    vocabularies, texts = model.encoder_.vocabularies(), model._texts()
    arrays, tables = dict(model._arrays()), list[list[str]]()
    meta: dict[str, Any] = {
        "class": type(model).__name__,
        "class_version": MODELS[type(model).__name__].version,
        "parameters": extract_tables(_parameters(model._params_to_save()), arrays, tables),
        "labels": model.classes_.tolist(),
        "shape": model.shape_,
        "observations": {"kind": model.encoder_.observations.name, "size": model.encoder_.observations.size},
    }
    if model.encoder_.vector_lengths:
        meta["observations"]["vectors"] = dict(model.encoder_.vector_lengths)
    if model.encoder_.made_lengths:
        meta["made_vectors"] = dict(model.encoder_.made_lengths)
    set_since = {name for name in model._live_params if getattr(model, name, None) is not None}
    stored = [name for name in model._defaulted if name in meta["parameters"]]
    if defaults := [name for name in stored if name not in set_since]:
        meta["defaults"] = defaults
    if texts:
        meta["texts"] = len(texts)
        vocabularies = [*vocabularies, *texts]
    if tables:
        meta["table_texts"] = len(tables)
        vocabularies = [*vocabularies, *tables]
    parts = {}
    for name, part in model._parts().items():
        parts[name], part_vocabularies, part_arrays = _serialize(part)
        parts[name]["vocabularies"] = len(part_vocabularies)
        vocabularies = [*vocabularies, *part_vocabularies]
        arrays |= {f"{name}__{key}": array for key, array in part_arrays.items()}
    return meta | ({"parts": parts} if parts else {}), vocabularies, arrays


def _deserialize(
    meta: dict[str, Any],
    vocabularies: list[list[str]],
    arrays: dict[str, np.ndarray],
    features: Any,
    depth: int,
) -> Storable:
    """The fitted model of a file; `depth` limits models within models."""
    if not depth:
        raise DataError(f"it contains models within models, more than {_MAX_DEPTH} deep")
    arrays = dict(arrays)
    model_file.stored_class(meta["class"], meta["class_version"])
    parts = {}
    # The vocabularies of the last part come last.
    for name, part in reversed(model_file.parts_of(meta).items()):
        count: Any = part.get("vocabularies")
        if not is_count(count) or count > len(vocabularies):
            raise DataError(f"its part {short(name)} has no valid number of vocabularies")
        model_file.check_part(part, name)
        prefix = f"{name}__"
        part_arrays = {
            key.removeprefix(prefix): arrays.pop(key) for key in list(arrays) if key.startswith(prefix)
        }
        cut = len(vocabularies) - count
        parts[name] = _deserialize(part, vocabularies[cut:], part_arrays, features, depth - 1)
        vocabularies = vocabularies[:cut]
    vocabularies, tables = _cut(vocabularies, meta.get("table_texts", 0))
    model = _unfitted(meta["class"], insert_tables(meta["parameters"], arrays, tables), features)
    # Stored with the value that None stood for.
    for name in {"features", "decode"} & set(model._defaults):
        without = ... if name == "decode" or meta["observations"].get("kind") == "features" else None
        # Auto has no use for one.
        if meta["parameters"].get(name, without) is None and meta["class"] != "Auto":
            raise DataError(f"its parameters have {name}=None, which is not a value")
    model._remember_params()
    model.classes_, model.shape_, model.reading_ = as_object_array(meta["labels"]), meta["shape"], {}
    if model.shape_ not in model._shapes:
        raise DataError(f"{type(model).__name__} does not label {model.shape_}s")
    observations = Kind(meta["observations"].get("kind"), meta["observations"]["size"])
    if not observations.is_valid:
        raise DataError(f"its observations are of an unknown kind, {short(tuple(observations))}")
    vocabularies, texts = _cut(vocabularies, meta.get("texts", 0))
    model.encoder_ = make_encoder(model.features, model.window)
    model.encoder_.restore(vocabularies, observations)
    model.encoder_.vector_lengths = _vector_lengths(meta["observations"].get("vectors", {}))
    if model.encoder_.vector_lengths and observations.name != "features":
        raise DataError(f"its observations are of the kind {short(observations.name)} and have no vectors")
    model.encoder_.made_lengths = _vector_lengths(meta.get("made_vectors", {}))
    if model.encoder_.made_lengths and not callable(model.features):
        raise DataError(f"its features are {short(model.features)}, by which there are no vectors")
    model._restore(arrays, texts, parts)
    model._defaulted += _default_names(meta.get("defaults", []), model)
    model.set_params(**dict.fromkeys(model._defaulted))
    model._learned_names = frozenset(vars(model)) - frozenset(model._get_param_names())
    return model


def _vector_lengths(lengths: Any) -> dict[str, int]:
    """The lengths of vectors, by name; older files have none."""
    if not isinstance(lengths, dict) or not all(is_count(n) and n for n in lengths.values()):
        raise DataError(f"the lengths of its vectors are not valid, {short(lengths)}")
    checked: dict[str, int] = lengths
    return checked


def _cut(vocabularies: list[list[str]], count: Any) -> tuple[list[list[str]], list[list[str]]]:
    """Vocabularies without the last ones, and the last ones."""
    if not is_count(count) or count > len(vocabularies):
        raise DataError("it does not have the number of texts listed")
    cut = len(vocabularies) - count
    return vocabularies[:cut], vocabularies[cut:]


def _check_numbers(arrays: dict[str, np.ndarray]) -> None:
    """Raise DataError if an array has a number that no model learns and that may overflow."""
    for name, array in arrays.items():
        if (
            array.dtype.kind == "f"
            and array.size
            and not max(float(array.max()), -float(array.min())) <= _LARGEST
        ):
            raise DataError(f"the array {name!r} has numbers beyond ±{_LARGEST:g}")


def _default_names(names: Any, model: Storable) -> list[str]:
    """The parameters that were None at fit and are stored with their defaults."""
    if not isinstance(names, list) or not all(name in ["window", *model._defaults] for name in names):
        raise DataError(f"its list of default parameters is not valid, {short(names)}")
    return names


def _parameters(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters as JSON."""
    left_out = [*_NOT_STORED, *(name for name in _NEWER if not params.get(name))]
    return {name: _to_json(name, value) for name, value in sorted(params.items()) if name not in left_out}


def _unfitted(name: Any, parameters: Any, features: Any) -> Storable:
    """An unfitted model of that class, with its parameters checked."""
    cls = model_file.stored_class(name)
    if not isinstance(parameters, dict):
        raise DataError(f"the parameters of {short(name)} are not named")
    stored = {key: value for key, value in parameters.items() if key not in _NOT_STORED}
    values = {key: _from_json(key, value, features) for key, value in stored.items()}
    for key, value in getattr(cls, "_retired", {}).items():
        if key in values and values.pop(key) != value:
            problem = f"it was fitted with {key}={short(parameters[key])}, which {cls.__name__} no longer has"
            raise DataError(f"{problem}; fit it again without {key}")
    if unknown := sorted(set(values) - set(cls._get_param_names())):
        raise DataError(f"{cls.__name__} has no parameter {short(unknown[0])}")
    model: Storable = cls(**values)
    model._check_parameters()
    return model


def _to_json(name: str, value: Any) -> Any:
    """A parameter as JSON."""
    if isinstance(value, Vectors):
        return value  # which `extract_tables` makes JSON of
    if isinstance(value, Template):
        return {"template": value.text, "name": value.name} | ({"wapiti": True} if value.wapiti else {})
    if name == "kernel" and callable(value):
        value = as_kernel(value)
    if isinstance(value, Kernel):
        return {"kernel": value.to_json()}
    if type(value).__name__ in MODELS:
        return {"labeler": type(value).__name__, "parameters": _parameters(value.get_params(deep=False))}
    if name == "class_weight" and isinstance(value, dict):
        return {"weights": json.dumps([[label, float(weight)] for label, weight in value.items()])}
    if name == "candidates" and isinstance(value, dict):
        return {"labelers": {key: _to_json("", labeler) for key, labeler in value.items()}}
    if name == "features" and callable(value):
        return {"function": f"{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', '?')}"}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, str | int | None) or (isinstance(value, float) and np.isfinite(value)):
        return value
    problem = f"the parameter {name}={short(value)} cannot be stored in a model file"
    raise DataError(f"{problem}; set it to text, a finite number, true, false or None")


def _from_json(name: str, value: Any, features: Any) -> Any:
    """A parameter from JSON."""
    if isinstance(value, dict) and "kernel" in value:
        return from_json(value["kernel"])
    if isinstance(value, dict) and "labeler" in value:
        return _unfitted(value["labeler"], value.get("parameters"), features)
    if isinstance(value, dict) and isinstance(value.get("labelers"), dict):
        return {key: _from_json("", labeler, features) for key, labeler in value["labelers"].items()}
    if isinstance(value, Vectors):
        return value
    if name == "features" and isinstance(value, dict):
        text, template_name = value.get("template"), value.get("name")
        if isinstance(text, str) and isinstance(template_name, str):
            return Template(text, template_name, value.get("wapiti") is True)
        function = value.get("function")
        if isinstance(function, str) and function in _FUNCTIONS:
            return _FUNCTIONS[function]
        if features is None:
            problem = f"the file does not contain the feature function {short(function)}"
            raise ModelFileError(f"{problem}; pass it again: fuda.load(path, features=function)")
        return features
    if name == "class_weight" and isinstance(value, dict) and isinstance(value.get("weights"), str):
        return dict(json.loads(value["weights"]))
    if isinstance(value, dict | list):
        raise DataError(f"its parameter {name!r} has the wrong type")
    return value
