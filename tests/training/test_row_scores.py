"""Scores of rows in place of weights of features: the same loss and derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fuda import Sequence, Tree
from fuda.data.window_encoding import WindowEncoder
from fuda.training.crf_curvature import curvature
from fuda.training.crf_loss import Loss, TrainingLoss
from fuda.training.row_scores import RowScores

L = 3


def encodings():
    random = np.random.default_rng(0)
    words = [[f"w{k}" for k in random.integers(9, size=n)] for n in random.integers(1, 9, size=12)]
    numbers = [[{"a": 0.3 * k, f"b{k}": 1.7} for k in random.integers(5, size=len(x))] for x in words]
    chains = WindowEncoder("text", 1).fit([Sequence(x) for x in words])
    channel = chains.channels[1]
    return {
        "words": chains,
        "pairs": replace(chains, edge_channels=[channel]),
        "numbers": WindowEncoder("text", 1).fit([Sequence(x) for x in numbers]),
        "vectors": WindowEncoder("word", 1).fit([Sequence(list(random.normal(size=(4, 2)))) for _ in words]),
        "trees": WindowEncoder("word", 1).fit([Tree(x, range(-1, len(x) - 1)) for x in words]),
    }


@pytest.mark.parametrize("kind", ["words", "pairs", "numbers", "vectors", "trees"])
def test_loss_gradient_and_curvature(kind):
    encoded, random = encodings()[kind], np.random.default_rng(1)
    labels = random.integers(L, size=encoded.corpus.size)
    whole, rows = TrainingLoss(encoded, labels, L, Loss(1.0, False)), RowScores(encoded, L, n_jobs=2)
    by_row = TrainingLoss(rows.encoded, labels, L, Loss(1.0, False))
    vector, scores = random.normal(size=whole.weights.size), np.empty(rows.weights.size)
    gradient, diagonal = np.empty(len(vector)), np.empty(len(vector))
    rows.of(vector, scores)
    value, of_rows = by_row(scores)
    rows.collect(of_rows, gradient)
    expected = whole(vector)
    assert value == expected[0]
    np.testing.assert_array_equal(gradient, expected[1])
    rows.collect_curvature(curvature(by_row, scores), diagonal)
    np.testing.assert_allclose(diagonal, curvature(whole, vector), rtol=1e-9, atol=1e-12)
