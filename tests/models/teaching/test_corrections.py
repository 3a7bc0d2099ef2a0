"""Corrections by `partial_fit` of the marginalized perceptron hold and change little else."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest

from fuda import CRF, HMM, Dag, MarginalizedPerceptron, Sequence, Tree, load
from fuda.metrics import label_scores
from usage_cases import usage

LABELS = ["A", "B", "C"]
WORDS = ["Ana", "lives", "in", "Lima", "and", "Bo", "left", "New", "York", "now"]
MODELS = {
    "as it comes": {},
    "viterbi": {"decode": "viterbi"},
    "certain prior": {"prior": CRF(l2=1e-3), "decode": "viterbi"},
    "pointwise with a prior": {"prior": HMM(smoothing=1e-6)},
    "chain prior": {"prior": HMM(), "prior_form": "chain", "decode": "viterbi"},
    "label kernel": {"label_kernel": [[1.0, 0.4, 0.0], [0.4, 1.0, 0.2], [0.0, 0.2, 1.0]]},
    "not calibrated": {"calibrate": False},
    "scaled numbers": {"mixing": 1e40},
    "gaps": {"gap": 0.3},
}


def sentences(seed: int, count: int, size: int = 9):
    rng = np.random.default_rng(seed)
    X = [Sequence([str(w) for w in rng.choice(WORDS, rng.integers(2, size))]) for _ in range(count)]
    return X, [["AB"[w[0].isupper()] if rng.random() < 0.9 else "C" for w in x.observations] for x in X]


def shaped(X, shape):
    if shape == "tree":
        return [Tree(list(x.observations), [-1, *(np.arange(len(x) - 1) // 2)]) for x in X]
    if shape == "dag":
        edges = [[(j, i) for i in range(len(x)) for j in range(max(0, i - 2), i)] for x in X]
        return [Dag(list(x.observations), e) for x, e in zip(X, edges, strict=True)]
    return X


def check_corrections_hold(model, structures, shape="sequence"):
    """Structures, each of different words, corrected in turn to labels that nothing suggests."""
    rng = np.random.default_rng(5)
    corrections = []
    for structure in shaped(structures, shape):
        labels = rng.choice(LABELS, len(structure)).tolist()
        model.partial_fit([structure], [labels])
        assert list(model.predict([structure])[0]) == labels
        corrections.append((structure, labels))
        if model.calibrate:
            [marginals] = model.predict_marginals([structure])
            assert np.isfinite(marginals).all()
            assert [model.classes_[k] for k in marginals.argmax(axis=1)] == labels
    return corrections


def own_words(count: int):
    """Structures that share some words with the training data, and only these with each other."""
    return [Sequence([f"x{i}{k}" if k % 2 else WORDS[(i + k) % 10] for k in range(6)]) for i in range(count)]


@pytest.mark.parametrize("name", MODELS)
def test_a_correction_is_predicted_at_once(name):
    X, y = sentences(0, 20)
    model = MarginalizedPerceptron(epochs=4, orders=2, **MODELS[name]).fit(X, y)
    check_corrections_hold(model, own_words(5))


@pytest.mark.parametrize("shape", ["tree", "dag"])
def test_a_correction_of_a_tree_or_graph_is_predicted_at_once(shape):
    X, y = sentences(1, 20)
    model = MarginalizedPerceptron(epochs=4, orders=2).fit(shaped(X, shape), y)
    check_corrections_hold(model, own_words(5), shape)


def test_several_structures_in_one_call_are_all_predicted():
    X, y = sentences(2, 20)
    model = MarginalizedPerceptron(epochs=4, orders=2).fit(X, y)
    new, rng = own_words(6), np.random.default_rng(3)
    labels = [rng.choice(LABELS, len(x)).tolist() for x in new]
    model.partial_fit(new, labels)
    assert [list(p) for p in model.predict(new)] == labels


def test_a_later_correction_of_the_same_sentence_wins():
    X, y = sentences(3, 20)
    model = MarginalizedPerceptron(prior=CRF(), decode="viterbi", epochs=4, orders=2).fit(X, y)
    [x] = own_words(1)
    for label in "ABCAB":
        model.partial_fit([x], [[label] * len(x)])
        assert set(model.predict([x])[0]) == {label}


def test_unknown_labels_are_left_to_the_model():
    X, y = sentences(4, 20)
    model = MarginalizedPerceptron(epochs=4, orders=2).fit(X, y)
    [x] = own_words(1)
    [before] = model.decision_scores([x])
    model.partial_fit([x], [[None] * len(x)])
    np.testing.assert_array_equal(model.decision_scores([x])[0], before)
    assert not model._memory
    model.partial_fit([x], [["C", *[None] * (len(x) - 1)]])
    assert model.predict([x])[0][0] == "C"


def test_what_is_predicted_with_a_lead_is_not_remembered():
    X, y = sentences(5, 20)
    model = MarginalizedPerceptron(epochs=20, orders=1).fit(X, y)
    predicted = [list(p) for p in model.predict(X)]
    model.partial_fit(X, predicted)
    assert [list(p) for p in model.predict(X)] == predicted
    assert model.mistakes_[-1] == 0
    nodes = sum(len(part.alpha) for part in model._memory)
    assert nodes < sum(map(len, X)) / 2


def test_other_words_do_not_change_by_what_is_remembered():
    X, y = sentences(6, 20)
    model = MarginalizedPerceptron(epochs=4, orders=2, decode="viterbi", prior=HMM()).fit(X, y)
    strange = Sequence(["q1", "q2", "q3"])
    model.partial_fit([strange], [["C", "B", "C"]])
    other = model._encode([Sequence(["r1", "Lima", "r2"])])
    assert not model._inputs_of(other).memory.any()
    same = model._encode([Sequence(["r1", "q2", "r2"]), strange])
    recalled = model._inputs_of(same).memory
    assert np.abs(recalled[1]).max() < np.abs(recalled[4]).max()
    assert not recalled[[0, 2]].any()


@pytest.mark.parametrize("name", ["as it comes", "certain prior", "chain prior", "scaled numbers"])
def test_corrections_are_saved(name, tmp_path):
    X, y = sentences(7, 20)
    model = MarginalizedPerceptron(epochs=4, orders=2, **MODELS[name]).fit(X, y)
    corrections = check_corrections_hold(model, own_words(3))
    assert model._memory
    model.save(tmp_path / "m.fuda")
    again = load(tmp_path / "m.fuda")
    for structure, labels in corrections[-1:]:
        assert list(again.predict([structure])[0]) == labels
    everything = [*X, *(x for x, _ in corrections)]
    assert [list(p) for p in again.predict(everything)] == [list(p) for p in model.predict(everything)]
    for a, b in zip(again.predict_marginals(everything), model.predict_marginals(everything), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    again.partial_fit([X[0]], [["C"] * len(X[0])])
    assert set(again.predict([X[0]])[0]) == {"C"}


@pytest.mark.parametrize("extreme", [0.0, 1e-300, 1e-13])
def test_priors_of_nearly_nothing(extreme, tmp_path):
    """Labels that given priors all but exclude: numbers stay finite, and the file can be read."""
    X, y = sentences(9, 12)
    priors = [np.full((len(x), 3), 1 / 3) for x in X]
    model = MarginalizedPerceptron(epochs=3, orders=1, prior=priors).fit(X, y)
    [x] = own_words(1)
    against = np.tile([1.0 - 2 * extreme, extreme, extreme], (len(x), 1))
    model.partial_fit([x], [["C"] * len(x)], prior=[against])
    for either in (model, save_and_load(model, tmp_path)):
        [marginals] = either.predict_marginals([x], prior=[against])
        assert np.isfinite(marginals).all()
        np.testing.assert_allclose(marginals.sum(axis=1), 1.0)


def save_and_load(model, folder):
    model.save(folder / "again.fuda")
    return load(folder / "again.fuda")


@pytest.mark.parametrize("name", ["as it comes", "label kernel", "scaled numbers", "gaps"])
def test_an_explanation_counts_what_is_remembered(name):
    X, y = sentences(8, 20)
    model = MarginalizedPerceptron(epochs=4, orders=2, **MODELS[name]).fit(X, y)
    corrections = check_corrections_hold(model, own_words(3))
    for structure, labels in corrections[-1:]:
        for node, label in enumerate(labels):
            explanation = model.explain(structure, node, top=1000)
            assert explanation.chosen.label == label
            assert sum(v.share for v in explanation.chosen.voices) == pytest.approx(explanation.chosen.score)
            for voice in explanation.chosen.voices:
                there = model.support_structures_[voice.structure]
                assert there.observations[voice.node] == voice.observation


def test_one_correction_changes_little_and_many_help():
    """Real sentences: F1 on other text after one correction, and after 24 sentences."""
    X, y = usage()
    X, y = [Sequence(list(x.observations)) for x in X], list(y)
    train, new, test = slice(0, 60), slice(60, 84), slice(120, 220)
    model = MarginalizedPerceptron(decode="viterbi", orders=2).fit(X[train], y[train])

    def f1(m):
        return label_scores(y[test], m.predict(X[test])).micro.f1

    before, changes = f1(model), []
    for x, labels in zip(X[new], y[new], strict=True):
        if len(changes) < 4 and list(model.predict([x])[0]) != list(labels):
            taught = copy(model).partial_fit([x], [labels])  # which replaces what it changes
            assert list(taught.predict([x])[0]) == list(labels)
            changes.append(f1(taught) - before)
    assert len(changes) == 4
    assert min(changes) > -0.005
    for x, labels in zip(X[new], y[new], strict=True):
        model.partial_fit([x], [labels])
    assert f1(model) > before - 0.005


@pytest.mark.parametrize("shape", ["sequence", "tree", "dag"])
def test_a_structure_that_was_learned_with_another_label_supports_the_right_one(shape):
    X = shaped([Sequence([*words.split()]) for words in ("Ana sleeps", "Bo reads", "Ana sings")], shape)
    model = MarginalizedPerceptron().fit(X[:2], [["C", "A"], ["B", "A"]])
    before = copy(model)
    for same in (["C", "A"], [None, "A"]):
        model._relabel(X[:1], [same])
        assert model.support_ == before.support_, "these are its labels"
    assert model.predict(X)[2][0] == "C"
    model._relabel(X[:1], [["B", "A"]])
    [was], [now] = (
        [position.alpha for position in fitted.support_ if position[:2] == (0, 0)]
        for fitted in (before, model)
    )
    assert (now["B"], now.get("C", 0.0)) == (was["C"], was.get("B", 0.0))
    assert model.predict(X)[2][0] == "B"
    model._relabel(X[:1], [["new", "A"]])
    assert not [position for position in model.support_ if position[:2] == (0, 0)]
    model.partial_fit(X[:1], [["new", "A"]])
    assert model.predict(X)[2][0] == "new"
    assert before.predict(X)[2][0] == "C"
