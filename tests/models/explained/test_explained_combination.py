"""Explanations of several models together, and of what Auto chose."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuda
from fuda import CRF, HMM, Auto, Dag, DataError, MarginalizedPerceptron, Sequence, Tree
from fuda.data.corpus import Corpus
from fuda.models.choice.combination import Combination, Decoder
from oracles import all_labelings

WORDS = ["Ana", "Bo", "eats", "in", "Lima"]
X = [["Ana", "eats"], ["Bo", "in", "Lima"], ["Lima", "eats", "Ana", "Bo"], ["Bo"], ["in", "Ana"]]
Y = [["B-x", "O"], ["B-x", "I-x", "B-x"], ["B-x", "O", "B-x", "I-x"], ["O"], ["O", "B-x"]]
PAIRS = np.array([[0.3, 0.5, -0.2], [-0.1, 0.2, 0.4], [0.1, -0.6, 0.3]])


def shaped(shape, words):
    if shape == "sequence":
        return Sequence(words)
    heads = [-1, 0, 0, 1][: len(words)]
    if shape == "tree":
        return Tree(words, heads)
    return Dag(words, [(head, t) for t, head in enumerate(heads) if head >= 0])


@cache
def combined(shape):
    second = MarginalizedPerceptron(epochs=2, orders=1)
    first = HMM() if shape != "dag" else MarginalizedPerceptron(epochs=1, orders=1, features="word")
    members = [model.fit([shaped(shape, words) for words in X], Y) for model in (first, second)]
    scheme = "IOB2" if shape == "sequence" else None
    return Combination(members, Decoder(np.array([0.5, 2.0]), np.array([0.0, 0.0, 0.7]), PAIRS, scheme))


@pytest.mark.parametrize("shape", ["sequence", "tree", "dag"])
@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    st.integers(0, 3),
    st.lists(st.sampled_from([None, None, "O", "B-x"]), min_size=4, max_size=4),
)
def test_the_label_that_is_predicted_and_the_best_other_one(shape, words, at, labels):
    model, x, node = combined(shape), shaped(shape, words), at % len(words)
    known = labels[: len(words)] if any(labels[: len(words)]) else None
    given_labels = None if known is None else [known]
    explanation = model.explain(x, node, known=known)
    assert explanation.chosen.label == model.predict([x], known=given_labels)[0][node]
    total = sum(part.value for part in explanation.contributions)
    assert total == pytest.approx(explanation.difference, abs=1e-9)
    corpus, number = Corpus([x]), model.classes_.tolist().index
    fixed = None if known is None else np.array([-1 if b is None else number(b) for b in known])
    opinions = model.opinions(corpus, given_labels)
    scores, pairs = model.decoder.scored(corpus, opinions, model.classes_.tolist(), fixed)
    if shape == "dag":
        ranked = sorted(scores[node], reverse=True)
        assert (explanation.rival is None) == (known is not None and known[node] is not None)
        if explanation.rival is not None:
            assert explanation.difference == pytest.approx(ranked[0] - ranked[1], abs=1e-9)
        return
    labelings = [
        (y, value) for y, value in all_labelings(corpus.graph.heads, scores, pairs) if value > -1e300
    ]
    best = max(value for _, value in labelings)
    others = [value for y, value in labelings if y[node] != number(explanation.chosen.label)]
    if explanation.rival is None:
        assert not others
    else:
        assert explanation.difference == pytest.approx(best - max(others), abs=1e-9)


@pytest.mark.parametrize("shape", ["sequence", "tree"])
@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    st.lists(st.sampled_from([None, None, 0, 1, 2]), min_size=4, max_size=4),
)
def test_the_n_best_labelings_given_some_labels(shape, words, numbers):
    model, x = combined(shape), shaped(shape, words)
    known = [None if k is None else model.classes_[k] for k in numbers[: len(words)]]
    corpus, q = Corpus([x]), model.predict_marginals([x], known=[known])[0]
    for row, label in zip(q, known, strict=True):
        assert label is None or row[model.classes_.tolist().index(label)] == 1
    scores, pairs = model.decoder.scored(corpus, model.opinions(corpus, [known]), model.classes_.tolist())
    allowed = [
        ([model.classes_[k] for k in y], value)
        for y, value in all_labelings(corpus.graph.heads, scores, pairs)
        if value > -1e300
        and all(k is None or model.classes_[k] == model.classes_[j] for k, j in zip(numbers, y, strict=False))
    ]
    if not allowed:  # the labels given are not well-formed
        with pytest.raises(DataError, match="every labeling is forbidden"):
            model.predict_nbest([x], 5, known=[known])
        return
    ranked = model.predict_nbest([x], 5, known=[known])[0]
    values = sorted((value for _, value in allowed), reverse=True)
    log_z = float(np.logaddexp.reduce(values))
    assert [log_p for _, log_p in ranked] == pytest.approx([value - log_z for value in values[:5]], abs=1e-9)
    assert {tuple(y): v for y, v in allowed}[tuple(ranked[0][0])] == pytest.approx(values[0], abs=1e-9)
    assert list(model.predict([x], known=[known])[0]) == list(ranked[0][0])


def test_n_best_labelings_of_a_graph_are_those_of_its_nodes():
    model, x = combined("dag"), shaped("dag", X[0][:3])
    q = np.log(model.predict_marginals([x])[0]) - model.decoder.bias
    q -= np.logaddexp.reduce(q, axis=1, keepdims=True)
    every = itertools.product(range(len(model.classes_)), repeat=len(q))
    values = sorted((sum(row[k] for row, k in zip(q, y, strict=True)) for y in every), reverse=True)
    ranked = model.predict_nbest([x], 5)[0]
    assert [log_p for _, log_p in ranked] == pytest.approx(values[:5], abs=1e-9)
    assert list(ranked[0][0]) == list(model.predict([x])[0])


def test_n_best_labelings_are_at_least_one():
    with pytest.raises(DataError, match="whole number"):
        combined("tree").predict_nbest([shaped("tree", X[0][:3])], 0)
    assert list(combined("sequence").predict_nbest([[]], 2)[0]) == [([], 0.0)]


@pytest.mark.parametrize("combine", [True, False])
def test_auto_explains_what_it_chose_and_so_does_its_file(combine, tmp_path):
    model = Auto(60.0, combine=combine, candidates={"crf": CRF(), "hmm": HMM()}).fit(X * 2, Y * 2)
    model.save(tmp_path / "model.fuda")
    for node in range(3):
        explanation = model.explain(X[1], node)
        assert explanation.chosen.label == model.predict([X[1]])[0][node]
        assert str(fuda.load(tmp_path / "model.fuda").explain(X[1], node)) == str(explanation)


def test_other_questions_are_errors():
    with pytest.raises(DataError, match="node=9"):
        combined("sequence").explain(X[0], 9)
    with pytest.raises(DataError, match="empty"):
        combined("sequence").explain([], 0)
