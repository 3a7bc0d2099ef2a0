"""Scores under a kernel: both ways to hold them against plain sums of kernel values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuda import DataError, Sequence
from fuda.data.corpus import Corpus
from fuda.data.template_encoding import TemplateEncoder
from fuda.data.window_encoding import WindowEncoder
from fuda.features.templates import Template
from fuda.functions import scores_for
from fuda.functions.explicit import ExplicitScores
from fuda.functions.monomials import MonomialVectors
from fuda.functions.pushed import PushedScores
from fuda.functions.windows import window_of
from fuda.kernels import RBF, Constant, Delta, Function, Linear, Polynomial, Precomputed
from fuda.kernels.points import Numbering
from structure_cases import structure_lists

KERNELS = [
    Linear(),
    Polynomial(2),
    Polynomial(3, offset=0.5, scale=0.25),
    RBF(0.3),
    Delta(),
    Function(lambda x, y: float(x == y) + 0.1 * len(x) * len(y)),
    Linear().normalized(),
    Polynomial(2).normalized() + 0.5 * Delta(),
    Linear() * Delta() + Constant(2.0),
    Constant(1.5),
]
LABELS = 3


def stacked(encoded, of_features: bool, joints: bool) -> np.ndarray:
    """The vectors that a node's channels show, side by side: features, or indicators of rows."""
    vectors = []
    for channel in encoded.channels:
        if channel.table == 0 or joints:
            table = encoded.tables[channel.table].matrix
            vectors.append(channel.gather(table.toarray() if of_features else np.eye(table.shape[0])))
    return np.concatenate(vectors, axis=1)


def gram_of(kernel, encoded) -> np.ndarray:
    """The kernel of all pairs of nodes, from whole vectors."""
    joints = not any(name in str(kernel) for name in ("Delta", "Function"))
    features, shown = stacked(encoded, True, joints), stacked(encoded, False, False)
    words = [*encoded.corpus.observations]

    def value(k) -> np.ndarray:
        name = type(k).__name__
        dots = features @ features.T
        if name == "Linear":
            return dots
        if name == "Polynomial":
            return (k.scale * dots + k.offset) ** k.degree
        if name == "RBF":
            diagonal = np.diag(dots)
            return np.exp(-k.gamma * (diagonal[:, None] + diagonal - 2 * dots))
        if name == "Delta":
            return shown @ shown.T
        if name == "Constant":
            return np.full(dots.shape, k.value)
        if name == "Function":
            table = np.array([[k.function(x, y) for y in words] for x in words])
            marks = len(encoded.tables[0].beyond) - len(words)
            table = np.pad(table, (0, marks))
            all_channels = np.kron(np.eye(shown.shape[1] // len(table)), table)
            return shown @ all_channels @ shown.T
        if name == "Sum":
            return value(k.left) + value(k.right)
        if name == "Product":
            return value(k.left) * value(k.right)
        inner = value(k.kernel)
        roots = np.sqrt(np.outer(np.diag(inner), np.diag(inner)))
        return np.divide(inner, roots, out=np.zeros_like(inner), where=roots > 0)

    return value(kernel)


def pushed(encoded, kernel, seed: int, explicit: bool = False) -> PushedScores | ExplicitScores:
    """Scores after a few random changes, some of rows of zeros."""
    rng = np.random.default_rng(seed)
    if explicit:
        scores = ExplicitScores(MonomialVectors(kernel, encoded), LABELS)
    else:
        scores = PushedScores(encoded, kernel, LABELS)
    for _ in range(4):
        begin, end = sorted(rng.integers(0, encoded.corpus.size + 1, 2))
        delta = rng.integers(-1, 2, (end - begin, LABELS)) * rng.integers(0, 2, (end - begin, 1))
        scores.add(begin, end, delta.astype(float))
    return scores


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@settings(max_examples=25)
@given(
    structures=structure_lists(max_size=5),
    features=st.sampled_from(["word", "spelling", "text"]),
    window=st.integers(0, 2),
)
def test_pushed_scores_are_sums_of_kernel_values(kernel, structures, features, window):
    encoded = WindowEncoder(features, window).fit(structures)
    gram = gram_of(kernel, encoded)
    scores = pushed(encoded, kernel, seed=len(structures))
    np.testing.assert_allclose(scores.scores, gram @ scores.beta, atol=1e-9)
    np.testing.assert_allclose(scores.function().of(encoded), scores.scores, atol=1e-9)
    nodes = np.arange(encoded.corpus.size)[::-2]
    np.testing.assert_allclose(scores.local(0, 1), scores.scores[:1])
    np.testing.assert_allclose(scores.gram(nodes, nodes[:1]), gram[nodes][:, nodes[:1]], atol=1e-9)


def test_scores_of_other_structures():
    """Unknown features count in norms only; ids of integers are their own."""
    encoder = WindowEncoder("word", 1)
    old, new = [Sequence(["a", "b", "c"]), Sequence(["b"])], [Sequence(["x", "b"]), Sequence(["c", "b", "y"])]
    both = WindowEncoder("word", 1).fit(old + new)
    for kernel in KERNELS:
        scores = pushed(encoder.fit(old), kernel, seed=1)
        gram = gram_of(kernel, both)
        np.testing.assert_allclose(
            scores.function().of(encoder.encode(new)), gram[4:, :4] @ scores.beta, atol=1e-9
        )
    ids = WindowEncoder("word", 0)
    kernel = Precomputed([[1.0, 0.5], [0.5, 1.0]])
    scores = PushedScores(ids.fit([Sequence([1, 0, 1])]), kernel, 2)
    scores.add(0, 1, np.array([[1.0, 0.0]]))
    assert scores.scores[:, 0].tolist() == [1.0, 0.5, 1.0]
    assert scores.function().of(ids.encode([Sequence([0])])).tolist() == [[0.5, 0.0]]


def test_blocks_and_threads_change_nothing(monkeypatch):
    encoded = WindowEncoder("spelling", 1).fit([Sequence(["a", "B", "c-1"] * 9), Sequence(["B", "d"])])
    kernel = Polynomial(2).normalized() + Delta()
    expected = pushed(encoded, kernel, seed=3)
    monkeypatch.setattr("fuda.functions.windows._ENTRIES", 7)
    monkeypatch.setattr("fuda.functions.windows._TABLE_ENTRIES", 11)
    actual = pushed(encoded, kernel, seed=3)
    np.testing.assert_allclose(actual.scores, expected.scores, atol=1e-12)
    np.testing.assert_allclose(actual.function().of(encoded), expected.scores, atol=1e-12)


@pytest.mark.parametrize("size", [1 << 20, 8 * 29 * 5, 8 * 29, 1])
def test_rows_that_are_kept(size):
    """With memory for all rows of kernel values, for five, for one, and for none."""
    encoded = WindowEncoder("spelling", 1).fit([Sequence(["a", "B", "c-1"] * 9), Sequence(["B", "d"])])
    scores, rng = PushedScores(encoded, RBF(0.2), LABELS, cache_bytes=size), np.random.default_rng(0)
    for _ in range(30):
        begin = int(rng.integers(0, 20))
        scores.add(begin, begin + 7, rng.integers(-1, 2, (7, LABELS)) * rng.integers(0, 2, (7, 1)) * 0.5)
    np.testing.assert_allclose(scores.scores, gram_of(RBF(0.2), encoded) @ scores.beta, atol=1e-9)


def test_templates():
    encoder = TemplateEncoder(Template("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB"))
    encoded = encoder.fit([Sequence(["a", "b", "a", "b"])])
    scores = PushedScores(encoded, Polynomial(2), 1)
    scores.add(1, 2, np.array([[1.0]]))
    assert scores.scores[:, 0].tolist() == [1.0, 9.0, 1.0, 9.0]
    with pytest.raises(DataError, match="and the lines of a template are not observations"):
        PushedScores(encoded, Delta(), 1)


POLYNOMIALS = [
    Linear(),
    Polynomial(1, offset=0.5),
    Polynomial(2),
    Polynomial(2, offset=0.0),
    Polynomial(3, offset=0.5, scale=0.25),
    Polynomial(4).normalized(),
    Linear().normalized(),
    3 * Polynomial(2).normalized(),
]
DICTS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from([1.0, 1.0, -0.5, 2.0, 0.0]), max_size=4)


def assert_same_scores(kernel, encoder, old, new):
    encoded = encoder.fit(old)
    pushes, features = (pushed(encoded, kernel, len(old), explicit) for explicit in (False, True))
    np.testing.assert_allclose(features.beta, pushes.beta)
    np.testing.assert_allclose(features.scores, pushes.scores, atol=1e-9)
    np.testing.assert_allclose(features.local(0, 1), pushes.scores[:1], atol=1e-9)
    nodes = np.arange(encoded.corpus.size)[::-2]
    np.testing.assert_allclose(features.gram(nodes, nodes[:1]), pushes.gram(nodes, nodes[:1]), atol=1e-9)
    if new and new[0].shape == old[0].shape:
        others = encoder.encode(new)
        np.testing.assert_allclose(features.function().of(others), pushes.function().of(others), atol=1e-9)


@pytest.mark.parametrize("kernel", POLYNOMIALS, ids=str)
@settings(max_examples=25)
@given(
    old=structure_lists(max_size=5),
    new=structure_lists(max_size=5),
    features=st.sampled_from(["word", "spelling", lambda x: [x, "same"]]),
    window=st.integers(0, 1),
)
def test_written_out_features_give_the_same_scores(kernel, old, new, features, window):
    """Also where several descendants say the same in a window, in training or only later."""
    assert_same_scores(kernel, WindowEncoder(features, window), old, new)


@pytest.mark.parametrize("kernel", POLYNOMIALS, ids=str)
@settings(max_examples=25)
@given(old=structure_lists(DICTS, max_size=4), new=structure_lists(DICTS, max_size=4))
def test_written_out_features_of_any_value(kernel, old, new):
    assert_same_scores(kernel, WindowEncoder("word", 0), old, new)


@pytest.mark.parametrize("kernel", POLYNOMIALS, ids=str)
def test_features_of_zero_and_one_in_training_and_of_any_value_later(kernel):
    old = [Sequence([{"a": 1.0, "b": 1.0, "c": 1.0}, {"b": 1.0}, {"c": 1.0, "b": 1.0}])]
    new = [Sequence([{"a": 0.5, "b": 2.0}, {"b": -1.0, "c": 3.0, "d": 1.0}])]
    assert_same_scores(kernel, WindowEncoder("word", 0), old, new)


def test_vectors():
    rng = np.random.default_rng(0)
    old, new = ([Sequence(rng.integers(0, high, (9, 6)).astype(float))] for high in (2, 4))
    for kernel in POLYNOMIALS:
        assert_same_scores(kernel, WindowEncoder("word", 1), old, new)
        assert_same_scores(kernel, WindowEncoder("word", 1), new, old)


def test_many_monomials():
    """The table of monomials grows as they come."""
    rng = np.random.default_rng(0)
    old = [Sequence([[str(k) for k in rng.choice(400, 12, replace=False)] for _ in range(40)])]
    assert_same_scores(Polynomial(3), WindowEncoder("word", 0), old, old)


def test_scores_in_blocks(monkeypatch):
    monkeypatch.setattr("fuda.functions.explicit._BLOCK_BYTES", 1)
    test_vectors()


def test_the_choice_between_the_two():
    encoded = WindowEncoder("spelling", 1).fit([Sequence(["a", "B", "c-1"])])
    assert isinstance(scores_for(Polynomial(2).normalized(), encoded, 2), ExplicitScores)
    assert isinstance(scores_for(Linear() + Constant(), encoded, 2), PushedScores)
    assert isinstance(scores_for(RBF(), encoded, 2), PushedScores)
    assert isinstance(scores_for(Polynomial(1), encoded, 2, cache_bytes=120), ExplicitScores)
    assert isinstance(scores_for(Polynomial(2), encoded, 2, cache_bytes=120), PushedScores)


def test_many_monomials_are_pushed_where_all_kernel_values_fit():
    encoded = WindowEncoder("word", 0).fit([Sequence(np.ones((9, 40)))])
    assert isinstance(scores_for(Polynomial(3), encoded, 2, cache_bytes=8 * 9 * 9), PushedScores)
    assert isinstance(scores_for(Polynomial(3), encoded, 2), PushedScores)
    assert isinstance(scores_for(Linear(), encoded, 2), ExplicitScores)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Function(lambda x, y: float(x > y)), "a kernel is symmetric"),
        (Function(lambda x, y: float("nan")), "a kernel is finite"),
        (Function(lambda x, y: -1.0), "structure 0, node 0"),
        (Polynomial(20, scale=1e6), "structure 1, node 0: the kernel Polynomial(degree=20"),
        (Precomputed(np.eye(2)), "is not a row of its matrix"),
    ],
)
def test_what_is_no_kernel(kernel, words):
    observations = [Sequence(["a", "b"]), Sequence(["c"])]
    if isinstance(kernel, Polynomial):
        observations = [Sequence([{"f": 0.0}]), Sequence([{"f": 1e12}])]
    with pytest.raises(DataError) as caught:
        scores_for(kernel, WindowEncoder("word", 0).fit(observations), 2)
    assert words in str(caught.value)


@pytest.mark.parametrize("size", [1, 2, 9, 40])
@pytest.mark.parametrize("cache_bytes", [0, 100, 8 * 40, 5000, 1 << 30])
def test_no_more_bytes_than_the_budget_are_cached(size, cache_bytes):
    """Whatever share of the nodes that is."""
    encoded = WindowEncoder("word", 0).fit([Sequence([f"w{t}" for t in range(size)])])
    scores = PushedScores(encoded, RBF(0.5), 2, cache_bytes=cache_bytes)
    scores.add(0, size, np.ones((size, 2)))
    arrays = [x for x in vars(scores).values() if isinstance(x, np.ndarray)]
    assert scores._rows.nbytes == 8 * size * min(size, cache_bytes // (8 * size)) <= cache_bytes
    assert sum(x.nbytes for x in arrays) - scores._rows.nbytes <= 8 * size * (2 + 2 + 3)
    gram = scores.gram(np.arange(size), np.arange(size))
    np.testing.assert_allclose(scores.scores, gram.sum(axis=1)[:, None] * [1.0, 1.0])


def word_and_length(word: str) -> dict[str, str | float]:
    return {"word": word, "length": len(word) / 7}


@pytest.mark.parametrize("features", ["text", word_and_length])
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2).normalized()])
def test_vectors_of_one_sentence_are_those_of_a_corpus(features, kernel):
    encoder = WindowEncoder(features, 1)
    encoder.fit([Sequence(["Ana", "lives", "in", "Lima"]), Sequence(["Ana", "lives", "in", "New", "York"])])
    sentences = [Sequence(["Ana", "lives", "in", "Rome"]), Sequence(["in", "Lima"])]
    together = MonomialVectors(kernel, encoder.encode(sentences))
    alone = [MonomialVectors(kernel, encoder.encode([sentence])) for sentence in sentences]
    if kernel.polynomial.normalized:
        norms = window_of(encoder.encode(sentences), kernel, Numbering(Corpus(sentences))).norms[0]
        np.testing.assert_array_equal(together.factors, 1 / np.sqrt((norms + 1) ** 2))
    for name in ("indices", "values", "factors"):
        expected = np.concatenate([getattr(vectors, name) for vectors in alone])
        np.testing.assert_array_equal(getattr(together, name), expected)
