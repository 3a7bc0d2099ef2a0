"""Tagging speed of a marginalized model of the whole corpus, before and after `prune`.

The model is fitted on esp.train (or loaded from the file that is given), pruned by esp.testa, and
labels esp.testb, before and after in turn: tokens per second of processor time, and entity F1.
"""

from __future__ import annotations

import sys
import time
from copy import deepcopy
from typing import Any

import fuda
from common import load
from fuda import MarginalizedPerceptron
from fuda.metrics import entity_scores

ROUNDS = 3


def seconds(model: Any, X: list[list[str]]) -> tuple[float, Any]:
    """Processor time of all threads, and the labels."""
    began = time.process_time()
    predicted = model.predict(X)
    return time.process_time() - began, predicted


def rows(path: str | None = None) -> list[tuple[str, str]]:
    """Rows of the table."""
    X, y = load("esp.testb")
    tokens = sum(map(len, X))
    exact = fuda.load(path) if path else MarginalizedPerceptron().fit(*load("esp.train"))
    quick = deepcopy(exact)
    quick.prune(*load("esp.testa"))
    found = []
    times: dict[str, list[float]] = {"whole": [], "pruned": []}
    for _ in range(ROUNDS):
        for name, model in (("whole", exact), ("pruned", quick)):
            taken, predicted = seconds(model, X)
            times[name].append(taken)
            found.append(
                (name, f"{tokens / taken:,.0f} tokens/s, {entity_scores(y, predicted).micro.f1:.4f}")
            )
    found.append(("ratio", f"{min(times['whole']) / min(times['pruned']):.1f}"))
    return found


if __name__ == "__main__":
    for what, figure in rows(*sys.argv[1:]):
        print(f"{what}: {figure}", flush=True)
