"""What holds of every model alike: parameters, what `fit` resolves, and attributes."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import fuda
from fuda import CRF, HMSVM, DataError, HMPerceptron, Reranker, Tree
from fuda.kernels import RBF, Polynomial
from fuda.models.choice.combination import Combination
from fuda.registry import MODELS, model_class
from model_cases import ITERATIVE, X, Y, behaviour, make, saved

ORDER = [
    "budget",
    "combine",
    "loss",
    "smoothing",
    "base",
    "kernel",
    "label_kernel",
    "order",
    "l2",
    "l1",
    "update",
    "C",
    "slack",
    "rescale",
    "mixing",
    "gap",
    "parts",
    "prior",
    "prior_form",
    "normalized",
    "n",
    "base_weight",
    "folds",
    "class_weight",
    "features",
    "candidates",
    "window",
    "max_length",
    "pair_features",
    "decode",
    "scheme",
    "outside_penalty",
    "calibrate",
    "solver",
    "epochs",
    "max_iter",
    "tol",
    "shuffle",
    "average",
    "orders",
    "warm_start",
    "engine",
    "n_jobs",
    "cluster",
    "cache_bytes",
    "random_state",
    "checkpoint",
    "callback",
    "verbose",
]

# The arguments of methods: those that may be given by position, and all others in their order.
DATA = {
    "fit": ["X", "y", "sample_weight", "position_weight"],
    "predict_nbest": ["X", "n"],
    "explain": ["x", "node"],
    **{key: ["X", "y"] for key in ["partial_fit", "score", "objective", "oracle_report", "prune"]},
}
OPTIONS = [
    *("sample_weight", "position_weight", "X_val", "y_val", "unlabelled"),
    *("known", "prior", "classes", "loss", "least", "top", "keywords"),
]

every = pytest.mark.parametrize("name", MODELS)


def parameters_of(name):
    return list(inspect.signature(model_class(name)).parameters.values())


def live(model):
    return {name for name in model._live_params if name in model.get_params(deep=False)}


# Parameters


@every
def test_arguments_are_stored_as_they_are(name):
    cls = model_class(name)
    for parameter in parameters_of(name):
        argument = object()
        assert getattr(cls(**{parameter.name: argument}), parameter.name) is argument
        assert getattr(cls(), parameter.name) is parameter.default
    assert repr(cls()) == f"{name}()"


@every
def test_parameters_are_keyword_only_past_the_first(name):
    first, *others = parameters_of(name)
    assert first.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {parameter.kind for parameter in others} <= {inspect.Parameter.KEYWORD_ONLY}


@every
def test_parameters_come_in_one_order(name):
    names = [parameter.name for parameter in parameters_of(name)]
    assert names == sorted(names, key=ORDER.index)


@pytest.mark.parametrize("cls", [*map(model_class, MODELS), Combination])
def test_arguments_of_methods_are_named_past_the_data_and_come_in_one_order(cls):
    methods = {name: value for name, value in inspect.getmembers(cls, inspect.isfunction) if name[0] != "_"}
    for name, method in methods.items():
        _, *parameters = inspect.signature(method).parameters.values()
        positional = [p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        if positional[:1] in (["X"], ["x"]):
            assert positional == DATA.get(name, ["X"])
            options = [parameter.name for parameter in parameters[len(positional) :]]
            assert options == sorted(options, key=OPTIONS.index)


@every
def test_fit_changes_no_parameter(name):
    model = make(name)
    before = model.get_params(deep=False)
    model.fit(X, Y)
    after = model.get_params(deep=False)
    assert list(after) == list(before)
    assert all(after[key] is before[key] for key in before)
    assert repr(model) == repr(make(name))


@every
def test_clones_have_the_parameters_and_nothing_learned(name):
    fitted = make(name).fit(X, Y)
    for key in live(fitted) - {"n"}:
        assert hasattr(fitted, key)
    other = clone(fitted)
    assert repr(other) == repr(fitted)
    assert vars(other).keys() == set(other.get_params(deep=False))
    assert behaviour(other.fit(X, Y)) == behaviour(fitted)


@every
def test_nothing_set_after_fit_changes_a_fitted_model(name, tmp_path):
    model = make(name).fit(X, Y)
    before, stored = behaviour(model), saved(model, tmp_path)
    names = model.get_params(deep=False).keys() - live(model)
    model.set_params(**{key: object() for key in names})
    assert behaviour(model) == before
    assert saved(model, tmp_path) == stored
    assert behaviour(fuda.load(tmp_path / "saved.fuda")) == before
    assert behaviour(pickle.loads(pickle.dumps(model))) == before


KERNELS = [name for name in MODELS if "kernel" in inspect.signature(model_class(name)).parameters]


@pytest.mark.parametrize("name", KERNELS)
def test_parameters_of_a_kernel_set_after_fit_change_nothing(name, tmp_path):
    model = make(name, kernel=RBF(0.3)).fit(X, Y)
    before, stored = behaviour(model), saved(model, tmp_path)
    model.set_params(kernel__gamma=20.0)
    assert behaviour(model) == before
    assert saved(model, tmp_path) == stored
    assert model.fit(X, Y).kernel_ == RBF(20.0)
    assert saved(model, tmp_path) != stored


@pytest.mark.parametrize("name", KERNELS)
def test_no_kernel_is_the_default_kernel(name, tmp_path):
    model = make(name, kernel=RBF(0.3)).fit(X, Y).set_params(kernel=None).fit(X, Y)
    assert model.kernel is None
    assert behaviour(model) == behaviour(make(name).fit(X, Y))
    model.save(tmp_path / "model.fuda")
    loaded = fuda.load(tmp_path / "model.fuda")
    assert loaded.kernel is None
    assert loaded.kernel_ == model.kernel_
    assert behaviour(loaded) == behaviour(model)


@every
def test_a_loaded_model_has_the_parameters_of_the_fit(name, tmp_path):
    model = make(name).fit(X, Y)
    model.save(tmp_path / "model.fuda")
    loaded = fuda.load(tmp_path / "model.fuda")
    assert repr(loaded) == repr(model)
    assert saved(loaded, tmp_path) == saved(model, tmp_path)


def test_a_stored_default_does_not_depend_on_the_default_of_today(tmp_path, monkeypatch):
    model = make("HMSVM").fit(X, Y)
    model.save(tmp_path / "model.fuda")
    before = behaviour(model)
    monkeypatch.setattr(HMSVM, "_defaults_by", lambda *_: {"kernel": Polynomial(3)})
    loaded = fuda.load(tmp_path / "model.fuda")
    assert loaded.kernel is None
    assert behaviour(loaded) == before
    assert behaviour(loaded.fit(X, Y)) != before


def test_a_model_may_be_saved_before_and_after_its_base_is_changed(tmp_path):
    base = CRF(features="word")
    model = make("Reranker", base=base).fit(X, Y)
    stored = saved(model, tmp_path)
    base.set_params(l2=77.0)
    assert saved(model, tmp_path) == stored
    assert fuda.load(tmp_path / "saved.fuda").base.l2 == 1.0


def test_defaults_are_resolved_at_fit():
    assert make("HMSVM").fit(X, Y).kernel_ == 3 * Polynomial(1).normalized()
    assert HMPerceptron().fit(X, Y).kernel_ is None
    model = Reranker(folds=2, n=2).fit(X, Y)
    assert model.kernel_ == Polynomial(2).normalized()
    assert type(model.base_) is CRF
    assert model.get_params(deep=False)["base"] is model.get_params(deep=False)["mixing"] is None
    assert 0 < model.mixing_ < 1


@pytest.mark.parametrize("name", ["CRF", "HMM", "MEMM", "SemiCRF"])
def test_decoding_is_chosen_when_predicting(name, tmp_path):
    model = make(name).fit(X, Y)
    posterior = make(name, decode="posterior").fit(X, Y)
    model.set_params(decode="posterior")
    assert behaviour(model) == behaviour(posterior)
    assert saved(model, tmp_path) == saved(posterior, tmp_path)
    with pytest.raises(DataError, match="decode='nothing': choose viterbi or posterior"):
        model.set_params(decode="nothing").predict(X)


@pytest.mark.parametrize("name", ["CRF", "MEMM", "HMPerceptron", "HMSVM"])
def test_scheme_and_threads_are_chosen_when_predicting(name, tmp_path):
    model, there = make(name).fit(X, [["B-X", *["O"] * (len(x) - 1)] for x in X]), make(name)
    there.set_params(scheme="IOB2", n_jobs=1).fit(X, [["B-X", *["O"] * (len(x) - 1)] for x in X])
    for predictor in (model, there):
        with pytest.raises(DataError, match="scheme IOE1"):
            predictor.set_params(scheme="IOE1").predict(X)
    model.set_params(scheme="IOB2", n_jobs=1)
    there.set_params(scheme="IOB2")
    assert model.predict(X).tolist() == there.predict(X).tolist()
    assert saved(model, tmp_path) == saved(there, tmp_path)
    model.set_params(n_jobs="many")
    for call in (model.predict, model.predict_marginals, lambda X: model.predict_nbest(X, 1)):
        with pytest.raises(DataError, match="n_jobs='many'"):
            call(X)


@pytest.mark.parametrize("name", ["CRF", "MEMM", "HMPerceptron", "HMSVM", "MarginalizedPerceptron"])
def test_a_scheme_without_any_prediction_is_refused_by_fit(name):
    """A training of hours would give a model, and a file, that refuses whatever it is asked."""
    trees = [Tree(x, [-1, *range(len(x) - 1)]) for x in X]
    with pytest.raises(DataError, match="structure 0 is a tree; set scheme=None"):
        make(name, scheme="IOB2").fit(trees, [["O"] * len(x) for x in X])
    with pytest.raises(DataError, match="the label 'place' is not of the scheme IOB2"):
        make(name, scheme="IOB2").fit(X, [["place", *["O"] * (len(x) - 1)] for x in X])


def test_verbosity_set_after_fit_is_saved(tmp_path):
    """The command is verbose on a terminal, and the file must not depend on that."""
    model = make("HMSVM", verbose=True).fit(X, Y).set_params(verbose=False)
    assert saved(model, tmp_path) == saved(make("HMSVM").fit(X, Y), tmp_path)


def test_the_stochastic_solver_is_seeded():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [CRF(solver="sgd", max_iter=3).fit(X, Y).weights_ for _ in range(2)]
    np.testing.assert_array_equal(*fits)


def test_partial_fit_remembers_the_parameters(tmp_path):
    model = HMPerceptron(epochs=7).partial_fit(X, Y)
    model.save(tmp_path / "model.fuda")
    assert fuda.load(tmp_path / "model.fuda").epochs == 7
    assert model.epochs == 7
    model.set_params(epochs=3).partial_fit(X, Y).save(tmp_path / "model.fuda")
    assert fuda.load(tmp_path / "model.fuda").epochs == 7


@pytest.mark.parametrize("cache_bytes", [0, 100, 2_000])
@pytest.mark.parametrize("kernel", [RBF(0.3), Polynomial(2)], ids=str)
@pytest.mark.parametrize("name", ["HMPerceptron", "HMSVM"])
def test_a_small_cache_gives_the_same_model(name, kernel, cache_bytes, tmp_path):
    model = make(name, kernel=kernel).fit(X, Y)
    other = make(name, kernel=kernel, cache_bytes=cache_bytes).fit(X, Y)
    other.save(tmp_path / "model.fuda")
    loaded = fuda.load(tmp_path / "model.fuda")
    assert loaded.cache_bytes == cache_bytes
    for fitted in (other, loaded):
        assert fitted.predict(X).tolist() == model.predict(X).tolist()
        for marginals, expected in zip(fitted.predict_marginals(X), model.predict_marginals(X), strict=True):
            np.testing.assert_allclose(marginals, expected, atol=2e-3)


@pytest.mark.parametrize("name", ["HMPerceptron", "HMSVM", "Reranker"])
@pytest.mark.parametrize("cache_bytes", [-1, 1.5, None, "1 GiB"])
def test_a_cache_is_a_number_of_bytes(name, cache_bytes):
    with pytest.raises(DataError, match=r"cache_bytes=.*: give a whole number of at least 0"):
        make(name, cache_bytes=cache_bytes).fit(X, Y)


# Attributes


@every
@pytest.mark.parametrize("kind", [str, int])
def test_labels_are_an_array_and_predictions_are_plain(name, kind, tmp_path):
    number = {"B": 7, "I": 1, "O": 0}
    y = Y if kind is str else [[number[label] for label in labels] for labels in Y]
    model = make(name).fit(X, y)
    model.save(tmp_path / "model.fuda")
    for fitted in (model, fuda.load(tmp_path / "model.fuda")):
        assert isinstance(fitted.classes_, np.ndarray)
        assert fitted.classes_.dtype == object
        assert fitted.classes_.tolist() == sorted({label for labels in y for label in labels})
        assert {type(label) for label in fitted.classes_} == {kind}
        assert {type(label) for labels in fitted.predict(X) for label in labels} == {kind}


@every
def test_odd_labels_stay_as_they_are(name, tmp_path):
    odd = {"B": "\x00", "I": "a\x00", "O": "\ud800"}
    model = make(name).fit(X, [[odd[label] for label in labels] for labels in Y])
    assert set(model.classes_) == set(odd.values())
    model.save(tmp_path / "model.fuda")
    assert set(fuda.load(tmp_path / "model.fuda").classes_) == set(odd.values())


def test_iterations_are_counted():
    assert make("CRF").fit(X, Y).n_iter_ > 3
    assert make("MEMM").fit(X, Y).n_iter_ > 3
    assert make("HMSVM").fit(X, Y).n_iter_ > 1
    model = HMPerceptron(epochs=1).fit(X, Y)
    assert model.n_iter_ == 1
    assert model.partial_fit(X, Y).n_iter_ == 2
    assert make("Reranker", epochs=1).fit(X, Y).n_iter_ == 1
    for name in ITERATIVE:
        assert not hasattr(make(name), "n_iter_")


@pytest.mark.parametrize("name", ITERATIVE)
def test_iterations_are_in_files_that_hold_their_mistakes(name, tmp_path):
    model = make(name).fit(X, Y)
    saved(model, tmp_path)
    loaded = fuda.load(tmp_path / "saved.fuda")
    assert hasattr(loaded, "n_iter_") == (name == "HMPerceptron")
    if name == "HMPerceptron":
        assert loaded.n_iter_ == model.n_iter_ == len(model.mistakes_)
