"""The learner of the page: by what the data are, and taught one structure after another."""

from __future__ import annotations

import pytest

from fuda import Dag, Tree
from fuda.active import learner_for

X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Ana", "sings"]]
y = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "O", "O"], ["B-PER", "O"]]


@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize(
    ("structures", "features"),
    [(X, "text"), ([list("MKTAYIAKQR")], "protein"), ([list("ACGTTGCA")], "dna")],
)
def test_features_follow_observations(structures, features, kernel):
    assert learner_for(structures, kernel=kernel).features == features


@pytest.mark.parametrize("kernel", [False, True])
def test_it_is_taught_one_structure_after_another_and_takes_new_labels(kernel):
    model = learner_for(X, scheme="IOB2", kernel=kernel)
    for x, labels in zip(X, y, strict=True):
        model.partial_fit([x], [labels])
        assert model.predict([x])[0] == labels
    assert set(model.classes_) == {"B-LOC", "B-PER", "O"}


@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize(
    "structure", [[{"a": 1.0}, {"b": 1.0}], Tree(["a", "b"], [-1, 0]), Dag(["a", "b"], [(0, 1)])]
)
def test_features_trees_and_graphs(structure, kernel):
    model = learner_for([structure], scheme="IOB2", kernel=kernel).partial_fit([structure], [["B-A", "O"]])
    assert model.predict([structure])[0] == ["B-A", "O"]
    assert model.scheme is None or isinstance(structure, list)


def test_with_few_labelled_structures_the_likeliest_labeling_is_predicted():
    assert [learner_for(X, "IOB2", labelled=n).outside_penalty for n in (0, 24, 25)] == [0.0, 0.0, 0.5]
    assert learner_for(X, labelled=100).outside_penalty == 0.0
