"""Fuda's side of the benchmarks: each job is one measurement in a separate process."""

from __future__ import annotations

import time
import warnings
from typing import Any

from common import load, word_features, worker


def _crf(**parameters: Any) -> Any:
    from fuda import CRF

    warnings.simplefilter("ignore")  # max_iter is reached on purpose
    return CRF(features=word_features, window=1, l2=1.0, **parameters)


def _warm(X: list, y: list) -> None:
    """Load compiled code, as a second fit in the same process would find it."""
    _crf(tol=0.0, max_iter=22).fit(X[:800], y[:800]).predict(X[:10])


def iterations_to(target: float) -> dict[str, Any]:
    """How many iterations reach an objective."""
    X, y = load("esp.train")
    history = _crf(tol=0.0, max_iter=400).fit(X, y).result_.history
    reached = [p.iteration for p in history if p.objective <= target]
    return {"iterations": reached[0] if reached else None, "best": history[-1].objective}


def train(iterations: float, threads: float) -> dict[str, Any]:
    """A fit of so many iterations: training alone, and end to end from words and labels."""
    X, y = load("esp.train")
    _warm(X, y)
    model = _crf(tol=0.0, max_iter=int(iterations), n_jobs=int(threads))
    began = time.perf_counter()
    model.fit(X, y)
    whole = time.perf_counter() - began
    last = model.result_.history[-1]
    return {
        "whole": whole,
        "training": last.seconds,
        "objective": last.objective,
        "evaluations": last.evaluations,
    }


def tag() -> dict[str, Any]:
    """Tokens per second from words to labels, on testb and on the training set."""
    X, y = load("esp.train")
    model = _crf(max_iter=30).fit(X, y)
    figures = {}
    for name in ("esp.testb", "esp.train"):
        words, _ = load(name)
        model.predict(words[:5])
        times = []
        for _ in range(5):
            began = time.perf_counter()
            model.predict(words)
            times.append(time.perf_counter() - began)
        figures[name] = sum(map(len, words)) / sorted(times)[2]
    return figures


if __name__ == "__main__":
    worker({"iterations_to": iterations_to, "train": train, "tag": tag})
