"""The estimator that all labelers share: scikit-learn's interface over whole structures.

``fit(X, y)`` takes a list of structures and a list of label lists; a label None is not known. ``predict(X)``
gives one list of labels a structure, in a 1-D object array (scikit-learn would make a matrix of equally long
lists). A model says which shapes it takes and how it fits and decodes encoded structures; encoding, checks,
labels and files are here.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, TargetTags
from sklearn.utils.validation import check_is_fitted

from fuda.data.corpus import Corpus
from fuda.data.encoders import make_encoder
from fuda.data.encoding import Encoded, WindowEncoder
from fuda.data.labels import as_object_array, flat_labels, node_weights, number_labels, structure_weights
from fuda.data.structures import Structure, as_structures
from fuda.data.template_encoding import TemplateEncoder
from fuda.errors import DataError
from fuda.metrics import token_accuracy
from fuda.registry import MODELS, model_class
from fuda.storage import models as stored_models


class Labeler(BaseEstimator):
    """Base of all labelers. A subclass has parameters `features` and `window` among others, and defines

    - `_shapes`, the shapes it takes,
    - `_check_parameters()`, which raises DataError,
    - `_fit(encoded, labels, sample_weight, position_weight)`,
    - `predict(X)`, by `_encode(X)` and `_named(encoded, label numbers)`,
    - `_arrays()`, its fitted arrays by name, and `_restore(arrays, texts, parts)`, which takes them back with
      what `_texts()` and `_parts()` say where a subclass defines those too.
    """

    _shapes: ClassVar[tuple[str, ...]] = ("sequence", "tree")

    features: Any
    window: int
    classes_: list[Any]
    shape_: str
    encoder_: WindowEncoder | TemplateEncoder
    # How the command read the files that the model was trained on, so that it reads others alike.
    reading_: dict[str, Any]

    def fit(self, X: Any, y: Any, sample_weight: Any = None, position_weight: Any = None) -> Self:
        """Learn from structures X and their labels y.

        `sample_weight` weighs structures (n,); `position_weight` weighs nodes, one array a structure.
        """
        self._check_parameters()
        structures = self._checked_structures(X)
        if not structures:
            raise DataError("there is nothing to learn from: X is empty; give at least one structure")
        encoder = make_encoder(self.features, self.window)
        encoded = encoder.fit(structures)
        classes, labels = number_labels(y, encoded.corpus)
        sample_weight = structure_weights(sample_weight, encoded.corpus)
        position_weight = node_weights(position_weight, encoded.corpus)
        self.classes_, self.shape_, self.encoder_, self.reading_ = classes, encoded.corpus.shape, encoder, {}
        try:
            self._fit(encoded, labels, sample_weight, position_weight)
        except BaseException:
            del self.classes_  # a model that is half fitted is not fitted
            raise
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The labels of each structure, as a 1-D object array of lists."""
        raise NotImplementedError

    def score(self, X: Any, y: Any) -> float:
        """Token accuracy over the nodes whose label is known."""
        return token_accuracy(y, self.predict(X))

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file that `fuda.load` reads."""
        check_is_fitted(self, "classes_")
        stored_models.save(self, path)

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _fit(
        self,
        encoded: Encoded,
        labels: np.ndarray,
        sample_weight: np.ndarray | None,
        position_weight: np.ndarray | None,
    ) -> None:
        raise NotImplementedError

    def _arrays(self) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def _texts(self) -> list[list[str]]:
        """Lists of distinct texts that belong to what was fitted."""
        return []

    def _parts(self) -> dict[str, Labeler]:
        """The fitted labelers that this one holds, by name (lower case, no double underscore)."""
        return {}

    def _restore(
        self, arrays: dict[str, np.ndarray], texts: list[list[str]], parts: dict[str, Labeler]
    ) -> None:
        raise NotImplementedError

    def _named(self, encoded: Encoded, labels: np.ndarray) -> np.ndarray:
        """Label numbers of all nodes as one list of labels a structure."""
        names = np.array([*self.classes_, None], dtype=object)[labels].tolist()
        bounds = encoded.corpus.offsets.tolist()
        return as_object_array([names[a:b] for a, b in pairwise(bounds)])

    def _numbers(self, y: Any, corpus: Corpus) -> np.ndarray:
        """Label numbers of all nodes, −1 for None; labels never seen in training are an error."""
        number = {label: i for i, label in enumerate(self.classes_)} | {None: -1}
        labels = flat_labels(y, corpus)
        for node, label in enumerate(labels):
            if label not in number:
                raise DataError(
                    f"{corpus.place(node)}: the label {label!r} was never seen in training; known are "
                    f"{', '.join(map(repr, self.classes_[:20]))}. Use None for a label not known"
                )
        return np.array([number[label] for label in labels], dtype=np.int64)

    def _encode(self, X: Any, grow: bool = False) -> Encoded | None:
        """X encoded by the fitted vocabulary, which may grow by its features; None where X is empty."""
        check_is_fitted(self, "classes_")
        structures = self._checked_structures(X)
        if not structures:
            return None
        if structures[0].shape != self.shape_:
            raise DataError(
                f"structure 0 is a {structures[0].shape}, but this {type(self).__name__} was fitted on "
                f"{self.shape_}s; give {self.shape_}s, or fit another model"
            )
        return self.encoder_.encode(structures, grow)

    def _checked_structures(self, X: Any) -> list[Structure]:
        structures = as_structures(X)
        if structures and structures[0].shape not in self._shapes:
            shape, others = structures[0].shape, _models_that_take(structures[0].shape)
            raise DataError(
                f"structure 0 is a {shape}, but {type(self).__name__} labels "
                f"{' and '.join(f'{shape}s' for shape in self._shapes)} only; "
                f"models that take {shape}s: {', '.join(others) or 'none yet'}. Else give it as a "
                f"{' or '.join(self._shapes)} (on the command line --graph {self._shapes[-1]})"
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


def _models_that_take(shape: str) -> list[str]:
    return [name for name in MODELS if shape in model_class(name)._shapes]
