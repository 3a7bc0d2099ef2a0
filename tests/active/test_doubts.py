"""Doubtful labels: planted ones come first, in sequences, trees and graphs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fuda import CRF, HMM, Dag, DataError, HMPerceptron, MarginalizedPerceptron, Tree
from fuda.active.doubts import doubts, likely_scheme

PLACES, PEOPLE = ["Lima", "Cusco", "Ica"], ["Ana", "Bo", "Eva"]


def sentences(count=15):
    random = np.random.RandomState(0)
    X, y = [], []
    for _ in range(count):
        a, b = random.choice(PEOPLE), random.choice(PLACES)
        X.append([str(a), "Ruiz", "lives", "in", "New", str(b), "now"])
        y.append(["B-PER", "I-PER", "O", "O", "B-LOC", "I-LOC", "O"])
    return X, y


@pytest.mark.parametrize(
    ("labels", "nodes", "suggested"),
    [
        (["B-PER", "I-PER", "O", "O", "B-PER", "I-PER", "O"], [4, 5], ["B-LOC", "I-LOC"]),
        (["B-PER", "I-PER", "O", "O", "O", "B-LOC", "O"], [4, 5], ["B-LOC", "I-LOC"]),
        (["B-PER", "I-PER", "O", "O", "O", "O", "O"], [4, 5], ["B-LOC", "I-LOC"]),
        (["B-PER", "I-PER", "B-LOC", "O", "B-LOC", "I-LOC", "O"], [2], ["O"]),
        (["B-PER", "O", "O", "O", "B-LOC", "I-LOC", "O"], [1], ["B-PER", "I-PER"]),
        (["B-PER", "I-LOC", "O", "O", "B-LOC", "I-LOC", "O"], [1], ["B-PER", "I-PER"]),
    ],
)
def test_an_entity_is_one_doubt_and_comes_first(labels, nodes, suggested):
    X, y = sentences()
    y[7] = labels
    shares = []
    doubtful = doubts(X, y, folds=3, progress=shares.append)
    first = doubtful[0]
    assert (first.structure, first.nodes, first.suggested) == (7, nodes, suggested)
    assert first.given == labels[first.start : first.end]
    assert first.probability > 0.5 > doubtful[1].probability
    assert shares == [1 / 3, 2 / 3, 1.0]


def test_explanations_name_the_word_elsewhere_and_features():
    X, y = sentences(30)
    y[7] = ["B-PER", "O", "O", "O", "B-LOC", "I-LOC", "O"]
    first = doubts(X, y, folds=3)[0]
    assert "Ruiz elsewhere: I-PER 29; for I-PER: " in first.explanation
    assert "s3=uiz" in first.explanation
    assert json.loads(json.dumps(first.to_dict()))["structure"] == 7


def test_top_and_the_order():
    X, y = sentences()
    doubtful = doubts(X, y, folds=3, top=None)
    assert len({(d.structure, t) for d in doubtful for t in d.nodes}) == sum(map(len, X))
    assert [d.score for d in doubtful] == sorted((d.score for d in doubtful), reverse=True)
    assert doubts(X, y, folds=3, top=4) == doubtful[:4]


@pytest.mark.parametrize("estimator", [HMM(), CRF(pair_features=True), MarginalizedPerceptron(orders=1)])
def test_other_learners(estimator):
    X, y = sentences()
    y[7] = ["B-PER", "I-PER", "B-LOC", "O", "B-LOC", "I-LOC", "O"]
    first = doubts(X, y, estimator=estimator, folds=2)[0]
    assert (first.structure, first.nodes) == (7, [2])
    assert not hasattr(estimator, "classes_")


def test_a_learner_without_probabilities_is_refused():
    class Plain(HMPerceptron):
        predict_marginals = property()

    with pytest.raises(DataError, match="no probabilities"):
        doubts(*sentences(), estimator=Plain())


def test_unknown_labels_are_not_doubted_and_labels_of_one_structure_are():
    X, y = sentences()
    y[3] = ["B-PER", None, None, "O", "B-LOC", "I-LOC", "O"]
    y[7] = ["B-PER", "I-PER", "O", "B-TIME", "B-LOC", "I-LOC", "O"]
    doubtful = doubts(X, y, folds=3, top=None)
    assert (doubtful[0].structure, doubtful[0].nodes) == (7, [3])
    assert not {(3, 1), (3, 2)} & {(d.structure, t) for d in doubtful for t in d.nodes}


def test_trees_and_graphs():
    words, labels = ["is", "Ana", "big", "very"], ["V", "N", "A", "R"]
    trees = [Tree(words, [-1, 0, 0, 2])] * 8
    graphs = [Dag(words, [(0, 1), (0, 2), (2, 1), (2, 3)])] * 8
    y = [labels] * 7 + [["V", "N", "R", "R"]]
    for structures in (trees, graphs):
        first = doubts(structures, y, folds=4)[0]
        assert (first.structure, first.nodes, first.suggested) == (7, [2], ["A"])


@pytest.mark.parametrize(
    ("y", "scheme"),
    [
        ([["B-PER", "I-PER", "O"], ["O", "B-LOC"]], "IOB2"),
        ([["B-PER", "I-PER", "O"], ["O", "I-PER", "O"], ["B-LOC", "I-LOC"], ["O", "B-LOC"]], "IOB2"),
        ([["B-P", "L-P", "U-P"], ["O", "I-P"], ["B-P", "I-P", "L-P"], ["U-P"]], "BILOU"),
        ([["O", "O"]], None),
        ([["NOUN", "VERB"]], None),
        ([[1, 2]], None),
        ([[None, "B-PER", None]], "IOB2"),
    ],
)
def test_the_scheme_that_most_labels_follow(y, scheme):
    assert likely_scheme(y) == scheme
