"""The replacement for sklearn-crfsuite, against CRFsuite itself where it is installed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from fuda import DataError
from fuda.compat.sklearn_crfsuite import CRF, attributes, metrics, scorers

REASON = "python-crfsuite is not installed; it is in the extra 'test'"
ALGORITHMS = ["lbfgs", "l2sgd", "ap", "pa", "arow"]


def random_data(seed, count=12, longest=7):
    """Items with odd values, so that no two labelings score the same by chance."""
    rng = np.random.default_rng(seed)

    def item():
        names = [f"a{k}" if k < 6 else f"{k - 8:+d}:a" for k in rng.integers(12, size=int(rng.integers(5)))]
        chosen = {name: float(rng.normal()) for name in names}
        return chosen | {
            "w": str(rng.choice(list("xyz"))),
            "b": bool(rng.integers(2)),
            "n": {"d": [str(rng.integers(3))]},
        }

    X = [[item() for _ in range(int(rng.integers(1, longest)))] for _ in range(count)]
    return X, [[str(rng.choice(["z", "b", "a"])) for _ in x] for x in X]


NAMES = {
    "min_freq": "feature.minfreq",
    "all_possible_states": "feature.possible_states",
    "all_possible_transitions": "feature.possible_transitions",
    "pa_type": "type",
}


def by_crfsuite(X, y, path, algorithm="lbfgs", **parameters):
    """Weights by name, labels and losses of a training by CRFsuite itself."""
    pycrfsuite = pytest.importorskip("pycrfsuite", reason=REASON)
    named = {NAMES.get(name, name): value for name, value in parameters.items()}
    trainer = pycrfsuite.Trainer(algorithm, named, verbose=False)
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, labels)
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    info = tagger.info()
    losses = [step["loss"] for step in trainer.logparser.iterations]
    return {**info.state_features, **info.transitions}, tagger.labels(), losses


def assert_same_weights(crf, expected, atol):
    weights = {**crf.state_features_, **crf.transition_features_}
    assert max(abs(weights.get(key, 0.0) - expected.get(key, 0.0)) for key in weights | expected) < atol


@pytest.mark.parametrize(
    "parameters",
    [
        {"c2": 0.1},
        {"c1": 0.3, "c2": 0.05},
        {"c2": 0.1, "all_possible_states": True, "all_possible_transitions": True},
        {"c2": 0.2, "min_freq": 1.5},
        {"c2": 0.2, "min_freq": 1.5, "all_possible_states": True},
    ],
    ids=str,
)
def test_the_objective_is_crfsuites(parameters, tmp_path):
    X, y = random_data(0)
    exact = parameters | {"epsilon": 1e-9, "delta": 1e-12, "max_iterations": 5000}
    weights, labels, _ = by_crfsuite(X, y, tmp_path / "model", **exact)
    crf = CRF(**exact).fit(X, y)
    assert crf.classes_ == labels
    assert_same_weights(crf, weights, 1e-4)


@pytest.mark.parametrize(
    "parameters",
    [
        {"algorithm": "ap"},
        {"algorithm": "pa"},
        {"algorithm": "pa", "pa_type": 2, "c": 0.3},
        {"algorithm": "pa", "pa_type": 0, "error_sensitive": False},
        {"algorithm": "pa", "averaging": False},
        {"algorithm": "arow"},
        {"algorithm": "arow", "variance": 2.0, "gamma": 0.7},
        {"algorithm": "arow", "min_freq": 0.5, "all_possible_states": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("iterations", [1, 3, 40])
def test_the_updates_are_crfsuites(parameters, iterations, tmp_path):
    X, y = random_data(1, count=1, longest=40)  # a single sequence: there is no order to choose
    limited = parameters | {"max_iterations": iterations}
    weights, _, expected = by_crfsuite(X, y, tmp_path / "model", **limited)
    crf = CRF(**limited).fit(X, y)
    assert_same_weights(crf, weights, 1e-5)
    losses = [step["loss"] for step in crf.training_log_.iterations]
    np.testing.assert_allclose(losses, expected[: len(losses)], atol=1e-5)
    assert not any(expected[len(losses) :])  # epochs without a mistake need not be run


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_marginals_are_dicts(algorithm):
    X, y = random_data(2)
    crf = CRF(algorithm, max_iterations=20).fit(X, y)
    for x, rows in zip([*X, []], crf.predict_marginals([*X, []]), strict=True):
        assert len(rows) == len(x)
        assert all(set(row) == set(crf.tagger_.labels()) for row in rows)
        assert all(sum(row.values()) == pytest.approx(1.0) for row in rows)
    assert crf.predict_marginals_single(X[0]) == crf.predict_marginals(X[:1])[0].tolist()
    assert crf.predict_single([]) == crf.predict_marginals_single([]) == []


def test_the_tagger_is_pycrfsuites(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite", reason=REASON)
    X, y = random_data(3)
    path = str(tmp_path / "model.crfsuite")
    ours = CRF(model_filename=path).fit(X, y).tagger_
    theirs = pycrfsuite.Tagger()
    theirs.open(path)
    assert ours.labels() == theirs.labels()
    for x, labels in zip(X, y, strict=True):
        assert ours.tag(x) == theirs.tag(x)
        assert ours.probability(labels) == pytest.approx(theirs.probability(labels), rel=1e-9)
        assert ours.marginal("b", 0) == pytest.approx(theirs.marginal("b", 0), rel=1e-9)
    a, b = ours.info(), theirs.info()
    assert (a.labels, a.attributes) == (b.labels, b.attributes)
    assert a.header["size"] == b.header["size"]
    for part in ("transitions", "state_features"):
        assert getattr(a, part) == pytest.approx(getattr(b, part), abs=1e-6)
    ours.dump(tmp_path / "ours")
    theirs.dump(str(tmp_path / "theirs"))
    texts = [(tmp_path / name).read_text().split("\n") for name in ("ours", "theirs")]
    weights = [[line for line in text if "-->" in line] for text in texts]
    assert len(weights[0]) == len(weights[1])
    assert set(weights[0]) == set(weights[1])


def test_attributes_are_named_as_by_python_crfsuite():
    pycrfsuite = pytest.importorskip("pycrfsuite", reason=REASON)
    items = [
        {"a": "x", "b": True, "c": False, "d": 2, "e": {"f": ["g", "h"], "i": {"j": 0.5}}, "k": {"l"}},
        {"é": "ö".encode(), "n": np.float64(3)},
        ["p", "q"],
        {},
        {"a": {"b": 1}, "a:b": 2.0},
    ]
    for item, actual in zip(items, attributes(items), strict=True):
        expected = pycrfsuite.ItemSequence([item]).items()[0]
        actual = actual if isinstance(actual, dict) else dict.fromkeys(actual, 1.0)
        if "a:b" in expected:  # the dict of python-crfsuite keeps the last of two
            expected = {"a:b": 3.0}
        assert actual == {name: value for name, value in expected.items() if value}


def test_all_ways_to_write_items_learn_the_same():
    X = [[{"w": "x", "n": 1.0}, {"w": "y", "t": True, "f": False}], [{"w": "x"}, {"w": "z", "l": ["p"]}]]
    y = [["A", "B"], ["A", "A"]]
    other = [[["w:x", "n"], {"w:y": 1, "t": 1.0}], [{"w": {"x"}}, ["w:z", "l:p"]]]
    first, second = CRF().fit(X, y), CRF().fit(other, y)
    assert first.state_features_ == pytest.approx(second.state_features_, abs=1e-12)
    assert first.predict(other).tolist() == second.predict(X).tolist()
    assert first.attributes_[:3] == ["w:x", "n", "w:y"]


def test_values_other_than_one_count_by_their_size():
    crf = CRF(c2=0.01).fit([[{"a": 1.0}], [{"a": -1.0}], [{"a": 1.0}]], [["A"], ["B"], ["A"]])
    assert crf.predict([[{"a": 2.0}], [{"a": -0.5}]]).tolist() == [["A"], ["B"]]


def test_held_out_data_are_evaluated_in_every_iteration(capsys):
    X, y = random_data(4)
    for algorithm in ALGORITHMS:
        crf = CRF(algorithm, max_iterations=3, verbose=True).fit(X, y, X_dev=X[:5], y_dev=y[:5])
        last = crf.training_log_.last_iteration
        assert last["num"] == len(crf.training_log_.iterations) == 3
        assert 0 <= last["avg_f1"] <= 1
        assert last["item_accuracy_float"] == pytest.approx(crf.score(X[:5], y[:5]), abs=0.35)
        assert sum(score.ref for score in last["scores"].values()) == sum(map(len, y[:5]))
        assert capsys.readouterr().out.count("Iter ") == 3
    exact = CRF(c2=0.5).fit(X, y, X_dev=X, y_dev=y)
    assert exact.training_log_.last_iteration["item_accuracy_float"] == exact.score(X, y)
    with pytest.raises(ValueError, match="both X_dev and y_dev"):
        crf.fit(X, y, X_dev=X)


def test_model_files_are_written_and_read(tmp_path):
    X, y = random_data(5)
    path = tmp_path / "m.crfsuite"
    crf = CRF(model_filename=path).fit(X, y)
    size = len(pickle.dumps(crf))
    other = CRF(model_filename=path)
    assert other.predict(X).tolist() == crf.predict(X).tolist()
    assert other.size_ == crf.size_ == path.stat().st_size
    crf.model_.save(tmp_path / "m.fuda")
    copy = pickle.loads(pickle.dumps(crf))
    assert copy.state_features_ == crf.state_features_
    assert copy.predict(X).tolist() == crf.predict(X).tolist()
    assert len(pickle.dumps(crf)) == size  # what predictions remember is left out


def test_it_is_an_estimator():
    X, y = random_data(6)
    crf = CRF(algorithm="lbfgs", c1=0.1)
    assert clone(crf).get_params() == crf.get_params()
    search = GridSearchCV(crf, {"c2": [0.1, 1.0]}, cv=2, scoring=scorers.flat_accuracy).fit(X, y)
    assert search.best_params_["c2"] in (0.1, 1.0)
    assert pickle.loads(pickle.dumps(scorers.sequence_accuracy))(search.best_estimator_, X, y) >= 0
    with pytest.raises(NotFittedError):
        CRF().predict(X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CRF("sgd").fit([[{"a": 1}]], [["A"]]), "algorithm='sgd': choose lbfgs"),
        (lambda: CRF(trainer_cls=dict).fit([[{"a": 1}]], [["A"]]), "trainer_cls"),
        (lambda: CRF().fit([{"a": 1}], [["A"]]), r"X\[0\] is an item, not a sequence"),
        (lambda: CRF().fit([[{"a": 1}]], [["A", "B"]]), r"X\[0\] has 1 items but y\[0\] has 2 labels"),
        (lambda: CRF().fit([[{"a": 1}]], []), "X has 1 sequences but y has 0"),
        (lambda: CRF().fit([], []), "nothing to learn from"),
        (lambda: CRF().fit([[{"a": 1}]], [[1]]), "labels are strings"),
        (lambda: CRF().fit([[{"a": float("nan")}]], [["A"]]), "attribute 'a' has the value nan"),
        (lambda: CRF().fit([[{"a": object}]], [["A"]]), "attribute 'a' has the value"),
        (lambda: CRF().fit([[{1: "a"}]], [["A"]]), "is not an attribute"),
        (lambda: CRF(c2=-1).fit([[{"a": 1}]], [["A"]]), "l2=-1"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(DataError, match=message):
        call()


def test_metrics():
    y, predicted = [["x", "z", "y"], ["x", "x"]], [["y", "z", "y"], ["x", "y"]]
    assert metrics.flat_accuracy_score(y, predicted) == 3 / 5
    assert metrics.flat_f1_score(y, predicted, average="macro") == 2 / 3
    assert metrics.flat_fbeta_score(y, predicted, beta=1, average="macro") == 2 / 3
    assert "macro avg" in metrics.flat_classification_report(y, predicted, labels=["x", "y"])
    assert metrics.sequence_accuracy_score([["x", "y"], ["x", "x"]], [["x", "y"], ["x", "y"]]) == 0.5
    assert metrics.sequence_accuracy_score([], []) == 0
