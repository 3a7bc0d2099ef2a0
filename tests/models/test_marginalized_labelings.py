"""n-best labelings, and labels that are known, of models with the marginalized kernel."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

from fuda import Dag, DataError, MarginalizedPerceptron, MarginalizedSVM, Reranker, Tree

X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Bo", "and", "Ana", "sing"]]
Y = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "O", "O"], ["B-PER", "O", "B-PER", "O"]]
SHAPES = {
    "sequence": list,
    "tree": lambda x: Tree(x, [-1, *[0] * (len(x) - 1)]),
    "dag": lambda x: Dag(x, [(0, i) for i in range(1, len(x))] + [(1, 2)]),
}
NEW = ["Ana", "is", "Lima"]
DECODED = [("sequence", "viterbi"), ("sequence", "posterior"), ("tree", "viterbi"), ("dag", "posterior")]


@cache
def fitted(shape: str, decode: str, scheme: str | None = None) -> MarginalizedPerceptron:
    model = MarginalizedPerceptron(decode=decode, scheme=scheme, mixing=0.5, epochs=3)
    return model.fit([SHAPES[shape](x) for x in X], Y)


def enumerated(model, x, known=(None, None, None)):
    """All labelings with their log-probabilities, best first, by the scores of the calibration."""
    encoded = model._encode([x])
    inputs = model._inputs_of(encoded)
    if model._decoding == "posterior":
        nodes, pairs = np.log(model.predict_marginals([x])[0]), np.zeros((3, 3))
    else:
        nodes, pairs = model._calibration.labelings(inputs)
    edges = encoded.corpus.graph.edges if model._decoding == "viterbi" else []
    fixed = [None if label is None else list(model.classes_).index(label) for label in known]
    score_of = {
        y: sum(nodes[t, k] for t, k in enumerate(y)) + sum(pairs[y[a], y[b]] for a, b in edges)
        for y in product(range(3), repeat=3)
        if all(k is None or k == b for k, b in zip(fixed, y, strict=True))
    }
    log_z = np.logaddexp.reduce(list(score_of.values()))
    ranked = sorted(score_of.items(), key=lambda item: -item[1])
    return [([model.classes_[k] for k in y], score - log_z) for y, score in ranked]


@pytest.mark.parametrize("known", [(None, None, None), ("O", None, None)])
@pytest.mark.parametrize(("shape", "decode"), DECODED)
def test_the_best_labelings_are_those_of_an_enumeration(shape, decode, known):
    model, x = fitted(shape, decode), SHAPES[shape](NEW)
    expected = enumerated(model, x, known)
    ranked = model.predict_nbest([x], 30, known=[list(known)])[0]
    assert len(ranked) == len(expected)
    assert [logp for _, logp in ranked] == pytest.approx([logp for _, logp in expected])
    assert ranked[0][0] == expected[0][0] == list(model.predict([x], known=[list(known)])[0])
    assert model.predict_nbest([x], 2, known=[list(known)])[0] == ranked[:2]


@pytest.mark.parametrize(("shape", "decode"), DECODED)
def test_known_labels_are_certain(shape, decode):
    model, x = fitted(shape, decode), SHAPES[shape](NEW)
    known = [[None, "B-LOC", None]]
    assert model.predict([x], known=known)[0][1] == "B-LOC"
    free, conditioned = (model.predict_marginals([x], known=labels)[0] for labels in (None, known))
    assert conditioned[1].tolist() == (model.classes_ == "B-LOC").astype(float).tolist()
    assert conditioned[[0, 2]].tolist() == free[[0, 2]].tolist()


def test_labelings_are_well_formed():
    y = [[label.replace("O", "I-PER") if i else label for i, label in enumerate(labels)] for labels in Y]
    model = MarginalizedPerceptron(scheme="IOB2", mixing=0.5, epochs=3).fit(X, [*y[:2], Y[2]])
    for labels, _ in model.predict_nbest([NEW], 50)[0]:
        for before, here in zip(["O", *labels], labels, strict=False):
            assert not here.startswith("I-") or before[1:] == here[1:]


def test_an_empty_structure_has_one_labeling():
    assert fitted("sequence", "viterbi").predict_nbest([[], NEW], 2)[0] == [([], 0.0)]


def test_the_name_of_earlier_versions_still_decodes():
    model = fitted("sequence", "posterior")
    old = MarginalizedPerceptron(decode="pointwise", mixing=0.5, epochs=3).fit(X, Y)
    assert old.decode == "pointwise"
    assert list(map(list, old.predict([NEW]))) == list(map(list, model.predict([NEW])))


def test_scores_without_probabilities_have_no_n_best_labelings():
    model = MarginalizedSVM(calibrate=False, mixing=0.5).fit(X, Y)
    assert model.predict([NEW], known=[["O", None, None]])[0][0] == "O"
    with pytest.raises(DataError, match="calibrate=True"):
        model.predict_nbest([NEW], 2)


def test_a_reranker_takes_their_candidates():
    model = Reranker(base=MarginalizedPerceptron(mixing=0.5, epochs=2), n=3, folds=3).fit(X, Y)
    candidates = [[labels for labels, _ in listed] for listed in model.base_.predict_nbest(X, 3)]
    assert all(list(labels) in listed for labels, listed in zip(model.predict(X), candidates, strict=True))
