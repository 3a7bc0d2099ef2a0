"""The engine by explicit features: against the definition, and against the other engines."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuda import Sequence
from fuda.data.window_encoding import WindowEncoder
from fuda.kernels import Linear
from fuda.marginalized import engines
from fuda.marginalized.engines.explicit import ExplicitEngine
from fuda.marginalized.parts import PARTS
from fuda.marginalized.priors import Prior
from fuda.marginalized.problem import Examples, Settings, Sources
from fuda.models.marginalized_perceptron import MarginalizedPerceptron
from machine_cases import ENGINES
from marginalized_oracle import occurrences
from structure_cases import structure_lists, trees

LABELS = 2
FEATURES = st.dictionaries(st.sampled_from("pqr"), st.sampled_from([0.5, 1.0, 2.0]), min_size=1)


def examples_of(structures, seed: int) -> Examples:
    encoded = WindowEncoder("word", 0).fit(structures)
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(LABELS), encoded.corpus.size)
    prior[0] = [1.0, 0.0]
    return Examples.of(encoded, Prior(prior))


def problem_of(examples: Examples, mixing: float, parts: str | None = None):
    return Sources(Settings(Linear(), np.eye(LABELS), mixing, 0.0, parts), examples).problem()


def defined(side: Examples, most: int, mixing: float, a: int, b: int) -> np.ndarray:
    """⟨φ_τ, φ_t⟩ by definition: all pairs of occurrences of one form, points at the same node."""
    corpus, types = side.encoded.corpus, side.points
    x, y = corpus.structures[a], corpus.structures[b]
    first = side.offsets[[a, b]]
    gram = np.asarray((types.features @ types.features.T).todense())
    values = np.zeros((len(x), len(y)))
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
            values[nodes[point], others[point]] += value
    return values


@settings(max_examples=40)
@given(structure_lists(FEATURES, max_size=4), st.integers(1, 4), st.integers(0, 99))
def test_features_are_the_pointed_substructures(structures, most, seed) -> None:
    side = examples_of(structures, seed)
    engine = ExplicitEngine(problem_of(side, 0.7), max_nodes=most)
    for a, b in itertools.product(range(len(structures)), repeat=2):
        actual = engine.kappa(a, b).doubles()[:, :, 0]
        np.testing.assert_allclose(actual, defined(side, most, 0.7, a, b), rtol=1e-9)


@settings(max_examples=30)
@given(structure_lists(FEATURES, max_size=4), st.integers(0, 99), st.sampled_from(list(ENGINES)))
def test_primal_and_dual_agree_where_structures_are_small(structures, seed, name) -> None:
    side = examples_of(structures, seed)
    rng = np.random.default_rng(seed)
    primal, dual = (make(problem_of(side, 1.1)) for make in (ExplicitEngine, ENGINES[name]))
    alpha = np.zeros(side.prior.nodes.shape)
    for structure in (0, len(structures) - 1, 0):
        nodes = primal.problem.sources.nodes(structure)
        alpha[nodes] += rng.integers(-1, 2, alpha[nodes].shape)
        ours, theirs = (engine.scores(alpha.copy()).doubles() for engine in (primal, dual))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    alpha = rng.normal(size=side.prior.nodes.shape)
    ours, theirs = (engine.scores(alpha).doubles() for engine in (primal, dual))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@settings(max_examples=30)
@given(st.lists(trees(FEATURES, 4), min_size=1, max_size=3), st.integers(0, 99), st.sampled_from(list(PARTS)))
def test_primal_and_dual_agree_on_all_parts_of_trees(structures, seed, parts) -> None:
    side = examples_of(structures, seed)
    alpha = np.random.default_rng(seed).normal(size=side.prior.nodes.shape)
    primal, dual = (make(problem_of(side, 1.1, parts)) for make in (ExplicitEngine, ENGINES["cpu"]))
    np.testing.assert_allclose(
        primal.scores(alpha).doubles(), dual.scores(alpha).doubles(), rtol=1e-9, atol=1e-9
    )


@settings(max_examples=25)
@given(structure_lists(FEATURES, max_size=4), st.integers(0, 99), st.booleans())
def test_primal_and_dual_perceptron_make_the_same_mistakes(structures, seed, average) -> None:
    """By the parameter `engine` alone: an engine more is a row more in the registry."""
    rng = np.random.default_rng(seed)
    y = [["A", *rng.choice(["A", "B"], len(x) - 1)] for x in structures]
    y[0][-1] = "B"
    labels = sorted({label for labels in y for label in labels})
    priors = [rng.dirichlet(np.ones(len(labels)), len(x)) for x in structures]
    parameters = {"kernel": Linear(), "mixing": 0.9, "prior": priors, "average": average, "epochs": 5}
    parameters |= {"orders": 1, "calibrate": False, "features": "word"}
    with pytest.MonkeyPatch.context() as patch:
        oracle = "fuda.marginalized.engines.explicit.ExplicitEngine"
        patch.setitem(engines.ENGINES, "explicit", oracle)
        primal, dual = (
            MarginalizedPerceptron(engine=name, **parameters).fit(structures, y)
            for name in ("explicit", "cpu")
        )
        assert primal.mistakes_ == dual.mistakes_
        assert primal.support_ == dual.support_
        both = (model.decision_scores(structures, prior=priors) for model in (primal, dual))
        for ours, theirs in zip(*both, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        assert (
            primal.predict(structures, prior=priors).tolist()
            == dual.predict(structures, prior=priors).tolist()
        )


def test_features_beyond_the_vocabulary_say_nothing() -> None:
    encoder, prior = WindowEncoder("word", 0), Prior(np.full((2, LABELS), 0.5))
    train = Examples.of(encoder.fit([Sequence(["a", "b"])]), prior)
    new = Examples.of(encoder.encode([Sequence(["z", "b"])]), prior, train.numbering)
    sources = Sources(Settings(Linear(), np.eye(LABELS), 1.0, 0.0), train)
    engine = ExplicitEngine(sources.problem(new), max_nodes=2)
    scores = engine.scores(np.array([[1.0, 0.0], [0.0, 1.0]])).doubles()
    assert scores == pytest.approx(np.array([[0.0, 0.0], [0.0, 0.25]]))
