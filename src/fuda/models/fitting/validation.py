"""Validation: the score on other data after every iteration, and the best iteration.

A training is stopped when the score has been below its best for `PATIENCE` iterations, and returns
to the state of the iteration with the best score, the last of equal ones. So the model is the one
that the same fit would give if it ended after `n_iter_` iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fuda.checks import check_arrays, count_in
from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded
from fuda.data.labels import flat_labels
from fuda.errors import DataError
from fuda.metrics import evaluate
from fuda.schemes import OUTSIDE
from fuda.storage.checkpoint import Learner

PATIENCE = 10
State = tuple[dict[str, Any], dict[str, np.ndarray]]


class Held(NamedTuple):
    """Validation data, which training does not learn from.

    Attributes
    ----------
    encoded : Encoded
        The structures, by the encoder of the training data.
    labels : list of lists
        Their labels, None where not known.
    """

    encoded: Encoded
    labels: list[list[Any]]


def score(y_true: list[list[Any]], y_pred: list[list[Any]]) -> float:
    """The validation score.

    It is the F1 of entities where labels encode entities, else the F1 of labels where one of them
    is ``O``, and else the accuracy.

    Parameters
    ----------
    y_true, y_pred : lists of lists
        The true and predicted labels of each structure; true labels may be None.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> score([["B-PER", "O"]], [["O", "O"]]), score([["N", "V"]], [["N", "N"]])
    (0.0, 0.5)
    """
    report = evaluate(y_true, y_pred)
    if report.entity_scores is not None:
        return report.entity_scores.micro.f1
    return report.label_scores.micro.f1 if OUTSIDE in report.labels else report.accuracy


def score_name(labels: Iterable[Any]) -> str:
    """The name of the score for structures with these labels.

    >>> score_name(["B-PER", "O"]), score_name(["A", "O"]), score_name([1, 2])
    ('entity F1', 'label F1', 'accuracy')
    """
    report = evaluate([list(labels)], [list(labels)])
    if report.entity_scores is not None:
        return "entity F1"
    return "label F1" if OUTSIDE in report.labels else "accuracy"


class Validation:
    """A training with its validation, stored together in a checkpoint.

    Parameters
    ----------
    training : Learner
        The training.
    held : Held or None
        The validation data; None for no validation.
    predict : callable
        From encoded structures to a list of labels per structure, by what has been learned so far.
    snapshot, return_to : callable, optional
        Returns the current state; goes back to such a state. By default those of the training.

    Attributes
    ----------
    curve : list of float
        The score after each iteration.
    """

    def __init__(
        self,
        training: Learner,
        held: Held | None,
        predict: Callable[[Encoded], list[list[Any]]],
        snapshot: Callable[[], State] | None = None,
        return_to: Callable[[dict[str, Any], dict[str, np.ndarray]], None] | None = None,
    ) -> None:
        self.training, self.held, self.predict = training, held, predict
        self.snapshot = snapshot or (lambda: training.state(final=True))
        self.return_to = return_to or training.restore
        self.curve: list[float] = []
        self._best: State | None = None

    def measure(self) -> float | None:
        """Score the model after an iteration; None without validation."""
        if self.held is None:
            return None
        current = score(self.held.labels, self.predict(self.held.encoded))
        if not self.curve or current >= max(self.curve):
            values, arrays = self.snapshot()
            self._best = values, {name: array.copy() for name, array in arrays.items()}
        self.curve = [*self.curve, current]
        return current

    @property
    def is_over(self) -> bool:
        """Whether the score has been below its best for too long."""
        return bool(self.curve) and int(np.argmax(self.curve[::-1])) >= PATIENCE

    def return_to_best(self) -> bool:
        """Return to the state of the best iteration; False if there is none to return to."""
        if self._best is None:
            return False
        self.return_to(*self._best)
        self._best = None
        return True

    def state(self, final: bool = False) -> State:
        """Return what the next iteration and the result depend on."""
        values, arrays = self.training.state(final)
        if self.held is None:
            return values, arrays
        values = values | {"scores": len(self.curve)}
        arrays = arrays | {"validation_curve": np.array(self.curve, dtype=np.float64)}
        if self._best is not None:
            values = values | {"best": self._best[0]}
            arrays |= {f"best_{name}": array for name, array in self._best[1].items()}
        return values, arrays

    def restore(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a `state()`; raises DataError where it does not fit this problem."""
        if self.held is None:
            self.training.restore(values, arrays)
            return
        best = {name[5:]: array for name, array in arrays.items() if name.startswith("best_")}
        current = {name: array for name, array in arrays.items() if not name.startswith("best_")}
        curve = current.pop("validation_curve", np.empty(0))
        check_arrays({"validation_curve": curve}, {"validation_curve": (count_in(values, "scores"),)})
        best_values = values.get("best")
        if not isinstance(best_values, dict | None) or (best_values is None and best):
            raise DataError("its best iteration is not described")
        if best_values is not None:
            self.return_to(best_values, best)  # a state that does not fit raises now, not at the end
        self.training.restore({key: value for key, value in values.items() if key != "best"}, current)
        self.curve = curve.tolist()
        self._best = None if best_values is None else (best_values, best)


def validation_data(model: Any, encoder: Any, shape: str, X: Any, y: Any) -> Held | None:
    """Encode validation data.

    Parameters
    ----------
    model : Labeler
        The model that is fitted.
    encoder : WindowEncoder or TemplateEncoder
        Its encoder.
    shape : str
        The shape of its training data.
    X, y : list of structures, list of lists
        The parameters `X_val` and `y_val` of its fit.

    Returns
    -------
    Held or None
        The data; None if `fit` was given none.
    """
    if X is None and y is None:
        return None
    if X is None or y is None:
        raise DataError("X_val and y_val belong together; give both, or none")
    if "callback" not in model._get_param_names():
        raise DataError(
            f"X_val: {type(model).__name__} learns in one pass, which has no iterations to choose from; "
            "leave X_val and y_val out"
        )
    try:
        structures = model._checked_structures(X)
        if not any(structures):
            raise DataError("there is nothing to validate on; give at least one structure")
        corpus = Corpus(structures)
        if corpus.shape != shape:
            raise DataError(f"structures are {corpus.shape}s, but those of X are {shape}s; give {shape}s")
        labels = flat_labels(y, corpus)
        if all(label is None for label in labels):
            raise DataError("no node has a label: every label in y_val is None; give labels")
        encoded = encoder.encode_corpus(corpus)
    except DataError as error:
        raise DataError(f"validation data: {error}") from None
    encoded.check_values()
    return Held(encoded, [labels[a:b] for a, b in pairwise(corpus.offsets.tolist())])
