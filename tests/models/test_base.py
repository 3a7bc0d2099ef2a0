"""The estimator that all labelers share, by the HMM: scikit-learn's ways, and what a user may get wrong."""

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
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    train_test_split,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from fuda import HMM, Dag, DataError, Sequence, Template, Tree
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


# scikit-learn


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
    assert model.classes_ == ["B-LOC", "B-PER", "O"]
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
        found = HMM().fit(X, y)
        assert found.classes_ == ["B-LOC", "B-PER", "O"]
        assert all(type(label) is str for label in found.classes_)
        for name, array in found._arrays().items():
            np.testing.assert_array_equal(array, expected[name])


def test_integer_labels_stay_integers():
    model = HMM().fit(EQUAL, [np.array([2, 0, 0, 10])] * len(EQUAL))
    assert model.classes_ == [0, 2, 10]
    assert [type(label) for label in model.predict(EQUAL)[0]] == [int] * 4
    assert model.score(EQUAL, [[2, 0, 0, 10]] * len(EQUAL)) == 1.0


def test_labels_not_known():
    y = [[None, "O", "O", "B-LOC"], *EQUAL_Y[1:-1], [None] * 4]
    model = HMM().fit(EQUAL, y)
    assert model.classes_ == ["B-LOC", "B-PER", "O"]
    assert model.predict(EQUAL[:1])[0] == EQUAL_Y[0]
    assert model.score(EQUAL, y) == 1.0  # over the nodes whose label is known


def test_empty_X_has_no_predictions():
    model = HMM().fit(EQUAL, EQUAL_Y)
    for found in (model.predict([]), model.predict_marginals([]), model.predict_nbest([], 2)):
        assert found.shape == (0,)
        assert found.dtype == object
    assert model.score([], []) == 0.0


def test_parameters_and_clone():
    model = HMM(smoothing=0.5, decode="posterior", features=initial, window=2)
    assert model.get_params() == {
        "smoothing": 0.5,
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
    marginals = cross_val_predict(HMM(), X, y, cv=4, method="predict_marginals")
    assert [m.shape for m in marginals] == [(len(x), 3) for x in X]


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


def test_how_it_shows_itself():
    for model in (HMM(), HMM(window=2).fit(EQUAL, EQUAL_Y), make_pipeline("passthrough", HMM())):
        assert "HMM" in repr(model)
        assert "HMM" in model._repr_html_()
        assert "text/html" in model._repr_mimebundle_()
    assert repr(HMM(window=2)) == "HMM(window=2)"


def test_tags_say_that_structures_are_taken():
    tags = HMM().__sklearn_tags__()
    assert tags.estimator_type is None
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required
    assert not is_classifier(HMM())
    assert not is_regressor(HMM())


# What a user may get wrong. Each case says what is called, and words that the message must have: the place, what
# was found there, and what to do.

S, Y = [["a", "b"], ["c"]], [["A", "B"], ["A"]]


def fit(X=S, y=Y, **weights):
    return lambda: HMM().fit(X, y, **weights)


def fit_with(**parameters):
    return lambda: HMM(**parameters).fit(S, Y)


def predict(X, fitted=S, y=Y, **parameters):
    return lambda: HMM(**parameters).fit(fitted, y).predict(X)


def score(y):
    return lambda: HMM().fit(S, Y).score(S, y)


def vectors(*values):
    return [[np.array(v, dtype=float) for v in values]]


def fails(word):
    raise KeyError(word)


BAD = {
    # X
    "X none": (fit(None), "X is a list of structures", "None (NoneType)", "give a list"),
    "X a number": (fit(5), "X is a list of structures", "5 (int)", "give a list"),
    "X text": (fit("a b"), "X is a list of structures", "'a b' (str)", "give a list"),
    "X bytes": (fit(b"a b"), "X is a list of structures", "(bytes)", "give a list"),
    "X a dict": (fit({"a": "b"}), "X is a list of structures", "(dict)", "give a list"),
    "X a set": (fit({"a"}), "X is a list of structures", "(set)", "give a list"),
    "X one structure": (fit(Sequence(["a"])), "single Sequence", "put it in a list"),
    "X empty": (fit([], []), "nothing to learn from", "at least one"),
    "X of words": (fit(["a", "b"], Y), "structure 0", "bare string 'a'", "split it into nodes"),
    "X of numbers": (fit([1, 2]), "structure 0", "1 (int)", "give a list"),
    "X of none": (fit([["a", "b"], None]), "structure 1", "None (NoneType)", "give a list"),
    "X of dicts": (fit([{"f": 1}], [["A"]]), "structure 0", "(dict)", "put it in a list"),
    "X of empty lists": (fit([["a"], []], [["A"], []]), "structure 1", "empty sequence", "drop empty ones"),
    "X flat array": (fit(np.zeros(3)), "structure 0", "(float64)", "give a list"),
    "X matrix": (
        fit(np.zeros((2, 2))),
        "structure 0, node 0",
        "(float64) is no observation",
        "give a string",
    ),
    "X four dimensions": (fit(np.zeros((2, 1, 2, 2))), "structure 0, node 0", "shape (2, 2)", "1-D numeric"),
    "X mixed shapes": (
        fit([["a"], Tree(["a"], [-1])], [["A"], ["A"]]),
        "structure 1 is a tree",
        "structure 0 is a sequence",
        "give structures of one shape",
    ),
    # observations
    "observation none": (
        fit([["a", None], ["c"]]),
        "structure 0, node 1",
        "None (NoneType)",
        "give a string",
    ),
    "observation float": (fit([["a", "b"], [1.5]]), "structure 1, node 0", "1.5 (float)", "numeric vector"),
    "observation bool": (fit([[True, "b"], ["c"]]), "structure 0, node 0", "True (bool)", "give a string"),
    "observation bytes": (fit([["a", b"b"], ["c"]]), "structure 0, node 1", "b'b' (bytes)", "give a string"),
    "observation object": (fit([["a", object()], ["c"]]), "structure 0, node 1", "(object)", "give a string"),
    "dict of nan": (
        fit([[{"f": 1.0}, {"f": float("nan")}], [{"g": 1}]]),
        "structure 0, node 1",
        "feature 'f' has the value nan",
        "finite numbers",
    ),
    "dict of infinity": (
        fit([[{"f": -np.inf}], [{}]], [["A"], ["B"]]),
        "structure 0, node 0",
        "-inf",
        "finite",
    ),
    "dict of none": (
        fit([[{"f": None}]], [["A"]]),
        "structure 0, node 0",
        "None (NoneType)",
        "finite numbers",
    ),
    "dict of lists": (fit([[{"f": ["x"]}]], [["A"]]), "structure 0, node 0", "['x'] (list)", "strings"),
    "dict of arrays": (fit([[{"f": np.ones(2)}]], [["A"]]), "structure 0, node 0", "(ndarray)", "finite"),
    "dict of numbers": (fit([[{1: 2.0}]], [["A"]]), "structure 0, node 0", "1 (int)", "names are strings"),
    "names of numbers": (fit([[["f", 1]]], [["A"]]), "structure 0, node 0", "1 (int)", "names are strings"),
    "vector of nan": (fit(vectors([1, np.nan]), [["A"]]), "structure 0, node 0", "entry 1", "nan", "finite"),
    "vector of infinity": (fit(vectors([1], [np.inf]), [["A", "B"]]), "structure 0, node 1", "inf", "finite"),
    "vectors unequal": (
        fit(vectors([1, 2], [1]), [["A", "B"]]),
        "structure 0, node 1",
        "a vector of 1 numbers",
        "vector of 2 numbers",
        "one kind and length",
    ),
    "vector empty": (fit(vectors([]), [["A"]]), "structure 0, node 0", "shape (0,)", "at least one number"),
    "vector of vectors": (fit([[[[1.0], [2.0]]]], [["A"]]), "structure 0, node 0", "shape (2, 1)", "1-D"),
    "vector of text": (fit([[np.array(["a"])]], [["A"]]), "structure 0, node 0", "no numeric vector", "1-D"),
    "columns unequal": (
        fit([[("a", "N"), ("b",)], [("c", "N")]]),
        "structure 0, node 1",
        "a tuple of 1 columns",
        "tuple of 2 columns",
        "one kind and length",
    ),
    "columns of floats": (fit([[("a", 0.5)]], [["A"]]), "structure 0, node 0", "('a', 0.5)", "as an array"),
    "columns none": (fit([[()]], [["A"]]), "structure 0, node 0", "() (tuple)", "one or more columns"),
    "text and columns": (fit([["a", ("b",)], ["c"]]), "structure 0, node 1", "a tuple of 1", "one kind"),
    "text and dict": (fit([["a", {"f": 1}], ["c"]]), "structure 0, node 1", "features by name", "one kind"),
    "text and vector": (fit([["a", np.ones(2)], ["c"]]), "structure 0, node 1", "a vector of 2", "one kind"),
    "text and id": (fit([["a", "b"], [7]]), "structure 1, node 0", "an integer id", "one kind"),
    "negative counts": (fit([[{"f": -1.0}]], [["A"]]), "structure 0, node 0", "negative", "0 or more"),
    # y
    "y none": (fit(y=None), "y is None", "give one list a structure"),
    "y a number": (fit(y=5), "y is 5 (int)", "give one list a structure"),
    "y text": (fit(y="AB"), "y is 'AB' (str)", "give one list a structure"),
    "y a dict": (fit(y={0: ["A", "B"], 1: ["A"]}), "y is {", "(dict)", "give one list a structure"),
    "y a set": (fit(y={("A", "B"), ("A",)}), "(set)", "give one list a structure"),
    "y a single array": (fit(y=np.array(5)), "y is array(5)", "give one list a structure"),
    "y too short": (fit(y=[["A", "B"]]), "X has 2 structures but y has 1", "one list a structure"),
    "y too long": (fit(y=[*Y, ["A"]]), "X has 2 structures but y has 3", "one list a structure"),
    "y flat": (fit(y=["A", "B"]), "structure 0", "its labels are 'A' (str)", "list of 2 labels"),
    "y flat numbers": (fit(y=[1, 2]), "structure 0", "its labels are 1 (int)", "list of 2 labels"),
    "y flat array": (fit(y=np.array([1, 2])), "structure 0", "its labels are", "list of 2 labels"),
    "labels text": (fit(y=["AB", ["A"]]), "structure 0", "'AB' (str)", "list of 2 labels"),
    "labels none": (fit(y=[["A", "B"], None]), "structure 1", "None (NoneType)", "list of 1 labels"),
    "labels a set": (fit(y=[{"A", "B"}, ["A"]]), "structure 0", "(set)", "list of 2 labels"),
    "labels a dict": (fit(y=[{"A": 1, "B": 2}, ["A"]]), "structure 0", "(dict)", "list of 2 labels"),
    "labels too few": (fit(y=[["A"], ["A"]]), "structure 0 has 2 nodes but 1 labels", "one label a node"),
    "labels too many": (
        fit(y=[["A", "B"], ["A", "B"]]),
        "structure 1 has 1 nodes but 2 labels",
        "one label a node",
    ),
    "labels empty": (fit(y=[["A", "B"], []]), "structure 1 has 1 nodes but 0 labels", "one label a node"),
    "labels matrix": (fit(y=[np.eye(2), ["A"]]), "structure 0, node 0", "(ndarray)", "integers or strings"),
    "label empty text": (
        fit(y=[["A", ""], ["A"]]),
        "structure 0, node 1",
        "'' (str)",
        "None where not known",
    ),
    "label float": (fit(y=[["A", 1.5], ["A"]]), "structure 0, node 1", "1.5 (float)", "integers or strings"),
    "label nan": (
        fit(y=[["A", np.nan], ["A"]]),
        "structure 0, node 1",
        "nan (float)",
        "None where not known",
    ),
    "labels floats": (fit(y=[np.array([1.0, 2.0]), [1.0]]), "structure 0, node 0", "1.0 (float)", "integers"),
    "label bool": (
        fit(y=[[True, False], [True]]),
        "structure 0, node 0",
        "True (bool)",
        "integers or strings",
    ),
    "label bytes": (
        fit(y=[[b"A", b"B"], [b"A"]]),
        "structure 0, node 0",
        "b'A' (bytes)",
        "integers or strings",
    ),
    "label a list": (
        fit(y=[[["A"], "B"], ["A"]]),
        "structure 0, node 0",
        "['A'] (list)",
        "integers or strings",
    ),
    "label a tuple": (
        fit(y=[[("A", 1), "B"], ["A"]]),
        "structure 0, node 0",
        "(tuple)",
        "integers or strings",
    ),
    "labels mixed": (
        fit(y=[["A", 1], ["A"]]),
        "structure 0, node 1",
        "1 (int)",
        "'A' (str)",
        "all strings or all",
    ),
    "labels mixed after none": (fit(y=[[None, 1], ["A"]]), "structure 1, node 0", "'A' (str)", "1 (int)"),
    "labels all none": (fit(y=[[None, None], [None]]), "every label in y is None", "give labels"),
    # weights
    "weights negative": (
        fit(sample_weight=[1.0, -1.0]),
        "sample_weight of structure 1 is -1.0",
        "finite and not negative",
    ),
    "weights nan": (fit(sample_weight=[np.nan, 1.0]), "sample_weight of structure 0 is nan", "finite"),
    "weights infinite": (fit(sample_weight=[1.0, np.inf]), "sample_weight of structure 1 is inf", "finite"),
    "weights too few": (
        fit(sample_weight=[1.0]),
        "sample_weight is [1.0]",
        "a list of 2 numbers, one a structure",
    ),
    "weights a number": (fit(sample_weight=1.0), "sample_weight is 1.0", "a list of 2 numbers"),
    "weights text": (fit(sample_weight=["x", "y"]), "sample_weight is ['x', 'y']", "a list of 2 numbers"),
    "weights a dict": (fit(sample_weight={0: 1.0, 1: 1.0}), "sample_weight is {", "a list of 2 numbers"),
    "weights a matrix": (fit(sample_weight=np.ones((2, 2))), "sample_weight is", "a list of 2 numbers"),
    "weights none inside": (fit(sample_weight=[None, 1.0]), "sample_weight of structure 0 is nan", "finite"),
    "positions a number": (fit(position_weight=1.0), "position_weight is 1.0", "one list a structure"),
    "positions too few": (fit(position_weight=[[1, 1]]), "position_weight has 1", "one list a structure"),
    "positions flat": (
        fit(position_weight=[1, 1]),
        "structure 0: position_weight is 1",
        "a list of 2 numbers",
    ),
    "positions short": (fit(position_weight=[[1], [1]]), "structure 0: position_weight is [1]", "one a node"),
    "positions long": (
        fit(position_weight=[[1, 1], [1, 1]]),
        "structure 1: position_weight",
        "1 numbers, one a node",
    ),
    "positions negative": (
        fit(position_weight=[[1, -2], [1]]),
        "structure 0: position_weight of node 1 is -2.0",
        "finite and not negative",
    ),
    "positions nan": (
        fit(position_weight=[[1, 1], [np.nan]]),
        "structure 1: position_weight of node 0",
        "finite",
    ),
    "positions ragged": (
        fit(position_weight=[[[1], [1, 2]], [1]]),
        "structure 0: position_weight",
        "one a node",
    ),
    # parameters
    "features unknown": (fit_with(features="words"), "features='words'", "choose from word, spelling"),
    "features none": (fit_with(features=None), "features=None", "name of a feature set"),
    "features a list": (fit_with(features=["word"]), "features=['word']", "name of a feature set"),
    "function of nothing": (
        fit_with(features=lambda w: None),
        "structure 0, node 0, by the feature function",
        "None (NoneType)",
        "a list of names",
    ),
    "function of text": (fit_with(features=str), "structure 0, node 0", "'a' (str)", "a list of names"),
    "function of numbers": (
        fit_with(features=lambda w: [1]),
        "structure 0, node 0",
        "1 (int)",
        "are strings",
    ),
    "function of nan": (fit_with(features=lambda w: {"f": np.nan}), "structure 0, node 0", "nan", "finite"),
    "function that fails": (
        fit_with(features=fails),
        "structure 0, node 0",
        "KeyError('a')",
        "correct the function",
    ),
    "function of two": (fit_with(features=lambda a, b: []), "structure 0, node 0", "TypeError(", "correct"),
    "window negative": (fit_with(window=-1), "window=-1", "from 0 to 100"),
    "window fraction": (fit_with(window=1.5), "window=1.5", "from 0 to 100"),
    "window bool": (fit_with(window=True), "window=True", "from 0 to 100"),
    "window text": (fit_with(window="1"), "window='1'", "from 0 to 100"),
    "window huge": (fit_with(window=10**6), "window=1000000", "from 0 to 100"),
    "smoothing": (fit_with(smoothing=0), "smoothing=0", "above 0"),
    "decode": (fit_with(decode="best"), "decode='best'", "viterbi or posterior"),
    "template column": (
        fit_with(features=Template("U0:%x[0,1]\nB", "my.template")),
        "my.template:1",
        "column 1",
        "give more columns",
    ),
    "template on trees": (
        lambda: HMM(features=Template("U0:%x[0,0]\nB")).fit([Tree(["a"], [-1])], [["A"]]),
        "structure 0 is a tree",
        "use a feature set",
    ),
    # structures that a model does not take
    "dag": (
        fit([Dag(["a"], [])], [["A"]]),
        "structure 0 is a dag",
        "HMM labels sequences and trees only",
        "models",
    ),
    "dag to predict": (predict([Dag(["a"], [])]), "structure 0 is a dag", "sequences and trees only"),
    "tree to a model of sequences": (
        predict([Tree(["a"], [-1])]),
        "structure 0 is a tree",
        "was fitted on sequences",
        "give sequences",
    ),
    "sequence to a model of trees": (
        predict(S, fitted=[Tree(["a"], [-1])], y=[["A"]]),
        "structure 0 is a sequence",
        "was fitted on trees",
        "give trees",
    ),
    "other columns": (
        predict([[("a", "N")]], fitted=[[("a", "N", "x")]], y=[["A"]]),
        "structure 0, node 0 is a tuple of 2 columns",
        "a tuple of 3 columns",
        "same kind",
    ),
    "other vectors": (
        predict(vectors([1, 2]), fitted=vectors([1, 2, 3]), y=[["A"]]),
        "structure 0, node 0 is a vector of 2 numbers",
        "a vector of 3 numbers",
        "same kind",
    ),
    "other kind": (
        predict([[{"f": 1.0}]]),
        "structure 0, node 0 is features by name",
        "a string",
        "same kind",
    ),
    "other columns for a template": (
        predict([["a"]], fitted=[[("a", "N")]], y=[["A"]], features=Template("U0:%x[0,1]\nB")),
        "structure 0, node 0 is a string",
        "same kind",
    ),
    "predict none": (predict(None), "X is a list of structures", "None"),
    "predict a word": (predict(["abc"]), "structure 0", "bare string 'abc'"),
    "predict an empty structure": (predict([["a"], []]), "structure 1", "empty sequence"),
    "predict nan": (
        predict([[{"f": np.nan}]], fitted=[[{"f": 1.0}]], y=[["A"]]),
        "structure 0, node 0",
        "'f' has the value nan",
    ),
    # scores
    "score none": (score(None), "y_true", "None"),
    "score too few": (score([["A", "B"]]), "y_true has labels for 1 structures but y_pred for 2"),
    "score unequal": (score([["A"], ["A"]]), "structure 0 has 1 labels in y_true but 2"),
    "score floats": (score([["A", 1.5], ["A"]]), "structure 0, node 1", "1.5"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, *words = BAD[name]
    with pytest.raises(DataError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    for word in words:
        assert word in message


def test_there_are_many_bad_inputs():
    assert len(BAD) > 100


def test_bad_input_leaves_a_fitted_model_as_it_was():
    model = HMM().fit(EQUAL, EQUAL_Y)
    with pytest.raises(DataError):
        model.fit(EQUAL, EQUAL_Y[:-1])
    with pytest.raises(DataError):
        model.predict("abc")
    assert model.predict(EQUAL).tolist() == EQUAL_Y
