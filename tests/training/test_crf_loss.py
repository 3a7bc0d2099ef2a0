"""The CRF losses against their definitions: every labeling of small structures, one by one.

With Φ(x, y) the features of a labeling, F = Φ · w, so that losses and gradients are sums
over labelings:

    L₁ = log Σ_y e^F − log Σ_{y fits} e^F                 ∂L₁ = E[Φ] − E[Φ | y fits]
    L₀ = Σ_t w_t (log Σ_y e^F − log Σ_{y: y_t} e^F)       ∂L₀ = Σ_t w_t (E[Φ] − E[Φ | y_t])
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from fuda import Sequence, Tree
from fuda.data.encoding import Encoded
from fuda.data.template_encoding import TemplateEncoder
from fuda.data.window_encoding import WindowEncoder
from fuda.errors import DataError
from fuda.features.templates import Template
from fuda.training.crf_loss import Loss, TrainingLoss, Weights, score_structures
from structure_cases import forest_heads

LOSSES = [Loss.by_name("sequential", 0), Loss.by_name("pointwise", 0), Loss.by_name("markov", 1.7)]
TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,0]/%x[1,0]\nB2:%x[0,0]\n*3:%x[1,0]\nB")


class Enumerated:
    """All labelings of one structure: their labels (n, T) and features (n, weights)."""

    def __init__(self, encoded: Encoded, structure: int, labels: int) -> None:
        corpus = encoded.corpus
        nodes = range(*corpus.offsets[structure : structure + 2])
        self.heads = [int(h) - nodes[0] if h >= 0 else -1 for h in corpus.graph.heads[list(nodes)]]
        self.labels = np.array(list(itertools.product(range(labels), repeat=len(nodes))))
        weights = Weights.of(encoded, labels)
        self.features = np.zeros((len(self.labels), weights.size))
        # Which weight is which.
        by_channel, transitions, by_edge = weights.views(np.arange(weights.size))
        for t, node in enumerate(nodes):
            for channel, part in zip(encoded.channels, by_channel, strict=True):
                self._add(part[:, self.labels[:, t]].T, self._seen(encoded, channel, node))
            if self.heads[t] >= 0:
                parent_label, label = self.labels[:, self.heads[t]], self.labels[:, t]
                self._add(transitions[parent_label, label][:, None], 1.0)
                for channel, part in zip(encoded.edge_channels, by_edge, strict=True):
                    self._add(part[:, parent_label, label].T, self._seen(encoded, channel, node))

    def _add(self, columns, values) -> None:
        """Add the values of features to their columns, (n, features), of all labelings."""
        np.add.at(self.features, (np.arange(len(columns))[:, None], columns), values)

    @staticmethod
    def _seen(encoded, channel, node):
        at = [node] if channel.indptr is None else range(*channel.indptr[node : node + 2])
        matrix = encoded.tables[channel.table].matrix
        return sum(np.asarray(matrix[[channel.rows[i]]].sum(axis=0)).ravel() for i in at)

    def part(self, vector, keep) -> tuple[float, np.ndarray]:
        """log Σ e^F and E[Φ] over the labelings to keep."""
        scores = self.features[keep] @ vector
        total = logsumexp(scores)
        return float(total), np.exp(scores - total) @ self.features[keep]

    def less(self, vector, keep) -> tuple[float, np.ndarray]:
        """−log P(keep), and its gradient."""
        every, expected = self.part(vector, slice(None))
        some, log_z_given_labels = self.part(vector, keep)
        return every - some, expected - log_z_given_labels

    def fitting(self, known, nodes) -> np.ndarray:
        """Which labelings agree with the labels of the nodes, where known."""
        nodes = [t for t in nodes if known[t] >= 0]
        return (self.labels[:, nodes] == known[nodes]).all(axis=1)

    def loss(self, vector, known, loss: Loss, position_weight) -> tuple[float, np.ndarray]:
        value, gradient = self.less(vector, self.fitting(known, range(len(known))))
        value, gradient = loss.omega * value, loss.omega * gradient
        for t in range(len(known)) if loss.pointwise else ():
            part, slope = self.less(vector, self.fitting(known, [t]))
            value, gradient = value + position_weight[t] * part, gradient + position_weight[t] * slope
        return value, gradient


def truth(encoded, labels, count, loss, vector, sample_weight, position_weight):
    value, gradient = 0.0, np.zeros(len(vector))
    for i, (a, b) in enumerate(itertools.pairwise(encoded.corpus.offsets)):
        enumerated = Enumerated(encoded, i, count)
        part, slope = enumerated.loss(vector, labels[a:b], loss, position_weight[a:b])
        value += sample_weight[i] * part
        gradient += sample_weight[i] * slope
    return value, gradient


def random_tree(random, words):
    heads = np.full(len(words), -1)
    order = random.permutation(len(words))
    for rank in range(1, len(words)):
        if random.random() < 0.8:
            heads[order[rank]] = order[random.integers(rank)]
    return Tree(words, heads)


def encoded_case(kind: str, random, lengths) -> Encoded:
    if kind == "vectors":
        return WindowEncoder("word", 1).fit([Sequence(list(random.normal(size=(n, 2)))) for n in lengths])
    words = [[str(random.choice(list("xyz"))) for _ in range(n)] for n in lengths]
    if kind in ("trees", "tree pairs"):
        encoded = WindowEncoder("word", 1).fit([random_tree(random, x) for x in words])
    elif kind == "template":
        encoded = TemplateEncoder(TEMPLATE).fit([Sequence(x) for x in words])
    else:
        encoded = WindowEncoder("word", 2 if kind == "window" else 0).fit([Sequence(x) for x in words])
    if kind.endswith("pairs"):
        channel = encoded.channels[len(encoded.channels) // 2]
        encoded = replace(encoded, edge_channels=[channel])
    return encoded


KINDS = ["chains", "window", "vectors", "chain pairs", "template", "trees", "tree pairs"]


@pytest.mark.parametrize("scale", [0.0, 1.0, 60.0, 400.0, 1e4])
@pytest.mark.parametrize("loss", LOSSES, ids=["sequential", "pointwise", "markov"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_labeling(kind, loss, scale):
    """Values and gradients; weights of structures and nodes, unknown labels, any scores."""
    random = np.random.default_rng(KINDS.index(kind))
    for count, unknown in ((1, 0.0), (3, 0.0), (3, 0.4), (2, 1.0)):
        lengths = random.integers(1, 5, size=3)
        encoded = encoded_case(kind, random, lengths)
        labels = random.integers(count, size=encoded.corpus.size)
        labels[random.random(encoded.corpus.size) < unknown] = -1
        sample_weight = random.choice([0.0, 1.0, 2.5], size=len(lengths))
        position_weight = random.choice([0.0, 1.0, 0.3], size=encoded.corpus.size)
        function = TrainingLoss(encoded, labels, count, loss, sample_weight, position_weight)
        vector = scale * random.normal(size=function.weights.size)
        value, gradient = function(vector)
        expected = truth(encoded, labels, count, loss, vector, sample_weight, position_weight)
        assert np.isfinite(value)
        assert value == pytest.approx(expected[0], rel=1e-10, abs=1e-11 * max(1.0, scale))
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=["sequential", "pointwise", "markov"])
@pytest.mark.parametrize("kind", KINDS)
def test_central_differences(kind, loss):
    """Structures too long to enumerate."""
    random = np.random.default_rng(len(kind))
    encoded = encoded_case(kind, random, random.integers(1, 30, size=12))
    labels = random.integers(-1, 3, size=encoded.corpus.size)
    weights = random.random(12), random.random(encoded.corpus.size)
    function = TrainingLoss(encoded, labels, 3, loss, *weights)
    vector = random.normal(size=function.weights.size)
    gradient = function(vector)[1].copy()
    for _ in range(5):
        direction = random.normal(size=len(vector))
        step = 1e-5 * direction
        slope = (function(vector + step)[0] - function(vector - step)[0]) / 2e-5
        assert slope == pytest.approx(gradient @ direction, rel=1e-6)


@pytest.mark.parametrize("scale", [1.0, 30.0, 100.0, 1e4])
@pytest.mark.parametrize("loss", LOSSES, ids=["sequential", "pointwise", "markov"])
def test_a_chain_is_a_tree(loss, scale):
    """The eight-lane loop agrees with general inference, which trees use, for any thread count."""
    random = np.random.default_rng(3)
    words = [list(map(str, random.integers(9, size=n))) for n in random.integers(1, 25, size=45)]
    chains = WindowEncoder("word", 1).fit([Sequence(x) for x in words])
    trees = WindowEncoder("word", 1).fit([Tree(x, range(-1, len(x) - 1)) for x in words])
    labels = random.integers(5, size=chains.corpus.size)
    weights = random.random(len(words)), random.random(chains.corpus.size)
    function = TrainingLoss(chains, labels, 5, loss, *weights, n_jobs=1)
    vector = scale * random.normal(size=function.weights.size)
    value, gradient = function(vector)
    other = TrainingLoss(trees, labels, 5, loss, *weights)(vector)
    assert value == pytest.approx(other[0], rel=1e-11)
    np.testing.assert_allclose(gradient, other[1], rtol=1e-8, atol=1e-9)
    for n_jobs in (2, 5):
        again = TrainingLoss(chains, labels, 5, loss, *weights, n_jobs=n_jobs)(vector)
        assert again[0] == value
        np.testing.assert_array_equal(again[1], gradient)


@pytest.mark.parametrize("loss", LOSSES, ids=["sequential", "pointwise", "markov"])
@pytest.mark.parametrize("kind", ["chains", "trees"])
def test_only_some_structures_are_extreme(kind, loss):
    """One word has weights too large for scaled recursions; others are computed as usual."""
    random = np.random.default_rng(0)
    encoded = encoded_case(kind, random, [4, 3, 4, 2, 4, 4, 1, 4, 3, 4, 4, 4])
    labels = random.integers(3, size=encoded.corpus.size)
    ones = np.ones(len(encoded.corpus)), np.ones(encoded.corpus.size)
    function = TrainingLoss(encoded, labels, 3, loss)
    for top in (250.0, 1e4, 1e6):
        vector = random.normal(size=function.weights.size)
        by_channel, _, _ = function.weights.views(vector)
        by_channel[0][0] = [top, 0.0, -top]
        value, gradient = function(vector)
        expected = truth(encoded, labels, 3, loss, vector, *ones)
        assert value == pytest.approx(expected[0], rel=1e-11)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-8, atol=1e-9)


def test_extreme_transitions():
    """Transitions that leave next to no way on, also for the lanes whose chains have ended."""
    random = np.random.default_rng(1)
    encoded = encoded_case("chains", random, [1, 2, 3, 4, 4, 4, 4, 4, 2, 1])
    labels = random.integers(2, size=encoded.corpus.size)
    ones = np.ones(len(encoded.corpus)), np.ones(encoded.corpus.size)
    for loss, low in itertools.product(LOSSES, (-190, -210, -437, -700, -1e4)):
        function = TrainingLoss(encoded, labels, 2, loss)
        for matrix in ([[low, 0], [-1e4, -1e4]], [[0, low], [low, -1e4]], [[-1e4, 0], [low, -1e4]]):
            vector = random.normal(size=function.weights.size)
            function.weights.views(vector)[1][:] = matrix
            value, gradient = function(vector)
            expected = truth(encoded, labels, 2, loss, vector, *ones)
            assert value == pytest.approx(expected[0], rel=1e-11)
            np.testing.assert_allclose(gradient, expected[1], rtol=1e-8, atol=1e-9)


def markov_loss(enumerated: Enumerated, vector, gold, k: int) -> float:
    """M_k by its own definition, for a chain or a rooted tree (or several of them).

    Above each root stand k dummy nodes in a row and below each leaf any number of them, all of one
    constant label. Each node, dummies included, is the top of one window: itself and its
    descendants in the next k generations. On a chain that is y_t..y_{t+k} for t = 1−k..T. The loss
    is the sum of −log P(window); a window of dummies only counts nothing.
    """
    heads, size = enumerated.heads, len(gold)

    def distance_below(top: int, t: int) -> int | None:
        steps = 0
        while t != top:
            if t < 0 or heads[t] < 0:
                return None
            t, steps = heads[t], steps + 1
        return steps

    windows = []
    for top in range(size):
        below = [distance_below(top, t) for t in range(size)]
        windows.append([t for t in range(size) if below[t] is not None and below[t] <= k])
        if heads[top] < 0:  # the dummy d steps above this root sees k − d generations of the tree
            for d in range(1, k + 1):
                windows.append([t for t in range(size) if below[t] is not None and below[t] + d <= k])
    return sum(enumerated.less(vector, enumerated.fitting(gold, window))[0] for window in windows)


def chain_markov_loss(enumerated: Enumerated, vector, gold, k: int) -> float:
    """M_k = −Σ_{t=1−k}^{T} log P(y_t..y_{t+k}), the windows cut at the ends (positions from 1)."""
    size = len(gold)
    total = 0.0
    for t in range(1 - k, size + 1):
        window = [s - 1 for s in range(max(t, 1), min(t + k, size) + 1)]
        total += enumerated.less(vector, enumerated.fitting(gold, window))[0]
    return total


@st.composite
def small_problems(draw, chain):
    size = draw(st.integers(1, 5))
    words = draw(st.lists(st.sampled_from("xy"), min_size=size, max_size=size))
    structure = Sequence(words) if chain else Tree(words, draw(forest_heads(size)))
    encoded = WindowEncoder("word", 1).fit([structure])
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = random.integers(3, size=size)
    vector = draw(st.sampled_from([1.0, 5.0])) * random.normal(size=Weights.of(encoded, 3).size)
    return encoded, labels, vector


def value_of(encoded, labels, vector, name, order=0.0) -> float:
    return TrainingLoss(encoded, labels, 3, Loss.by_name(name, order))(vector)[0]


@settings(max_examples=25)
@given(st.booleans().flatmap(lambda chain: small_problems(chain)))
def test_theorem_1_and_corollaries(problem):
    encoded, labels, vector = problem
    enumerated = Enumerated(encoded, 0, 3)
    sequential, pointwise = (value_of(encoded, labels, vector, name) for name in ("sequential", "pointwise"))

    def mixed(share):  # L_λ
        return share * sequential + (1 - share) * pointwise

    by_order = [markov_loss(enumerated, vector, labels, k) for k in range(5)]
    for k, expected in enumerate(by_order):
        share = k / (k + 1)
        if encoded.corpus.is_chain:
            assert expected == pytest.approx(chain_markov_loss(enumerated, vector, labels, k))
        assert mixed(share) / (1 - share) == pytest.approx(expected)
        assert value_of(encoded, labels, vector, "markov", k) == pytest.approx(expected)
    for k in (0.25, 1.5, 3.9):  # corollary 1
        low, high = int(np.floor(k)), int(np.ceil(k))
        between = (high - k) * by_order[low] + (k - low) * by_order[high]
        assert value_of(encoded, labels, vector, "markov", k) == pytest.approx(between)
        assert mixed(k / (k + 1)) * (k + 1) == pytest.approx(between)
    for share in (0.0, 0.3, 0.5):  # corollary 2, its series cut where the rest is negligible
        # Windows this deep hold whole trees: M grows by the same amount from here on.
        deep = len(labels)
        known = [markov_loss(enumerated, vector, labels, k) for k in (deep, deep + 1)]
        orders = np.arange(120)
        losses = np.where(
            orders < 5, [*by_order, *[0.0] * 115], known[0] + (orders - deep) * (known[1] - known[0])
        )
        series = (1 - share) * float(share**orders @ losses)
        assert series == pytest.approx(mixed(share) / (1 - share))


def test_scores_are_features_times_weights():
    random = np.random.default_rng(2)
    for kind in KINDS:
        encoded = encoded_case(kind, random, [3, 1])
        weights = Weights.of(encoded, 2)
        vector = random.normal(size=weights.size)
        scores, transitions = score_structures(encoded, weights, vector)
        enumerated = Enumerated(encoded, 0, 2)
        for y, features in zip(enumerated.labels, enumerated.features, strict=True):
            total = sum(scores[t, y[t]] for t in range(3))
            for t, head in enumerate(enumerated.heads):
                if head >= 0:
                    matrix = transitions if transitions.ndim == 2 else transitions[t]
                    total += matrix[y[head], y[t]]
            assert total == pytest.approx(features @ vector)


def test_weights_of_structures_are_repetitions():
    random = np.random.default_rng(4)
    words = [["x", "y"], ["y", "z", "x"], ["z"]]
    twice = [*words, words[1]]
    labels = [[0, 1], [1, 1, 0], [0]]
    flat = np.concatenate
    for loss in LOSSES:
        encoder = WindowEncoder("word", 1)
        one = TrainingLoss(
            encoder.fit([Sequence(x) for x in words]), flat(labels), 2, loss, np.array([1.0, 2, 1])
        )
        other = TrainingLoss(
            encoder.encode([Sequence(x) for x in twice]), flat([*labels, labels[1]]), 2, loss
        )
        vector = random.normal(size=one.weights.size)
        for a, b in zip(one(vector), other(vector), strict=True):
            np.testing.assert_allclose(a, b)
        np.testing.assert_allclose(one.curvature(), other.curvature())


def test_curvature_is_the_hessian_diagonal_of_alike_labels():
    """Exact for the sequential loss at zero weights where no feature recurs in a structure."""
    encoded = WindowEncoder("word", 0).fit([Sequence(["a", "b"]), Sequence(["c"])])
    function = TrainingLoss(encoded, np.array([0, 1, 2]), 3, LOSSES[0])
    zero, step = np.zeros(function.weights.size), 1e-4
    for i, expected in enumerate(function.curvature()):
        change = np.eye(len(zero))[i] * step
        second = (function(change)[0] + function(-change)[0] - 2 * function(zero)[0]) / step**2
        assert second == pytest.approx(expected, rel=1e-4)


def test_names():
    with pytest.raises(DataError, match="loss='hinge': choose sequential, pointwise or markov"):
        Loss.by_name("hinge", 1.0)


@pytest.mark.parametrize("loss", LOSSES[1:])
def test_gradients_of_parts_add_up_exactly_where_distant_labels_depend_on_each_other(loss):
    """One node of each chain counts, and all others have as large a gradient."""
    encoded = WindowEncoder(lambda word: [word], 0).fit([Sequence(["a"] * n) for n in range(100, 130)])
    labels = np.zeros(encoded.corpus.size)
    weights = np.full(len(labels), 1e-9)
    weights[encoded.corpus.offsets[:-1]] = np.random.RandomState(0).rand(30)
    whole = TrainingLoss(encoded, labels, 2, loss, position_weight=weights, n_jobs=1)
    vector = np.array([0.0, 1e-3, 12.0, 0.0, 0.0, 12.0])
    total = np.zeros(len(vector))
    for i in reversed(range(30)):
        nodes = slice(*encoded.corpus.offsets[i : i + 2])
        arguments = encoded.take(np.array([i])), labels[nodes], 2, loss, None, weights[nodes]
        total += TrainingLoss(*arguments, 1, whole.rounder)(vector)[1]
    assert whole(vector)[1].tolist() == total.tolist()
