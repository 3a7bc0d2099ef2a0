"""The estimator that all labelers share: scikit-learn's interface over whole structures.

``fit(X, y)`` takes a list of structures and a list of label lists; a label None is not known.
``predict(X)`` returns one list of labels per structure, in a 1-D object array (scikit-learn would
make a matrix of equally long lists). A subclass defines the shapes that it accepts and how it fits
and decodes encoded structures; encoding, checks, labels and files are here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from fuda import __version__
from fuda.checks import (
    check_callback,
    check_checkpoint,
    check_cluster,
    check_flags,
    check_randomness,
    check_threads,
    listed,
)
from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded
from fuda.data.labels import as_object_array, number_labels
from fuda.data.structures import Structure, as_structures_or_none
from fuda.data.template_encoding import TemplateEncoder
from fuda.data.window_encoding import WindowEncoder
from fuda.errors import DataError
from fuda.features.sets import resolve
from fuda.kernels import as_kernel
from fuda.metrics import token_accuracy
from fuda.models.fitting.defaults import defaults_for, encoder_for
from fuda.models.fitting.fingerprint import content, digest, parameters
from fuda.models.fitting.foreign_parameters import FOREIGN_PARAMETERS
from fuda.models.fitting.labelled_data import labels_of, structures_of
from fuda.models.fitting.one_state import on_snapshot
from fuda.models.fitting.training_data import TrainingData, check_class_weight, data_weights
from fuda.models.fitting.unlabelled import vectors_for
from fuda.models.fitting.validation import validation_data
from fuda.models.labelings import label_numbers
from fuda.progress import Callback
from fuda.registry import MODELS, model_class
from fuda.runtime.estimators import BaseEstimator, check_is_fitted, clone
from fuda.runtime.interrupts import guard_compiled_code
from fuda.runtime.light_estimators import as_code
from fuda.runtime.parallel import one_blas_thread
from fuda.storage import models as stored_models
from fuda.storage.checkpoint import checkpointed
from fuda.vectors import Vectors

guard_compiled_code()

Result = TypeVar("Result")
_SHARED_PARAMETERS = {
    "random_state": check_randomness,
    "checkpoint": check_checkpoint,
    "callback": check_callback,
    "cluster": check_cluster,
    "n_jobs": check_threads,
}


class Labeler(BaseEstimator):
    """Base of all labelers.

    The constructor stores parameters unchanged, and `fit` does not change them. A fitted model
    uses the parameters it was fitted with: ``set_params`` changes the next fit, but neither what
    the fitted model predicts nor what `save` writes. The exceptions act at once, because nothing
    that was learned depends on them: `decode`, `scheme`, `outside_penalty`, `n_jobs`, `engine`,
    `verbose`, and `n` of a `Reranker`.

    A subclass has parameters `features` and `window` among others, and defines

    - `_shapes`, the shapes it accepts,
    - `_check_parameters()`, which raises DataError, after that of its base class,
    - `_fit(data)`,
    - `predict(X)`, by `_for_each_structure(X, …)` and `_labels_of_numbers(encoded, numbers)`,
    - `_arrays()`, its fitted arrays by name, and `_restore(arrays, texts, parts)`, which restores
      them together with `_texts()` and `_parts()` where a subclass defines those too.

    After `fit` it reads only attributes with a trailing underscore, `_fitted_params` and the
    parameters named in `_live_params`; other parameters may have been changed since.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,), dtype object
        The labels, sorted; Python strings or integers.
    shape_ : str
        The shape of the structures: "sequence", "tree" or "dag".
    encoder_ : WindowEncoder or TemplateEncoder
        The vocabulary of the training data.
    validation_curve_ : list of float
        The score on the validation data after each iteration, where `fit` was given such data. It
        is not stored in model files.
    """

    _shapes: ClassVar[tuple[str, ...]] = ("sequence", "tree")
    # Parameters on which nothing that was learned depends: changes act at once, and are saved.
    _live_params: ClassVar[tuple[str, ...]] = ("decode", "scheme", "outside_penalty", "n_jobs", "verbose")
    # Parameters in which a fit may differ from the one whose checkpoint it continues.
    _free_params: ClassVar[frozenset[str]] = frozenset()
    # Whether the model accepts features with arbitrary real values, such as those of word vectors.
    _takes_vectors: ClassVar[bool] = True
    # The least number of floats that learning allocates: per pair of feature and label, and per
    # pair of node and label.
    _minimum_counts: ClassVar[tuple[int, int]] = (2, 2)
    # What parameters stand for where they are None; for features and decode, the values for text.
    _defaults: ClassVar[dict[str, Any]] = {}

    features: Any
    window: int | None
    checkpoint: str | Path | None = None
    callback: Callback | None = None
    classes_: np.ndarray
    shape_: str
    encoder_: WindowEncoder | TemplateEncoder
    validation_curve_: list[float]
    # The parameters of the last fit, with defaults in place of None; the names of those that were
    # None.
    _fitted_params: dict[str, Any]
    _defaulted: list[str]
    # The options with which the command read the training files; it reads others in the same way.
    reading_: dict[str, Any]
    # The names of all attributes that `fit` set; others may be the user's or scikit-learn's.
    _learned_names: frozenset[str] = frozenset()

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Refuse parameters by names of other programs, and say what to write instead."""
        for name in parameters.keys() & FOREIGN_PARAMETERS.keys() - set(cls._get_param_names()):
            raise TypeError(f"{cls.__name__} has no parameter {name!r}: {FOREIGN_PARAMETERS[name]}")
        return super().__new__(cls)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # The printer of scikit-learn does not use the repr of kernels, or writes them as tuples.
        code = as_code(self)
        half = N_CHAR_MAX // 2
        return code if len(code) <= N_CHAR_MAX else f"{code[:half]}...{code[-half:]}"

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        position_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        unlabelled: Any = None,
    ) -> Self:
        """Learn from structures and their labels.

        A fit that is refused before learning begins changes nothing. If it fails later, the model
        is left unfitted; it never mixes old and new state. Ctrl-C ends an iterative training
        early; if something has been learned by then, the model is fitted, with a
        ConvergenceWarning. A callback that raises StopIteration ends it without a warning.

        Parameters
        ----------
        X : list of structures, or Dataset
            Sequences (plain lists of observations will do), trees or graphs.
        y : list of lists
            The labels of each structure, one per node: strings or integers, None where not known.
            Left out if X is a dataset or a list of its records, which have labels.
        sample_weight : array-like of shape (n_structures,), optional
            Weights of structures.
        position_weight : list of array-like, optional
            Weights of nodes, one array per structure.
        X_val, y_val : list of structures, list of lists, optional
            Validation data. After every iteration the model is scored on them: by the F1 of
            entities, by that of labels other than O, or by accuracy, whichever fits the labels.
            Training ends when the score has been below its best for ten iterations, and the model
            is that of the best iteration. `validation_curve_` has the scores, `n_iter_` the number
            of the best iteration.
        unlabelled : list of structures or Vectors, optional
            More text of the same kind, without labels. Classes and vectors of words are learned
            from it and X together, as by `fuda.vectors.learn`, and become features beside those of
            the set `features`; or they are given as a `fuda.Vectors`.

        Returns
        -------
        Self
            The fitted model itself.
        """
        self._check_parameters()
        structures = self._checked_structures(X)
        if not any(structures):
            raise DataError("there is nothing to learn from: X is empty; give at least one structure")
        corpus = Corpus(structures)
        if unlabelled is not None:
            corpus.vectors = vectors_for(self, corpus, unlabelled)
        encoder = encoder_for(self, corpus)
        encoded = encoder.fit_corpus(corpus)
        classes, labels = number_labels(labels_of(X, y), corpus)
        weights = data_weights(corpus, sample_weight, position_weight)
        validation = validation_data(self, encoder, corpus.shape, X_val, y_val)
        return self._fit_encoded(TrainingData(encoder, encoded, classes, labels, *weights, validation))

    def _remember_params(self, corpus: Corpus | None = None) -> None:
        """Copy the current parameters to `_fitted_params`, with defaults in place of None."""
        params = {name: value for name, value in self.get_params(deep=False).items() if name != "callback"}
        window = getattr(getattr(self, "encoder_", None), "window", 1)  # templates have none
        defaults = {"window": window} | defaults_for(self, corpus)
        self._defaulted = [name for name in defaults if params.get(name, ...) is None]
        params |= {name: defaults[name] for name in self._defaulted}
        features = getattr(getattr(self, "encoder_", None), "features", None)
        # These vectors were passed by the user, or learned from `unlabelled`.
        if isinstance(features, Vectors) and params.get("features") is not None:
            params |= {"features": features} | ({"window": window} if "window" in params else {})
            self._defaulted = [name for name in self._defaulted if name not in ("features", "window")]
        self._fitted_params = {name: _detached(value) for name, value in params.items()}

    def _defaults_by(self, corpus: Corpus, letters: str | None) -> dict[str, Any]:
        """Defaults that depend on the data; `letters` is the alphabet of residues or bases."""
        return {}

    def _params_to_save(self) -> dict[str, Any]:
        """The parameters to store: those of the fit, and live ones as they are now."""
        live = {name: getattr(self, name) for name in self._live_params if name in self._fitted_params}
        defaults = {name: self._fitted_params[name] for name in self._defaulted if live.get(name) is None}
        return self._fitted_params | live | defaults

    def _without_fit(self) -> Self:
        """A copy without what was learned; parameters are shared."""
        unfitted = copy(self)
        for name in (*self._learned_names, "_learned_names", "_cached"):
            unfitted.__dict__.pop(name, None)
        return unfitted

    def _adopt_state(self, other: Self) -> None:
        """Adopt the state of another labeler, which must not be used afterwards.

        This is a single assignment: an interrupt comes before or after it, so that old and new
        state are never mixed.
        """
        self.__dict__ = other.__dict__

    def predict(self, X: Any) -> np.ndarray:
        """Label structures.

        Parameters
        ----------
        X : list of structures
            Of the shape that the model was fitted on.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One list of labels per structure.
        """
        raise NotImplementedError

    def score(self, X: Any, y: Any) -> float:
        """Token accuracy over the nodes whose label is known.

        Parameters
        ----------
        X : list of structures
            Structures to label.
        y : list of lists
            Their true labels, None where not known.

        Returns
        -------
        float
            The share of nodes with the right label.
        """
        return token_accuracy(y, self.predict(X))

    @on_snapshot
    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file that `fuda.load` reads.

        The file contains the model as it was fitted, whatever parameters have been set since,
        except for those that act at once (see `Labeler`). Callbacks are not stored.

        Parameters
        ----------
        path : str or Path
            The file; an existing one is replaced.
        """
        self._check_fitted()
        stored_models.save(self, path)

    def _check_parameters(self) -> None:
        """Raise DataError for an invalid value of a parameter that several models share."""
        names = self.get_params(deep=False)
        check_flags(self, *names.keys() & {"verbose"})
        if names.get("features", ...) is None and "features" not in self._defaults:
            resolve(None, 0)  # raises the DataError that lists the feature sets
        for name, check in _SHARED_PARAMETERS.items():
            if name in names:
                check(self)
        check_class_weight(names.get("class_weight"))
        if names.get("kernel") is not None:
            as_kernel(names["kernel"])

    def _check_live_params(self) -> None:
        """Raise DataError for an invalid value of a parameter that acts at once."""
        check_threads(self)

    def _training_data(
        self,
        corpus: Corpus,
        classes: list[Any],
        labels: np.ndarray,
        sample_weight: np.ndarray | None = None,
        position_weight: np.ndarray | None = None,
    ) -> TrainingData:
        """Training data for this labeler, from a labelled corpus; parts of them may be fitted."""
        self._check_shape(corpus.shape)
        encoder = encoder_for(self, corpus)
        encoded = encoder.fit_corpus(corpus)
        return TrainingData(encoder, encoded, classes, labels, sample_weight, position_weight)

    @one_blas_thread
    def _fit_encoded(self, data: TrainingData) -> Self:
        """Learn from encoded data; the parameters have been checked."""
        data = data.weighted(getattr(self, "class_weight", None))
        data.encoded.check_values()
        data.check_memory(*self._minimum_counts)
        learner = self._without_fit()
        self._adopt_state(self._without_fit())
        learner.classes_, learner.encoder_ = as_object_array(list(data.classes)), data.encoder
        learner.shape_, learner.reading_ = data.encoded.corpus.shape, {}
        learner._remember_params(data.encoded.corpus)
        with checkpointed(self.checkpoint, lambda: learner._fingerprint(data)) as is_resumed:
            learner._fit(data)
            if is_resumed and self.checkpoint is not None:
                stored_models.check_resumed(learner, self.checkpoint)
        learner._learned_names = frozenset(vars(learner)) - frozenset(vars(self))
        self._adopt_state(learner)
        return self

    def _fingerprint(self, data: TrainingData) -> list[Any]:
        """What identifies this fit: a checkpoint with another fingerprint is not continued."""
        arrays = data.labels, data.sample_weight, data.position_weight
        validation = [] if data.held is None else [content(data.held.encoded), data.held.labels]
        return [
            parameters(self, self._free_params),
            *validation,
            *(list(data.classes), data.encoder.vocabularies()),
            *(content(data.encoded), list(map(digest, arrays))),
        ]

    def _fit(self, data: TrainingData) -> None:
        raise NotImplementedError

    def _arrays(self) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def _texts(self) -> list[list[str]]:
        """Lists of distinct texts that belong to the fitted model."""
        return []

    def _parts(self) -> dict[str, Labeler]:
        """The fitted labelers inside this one, by name (lower case, no double underscore)."""
        return {}

    def _restore(
        self, arrays: dict[str, np.ndarray], texts: list[list[str]], parts: dict[str, Labeler]
    ) -> None:
        raise NotImplementedError

    def _labels_of_numbers(self, encoded: Encoded, labels: np.ndarray) -> list[list[Any]]:
        """The labels of label numbers (N,), one list per structure."""
        names = list(map([*self.classes_, None].__getitem__, labels.tolist()))
        bounds = encoded.corpus.offsets.tolist()
        return [names[a:b] for a, b in pairwise(bounds)]

    def _empty_marginals(self) -> np.ndarray:
        """The marginals of an empty structure."""
        return np.empty((0, len(self.classes_)))

    def _label_numbers(self, y: Any, corpus: Corpus) -> np.ndarray:
        """The numbers (N,) of labels, −1 for None; labels never seen in training are an error."""
        return label_numbers(y, corpus, self.classes_)

    def _refuse_pair_features(self, encoded: Encoded) -> None:
        """Raise DataError for template lines of label pairs: the model has no such weights."""
        if encoded.edge_channels:
            raise DataError(
                f"template line {encoded.edge_channels[0].name!r}: {type(self).__name__} has no features of "
                "label pairs; leave B lines bare, and begin others with U"
            )

    def _encode(self, X: Any) -> Encoded | None:
        """X encoded by the fitted vocabulary; None where it has no nodes."""
        self._check_fitted()
        self._check_live_params()
        structures = self._checked_structures(X)
        return self._encode_corpus(Corpus(structures)) if any(structures) else None

    def _for_each_structure(
        self, X: Any, compute: Callable[[Encoded], Iterable[Any]], empty_result: Callable[[], Any] = list
    ) -> np.ndarray:
        """The results of `compute`, one per encoded structure; `empty_result()` for empty ones."""
        X = structures_of(X)
        X = X if isinstance(X, Structure) else listed(X) or X  # an iterator is consumed once
        encoded = self._encode(X)
        if encoded is None:
            return as_object_array([empty_result() for _ in X])
        return as_object_array(encoded.corpus.with_empty(compute(encoded), empty_result))

    def _check_fitted(self) -> None:
        if not hasattr(self, "classes_"):  # scikit-learn's check is slow
            check_is_fitted(self, "classes_")

    def _encode_corpus(self, corpus: Corpus) -> Encoded:
        """A corpus encoded by the fitted vocabulary."""
        if corpus.shape != self.shape_:
            raise DataError(
                f"structure 0 is a {corpus.shape}, but this {type(self).__name__} was fitted on "
                f"{self.shape_}s; give {self.shape_}s, or fit another model"
            )
        encoded = self.encoder_.encode_corpus(corpus)
        if corpus.kind.name in ("vector", "features"):  # features of other kinds have the value 1
            encoded.check_values()
        return encoded

    def _cached_for(self, value: object, compute: Callable[[], Result]) -> Result:
        """The result of `compute`, cached as long as a fitted value is the same object.

        Neither model files nor pickles contain the cache. Changes of the value in place are not
        noticed.
        """
        cached = self.__dict__.get("_cached")
        if cached is None or cached[0] is not value:
            cached = self._cached = value, compute()
        return cached[1]

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in super().__getstate__().items() if name != "_cached"}
        return state | {"_fuda_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop("_fuda_version", "of unknown version")
        if version != __version__:
            warnings.warn(
                f"this {type(self).__name__} was pickled by fuda {version}, this is fuda {__version__}; "
                "it may fail or predict otherwise: fit it again, or use model files (save and fuda.load)",
                UserWarning,
                stacklevel=2,
            )
        super().__setstate__(state)

    def _checked_structures(self, X: Any) -> list[Structure | None]:
        """X as structures of a shape that the model accepts, None for empty ones."""
        structures = as_structures_or_none(structures_of(X))
        self._check_shape(next((s.shape for s in structures if s is not None), self._shapes[0]))
        return structures

    def _check_shape(self, shape: str) -> None:
        if shape not in self._shapes:
            others = _models_that_take(shape)
            raise DataError(
                f"structure 0 is a {shape}, but {type(self).__name__} labels "
                f"{' and '.join(f'{shape}s' for shape in self._shapes)} only; "
                f"models that take {shape}s: {', '.join(others) or 'none yet'}. Else give it as a "
                f"{' or '.join(self._shapes)} (on the command line --graph {self._shapes[-1]})"
            )

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import TargetTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = None  # neither classifier nor regressor: y is a list of label lists
        tags.target_tags = TargetTags(required=True, one_d_labels=False)
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.dict = True
        tags.no_validation = True
        return tags


def check_without_checkpoint(inner: Labeler, name: str) -> None:
    """Raise DataError if a labeler that is fitted inside another one has its own checkpoint."""
    if inner.checkpoint is not None:
        raise DataError(
            f"{name}: a {type(inner).__name__} with checkpoint={str(inner.checkpoint)!r} is fitted here as a "
            "part of the model, several times; give the checkpoint to the model, whose file has all parts"
        )


def _models_that_take(shape: str) -> list[str]:
    return [name for name in MODELS if shape in model_class(name)._shapes]


def _detached(value: Any) -> Any:
    """A copy of a kernel or labeler, since `set_params` may change it; other values unchanged."""
    return clone(value) if hasattr(value, "get_params") and not isinstance(value, type) else value
