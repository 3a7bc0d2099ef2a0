"""Higher-order Viterbi against every labeling of small structures and the first-order one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuda import DataError
from fuda.inference import Graph
from fuda.inference import viterbi as first_order
from fuda.inference.higher_order import Grams, no_grams, viterbi
from oracles import random_corpus


def ancestors(parents, t, order) -> list[int]:
    """The nearest ancestors of a node, at most `order`, nearest first."""
    nearest = []
    while parents[t] >= 0 and len(nearest) < order:
        t = parents[t]
        nearest.append(t)
    return nearest


def gram(grams, order, context, label) -> float:
    """G(c, b), by the definition of the numbering: the nearest label is the first digit."""
    size = grams.full.shape[1]
    number = 0
    for digit in context:
        number = number * size + digit
    if len(context) < order:
        return grams.short[sum(size**j for j in range(len(context))) + number, label]
    return grams.full[number // size, label, number % size] if order else grams.full[0, label, 0]


def score(parents, scores, grams, order, labels) -> float:
    return sum(
        scores[t][y] + gram(grams, order, [labels[p] for p in ancestors(parents, t, order)], y)
        for t, y in enumerate(labels)
    )


def best_labeling(parents, reading, scores, grams, order):
    """The best score and the first best labeling, nodes read in the given order, by trying all."""
    every = itertools.product(range(np.shape(scores)[1]), repeat=len(parents))
    scored = [(score(parents, scores, grams, order, labels), labels) for labels in every]
    top = max(value for value, _ in scored)
    return top, min((y for value, y in scored if value == top), key=lambda y: [y[t] for t in reading])


@st.composite
def problems(draw, integers):
    """A small corpus of chains or forests with random scores of nodes and label stretches."""
    order = draw(st.integers(0, 3))
    size = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 6 if size < 3 else 5), min_size=1, max_size=2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    forbid = draw(st.sampled_from([0.0, 0.1, 0.3]))
    corpus = random_corpus(rng, lengths, size, chain=draw(st.booleans()), forbid=forbid, integers=integers)

    def values(shape):
        drawn = rng.integers(-1, 2, shape).astype(float) if integers else rng.normal(size=shape)
        return np.where(rng.random(shape) < forbid, -np.inf, drawn)

    return corpus, Grams(*(values(part.shape) for part in no_grams(order, size))), order


def check(problem, exact: bool) -> None:
    corpus, grams, order = problem
    graph = Graph(corpus.offsets, corpus.parents, corpus.order)
    truths = []
    for first, (parents, scores, _) in zip(corpus.offsets, corpus.structures(), strict=False):
        reading = corpus.order[first : first + len(parents)] - first
        truths.append(best_labeling(parents, reading, scores, grams, order))
    if min(top for top, _ in truths) == -np.inf:
        with pytest.raises(DataError, match="every labeling is forbidden"):
            viterbi(graph, corpus.scores, grams, order)
        return
    labels, best = viterbi(graph, corpus.scores, grams, order)
    np.testing.assert_allclose(best, [top for top, _ in truths], rtol=1e-12, atol=1e-12)
    if exact:
        assert labels.tolist() == [label for _, y in truths for label in y]
    for i, (parents, scores, _) in enumerate(corpus.structures()):
        labels_of_structure = labels[corpus.offsets[i] : corpus.offsets[i + 1]]
        assert score(parents, scores, grams, order, labels_of_structure) == pytest.approx(
            truths[i][0], abs=1e-12
        )


@given(problems(integers=False))
def test_best_labeling_of_random_scores(problem):
    check(problem, exact=False)


@given(problems(integers=True))
def test_of_equals_the_lexicographically_first(problem):
    check(problem, exact=True)


@pytest.mark.parametrize("chain", [True, False])
def test_order_one_is_the_first_order_recursion(chain):
    corpus = random_corpus(np.random.default_rng(5), [40, 1, 17], 6, chain=chain, integers=True)
    graph = Graph(corpus.offsets, corpus.parents, corpus.order)
    start = np.array([1.0, 0.0, 2.0, 0.0, -1.0, 0.0])
    grams = Grams(start[None], np.ascontiguousarray(corpus.transitions.T[None]))
    scores = corpus.scores.copy()
    scores[corpus.parents < 0] += start
    expected, best = first_order(graph, scores, corpus.transitions)
    labels, ours = viterbi(graph, corpus.scores, grams, order=1, n_jobs=2)
    assert labels.tolist() == expected.tolist()
    np.testing.assert_array_equal(ours, best)


def test_a_score_that_only_long_stretches_see():
    """Labels a, b, a, b, …: which comes first is decided by what is three labels away."""
    grams = no_grams(order=3, label_count=2)
    grams.full[int("01", 2), 1, 0] = 5.0  # nearest first: 0, 1, 0 before a 1
    grams.full[int("10", 2), 0, 1] = 5.0
    scores = np.zeros((8, 2))
    scores[4, 1] = 0.5
    labels, best = viterbi(Graph([0, 8]), scores, grams, order=3)
    assert labels.tolist() == [1, 0] * 2 + [1, 0] * 2
    assert best.tolist() == [25.5]


@pytest.mark.parametrize(
    ("order", "labels", "words"),
    [(-1, 3, "order=-1"), (1.0, 3, "order=1.0"), (True, 3, "order=True"), (9, 10, "choose a lower order")],
)
def test_orders_that_cannot_be(order, labels, words):
    with pytest.raises(DataError, match=words):
        no_grams(order, labels)


def test_scores_of_stretches_are_checked():
    with pytest.raises(DataError, match="grams need the shapes"):
        viterbi(Graph([0, 2]), np.zeros((2, 2)), no_grams(1, 2), order=2)
    grams = no_grams(1, 2)
    grams.full[0, 0, 0] = np.nan
    with pytest.raises(DataError, match="inf or NaN"):
        viterbi(Graph([0, 2]), np.zeros((2, 2)), grams, order=1)
