"""Explanations of all models: they explain what `predict` decides, add up, and name the rival."""

from __future__ import annotations

import inspect
import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

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
    Sequence,
    Tree,
)
from fuda.features import Template
from fuda.inference import higher_order
from fuda.kernels import RBF, Polynomial
from oracles import all_labelings

LABELS = ["B-x", "I-x", "O"]
PRIOR = {"prior": CRF(features="word"), "epochs": 3, "orders": 2}
MODELS = {
    "HMM": HMM(),
    "HMM posterior": HMM(decode="posterior", features="spelling", window=1),
    "MEMM": MEMM(scheme="IOB2"),
    "MEMM posterior": MEMM(decode="posterior"),
    "CRF": CRF(l2=0.1),
    "CRF scheme": CRF(l2=0.1, scheme="IOB2", features="word"),
    "CRF posterior": CRF(l2=0.1, decode="posterior", loss="pointwise"),
    "CRF posterior scheme": CRF(l2=0.1, decode="posterior", scheme="IOB2"),
    "CRF pairs": CRF(l2=0.1, pair_features=True, features="word"),
    "CRF pairs posterior": CRF(l2=0.1, pair_features=True, features="word", decode="posterior"),
    "CRF template": CRF(l2=0.1, features=Template("U00:%x[0,0]\nU01:%x[-1,0]\nB\nB01:%x[0,0]\n")),
    "perceptron": HMPerceptron(epochs=5),
    "perceptron 0": HMPerceptron(epochs=5, order=0),
    "perceptron 2": HMPerceptron(epochs=5, order=2, scheme="IOB2"),
    "perceptron 3": HMPerceptron(epochs=5, order=3, features="word", average=False),
    "perceptron dual": HMPerceptron(Polynomial(2), epochs=5, features="word"),
    "perceptron dual 2": HMPerceptron(RBF(), epochs=5, order=2, features="word"),
    "perceptron voted": HMPerceptron(epochs=2, average="voted"),
    "perceptron voted dual": HMPerceptron(Polynomial(2), epochs=1, average="voted", scheme="IOB2", window=0),
    "SVM": HMSVM(features="word"),
    "SVM RBF": HMSVM(RBF(), features="word", scheme="IOB2", window=0),
    "marginalized": MarginalizedPerceptron(epochs=3, orders=2, calibrate=False),
    "marginalized prior": MarginalizedPerceptron(**PRIOR, calibrate=False),
    "marginalized Viterbi": MarginalizedPerceptron(**PRIOR, decode="viterbi"),
    "marginalized scheme": MarginalizedPerceptron(**PRIOR, decode="viterbi", scheme="IOB2"),
    "marginalized large": MarginalizedPerceptron(mixing=1e80, epochs=3, decode="viterbi"),
    "marginalized corrected": MarginalizedPerceptron(epochs=3, orders=2),
    "marginalized Viterbi corrected": MarginalizedPerceptron(**PRIOR, decode="viterbi"),
    "marginalized SVM": MarginalizedSVM(epochs=50, calibrate=False),
    "re-ranker": Reranker(CRF(features="word"), folds=2, base_weight=0.1, n=6),
    "re-ranker scheme": Reranker(CRF(decode="posterior", scheme="IOB2"), folds=2, base_weight=0.01, n=4),
}
SEQUENTIAL = {name for name, model in MODELS.items() if getattr(model, "scheme", None)} | {
    "re-ranker scheme",
    "CRF template",
}
WORDS = ["Ana", "Bo", "eats", "in", "Lima", "42"]


def structure_of(shape, words, choices):
    if shape == "sequence":
        return Sequence(words)
    return Tree(words, [-1, *(choice % t for t, choice in enumerate(choices, 1))][: len(words)])


@cache
def fitted(name, shape):
    rng = np.random.default_rng(5)
    X, y = [], []
    for _ in range(14):
        size = int(rng.integers(1, 6))
        words = [WORDS[k] for k in rng.integers(0, 5, size)]
        X.append(structure_of(shape, words, rng.integers(0, 9, size).tolist()))
        label = {"Ana": "B-x", "Bo": "I-x", "Lima": "B-x"}
        drawn = [label.get(word, "O") if rng.random() < 0.8 else LABELS[rng.integers(3)] for word in words]
        y.append([b if b != "I-x" or (t and drawn[t - 1] != "O") else "B-x" for t, b in enumerate(drawn)])
    model = clone(MODELS[name]).fit(X, y)
    if name.endswith("corrected"):
        model.partial_fit(X[1:4], [["I-x"] * len(x) for x in X[1:4]])
        assert model._memory
    return model


cases = pytest.mark.parametrize(
    ("name", "shape"),
    [
        (name, shape)
        for name in MODELS
        for shape in ("sequence", "tree")
        if shape == "sequence" or name not in SEQUENTIAL
    ],
)
questions = st.tuples(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    st.lists(st.integers(0, 9), min_size=4, max_size=4),
    st.lists(st.sampled_from([None, None, *LABELS]), min_size=4, max_size=4),
    st.integers(0, 3),
)


def labelings_of(model, encoded, known):
    """Every allowed labeling with its score, straight from the definitions, best first."""
    corpus, size = encoded.corpus, len(model.classes_)
    heads = corpus.graph.heads
    if hasattr(model, "mixing_"):
        scores, transitions = model._calibration.labelings(model._inputs_of(encoded))
        return all_labelings(heads, *CRF._constrained(model, corpus, scores, transitions, known))
    if isinstance(model, HMPerceptron) and model.order_ > 1:
        scores, transitions = model._constrained(
            corpus, model._node_scores(encoded), np.zeros((size, size)), known
        )
        tables = higher_order.by_context(model._grams, model.order_)
        labelings = []
        for y, score in all_labelings(heads, scores, transitions):
            for t in range(len(y)):
                above, at = [], t
                while heads[at] >= 0 and len(above) < model.order_:
                    at = heads[at]
                    above.append(y[at])
                number = sum(b * size ** (len(above) - 1 - i) for i, b in enumerate(above))
                score += tables[len(above)][number, y[t]]
            labelings.append((y, score))
        return sorted(labelings, key=lambda pair: -pair[1])
    if model.decode == "posterior":
        table, zeros = model._marginals(encoded, known), np.zeros((size, size))
        return all_labelings(heads, *model._constrained(corpus, table, zeros, known))
    return all_labelings(heads, *model._constrained(corpus, *model._scores(encoded), known))


def wanted(model, x, node, known):
    """The difference between the label that is predicted and the best other one, or None."""
    encoded = model._encode([x])
    predicted = model.predict([x], **({} if known is None else {"known": [known]}))[0]
    number = model.classes_.tolist().index(predicted[node])
    if isinstance(model, Reranker):
        candidates = model._candidates(encoded)
        ranks = zip(model._ranking(encoded, candidates), candidates.labels, strict=True)
        best = [
            max((r for r, y in candidates if (y[node] == predicted[node]) is same), default=None)
            for candidates in [list(ranks)]
            for same in (True, False)
        ]
        return None if best[1] is None else best[0] - best[1]
    if hasattr(model, "mixing_") and model._decoding == "posterior":
        values = model._calibration.ranks(model._inputs_of(encoded))[node]
        if known and known[node]:
            values = np.where(model.classes_ == known[node], values, -math.inf)
    elif getattr(model, "_voted", False) and model.scheme is None:
        values = model._marginals(encoded, None if known is None else [known])[node]
        values = np.where(values == 0, -math.inf, values) if known and known[node] else values
    elif model.decode == "posterior" and model.scheme is None:
        with np.errstate(divide="ignore"):
            values = np.log(model._marginals(encoded, None if known is None else [known])[node])
    else:
        ranked = labelings_of(model, encoded, None if known is None else [known])
        best = [
            max((s for y, s in ranked if (y[node] == number) is same), default=None) for same in (True, False)
        ]
        return None if best[1] is None else best[0] - best[1]
    rest = np.delete(values, number).max(initial=-math.inf)
    return None if rest == -math.inf else values[number] - rest


@cases
@settings(max_examples=6, deadline=None)
@given(question=questions)
def test_the_decision_of_predict_is_explained(name, shape, question):
    words, choices, labels, node = question
    model, x, node = fitted(name, shape), structure_of(shape, words, choices), node % len(words)
    known = None
    takes_known = "known" in inspect.signature(model.explain).parameters
    if takes_known and any(labels[: len(words)]) and not model.scheme:
        known = labels[: len(words)]
    arguments = {} if known is None else {"known": known}
    explanation = model.explain(x, node, top=2, **arguments)
    predicted = model.predict([x], **({} if known is None else {"known": [known]}))[0]
    assert explanation.chosen.label == predicted[node]
    assert explanation.chosen.labeling in (None, predicted)
    expected = wanted(model, x, node, known)
    if expected is None:
        assert explanation.rival is None
        assert explanation.contributions == []
        return
    assert explanation.rival is not None
    assert explanation.rival.label != explanation.chosen.label
    assert explanation.rival.labeling is None or explanation.rival.labeling[node] == explanation.rival.label
    size = 1e-12 + sum(abs(c.value) for c in explanation.contributions)
    assert sum(c.value for c in explanation.contributions) == pytest.approx(
        explanation.difference, rel=1e-9, abs=1e-12 * size
    )
    if name != "marginalized large":  # scores are divided by a power of 2
        assert explanation.difference == pytest.approx(expected, rel=1e-9, abs=1e-11 * max(size, 1))
        scores = explanation.chosen.score - explanation.rival.score
        assert scores == pytest.approx(expected, rel=1e-6, abs=1e-9 * max(size, 1))
    every = model.explain(x, node, top=10_000, **arguments)
    assert every.difference == explanation.difference
    assert all(c.count == 1 for c in every.contributions)
    kinds = [c.kind for c in explanation.contributions]
    assert all(kinds.count(kind) <= 3 for kind in kinds)
    assert str(explanation).startswith(
        f"node {node}, {words[node]}: {predicted[node]}, not {explanation.rival.label}\n"
    )


def test_contributions_are_what_they_are_called():
    X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    model = CRF(features="word").fit(X, y)
    explanation = model.explain(["in", "Lima"], 1)
    labels = model.classes_.tolist()
    a, b = labels.index("LOC"), labels.index(explanation.rival.label)
    weights = model.state_features_
    by_text = {c.text: c.value for c in explanation.contributions}
    for name in ("[0] w=Lima", "[-1] w=in"):
        value = weights.get((name, "LOC"), 0.0) - weights.get((name, explanation.rival.label), 0.0)
        assert by_text[name] == pytest.approx(value)
    above = explanation.chosen.labeling[0]
    assert explanation.rival.labeling[0] == above == "O"
    transition = f"O → LOC, not O → {explanation.rival.label}"
    row = labels.index("O")
    assert by_text[transition] == pytest.approx(model.transitions_[row, a] - model.transitions_[row, b])


def test_kernel_models_name_the_positions_that_are_evidence():
    X, y = [["in", "Lima", "now"], ["in", "Ana"]], [["O", "LOC", "O"], ["O", "PER"]]
    for model in (HMSVM(Polynomial(2), features="word"), HMPerceptron(Polynomial(2), features="word")):
        explanation = model.fit(X, y).explain(["in", "Lima", "now"], 1)
        assert explanation.chosen.label == "LOC"
        voice = explanation.contributions[0].voice
        assert (voice.structure, voice.node, voice.observation, voice.label) == (0, 1, "Lima", "LOC")
        assert voice.matched == ["in", "Lima", "now"]
        assert explanation.chosen.voices[0].share == max(v.share for v in explanation.chosen.voices)
        assert "in [Lima] now  (structure 0, node 1)" in str(explanation)


def test_the_transitions_of_a_prior_are_distinguished_from_its_scores():
    for name, is_apart in (("marginalized Viterbi", True), ("marginalized prior", False)):
        explanation = fitted(name, "sequence").explain(["Ana", "eats"], 0)
        (text,) = [c.text for c in explanation.contributions if c.kind == "prior"]
        assert text.endswith(", apart from its transitions") is is_apart


def test_a_label_without_an_alternative_has_no_rival():
    model = CRF(features="word").fit([["a", "b"]], [["N", "V"]])
    explanation = model.explain(["a", "b"], 0, known=["N", None])
    assert explanation.rival is None
    assert str(explanation) == "node 0, a: N; no other label is possible"
    alone = HMM().fit([["a"]], [["N"]]).explain(["a"], 0)
    assert (alone.rival, alone.difference) == (None, 0.0)


@pytest.mark.parametrize("name", MODELS)
def test_bad_questions_are_refused(name):
    model = fitted(name, "sequence")
    for arguments, message in (
        ({"node": 2}, "node=2: give a node of the structure, from 0 to 1"),
        ({"node": True}, "node=True: give a node"),
        ({"node": 0, "top": 0}, "top=0: give a whole number, at least 1"),
    ):
        with pytest.raises(DataError, match=message):
            model.explain(["Ana", "Bo"], **arguments)


def test_all_orders_of_long_chains_are_explained():
    words = list(itertools.islice(itertools.cycle(WORDS), 3000))
    for name in ("CRF", "CRF posterior", "perceptron 2"):
        model = fitted(name, "sequence")
        explanation = model.explain(words, 1500)
        assert explanation.chosen.label == model.predict([words])[0][1500]
