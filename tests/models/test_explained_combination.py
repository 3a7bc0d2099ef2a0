"""Explanations of several models together, and of what Auto chose."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuda
from fuda import CRF, HMM, Auto, Dag, DataError, MarginalizedPerceptron, Sequence, Tree
from fuda.data.corpus import Corpus
from fuda.models.combination import Combination, Decoder
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
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.integers(0, 3))
def test_the_label_that_is_predicted_and_the_best_other_one(shape, words, at):
    model, x, node = combined(shape), shaped(shape, words), at % len(words)
    found = model.explain(x, node)
    assert found.chosen.label == model.predict([x])[0][node]
    assert sum(part.value for part in found.contributions) == pytest.approx(found.difference, abs=1e-9)
    corpus, number = Corpus([x]), model.classes_.tolist().index
    scores, pairs = model.decoder.scored(
        corpus, model.decoder.mean(model.marginals([x])), model.classes_.tolist()
    )
    if shape == "dag":
        ranked = sorted(scores[node], reverse=True)
        assert found.difference == pytest.approx(ranked[0] - ranked[1], abs=1e-9)
        return
    labelings = [
        (y, value) for y, value in all_labelings(corpus.graph.heads, scores, pairs) if value > -1e300
    ]
    best = max(value for _, value in labelings)
    others = [value for y, value in labelings if y[node] != number(found.chosen.label)]
    if found.rival is None:
        assert not others
    else:
        assert found.difference == pytest.approx(best - max(others), abs=1e-9)


@pytest.mark.parametrize("combine", [True, False])
def test_auto_explains_what_it_chose_and_so_does_its_file(combine, tmp_path):
    model = Auto(60.0, combine=combine, candidates={"crf": CRF(), "hmm": HMM()}).fit(X * 2, Y * 2)
    model.save(tmp_path / "model.fuda")
    for node in range(3):
        found = model.explain(X[1], node)
        assert found.chosen.label == model.predict([X[1]])[0][node]
        assert str(fuda.load(tmp_path / "model.fuda").explain(X[1], node)) == str(found)


def test_other_questions_are_errors():
    with pytest.raises(DataError, match="node=9"):
        combined("sequence").explain(X[0], 9)
    with pytest.raises(DataError, match="empty"):
        combined("sequence").explain([], 0)
