"""The scale of scores with which they are probabilities, against enumeration of all labelings."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from fuda import CRF, HMSVM
from fuda.data.corpus import Corpus
from fuda.data.structures import Tree, as_structures
from fuda.models.likeliest import LARGEST_SCALE, ScaledLoss, sampled

HEADS = ([-1, 0, 1], [-1, 0, 0], [-1, 0])
L = 2


def enumerated(s, square, heads, nodes, pairs, labels, weight):
    """−Σ log P_s(y | x) + s² ‖w‖², labels that are not known summed over."""
    total, begin = s * s * square, 0
    for tree, weight_of_tree in zip(heads, weight, strict=True):
        end = begin + len(tree)
        values, fits = [], []
        for y in product(range(L), repeat=len(tree)):
            value = sum(nodes[begin + t, a] for t, a in enumerate(y))
            value += sum(pairs[y[p], y[t]] for t, p in enumerate(tree) if p >= 0)
            values.append(s * value)
            fits.append(all(known in (-1, a) for known, a in zip(labels[begin:end], y, strict=True)))
        values = np.array(values)
        total += weight_of_tree * (np.logaddexp.reduce(values) - np.logaddexp.reduce(values[fits]))
        begin = end
    return total


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_the_likeliest_scale_is_that_of_enumeration(seed):
    random = np.random.RandomState(seed)
    graph = Corpus([Tree(["x"] * len(heads), heads) for heads in HEADS]).graph
    size = sum(map(len, HEADS))
    nodes, pairs = random.randn(size, L), random.randn(L, L)
    labels = random.randint(0, L, size)
    weight, square = random.rand(3) + 0.5, random.rand() * 0.2 + 0.05
    problem = HEADS, nodes, pairs, labels, weight
    scale = ScaledLoss(graph, nodes, pairs, labels, weight, 1.0).likeliest(square)
    spread = np.std(nodes - nodes.mean(axis=1, keepdims=True))
    best = minimize_scalar(
        lambda s: enumerated(s, square, *problem), bounds=(1e-2 / spread, 1e2 / spread), method="bounded"
    )
    assert enumerated(scale, square, *problem) <= best.fun + 1e-3 * (1 + abs(best.fun))
    labels[0] = -1  # a label that is not known costs nothing, whatever it is
    assert 0 < ScaledLoss(graph, nodes, pairs, labels, weight, 1.0).likeliest(square) <= LARGEST_SCALE


def test_scores_that_tell_nothing_have_the_scale_1():
    graph = Corpus(as_structures([["x", "y"]])).graph
    nothing = np.zeros((2, 2)), np.zeros((2, 2))
    assert ScaledLoss(graph, *nothing, np.array([0, 1]), np.ones(1), 1.0).likeliest(1) == 1


def test_a_sample_is_spread_over_all():
    assert sampled(1).tolist() == [0]
    assert (np.diff(sampled(10_000)) >= 50).all()


def test_marginals_of_a_margin_machine_are_probabilities():
    """As likely as those of a CRF on other structures; at the scale 1 they are far too even."""
    random = np.random.RandomState(0)
    words = [f"w{k}" for k in range(40)]
    X = [[words[k] for k in random.randint(0, 40, 6)] for _ in range(160)]
    y = [["A" if (int(w[1:]) + random.randint(0, 12)) > 24 else "B" for w in x] for x in X]
    svm, crf = HMSVM().fit(X[:100], y[:100]), CRF().fit(X[:100], y[:100])

    def loss(model):
        p = np.concatenate(list(model.predict_marginals(X[100:])))
        numbers = np.searchsorted(model.classes_.astype(str), np.concatenate(y[100:]))
        return -np.log(p[np.arange(len(p)), numbers]).mean()

    good, predicted = loss(svm), list(svm.predict(X))
    svm._scale = 1.0
    assert list(svm.predict(X)) == predicted
    assert good == pytest.approx(loss(crf), abs=0.1)
    assert good < loss(svm)
