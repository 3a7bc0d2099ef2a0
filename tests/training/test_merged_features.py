"""Equal columns as one: the same loss, gradient and curvature, and the same fits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fuda import CRF, Sequence, Tree
from fuda.data.structures import as_structures
from fuda.data.window_encoding import WindowEncoder
from fuda.training import merged_features
from fuda.training.crf_curvature import curvature
from fuda.training.crf_loss import Loss, TrainingLoss
from fuda.training.merged_features import MergedFeatures, _equal_columns
from usage_cases import usage

DATA = usage()
X, Y = [Sequence(x.observations) for x in DATA.X[:16]], DATA.y[:16]
L = 3
PARTS = [{"a", "twin of a", "b"}, {"c", "b"}, {"a", "twin of a"}, {"c", "b", "alone"}, set()]


def expected_groups(matrix: np.ndarray) -> list[int]:
    """For each column the number of its group, groups in the order of their first columns."""
    seen: dict[bytes, int] = {}
    return [seen.setdefault(column.tobytes(), len(seen)) for column in matrix.T.copy()]


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.integers(1, 9))
def test_the_groups_are_those_of_equal_columns(seed, rows, columns):
    random = np.random.default_rng(seed)
    matrix = random.choice([0.0, 0.0, 1.0, 2.5], size=(rows, columns))
    first, of = _equal_columns(sp.csr_matrix(matrix))
    assert of.tolist() == expected_groups(matrix)
    assert [of[k] for k in first] == list(range(len(first)))
    assert sorted(first) == list(first)


def test_columns_of_the_same_key_are_compared(monkeypatch):
    monkeypatch.setattr(merged_features, "_keys", lambda columns: np.zeros(columns.shape[0], dtype=np.uint64))
    matrix = np.array(
        [[1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0], [2.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
    )
    first, of = _equal_columns(sp.csr_matrix(matrix))
    assert (of[0], of[1]) == (0, 0)  # columns 2 and 3 may stay apart from what they equal, never join
    assert len({of[0], of[2], of[3]}) == 3
    assert len(first) == 3


def encoded_and_labels(window: int = 1):
    structures = [[PARTS[k] for k in row] for row in ([0, 1, 2], [3, 4], [2, 2, 1, 0])]
    encoded = WindowEncoder(list, window).fit(as_structures(structures))
    return encoded, np.array([0, 1, 2, 1, 1, 0, 0, 2, 1])


@pytest.mark.parametrize("loss", [Loss(1.0, False), Loss(2.0, True)], ids=str)
def test_loss_gradient_and_curvature_are_the_same(loss):
    encoded, labels = encoded_and_labels()
    merged = MergedFeatures(encoded, L)
    assert merged.tables[0].n_features == encoded.tables[0].n_features - 1
    fewer = TrainingLoss(
        encoded.__class__(encoded.corpus, merged.tables, encoded.channels, []), labels, L, loss
    )
    whole, random = TrainingLoss(encoded, labels, L, loss), np.random.default_rng(0)
    u = random.normal(size=fewer.weights.size)
    w = merged.expand(u)
    np.testing.assert_allclose(merged.reduce(w), u, atol=1e-12)
    assert w @ w == pytest.approx(u @ u)
    assert np.abs(w).sum() == pytest.approx(merged.roots @ np.abs(u))
    value, gradient = whole(w)
    few_value, few_gradient = fewer(u)
    assert few_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(few_gradient, merged.reduce(gradient), atol=1e-10)
    np.testing.assert_allclose(merged.expand(fewer.curvature(), power=2), whole.curvature(), atol=1e-12)
    there = merged.expand(curvature(fewer, u), power=2)
    np.testing.assert_allclose(there, curvature(whole, w), atol=1e-10)


def test_weights_that_differ_give_the_same_scores():
    """A warm start may come from data in which features did not always occur together."""
    encoded, labels = encoded_and_labels()
    merged, loss = MergedFeatures(encoded, L), Loss(1.0, False)
    whole = TrainingLoss(encoded, labels, L, loss)
    w = np.random.default_rng(1).normal(size=whole.weights.size)
    assert whole(merged.expand(merged.reduce(w)))[0] == pytest.approx(whole(w)[0], rel=1e-12)


def test_nothing_is_merged_where_that_is_not_wanted():
    encoded, _ = encoded_and_labels()
    merged, u = MergedFeatures(encoded, L, merge=False), np.arange(3.0)
    assert merged.tables == encoded.tables
    assert merged.expand(u) is u
    assert merged.reduce(u) is u
    assert merged.roots.tolist() == [1.0]


class Unmerged(CRF):
    _merges_features = False


@pytest.mark.parametrize(
    "parameters",
    [{}, {"l1": 0.1}, {"loss": "markov", "order": 2.0}, {"pair_features": True}, {"solver": "cg"}],
    ids=str,
)
@pytest.mark.parametrize("shape", ["sequence", "tree"])
def test_fits_end_at_the_same_minimum(parameters, shape):
    structures = X if shape == "sequence" else [Tree(x.observations, x.heads) for x in DATA.X[:16]]
    settings = {"tol": 1e-9, "max_iter": 3000} | parameters
    one, other = (model(**settings).fit(structures, Y) for model in (CRF, Unmerged))
    assert one.result_.value == pytest.approx(other.result_.value, rel=1e-6)
    assert one.objective(structures, Y) == pytest.approx(one.result_.value, rel=1e-9)
    np.testing.assert_allclose(one.weights_, other.weights_, atol=5e-3)
    np.testing.assert_allclose(one._curvature, other._curvature, atol=0.02)


def test_features_of_dense_vectors_stay_apart():
    vectors = [np.array([[1.0, 1.0], [0.5, 0.5]]), np.array([[0.0, 0.0], [2.0, 2.0]])]
    crf = CRF().fit([list(rows) for rows in vectors], [["a", "b"], ["a", "b"]])
    assert crf.predict([list(vectors[0])])[0] == ["a", "b"]
