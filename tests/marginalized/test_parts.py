"""Parts of trees and DAGs: against enumeration, and how they relate to one another."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marginalized_oracle as oracle
from fuda import Dag, DataError, Sequence, Tree
from fuda.data.corpus import Corpus
from fuda.kernels import Constant, Precomputed
from fuda.marginalized import marginalized_kernel
from fuda.marginalized.parts import PARTS, parts_to_choose_from
from fuda.marginalized.recursions import shapes
from structure_cases import dags, trees

IDS = st.integers(0, 2)
SHAPES = {"tree": trees, "dag": dags}
SHAPES_AND_PARTS = [("tree", parts) for parts in PARTS] + [("dag", "sided-paths"), ("dag", "paths")]
LABELS = 2


def random_gram(rng, size):
    root = rng.normal(size=(size, size + 1)) * (rng.random((size, size + 1)) < 0.7)
    return root @ root.T


def random_prior(rng, size):
    return rng.dirichlet(np.ones(LABELS), size)


def kernel_of(a, b, k_x, k_y, mixing, priors, parts):
    settings = {"kernel": Precomputed(k_x), "label_kernel": k_y, "mixing": mixing, "prior": priors}
    return marginalized_kernel(a, b, parts=parts, **settings)


def check_against_enumeration(a, b, k_x, k_y, mixing, priors, parts):
    actual = kernel_of(a, b, k_x, k_y, mixing, priors, parts)
    true = oracle.marginalized_kernel(a, b, k_x, k_y, mixing, priors, parts=parts)
    size = oracle.marginalized_kernel(a, b, np.abs(k_x), np.abs(k_y), mixing, priors, parts=parts)
    np.testing.assert_array_less(np.abs(actual - true), 1e-9 * size + 1e-300)


@pytest.mark.parametrize(("shape", "parts"), SHAPES_AND_PARTS)
@settings(max_examples=25)
@given(data=st.data())
def test_equals_enumeration(shape, parts, data):
    a, b = data.draw(SHAPES[shape](IDS, 4)), data.draw(SHAPES[shape](IDS, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    priors = random_prior(rng, len(a)), random_prior(rng, len(b))
    check_against_enumeration(a, b, random_gram(rng, 3), random_gram(rng, LABELS), 1.3, priors, parts)


@pytest.mark.parametrize("parts", PARTS)
def test_equals_enumeration_on_wider_trees(parts):
    rng = np.random.default_rng(0)
    star = Tree(rng.integers(0, 3, 6).tolist(), [2, 2, -1, 2, 2, 3])
    forest = Tree(rng.integers(0, 3, 8).tolist(), [2, 2, -1, 2, -1, 4, 7, 4])
    for a, b in [(star, forest), (star, star), (forest, forest)]:
        priors = np.ones((len(a), 1)), np.ones((len(b), 1))
        check_against_enumeration(a, b, random_gram(rng, 3), np.eye(1), 0.9, priors, parts)


@pytest.mark.parametrize("parts", PARTS)
@settings(max_examples=15)
@given(data=st.data())
def test_on_a_chain_all_parts_are_runs(parts, data):
    words = [data.draw(st.lists(IDS, min_size=1, max_size=6)) for _ in range(2)]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rest = random_gram(rng, 3), random_gram(rng, LABELS), 1.2, tuple(random_prior(rng, len(x)) for x in words)
    expected = kernel_of(*map(Sequence, words), *rest, None)
    chains = [Tree(x, range(-1, len(x) - 1)) for x in words]
    np.testing.assert_allclose(kernel_of(*chains, *rest, parts), expected, rtol=1e-12, atol=1e-300)
    if parts.endswith("paths"):
        graphs = [Dag(x, itertools.pairwise(range(len(x)))) for x in words]
        np.testing.assert_allclose(kernel_of(*graphs, *rest, parts), expected, rtol=1e-12, atol=1e-300)


@settings(max_examples=20)
@given(trees(IDS), trees(IDS), st.sampled_from(["paths", "sided-paths"]))
def test_paths_of_a_tree_are_those_of_the_same_edges_as_a_dag(a, b, parts):
    rng = np.random.default_rng(0)
    rest = random_gram(rng, 3), np.eye(LABELS), 1.2, (random_prior(rng, len(a)), random_prior(rng, len(b)))
    graphs = [Dag(x.observations, x.edges.tolist()) for x in (a, b)]
    np.testing.assert_allclose(kernel_of(a, b, *rest, parts), kernel_of(*graphs, *rest, parts), rtol=1e-12)


@pytest.mark.parametrize(("shape", "parts"), SHAPES_AND_PARTS)
@settings(max_examples=10)
@given(data=st.data())
def test_gram_matrices_are_positive_semi_definite(shape, parts, data):
    structures = data.draw(st.lists(SHAPES[shape](IDS, 5), min_size=2, max_size=3))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    k_x, k_y = random_gram(rng, 3), random_gram(rng, LABELS)
    sides = [(x, random_prior(rng, len(x))) for x in structures]
    rows = [[kernel_of(a, b, k_x, k_y, 1.2, (p, q), parts) for b, q in sides] for a, p in sides]
    gram = np.block([[K.transpose(0, 2, 1, 3).reshape(K.shape[0] * LABELS, -1) for K in row] for row in rows])
    largest = np.abs(gram).max()
    np.testing.assert_allclose(gram, gram.T, rtol=1e-9, atol=1e-9 * largest)
    assert np.linalg.eigvalsh((gram + gram.T) / 2).min() >= -1e-9 * largest


@settings(max_examples=20)
@given(trees(IDS), st.sampled_from(["lines", "subtrees", "paths"]))
def test_parts_without_sides_see_the_order_of_siblings_only(tree, parts):
    """Numbering parents first, and siblings as they were, changes nothing but the numbers."""
    order = []
    pending = [node for node, head in enumerate(tree.heads.tolist()) if head < 0][::-1]
    while pending:
        order.append(pending.pop())
        pending += [n for n, head in enumerate(tree.heads.tolist()) if head == order[-1]][::-1]
    place = np.argsort(order)
    heads = [int(place[h]) if h >= 0 else -1 for h in tree.heads[order].tolist()]
    other = Tree([tree.observations[node] for node in order], heads)
    uniform = np.full((len(tree), LABELS), 1 / LABELS)
    rest = random_gram(np.random.default_rng(0), 3), np.eye(LABELS), 1.2, (uniform, uniform)
    expected = kernel_of(tree, tree, *rest, parts)[np.ix_(order, order)]
    np.testing.assert_allclose(kernel_of(other, other, *rest, parts), expected, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(kernel_of(other, other, *rest, f"sided-{parts}"), expected, atol=1e-14)


def test_lines_reach_siblings_and_do_not_explode():
    star = Tree(["a"] * 31, [-1, *[0] * 30])
    ones = np.ones((31, 1))
    kernels = {
        parts: marginalized_kernel(star, star, kernel=Constant(), prior=(ones, ones), parts=parts)[1, 1, 0, 0]
        for parts in ("paths", "lines", "subtrees")
    }
    assert kernels["paths"] == 2.0  # alone, and with the root
    assert kernels["lines"] == 2.0 + 29**2  # and with the root and any sibling after it
    assert kernels["subtrees"] > 1e15


def test_the_bound_holds_for_lines():
    for heads in ([-1, *[0] * 29], [-1, *((t - 1) // 2 for t in range(1, 31))], range(-1, 29)):
        tree = Tree(["a"] * len(heads), list(heads))
        ones = np.ones((len(tree), 1))
        for product in (1e-3, 1.0, 50.0):
            actual = marginalized_kernel(
                tree, tree, kernel=Constant(product), prior=(ones, ones), parts="lines", log=True
            )
            bound = shapes.log_bound(shapes.LINES, len(tree), len(tree), 0.0, product, product)
            assert actual.max() <= bound + 1e-9
    assert shapes.plain_is_safe(shapes.LINES + shapes.SIDED, 5000, 5000, 0.0, 9.0, 1.0)


def test_only_parts_that_differ_are_chosen_from():
    def choices(*structures):
        return parts_to_choose_from(Corpus(list(structures)))

    assert choices(Sequence(list("ab"))) == ["runs"]
    assert choices(Tree(list("abc"), [-1, 0, 1])) == ["subtrees"]
    assert choices(Dag(list("abc"), [(2, 0), (0, 1)])) == ["paths"]
    assert choices(Tree(list("abc"), [-1, 0, 0])) == ["lines", "paths", "subtrees"]
    assert choices(Tree(list("abc"), [1, -1, 1])) == list(PARTS)
    assert choices(Dag(list("abc"), [(0, 1), (0, 2)])) == ["paths"]
    assert choices(Dag(list("abc"), [(1, 0), (1, 2)])) == ["sided-paths", "paths"]


@pytest.mark.parametrize(
    ("structure", "parts", "words"),
    [
        (Tree(list("ab"), [-1, 0]), "branches", "parts='branches': choose sided-lines"),
        (Tree(list("ab"), [-1, 0]), 3, "parts=3: choose"),
        (Sequence(list("ab")), "lines", "sequences have runs only"),
        (Dag(list("ab"), [(0, 1)]), "subtrees", "structure 0 is a dag, which has sided-paths or paths"),
        (Dag(list("ab"), [(0, 1)]), "lines", "structure 0 is a dag"),
    ],
)
def test_refusals(structure, parts, words):
    uniform = np.full((2, LABELS), 1 / LABELS)
    with pytest.raises(DataError, match=words):
        marginalized_kernel(structure, structure, kernel=Constant(), prior=(uniform, uniform), parts=parts)
