"""A CRF that learns more: its objective, what changes, what holds, files, labels, bad input."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuda
from fuda import CRF
from fuda.data.structures import Tree
from fuda.errors import DataError
from fuda.models.teaching import crf as taught_crf
from fuda.training.crf_curvature import LARGEST_STORED, curvature, dequantized, quantized
from teaching_cases import NEW, NEW_Y, TREE_Y, TREES, X, Y

PARAMETERS = [
    {},
    {"loss": "pointwise"},
    {"loss": "markov", "order": 0.5, "class_weight": "balanced"},
    {"pair_features": True},
    {"window": 0, "decode": "posterior"},
    {"l2": 0.0, "max_iter": 20},
    {"features": fuda.Template("U00:%x[0,0]\nU01:%x[-1,0]\nB\nB01:%x[0,0]"), "window": None},
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def diagonal(function, point, step=1e-4):
    """The diagonal of a Hessian by differences of gradients."""
    second = np.empty(len(point))
    for k in range(len(point)):
        ends = []
        for sign in (1, -1):
            moved = point.copy()
            moved[k] += sign * step
            ends.append(function(moved)[1][k])
        second[k] = (ends[0] - ends[1]) / (2 * step)
    return second


@pytest.mark.parametrize("loss", ["sequential", "pointwise", "markov"])
def test_curvature_of_single_nodes_is_the_diagonal_of_the_hessian(loss):
    # Nodes without neighbours: the pointwise loss is the sequential one, and nothing is
    # approximate.
    X = [["Ana"], ["Lima"], ["Lima"], ["big"]]
    data = CRF(loss=loss, features="word", window=0).fit(X, [["P"], ["L"], ["O"], ["O"]])
    function = data._training_loss(
        data._labelled(X, [["P"], ["L"], ["O"], ["O"]], [1.0, 2.0, 1.0, 0.5], None)
    )
    expected = diagonal(function, data.weights_)
    if loss != "sequential":  # a node weighs the same in the pointwise loss, in any structure
        uniform = data._training_loss(data._labelled(X, [["P"], ["L"], ["O"], ["O"]], None, None))
        function, expected = uniform, diagonal(uniform, data.weights_)
    assert np.allclose(curvature(function, data.weights_), expected, atol=1e-6)


def test_curvature_of_pairs_is_that_of_independent_labels():
    model = CRF(features="word", window=0, pair_features=True).fit(X, Y)
    model.weights_ = np.zeros_like(model.weights_)  # labels are then independent of each other
    function = model._training_loss(model._labelled(X, Y, None, None))
    approximate, exact = curvature(function, model.weights_), diagonal(function, model.weights_)
    by_channel, transitions, by_edge = function.weights.views(approximate)
    of_exact = function.weights.views(exact)
    assert np.allclose(by_channel[0], of_exact[0][0], atol=1e-6)
    # Words of a sequence are distinct here, so that no pair of edges shares a feature and a label.
    assert np.allclose(by_edge[0], of_exact[2][0], atol=1e-6)
    assert (transitions > 0).all()


@given(st.lists(st.floats(0, 1e30), max_size=9))
def test_packed_curvature_keeps_three_digits(values):
    stored = quantized(np.array(values))
    assert stored.dtype == np.float16
    assert (stored <= LARGEST_STORED).all()
    assert np.allclose(dequantized(stored), values, rtol=0.05, atol=1e-3)


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_more_structures_minimize_the_proximal_objective(parameters, monkeypatch):
    monkeypatch.setattr(taught_crf, "_DOUBLINGS", 0)
    monkeypatch.setattr(taught_crf, "_TOL", 1e-9)
    monkeypatch.setattr(taught_crf, "_MAX_ITER", 2000)
    model = CRF(**parameters).fit(X, Y)
    before = copy(model)
    model.partial_fit(NEW, NEW_Y)
    assert len(model.weights_) > len(before.weights_)
    grown = copy(before)
    encoder, encoded = before.encoder_.grown(before._encode(NEW).corpus)
    grown.encoder_ = encoder
    labels = np.arange(len(model.classes_))
    start, stored = (
        taught_crf.enlarged(before._layout, grown._layout, a, labels)
        for a in (before.weights_, before._curvature)
    )
    grown.weights_ = start
    data = grown._labelled(NEW, NEW_Y, None, None)._replace(encoded=encoded)
    loss = grown._training_loss(data.weighted(parameters.get("class_weight")))
    features = taught_crf.features_per_node(encoded)
    h = np.maximum(2 * model.l2 + features ** (1 / 3) * dequantized(stored), taught_crf._LEAST)
    gradient = loss(model.weights_)[1] + h * (model.weights_ - start)
    assert np.abs(gradient).max() < 1e-4
    assert (dequantized(model._curvature) >= dequantized(stored) - 1e-2).all()


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_a_correction_holds_and_other_features_do_not_change(parameters):
    model = CRF(**parameters).fit(X, Y)
    before = copy(model)
    model.partial_fit(NEW, NEW_Y)
    assert model.predict(NEW)[0] == NEW_Y[0]
    weights = {name: value for name, value in before.state_features_.items() if "ives" in str(name)}
    assert weights
    assert all(model.state_features_[name] == value for name, value in weights.items())
    assert [*before.predict(X)] == [*model.predict(X)]


def test_trees_and_vectors_learn_more():
    model = CRF().fit(TREES, TREE_Y)
    more = [Tree(["sees", "Rome", "Ana"], [-1, 0, 0])]
    assert model.partial_fit(more, [["O", "LOC", "PER"]]).predict(more)[0] == ["O", "LOC", "PER"]
    random = np.random.RandomState(0)
    vectors = [random.randn(4, 3) for _ in range(6)]
    labels = [["a" if row[0] > 0 else "b" for row in part] for part in vectors]
    model = CRF().fit(vectors[:5], labels[:5])
    assert model.partial_fit(vectors[5:], labels[5:]).predict(vectors[5:])[0] == labels[5]


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from(["Ana", "Rome", "in", "big", "new", "words"]), min_size=1, max_size=5), st.data()
)
def test_any_labels_of_distinct_words_are_predicted_afterwards(words, data):
    words = list(dict.fromkeys(words))
    labels = [data.draw(st.sampled_from(["PER", "LOC", "O"])) for _ in words]
    model = CRF().fit(X, Y).partial_fit([words], [labels])
    assert model.predict([words])[0] == labels
    assert np.isfinite(model.weights_).all()


def test_labels_that_cannot_be_predicted_change_the_weights_once(monkeypatch):
    words, labels = [["so", "so"], ["so", "so"]], [["PER", "O"], ["O", "LOC"]]  # only one of the two
    model, other = CRF(window=0).fit(X, Y), CRF(window=0).fit(X, Y)
    model.partial_fit(words, labels)
    monkeypatch.setattr(taught_crf, "_DOUBLINGS", 0)
    other.partial_fit(words, labels)
    assert np.array_equal(model.weights_, other.weights_)


def test_new_labels_are_added_and_not_predicted_before_they_are_taught():
    model = CRF().fit(X, Y)
    marginals = model.predict_marginals(X)
    model.partial_fit([], [], classes=["ORG", "LOC"])
    assert [*model.classes_] == ["LOC", "O", "ORG", "PER"]
    assert [*model.predict(X)] == Y
    assert all(
        new[:, 2].max() < old.max(axis=1).min()
        for new, old in zip(model.predict_marginals(X), marginals, strict=True)
    )
    model.partial_fit([["Acme", "sees", "Bolt"]], [["ORG", "O", "DATE"]])
    assert model.predict([["Acme", "sees", "Bolt"]])[0] == ["ORG", "O", "DATE"]
    assert [*model.predict(X)] == Y


def test_unfitted_models_begin_with_the_structures():
    model = CRF().partial_fit(X, Y, classes=["ORG"])
    assert [*model.classes_] == ["LOC", "O", "ORG", "PER"]
    assert [*model.predict(X)] == Y


def test_partly_known_labels_and_weights():
    model = CRF().fit(X, Y)
    model.partial_fit(NEW, [["PER", None, None, "O", None]])
    predicted = model.predict(NEW)[0]
    assert (predicted[0], predicted[3]) == ("PER", "O")
    ignored = CRF().fit(X, Y).partial_fit(NEW, NEW_Y, sample_weight=[0.0])
    assert [*ignored.predict(X)] == Y
    with pytest.raises(DataError, match="sample_weight"):
        model.partial_fit(NEW, NEW_Y, sample_weight=[1.0, 2.0])


@pytest.mark.parametrize("parameters", [{}, {"l1": 0.3, "l2": 0.1}])
def test_a_model_from_a_file_learns_the_same(tmp_path, parameters):
    model = CRF(**parameters).fit(X, Y)
    model.save(tmp_path / "model.fuda")
    loaded = fuda.load(tmp_path / "model.fuda")
    for _ in range(2):
        model.partial_fit(NEW, NEW_Y)
        loaded.partial_fit(NEW, NEW_Y)
        assert np.array_equal(model.weights_, loaded.weights_)
        model.save(tmp_path / "a.fuda")
        loaded.save(tmp_path / "b.fuda")
        assert (tmp_path / "a.fuda").read_bytes() == (tmp_path / "b.fuda").read_bytes()


def test_what_an_l1_term_has_set_to_0_stays_0():
    model = CRF(l1=0.3, l2=0.1).fit(X, Y)
    names = {name for name, value in model.state_features_.items() if value}
    unused = set(CRF(l1=0.0).fit(X, Y).state_features_) - names
    model.partial_fit(NEW, NEW_Y)
    assert model.predict(NEW)[0] == NEW_Y[0]
    assert all(not model.state_features_.get(name) for name in unused)


def test_models_without_curvature_are_refused(tmp_path):
    model = CRF().fit(X, Y)
    model._curvature = None
    model.save(tmp_path / "old.fuda")
    old = fuda.load(tmp_path / "old.fuda")
    assert [*old.predict(X)] == Y
    with pytest.raises(DataError, match="fit a model"):
        old.partial_fit(NEW, NEW_Y)


@pytest.mark.parametrize("bad", [[["PER"]], [["PER", "O", "LOC", "O", 3]]])
def test_bad_labels_leave_the_model_as_it_was(bad):
    model = CRF().fit(X, Y)
    weights, classes = model.weights_.copy(), model.classes_.tolist()
    with pytest.raises(DataError):
        model.partial_fit(NEW, bad)
    assert np.array_equal(model.weights_, weights)
    assert model.classes_.tolist() == classes
