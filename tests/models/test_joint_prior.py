"""A prior that scores whole labelings: decoding with its scores, and the prior by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import fuda
from fuda import CRF, HMM, MarginalizedPerceptron, MarginalizedSVM
from fuda.inference import Graph
from fuda.marginalized import calibration
from fuda.marginalized.calibration import DecisionInputs
from fuda.marginalized.priors import Joint

WORDS = ["Ana", "lives", "in", "Lima", "Bo", "sees", "big", "Rome", "and", "Rosa"]
NAMES = {"Ana": "PER", "Bo": "PER", "Rosa": "PER", "Lima": "LOC", "Rome": "LOC"}


def sentences(seed, count):
    random = np.random.RandomState(seed)
    X = [random.choice(WORDS, random.randint(2, 8)).tolist() for _ in range(count)]
    return X, [[NAMES.get(word, "O") for word in x] for x in X]


X, Y = sentences(0, 30)
OTHERS = [[*x, "strange"] for x in sentences(1, 20)[0]]


@pytest.mark.parametrize("prior", [CRF(), HMM()])
@pytest.mark.parametrize("model", [MarginalizedPerceptron(epochs=3, orders=1), MarginalizedSVM()])
def test_without_the_kernel_it_labels_as_the_prior_does(model, prior):
    fitted = clone(model).set_params(prior=prior, decode="viterbi").fit(X, Y)
    assert fitted._calibration.by_labelings
    assert not fitted._calibration.pairs.any()
    of_prior = fitted.prior_source_.source
    fitted._calibration = replace(fitted._calibration, labeling_coefficients=np.array([0.0, 0.7, 1.0]))
    assert [*fitted.predict(OTHERS)] == [*of_prior.predict(OTHERS)]


def test_a_prior_that_has_not_seen_a_label_does_not_score_labelings():
    prior = CRF().fit(X, [["PER" if label == "PER" else "O" for label in y] for y in Y])
    model = MarginalizedPerceptron(prior=prior, decode="viterbi", epochs=3, orders=1).fit(X, Y)
    joint = model._prior_of(model._encode(OTHERS).corpus, None).joint
    assert [*model.classes_] == ["LOC", "O", "PER"]
    np.testing.assert_array_equal(joint.nodes[:, 0], joint.nodes[:, 1:].min(axis=1))
    assert joint.pairs[0, 0] == joint.pairs.min()
    assert not model._calibration.by_labelings
    assert model.score(X, Y) > 0.9


def test_its_marginals_are_used_where_they_label_better(tmp_path, monkeypatch):
    labelings = calibration.Calibration.labelings

    def turned(fitted, inputs):
        scores, pairs = labelings(fitted, inputs)
        return (-scores, -pairs) if fitted.by_labelings else (scores, pairs)

    with monkeypatch.context() as patch:
        patch.setattr(calibration.Calibration, "labelings", turned)
        model = MarginalizedPerceptron(prior=CRF(), decode="viterbi", epochs=3, orders=1).fit(X, Y)
    assert not model._calibration.by_labelings
    assert model._calibration.pairs.any()
    model.save(tmp_path / "m.fuda")
    loaded = fuda.load(tmp_path / "m.fuda")
    assert not loaded._calibration.by_labelings
    assert [*loaded.predict(OTHERS)] == [*model.predict(OTHERS)]
    assert model.score(X, Y) > 0.9


def test_gradient_of_the_likelihood_beside_a_joint_prior():
    random = np.random.RandomState(0)
    labels = random.randint(-1, 3, 12)
    inputs = DecisionInputs(
        random.randn(12, 3), np.full((12, 3), 1 / 3), joint=Joint(*(random.randn(n, 3) for n in (12, 3)))
    )
    graph, pairs = Graph([0, 5, 12]), random.randn(3, 3)
    parts = calibration._parts(inputs, inputs.joint)

    def loss(numbers):
        return calibration._labeling_loss(numbers, parts, inputs.joint, labels, graph, pairs, None)

    numbers, step = np.array([0.7, 1.1, 0.4]), 1e-6
    expected = [(loss(numbers + d)[0] - loss(numbers - d)[0]) / (2 * step) for d in step * np.eye(3)]
    np.testing.assert_allclose(loss(numbers)[1], expected, atol=1e-6)


def test_rounding_does_not_keep_the_fit_of_coefficients_going():
    best, losses, random = np.array([0.5, 1.2]), [], np.random.RandomState(0)

    def loss(numbers):
        """A loss of a thousand, whose last digits are noise."""
        away, sizes = np.log(numbers / best), np.array([300.0, 4000.0])
        losses.append(1000 + 0.5 * sizes @ away**2 + 1e-11 * random.randn())
        return losses[-1], sizes * away / numbers

    np.testing.assert_allclose(calibration._fitted(loss, np.ones(2)), best, rtol=1e-3)
    assert len(losses) < 40


def test_files_keep_what_labelings_are_scored_by(tmp_path):
    model = MarginalizedPerceptron(prior=CRF(), decode="viterbi", epochs=3, orders=1).fit(X, Y)
    model.save(tmp_path / "m.fuda")
    loaded = fuda.load(tmp_path / "m.fuda")
    assert loaded._calibration.by_labelings
    np.testing.assert_array_equal(
        loaded._calibration.labeling_coefficients, model._calibration.labeling_coefficients
    )
    assert [*loaded.predict(OTHERS)] == [*model.predict(OTHERS)]


def test_a_prior_that_is_taught_teaches_the_model():
    model = MarginalizedPerceptron(prior=CRF(), decode="viterbi", epochs=3, orders=1).fit(X, Y)
    before = model.prior_source_.source
    weights = before.weights_.copy()
    new, labels = [["Oslo", "sees", "Kim"]], [["LOC", "O", "PER"]]
    model.partial_fit(new, labels)
    assert model.predict(new)[0] == labels[0]
    assert model.prior_source_.source.predict(new)[0] == labels[0]
    np.testing.assert_array_equal(before.weights_, weights)  # the user may hold it
