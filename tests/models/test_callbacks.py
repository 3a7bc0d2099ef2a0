"""Callbacks, which are called at every iteration of every model that has iterations."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import fuda
from fuda import CRF, HMM, MEMM, DataError, HMPerceptron
from fuda.progress import Iteration
from model_cases import ITERATIVE, X, Y, behaviour, make, saved


class Recorder:
    """Keeps what it gets, and stops at an iteration."""

    def __init__(self, last=None, error=StopIteration):
        self.seen, self.last, self.error = [], last, error

    def __call__(self, iteration):
        self.seen.append(iteration)
        if iteration.iteration == self.last:
            raise self.error


# So that training takes two iterations at least.
LONG = {"HMPerceptron": {"epochs": 3, "features": lambda _: [], "window": 0, "order": 0}}
LONG["Reranker"] = {"epochs": 3, "base_weight": 1e-6, "normalized": True}
SOLVERS = [("CRF", {"solver": solver, "max_iter": 5, "tol": 0.0}) for solver in ("lbfgs", "cg", "sgd")]
LEARNERS = [*SOLVERS, *((name, LONG.get(name, {})) for name in ITERATIVE if name != "CRF")]
iterative = pytest.mark.parametrize(
    ("name", "parameters"),
    [
        pytest.param(
            *case,
            id="-".join([case[0], *([case[1]["solver"]] if case[0] == "CRF" else [])]),
        )
        for case in LEARNERS
    ],
)


@iterative
@pytest.mark.filterwarnings("ignore:.*has not converged")
def test_a_callback_is_called_after_every_iteration(name, parameters):
    callback = Recorder()
    model = make(name, **parameters, callback=callback).fit(X, Y)
    assert len(callback.seen) == model.n_iter_ >= 2
    assert {type(record) for record in callback.seen} == {Iteration}
    assert [record.iteration for record in callback.seen] == list(range(1, model.n_iter_ + 1))
    seconds = [record.seconds for record in callback.seen]
    assert seconds == sorted(seconds)
    assert seconds[0] >= 0
    assert all(record.objective is not None or record.mistakes is not None for record in callback.seen)


@iterative
@pytest.mark.filterwarnings("ignore:.*has not converged")
def test_callbacks_get_what_the_model_stores(name, parameters):
    callback = Recorder()
    model = make(name, **parameters, callback=callback).fit(X, Y)
    if hasattr(model, "result_"):
        assert callback.seen == model.result_.history
    if name == "HMSVM":
        assert [record.gap for record in callback.seen] == [round.gap for round in model.history_]
        assert [record.objective for record in callback.seen] == [round.primal for round in model.history_]
    if name == "HMPerceptron":
        assert [record.mistakes for record in callback.seen] == [counts.nodes for counts in model.mistakes_]
    if name == "Reranker":
        assert [record.mistakes for record in callback.seen] == model.mistakes_


@iterative
def test_a_callback_ends_the_training_without_a_warning(name, parameters, tmp_path):
    model = make(name, **parameters, callback=Recorder(last=1)).fit(X, Y)
    assert model.n_iter_ == 1
    assert [len(labels) for labels in model.predict(X)] == [len(x) for x in X]
    saved(model, tmp_path)


@iterative
@pytest.mark.parametrize("error", [ValueError, KeyError])
def test_after_another_exception_the_model_is_not_fitted(name, parameters, error):
    model = make(name, **parameters).set_params(callback=Recorder(last=2, error=error))
    with pytest.raises(error):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert len(model.callback.seen) == 2


@pytest.mark.parametrize("name", ITERATIVE)
def test_a_failed_fit_leaves_nothing_of_an_earlier_one(name):
    model = make(name).fit(X, Y)
    model.predict(X)
    with pytest.raises(KeyError):
        model.set_params(callback=Recorder(last=1, error=KeyError)).fit(X, Y)
    assert vars(model).keys() == set(model.get_params(deep=False))


@pytest.mark.parametrize("name", ITERATIVE)
def test_a_callback_is_not_stored(name, tmp_path):
    stored = saved(make(name).fit(X, Y), tmp_path)
    model = make(name, callback=Recorder())
    assert saved(model.fit(X, Y), tmp_path) == stored
    assert fuda.load(tmp_path / "saved.fuda").callback is None


@pytest.mark.parametrize("name", ITERATIVE)
def test_models_with_callbacks_are_pickled_and_cloned(name):
    model = make(name, callback=Recorder()).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert again.callback.seen == model.callback.seen
    assert behaviour(again) == behaviour(model)
    assert isinstance(clone(model).callback, Recorder)
    unpicklable = make(name, callback=lambda _: None).fit(X, Y).set_params(callback=None)
    assert behaviour(pickle.loads(pickle.dumps(unpicklable))) == behaviour(unpicklable)


@pytest.mark.parametrize("name", ITERATIVE)
def test_what_is_not_a_callback_is_refused(name):
    with pytest.raises(DataError, match="callback=3: give a function of one argument"):
        make(name, callback=3).fit(X, Y)


def test_callbacks_of_partial_fit_and_of_a_base():
    callback = Recorder()
    model = HMPerceptron(callback=callback).partial_fit(X, Y).partial_fit(X, Y)
    assert [record.iteration for record in callback.seen] == [1, 1]
    assert model.n_iter_ == 2
    seen = []
    make("Reranker", base=MEMM(features="word", callback=lambda record: seen.append(record))).fit(X, Y)
    assert sum(record.iteration == 1 for record in seen) == 3  # two folds, and all


def test_a_checkpoint_is_written_before_the_callback_is_called(tmp_path, monkeypatch):
    monkeypatch.setattr("fuda.storage.checkpoint.SECONDS_BETWEEN", 0.0)
    path, stored = tmp_path / "state", []
    CRF(features="word", checkpoint=path, callback=lambda _: stored.append(path.exists())).fit(X, Y)
    assert all(stored)
    path.unlink()
    with pytest.raises(ValueError, match="enough"):
        CRF(features="word", checkpoint=path, callback=Recorder(3, ValueError("enough"))).fit(X, Y)
    resumed = Recorder()
    whole = CRF(features="word").fit(X, Y)
    again = CRF(features="word", checkpoint=path, callback=resumed).fit(X, Y)
    assert [record.iteration for record in resumed.seen] == list(range(4, whole.n_iter_ + 1))
    np.testing.assert_array_equal(again.weights_, whole.weights_)


def test_hmm_has_no_iterations():
    assert "callback" not in HMM().get_params()
    assert not hasattr(HMM().fit(X, Y), "n_iter_")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("CRF", {"max_iter": 1}),
        ("CRF", {"max_iter": 1, "solver": "sgd"}),
        ("MEMM", {"max_iter": 1}),
        ("HMSVM", {"max_iter": 1}),
        ("MarginalizedSVM", {"epochs": 1, "tol": 0.0, "calibrate": False}),
    ],
)
def test_a_warning_names_the_line_that_called_fit(name, parameters):
    with pytest.warns(ConvergenceWarning, match="not converged") as caught:
        make(name, **parameters).fit(X, Y)
    assert {warning.filename for warning in caught} == {__file__}
