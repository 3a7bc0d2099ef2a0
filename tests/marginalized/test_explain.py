"""Explanations: shares add up to the score, voices are right, and matches are what they say."""

from __future__ import annotations

import numpy as np
import pytest

from fuda import HMM, Dag, DataError, Sequence, Tree
from fuda.kernels import Delta, Polynomial
from fuda.marginalized import marginalized_kernel
from fuda.models.marginalized_perceptron import MarginalizedPerceptron
from fuda.models.marginalized_svm import MarginalizedSVM

WORDS = [list("abcab"), list("bcad"), list("cab"), list("aadb")]
Y = [list("NVNNV"), list("VNNX"), list("NNV"), list("NNXV")]
SHAPES = {
    "sequence": [Sequence(x) for x in WORDS],
    "tree": [Tree(x, [(t - 1) // 2 if t else -1 for t in range(len(x))]) for x in WORDS],
    "dag": [Dag(x, [(s, t) for t in range(len(x)) for s in range(max(0, t - 2), t)]) for x in WORDS],
}
NEW = {
    "sequence": Sequence(list("dbcabz")),
    "tree": Tree(list("dbcabz"), [-1, 0, 0, 1, 1, 2]),
    "dag": Dag(list("dbcabz"), [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (2, 5)]),
}


LARGE = {"mixing": 1e80}  # scaled numbers
SIMILAR = {"label_kernel": [[1.0, 0.2, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]]}
GAPS = {"prior": HMM(), "gap": 0.3}
FLAT = {"prior": HMM()}
CHAIN = {"prior": HMM(), "prior_form": "chain"}


@pytest.mark.parametrize(
    ("shape", "parameters"),
    [
        *((shape, parameters) for shape in SHAPES for parameters in ({}, LARGE, SIMILAR)),
        ("sequence", GAPS),
        ("tree", FLAT),
        ("sequence", CHAIN),
        ("sequence", CHAIN | LARGE),
    ],
)
def test_shares_add_up_to_the_score(shape, parameters) -> None:
    model = MarginalizedPerceptron(features="word", **parameters).fit(SHAPES[shape], Y)
    x = NEW[shape]
    scores = model.decision_scores([x])[0]
    count = len(model.support_)
    for node in range(len(x)):
        explanation = model.explain(x, node, top=count)
        order = np.argsort(-scores[node], kind="stable")
        assert [explanation.chosen.label, explanation.rival.label] == [model.classes_[k] for k in order[:2]]
        for verdict in (explanation.chosen, explanation.rival):
            assert len(verdict.voices) == count
            assert verdict.others == verdict.other_count == 0
            assert sum(voice.share for voice in verdict.voices) == pytest.approx(verdict.score, rel=1e-12)
        # Scaled scores are divided by a power of 2, so their ratio is what can be compared.
        ratio = explanation.rival.score * scores[node, order[0]]
        assert ratio == pytest.approx(explanation.chosen.score * scores[node, order[1]], rel=1e-9)
        if not parameters:
            assert explanation.chosen.score == pytest.approx(scores[node].max(), rel=1e-9)
        few = model.explain(x, node, top=1).chosen
        assert few.voices[0] == explanation.chosen.voices[0]
        assert few.voices[0].share + few.others == pytest.approx(few.score, rel=1e-9)
        assert few.other_count == count - 1


@pytest.mark.parametrize("shape", SHAPES)
def test_a_share_is_the_kernel_times_alpha(shape) -> None:
    X, x = SHAPES[shape], NEW[shape]
    model = MarginalizedSVM(features="word", kernel=Polynomial(2).normalized()).fit(X, Y)
    explanation = model.explain(x, 3, top=100)
    support = {(p.structure, p.node): p.alpha for p in model.support_}
    structures = model.support_structures_
    for verdict in (explanation.chosen, explanation.rival):
        k = model.classes_.tolist().index(verdict.label)
        assert {(v.structure, v.node) for v in verdict.voices} == set(support)
        assert [abs(v.share) for v in verdict.voices] == sorted(abs(v.share) for v in verdict.voices)[::-1]
        for voice in verdict.voices:
            there, alpha = structures[voice.structure], support[voice.structure, voice.node]
            uniform = [np.full((len(s), 3), 1 / 3) for s in (there, x)]
            K = marginalized_kernel(
                there, x, kernel=model.kernel_, mixing=model.mixing_, prior=uniform, features="word"
            )
            share = alpha.get(verdict.label, 0.0) * K[voice.node, 3, k, k]
            assert voice.share == pytest.approx(share, rel=1e-9, abs=1e-15)
            assert voice.observation == there.observations[voice.node]
            assert voice.label == max(alpha, key=alpha.get)
            assert (voice.node, 3) in voice.match
            assert voice.matched == [there.observations[i] for i, _ in voice.match]


def test_a_match_is_the_stretch_that_carries_half_of_the_kernel() -> None:
    model = MarginalizedPerceptron(kernel=Delta(), features="word", mixing=3.0)
    model.fit([list("uabcv"), list("wxyz")], [list("NNVNN"), list("NNNN")])
    explanation = model.explain(list("pabcq"), 2)
    assert explanation.chosen.label == "V"
    voice = explanation.chosen.voices[0]
    assert (voice.structure, voice.node, voice.observation, voice.label) == (0, 2, "b", "V")
    # u = 1 + c²k with c²k = 9 / 2: the neighbours take part in 4.5 / 5.5 of κ; beyond them
    # nothing agrees.
    assert voice.match == [(1, 1), (2, 2), (3, 3)]
    assert voice.matched == ["a", "b", "c"]
    assert "a [b] c  (structure 0, node 2)" in str(explanation)
    assert str(explanation).startswith("node 2, b: V, not N\n +127.6172  score: 63.81, not -63.81\n")
    narrow = MarginalizedPerceptron(kernel=Delta(), features="word", mixing=1.0)
    narrow.fit([list("uabcv"), list("wxyz")], [list("NNVNN"), list("NNNN")])
    assert narrow.explain(list("pabcq"), 2).chosen.voices[0].match == [(2, 2)]  # now in 1 / 3 of κ


def test_matches_of_trees_and_dags_grow_along_edges() -> None:
    tree = Tree(list("rabc"), [-1, 0, 0, 2])
    dag = Dag(list("rabc"), [(0, 1), (0, 2), (2, 3), (1, 3)])
    expected = {"tree": [(0, 0), (1, 1), (2, 2), (3, 3)], "dag": [(0, 0), (2, 2), (3, 3)]}
    for x in (tree, dag):
        model = MarginalizedPerceptron(kernel=Delta(), features="word", mixing=4.0)
        model.fit([x, type(x)(list("uvwx"), x.heads if x is tree else x.edges)], [list("NNVN"), list("NNNN")])
        voice = model.explain(x, 2).chosen.voices[0]
        assert (voice.structure, voice.node) == (0, 2)
        assert voice.match == expected[x.shape]


def test_one_label_has_no_rival_and_nothing_learned_says_nothing() -> None:
    model = MarginalizedPerceptron(features="word").fit([["a", "b"]], [["N", "N"]])
    explanation = model.explain(["a"], 0)
    assert explanation.rival is None
    assert (explanation.chosen.label, explanation.chosen.score, explanation.chosen.voices) == ("N", 0.0, [])
    assert str(explanation) == "node 0, a: N; no other label is possible"
    assert str(explanation.chosen) == "N: 0"
    assert model.explain(["a"], 0) == explanation


def test_models_with_arrays_as_prior_take_one_for_x() -> None:
    X = SHAPES["sequence"]
    model = MarginalizedPerceptron(features="word", prior=[np.full((len(x), 3), 1 / 3) for x in X]).fit(X, Y)
    prior = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
    explanation = model.explain(["a", "b"], 1, prior=prior)
    scores = model.decision_scores([["a", "b"]], prior=[prior])[0]
    assert explanation.chosen.score == pytest.approx(scores[1].max())
    with pytest.raises(DataError, match="fitted with priors given as arrays"):
        model.explain(["a", "b"], 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"node": 2}, "node=2: give a node of the structure, from 0 to 1"),
        ({"node": -1}, "node=-1: give a node"),
        ({"node": "a"}, "node='a': give a node"),
        ({"node": 0, "top": 0}, "top=0: give a whole number, at least 1"),
    ],
)
def test_bad_questions_are_refused(arguments, message) -> None:
    model = MarginalizedPerceptron(features="word").fit([["a", "b"]], [["N", "V"]])
    with pytest.raises(DataError, match=message):
        model.explain(["a", "b"], **arguments)
