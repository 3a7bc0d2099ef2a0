"""The estimator that all labelers share: scikit-learn's interface over whole structures.

``fit(X, y)`` takes a list of structures and a list of label lists; a label None is not known. ``predict(X)`` gives one list of
labels a structure, in a 1-D object array (scikit-learn would make a matrix of equally long lists). A model says which shapes it
takes and how it fits and decodes encoded structures; encoding, checks, labels and files are here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, TargetTags
from sklearn.utils.validation import check_is_fitted

from fuda import model_file
from fuda.corpus import Corpus
from fuda.encoding import Encoded, WindowEncoder
from fuda.errors import DataError, ModelFileError, place
from fuda.metrics import token_accuracy
from fuda.structures import Structure, as_structures
from fuda.templates import Template, TemplateEncoder


class Labeler(BaseEstimator):
    """Base of all labelers. A subclass has parameters `features` and `window` among others, and defines

    - `_shapes`, the shapes it takes, and `_version`, the version of its state in model files,
    - `_check_parameters()`, which raises DataError,
    - `_fit(encoded, labels, sample_weight, position_weight)`,
    - `_decode(encoded)` → label numbers of all nodes,
    - `_arrays()` and `_restore(arrays)`, its fitted arrays by name.
    """

    _shapes: ClassVar[tuple[str, ...]] = ("sequence", "tree")
    _version: ClassVar[int] = 1

    features: Any
    window: int
    classes_: list[Any]
    shape_: str
    encoder_: WindowEncoder | TemplateEncoder
    reading_: dict[str, Any]  # how the command read the files it was trained on, so that it reads others alike

    def fit(self, X: Any, y: Any, sample_weight: Any = None, position_weight: Any = None) -> Self:
        """Learn from structures X and their labels y.

        `sample_weight` weighs structures (n,); `position_weight` weighs nodes, one array a structure.
        """
        self._check_parameters()
        structures = self._checked_structures(X)
        if not structures:
            raise DataError("there is nothing to learn from: X is empty")
        encoder = make_encoder(self.features, self.window)
        encoded = encoder.fit(structures)
        classes, labels = number_labels(y, encoded.corpus)
        sample_weight = _structure_weights(sample_weight, encoded.corpus)
        position_weight = _node_weights(position_weight, encoded.corpus)
        self.classes_, self.shape_, self.encoder_, self.reading_ = classes, encoded.corpus.shape, encoder, {}
        self._fit(encoded, labels, sample_weight, position_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The labels of each structure, as a 1-D object array of lists."""
        encoded = self._encode(X)
        if encoded is None:
            return np.empty(0, dtype=object)
        names = np.array([*self.classes_, None], dtype=object)[:-1]
        return as_object_array([part.tolist() for part in encoded.corpus.split(names[self._decode(encoded)])])

    def score(self, X: Any, y: Any) -> float:
        """Token accuracy over the nodes whose label is known."""
        return token_accuracy(y, self.predict(X))

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file that `fuda.load` reads."""
        check_is_fitted(self, "classes_")
        meta = {
            "class": type(self).__name__,
            "class_version": self._version,
            "parameters": {k: _to_json(k, v) for k, v in sorted(self.get_params(deep=False).items())},
            "labels": self.classes_,
            "shape": self.shape_,
            "vector_size": self.encoder_.vector_size,
            "reading": self.reading_,
        }
        model_file.save(path, meta, self.encoder_.vocabularies(), self._arrays())

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _fit(
        self, encoded: Encoded, labels: np.ndarray, sample_weight: np.ndarray | None, position_weight: np.ndarray | None
    ) -> None:
        raise NotImplementedError

    def _decode(self, encoded: Encoded) -> np.ndarray:
        raise NotImplementedError

    def _arrays(self) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        raise NotImplementedError

    def _encode(self, X: Any) -> Encoded | None:
        """X encoded by the fitted vocabulary; None where X is empty."""
        check_is_fitted(self, "classes_")
        structures = self._checked_structures(X)
        if not structures:
            return None
        if structures[0].shape != self.shape_:
            raise DataError(
                f"structure 0 is a {structures[0].shape}, but this {type(self).__name__} was fitted on {self.shape_}s; "
                f"give {self.shape_}s, or fit another model"
            )
        return self.encoder_.encode(structures)

    def _checked_structures(self, X: Any) -> list[Structure]:
        structures = as_structures(X)
        if structures and structures[0].shape not in self._shapes:
            raise DataError(
                f"structure 0 is a {structures[0].shape}, but {type(self).__name__} labels "
                f"{' and '.join(f'{shape}s' for shape in self._shapes)} only; "
                f"models that take {structures[0].shape}s: {', '.join(_models_that_take(structures[0].shape)) or 'none yet'}"
            )
        return structures

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type = None  # neither classifier nor regressor: y is a list of label lists
        tags.target_tags = TargetTags(required=True, one_d_labels=False)
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.dict = True
        tags.no_validation = True
        return tags


def load(path: str | Path, features: Any = None) -> Any:
    """The model in a file written by ``save``.

    A feature function of one's own is never stored in a file, only its name; pass the function as `features` again.
    """
    meta, vocabularies, arrays = model_file.read(path)
    cls = model_file.load_class(meta, path)
    parameters = meta["parameters"]
    known = cls._get_param_names()
    if set(parameters) - set(known):
        unknown = sorted(set(parameters) - set(known))
        raise ModelFileError(f"{path}: not a usable model file: {cls.__name__} has no parameter {unknown[0]!r}")
    try:
        model = cls(**{name: _from_json(name, value, features) for name, value in parameters.items()})
        model._check_parameters()
        model.classes_, model.shape_ = meta["labels"], meta["shape"]
        model.encoder_ = make_encoder(model.features, model.window)
        vector_size = meta.get("vector_size")
        if not isinstance(vector_size, int) or isinstance(vector_size, bool) or not 0 <= vector_size < 1 << 31:
            raise DataError("its vector size is no count")
        model.encoder_.restore(vocabularies, vector_size)
        if model.shape_ not in cls._shapes:
            raise DataError(f"{cls.__name__} does not label {model.shape_}s")
        model.reading_ = meta.get("reading", {})
        if not isinstance(model.reading_, dict):
            raise DataError("how it reads files is not of its kind")
        model._restore(arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except (DataError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path}: not a usable model file: {error}") from None
    return model


def make_encoder(features: Any, window: int) -> WindowEncoder | TemplateEncoder:
    """The encoder that the parameters `features` and `window` ask for."""
    return TemplateEncoder(features) if isinstance(features, Template) else WindowEncoder(features, window)


def number_labels(y: Any, corpus: Corpus) -> tuple[list[Any], np.ndarray]:
    """The distinct labels in order, and the label numbers of all nodes, −1 where the label is not known."""
    labels = flat_labels(y, corpus)
    distinct = set(labels) - {None}
    if not distinct:
        raise DataError("no node has a label: every label in y is None; give labels to learn from")
    for kind in (str, int):
        if all(type(label) is kind for label in distinct):
            classes = sorted(distinct)
            break
    else:
        kinds = sorted({type(label).__name__ for label in distinct})
        raise DataError(f"labels are strings or integers, all of one kind, but y holds {' and '.join(kinds)}")
    if "" in distinct:
        raise DataError(f"{corpus.place(labels.index(''))}: its label is empty text; use None for a label not known")
    number = {label: i for i, label in enumerate(classes)} | {None: -1}
    return classes, np.fromiter((number[label] for label in labels), dtype=np.int32, count=len(labels))


def flat_labels(y: Any, corpus: Corpus) -> list[Any]:
    """The labels of all nodes in one list, after a check that y fits the corpus; numpy's scalars become Python's."""
    if y is None:
        raise DataError("y is missing: give one list of labels a structure, None for a label not known")
    if isinstance(y, str | bytes | dict):
        raise DataError(f"y is one list of labels a structure, but a {type(y).__name__} was given")
    y = list(y)
    if len(y) != len(corpus):
        raise DataError(f"X has {len(corpus)} structures but y has labels for {len(y)}; give one list of labels a structure")
    flat: list[Any] = []
    for i, (labels, size) in enumerate(zip(y, np.diff(corpus.offsets), strict=True)):
        if isinstance(labels, str | bytes | dict) or not hasattr(labels, "__len__"):
            raise DataError(f"{place(i)}: its labels are {labels!r}; give a list of {size} labels, one a node")
        if len(labels) != size:
            raise DataError(f"{place(i)} has {size} nodes but {len(labels)} labels; give one label a node")
        flat.extend(labels)
    if any(isinstance(label, np.generic) for label in flat):
        flat = [label.item() if isinstance(label, np.generic) else label for label in flat]
    for node, label in enumerate(flat):
        if label is not None and type(label) not in (str, int):
            if isinstance(label, str):  # a subclass, such as numpy's
                flat[node] = str(label)
                continue
            raise DataError(
                f"{corpus.place(node)}: its label is {label!r} ({type(label).__name__}); labels are strings or integers"
            )
    return flat


def as_object_array(values: list[Any]) -> np.ndarray:
    """A 1-D object array, which numpy would not make of equally long lists by itself."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _structure_weights(weights: Any, corpus: Corpus) -> np.ndarray | None:
    if weights is None:
        return None
    array = _weights(weights, "sample_weight")
    if array.shape != (len(corpus),):
        raise DataError(f"sample_weight has shape {array.shape}, but there are {len(corpus)} structures; give one weight each")
    return array


def _node_weights(weights: Any, corpus: Corpus) -> np.ndarray | None:
    if weights is None:
        return None
    weights = list(weights)
    if len(weights) != len(corpus):
        raise DataError(f"position_weight is for {len(weights)} structures, but there are {len(corpus)}; give one list each")
    parts = []
    for i, (part, size) in enumerate(zip(weights, np.diff(corpus.offsets), strict=True)):
        array = _weights(part, f"{place(i)}: position_weight")
        if array.shape != (size,):
            raise DataError(f"{place(i)} has {size} nodes, but position_weight has shape {array.shape}; give one weight a node")
        parts.append(array)
    return np.concatenate(parts)


def _weights(weights: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} is not a list of numbers") from None
    if not np.isfinite(array).all() or (array < 0).any():
        raise DataError(f"{name} holds {array[~(np.isfinite(array) & (array >= 0))][0]}; weights are finite and not negative")
    return array


def _to_json(name: str, value: Any) -> Any:
    if isinstance(value, Template):
        return {"template": value.text, "name": value.name}
    if name == "features" and callable(value):
        return {"function": f"{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', '?')}"}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise DataError(f"the parameter {name}={value!r} cannot be stored in a model file")


def _from_json(name: str, value: Any, features: Any) -> Any:
    if name == "features" and isinstance(value, dict):
        if isinstance(value.get("template"), str):
            return Template(value["template"], str(value.get("name")))
        if features is None:
            raise ModelFileError(
                f"the model takes its features from the function {value.get('function')!r}, which a file does not hold; "
                "load it with that function: fuda.load(path, features=function)"
            )
        return features
    if isinstance(value, dict | list):
        raise DataError(f"its parameter {name!r} is not of its kind")
    return value


def _models_that_take(shape: str) -> list[str]:
    from importlib import import_module

    classes = [getattr(import_module(module), name) for name, (module, _) in model_file.REGISTRY.items()]
    return [cls.__name__ for cls in classes if shape in cls._shapes]
