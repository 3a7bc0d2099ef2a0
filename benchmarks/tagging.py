"""Tagging speed of a marginalized model of the whole corpus, before and after `prune`.

The model is fitted on esp.train (or loaded from the file that is given), pruned by esp.testa, and
labels esp.testb, before and after in turn: tokens per second of processor time and by the clock,
entity F1, and how many labels differ.
"""

from __future__ import annotations

import sys
import time
from copy import deepcopy
from itertools import chain
from typing import Any

import fuda
from common import load
from fuda import MarginalizedPerceptron
from fuda.metrics import entity_scores

ROUNDS = 3
TIMES = 5  # predictions of the pruned model per round, which are short


def seconds(model: Any, X: list[list[str]], times: int) -> tuple[float, float, Any]:
    """The least processor time of all threads, the least time by the clock, and the labels."""
    times_taken = []
    for _ in range(times):
        began = time.process_time(), time.perf_counter()
        predicted = model.predict(X)
        times_taken.append((time.process_time() - began[0], time.perf_counter() - began[1]))
    processor, clock = map(min, zip(*times_taken, strict=True))
    return processor, clock, predicted


def rows(path: str | None = None) -> list[tuple[str, str]]:
    """Rows of the table."""
    X, y = load("esp.testb")
    tokens = sum(map(len, X))
    exact = fuda.load(path) if path else MarginalizedPerceptron().fit(*load("esp.train"))
    quick = deepcopy(exact)
    quick.prune(*load("esp.testa"))
    table, labels = [], {}
    least: dict[str, list[tuple[float, float]]] = {"whole": [], "pruned": []}
    for _ in range(ROUNDS):
        for name, model, times in (("whole", exact, 1), ("pruned", quick, TIMES)):
            *best_times, labels[name] = seconds(model, X, times)
            least[name].append((best_times[0], best_times[1]))
            speeds = (f"{tokens / t:,.0f}" for t in best_times)
            f1 = entity_scores(y, labels[name]).micro.f1
            table.append(
                (name, "{} tokens/s of processor time, {} by the clock, ".format(*speeds) + f"{f1:.4f}")
            )
    ratios = [
        min(a) / min(b) for a, b in zip(*(zip(*rows, strict=True) for rows in least.values()), strict=True)
    ]
    table.append(("ratio", f"{ratios[0]:.1f} of processor time, {ratios[1]:.1f} by the clock"))
    pairs = zip(*(chain.from_iterable(each) for each in labels.values()), strict=True)
    table.append(("labels that differ", f"{sum(a != b for a, b in pairs)} of {tokens}"))
    return table


if __name__ == "__main__":
    for label, figure in rows(*sys.argv[1:]):
        print(f"{label}: {figure}", flush=True)
