"""Diagnoses of fitted models, and refusals of what they do not have."""

from __future__ import annotations

import numpy as np
import pytest

from fuda import CRF, HMM, HMSVM, HMPerceptron, MarginalizedPerceptron, Reranker
from fuda.features import Template
from fuda.models.explained.diagnosis import (
    feature_weights,
    pair_weights,
    probabilities,
    transition_weights,
    unseen,
)
from model_cases import X, Y


def test_probabilities_of_labels():
    model = CRF(features="word").fit(X, Y)
    labels = model.predict(X)
    tables = probabilities(model, X, labels)
    marginals = model.predict_marginals(X)
    for row, table, several in zip(tables, marginals, labels, strict=True):
        assert row == [table[t, list(model.classes_).index(label)] for t, label in enumerate(several)]
    for other in (
        HMPerceptron(epochs=1),
        HMSVM(features="word"),
        MarginalizedPerceptron(epochs=1, calibrate=False),
        Reranker(CRF(features="word"), folds=2),
    ):
        assert probabilities(other.fit(X, Y), X, Y) is None


def test_words_that_were_not_seen():
    for model in (CRF(), HMM(), MarginalizedPerceptron(epochs=1)):
        flags = unseen(model.fit(X, Y), [["Ana", "Zoe", "sings"]])
        assert [row.tolist() for row in flags] == [[False, True, False]]
    template = CRF(features=Template("U0:%x[0,0]\nB")).fit([[("a",), ("b",)]], [["N", "V"]])
    assert unseen(template, [[("z",)]]) is None
    vectors = CRF().fit([[np.ones(2), np.zeros(2)]], [["N", "V"]])
    assert unseen(vectors, [[np.ones(2)]]) is None
    assert unseen(vectors, []) is None


def test_weights_by_kind():
    model = CRF(features="word", pair_features=True).fit(X, Y)
    names, weights = feature_weights(model)
    by_name = {
        (n, b): w
        for n, row in zip(names, weights, strict=True)
        for b, w in zip(model.classes_, row, strict=True)
    }
    for key, weight in model.state_features_.items():
        assert by_name[key] == weight
    everything = model.top_features(10_000)
    pairs = pair_weights(model)
    for k, label in enumerate(model.classes_):
        column = dict(zip(pairs.names, pairs.weights[:, k], strict=True))
        assert {n: w for n, w in everything[label] if n in column} == {n: w for n, w in column.items() if w}
    assert transition_weights(model).weights == pytest.approx(model.transitions_)
    assert pair_weights(CRF(features="word").fit(X, Y)) is None
    assert feature_weights(HMSVM(features="word").fit(X, Y)) is None
    stretches = HMPerceptron(order=2, epochs=2).fit(X, Y)
    assert transition_weights(stretches).names[:4] == ["<start>", "<start> B", "<start> I", "<start> O"]
    assert transition_weights(MarginalizedPerceptron(epochs=1).fit(X, Y)) is None
