"""The marginalized kernel against enumeration, and what every kernel must satisfy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marginalized_oracle as oracle
from fuda import Dag, DataError, Sequence, Tree
from fuda.kernels import Constant, Delta, Linear, Polynomial, Precomputed
from fuda.marginalized import marginalized_kernel
from structure_cases import dags, sequences, trees

SHAPES = {"sequence": sequences, "tree": trees, "dag": dags}
IDS = st.integers(0, 3)


def random_gram(rng, size, signed=False):
    """A positive semi-definite matrix with some zeros."""
    root = rng.integers(-1 if signed else 0, 2, (size, 2 * size)) * rng.random((size, 2 * size))
    return root @ root.T


def random_rows(rng, *shape):
    rows = rng.random(shape) * (rng.random(shape) < 0.7)
    rows[..., 0] += rows.sum(axis=-1) == 0.0
    return rows / rows.sum(axis=-1, keepdims=True)


def random_prior(rng, size, labels, chain=False):
    if not chain:
        return random_rows(rng, size, labels)
    return random_rows(rng, labels), list(random_rows(rng, size - 1, labels, labels))


@st.composite
def cases(draw, shape, chain=False, labels=2, max_size=4):
    a, b = draw(SHAPES[shape](IDS, max_size)), draw(SHAPES[shape](IDS, max_size))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k_x = random_gram(rng, 4, draw(st.booleans()))
    k_y = np.eye(labels) if draw(st.booleans()) else random_gram(rng, labels)
    chains = draw(st.sampled_from([(True, True), (True, False)])) if chain else (False, False)
    priors = tuple(
        random_prior(rng, len(x), labels, is_chain) for x, is_chain in zip((a, b), chains, strict=True)
    )
    mixing = draw(st.sampled_from([0.3, 1.0, 2.5]))
    gap = draw(st.sampled_from([0.0, 0.4, 1.0])) if shape == "sequence" else 0.0
    return a, b, k_x, k_y, mixing, priors, gap


def kernel_of(a, b, k_x, k_y, mixing, priors, gap=0.0, log=False):
    return marginalized_kernel(
        a, b, kernel=Precomputed(k_x), label_kernel=k_y, mixing=mixing, prior=priors, gap=gap, log=log
    )


def check_against_enumeration(case):
    actual, true = kernel_of(*case), oracle.marginalized_kernel(*case)
    size = oracle.marginalized_kernel(*case[:2], np.abs(case[2]), *case[3:])
    assert actual.shape == true.shape
    np.testing.assert_array_less(np.abs(actual - true), 1e-9 * size + 1e-300)
    if (case[2] >= 0).all():
        logs = kernel_of(*case, log=True)
        np.testing.assert_allclose(np.exp(logs), true, rtol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_equals_enumeration(shape, data):
    check_against_enumeration(data.draw(cases(shape)))


@given(cases("sequence", chain=True))
def test_equals_enumeration_under_a_chain_prior(case):
    check_against_enumeration(case)


@settings(max_examples=15)
@given(cases("sequence", chain=True, labels=3, max_size=3))
def test_equals_enumeration_with_three_labels(case):
    check_against_enumeration(case)


def test_equals_enumeration_on_wider_trees_and_dags():
    rng = np.random.default_rng(0)
    k_x = random_gram(rng, 4)
    star = Tree(rng.integers(0, 4, 6).tolist(), [-1, 0, 0, 0, 0, 3])
    forest = Tree(rng.integers(0, 4, 7).tolist(), [2, 2, -1, 2, -1, 4, 4])
    full = Dag(rng.integers(0, 4, 6).tolist(), itertools.combinations(range(6), 2))
    fan = Dag(rng.integers(0, 4, 6).tolist(), [(i, j) for i in range(3) for j in range(3, 6)])
    for a, b in [(star, forest), (forest, forest), (full, fan), (full, full)]:
        priors = np.ones((len(a), 1)), np.ones((len(b), 1))
        check_against_enumeration((a, b, k_x, np.eye(1), 0.9, priors))


@given(cases("sequence"))
def test_three_shapes_agree_on_chains(case):
    a, b, *rest, _ = case
    as_trees = [Tree(x.observations, range(-1, len(x) - 1)) for x in (a, b)]
    as_dags = [Dag(x.observations, itertools.pairwise(range(len(x)))) for x in (a, b)]
    expected = kernel_of(a, b, *rest)
    for pair in (as_trees, as_dags):
        np.testing.assert_allclose(kernel_of(*pair, *rest), expected, rtol=1e-12, atol=1e-300)


@given(cases("sequence"))
def test_a_product_prior_is_a_chain(case):
    *most, priors, gap = case
    chains = tuple((rows[0], [np.tile(row, (2, 1)) for row in rows[1:]]) for rows in priors)
    np.testing.assert_allclose(kernel_of(*most, chains, gap), kernel_of(*case), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_swapping_the_arguments_swaps_the_axes(shape, data):
    a, b, k_x, k_y, mixing, priors, gap = data.draw(cases(shape, chain=shape == "sequence", max_size=6))
    there = kernel_of(a, b, k_x, k_y, mixing, priors, gap)
    back = kernel_of(b, a, k_x, k_y, mixing, priors[::-1], gap)
    np.testing.assert_allclose(back.transpose(1, 0, 3, 2), there, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("shape", "chain"), [*((shape, False) for shape in SHAPES), ("sequence", True)])
@settings(max_examples=15)
@given(data=st.data())
def test_gram_matrices_are_positive_semi_definite(shape, chain, data):
    structures = data.draw(st.lists(SHAPES[shape](IDS, 5), min_size=2, max_size=3))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    k_x, k_y = random_gram(rng, 4, signed=True), random_gram(rng, 2, signed=True)
    priors = [random_prior(rng, len(x), 2, chain) for x in structures]
    gap = 0.5 if shape == "sequence" and data.draw(st.booleans()) else 0.0
    pairs = list(zip(structures, priors, strict=True))
    gram = np.block(
        [
            [
                kernel_of(a, b, k_x, k_y, 1.2, (p, q), gap)
                .transpose(0, 2, 1, 3)
                .reshape(2 * len(a), 2 * len(b))
                for b, q in pairs
            ]
            for a, p in pairs
        ]
    )
    np.testing.assert_allclose(gram, gram.T, rtol=1e-9, atol=1e-9 * np.abs(gram).max())
    assert np.linalg.eigvalsh((gram + gram.T) / 2).min() >= -1e-9 * np.abs(gram).max()


def uniform(*sizes, labels=2):
    return tuple(np.full((size, labels), 1 / labels) for size in sizes)


def test_observations_of_every_kind():
    words = marginalized_kernel(["a", "B"], ["a"], kernel=Polynomial(2), prior=uniform(2, 1))
    assert words[:, 0, 0, 0].tolist() == [1.0, 0.25]  # P P (⟨a, b⟩ + 1)², as b has one node
    spelled = marginalized_kernel(
        ["a", "B"], ["C"], kernel=Linear(), prior=uniform(2, 1), features="spelling"
    )
    assert spelled[:, 0, 0, 0].tolist() == [0.0, 0.75]
    dicts = marginalized_kernel([{"f": 2.0}], [{"f": 3.0, "g": 1.0}], kernel=Linear(), prior=uniform(1, 1))
    assert dicts[0, 0].tolist() == [[1.5, 0.0], [0.0, 1.5]]
    vectors = marginalized_kernel([np.array([1.0, 2.0])], [[3.0, 4.0]], kernel=Linear(), prior=uniform(1, 1))
    assert vectors[0, 0, 0, 0] == 11 / 4
    equal = marginalized_kernel([("a", "N")], [("a", "N")], kernel=lambda a, b: a == b, prior=uniform(1, 1))
    assert equal[0, 0, 0, 0] == 1 / 4


@pytest.mark.parametrize("k_y", [Delta(), np.eye(2), Precomputed(np.eye(2)), [[1, 0], [0, 1]], Linear()])
def test_label_kernels_that_are_the_identity(k_y):
    settings = {"kernel": Delta(), "prior": uniform(2, 3), "mixing": 2.0}
    with_kernel = marginalized_kernel(["a", "b"], ["a", "b", "a"], label_kernel=k_y, **settings)
    np.testing.assert_array_equal(with_kernel, marginalized_kernel(["a", "b"], ["a", "b", "a"], **settings))


def test_a_constant_label_kernel_forgets_the_labels():
    K = marginalized_kernel(
        ["a", "b"], ["a", "b"], kernel=Delta(), label_kernel=Constant(1.0), prior=uniform(2, 2)
    )
    assert K.sum(axis=(2, 3)).tolist() == [[2.0, 0.0], [0.0, 2.0]]


BAD = {
    "mixing=0.0": {"mixing": 0.0},
    "mixing=-1": {"mixing": -1},
    "mixing=nan": {"mixing": float("nan")},
    "mixing=inf": {"mixing": float("inf")},
    "mixing='1'": {"mixing": "1"},
    "gap=-0.1": {"gap": -0.1},
    "gap=1.5": {"gap": 1.5},
    "gap=nan": {"gap": float("nan")},
    r"kernel=3: give a kernel": {"kernel": 3},
    r"that is a class; write Delta\(\)": {"kernel": Delta},
    "gives nan for structure 0, node 0": {"kernel": lambda a, b: float("nan")},
    "the other way round": {"kernel": lambda a, b: float(a < b)},
    "matrix of 3 labels, but there are 2": {"label_kernel": np.eye(3)},
    "matrix of 1 labels, but there are 2": {"label_kernel": Precomputed([[1.0]])},
    "gives nan for label 0": {"label_kernel": lambda a, b: float("nan")},
    "label_kernel='x'": {"label_kernel": "x"},
    "give a pair": {"prior": np.full((2, 2), 0.5)[:1]},
    "prior=None": {"prior": None},
    r"structure 1: its prior has the shape \(3, 2\); give \(2, labels\)": {"prior": uniform(2, 3)},
    r"structure 0: its prior has the shape \(2,\)": {"prior": ([0.5, 0.5], [[1.0], [1.0]])},
    r"structure 0: its prior has the shape \(2, 0\)": {"prior": (np.empty((2, 0)), np.empty((2, 0)))},
    "structure 0: its prior is 'abc'": {"prior": ("abc", uniform(2)[0])},
    "structure 0: its prior sums to 0.9 at row 1": {"prior": ([[0.5, 0.5], [0.5, 0.4]], uniform(2)[0])},
    "has -0.5 for label 0 at row 1": {"prior": ([[0.5, 0.5], [-0.5, 1.5]], uniform(2)[0])},
    "has nan for label 1 at row 0": {"prior": ([[0.5, np.nan], [0.5, 0.5]], uniform(2)[0])},
    "structure 0 has 2 labels, that of structure 1 has 3": {
        "prior": (uniform(2)[0], uniform(2, labels=3)[0])
    },
    "a chain is": {"prior": (([0.5, 0.5],), uniform(2)[0])},
    "is a tuple but not a chain": {"prior": (([0.5, 0.5], np.array(3.0)), uniform(2)[0])},
    "is a tuple but": {"prior": ((), uniform(2)[0])},
    "has 2 transition matrices; 2 nodes need 1": {"prior": (([0.5, 0.5], [np.eye(2)] * 2), uniform(2)[0])},
    r"start has the shape \(1, 2, 2\)": {"prior": ((np.eye(2), [np.eye(2)]), uniform(2)[0])},
    r"transition 0 has the shape \(3, 3\); give \(2, 2\)": {"prior": (([1, 0], [np.eye(3)]), uniform(2)[0])},
    "transition 0 sums to 2 at row 0": {"prior": (([1, 0], [2 * np.eye(2)]), uniform(2)[0])},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named(message):
    settings = {"kernel": Delta(), "prior": uniform(2, 2)} | BAD[message]
    with pytest.raises(DataError, match=message):
        marginalized_kernel(["a", "b"], ["b", "c"], **settings)


def test_shapes_must_agree():
    tree = Tree(["a", "b"], [-1, 0])
    with pytest.raises(DataError, match="structure 1 is a tree but structure 0 is a sequence"):
        marginalized_kernel(["a", "b"], tree, kernel=Delta(), prior=uniform(2, 2))
    with pytest.raises(DataError, match="only sequences have gaps, but structure 0 is a tree"):
        marginalized_kernel(tree, tree, kernel=Delta(), prior=uniform(2, 2), gap=0.5)
    chain = ([1.0], [[[1.0]]])
    with pytest.raises(DataError, match="is a chain, but the structure is a tree"):
        marginalized_kernel(tree, tree, kernel=Delta(), prior=(chain, chain))


def test_logarithms_of_negative_values_are_refused():
    signed = Precomputed([[1.0, -0.5], [-0.5, 1.0]])
    assert marginalized_kernel([0], [1], kernel=signed, prior=uniform(1, 1))[0, 0, 0, 0] == -0.125
    with pytest.raises(DataError, match="some values of the marginalized kernel are negative"):
        marginalized_kernel([0], [1], kernel=signed, prior=uniform(1, 1), log=True)


def test_weights_past_all_doubles_are_named():
    with pytest.raises(DataError, match=r"mixing=1e\+150 with the kernel Constant.*take a smaller c"):
        marginalized_kernel(["a"], ["a"], kernel=Constant(1e12), prior=uniform(1, 1), mixing=1e150)


def test_probabilities_too_small_for_their_product_have_logarithms():
    prior = np.array([[1e-200, 1.0]])
    log_values = marginalized_kernel(["a"], ["a"], kernel=Delta(), prior=(prior, prior), log=True)
    assert log_values[0, 0, 0, 0] == pytest.approx(2 * np.log(1e-200))


def test_integers_past_the_precomputed_matrix_are_named():
    with pytest.raises(DataError, match="the observation 5 is not a row of its matrix of 2"):
        marginalized_kernel([0, 5], Sequence([1]), kernel=Precomputed(np.eye(2)), prior=uniform(2, 1))
