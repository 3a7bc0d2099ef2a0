"""The estimator that all labelers share, by the HMM: scikit-learn's ways with whole structures."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    train_test_split,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fuda
from fuda import CRF, HMM, HMSVM, DataError, MarginalizedPerceptron, Reranker, Sequence, Template, Tree
from fuda.data.structures import as_structures
from fuda.formats.dataset import Dataset, Record
from fuda.kernels import RBF, Delta, Polynomial
from fuda.metrics import entity_f1_scorer, label_f1_scorer, token_accuracy_scorer

NAMES, CITIES = ["Ana", "Bo", "Cy", "Di"], ["Lima", "Oslo", "Rome"]
UNEQUAL = [[name, "lives", "in", city] for name in NAMES for city in CITIES] + [[n, "sleeps"] for n in NAMES]
UNEQUAL_Y = [["B-PER", "O", "O", "B-LOC"]] * 12 + [["B-PER", "O"]] * 4
EQUAL, EQUAL_Y = UNEQUAL[:12], UNEQUAL_Y[:12]
TREES = [Tree(x, [1, -1, 3, 1]) for x in EQUAL]
DATA = {"unequal": (UNEQUAL, UNEQUAL_Y), "equal": (EQUAL, EQUAL_Y), "trees": (TREES, EQUAL_Y)}


def lower(words):
    return [word.lower() for word in words]


def lower_all(X):
    return [lower(x) for x in X]


def initial(word):
    return [f"initial={word[:1]}"]


@pytest.mark.parametrize("name", DATA)
def test_fit_predict_score(name):
    X, y = DATA[name]
    model = HMM()
    assert model.fit(X, y) is model
    predicted = model.predict(X)
    assert isinstance(predicted, np.ndarray)
    assert predicted.dtype == object
    assert predicted.shape == (len(X),)
    assert all(type(labels) is list for labels in predicted)
    assert all(type(label) is str for labels in predicted for label in labels)
    assert predicted.tolist() == y
    assert model.score(X, y) == 1.0
    assert model.classes_.tolist() == ["B-LOC", "B-PER", "O"]
    assert model.shape_ == ("tree" if name == "trees" else "sequence")
    marginals = model.predict_marginals(X)
    assert marginals.shape == (len(X),)
    assert [m.shape for m in marginals] == [(len(x), 3) for x in X]


def test_every_way_to_give_the_same_data():
    expected = HMM().fit(EQUAL, EQUAL_Y)._arrays()
    for X, y in [
        (iter(EQUAL), iter(EQUAL_Y)),
        ((x for x in EQUAL), (labels for labels in EQUAL_Y)),
        (tuple(map(tuple, EQUAL)), tuple(map(tuple, EQUAL_Y))),
        ([Sequence(x) for x in EQUAL], EQUAL_Y),
        (np.array(EQUAL), np.array(EQUAL_Y)),
        (np.array(EQUAL, dtype=object), np.array(EQUAL_Y, dtype=object)),
        (EQUAL, [np.array(labels) for labels in EQUAL_Y]),
        (EQUAL, [(label for label in labels) for labels in EQUAL_Y]),
    ]:
        model = HMM().fit(X, y)
        assert model.classes_.tolist() == ["B-LOC", "B-PER", "O"]
        assert all(type(label) is str for label in model.classes_)
        for name, array in model._arrays().items():
            np.testing.assert_array_equal(array, expected[name])


def test_integer_labels_stay_integers():
    model = HMM().fit(EQUAL, [np.array([2, 0, 0, 10])] * len(EQUAL))
    assert model.classes_.tolist() == [0, 2, 10]
    assert [type(label) for label in model.predict(EQUAL)[0]] == [int] * 4
    assert model.score(EQUAL, [[2, 0, 0, 10]] * len(EQUAL)) == 1.0


def test_labels_not_known():
    y = [[None, "O", "O", "B-LOC"], *EQUAL_Y[1:-1], [None] * 4]
    model = HMM().fit(EQUAL, y)
    assert model.classes_.tolist() == ["B-LOC", "B-PER", "O"]
    assert model.predict(EQUAL[:1])[0] == EQUAL_Y[0]
    assert model.score(EQUAL, y) == 1.0  # over the nodes whose label is known


def test_empty_X_has_no_predictions():
    model = HMM().fit(EQUAL, EQUAL_Y)
    for answer in (model.predict([]), model.predict_marginals([]), model.predict_nbest([], 2)):
        assert answer.shape == (0,)
        assert answer.dtype == object
    assert model.score([], []) == 0.0


def test_parameters_and_clone():
    model = HMM(smoothing=0.5, decode="posterior", features=initial, window=2)
    assert model.get_params() == {
        "smoothing": 0.5,
        "class_weight": None,
        "decode": "posterior",
        "features": initial,
        "window": 2,
    }
    fitted = clone(model).fit(EQUAL, EQUAL_Y)
    other = clone(fitted)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "classes_")
    assert other.set_params(window=0, smoothing=1.0) is other
    assert other.window == 0
    with pytest.raises(ValueError, match="Invalid parameter"):
        other.set_params(colour="red")
    template = Template("U0:%x[0,0]\nB")
    assert clone(HMM(features=template)).features == template


@pytest.mark.parametrize("parameters", [{}, {"features": "S3", "window": 7}, {"features": initial}])
def test_fit_changes_no_parameter_and_no_data(parameters):
    model = HMM(**parameters)
    before = model.get_params()
    X, y = copy.deepcopy(EQUAL), copy.deepcopy(EQUAL_Y)
    model.fit(X, y, sample_weight=np.ones(len(X)))
    model.predict(X)
    assert model.get_params() == before
    assert (X, y) == (EQUAL, EQUAL_Y)


def test_fitting_again_forgets_the_first_time():
    model = HMM().fit([["q", "r"]], [["1", "2"]])
    model.fit(EQUAL, EQUAL_Y)
    for a, b in zip(model._arrays().values(), HMM().fit(EQUAL, EQUAL_Y)._arrays().values(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_model_whose_fit_failed_is_not_fitted():
    model = HMM().fit(EQUAL, EQUAL_Y).set_params(features=Template("U0:%x[0,0]\nB1:%x[0,0]\nB"))
    with pytest.raises(DataError, match="label pairs"):
        model.fit(EQUAL, EQUAL_Y)
    with pytest.raises(NotFittedError):
        model.predict(EQUAL)


@pytest.mark.parametrize(
    "call",
    [
        lambda model, path: model.predict(EQUAL),
        lambda model, path: model.predict([]),
        lambda model, path: model.predict_marginals(EQUAL),
        lambda model, path: model.predict_nbest(EQUAL, 2),
        lambda model, path: model.score(EQUAL, EQUAL_Y),
        lambda model, path: model.save(path),
    ],
)
def test_not_fitted(call, tmp_path):
    with pytest.raises(NotFittedError, match="fit"):
        call(HMM(), tmp_path / "model.fuda")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", DATA)
def test_cross_val_predict(name):
    X, y = DATA[name]
    predicted = cross_val_predict(HMM(features="spelling", window=1), X, y, cv=4)
    assert predicted.shape == (len(X),)
    assert [len(labels) for labels in predicted] == [len(labels) for labels in y]


def dataset(X, y):
    return Dataset([Record(x, labels) for x, labels in zip(as_structures(X), y, strict=True)])


@pytest.mark.parametrize("name", DATA)
def test_cross_val_predict_of_probabilities(name):
    """Without y, which scikit-learn would take for one class per structure; the data have it."""
    data = dataset(*DATA[name])
    tables = cross_val_predict(HMM(window=1), data, method="predict_proba", cv=3)
    assert [len(table) for table in tables] == [len(record.structure) for record in data.records]
    train, test = next(iter(KFold(3).split(data.X)))
    by_hand = HMM(window=1).fit(data[train]).predict_marginals(data[test].X)
    for table, expected in zip(tables[test], by_hand, strict=True):
        np.testing.assert_array_equal(table, expected)


def test_a_dataset_is_data_with_labels():
    X, y = next(iter(DATA.values()))
    data = dataset(X, y)
    model = HMM(window=1).fit(X, y)
    for labelled in (data, data.records):
        again = HMM(window=1).fit(labelled)
        assert list(map(list, again.predict(labelled))) == list(map(list, model.predict(X)))
        assert [len(table) for table in again.predict_proba(labelled)] == list(map(len, y))
    with pytest.raises(DataError, match="y is None"):
        HMM().fit(X)


@pytest.mark.parametrize("name", DATA)
def test_cross_val_score_with_two_processes(name):
    X, y = DATA[name]
    alone = cross_val_score(HMM(window=1), X, y, cv=3)
    assert len(alone) == 3
    np.testing.assert_array_equal(cross_val_score(HMM(window=1), X, y, cv=3, n_jobs=2), alone)


@pytest.mark.parametrize("name", DATA)
def test_grid_search(name):
    X, y = DATA[name]
    grid = {"smoothing": [0.01, 1.0], "window": np.arange(2), "features": ["word", "S2", initial]}
    scoring = {"tokens": token_accuracy_scorer, "labels": label_f1_scorer, "entities": entity_f1_scorer}
    search = GridSearchCV(HMM(), grid, cv=2, scoring=scoring, refit="entities").fit(X, y)
    assert len(search.cv_results_["params"]) == 12
    for name in scoring:
        assert np.isfinite(search.cv_results_[f"mean_test_{name}"]).all()
    assert search.best_estimator_.predict(X).shape == (len(X),)
    assert search.predict(X).shape == (len(X),)


def test_other_tools():
    search = RandomizedSearchCV(HMM(), {"smoothing": [0.1, 1.0]}, n_iter=2, cv=2, random_state=0)
    assert search.fit(EQUAL, EQUAL_Y).best_score_ > 0.5
    assert set(cross_validate(HMM(), EQUAL, EQUAL_Y, cv=2)) >= {"test_score", "fit_time"}
    groups = [i % 3 for i in range(len(EQUAL))]
    assert len(cross_val_score(HMM(), EQUAL, EQUAL_Y, cv=GroupKFold(3), groups=groups)) == 3
    sizes, *_ = learning_curve(HMM(), EQUAL, EQUAL_Y, cv=2, train_sizes=[0.5, 1.0])
    assert sizes.tolist() == [3, 6]


@pytest.mark.parametrize("name", DATA)
def test_train_test_split(name):
    X, y = DATA[name]
    train, test, train_y, test_y = train_test_split(X, y, random_state=0)
    assert HMM().fit(train, train_y).score(test, test_y) > 0.5


def test_weights_pass_through_cross_validation():
    weights = np.arange(1.0, len(EQUAL) + 1)
    scores = cross_val_score(HMM(), EQUAL, EQUAL_Y, cv=2, params={"sample_weight": weights})
    assert np.isfinite(scores).all()


def test_pipelines():
    for steps in (
        make_pipeline("passthrough", HMM()),
        make_pipeline(FunctionTransformer(lower_all), HMM()),
        Pipeline([("nothing", None), ("lower", FunctionTransformer(lower_all)), ("model", HMM())]),
    ):
        steps.fit(UNEQUAL, UNEQUAL_Y)
        assert steps.predict(UNEQUAL).tolist() == UNEQUAL_Y
        assert steps.score(UNEQUAL, UNEQUAL_Y) == 1.0
        assert cross_val_predict(steps, EQUAL, EQUAL_Y, cv=2).shape == (len(EQUAL),)
    search = GridSearchCV(steps, {"model__smoothing": [0.1, 1.0], "model__window": [0, 1]}, cv=2)
    assert search.fit(UNEQUAL, UNEQUAL_Y).best_params_["model__window"] in (0, 1)
    weighted = make_pipeline("passthrough", HMM()).fit(
        UNEQUAL, UNEQUAL_Y, hmm__sample_weight=[1.0] * len(UNEQUAL)
    )
    assert weighted.predict(UNEQUAL).tolist() == UNEQUAL_Y


@pytest.mark.parametrize(
    "parameters", [{}, {"features": initial, "window": 1}, {"features": Template("U0:%x[0,0]\nB")}]
)
def test_pickle_and_deepcopy(parameters):
    model = HMM(**parameters).fit(UNEQUAL, UNEQUAL_Y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.predict(UNEQUAL).tolist() == model.predict(UNEQUAL).tolist()
        for a, b in zip(other._arrays().values(), model._arrays().values(), strict=True):
            np.testing.assert_array_equal(a, b)
    assert pickle.loads(pickle.dumps(HMM(**parameters))).get_params() == HMM(**parameters).get_params()


@pytest.mark.parametrize("version", ["0.0.9", None])
def test_a_pickle_of_another_version_warns(version):
    model = HMM().fit(UNEQUAL, UNEQUAL_Y)
    state = model.__getstate__()
    assert state["_fuda_version"] == fuda.__version__
    assert "_fuda_version" not in vars(pickle.loads(pickle.dumps(model)))
    state.pop("_fuda_version")
    other, pickled = HMM(), state | ({"_fuda_version": version} if version else {})
    words = f"HMM was pickled by fuda {version or 'of unknown version'}, this is fuda {fuda.__version__}"
    with pytest.warns(UserWarning, match=f"{words}.*fit it again, or use model files"):
        other.__setstate__(pickled)
    assert other.predict(UNEQUAL).tolist() == model.predict(UNEQUAL).tolist()


def test_how_it_shows_itself():
    for model in (HMM(), HMM(window=2).fit(EQUAL, EQUAL_Y), make_pipeline("passthrough", HMM())):
        assert "HMM" in repr(model)
        assert "HMM" in model._repr_html_()
        assert "text/html" in model._repr_mimebundle_()
    assert repr(HMM(window=2)) == "HMM(window=2)"


def test_kernels_and_models_within_a_model_are_shown_as_by_themselves():
    kernel = RBF(0.1) * Delta() + Polynomial(2).normalized()
    assert repr(HMSVM(kernel=kernel)) == f"HMSVM(kernel={kernel!r})"
    within = Reranker(HMSVM(kernel=kernel), n=5)
    assert eval(repr(within)).get_params()["base__kernel"] == kernel
    many = repr(HMM(features="x" * 1000))
    assert len(many) == 703
    assert many.startswith("HMM(features='xx")


def test_tags_say_that_structures_are_taken():
    tags = HMM().__sklearn_tags__()
    assert tags.estimator_type is None
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required
    assert not is_classifier(HMM())
    assert not is_regressor(HMM())


def test_bad_input_leaves_a_fitted_model_as_it_was():
    model = HMM().fit(EQUAL, EQUAL_Y)
    with pytest.raises(DataError):
        model.fit(EQUAL, EQUAL_Y[:-1])
    with pytest.raises(DataError):
        model.predict("abc")
    assert model.predict(EQUAL).tolist() == EQUAL_Y


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        *((model, "n_jobs", "x") for model in (CRF(), MarginalizedPerceptron(orders=1), Reranker(folds=2))),
        (MarginalizedPerceptron(orders=1), "scheme", ["IOB2"]),
        (MarginalizedPerceptron(orders=1), "decode", {}),
        (Reranker(folds=2), "n", None),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_parameters_that_act_at_once_are_checked_when_they_do(model, name, value):
    X, y = [["a", "b"], ["b"], ["c", "a"]], [["A", "B"], ["B"], ["A", "A"]]
    model = clone(model).fit(X, y).set_params(**{name: value})
    for ask in (model.predict, lambda X: model.explain(X[0], 0)):
        with pytest.raises(DataError, match=name):
            ask(X)
