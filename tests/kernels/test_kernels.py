"""Kernels: their values, their algebra, positive semi-definiteness, parameters, JSON, mistakes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from fuda import DataError, Sequence
from fuda.data.window_encoding import WindowEncoder
from fuda.kernels import (
    RBF,
    Constant,
    Delta,
    Function,
    Linear,
    Normalized,
    Polynomial,
    Precomputed,
    Product,
    Sees,
    Substitution,
    Sum,
    as_kernel,
    check_kernel,
    from_json,
    parse_kernel,
)
from fuda.kernels.points import Numbering, points

WORDS = ["Ana", "lives", "in", "Lima", "in", "2020", "Ana-Lima"]
KERNELS = [
    Linear(),
    Polynomial(2),
    Polynomial(3, offset=0.5, scale=0.25),
    Polynomial(1, offset=0.0),
    RBF(0.3),
    Delta(),
    Constant(2.0),
    Polynomial(2).normalized(),
    Linear().normalized(),
    Delta() + 0.5 * Polynomial(2).normalized(),
    Linear() * Delta() + 1,
    (Linear() + Constant(1.0)).normalized() * RBF(0.1),
]


def points_of(words, features="spelling", window=0):
    return points(WindowEncoder(features, window).fit([Sequence(words)]))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gram_is_symmetric_positive_semidefinite_and_agrees_with_its_diagonal(kernel):
    p = points_of(WORDS)
    gram = kernel.gram(p, p)
    assert gram.shape == (6, 6)
    assert gram.dtype == np.float64
    np.testing.assert_allclose(gram, gram.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(gram), kernel.diagonal(p), atol=1e-12)
    assert np.linalg.eigvalsh(gram).min() > -1e-9
    some = np.array([4, 1])
    np.testing.assert_allclose(kernel.gram(p[some], p[1:4]), gram[some, 1:4], atol=1e-12)
    check_kernel(kernel, p, str)


SUBSTITUTIONS = [
    Substitution(),
    Substitution("PAM250"),
    Substitution("PAM70", beta=0.01),
    Substitution("BLOSUM45", beta=0.2),
    (Substitution() + 1) * (Substitution() + 1),
]


@pytest.mark.parametrize("kernel", SUBSTITUTIONS, ids=str)
def test_substitutions_are_positive_semidefinite_also_over_windows(kernel):
    letters = list("ARNDCQEGHILKMFPSTWYVBZXJUO*-.arn")
    for window in (0, 2):
        p = points_of(letters, features="word", window=window)
        gram = kernel.gram(p, p)
        np.testing.assert_allclose(np.diag(gram), kernel.diagonal(p), atol=1e-12)
        assert np.linalg.eigvalsh(gram).min() > -1e-9
        check_kernel(kernel, p, str)
    assert from_json(kernel.to_json()) == kernel == parse_kernel(repr(kernel)) == clone(kernel)


def test_substitutions_compare_residues_as_their_features_do():
    letters = list("IVDEKRWX")
    p = points_of(letters, features="blosum62")
    np.testing.assert_allclose(Substitution().gram(p, p), Linear().gram(p, p), atol=1e-12)
    gram = Substitution().gram(p, p)
    assert gram[0, 1] > 0 > gram[0, 2]  # I is like V, not like D
    assert parse_kernel("substitution(PAM250, beta=0.1)") == Substitution("PAM250", 0.1)


def test_substitutions_refuse_what_is_no_residue_or_matrix():
    with pytest.raises(DataError, match="is not the code of a residue"):
        Substitution().gram(*[points_of(["Ana", "in"])] * 2)
    with pytest.raises(DataError, match="BLOSUM62, BLOSUM80"):
        as_kernel(Substitution("BLOSUM61"))
    with pytest.raises(DataError, match="beta"):
        as_kernel(Substitution(beta=-1))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels_survive_json_clone_and_pickle(kernel):
    import pickle

    for other in (from_json(kernel.to_json()), clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert other == kernel
        assert repr(other) == repr(kernel)
    assert kernel != Polynomial(7)
    assert as_kernel(kernel) is kernel


@given(
    st.lists(st.lists(st.floats(-3, 3), min_size=3, max_size=3), min_size=1, max_size=5),
    st.integers(1, 4),
    st.floats(0, 2),
    st.floats(0.1, 2),
)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_values_are_those_of_the_formulas(vectors, degree, offset, size):
    vectors = [np.array(v) for v in vectors]
    p = points_of(vectors, "word")
    rows = p.observations
    for i, a in enumerate(rows):
        for j, b in enumerate(rows):
            dot, distance = float(a @ b), float((a - b) @ (a - b))
            pairs = [
                (Linear(), dot),
                (Polynomial(degree, offset, size), (size * dot + offset) ** degree),
                (RBF(size), math.exp(-size * distance)),
                (Delta(), float(i == j)),
            ]
            for kernel, value in pairs:
                assert kernel.gram(p, p)[i, j] == pytest.approx(value, rel=1e-9, abs=1e-9)


def test_over_a_window_inner_products_add():
    encoded = WindowEncoder("spelling", 1).fit([Sequence(["Ana", "in", "Lima"])])
    p = points(encoded)
    kernel = Polynomial(2).normalized() + Delta()
    rows = np.column_stack([channel.rows for channel in encoded.channels])
    types = kernel.inners(p, p)
    inners = [sum(inner[np.ix_(column, column)] for column in rows.T) for inner in types]
    norms = [sum(norm[column] for column in rows.T) for norm in kernel.norms(p)]
    actual = kernel.evaluate(inners, [norm[:, None] for norm in norms], norms)
    table = encoded.tables[0].matrix.toarray()
    stacked = np.hstack([table[column] for column in rows.T])
    dots = (stacked @ stacked.T + 1) ** 2
    expected = dots / np.sqrt(np.outer(np.diag(dots), np.diag(dots)))
    agree = (rows[:, None, :] == rows[None, :, :]).sum(axis=2)
    np.testing.assert_allclose(actual, expected + agree, atol=1e-12)


def test_words_not_seen_in_training_keep_their_whole_norm():
    encoder = WindowEncoder("spelling", 0)
    known = encoder.fit([Sequence(["Ana", "Lima"])])
    new = encoder.encode([Sequence(["Ana", "Bo"])])
    numbering = Numbering(known.corpus)
    a, b = points(known, numbering), points(new, numbering)
    all_points = points_of(["Ana", "Lima", "Bo"])
    for kernel in (Polynomial(2).normalized(), RBF(0.5), Delta()):
        np.testing.assert_allclose(
            kernel.gram(a, b), kernel.gram(all_points[[0, 1]], all_points[[0, 2]]), atol=1e-12
        )
    assert b.ids.tolist() == [0, 3] or b.ids[1] >= 2


def test_new_observations_have_numbers_of_their_own_after_corpora_were_joined():
    encoder = WindowEncoder("spelling", 0)
    first, second = encoder.fit([Sequence(["Ana", "Lima"])]), encoder.encode([Sequence(["Lima", "Ana"])])
    both = first.corpus.followed_by(second.corpus)
    numbering = Numbering(both)
    assert len(set(numbering.ids(both))) == 2
    new = numbering.ids(encoder.encode([Sequence(["Bo", "Ana", "Eva"])]).corpus)
    assert len(set(new) | set(numbering.ids(both))) == 4


def test_precomputed_takes_integer_observations():
    gram = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
    p = points_of([2, 0, 2, 1], "word")
    assert Precomputed(gram).gram(p, p).tolist() == gram[np.ix_([2, 0, 1], [2, 0, 1])].tolist()
    assert from_json(Precomputed(gram).to_json()) == Precomputed(gram.tolist())
    assert eval(repr(Precomputed(gram))) == Precomputed(gram)
    assert repr(Precomputed(np.eye(6))) == "Precomputed(gram_matrix=<6 × 6 matrix>)"
    with pytest.raises(DataError, match="observation 7 is not a row of its matrix of 3; give observations"):
        Precomputed(gram).gram(points_of([0, 7], "word"), p)
    with pytest.raises(DataError, match="'Ana' is not a row of its matrix"):
        Precomputed(gram).gram(points_of(["Ana"]), p)


def test_functions_are_kernels_too():
    kernel = as_kernel(lambda a, b: float(a[0] == b[0]))
    assert isinstance(kernel, Function)
    p = points_of(["Ana", "Alf", "Bo"])
    assert kernel.gram(p, p).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    with pytest.raises(DataError, match="cannot be stored in a model file"):
        (kernel + Delta()).to_json()
    with pytest.raises(
        DataError, match=r"the kernel function gave 'x' \(str\) for 'Ana' and 'Ana'; give a number"
    ):
        Function(lambda a, b: "x").gram(p, p)


def same_initial(a, b):
    return float(a[0] == b[0])


def test_functions_are_operands_of_sums_products_and_normalization():
    p = points_of(["Ana", "Alf", "Bo"])
    by_hand = Function(same_initial).gram(p, p)
    np.testing.assert_array_equal((Linear() + same_initial).gram(p, p), Linear().gram(p, p) + by_hand)
    np.testing.assert_array_equal((same_initial + Linear()).gram(p, p), Linear().gram(p, p) + by_hand)
    np.testing.assert_array_equal((same_initial * Delta()).gram(p, p), np.eye(3))
    np.testing.assert_array_equal(Normalized(same_initial).gram(p, p), by_hand)
    np.testing.assert_array_equal(Sum(same_initial, Delta()).gram(p, p), by_hand + np.eye(3))
    kernel = as_kernel(Normalized(Linear() + same_initial))
    assert clone(kernel) == kernel
    assert repr(kernel) == "(Linear() + Function(function=same_initial)).normalized()"
    with pytest.raises(TypeError):
        Linear() + "text"


def test_parameters_are_reached_through_the_algebra():
    kernel = Polynomial(2).normalized() * Delta() + 3
    assert isinstance(kernel, Sum)
    assert isinstance(kernel.left, Product)
    assert isinstance(kernel.left.left, Normalized)
    kernel.set_params(left__left__kernel__degree=5, right__value=1.0)
    assert repr(kernel) == "Polynomial(degree=5).normalized() * Delta() + Constant(value=1.0)"
    assert repr((Delta() + Linear()) * Delta()) == "(Delta() + Linear()) * Delta()"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("rbf", "kernel='rbf': give a kernel of fuda.kernels.*; parse_kernel makes one of text"),
        (None, "kernel=None: give a kernel"),
        (Polynomial, "that is a class; write Polynomial()"),
        (Polynomial(0), "degree=0"),
        (Polynomial(2.5), "whole number"),
        (Polynomial(2, offset=-1.0), "offset=-1.0"),
        (Polynomial(2, scale=0.0), "scale=0.0.*above 0"),
        (RBF(math.nan), "gamma=nan"),
        (RBF(-1), "gamma=-1"),
        (Constant(-2), "value=-2"),
        (Constant("a"), "value='a'"),
        (Delta() + RBF(0), "gamma=0"),
        (Polynomial(0).normalized(), "degree=0"),
        (Precomputed([[1.0, 2.0]]), "give a square matrix"),
        (Precomputed("ab"), "give a square matrix"),
        (Precomputed([[10**400]]), "give a square matrix"),
        (RBF(10**400), "gamma=1000.*above 0"),
        (Sum(3, Delta()), r"Sum\(left=3\): give a kernel"),
        (Normalized("x"), r"Normalized\(kernel='x'\): give a kernel"),
        (sum([Delta()] * 200, Linear()), "nested more than 100 deep"),
        (Precomputed([[1.0, math.nan], [math.nan, 1.0]]), "gives nan for id 0 and id 1"),
        (Precomputed([[1.0, 0.5], [0.2, 1.0]]), "gives 0.5 for id 0 and id 1, but 0.2 the other way"),
    ],
)
def test_what_is_not_a_kernel_is_refused(value, message):
    with pytest.raises(DataError, match=message):
        as_kernel(value)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, b: math.nan, "gives nan for Ana and Ana"),
        (lambda a, b: math.inf if a == b == "Bo" else 0.0, "gives inf for Bo and Bo"),
        (lambda a, b: float(a < b), "for Ana and Bo, but 0 the other way round"),
        (lambda a, b: -1.0, "gives -1.0 for the observation of Ana with itself"),
    ],
)
def test_a_kernel_that_is_not_one_on_the_data_is_refused(function, message):
    p = points_of(["Ana", "Bo"])
    with pytest.raises(DataError, match=message):
        check_kernel(Function(function), p, lambda i: p.observations[i])


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"type": "Polynomial"},
        {"type": "Polynomial", "degree": 2, "offset": 1.0, "scale": 1.0, "more": 1},
        {"type": ["Linear"]},
        {"type": "Normalized", "kernel": 3},
        {"type": "Sum", "left": {"type": "Delta"}, "right": "Delta"},
        {"type": "RBF", "gamma": "wide"},
        {"type": "Function", "function": "os.system"},
    ],
)
def test_what_describes_no_kernel_is_refused(value):
    with pytest.raises(DataError):
        from_json(value)


def nested(depth):
    value = {"type": "Linear"}
    for _ in range(depth):
        value = {"type": "Sum", "left": value, "right": {"type": "Linear"}}
    return value


def test_descriptions_nested_too_deep_are_refused():
    assert from_json(nested(99)).inner_count == 100
    for depth in (100, 430, 900):
        with pytest.raises(DataError, match="deep"):
            from_json(nested(depth))


def test_whatever_is_accepted_can_be_stored_and_read_back():
    kernel = as_kernel(sum([Delta()] * 99, Linear()))
    assert from_json(kernel.to_json()) == kernel


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_normalizing_a_normalized_kernel_changes_nothing(kernel):
    p = points_of(WORDS)
    once = kernel.normalized()
    assert (once.normalized().gram(p, p) == once.gram(p, p)).all()
    np.testing.assert_allclose(once.evaluate_self(once.norms(p)), once.diagonal(p), atol=1e-12)


def test_nested_normalizations_cost_no_more_than_their_number():
    class Counting(RBF):
        calls = 0

        def evaluate(self, inners, norms_a, norms_b):
            Counting.calls += 1
            return super().evaluate(inners, norms_a, norms_b)

    p = points_of(WORDS)
    deep, sums = Counting(0.3), Counting(0.3)
    for _ in range(20):
        deep, sums = deep.normalized(), (sums + 0).normalized()
    expected = RBF(0.3).normalized().gram(p, p)
    for kernel in (deep, sums):
        Counting.calls = 0
        np.testing.assert_allclose(kernel.gram(p, p), expected, atol=1e-12)
        assert Counting.calls <= 1 + 2 * 20  # the values once, the norms twice per level; not 3^20


kernels = st.recursive(
    st.sampled_from([Linear(), Polynomial(3, scale=0.5), RBF(0.25), Delta(), Constant(2.0)]),
    lambda inner: st.one_of(
        st.builds(Sum, inner, inner), st.builds(Product, inner, inner), st.builds(Normalized, inner)
    ),
    max_leaves=6,
)


@given(kernels)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_repr_is_code_that_makes_the_kernel(kernel):
    assert eval(repr(kernel)) == kernel
    assert parse_kernel(repr(kernel)) == kernel
    assert parse_kernel(repr(kernel).lower()) == kernel
    assert as_kernel(from_json(kernel.to_json())) == kernel


def test_kernels_are_parsed_from_short_texts():
    assert parse_kernel("rbf(0.5) * 2 + linear") == RBF(0.5) * 2.0 + Linear()
    assert parse_kernel("polynomial(3, scale=0.5).normalized()") == Polynomial(3, scale=0.5).normalized()
    assert parse_kernel("precomputed([[1, 0], [0, 1]])") == Precomputed([[1, 0], [0, 1]])
    assert parse_kernel("((delta))") == Delta()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("polynom(2)", "there is no kernel 'polynom'; there are linear, polynomial, rbf"),
        ("polynomial(degree=2, degree=3)", "each given once"),
        ("polynomial(2, degree=3)", "has the parameters degree, offset, scale, each given once"),
        ("polynomial(1, 2, 3, 4)", "each given once"),
        ("polynomial(**{})", "each given once"),
        ("linear - delta", "is not a kernel"),
        ("linear.norm()", "is not a kernel"),
        ("linear.normalized(2)", "is not a kernel"),
        ("__import__('os').system('true')", "is not a kernel"),
        ("polynomial(print(1))", "is not a number or a text"),
        ("rbf(-1)", "gamma=-1"),
        ("precomputed", "needs its parameters gram_matrix"),
        ("function(max)", "there is no kernel 'function'"),
        ("linear +", "is not an expression"),
        ("", "is not an expression"),
        ("(" * 5000 + "linear" + ")" * 5000, "is not an expression"),
        (" + ".join(["linear"] * 5000), "deep|is not an expression"),
        ("linear" + ".normalized()" * 3000, "nested|is not an expression"),
    ],
)
def test_what_is_not_the_text_of_a_kernel_is_refused(text, message):
    with pytest.raises(DataError, match=message):
        parse_kernel(text)


@given(kernels)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_capabilities_are_those_of_the_values(kernel):
    p = points_of(WORDS)
    assert len(kernel.norms(p)) == len(kernel.inners(p, p)) == kernel.inner_count
    assert (kernel.sees == Sees.FEATURES) == ("Delta" not in repr(kernel))
    if kernel.polynomial is not None:
        *parameters, normalized, factor = kernel.polynomial
        same = Polynomial(*parameters).normalized() if normalized else Polynomial(*parameters)
        np.testing.assert_allclose(factor * same.gram(p, p), kernel.gram(p, p), rtol=1e-12)


def test_what_kernels_see_and_which_are_polynomials():
    kernels = (Linear(), RBF(), Constant(), Delta(), Precomputed(np.eye(2)), Function(max), RBF() * Delta())
    assert [kernel.sees.name for kernel in kernels] == (
        ["FEATURES"] * 3 + ["EQUALITY", "OBSERVATIONS", "OBSERVATIONS", "EQUALITY"]
    )
    assert Linear().normalized().normalized().polynomial == (1, 0.0, 1.0, True, 1.0)
    assert Polynomial(3).polynomial == (3, 1.0, 1.0, False, 1.0)
    assert (2 * (Polynomial(1).normalized() * 3)).polynomial == (1, 1.0, 1.0, True, 6.0)
    assert (2 * Linear()).normalized().polynomial == (1, 0.0, 1.0, True, 1.0)
    assert [k.polynomial for k in (*kernels[1:], Linear() + Delta())] == [None] * 7
