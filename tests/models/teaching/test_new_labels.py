"""partial_fit with labels that the model has not seen: in the data, or announced by classes=."""

from __future__ import annotations

import numpy as np
import pytest

import fuda
from fuda import CRF, DataError, HMPerceptron, MarginalizedPerceptron
from fuda.kernels import RBF, Precomputed

X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Bo", "runs"], ["in", "Rome", "Bo", "runs"]]
Y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"], ["PER", "O"], ["O", "LOC", "PER", "O"]]
MORE = [["Acme", "is", "in", "Lima"], ["Ana", "runs", "Acme"]]
LABELS = [["{}", "O", "O", "LOC"], ["PER", "O", "{}"]]
PERCEPTRONS = [
    HMPerceptron(),
    HMPerceptron(order=0, average=False),
    HMPerceptron(order=2),
    HMPerceptron(update="arow"),
    HMPerceptron(kernel=RBF(0.1)),
    HMPerceptron(kernel=RBF(0.1), average="voted", order=2),
]


def named(name):
    return [[label.format(name) for label in labels] for labels in LABELS]


def taught(model, name):
    model = fuda.models.base.clone(model).fit(X, Y)
    for _ in range(8):
        model.partial_fit(MORE, named(name))
    return model


@pytest.mark.parametrize("model", PERCEPTRONS, ids=repr)
def test_new_labels_are_learned_wherever_they_are_sorted(model, tmp_path):
    """The label comes before, among or after the others: all else is the same."""
    for name in ("AAA", "MISC", "ZZZ"):
        later = taught(model, name)
        assert later.classes_.tolist() == sorted(["LOC", "O", "PER", name])
        # The later steps of AROW are smaller.
        assert later.mistakes_[-1].nodes == 0 or model.update == "arow"
        assert any(name in labels for labels in later.predict(MORE))  # a mean follows slowly
        later.save(tmp_path / "m.fuda")
        assert fuda.load(tmp_path / "m.fuda").predict(X + MORE).tolist() == later.predict(X + MORE).tolist()
    first, last = taught(model, "AAA"), taught(model, "ZZZ")
    order = [1, 2, 3, 0]
    if model.order < 2 and model.average != "voted":
        for a, b in zip(first.predict_marginals(X + MORE), last.predict_marginals(X + MORE), strict=True):
            np.testing.assert_allclose(a[:, order], b, atol=1e-9)
    assert [m.mistakes_ for m in (first, last)] == [first.mistakes_] * 2


@pytest.mark.parametrize("model", PERCEPTRONS, ids=repr)
def test_labels_that_are_announced_change_nothing_else(model):
    fitted = fuda.models.base.clone(model).fit(X, Y)
    grown = fuda.models.base.clone(model).fit(X, Y).partial_fit([], [], classes=["ZZZ", "MISC", "O"])
    assert grown.classes_.tolist() == ["LOC", "MISC", "O", "PER", "ZZZ"]
    assert grown.predict(X).tolist() == fitted.predict(X).tolist()
    both = [fuda.models.base.clone(model).partial_fit(X, Y, classes=c) for c in (None, ["MISC"])]
    assert both[1].classes_.tolist() == ["LOC", "MISC", "O", "PER"]
    for model in both:
        model.partial_fit(MORE, named("MISC"))
    assert both[0].predict(X + MORE).tolist() == both[1].predict(X + MORE).tolist()


@pytest.mark.parametrize(
    "model",
    [
        MarginalizedPerceptron(orders=1),
        MarginalizedPerceptron(orders=1, decode="viterbi"),
        MarginalizedPerceptron(orders=1, prior=CRF()),
        MarginalizedPerceptron(orders=1, mixing=0.5, calibrate=False),
    ],
    ids=repr,
)
def test_the_marginalized_perceptron_takes_new_labels(model, tmp_path):
    fitted = fuda.models.base.clone(model).fit(X, Y)
    grown = fuda.models.base.clone(model).fit(X, Y).partial_fit([], [], classes=["AAA"])
    assert grown.classes_.tolist() == ["AAA", "LOC", "O", "PER"]
    assert grown.predict(X).tolist() == fitted.predict(X).tolist()
    for a, b in zip(fitted.decision_scores(X), grown.decision_scores(X), strict=True):
        if model.mixing is None and model.prior == "uniform":  # up to a factor
            np.testing.assert_allclose(a / np.abs(a).max(), b[:, 1:] / np.abs(b).max(), rtol=1e-6, atol=1e-9)
        assert not b[:, 0].any()
    later = fuda.models.base.clone(model).fit(X, Y)
    for x, labels in zip(MORE, named("MISC"), strict=True):
        later.partial_fit([x], [labels])
    later.partial_fit([X[2]], [["LOC", "O"]])  # a correction
    assert later.predict([X[2], *MORE]).tolist() == [["LOC", "O"], *named("MISC")]
    later.save(tmp_path / "m.fuda")
    assert fuda.load(tmp_path / "m.fuda").predict(X + MORE).tolist() == later.predict(X + MORE).tolist()


def test_the_marginalized_perceptron_begins_with_announced_labels():
    model = MarginalizedPerceptron(orders=1).partial_fit(X, Y, classes=["MISC"])
    assert model.classes_.tolist() == ["LOC", "MISC", "O", "PER"]
    assert model.partial_fit(MORE, named("MISC")).predict(MORE).tolist() == named("MISC")


def test_what_is_not_a_new_label_is_refused():
    model = HMPerceptron().fit(X, Y)
    for classes, message in (([3], r"the label 3 \(int\) is new"), ("AB", "classes='AB': give a list")):
        with pytest.raises(DataError, match=message):
            model.partial_fit(X, Y, classes=classes)
    assert model.classes_.tolist() == ["LOC", "O", "PER"]
    chain = MarginalizedPerceptron(label_kernel=Precomputed(np.eye(3)), orders=1).fit(X, Y)
    with pytest.raises(DataError, match="'MISC' is new: with a label kernel"):
        chain.partial_fit(MORE, named("MISC"))
    assert chain.classes_.tolist() == ["LOC", "O", "PER"]
