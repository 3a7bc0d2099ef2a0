"""Validation data: the curve, early stopping, the best iteration, checkpoints, callbacks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import fuda.storage.checkpoint as checkpoints
from fuda import CRF, HMM, DataError, HMPerceptron, Tree
from fuda.models.fitting import validation
from fuda.models.fitting.validation import score
from reliability.trainings import LEARNERS, RESUMABLE, data_for

every = pytest.mark.parametrize("name", RESUMABLE)
FEW = [
    "crf",
    "crf, sgd",
    "hm-perceptron, pushed",
    "hm-svm",
    "marginalized, prior",
    "marginalized-svm",
    "reranker",
]


class Stopped(BaseException):
    """What no one catches."""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(validation, "PATIENCE", 2)
    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN", 0.0)


def fitted(name, validated=True, **parameters):
    X_val, y_val = data_for(name, 6, seed=1)
    validation = {"X_val": X_val, "y_val": y_val} if validated else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(LEARNERS[name]).set_params(**parameters).fit(*data_for(name, 8), **validation)


def best(curve):
    """The number of the best iteration, the last of equal ones."""
    return len(curve) - int(np.argmax(curve[::-1]))


def stored(model, path):
    model.save(path)
    return path.read_bytes()


@every
def test_the_best_iteration_is_kept(name, tmp_path):
    seen = []
    model = fitted(name, callback=lambda iteration: seen.append(iteration.validation))
    curve = model.validation_curve_
    assert curve == seen
    assert all(0 <= value <= 1 for value in curve)
    assert model.n_iter_ == best(curve)
    assert len(curve) <= best(curve) + 2

    def stop(iteration):
        if iteration.iteration == model.n_iter_:
            raise StopIteration

    if "marginalized" in name or name == "trees":  # folds of the calibration stop there too
        model.set_params(calibrate=False, decode="posterior")
        again = fitted(name, False, callback=stop, calibrate=False, decode="posterior")
        X = data_for(name, 6, seed=2)[0]
        for a, b in zip(model.decision_scores(X), again.decision_scores(X), strict=True):
            np.testing.assert_array_equal(a, b)
    else:
        again = fitted(name, False, callback=stop)
        assert stored(model, tmp_path / "a") == stored(again, tmp_path / "b")


@pytest.mark.parametrize("name", FEW)
def test_a_killed_fit_with_validation_continues(name, tmp_path, monkeypatch):
    path, out, save = tmp_path / "state", tmp_path / "model", checkpoints._File.save
    whole = fitted(name)
    expected, saves = stored(whole, out), []

    def stopping_at(number):
        def save_and_stop(self, finished=False):
            save(self, finished)
            saves.append(finished)
            if len(saves) == number:
                raise Stopped

        saves.clear()
        monkeypatch.setattr(checkpoints._File, "save", save_and_stop)

    stopping_at(None)
    assert stored(fitted(name, checkpoint=path), out) == expected
    total = len(saves)
    path.unlink()
    for number in (1, total // 2, total - 1, total):
        stopping_at(number)
        with pytest.raises(Stopped):
            fitted(name, checkpoint=path)
        stopping_at(None)
        resumed = fitted(name, checkpoint=path)
        assert stored(resumed, out) == expected, number
        assert resumed.validation_curve_ == whole.validation_curve_
        assert resumed.n_iter_ == whole.n_iter_
        with pytest.raises(DataError, match="another fit"):
            fitted(name, validated=False, checkpoint=path)
        path.unlink()


def test_the_score_fits_the_labels():
    assert score([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]]) == 0.0
    assert score([["A", "O", "O", "A"]], [["A", "O", "O", "O"]]) == pytest.approx(2 / 3)
    assert score([["A", "B", None]], [["A", "A", "A"]]) == 0.5
    assert score([[1, 2]], [[1, 2]]) == 1.0


def test_labels_that_were_not_trained_on_are_wrong_and_empty_structures_are_left_out():
    X, y = data_for("crf", 8)
    model = CRF(features="word").fit(X, y, X_val=[["Ana", "new"], []], y_val=[["A", "Z"], []])
    assert max(model.validation_curve_) <= 0.5


def test_an_interrupt_keeps_the_best_iteration():
    X, y = data_for("crf", 8)
    for kind in (CRF, HMPerceptron):

        def interrupt(iteration):
            if iteration.iteration == 4:
                raise KeyboardInterrupt

        model = kind(features="word", callback=interrupt)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y, X_val=X, y_val=y)
        assert model.n_iter_ == best(model.validation_curve_)


@pytest.mark.parametrize(
    ("model", "validation", "message"),
    [
        (CRF(), {"X_val": [["a"]]}, "X_val and y_val belong together"),
        (CRF(), {"X_val": [["a"]], "y_val": [["A", "B"]]}, "validation data: structure 0 has 1 nodes but 2"),
        (CRF(), {"X_val": [[3]], "y_val": [["A"]]}, "validation data: structure 0, node 0"),
        (CRF(), {"X_val": [], "y_val": []}, "nothing to validate on"),
        (CRF(), {"X_val": [["a"]], "y_val": [[None]]}, "every label in y_val is None"),
        (CRF(), {"X_val": [Tree(["a"], [-1])], "y_val": [["A"]]}, "are trees, but those of X are sequences"),
        (HMM(), {"X_val": [["a"]], "y_val": [["A"]]}, "HMM learns in one pass"),
    ],
)
def test_what_cannot_be_validated_on_is_refused(model, validation, message):
    with pytest.raises(DataError, match=message):
        model.fit([["a", "b"]], [["A", "B"]], **validation)
