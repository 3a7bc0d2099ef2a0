"""Empty structures: predictions of them are empty, and training leaves them out."""

import numpy as np
import pytest

from fuda import CRF, HMM, Tree
from fuda.errors import DataError
from fuda.registry import MODELS, model_class

X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Bo", "runs"]]
Y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"], ["PER", "O"]]
SOME = {
    "Auto": {"candidates": {"crf": CRF(), "hmm": HMM()}},
    "Reranker": {"folds": 2},
    "MarginalizedPerceptron": {"orders": 1},
}


def made(name):
    return model_class(name)(**SOME.get(name, {}))


@pytest.mark.parametrize("name", MODELS)
def test_predictions_of_empty_structures_are_empty(name):
    model = made(name).fit([[], *X, []], [[], *Y, []])
    alone = made(name).fit(X, Y)
    mixed = [[], X[0], [], X[1], ()]
    for method, empty in (("predict", []), ("predict_marginals", np.empty((0, 3)))):
        if not hasattr(model, method):
            continue
        actual, expected = getattr(model, method)(mixed), getattr(alone, method)(X[:2])
        for k in (0, 2, 4):
            assert np.shape(actual[k]) == np.shape(empty)
        assert np.array_equal(actual[1], expected[0])
        assert np.array_equal(actual[3], expected[1])
        assert np.shape(getattr(model, method)([[]])[0]) == np.shape(empty)
        assert len(getattr(model, method)([])) == 0
    assert model.score([[], X[0]], [[], Y[0]]) == alone.score(X[:1], Y[:1])
    if hasattr(model, "predict_nbest"):
        actual = model.predict_nbest([[], X[0]], 2)
        assert actual[0] == [([], 0.0)]
        assert actual[1] == alone.predict_nbest(X[:1], 2)[0]
    if hasattr(model, "decision_scores"):
        assert [len(rows) for rows in model.decision_scores([[], X[0]])] == [0, 4]


def test_weights_known_labels_and_priors_have_entries_for_empty_structures():
    weights = [5.0, 1.0, 2.0, 3.0]
    model = model_class("MEMM")().fit([[], *X], [[], *Y], weights, [[], [1, 1, 1, 2], [1, 1, 1], [1, 1]])
    alone = model_class("MEMM")().fit(X, Y, weights[1:], [[1, 1, 1, 2], [1, 1, 1], [1, 1]])
    assert (model.weights_ == alone.weights_).all()
    known = model.predict([[], ["Ana", "is"]], known=[[], [None, "LOC"]])
    assert known[0] == []
    assert known[1][1] == "LOC"
    uniform = [np.empty((0, 3)), np.full((2, 3), 1 / 3)]
    prior = made("MarginalizedPerceptron").fit(X, Y).predict([[], ["Ana", "is"]], prior=uniform)
    assert list(map(len, prior)) == [0, 2]


def test_an_empty_structure_is_a_tree_among_trees():
    trees = [Tree(x, range(-1, len(x) - 1)) for x in X]
    model = model_class("CRF")().fit([[], *trees], [[], *Y])
    assert list(map(len, model.predict([trees[0], []]))) == [4, 0]


def test_partial_fit_leaves_empty_structures_out():
    for name in ("HMPerceptron", "MarginalizedPerceptron"):
        model = made(name).fit(X, Y)
        model.partial_fit([[], ["Lima"]], [[], ["LOC"]]).partial_fit([[]], [[]])
        assert model.predict([["Lima"], []]).tolist() == [["LOC"], []]


def test_mistakes_next_to_empty_structures_are_named_by_their_place():
    crf = model_class("CRF")
    with pytest.raises(DataError, match="structure 0 is empty, but its y is "):
        crf().fit([[], X[0]], [["O"], Y[0]])
    with pytest.raises(DataError, match="structure 1 has 4 nodes but 3 labels"):
        crf().fit([[], X[0]], [[], Y[1]])
    with pytest.raises(DataError, match="structure 2, node 1"):
        crf().fit([[], X[0], ["Ana", 3]], [[], Y[0], ["PER", "O"]])
    with pytest.raises(DataError, match="X has 2 structures but y has 1"):
        crf().fit([[], X[0]], [Y[0]])
    with pytest.raises(DataError, match="nothing to learn from"):
        crf().fit([[], []], [[], []])
