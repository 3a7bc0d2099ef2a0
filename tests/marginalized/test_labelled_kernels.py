"""Kernels between labelled structures, against a sum over all pairs of features one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuda import Dag, DataError, Sequence, Tree
from fuda.data.structures import as_structures
from fuda.data.window_encoding import WindowEncoder
from fuda.kernels import Constant, Delta, Linear, Polynomial, Precomputed
from fuda.kernels.points import Numbering
from fuda.marginalized import labelled
from fuda.marginalized.labelled import Similarity, labelled_kernel
from structure_cases import sequences, trees

SETTINGS = settings(max_examples=40)
WORDS = st.sampled_from(["a", "b", "Lima"])
LABELS = st.sampled_from("NV")


def heads_of(structure) -> list[int]:
    return structure.heads.tolist() if isinstance(structure, Tree) else list(range(-1, len(structure) - 1))


def features_of(structure) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All connected subtrees (on a chain: runs): their shape, and their nodes.

    Nodes are listed from the root down, siblings in order.
    """
    heads = heads_of(structure)
    features = []
    for size in range(1, len(heads) + 1):
        for nodes in itertools.combinations(range(len(heads)), size):
            roots = [t for t in nodes if heads[t] not in nodes]
            if len(roots) == 1:
                walk = list(preorder(roots[0], 0, nodes, heads))
                features.append((tuple(depth for depth, _ in walk), tuple(t for _, t in walk)))
    return features


def preorder(node, depth, nodes, heads):
    yield depth, node
    for child in nodes:
        if heads[child] == node:
            yield from preorder(child, depth + 1, nodes, heads)


def truth(a, b, labels_a, labels_b, k_x, k_y, mixing) -> float:
    total = 0.0
    words_a, words_b = list(a), list(b)
    for (shape, nodes), (other_shape, others) in itertools.product(features_of(a), features_of(b)):
        if shape == other_shape:
            total += math.prod(
                mixing**2 * k_y(labels_a[i], labels_b[j]) * (k_x(words_a[i], words_b[j]) + 1)
                for i, j in zip(nodes, others, strict=True)
            )
    return total


def equal(a, b) -> float:
    return float(a == b)


def letters(a, b) -> float:
    """A kernel of one's own: how many letters two words share."""
    return float(len(set(a) & set(b)))


@st.composite
def labelled_pairs(draw):
    shape = draw(st.sampled_from([sequences, trees]))
    pair = [draw(shape(WORDS, max_size=5)) for _ in range(2)]
    return *pair, *(draw(st.lists(LABELS, min_size=len(x), max_size=len(x))) for x in pair)


@SETTINGS
@given(labelled_pairs(), st.sampled_from([0.5, 1.0, 1.7]))
def test_sum_over_all_pairs_of_features(case, mixing):
    expected = truth(*case, equal, equal, mixing)
    assert labelled_kernel(*case, kernel=Delta(), mixing=mixing) == pytest.approx(expected)
    expected = truth(*case, letters, lambda y, z: 1.0 if y == z else 0.25, mixing)
    alike = Delta() * 0.75 + 0.25
    actual = labelled_kernel(*case, kernel=letters, label_kernel=alike, mixing=mixing)
    assert actual == pytest.approx(expected)


@SETTINGS
@given(labelled_pairs())
def test_normalized(case):
    a, b, labels_a, labels_b = case

    def value(x, y, *labels, **options):
        return labelled_kernel(x, y, *labels, kernel=Polynomial(2), mixing=0.7, **options)

    product = value(a, a, labels_a, labels_a) * value(b, b, labels_b, labels_b)
    expected = value(a, b, labels_a, labels_b) / math.sqrt(product)
    assert value(a, b, labels_a, labels_b, normalized=True) == pytest.approx(expected)
    assert value(a, a, labels_a, labels_a, normalized=True) == pytest.approx(1.0)


@SETTINGS
@given(
    st.lists(st.tuples(WORDS, LABELS), min_size=1, max_size=6), st.lists(st.tuples(WORDS, LABELS), min_size=1)
)
def test_a_chain_is_a_tree(one, other):
    (a, labels_a), (b, labels_b) = (zip(*nodes, strict=True) for nodes in (one, other))
    chain = labelled_kernel(a, b, labels_a, labels_b, kernel=Delta(), mixing=0.8)
    as_trees = [Tree(x, range(-1, len(x) - 1)) for x in (a, b)]
    assert labelled_kernel(*as_trees, labels_a, labels_b, kernel=Delta(), mixing=0.8) == pytest.approx(chain)


@pytest.mark.parametrize("shape", [Sequence, Tree])
@pytest.mark.parametrize("kernel", [Delta(), Linear(), Polynomial(2).normalized()])
@pytest.mark.parametrize("normalized", [False, True])
def test_positive_semidefinite(shape, kernel, normalized):
    rng = np.random.default_rng(0)
    items = []
    for _ in range(12):
        words = rng.choice(["a", "b", "c"], rng.integers(1, 7)).tolist()
        heads = [-1, *(int(rng.integers(0, t)) for t in range(1, len(words)))]
        items.append(
            (Tree(words, heads) if shape is Tree else Sequence(words), rng.choice(["N", "V"], len(words)))
        )
    gram = np.array(
        [
            [labelled_kernel(a, b, y, z, kernel=kernel, normalized=normalized) for b, z in items]
            for a, y in items
        ]
    )
    np.testing.assert_allclose(gram, gram.T)
    assert np.linalg.eigvalsh(gram).min() > -1e-9 * np.abs(gram).max()


@pytest.mark.parametrize("values", [1, 20, 1 << 21])
def test_rows_of_all_structures_are_those_of_each(values, monkeypatch):
    """Kernel values for many structures at a time, for a few and for one."""
    monkeypatch.setattr(labelled, "_GRAM_VALUES", values)
    encoded = WindowEncoder("word", 0).fit(as_structures([["a", "b"], ["b"], ["c", "a", "b"]]))
    labels, first = np.array([0, 1, 1, 0, 0, 1, 0, 1]), np.array([0, 2, 3, 4])
    similarity = Similarity(Polynomial(2), np.eye(2), 0.5, True, Numbering(encoded.corpus))
    both = similarity.prepare(encoded, labels, first)
    expected = [similarity.rows(both, np.arange(a, b), both) for a, b in itertools.pairwise(first)]
    for rows, those in zip(similarity.all_rows(both, both), expected, strict=True):
        np.testing.assert_array_equal(rows, those)


def exact(a, b, labels_a, labels_b, factor: int) -> int:
    """The kernel of sequences with Delta and c² = factor, in whole numbers of any size."""
    total, row = 0, [0] * (len(b) + 1)
    for x, y in zip(a, labels_a, strict=True):
        row = [0] + [(row[j] + 1) * factor * (y == labels_b[j]) * (1 + (x == b[j])) for j in range(len(b))]
        total += sum(row)
    return total


def test_numbers_past_all_doubles():
    """Where K is near 10^600: the exact value as a quotient of whole numbers."""
    rng = np.random.default_rng(1)
    a, y = rng.choice(["a", "b"], 400).tolist(), rng.choice(["N", "V"], 400).tolist()
    b, z = [*a[:390], "c", *a[391:], "a"], [*y[:395], "O", *y[396:], "N"]
    ab, aa, bb = (exact(*case, 16) for case in ((a, b, y, z), (a, a, y, y), (b, b, z, z)))
    expected = math.exp(math.log(ab) - 0.5 * (math.log(aa) + math.log(bb)))
    assert math.log10(ab) > 580
    for structures in ((a, b), [Tree(x, range(-1, len(x) - 1)) for x in (a, b)]):
        actual = labelled_kernel(*structures, y, z, kernel=Delta(), mixing=4.0, normalized=True)
        assert actual == pytest.approx(expected, rel=1e-9, abs=0.0)
    with pytest.raises(DataError, match=r"mixing=4 with the kernel Delta\(\).*400 nodes, passes 1e308"):
        labelled_kernel(a, b, y, z, kernel=Delta(), mixing=4.0)


def test_labels_may_be_numbers():
    gram = [[1.0, 0.5], [0.5, 1.0]]
    actual = labelled_kernel(["a"], ["a"], [0], [1], kernel=Constant(1.0), label_kernel=Precomputed(gram))
    assert actual == pytest.approx(1.0)


BAD = [
    ({"mixing": 0}, "mixing=0: give c, a number above 0"),
    ({"mixing": float("nan")}, "mixing=nan: give c, a number above 0"),
    ({"mixing": True}, "mixing=True: give c, a number above 0"),
    ({"kernel": 3}, "kernel=3: give a kernel"),
    ({"label_kernel": "same"}, "label_kernel='same': give a kernel"),
    ({"labels_a": ["N"]}, "structure 0 has 2 nodes but 1 labels"),
    ({"labels_b": [None, "N"]}, "structure 1, node 0: its label is None; give a label for every node"),
    ({"a": Dag(["a", "b"], [(0, 1)]), "b": Dag(["a", "b"], [(0, 1)])}, "these are DAGs; give them as trees"),
    ({"a": Tree(["a", "b"], [-1, 0])}, "give structures of one shape"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_input(changes, message):
    good = {
        "a": ["a", "b"],
        "b": ["a", "b"],
        "labels_a": ["N", "V"],
        "labels_b": ["N", "V"],
        "kernel": Delta(),
    }
    with pytest.raises(DataError, match=message):
        labelled_kernel(**good | changes)
