"""A perceptron that learns more: as which CRF, what changes, what holds, files, labels, errors."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuda
from fuda import DataError, HMPerceptron, Sequence, Tree
from fuda.kernels import RBF, Linear
from fuda.metrics import label_scores
from fuda.models.teaching import crf as taught_crf
from fuda.models.teaching.perceptron import _EquivalentCRF
from fuda.training.perceptron import Dual
from fuda.training.whole_perceptron import WholePrimal
from teaching_cases import NEW, NEW_Y, TREE_Y, TREES, X, Y
from usage_cases import usage

PARAMETERS = [
    {},
    {"order": 0},
    {"average": False},
    {"window": 0},
    {"update": "passive-aggressive"},
    {"update": "arow", "average": False},
    {"outside_penalty": 3.0},
    {"features": fuda.Template("U00:%x[0,0]\nU01:%x[-1,0]\nB"), "window": None},
]
BY_EPOCHS = [{"kernel": Linear()}, {"average": "voted"}, {"order": 2}]


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_the_crf_scores_as_the_perceptron_does(parameters):
    model = HMPerceptron(**parameters).fit(X, Y)
    crf = _EquivalentCRF.of(model, model._curvature)
    encoded = model._encode(X + NEW)
    nodes, pairs = model._scores(encoded)
    own_nodes, own_pairs = crf._scores(crf.with_roots(encoded))
    scale = model._curvature.scale
    np.testing.assert_allclose(own_nodes, scale * nodes, atol=1e-9)
    np.testing.assert_allclose(own_pairs, scale * pairs, atol=1e-9)
    assert (
        crf._best_labels(crf.with_roots(encoded), None).tolist() == model._best_labels(encoded, None).tolist()
    )


def test_the_scale_is_the_likeliest():
    model = HMPerceptron().fit(X, Y)
    crf = _EquivalentCRF.of(model, None)
    data = model._labelled(X, Y, None, None)
    data = data._replace(encoded=crf.with_roots(data.encoded))
    loss = crf._training_loss(data)

    def objective(s):
        return loss(s * crf.weights_)[0] + float(s * s * crf.weights_ @ crf.weights_)

    scale = model._curvature.scale
    assert objective(scale) < min(objective(scale * 1.1), objective(scale / 1.1))


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_a_correction_holds_and_other_features_do_not_change(parameters):
    model = HMPerceptron(**parameters).fit(X, Y)
    before = copy(model)
    model.partial_fit(NEW, NEW_Y)
    assert model.predict(NEW)[0] == NEW_Y[0]
    old, new = (dict(m.top_features(10_000)["LOC"]) for m in (before, model))
    untouched = [name for name in old if "Lima" in name]
    assert untouched
    assert [new[name] for name in untouched] == pytest.approx([old[name] for name in untouched])
    assert model.mistakes_[:-1] == before.mistakes_
    assert model.mistakes_[-1].structures == (before.predict(NEW)[0] != NEW_Y[0])


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.sampled_from(["Ana", "Rome", "in", "big", "new", "words"]), min_size=1, max_size=5), st.data()
)
def test_any_labels_of_distinct_words_are_predicted_afterwards(words, data):
    words = list(dict.fromkeys(words))
    labels = [data.draw(st.sampled_from(["PER", "LOC", "O"])) for _ in words]
    model = HMPerceptron().fit(X, Y).partial_fit([words], [labels])
    assert model.predict([words])[0] == labels


def test_corrections_of_real_text_hold_and_harm_nothing():
    data = usage()
    X = [Sequence([word for word, *_ in x.observations]) for x in data.X]
    y = [list(labels) for labels in data.y]
    model = HMPerceptron(epochs=5).fit(X[:80], y[:80])
    others = slice(300, 400)

    def accuracy(labeler):
        return label_scores(y[others], labeler.predict(X[others])).micro.f1

    before = accuracy(model)
    predicted = model.predict(X[80:120])
    wrong = [(X[80 + i], y[80 + i]) for i, labels in enumerate(predicted) if list(labels) != y[80 + i]]
    for x, labels in wrong[:5]:
        taught = copy(model).partial_fit([x], [labels])
        assert list(taught.predict([x])[0]) == labels
        assert accuracy(taught) > before - 0.05
    for x, labels in zip(X[80:120], y[80:120], strict=True):
        model.partial_fit([x], [labels])
    assert accuracy(model) > before


def test_trees_and_vectors_learn_more():
    model = HMPerceptron().fit(TREES, TREE_Y)
    more = [Tree(["sees", "Rome", "Ana"], [-1, 0, 0])]
    assert model.partial_fit(more, [["O", "LOC", "PER"]]).predict(more)[0] == ["O", "LOC", "PER"]
    random = np.random.RandomState(0)
    vectors = [random.randn(4, 3) for _ in range(6)]
    labels = [["a" if row[0] > 0 else "b" for row in part] for part in vectors]
    model = HMPerceptron().fit(vectors[:5], labels[:5])
    assert model.partial_fit(vectors[5:], labels[5:]).predict(vectors[5:])[0] == labels[5]


def test_a_scheme_holds_too():
    y = [[{"PER": "B-PER", "LOC": "B-LOC"}.get(label, label) for label in labels] for labels in Y]
    model = HMPerceptron(scheme="IOB2").fit(X, y)
    labels = ["B-PER", "I-PER", "O", "B-LOC", "O"]
    assert model.partial_fit(NEW, [labels]).predict(NEW)[0] == labels


def test_partly_known_labels_and_weights():
    model = HMPerceptron().fit(X, Y)
    model.partial_fit(NEW, [["PER", None, None, "O", None]])
    predicted = model.predict(NEW)[0]
    assert (predicted[0], predicted[3]) == ("PER", "O")
    ignored = HMPerceptron().fit(X, Y)
    weights = ignored.weights_
    ignored.partial_fit([X[0]], [["O"] * 4], sample_weight=[0.0])
    np.testing.assert_array_equal(ignored.weights_, weights)


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_a_model_from_a_file_learns_the_same(tmp_path, parameters):
    model = HMPerceptron(**parameters).fit(X, Y)
    model.save(tmp_path / "model.fuda")
    loaded = fuda.load(tmp_path / "model.fuda")
    for labels in (NEW_Y, [["DATE", "O", "LOC", "O", "ORG"]]):
        model.partial_fit(NEW, labels)
        loaded.partial_fit(NEW, labels)
        assert loaded.predict(NEW)[0] == labels[0]
        model.save(tmp_path / "a.fuda")
        loaded.save(tmp_path / "b.fuda")
        assert (tmp_path / "a.fuda").read_bytes() == (tmp_path / "b.fuda").read_bytes()


def test_files_without_curvature_go_on_by_epochs(tmp_path):
    model = HMPerceptron().fit(X, Y)
    model._curvature = None
    model.save(tmp_path / "old.fuda")
    old = fuda.load(tmp_path / "old.fuda")
    steps = int(old._state.steps[0])
    old.partial_fit(NEW, NEW_Y)
    assert int(old._state.steps[0]) == steps + 1


@pytest.mark.parametrize("parameters", BY_EPOCHS)
def test_other_perceptrons_go_on_by_epochs(parameters):
    model = HMPerceptron(**parameters).fit(X, Y)
    assert model._curvature is None
    steps = int(model._state.steps[0])
    model.partial_fit(NEW, NEW_Y)
    assert int(model._state.steps[0]) == steps + 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("scale", [0.0]), ("scale", [np.inf]), ("scale", [1.0, 1.0]), ("curvature", -1.0), ("curvature", 200.0)],
)
def test_files_whose_curvature_is_impossible(name, value):
    model = HMPerceptron().fit(X, Y)
    arrays = model._arrays()
    arrays[name] = np.array(value) if name == "scale" else np.full_like(arrays[name], value)
    with pytest.raises(DataError, match=r"scale|curvature"):
        copy(model)._restore(arrays, [], {})
    votes = HMPerceptron(order=2).fit(X, Y)
    with pytest.raises(DataError, match="'curvature' is not needed"):
        copy(votes)._restore(votes._arrays() | {name: arrays[name]}, [], {})


@pytest.mark.parametrize("bad", [[["PER"]], [["PER", "O", "LOC", "O", 3]]])
def test_bad_labels_leave_the_model_as_it_was(bad):
    model = HMPerceptron().fit(X, Y)
    weights, classes = model.weights_.copy(), model.classes_.tolist()
    with pytest.raises(DataError):
        model.partial_fit(NEW, bad)
    np.testing.assert_array_equal(model.weights_, weights)
    assert model.classes_.tolist() == classes


def test_models_without_weights_learn_too():
    model = HMPerceptron().fit([["a", "b"]], [["O", "O"]])  # no mistake was ever made
    assert not model.weights_.any()
    model.partial_fit([["a", "c"]], [["O", "PER"]])
    assert model.predict([["a", "c"]])[0] == ["O", "PER"]


@pytest.mark.parametrize("kernel", [None, Linear(), RBF(0.1)])
@pytest.mark.parametrize("average", [True, False, "voted"])
def test_going_on_interrupted(monkeypatch, kernel, average):
    model = HMPerceptron(kernel=kernel, average=average, random_state=0).fit(X, Y)
    before = model.predict(X).tolist()
    learner, step = (Dual, "run") if kernel is not None else (WholePrimal, "run")
    if kernel is None and average != "voted":
        learner, step = taught_crf._Step, "minimum"

    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(learner, step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit([["new", "words"]], [["PER", "LOC"]])
    assert model.predict(X).tolist() == before
    epochs = len(model.mistakes_)
    assert len(model.partial_fit([["new", "words"]], [["PER", "LOC"]]).mistakes_) == epochs + 1
    assert model.score(X, Y) > 0.6


@pytest.mark.parametrize(
    "parameters", [{"kernel": Linear()}, {"kernel": RBF(0.5)}, {"average": "voted"}], ids=str
)
def test_features_that_were_too_rare_are_those_of_old_structures_too(tmp_path, parameters):
    """The pair of words ``c d`` becomes a feature when it is seen again, as it is in a file."""
    model = HMPerceptron(features="text", epochs=3, **parameters)
    model.fit([["a", "b", "c", "d"], ["b", "a"]], [["A", "B", "C", "A"], ["B", "B"]])
    model.partial_fit([["e", "c", "d", "a"], ["c", "d", "e"]], [["B", "A", "B", "C"], ["B", "C", "A"]])
    model.save(tmp_path / "model.fuda")
    questions = [["c", "d"], ["a", "c", "d", "b"], ["d", "c"]]
    loaded = fuda.load(tmp_path / "model.fuda").predict_marginals(questions)
    for ours, theirs in zip(model.predict_marginals(questions), loaded, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
