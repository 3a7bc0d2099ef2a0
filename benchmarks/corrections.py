"""Corrections: is one predicted afterwards, what does it do to other text, what do two hundred do?

A model of the first 500 sentences of the corpus; wrongly labelled sentences of the development
part are corrected one by one, each in a copy of the model, and 600 other sentences tell what that
does to F1 over entities. How much one more sentence changes anyway tell models that are fitted
anew to 501, for the first ten of them. Then 200 more training sentences are given one after
another, and a model is fitted anew to all 700.

    python benchmarks/corrections.py                     # all models on Spanish names
    python benchmarks/corrections.py ncbi_disease CRF    # one on diseases
"""

from __future__ import annotations

import sys
import time
import warnings
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from corpora import FILES, sentences
from fuda import CRF, HMPerceptron, MarginalizedPerceptron
from fuda.metrics import entity_scores

MODELS: dict[str, Any] = {
    "CRF": CRF(),
    "HM-perceptron": HMPerceptron(),
    "marginalized perceptron": MarginalizedPerceptron(),
    "with a CRF as prior, legal Viterbi": MarginalizedPerceptron(
        prior=CRF(), decode="viterbi", scheme="IOB2"
    ),
}
BEFORE, MORE, CORRECTED, OTHERS, ANEW = 500, 200, 100, 600, 10
BAR = 0.5  # points that one correction should not move F1 by


def rows(names: list[str] | None = None, corpus: str = "esp") -> list[tuple[str, str]]:
    """Rows of the table."""
    warnings.simplefilter("ignore")
    X, y = sentences(corpus)
    dev_X, dev_y = sentences(corpus, "dev")
    chosen = np.random.RandomState(1).permutation(len(dev_X)).tolist()
    others = chosen[:OTHERS]

    def f1(model: Any) -> float:
        predicted = model.predict([dev_X[i] for i in others])
        return 100 * entity_scores([dev_y[i] for i in others], predicted).micro.f1

    table = []
    for name in names or list(MODELS):
        model = clone(MODELS[name]).fit(X[:BEFORE], y[:BEFORE])
        before, successes = f1(model), 0
        changes: list[float] = []
        anew: list[float] = []
        times: list[float] = []
        for i in chosen[OTHERS:]:
            if len(changes) == CORRECTED:
                break
            if list(model.predict([dev_X[i]])[0]) == list(dev_y[i]):
                continue
            taught, began = copy(model), time.perf_counter()
            taught.partial_fit([dev_X[i]], [dev_y[i]])
            times.append(1e3 * (time.perf_counter() - began))
            successes += list(taught.predict([dev_X[i]])[0]) == list(dev_y[i])
            changes.append(f1(taught) - before)
            if len(anew) < ANEW:
                again = clone(MODELS[name]).fit([*X[:BEFORE], dev_X[i]], [*y[:BEFORE], dev_y[i]])
                anew.append(f1(again) - before)
        table += [
            (f"{name}: corrections that are predicted afterwards", f"{successes} of {len(changes)}"),
            (f"{name}: change of F1 by one of them", moved(changes)),
            (f"{name}: by a new fit with the same sentence", moved(anew)),
            (f"{name}: time of one", f"{np.median(times):.0f} ms ({max(times):.0f} at most)"),
        ]
        for k in range(BEFORE, BEFORE + MORE):
            model.partial_fit([X[k]], [y[k]])
        again = clone(MODELS[name]).fit(X[: BEFORE + MORE], y[: BEFORE + MORE])
        figure = f"F1 {before:.1f} → {f1(model):.1f}; fitted anew {f1(again):.1f}"
        table.append((f"{name}: {MORE} more sentences, one by one", figure))
    return table


def moved(changes: list[float]) -> str:
    """How much F1 changed."""
    mean = np.sqrt(np.mean(np.square(changes)))
    many = sum(abs(change) >= BAR for change in changes)
    return (
        f"{min(changes):+.2f} to {max(changes):+.2f} points, root mean square {mean:.2f}, "
        f"{many} of {len(changes)} by {BAR} or more"
    )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    corpus = arguments.pop(0) if arguments and arguments[0] in FILES else "esp"
    if "dev" not in FILES[corpus]:
        sys.exit(f"{corpus} has no development part here")
    for label, figure in rows(arguments, corpus):
        print(f"{label}: {figure}", flush=True)
