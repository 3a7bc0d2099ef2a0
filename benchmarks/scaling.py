"""How time grows with tokens (1×, 2×, 4×, 8×), labels (9, 45, 200) and length, and by loss."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from common import load, word_features
from fuda import Sequence
from fuda.data.encoding import Encoded
from fuda.data.window_encoding import WindowEncoder
from fuda.training.crf_loss import Loss, TrainingLoss


def _gradient_seconds(encoded: Encoded, labels: np.ndarray, L: int, loss: Loss, rounds: int = 5) -> float:
    function = TrainingLoss(encoded, labels, L, loss)
    weights = np.random.default_rng(0).normal(scale=0.05, size=function.weights.size)
    function(weights)
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        function(weights)
        times.append(time.perf_counter() - began)
    return min(times)


def rows() -> list[tuple[str, str]]:
    """Rows of the table."""
    X, y = load("esp.train")
    names = sorted({label for labels in y for label in labels})
    structures = [Sequence(x) for x in X]
    numbers = [np.array([names.index(label) for label in labels]) for labels in y]
    sequential, pointwise, markov = Loss(1.0, False), Loss(0.0, True), Loss(2.0, True)
    table: list[tuple[str, str]] = []

    def encode(part: list[Any]) -> Encoded:
        return WindowEncoder(word_features, 1).fit(part)

    base = None
    for times in (1, 2, 4, 8):
        size = len(structures) // 8 * times
        seconds = _gradient_seconds(encode(structures[:size]), np.concatenate(numbers[:size]), 9, sequential)
        tokens = sum(map(len, structures[:size]))
        base = base or seconds / tokens
        table.append(
            (
                f"gradient, {tokens:,} tokens",
                f"{1e3 * seconds:.1f} ms, {seconds / tokens / base:.2f} of the first per token",
            )
        )

    encoded, labels = encode(structures), np.concatenate(numbers)
    by_loss = {
        name: _gradient_seconds(encoded, labels, 9, loss)
        for name, loss in (("sequential", sequential), ("pointwise", pointwise), ("Markov, k = 2", markov))
    }
    for name, seconds in by_loss.items():
        table.append(
            (
                f"gradient, {name} loss",
                f"{1e3 * seconds:.1f} ms, {seconds / by_loss['sequential']:.2f} of sequential",
            )
        )

    small = structures[:1000]
    encoded, labels = encode(small), np.concatenate(numbers[:1000])
    base = None
    for L in (9, 45, 200):
        seconds = _gradient_seconds(encoded, labels % L, L, sequential, rounds=3)
        base = base or seconds / L**2
        table.append(
            (
                f"gradient, {L} labels, {len(labels):,} tokens",
                f"{1e3 * seconds:.1f} ms, {seconds / L**2 / base:.2f} of the first by L²",
            )
        )

    words = [x for part in X for x in part][:32_000]
    for length in (1000, 2000, 4000):
        chains = [Sequence(words[i : i + length]) for i in range(0, 32_000, length)]
        encoded = encode(chains)
        ids = np.resize(np.concatenate(numbers), encoded.corpus.size)
        seconds = _gradient_seconds(encoded, ids, 9, pointwise)
        table.append((f"pointwise gradient, 32,000 tokens in chains of {length}", f"{1e3 * seconds:.1f} ms"))
    return table


if __name__ == "__main__":
    for name, figure in rows():
        print(f"{name:<60}{figure}")
