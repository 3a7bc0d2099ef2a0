"""The learner of the page: by what the data are, and taught one structure after another."""

from __future__ import annotations

import pytest

from fuda import Dag, Tree
from fuda.active import learner_for

X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Ana", "sings"]]
y = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "O", "O"], ["B-PER", "O"]]


@pytest.mark.parametrize(
    ("structures", "features"),
    [(X, "text"), ([list("MKTAYIAKQR")], "protein"), ([list("ACGTTGCA")], "dna")],
)
def test_features_follow_observations(structures, features):
    assert learner_for(structures).features == features


def test_it_is_taught_one_structure_after_another_and_takes_new_labels():
    model = learner_for(X, scheme="IOB2")
    for x, labels in zip(X, y, strict=True):
        model.partial_fit([x], [labels])
        assert model.predict([x])[0] == labels
    assert set(model.classes_) == {"B-LOC", "B-PER", "O"}


def test_vectors_trees_and_graphs():
    for structure in ([[0.0, 1.0], [1.0, 0.0]], Tree(["a", "b"], [-1, 0]), Dag(["a", "b"], [(0, 1)])):
        model = learner_for([structure]).partial_fit([structure], [["A", "B"]])
        assert model.predict([structure])[0] == ["A", "B"]
