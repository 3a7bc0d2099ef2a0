"""The primal by explicit features: against the definition, and against the dual machine."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuda import Sequence
from fuda.data.window_encoding import WindowEncoder
from fuda.kernels import Linear
from fuda.kernels.points import Numbering
from fuda.marginalized.machine import Machine, Side
from fuda.marginalized.primal import PrimalMachine
from fuda.marginalized.priors import Prior
from fuda.models.marginalized_perceptron import MarginalizedPerceptron
from marginalized_oracle import occurrences
from structure_cases import structure_lists

LABELS = 2
FEATURES = st.dictionaries(st.sampled_from("pqr"), st.sampled_from([0.5, 1.0, 2.0]), min_size=1)


def side_of(structures, seed: int) -> Side:
    encoded = WindowEncoder("word", 0).fit(structures)
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(LABELS), encoded.corpus.size)
    prior[0] = [1.0, 0.0]
    return Side(encoded, Numbering(encoded.corpus), Prior(prior))


def defined(side: Side, most: int, mixing: float, a: int, b: int) -> np.ndarray:
    """⟨φ_τ, φ_t⟩ from the definition: all pairs of occurrences of one form, the points at the same node."""
    corpus, types = side.encoded.corpus, side.points
    x, y = corpus.structures[a], corpus.structures[b]
    first = side.offsets[[a, b]]
    gram = np.asarray((types.features @ types.features.T).todense())
    found = np.zeros((len(x), len(y)))
    for (form, nodes, _), (other, others, _) in itertools.product(occurrences(x, 0.0), occurrences(y, 0.0)):
        if form != other or len(nodes) > most:
            continue
        for point in range(len(nodes)):
            value = 1.0
            for k, (i, j) in enumerate(zip(nodes, others, strict=True)):
                i, j = first[0] + i, first[1] + j
                value *= mixing**2 * gram[corpus.types[i], corpus.types[j]]
                if k != point:
                    value *= float(side.prior.nodes[i] @ side.prior.nodes[j])
            found[nodes[point], others[point]] += value
    return found


@settings(max_examples=40)
@given(structure_lists(FEATURES, max_size=4), st.integers(1, 4), st.integers(0, 99))
def test_features_are_the_pointed_substructures(structures, most, seed) -> None:
    side = side_of(structures, seed)
    machine = PrimalMachine(most, 0.7, side, side)
    for a, b in itertools.product(range(len(structures)), repeat=2):
        np.testing.assert_allclose(machine.kappa(a, b), defined(side, most, 0.7, a, b), rtol=1e-9)


@settings(max_examples=30)
@given(structure_lists(FEATURES, max_size=4), st.integers(0, 99))
def test_primal_and_dual_agree_where_structures_are_small(structures, seed) -> None:
    side = side_of(structures, seed)
    rng = np.random.default_rng(seed)
    primal = PrimalMachine(4, 1.1, side, side)
    dual = Machine(Linear(), np.eye(LABELS), 1.1, 0.0, side, side)
    for structure in (0, len(structures) - 1, 0):
        alpha = rng.integers(-1, 2, (side.sizes[structure], LABELS)).astype(float)
        primal.push(structure, alpha)
        dual.push(structure, alpha)
        for target in range(len(structures)):
            np.testing.assert_allclose(primal.scores(target), dual.scores(target), rtol=1e-9, atol=1e-9)
    alpha = rng.normal(size=side.prior.nodes.shape)
    primal.push_all(alpha)
    dual.push_all(alpha)
    np.testing.assert_allclose(primal.all_scores(), dual.all_scores(), rtol=1e-9, atol=1e-9)


@settings(max_examples=25)
@given(structure_lists(FEATURES, max_size=4), st.integers(0, 99), st.booleans())
def test_primal_and_dual_perceptron_make_the_same_mistakes(structures, seed, average) -> None:
    rng = np.random.default_rng(seed)
    y = [["A", *rng.choice(["A", "B"], len(x) - 1)] for x in structures]
    y[0][-1] = "B"
    labels = sorted({label for labels in y for label in labels})
    priors = [rng.dirichlet(np.ones(len(labels)), len(x)) for x in structures]
    parameters = {"kernel": Linear(), "mixing": 0.9, "prior": priors, "average": average, "epochs": 5}
    parameters |= {"orders": 1, "calibrate": False, "features": "word"}
    primal, dual = (MarginalizedPerceptron(max_nodes=n, **parameters).fit(structures, y) for n in (4, None))
    assert primal.mistakes_ == dual.mistakes_
    assert primal.support_ == dual.support_
    for ours, theirs in zip(*(m.decision_scores(structures, priors) for m in (primal, dual)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    assert primal.predict(structures, priors).tolist() == dual.predict(structures, priors).tolist()


def test_features_beyond_the_vocabulary_say_nothing() -> None:
    encoder = WindowEncoder("word", 0)
    train = encoder.fit([Sequence(["a", "b"])])
    numbering = Numbering(train.corpus)
    prior = Prior(np.full((2, LABELS), 0.5))
    new = Side(encoder.encode([Sequence(["z", "b"])]), numbering, prior)
    machine = PrimalMachine(2, 1.0, Side(train, numbering, prior), new)
    machine.push(0, np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert machine.scores(0) == pytest.approx(np.array([[0.0, 0.0], [0.0, 0.25]]))
