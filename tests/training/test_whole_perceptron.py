"""The perceptron in whole numbers: bit for bit what the one in doubles computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuda
from fuda import HMPerceptron, Sequence, Tree
from fuda.data.structures import as_structures
from fuda.data.window_encoding import WindowEncoder
from fuda.training import whole_perceptron
from fuda.training.perceptron import Primal, State, TrainingExamples, new_pass
from fuda.training.whole_perceptron import WholePrimal
from structure_cases import forest_heads

FEATURES = {"v": ["a"], "w": ["a", "b"], "x": ["b", "c", "d"], "y": [], "z": ["d", "d2"]}


@st.composite
def problems(draw):
    """An encoded corpus of sequences or trees, and its structures with labels, some unknown."""
    count, is_tree, structures = draw(st.sampled_from([1, 2, 3, 16, 17, 40])), draw(st.booleans()), []
    for size in draw(st.lists(st.integers(1, 8), min_size=1, max_size=6)):
        words = draw(st.lists(st.sampled_from(sorted(FEATURES)), min_size=size, max_size=size))
        structures.append(Tree(words, draw(forest_heads(size))) if is_tree else Sequence(words))
    encoded = WindowEncoder(FEATURES.__getitem__, draw(st.integers(0, 1))).fit(as_structures(structures))
    graph = encoded.corpus.graph
    size = graph.node_count
    y = np.array(draw(st.lists(st.integers(-1, count - 1), min_size=size, max_size=size)))
    eta = np.array(draw(st.lists(st.integers(1, 3), min_size=len(graph), max_size=len(graph))), dtype=float)
    return encoded, TrainingExamples.of(graph, y, eta, draw(st.integers(0, 1)), count)


def trained(learner, orders):
    """What a learner has found in some epochs, and its state afterwards."""
    for order in orders:
        counts = new_pass(learner.examples)
        learner.run(np.array(order), counts)
    return [array.tolist() for array in (*counts, *learner.state)], learner


def learners(problem):
    """The perceptron in doubles, and that in whole numbers."""
    encoded, examples = problem
    rows = sum(encoded.tables[channel.table].n_features for channel in encoded.channels)
    return [
        kind(encoded, examples, State.new(rows, examples.order, examples.label_count))
        for kind in (Primal, WholePrimal)
    ]


@settings(deadline=None)
@given(problems(), st.data())
def test_whole_numbers_are_as_good_as_doubles(problem, data):
    structures = st.permutations(range(len(problem[1].eta)))
    orders = data.draw(st.lists(structures, min_size=1, max_size=5))
    (expected, _), (actual, whole) = (trained(learner, orders) for learner in learners(problem))
    assert actual == expected
    assert whole._whole is not None


@settings(deadline=None)
@given(problems(), st.integers(0, 200))
def test_numbers_that_might_not_fit_go_on_in_doubles(problem, limit):
    orders = [range(len(problem[1].eta))] * 4
    doubles, whole = learners(problem)
    whole._limit = limit
    (expected, _), (actual, _) = trained(doubles, orders), trained(whole, orders)
    assert actual == expected


@settings(deadline=None)
@given(problems())
def test_another_state_is_taken_over(problem):
    orders = [range(len(problem[1].eta))] * 2
    doubles, whole = learners(problem)
    trained(doubles, orders)
    trained(whole, orders[:1])
    whole.restore(doubles.state)
    assert trained(whole, orders)[0] == trained(doubles, orders)[0]


def test_long_chains_do_not_overflow():
    """The score of a chain of 20,000 nodes is beyond 32 bits, and no difference of messages is."""
    x, y = [Sequence(["v", "w"] * 10_000)], np.array([0, 1] * 10_000)
    encoded = WindowEncoder(FEATURES.__getitem__, 0).fit(as_structures(x))
    problem = encoded, TrainingExamples.of(encoded.corpus.graph, y, np.array([20.0]), 1, 2)
    (expected, _), (actual, whole) = (trained(learner, [[0]] * 4) for learner in learners(problem))
    assert actual == expected
    assert whole._whole is not None
    grams = whole.state.full[0]
    assert 10_000 * float(np.abs(grams).max()) > 2**31


@pytest.mark.parametrize(
    ("features", "order", "weight"),
    [(lambda x: {x: 0.5}, 1, 1), (lambda x: {x: 2}, 1, 1), (None, 1, 0.3), (None, 1, 1e12), (None, 2, 1)],
)
def test_what_is_not_small_and_whole_is_left_to_doubles(monkeypatch, features, order, weight):
    monkeypatch.setattr(whole_perceptron, "_whole_pass", None)
    X, y = [["a", "b"], ["b", "b", "a"]], [["0", "1"], ["1", "1", "0"]]
    model = HMPerceptron(features=features, order=order).fit(X, y, sample_weight=[weight, 1])
    assert model.mistakes_[0].nodes


@pytest.mark.parametrize(("average", "order"), [(True, 1), (False, 1), ("voted", 1), (True, 0)])
def test_models_do_not_depend_on_the_loop(monkeypatch, average, order):
    X, y = fuda.datasets.load_product_usage()[:60]
    whole = HMPerceptron(average=average, order=order, epochs=3).fit(X, y)
    monkeypatch.setattr(WholePrimal, "run", Primal.run)
    doubles = HMPerceptron(average=average, order=order, epochs=3).fit(X, y)
    assert whole.mistakes_ == doubles.mistakes_
    assert whole.weights_.tolist() == doubles.weights_.tolist()
    assert whole.transitions_.tolist() == doubles.transitions_.tolist()


def test_without_the_compiler_doubles_do(monkeypatch):
    monkeypatch.setattr(whole_perceptron.config, "DISABLE_JIT", 1)
    monkeypatch.setattr(whole_perceptron, "_whole_pass", None)
    assert HMPerceptron().fit([["a", "b"]], [["0", "1"]]).mistakes_[0].nodes
