"""What models with the marginalized kernel share: honest parameters, one encoding, the support."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from fuda import HMM, DataError, load
from fuda.kernels import Delta, Linear, Polynomial
from fuda.marginalized import problem, support
from fuda.models.marginalized_perceptron import MarginalizedPerceptron
from fuda.models.marginalized_svm import MarginalizedSVM
from fuda.storage.models import _unfitted

MODELS = (MarginalizedPerceptron, MarginalizedSVM)
RNG = np.random.default_rng(0)
WORDS = ["Ana", "Bo", "Lima", "Rome", "in", "of", "the", "lives", "25", "EFE"]
X = [RNG.choice(WORDS, size).tolist() for size in RNG.integers(2, 7, 18)]
Y = [["LOC" if w in ("Lima", "Rome") else "PER" if w in ("Ana", "Bo") else "O" for w in x] for x in X]
NEW = [["Ana", "in", "Quito"], ["Rome", "of", "25"]]


def scores(model):
    return np.concatenate(list(model.decision_scores(NEW)))


@pytest.mark.parametrize("cls", MODELS)
def test_parameters_are_not_changed_and_defaults_are_resolved_at_fit(cls):
    model = cls()
    before = model.get_params()
    assert before["kernel"] is None
    assert repr(model) == f"{cls.__name__}()"
    model.fit(X, Y)
    assert model.get_params() == before
    assert model.kernel_ == Polynomial(1).normalized()
    assert model.n_iter_ >= 1
    assert (model.label_kernel_ == np.eye(3)).all()
    model.set_params(kernel=Linear()).set_params(kernel=None).fit(X, Y)
    assert model.kernel_ == Polynomial(1).normalized()


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize(
    "changed",
    [
        {"kernel": Delta()},
        {"kernel": None},
        {"kernel__degree": 5},
        {"mixing": 0.1},
        {"gap": 0.5},
        {"label_kernel": np.full((3, 3), 0.5)},
        {"prior": HMM(), "prior_form": "chain"},
        {"epochs": 1},
    ],
    ids=str,
)
def test_parameters_set_after_fit_change_neither_scores_nor_files(tmp_path, cls, changed):
    model = cls(Polynomial(3), mixing=0.3, calibrate=False).fit(X, Y)
    before = scores(model)
    model.save(tmp_path / "before.fuda")
    model.set_params(**changed)
    assert (scores(model) == before).all()
    again = pickle.loads(pickle.dumps(model))
    assert (scores(again) == before).all()
    model.save(tmp_path / "after.fuda")
    stored = load(tmp_path / "after.fuda")
    np.testing.assert_allclose(scores(stored), before, rtol=1e-12)
    assert stored.get_params(deep=False) == load(tmp_path / "before.fuda").get_params(deep=False)
    assert stored.kernel == Polynomial(3)


def test_how_to_predict_may_be_set_after_fit(tmp_path):
    model = MarginalizedPerceptron().fit(X, Y).set_params(decode="viterbi", n_jobs=1)
    model.save(tmp_path / "model.fuda")
    stored = load(tmp_path / "model.fuda")
    assert stored.decode == "viterbi"
    assert stored.predict(NEW).tolist() == model.predict(NEW).tolist()


def test_a_model_fitted_with_arrays_as_priors_is_stored(tmp_path):
    priors = [np.full((len(x), 3), 1 / 3) for x in X]
    model = MarginalizedPerceptron(prior=priors).fit(X, Y)
    model.save(tmp_path / "model.fuda")
    new = [np.full((len(x), 3), 1 / 3) for x in NEW]
    stored = load(tmp_path / "model.fuda")
    assert stored.prior == "given"
    assert stored.predict(NEW, prior=new).tolist() == model.predict(NEW, prior=new).tolist()


def test_parameters_are_keywords_in_one_order():
    orders = []
    for cls in MODELS:
        parameters = list(inspect.signature(cls).parameters.values())
        assert parameters[0].name == "kernel"
        assert all(p.kind is p.KEYWORD_ONLY for p in parameters[1:])
        orders.append([p.name for p in parameters])
    shared = [[name for name in order if name in orders[1 - i]] for i, order in enumerate(orders)]
    assert shared[0] == shared[1]
    assert not {"window", "max_nodes"} & {*orders[0], *orders[1]}


def test_files_with_parameters_of_earlier_versions():
    assert isinstance(
        _unfitted("MarginalizedPerceptron", {"window": 0, "max_nodes": None, "epochs": 3}, None),
        MarginalizedPerceptron,
    )
    for parameters in ({"max_nodes": 3}, {"window": 1}):
        with pytest.raises(DataError, match=r"no longer has; fit it again without"):
            _unfitted("MarginalizedPerceptron", parameters, None)


class Counted:
    """A feature function that counts its calls."""

    def __init__(self):
        self.seen = []

    def __call__(self, word):
        self.seen.append(word)
        return [word.lower(), word[:1]]


@pytest.mark.parametrize("cls", MODELS)
def test_fit_encodes_once_and_finds_classes_once(monkeypatch, cls):
    made = {"Problem": 0, "KernelClasses": 0}

    def counted(name):
        original = getattr(problem, name)

        def make(*arguments, **options):
            made[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(problem, name, make)

    for name in made:
        counted(name)
    function = Counted()
    cls(features=function).fit(X, Y)
    assert sorted(function.seen) == sorted({word for x in X for word in x})
    # One problem for all structures; for each of five folds one to learn from, and one to score.
    assert made == {"Problem": 11, "KernelClasses": 1}


def test_partial_fit_encodes_new_structures_once(monkeypatch):
    function = Counted()
    model = MarginalizedPerceptron(features=function, epochs=2).fit(X, Y)
    monkeypatch.setattr(support, "_RECENT", 0)
    function.seen.clear()
    corrected = [["Quito", "Ana"] * 6]
    model.partial_fit(corrected, [["LOC", "O"] * 6])
    assert sorted(function.seen) == ["Ana", "Quito"]
    assert len(model._support) == 1  # joined, and nothing encoded again
    assert list(model.predict(corrected)[0]) == ["LOC", "O"] * 6
    assert model.support_structures_[-1].observations == ("Quito", "Ana") * 6


def test_partial_fit_that_fails_changes_nothing():
    model = MarginalizedPerceptron(epochs=2).fit(X, Y)
    before, state = scores(model), dict(vars(model))
    with pytest.raises(DataError, match="is new, where others are like"):
        model.partial_fit([["Quito"]], [[3]])
    assert vars(model) == state
    assert "Quito" not in model.encoder_.vocabulary
    assert (scores(model) == before).all()
    model.partial_fit([["Quito"]], [["LOC"]])
    assert len(model.decision_scores([["Quito", "Ana"]])[0]) == 2


@pytest.mark.parametrize("cls", MODELS)
def test_support_is_prepared_once_and_never_stored(tmp_path, cls):
    model = cls().fit(X, Y)
    size = len(pickle.dumps(model))
    first = scores(model)
    prepared = model._support[0]._prepared
    for x, expected in zip(NEW, model.decision_scores(NEW), strict=True):
        np.testing.assert_allclose(model.decision_scores([x])[0], expected, rtol=1e-12, atol=1e-14)
    assert model._support[0]._prepared is prepared
    assert abs(len(pickle.dumps(model)) - size) < 1000
    again = pickle.loads(pickle.dumps(model))
    assert again._support[0]._prepared is None
    assert (scores(again) == first).all()
    model.prune(X, Y, loss=1)
    assert all(part._prepared is not prepared for part in model._support)
    assert not hasattr(clone(model), "classes_")
