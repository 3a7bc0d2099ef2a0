"""The MEMM against its formulas: local probabilities by named weights, and every labeling."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

import fuda
from fuda import Dag, DataError, Sequence, Tree, inference, read
from fuda.data.encoders import make_encoder
from fuda.data.labels import number_labels
from fuda.features.templates import Template
from fuda.metrics import evaluate
from fuda.models.memm import MEMM, LocalLoss
from structure_cases import forest_heads

LABELS, WORDS = ["A", "B", "C"], ["x", "y", "z"]
SETTINGS = settings(max_examples=25)
X = [
    ["Ana", "lives", "in", "Lima"],
    ["Lima", "is", "big"],
    ["Bo", "Lind", "left", "New", "York"],
    ["in", "York", "Ana", "sleeps"],
]
Y = [
    ["B-PER", "O", "O", "B-LOC"],
    ["B-LOC", "O", "O"],
    ["B-PER", "I-PER", "O", "B-LOC", "I-LOC"],
    ["O", "B-LOC", "B-PER", "O"],
]
TREES = [Tree(x, [-1, *np.arange(len(x) - 1) // 2]) for x in X]


@st.composite
def cases(draw):
    """Structures, all sequences or all trees, their heads, and labels, some of them unknown."""
    as_trees = draw(st.booleans())
    structures, heads, labels = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        nodes = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))
        heads.append(draw(forest_heads(len(nodes))) if as_trees else list(range(-1, len(nodes) - 1)))
        structures.append(Tree(nodes, heads[-1]) if as_trees else Sequence(nodes))
        labels.append(
            draw(st.lists(st.sampled_from([*LABELS, None]), min_size=len(nodes), max_size=len(nodes)))
        )
    labels[0][heads[0].index(-1)] = "A"  # some node counts
    return structures, heads, labels


def local_log_p(model: MEMM, words, heads, t: int, above, label) -> float:
    """log P(label at t | label of its parent, x), from weights by name; window of one."""
    vocabulary = model.encoder_.vocabulary
    count = len(vocabulary)
    children = [u for u, head in enumerate(heads) if head == t]
    seen = [
        [f"w={words[heads[t]]}"] if heads[t] >= 0 else ["<-1>"],
        [f"w={words[t]}"],
        [f"w={words[u]}" for u in children] or ["<+1>"],
    ]
    scores = (
        model.start_.copy()
        if above is None
        else model.transitions_[model.classes_.tolist().index(above)].copy()
    )
    for channel, names in enumerate(seen):
        for name in names:
            if name in vocabulary:
                scores += model.weights_[channel * count + vocabulary[name]]
    return float(scores[model.classes_.tolist().index(label)] - np.log(np.exp(scores).sum()))


def log_p(model: MEMM, words, heads, labels) -> float:
    above = [None if head < 0 else labels[head] for head in heads]
    return sum(local_log_p(model, words, heads, t, above[t], labels[t]) for t in range(len(words)))


@SETTINGS
@given(cases(), cases())
def test_every_labeling_by_the_formulas(case, new):
    model = MEMM(features="word", l2=0.1).fit(case[0], case[2])
    kind = type(case[0][0])
    for structure, heads in zip(new[0], new[1], strict=True):
        words = list(structure)
        heads = heads if kind is Tree else list(range(-1, len(words) - 1))
        structure = Tree(words, heads) if kind is Tree else Sequence(words)
        truth = {
            labels: log_p(model, words, heads, labels)
            for labels in itertools.product(model.classes_, repeat=len(words))
        }
        assert sum(map(math.exp, truth.values())) == pytest.approx(1.0)
        encoded = model._encode([structure])
        assert inference.log_partition(encoded.corpus.graph, *model._scores(encoded))[0] == (
            pytest.approx(0.0, abs=1e-9)
        )
        (ranked,) = model.predict_nbest([structure], len(truth) + 1)
        assert len(ranked) == len(truth)
        for labels, value in ranked:
            assert value == pytest.approx(truth[tuple(labels)], abs=1e-9)
        assert truth[tuple(model.predict([structure])[0])] == pytest.approx(max(truth.values()))
        marginals = model.predict_marginals([structure])[0]
        for t, k in np.ndindex(*marginals.shape):
            total = sum(math.exp(p) for labels, p in truth.items() if labels[t] == model.classes_[k])
            assert marginals[t, k] == pytest.approx(total, abs=1e-9)


@SETTINGS
@given(cases(), st.data())
def test_the_objective_is_the_sum_over_nodes_whose_labels_are_known(case, data):
    structures, heads, labels = case
    weights = st.sampled_from([0.0, 1.0, 2.5])
    by_structure = [data.draw(weights) for _ in labels]
    by_node = [[data.draw(weights) for _ in y] for y in labels]
    model = MEMM(features="word", l2=0.3).fit(structures, labels, by_structure, by_node)
    truth = 0.3 * float((model.weights_**2).sum())
    for i, y in enumerate(labels):
        above = [None if head < 0 else y[head] for head in heads[i]]
        for t, label in enumerate(y):
            if label is not None and (heads[i][t] < 0 or above[t] is not None):
                p = local_log_p(model, list(structures[i]), heads[i], t, above[t], label)
                truth -= by_structure[i] * by_node[i][t] * p
    assert model.objective(
        structures, labels, sample_weight=by_structure, position_weight=by_node
    ) == pytest.approx(truth)
    if model.result_.history:
        assert model.result_.value == pytest.approx(truth)


@pytest.mark.parametrize("structures", [X, TREES, [[[1.0, -2.0], [0.5, 0.0]], [[3.0, 1.0]]]])
def test_gradient_and_curvature(structures):
    rng = np.random.default_rng(0)
    y = [[None if t == 2 else "ABC"[t % 3] for t in range(len(s))] for s in structures]
    encoded = make_encoder("text", 1).fit(fuda.data.structures.as_structures(structures))
    classes, labels = number_labels(y, encoded.corpus)
    weights = rng.uniform(0.5, 2.0, len(encoded.corpus)), rng.uniform(0.5, 2.0, encoded.corpus.size)
    loss = LocalLoss(encoded, labels, len(classes), *weights)
    w = rng.normal(size=len(loss.curvature()))
    gradient = loss(w)[1].copy()
    step = 1e-6
    for i in rng.permutation(len(w))[:40]:
        moved = np.eye(1, len(w), i)[0] * step
        slope = (loss(w + moved)[0] - loss(w - moved)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(slope, abs=1e-6)
        rise = loss(moved)[1][i] - loss(-moved)[1][i]
        assert loss.curvature()[i] == pytest.approx(rise / (2 * step), abs=1e-6)


def test_a_chain_is_a_tree():
    trees = [Tree(x, range(-1, len(x) - 1)) for x in X]
    chain, tree = MEMM().fit(X, Y), MEMM().fit(trees, Y)
    np.testing.assert_allclose(chain.weights_, tree.weights_, atol=1e-9)
    assert chain.predict(X).tolist() == tree.predict(trees).tolist()
    for a, b in zip(chain.predict_nbest(X, 4), tree.predict_nbest(trees, 4), strict=True):
        np.testing.assert_allclose([p for _, p in a], [p for _, p in b], atol=1e-8)


def test_threads_and_weights():
    one = MEMM(n_jobs=1).fit(X * 30, Y * 30)
    other = MEMM(n_jobs=3).fit(X * 30, Y * 30)
    np.testing.assert_array_equal(one.weights_, other.weights_)
    tight = {"tol": 1e-9, "features": "word"}
    twice = MEMM(**tight).fit([*X, X[0]], [*Y, Y[0]])
    weighed = MEMM(**tight).fit(X, Y, sample_weight=[2.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(twice.weights_, weighed.weights_, atol=1e-4)
    nodes = [[2.0] * len(y) if i == 0 else [1.0] * len(y) for i, y in enumerate(Y)]
    np.testing.assert_allclose(
        MEMM(**tight).fit(X, Y, position_weight=nodes).weights_, weighed.weights_, atol=1e-4
    )


@pytest.mark.parametrize("structures", [X, TREES])
def test_learns_and_is_stored(structures, tmp_path):
    model = MEMM(l2=0.1).fit(structures, Y)
    assert model.predict(structures).tolist() == Y
    model.save(tmp_path / "model.fuda")
    for other in (fuda.load(tmp_path / "model.fuda"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.weights_, model.weights_)
        assert other.predict(structures).tolist() == Y
        assert other.get_params() == model.get_params()
    assert not hasattr(clone(model), "weights_")


def test_scheme_known_labels_and_cross_validation():
    model = MEMM(features="word", l2=0.01, scheme="IOB2").fit(X, Y)
    assert all(labels[0][:2] != "I-" for labels in model.predict([["nothing", "known"]]))
    assert model.predict(X[:1], known=[["O", None, None, None]])[0][0] == "O"
    posterior = model.set_params(decode="posterior").predict(X)
    assert posterior.tolist() == Y
    assert np.isfinite(cross_val_score(MEMM(), X * 3, Y * 3, cv=2)).all()


def test_many_labels_and_huge_scores():
    n = 60
    words = [f"w{i}" for i in range(n)]
    model = MEMM(features="word", l2=1e-6, window=0, max_iter=3)
    with pytest.warns(ConvergenceWarning, match="the MEMM has not converged: max_iter=3"):
        model.set_params(tol=0.0).fit([words], [list(range(n))])
    model.weights_ *= 1e4
    assert model.predict([words])[0] == list(range(n))
    np.testing.assert_allclose(model.predict_marginals([words])[0].sum(axis=1), 1.0)


BAD = [
    ({"l2": -1}, "l2=-1: give a number from 0 to 1e"),
    ({"l2": None}, "l2=None: give a number"),
    ({"tol": float("nan")}, "tol=nan: give a number"),
    ({"max_iter": 0}, "max_iter=0: give a whole number of at least 1"),
    ({"n_jobs": 0}, "n_jobs=0: give the number of threads"),
    ({"verbose": "yes"}, "verbose='yes': give True or False"),
    ({"decode": "best"}, "decode='best': choose viterbi or posterior"),
    ({"scheme": "IOB9"}, "IOB9"),
    ({"features": "nothing"}, "features='nothing': no such feature set"),
    ({"features": Template("U0:%x[0,0]\nB0:%x[0,0]")}, "line 'B0.*': MEMM has no features of label pairs"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD)
def test_bad_parameters(parameters, message):
    with pytest.raises(DataError, match=message):
        MEMM(**parameters).fit(X, Y)


def test_bad_data():
    with pytest.raises(DataError, match="no node has a label and a parent whose label is known too"):
        MEMM().fit([["a", "b"]], [[None, "A"]])
    with pytest.raises(DataError, match="a feature has a value of size 1e\\+13; scale features"):
        MEMM().fit([[{"f": 1e13}]], [["A"]])
    with pytest.raises(DataError, match="a dag, but MEMM labels sequences and trees only"):
        MEMM().fit([Dag(["a", "b"], [(0, 1)])], [["A", "B"]])
    model = MEMM().fit(X, Y)
    with pytest.raises(DataError, match="X is empty; give at least one structure"):
        model.objective([], [])
    with pytest.raises(DataError, match="structure 0, node 0: the label 'Z' was never seen"):
        model.objective([["a"]], [["Z"]])
    for arrays in ({}, {"weights": model.weights_[1:]}, {"weights": np.full_like(model.weights_, np.inf)}):
        with pytest.raises(DataError, match="its array 'weights'"):
            model._restore(arrays, [], {})


def test_spanish_news(corpora):
    data = read(corpora / "conll2002" / "esp.train", columns=1)
    model = MEMM().fit(data.X[:800], data.y[:800])
    report = evaluate(data.y[800:1100], model.predict(data.X[800:1100]))
    assert report.entity_scores.micro.f1 > 0.55
