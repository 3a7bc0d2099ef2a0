"""One sentence after another: how long a fitted model takes to label a single sentence.

Every learner is fitted on the first 300 sentences of the corpus and labels 200 sentences of the
development part, one call of `predict` each: the median, and the 5th and 95th percentiles. All
200 are labelled several times, each time by a fresh copy of the model, which has not seen them; of
each sentence the least time counts, since other programs only ever add to it.
"""

from __future__ import annotations

import pickle
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from common import load
from fuda import (
    CRF,
    HMM,
    HMSVM,
    MEMM,
    HMPerceptron,
    MarginalizedPerceptron,
    MarginalizedSVM,
    Reranker,
    SemiCRF,
)
from fuda.kernels import Linear, Polynomial

COPIES = 9  # of each model
LEARNERS: dict[str, Callable[[], Any]] = {
    "HMM": lambda: HMM(),
    "MEMM": lambda: MEMM(),
    "CRF": lambda: CRF(),
    "SemiCRF": lambda: SemiCRF(),
    "HMPerceptron": lambda: HMPerceptron(),
    "HMPerceptron, degree 2": lambda: HMPerceptron(kernel=Polynomial(2)),
    "HMSVM": lambda: HMSVM(),
    "HMSVM, linear": lambda: HMSVM(kernel=Linear()),
    "MarginalizedPerceptron": lambda: MarginalizedPerceptron(calibrate=False),
    "MarginalizedPerceptron, spelling": lambda: MarginalizedPerceptron(features="spelling", calibrate=False),
    "MarginalizedPerceptron, viterbi": lambda: MarginalizedPerceptron(decode="viterbi"),
    "MarginalizedPerceptron, CRF as prior": lambda: MarginalizedPerceptron(prior=CRF()),
    "MarginalizedSVM": lambda: MarginalizedSVM(calibrate=False),
    "Reranker": lambda: Reranker(folds=2),
}


def rows(names: list[str] | None = None) -> list[tuple[str, str]]:
    """Rows of the table."""
    X, y = load("esp.train")
    sentences = load("esp.testa")[0][:200]
    table = []
    for name in names or list(LEARNERS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LEARNERS[name]().fit(X[:300], y[:300])
        times = [min(of) for of in zip(*(_times(model, sentences) for _ in range(COPIES)), strict=True)]
        quick, *_, slow = statistics.quantiles(times, n=20)
        table.append((name, f"{statistics.median(times):.2f} ms ({quick:.2f}–{slow:.2f})"))
    return table


def _times(model: Any, sentences: list[list[str]]) -> list[float]:
    """The milliseconds that a copy of a model takes for each sentence."""
    fresh, times = pickle.loads(pickle.dumps(model)), []
    for x in sentences[:20]:  # loads code
        fresh.predict([[f"{word}-" for word in x]])
    for x in sentences:
        began = time.perf_counter()
        fresh.predict([x])
        times.append(1e3 * (time.perf_counter() - began))
    return times


if __name__ == "__main__":
    for label, figure in rows(sys.argv[1:]):
        print(f"{label}: {figure}", flush=True)
