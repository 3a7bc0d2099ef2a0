"""Numbers of any size: scaled arithmetic, and recursions in it against unbounded integers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import marginalized_oracle as oracle
from fuda import Dag, DataError, Sequence, Tree
from fuda.data.corpus import Corpus
from fuda.data.graph import Span
from fuda.data.window_encoding import WindowEncoder
from fuda.kernels import Constant, Polynomial, Precomputed
from fuda.kernels.points import points
from fuda.marginalized import marginalized_kernel
from fuda.marginalized.numbers import ZERO, Numbers, empty_cells, normal, plus, times
from fuda.marginalized.recursions import shapes
from structure_cases import structure_lists


@njit
def scaled_sum(x, y):
    return plus(normal(*x), normal(*y))


@njit
def scaled_product(x, y):
    return times(normal(*x), normal(*y))


def exact(number):
    return Fraction(number[0]) * Fraction(2) ** (512 * number[1]) if number[0] else Fraction(0)


DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.tuples(DOUBLES, st.integers(-3, 3))


@given(NUMBERS, NUMBERS)
def test_scaled_numbers_add_and_multiply_as_fractions_do(x, y):
    for compute, true in ((scaled_sum, exact(x) + exact(y)), (scaled_product, exact(x) * exact(y))):
        m, e = compute(x, y)
        assert (m, e) == (0.0, ZERO) or 2.0**-256 <= abs(m) < 2.0**256
        largest = max(abs(exact(x)), abs(exact(y))) if compute is scaled_sum else abs(true)
        assert abs(exact((m, e)) - true) <= largest * Fraction(1, 10**15)


def random_structures(size, rng):
    """Two sequences, trees and DAGs each, of so many nodes or a little more."""
    ids = [rng.integers(0, 5, size + extra).tolist() for extra in (0, 3)]
    heads = [[-1, *(int(rng.integers(max(0, t - 5), t)) for t in range(1, len(x)))] for x in ids]
    edges = [
        [(p, t) for t in range(1, len(x)) for p in {t - 1, int(rng.integers(max(0, t - 4), t))}] for x in ids
    ]
    yield tuple(map(Sequence, ids)), 0
    yield tuple(map(Sequence, ids)), 1
    yield tuple(map(Tree, ids, heads)), 0
    yield tuple(map(Dag, ids, edges)), 0


@pytest.mark.parametrize(("size", "least"), [(5, 0), (130, 1)])
def test_logarithms_equal_those_of_whole_numbers(size, least):
    rng = np.random.default_rng(size)
    gram = rng.integers(least, 41, (5, 5))
    gram += gram.T
    largest = []
    for (a, b), gap in random_structures(size, rng):
        weight = 9 * gram[np.ix_(a.observations, b.observations)].astype(object)
        true = weight * oracle.exact_kappa(a, b, weight, gap)
        priors = np.ones((len(a), 1)), np.ones((len(b), 1))
        actual = marginalized_kernel(
            a, b, kernel=Precomputed(gram), mixing=3.0, prior=priors, gap=gap, log=True
        )[:, :, 0, 0]
        expected = np.array([math.log(x) if x else -math.inf for x in true.ravel()]).reshape(true.shape)
        np.testing.assert_allclose(actual, expected, rtol=1e-13)
        largest.append(expected.max())
    assert size == 5 or sum(x > 710 for x in largest) >= 3  # past all doubles


def test_a_long_sentence_against_itself():
    rng = np.random.default_rng(0)
    letters = np.array(list("abcDE-.7"))
    words = ["".join(rng.choice(letters, rng.integers(1, 4))) for _ in range(1238)]
    prior = np.full((1238, 2), 0.5)
    settings = {"kernel": Polynomial(2), "mixing": 3.0, "prior": (prior, prior), "features": "spelling"}
    actual = marginalized_kernel(words, words, log=True, **settings)

    encoded = WindowEncoder("spelling", 0).fit([Sequence(words)])
    types = encoded.corpus.types
    log_weight = np.log(9 * Polynomial(2).gram(points(encoded), points(encoded))[np.ix_(types, types)])
    up = _log_runs(log_weight - math.log(2))
    down = _log_runs(log_weight[::-1, ::-1] - math.log(2))[::-1, ::-1]
    expected = log_weight + up + down - math.log(4)
    for label in range(2):
        np.testing.assert_allclose(actual[:, :, label, label], expected, rtol=1e-12)
    assert (actual[:, :, 0, 1] == -np.inf).all()
    assert expected.max() > 2000
    with pytest.raises(DataError, match=r"mixing=3 with the kernel Polynomial\(degree=2\).*log=True"):
        marginalized_kernel(words, words, **settings)


def _log_runs(log_k):
    log_u = np.zeros(log_k.shape)
    for i in range(1, len(log_k)):
        log_u[i, 1:] = np.logaddexp(0.0, log_k[i - 1, :-1] + log_u[i - 1, :-1])
    return log_u


def test_doubles_come_back_where_only_the_bound_is_past_them():
    words = [i % 2 for i in range(200)]
    prior = np.ones((200, 1))
    settings = {"kernel": Precomputed(np.eye(2) * 2), "prior": (prior, prior), "mixing": 4.0}
    shifted = [*words[:100], 1, *words[:99]]  # long runs match nowhere past the middle
    log_values = marginalized_kernel(words, shifted, log=True, **settings)
    assert log_values.max() < 700
    actual = marginalized_kernel(words, shifted, **settings)
    np.testing.assert_allclose(actual, np.exp(log_values), rtol=1e-10)


def test_chain_priors_at_any_size():
    stay = [np.array([[0.9, 0.1], [0.2, 0.8]])] * 299
    chain = ([1.0, 0.0], stay)
    values = {}
    for gap, label_kernel in itertools.product((0.0, 1e-9), (None, [[1, 1e-9], [1e-9, 1]])):
        values[gap, label_kernel is None] = marginalized_kernel(
            ["a"] * 300,
            ["a"] * 300,
            kernel=Constant(30.0),
            label_kernel=label_kernel,
            mixing=3.0,
            prior=(chain, chain),
            gap=gap,
            log=True,
        )
    diagonal = values[0.0, True][:, :, [0, 1], [0, 1]]
    assert diagonal.max() > 1000
    for other in values.values():
        np.testing.assert_allclose(other[:, :, [0, 1], [0, 1]], diagonal, rtol=1e-5, atol=1e-4)


def fill_both(a, b, weight, mass, gap):
    """κ in doubles and in scaled numbers."""
    corpus = Corpus([a, b])
    edges, (size_a, size_b) = corpus.graph.adjacency, weight.shape
    sides = Span(edges, 0, size_a), Span(edges, size_a, size_a + size_b)
    both = [empty_cells(is_scaled, size_a, size_b) for is_scaled in (False, True)]
    for is_scaled, kappa in enumerate(both):
        work = shapes.workspace(bool(is_scaled), size_a, size_b)
        shapes.fill(shapes.SHAPES[corpus.shape], *sides, weight, mass, gap, kappa, work)
    return both


SIGNS = st.sampled_from([1.0, -1.0])


@given(structure_lists(st.just("a"), 8), st.integers(-40, 40), st.sampled_from([0.0, 0.3, 1.0]), SIGNS)
def test_plain_and_scaled_numbers_agree(structures, power, gap, sign):
    a, b = structures[0], structures[-1]
    rng = np.random.default_rng(len(structures))
    weight, mass = 2.0**power * rng.random((len(a), len(b))), rng.random((len(a), len(b)))
    weight[0] *= sign
    plain, (mantissa, exponent) = fill_both(a, b, weight, mass, gap)
    np.testing.assert_allclose(np.ldexp(mantissa, 512 * np.maximum(exponent, -9)), plain, rtol=1e-9)


def extreme_structures():
    """The shapes that have the most features."""
    yield "sequence", Sequence(["a"] * 30), 1.0
    yield "sequence", Sequence(["a"] * 60), 0.0
    yield "tree", Tree(["a"] * 30, [-1, *[0] * 29]), 0.0
    yield "tree", Tree(["a"] * 31, [-1, *((t - 1) // 2 for t in range(1, 31))]), 0.0
    yield "dag", Dag(["a"] * 30, itertools.combinations(range(30), 2)), 0.0


@pytest.mark.parametrize("product", [1e-4, 0.1, 1.0, 50.0])
def test_the_bound_holds_where_features_are_most(product):
    for shape, structure, gap in extreme_structures():
        longest = len(structure)
        for size in (1, 2, longest // 2, longest):
            part = _first(structure, size)
            weight = np.full((longest, size), 2 * product)
            _, scaled = fill_both(structure, part, weight, np.full(weight.shape, 0.5), gap)
            bound = shapes.log_bound(shapes.SHAPES[shape], longest, size, gap, 2 * product, product)
            assert Numbers.of(scaled).logarithms().max() <= bound + 1e-9


def _first(structure, size):
    if isinstance(structure, Tree):
        return Tree(["a"] * size, structure.heads[:size])
    if isinstance(structure, Dag):
        return Dag(["a"] * size, [edge for edge in structure.edges.tolist() if max(edge) < size])
    return Sequence(["a"] * size)


def test_doubles_are_safe_for_normalized_kernels_on_long_sequences():
    assert shapes.plain_is_safe(0, 1238, 1238, 0.0, 9.0, 1.0)
    assert not shapes.plain_is_safe(0, 1238, 1238, 0.0, 360.0, 40.0)
    assert shapes.plain_is_safe(0, 1238, 8, 0.5, 360.0, 40.0)
    assert shapes.plain_is_safe(1, 200, 200, 0.0, 9.0, 1.0)
    assert not shapes.plain_is_safe(2, 2000, 2000, 0.0, 9.0, 1.0)
    assert not shapes.plain_is_safe(2, 1, 1, 0.0, math.inf, math.inf)
