"""The HMM against its own formulas: plain counts, and every labeling of tiny structures."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuda import HMM, DataError, Sequence, Tree, read
from fuda.metrics import evaluate
from structure_cases import forest_heads

LABELS = ["A", "B", "C"]
WORDS = ["x", "y", "z"]
SETTINGS = settings(max_examples=40)


class Counted:
    """P(x, y) by the formulas of the module, in plain Python, over nodes' {name: value}.

    `data` holds for each structure its nodes' features, its nodes' parents (−1 at a root), its
    labels (None where not known), its weight and the weights of its nodes.
    """

    def __init__(self, data, smoothing: float) -> None:
        self.s = smoothing
        self.start, self.pairs, self.nodes, self.emitted = Counter(), Counter(), Counter(), Counter()
        known = {label for _, _, labels, _, _ in data for label in labels if label is not None}
        self.labels = sorted(known)
        self.vocabulary = {name for features, *_ in data for node in features for name in node}
        for features, parents, labels, weight, node_weights in data:
            for t, label in enumerate(labels):
                if label is None:
                    continue
                if parents[t] < 0:
                    self.start[label] += weight
                elif labels[parents[t]] is not None:
                    self.pairs[labels[parents[t]], label] += weight
                if t not in parents:
                    self.pairs[label, "end"] += weight
                self.nodes[label] += weight * node_weights[t]
                for name, value in features[t].items():
                    self.emitted[name, label] += weight * node_weights[t] * value

    def p_start(self, a) -> float:
        return (self.start[a] + self.s) / (sum(self.start.values()) + self.s * len(self.labels))

    def p_next(self, a, b) -> float:
        out = sum(self.pairs[a, c] for c in [*self.labels, "end"])
        return (self.pairs[a, b] + self.s) / (out + self.s * (len(self.labels) + 1))

    def p_emit(self, name, y) -> float:
        seen = self.emitted[name, y] if name in self.vocabulary else 0.0
        return (seen + self.s) / (self.nodes[y] + self.s * (len(self.vocabulary) + 1))

    def log_joint(self, features, parents, labels) -> float:
        total = 0.0
        for t, label in enumerate(labels):
            above = self.p_start(label) if parents[t] < 0 else self.p_next(labels[parents[t]], label)
            total += math.log(above)
            if t not in parents:
                total += math.log(self.p_next(label, "end"))
            total += sum(v * math.log(self.p_emit(name, label)) for name, v in features[t].items())
        return total

    def posterior(self, features, parents) -> dict[tuple, float]:
        every = itertools.product(self.labels, repeat=len(features))
        scores = {labels: self.log_joint(features, parents, labels) for labels in every}
        log_z = math.log(sum(map(math.exp, scores.values())))
        return {labels: score - log_z for labels, score in scores.items()}


def check(model: HMM, truth: Counted, structure, features, parents) -> None:
    """All labelings, the best, the marginals and posterior decoding of one structure."""
    posterior = truth.posterior(features, parents)
    ((*candidates,),) = model.predict_nbest([structure], len(posterior) + 5)
    assert len(candidates) == len(posterior)
    assert {tuple(labels) for labels, _ in candidates} == set(posterior)
    for labels, log_p in candidates:
        assert log_p == pytest.approx(posterior[tuple(labels)], abs=1e-9)
    values = [log_p for _, log_p in candidates]
    assert values == sorted(values, reverse=True)
    best = tuple(model.predict([structure])[0])
    assert posterior[best] == pytest.approx(max(posterior.values()), abs=1e-9)
    marginals = model.predict_marginals([structure])[0]
    assert marginals.shape == (len(features), len(truth.labels))
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0)
    for t, k in np.ndindex(*marginals.shape):
        total = sum(math.exp(p) for labels, p in posterior.items() if labels[t] == truth.labels[k])
        assert marginals[t, k] == pytest.approx(total, abs=1e-9)
    model.set_params(decode="posterior")
    chosen = [model.classes_.tolist().index(label) for label in model.predict([structure])[0]]
    model.set_params(decode="viterbi")
    np.testing.assert_allclose(marginals[range(len(chosen)), chosen], marginals.max(axis=1))


@st.composite
def cases(draw, observations, known_only=False):
    """A few structures with labels, all sequences or all trees, and their parents."""
    as_trees = draw(st.booleans())
    labels = st.sampled_from(LABELS) if known_only else st.sampled_from([*LABELS, None])
    data = []
    for _ in range(draw(st.integers(1, 3))):
        nodes = draw(st.lists(observations, min_size=1, max_size=4))
        heads = draw(forest_heads(len(nodes))) if as_trees else list(range(-1, len(nodes) - 1))
        y = draw(st.lists(labels, min_size=len(nodes), max_size=len(nodes)))
        data.append((nodes, heads, y))
    data[0][2][0] = "A"  # some label is known
    return as_trees, data


def structure_of(as_trees, nodes, heads):
    return Tree(nodes, heads) if as_trees else Sequence(nodes)


def fitted(case, features_of, model: HMM, sample_weight=None, position_weight=None):
    """The model and the oracle, both fitted on a case."""
    as_trees, data = case
    X = [structure_of(as_trees, nodes, heads) for nodes, heads, _ in data]
    model.fit(X, [y for *_, y in data], sample_weight=sample_weight, position_weight=position_weight)
    rows = [
        (
            [features_of(x) for x in nodes],
            heads,
            y,
            1.0 if sample_weight is None else sample_weight[i],
            [1.0] * len(y) if position_weight is None else position_weight[i],
        )
        for i, (nodes, heads, y) in enumerate(data)
    ]
    return model, Counted(rows, model.smoothing)


@SETTINGS
@given(
    cases(st.sampled_from(WORDS)), cases(st.sampled_from([*WORDS, "new"])), st.sampled_from([0.01, 0.5, 2.0])
)
def test_words(case, new, smoothing):
    """Words, labels that are not known, words that were never seen."""

    def features_of(x):
        return {f"w={x}": 1.0}

    model, truth = fitted(case, features_of, HMM(smoothing=smoothing))
    assert model.classes_.tolist() == truth.labels
    for nodes, heads, _ in new[1]:
        structure = structure_of(case[0], nodes, heads if case[0] else range(-1, len(nodes) - 1))
        parents = heads if case[0] else list(range(-1, len(nodes) - 1))
        check(model, truth, structure, [features_of(x) for x in nodes], parents)


FEATURES = st.dictionaries(st.sampled_from("fgh"), st.sampled_from([0.0, 1.0, 2.0, 0.5]), max_size=3)


@SETTINGS
@given(cases(FEATURES), st.data())
def test_several_features_and_weights(case, data):
    """Feature dicts with values, weights of structures and of nodes."""
    weights = st.sampled_from([0.0, 1.0, 2.5])
    sample_weight = [data.draw(weights) for _ in case[1]]
    position_weight = [[data.draw(weights) for _ in y] for *_, y in case[1]]
    model, truth = fitted(case, dict, HMM(smoothing=0.3), sample_weight, position_weight)
    for nodes, heads, _ in case[1]:
        check(model, truth, structure_of(case[0], nodes, heads), nodes, heads)


@given(cases(st.sampled_from(WORDS)), st.integers(1, 3))
def test_a_weight_of_two_is_the_structure_twice(case, twice):
    as_trees, data = case
    X = [structure_of(as_trees, nodes, heads) for nodes, heads, _ in data]
    y = [labels for *_, labels in data]
    weights = np.ones(len(X))
    weights[twice % len(X)] = 2
    one = HMM(window=1).fit(X, y, sample_weight=weights)
    other = HMM(window=1).fit([*X, X[twice % len(X)]], [*y, y[twice % len(X)]])
    for a, b in zip(one._arrays().values(), other._arrays().values(), strict=True):
        np.testing.assert_allclose(a, b)


@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), min_size=1, max_size=3), st.data())
def test_a_chain_is_a_tree(lists, data):
    y = [data.draw(st.lists(st.sampled_from(LABELS), min_size=len(x), max_size=len(x))) for x in lists]
    trees = [Tree(x, range(-1, len(x) - 1)) for x in lists]
    chain, tree = HMM(window=1).fit(lists, y), HMM(window=1).fit(trees, y)
    for a, b in zip(chain._arrays().values(), tree._arrays().values(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert chain.predict(lists).tolist() == tree.predict(trees).tolist()
    for a, b in zip(chain.predict_marginals(lists), tree.predict_marginals(trees), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    for one, other in zip(chain.predict_nbest(lists, 4), tree.predict_nbest(trees, 4), strict=True):
        np.testing.assert_allclose([p for _, p in one], [p for _, p in other], atol=1e-9)


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), st.data())
def test_a_window_is_more_factors(words, data):
    """Each offset has emissions of its own, over words and boundary marks alike."""
    y = data.draw(st.lists(st.sampled_from(LABELS), min_size=len(words), max_size=len(words)))
    s = 0.2
    model = HMM(window=1, smoothing=s).fit([words], [y])
    padded = ["<-1>", *(f"w={w}" for w in words), "<+1>"]
    size = len({*padded})
    posterior = {}
    plain = Counted([([{}] * len(words), list(range(-1, len(words) - 1)), y, 1.0, [1.0] * len(words))], s)
    for labels in itertools.product(plain.labels, repeat=len(words)):
        total = plain.log_joint([{}] * len(words), list(range(-1, len(words) - 1)), labels)
        for t, label in enumerate(labels):
            for offset in (-1, 0, 1):
                seen = sum(
                    padded[u + 1 + offset] == padded[t + 1 + offset] for u, b in enumerate(y) if b == label
                )
                total += math.log((seen + s) / (y.count(label) + s * (size + 1)))
        posterior[labels] = total
    log_z = math.log(sum(map(math.exp, posterior.values())))
    (candidates,) = model.predict_nbest([words], len(posterior))
    for labels, log_p in candidates:
        assert log_p == pytest.approx(posterior[tuple(labels)] - log_z, abs=1e-8)


@given(cases(st.sampled_from(WORDS)))
def test_probabilities_sum_to_one(case):
    model, _ = fitted(case, lambda x: {f"w={x}": 1.0}, HMM(smoothing=0.1))
    assert np.exp(model.start_).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.exp(model.transitions_).sum(axis=1) + np.exp(model.end_), 1.0)
    emitted = np.exp(model.emissions_[0]).sum(axis=0) + np.exp(model.unknown_[0])
    np.testing.assert_allclose(emitted, 1.0)


def test_little_smoothing_is_relative_frequency():
    X, y = [["x", "y"], ["x", "x"], ["y"]], [["A", "B"], ["A", "A"], ["B"]]
    model = HMM(smoothing=1e-12).fit(X, y)
    np.testing.assert_allclose(np.exp(model.start_), [2 / 3, 1 / 3], atol=1e-9)
    np.testing.assert_allclose(np.exp(model.transitions_), [[1 / 3, 1 / 3], [0, 0]], atol=1e-9)
    np.testing.assert_allclose(np.exp(model.end_), [1 / 3, 1], atol=1e-9)
    np.testing.assert_allclose(np.exp(model.emissions_[0]), [[1, 0], [0, 1]], atol=1e-9)


def test_labels_not_known_add_nothing():
    X = [["x", "y", "z"]]
    some = HMM(smoothing=0.01).fit(X, [["A", None, "B"]])
    # Neither edge has both its labels, and y is never emitted; but A starts and B ends.
    np.testing.assert_allclose(np.exp(some.start_), [1.01 / 1.02, 0.01 / 1.02])
    np.testing.assert_allclose(np.exp(some.transitions_), [[1 / 3, 1 / 3], [0.01 / 1.03, 0.01 / 1.03]])
    np.testing.assert_allclose(np.exp(some.end_), [1 / 3, 1.01 / 1.03])
    np.testing.assert_allclose(np.exp(some.emissions_[0][1]), [0.01 / 1.04, 0.01 / 1.04])


def test_dense_vectors_count_their_values():
    X, y = [[[2.0, 0.0], [0.0, 3.0]]], [["A", "B"]]
    model = HMM(smoothing=0.5).fit(X, y)
    np.testing.assert_allclose(np.exp(model.emissions_[0]), np.array([[2.5, 0.5], [0.5, 3.5]]) / 2.5)
    assert model.predict(X).tolist() == y


def test_no_features_still_learns_transitions():
    model = HMM(features=lambda _: []).fit([["x", "y", "x", "y"]], [["A", "B", "A", "B"]])
    assert model.predict([["?"] * 4])[0] == ["A", "B", "A", "B"]


def test_n_best_are_the_first_of_all():
    model = HMM().fit([["x", "y", "z"], ["z", "y"]], [["A", "B", "C"], ["C", "B"]])
    every = model.predict_nbest([["x", "y", "new"]], 27)[0]
    assert len(every) == 27
    assert sum(math.exp(p) for _, p in every) == pytest.approx(1.0)
    for n in (1, 2, 5):
        some = model.predict_nbest([["x", "y", "new"]], n)[0]
        assert [labels for labels, _ in some] == [labels for labels, _ in every[:n]]
    assert model.predict([["x", "y", "new"]])[0] == every[0][0]
    assert len(model.predict_nbest([["x"]], np.int64(9))[0]) == 3
    assert model.predict_nbest([], 3).shape == (0,)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2", None])
def test_bad_n(n):
    with pytest.raises(DataError, match=r"n=.*: give a whole number of at least 1"):
        HMM().fit([["x"]], [["A"]]).predict_nbest([["x"]], n)


def test_long_sequences_do_not_underflow():
    words = ["x", "y"] * 20_000
    model = HMM().fit([words[:100]], [["A", "B"] * 50])
    assert model.predict([words])[0] == ["A", "B"] * 20_000
    marginals = model.predict_marginals([words])[0]
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0)


@pytest.mark.parametrize("smoothing", [0, -1, "1", None, True, float("nan"), float("inf"), [1.0]])
def test_bad_smoothing(smoothing):
    with pytest.raises(DataError, match=r"smoothing=.*: give a number above 0"):
        HMM(smoothing=smoothing).fit([["x"]], [["A"]])


@pytest.mark.parametrize("decode", ["", "best", True, 1])
def test_bad_decode(decode):
    with pytest.raises(DataError, match=r"decode=.*: choose viterbi or posterior"):
        HMM(decode=decode).fit([["x"]], [["A"]])


def test_negative_values_are_no_counts():
    with pytest.raises(DataError, match="structure 0, node 1: a feature has a negative value"):
        HMM().fit([[{"f": 1.0}, {"f": -1.0}]], [["A", "B"]])
    with pytest.raises(DataError, match="structure 0, node 1: a feature has a negative value"):
        HMM().fit([[[1.0], [-1.0]]], [["A", "B"]])
    model = HMM().fit([[{"f": 1.0}]], [["A"]])
    with pytest.raises(DataError, match="structure 1, node 0: a feature has a negative value"):
        model.predict([[{"f": 1.0}], [{"f": -1.0}]])


def test_spanish_news(corpora):
    X, y = read(corpora / "conll2002" / "esp.train")
    words = [Sequence([x[0] for x in s]) for s in X[:1300]]
    model = HMM(features="text", smoothing=0.1).fit(words[:1000], y[:1000])
    report = evaluate(y[1000:1300], model.predict(words[1000:]))
    assert report.accuracy > 0.93
    assert report.entity_scores.micro.f1 > 0.45
