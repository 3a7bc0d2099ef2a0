"""class_weight: weights of nodes by their labels."""

from __future__ import annotations

import numpy as np
import pytest

import fuda
from fuda import (
    CRF,
    HMM,
    HMSVM,
    MEMM,
    DataError,
    HMPerceptron,
    MarginalizedPerceptron,
    MarginalizedSVM,
    Reranker,
)

X = [["a", "b", "a", "c"], ["b", "b", "a"], ["c", "a"]]
Y = [["N", "N", "S", "N"], ["N", "N", "N"], ["N", "S"]]
WEIGHING = [
    CRF("pointwise", features="word"),
    CRF("markov", features="word"),
    MEMM(features="word"),
    HMM(),
    HMSVM(rescale=True, features="word"),
    MarginalizedPerceptron(features="word", orders=1, calibrate=False),
    MarginalizedSVM(features="word", calibrate=False),
]


def by_node(weights):
    return [[weights[label] for label in labels] for labels in Y]


@pytest.mark.parametrize("model", WEIGHING, ids=lambda model: type(model).__name__)
def test_it_is_a_weight_of_nodes(model, tmp_path):
    """9 nodes, 2 labels: 7 are N and 2 are S."""
    for class_weight, weights in (
        ({"S": 3.0}, {"N": 1.0, "S": 3.0}),
        ("balanced", {"N": 9 / 14, "S": 9 / 4}),
        ({"N": 0.5, "S": 2}, {"N": 0.5, "S": 2.0}),
    ):
        weighted = type(model)(**model.get_params() | {"class_weight": class_weight}).fit(X, Y)
        same = type(model)(**model.get_params()).fit(X, Y, position_weight=by_node(weights))
        for name, array in weighted._arrays().items():
            np.testing.assert_allclose(array, same._arrays()[name], rtol=1e-12)
        both = type(model)(**model.get_params() | {"class_weight": class_weight})
        both.fit(X, Y, position_weight=by_node({"N": 2.0, "S": 1.0}))
        product = {"N": 2 * weights["N"], "S": weights["S"]}
        same = type(model)(**model.get_params()).fit(X, Y, position_weight=by_node(product))
        for name, array in both._arrays().items():
            np.testing.assert_allclose(array, same._arrays()[name], rtol=1e-12)
        weighted.save(tmp_path / "m.fuda")
        loaded = fuda.load(tmp_path / "m.fuda")
        assert loaded.class_weight == class_weight
        assert loaded.predict(X).tolist() == weighted.predict(X).tolist()


def test_it_acts_where_a_labeler_is_a_prior():
    prior = CRF("pointwise", features="word", class_weight={"S": 20.0})
    plain = CRF("pointwise", features="word")
    models = [
        MarginalizedPerceptron(prior=p, calibrate=False).fit(X, Y).prior_source_.source
        for p in (prior, plain)
    ]
    assert models[0].predict_marginals(X)[0][2, 1] > models[1].predict_marginals(X)[0][2, 1]


def test_integers_are_labels_too(tmp_path):
    numbers = [[int(label == "S") for label in labels] for labels in Y]
    model = MEMM(class_weight={1: 2.0}).fit(X, numbers)
    model.save(tmp_path / "m.fuda")
    assert fuda.load(tmp_path / "m.fuda").class_weight == {1: 2.0}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CRF(class_weight="balanced"), "choose loss='pointwise' or 'markov'"),
        (HMSVM(rescale=False, class_weight="balanced"), "set rescale=True"),
        (MEMM(class_weight="equal"), "class_weight='equal': give a dict"),
        (MEMM(class_weight={"S": -1}), "that of the label 'S' is -1; give a number"),
        (MEMM(class_weight={"S": "x"}), "give a number"),
        (MEMM(class_weight={"Z": 2.0}), "the label 'Z' is not in the data; known are 'N', 'S'"),
    ],
)
def test_what_is_not_a_weight_is_refused(model, message):
    with pytest.raises(DataError, match=message):
        model.fit(X, Y)


@pytest.mark.parametrize("kind", [HMPerceptron, Reranker])
def test_models_without_weights_of_nodes_say_so(kind):
    with pytest.raises(TypeError, match=r"has no parameter 'class_weight'.*labels have weights in CRF"):
        kind(class_weight="balanced")


@pytest.mark.slow  # it learns from 125,595 residues, twice
def test_rare_sites_are_found(corpora):
    """Of 457 residues one is a site: a weight finds more of them, and raises F1."""
    parts = [fuda.formats.read(corpora / "phospho" / f"{part}_PKA.fasta") for part in ("train", "test")]
    train, test = parts
    scores = []
    for weight in (None, {"site": 5.0}):
        model = MEMM(features="protein", window=4, class_weight=weight, tol=1e-3).fit(train.X, train.y)
        scores.append(fuda.metrics.label_scores(test.y, model.predict(test.X)).micro)
    assert scores[1].recall > scores[0].recall + 0.1
    assert scores[1].f1 > scores[0].f1 + 0.03
