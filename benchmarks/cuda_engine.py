"""The kernel machine on a card: the Spanish corpus with the CUDA engine, and against the CPU engine.

    python benchmarks/cuda_engine.py [PART…]

Parts: `order` (one order of visits, epoch by epoch), `compile` (the first use in a process, with and
without a cache), `fit` (the default fit), `prior` (a CRF as prior), `large` (the corpus eight times,
with other words), `cells` (pairs of positions a second), `cpu` (the default fit by the CPU engine).
Times are wall clock, after all kernels have been used once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from common import load
from fuda import CRF, MarginalizedPerceptron
from fuda.data.structures import as_structures
from fuda.data.window_encoding import WindowEncoder
from fuda.kernels import Polynomial
from fuda.marginalized.engines.base import PerceptronState
from fuda.marginalized.engines.cuda.engine import CudaEngine
from fuda.marginalized.priors import Prior
from fuda.marginalized.problem import Examples, Problem, Settings, Sources
from fuda.metrics import entity_scores, label_scores

Rows = list[tuple[str, str]]
_EPOCHS, _LABELS, _COPIES = 8, 9, 8
_LEGAL, _POINTWISE = {"decode": "viterbi", "scheme": "IOB2"}, {"decode": "pointwise", "scheme": None}


def _problem(X: list[list[str]]) -> Problem:
    """The problem of the default fit, without the choice of c."""
    encoded = WindowEncoder("spelling", 0).fit(as_structures(X))
    examples = Examples.of(encoded, Prior(np.full((encoded.corpus.size, _LABELS), 1 / _LABELS)))
    return Sources(Settings(Polynomial(2).normalized(), np.eye(_LABELS), 3.0, 0.0), examples).problem()


def _numbers(y: list[list[str]]) -> np.ndarray:
    names = {name: i for i, name in enumerate(sorted({label for labels in y for label in labels}))}
    return np.array([names[label] for labels in y for label in labels])


def _trained(engine: CudaEngine, labels: np.ndarray, epochs: int) -> tuple[list[int], list[float], Any]:
    """Mistakes and seconds of each epoch, and the state."""
    order, amounts = np.arange(len(engine.problem.targets.sizes)), np.ones(len(labels))
    state, mistakes, seconds = PerceptronState(np.zeros((2, len(labels), _LABELS))), [], []
    for _ in range(epochs):
        began = time.perf_counter()
        mistakes.append(engine.perceptron_epoch(order, labels, amounts, state))
        seconds.append(time.perf_counter() - began)
    return mistakes, seconds, state


def _order(X: list[list[str]], y: list[list[str]]) -> Rows:
    problem, labels = _problem(X), _numbers(y)
    _trained(CudaEngine(problem), labels, 1)
    rows = []
    for _ in range(3):
        began = time.perf_counter()
        engine = CudaEngine(problem)
        made = time.perf_counter() - began
        mistakes, seconds, _ = _trained(engine, labels, _EPOCHS)
        rows.append(
            (f"one order, {_EPOCHS} epochs", f"{sum(seconds):.3f} s, and {made:.3f} to make the engine")
        )
    rows.append(("… mistakes of each epoch", ", ".join(map(str, mistakes))))
    rows.append(("… milliseconds of each epoch", ", ".join(f"{1000 * s:.1f}" for s in seconds)))
    return rows


def _cells(X: list[list[str]], y: list[list[str]]) -> Rows:
    """Pushes of all structures with marks at both ends, so that all cells are visited twice."""
    rows = []
    problem = _problem(X)
    few = slice(0, int(problem.sources.offsets[1000]))
    alpha = np.zeros((len(problem.targets.types), _LABELS))
    for ends in (problem.sources.offsets[:1000], problem.sources.offsets[1:1001] - 1):
        alpha[ends, :2] = 1.0, -1.0
    cells = (few.stop - few.start) * len(alpha)
    engine = CudaEngine(problem)
    machine, scores = engine._machine, engine._scores
    pushes = machine.pushes_of(alpha)
    machine.add(scores, pushes)
    for _ in range(3):
        machine.synchronize()
        began = time.perf_counter()
        machine.add(scores, pushes)
        machine.synchronize()
        seconds = time.perf_counter() - began
        billions = 2 * cells / seconds / 1e9
        rows.append(("visits of cells a second", f"{billions:.0f} billion ({seconds:.3f} s)"))
    return rows


def _scored(model: MarginalizedPerceptron, new: list[list[str]], truth: list[list[str]]) -> Rows:
    rows = []
    for name, decoding in (("pointwise", _POINTWISE), ("legal Viterbi", _LEGAL)):
        model.set_params(**decoding)
        model.predict(new)
        began = time.perf_counter()
        found = model.predict(new)
        seconds = time.perf_counter() - began
        labels, entities = label_scores(truth, found).micro.f1, entity_scores(truth, found).micro.f1
        rows.append((f"… {name}: label F1, entity F1", f"{100 * labels:.2f}, {100 * entities:.2f}"))
        rows.append(("… tagging testb", f"{seconds:.3f} s"))
    return rows


def _fit(X: list[list[str]], y: list[list[str]], engine: str = "cuda", **parameters: Any) -> Rows:
    new, truth = load("esp.testb")
    MarginalizedPerceptron(epochs=1, engine=engine, **parameters).fit(X[:300], y[:300]).predict(new[:5])
    rows, model = [], MarginalizedPerceptron(epochs=_EPOCHS, engine=engine, **_LEGAL, **parameters)
    for _ in range(2 if engine == "cuda" else 1):
        began = time.perf_counter()
        model.fit(X, y)
        rows.append((f"fit, engine={engine!r}", f"{time.perf_counter() - began:.2f} s"))
    rows.append(("… mistakes of the first order", ", ".join(map(str, model.mistakes_))))
    return [*rows, *_scored(model, new, truth)]


def _prior(X: list[list[str]], y: list[list[str]]) -> Rows:
    """With the CRF's own time apart: the same fit again with its out-of-fold marginals as arrays."""
    new, truth = load("esp.testb")
    model = MarginalizedPerceptron(prior=CRF(features="S3"), epochs=5, engine="cuda", **_LEGAL)
    MarginalizedPerceptron(prior=CRF(features="S3"), epochs=1, engine="cuda").fit(X[:300], y[:300])
    rows = []
    for _ in range(2):
        began = time.perf_counter()
        model.fit(X, y)
        rows.append(
            ("fit with a CRF as prior, its training included", f"{time.perf_counter() - began:.2f} s")
        )
    began = time.perf_counter()
    CRF(features="S3").fit(X, y)
    rows.append(("… one CRF alone, of six", f"{time.perf_counter() - began:.2f} s"))
    rows.append(("… mistakes of the first order", ", ".join(map(str, model.mistakes_))))
    return [*rows, *_scored(model, new, truth)]


def _large(X: list[list[str]], y: list[list[str]]) -> Rows:
    """Eight copies of the corpus, with the words of each copy permuted among all words."""
    random, words = np.random.default_rng(0), sorted({word for words in X for word in words})
    many = list(X)
    for _ in range(_COPIES - 1):
        other = dict(zip(words, random.permutation(words).tolist(), strict=True))
        many += [[other[word] for word in sentence] for sentence in X]
    began = time.perf_counter()
    problem, labels = _problem(many), _numbers(y * _COPIES)
    prepared = time.perf_counter() - began
    engine = CudaEngine(problem)
    mistakes, seconds, state = _trained(engine, labels, 3)
    pushed = np.unique(
        np.searchsorted(problem.sources.offsets, np.flatnonzero(state.sums[0].any(axis=1)), "right")
    )
    return [
        (f"{len(labels):,} tokens: encoded and coded", f"{prepared:.1f} s"),
        ("… bytes on the card", f"{engine._machine.bytes_needed():,}"),
        ("… mistakes of each epoch", ", ".join(map(str, mistakes))),
        ("… seconds of each epoch", ", ".join(f"{s:.2f}" for s in seconds)),
        ("… support structures", f"{len(pushed):,}"),
    ]


def _compile(X: list[list[str]], y: list[list[str]]) -> Rows:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        for name in ("first use, nothing cached", "first use in a process, cached"):
            out = subprocess.run(
                [sys.executable, __file__, "first"],
                env=environment,
                check=True,
                capture_output=True,
                text=True,
            )
            rows.append((name, out.stdout.strip().splitlines()[-1]))
    return rows


def _first(X: list[list[str]], y: list[list[str]]) -> Rows:
    """What the first epoch, and the first scores, of a process take."""
    X, y = X[:300], y[:300]
    problem, labels = _problem(X), _numbers(y)
    began = time.perf_counter()
    engine = CudaEngine(problem)
    _, seconds, state = _trained(engine, labels, 2)
    middle = time.perf_counter()
    engine.scores(state.alpha(True))
    scores = time.perf_counter() - middle
    print(f"{middle - began - seconds[1]:.2f} s for an epoch, {scores:.2f} s more for scores")
    return []


PARTS = {
    "order": _order,
    "cells": _cells,
    "fit": _fit,
    "prior": _prior,
    "large": _large,
    "compile": _compile,
    "cpu": lambda X, y: _fit(X, y, "cpu"),
    "first": _first,
}


def main(parts: list[str]) -> None:
    """Print the rows of some parts."""
    X, y = load("esp.train")
    for part in parts or [name for name in PARTS if name != "first"]:
        for name, value in PARTS[part](X, y):
            print(f"{name:50} {value}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
