"""The table of scores against the scores of nodes, computed channel by channel."""

from __future__ import annotations

import numpy as np
import pytest

from fuda import Sequence
from fuda.data.window_encoding import WindowEncoder
from fuda.training.crf_loss import Weights, score_structures
from fuda.training.score_table import ScoreTable, _reading_order

L = 3


def _sequences(words: bool) -> list[Sequence]:
    random = np.random.RandomState(0)
    if words:
        return [Sequence([f"w{n}" for n in random.zipf(1.5, k) % 40]) for k in random.randint(1, 12, 30)]
    return [Sequence(list(random.randn(k, 4))) for k in random.randint(1, 6, 10)]


@pytest.mark.parametrize("words", [True, False], ids=["words", "vectors"])
def test_rows_of_a_node_add_up_to_its_scores(words: bool) -> None:
    encoded = WindowEncoder("text", window=1).fit(_sequences(words))
    weights = Weights.of(encoded, L)
    vector = np.random.RandomState(1).randn(weights.size)
    visited = np.arange(encoded.corpus.size)[::-1]
    scores = ScoreTable(encoded, visited)
    table = np.empty((scores.height, L))
    scores.exponentiate(weights.stacked(vector), table)
    actual, expected = np.log(table)[scores.rows].sum(axis=1), score_structures(encoded, weights, vector)[0]
    assert table.max(axis=1).tolist() == [1.0] * scores.height
    np.testing.assert_allclose(actual - actual[:, :1], expected - expected[:, :1], atol=1e-10)


@pytest.mark.parametrize("words", [True, False], ids=["words", "vectors"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_gradient_is_the_transpose(words: bool, n_jobs: int) -> None:
    """⟨S(W), G⟩ = ⟨W, Sᵀ(G)⟩ for the sum G of all parts, whose rows add up to 0."""
    encoded = WindowEncoder("text", window=1).fit(_sequences(words))
    weights, random = Weights.of(encoded, L), np.random.RandomState(2)
    vector, gradient = random.randn(weights.size), np.zeros(weights.size)
    scores = ScoreTable(encoded, np.arange(encoded.corpus.size), n_jobs)
    table = np.empty((scores.height, L))
    scores.exponentiate(weights.stacked(vector), table)
    parts = [random.randn(scores.height, L) for _ in range(3)]
    expected = sum(parts)
    expected -= expected.mean(axis=1, keepdims=True)
    scores.collect([expected - parts[0], parts[0]], weights.stacked(gradient))
    assert vector @ gradient == pytest.approx(float((np.log(table) * expected).sum()))


def test_frequent_rows_come_first_and_others_as_they_are_visited() -> None:
    read = np.array([[5, 1], [4, 1], [0, 1], [5, 1], [3, 1], [2, 1]])
    is_last = np.array([False, False, True, False, False, False, False])
    assert _reading_order(read, is_last).tolist() == [1, 5, 4, 0, 3, 6, 2]
