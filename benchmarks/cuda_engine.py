"""The kernel machine on a card: the Spanish corpus with the CUDA engine, also against the CPU.

    python benchmarks/cuda_engine.py [PART…]

Parts: `order` (one order of visits, epoch by epoch), `together` (several orders at the same time),
`cells` (pairs of positions per second), `fit` (the default fit), `prior` (a CRF as prior), `large`
(the corpus eight times, with other words), `loads` (with a table that does not fit), `compile`
(the first use in a process, with and without a cache), `cpu` (the default fit by the CPU engine),
`profile` (a launch on the large corpus, for a profiler). Times are wall clock, after all kernels
have been used once. Features are words and their spelling.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

import numpy as np

from common import load
from fuda import CRF, MarginalizedPerceptron
from fuda.data.structures import as_structures
from fuda.data.window_encoding import WindowEncoder
from fuda.kernels import Kernel, Linear, Polynomial
from fuda.marginalized.engines import cuda as modules
from fuda.marginalized.engines.cuda.engine import CudaEngine
from fuda.marginalized.engines.cuda.machine import Machine
from fuda.marginalized.priors import Prior
from fuda.marginalized.problem import Examples, Problem, Settings, Sources
from fuda.metrics import entity_scores, label_scores

Rows = list[tuple[str, str]]
_EPOCHS, _LABELS, _COPIES = 8, 9, 8
_KERNEL = Polynomial(2).normalized()
_WORDS = {"features": "spelling", "kernel": _KERNEL}
_LEGAL, _POSTERIOR = {"decode": "viterbi", "scheme": "IOB2"}, {"decode": "posterior", "scheme": None}


class Epoch(NamedTuple):
    """An epoch: mistakes of each perceptron, sentences pushed, and pairs of positions visited."""

    seconds: float
    mistakes: list[int]
    pushed: int
    visits: float


def _problem(X: list[list[str]], kernel: Kernel = _KERNEL, features: str = "spelling") -> Problem:
    """The problem of the default fit, without the choice of c."""
    encoded = WindowEncoder(features, 0).fit(as_structures(X))
    examples = Examples.of(encoded, Prior(np.full((encoded.corpus.size, _LABELS), 1 / _LABELS)))
    return Sources(Settings(kernel, np.eye(_LABELS), 3.0, 0.0), examples).problem()


def _numbers(y: list[list[str]]) -> np.ndarray:
    names = {name: i for i, name in enumerate(sorted({label for labels in y for label in labels}))}
    return np.array([names[label] for labels in y for label in labels])


def _epochs(machine: Machine, orders: list[list[np.ndarray]], labels: np.ndarray) -> list[Epoch]:
    """What each epoch of some perceptrons at the same time takes, given the orders of each."""
    scores, amounts, epochs = machine.zeros(len(orders)), np.ones(len(labels)), []
    for each in zip(*orders, strict=True):
        began = time.perf_counter()
        mistakes = machine.epochs(scores, list(each), labels, amounts)
        seconds = time.perf_counter() - began
        of_each = [_visits(machine, at) for at, _ in mistakes]
        epochs.append(Epoch(seconds, [len(at) for at, _ in mistakes], *map(sum, zip(*of_each, strict=True))))
    return epochs


def _visits(machine: Machine, places: np.ndarray) -> tuple[int, float]:
    """The structures with these mistakes, and the pairs of positions that their pushes visit.

    A push goes up to its last mistake, and down to its first.
    """
    nodes, owners = machine.places.nodes(places)
    pushed, first, count = np.unique(owners, return_index=True, return_counts=True)
    side = machine.problem.targets
    up = nodes[first + count - 1] - side.offsets[pushed] + 1
    down = side.offsets[pushed + 1] - 1 - nodes[first]
    return len(pushed), float((up + down).sum()) * machine.places.size


def _shown(epochs: list[Epoch], name: str) -> Rows:
    seconds = sum(epoch.seconds for epoch in epochs)
    visits = sum(epoch.visits for epoch in epochs) / seconds / 1e9
    return [
        (name, f"{seconds:.3f} s, {visits:.0f} billion visits of cells per second"),
        ("… mistakes of the first", ", ".join(str(epoch.mistakes[0]) for epoch in epochs)),
        ("… milliseconds", ", ".join(f"{1000 * epoch.seconds:.1f}" for epoch in epochs)),
        ("… sentences pushed", ", ".join(f"{epoch.pushed}" for epoch in epochs)),
    ]


def _order(X: list[list[str]], y: list[list[str]]) -> Rows:
    problem, labels = _problem(X), _numbers(y)
    order = [np.arange(len(X))] * _EPOCHS
    rows = []
    for name in ("one order, with the first use", "one order", "one order"):
        began = time.perf_counter()
        machine = CudaEngine(problem)._machine
        preparation = time.perf_counter() - began
        epochs = _epochs(machine, [order], labels)
        rows += _shown(epochs, f"{name}, {_EPOCHS} epochs; {preparation:.3f} s to make the engine")
    pushed, seconds = np.array([(epoch.pushed, epoch.seconds) for epoch in epochs]).T
    slope, rest = np.polyfit(pushed, seconds, 1)
    error = np.abs(slope * pushed + rest - seconds).max()
    line = f"{1e6 * slope:.1f} µs a sentence + {1000 * rest:.2f} ms, off by at most {1000 * error:.2f} ms"
    return [*rows, ("… an epoch by its mistaken sentences", line)]


def _together(X: list[list[str]], y: list[list[str]]) -> Rows:
    labels, random, rows = _numbers(y), np.random.default_rng(0), []
    machine = CudaEngine(_problem(X))._machine
    orders = [[random.permutation(len(X)) for _ in range(_EPOCHS)] for _ in range(8)]
    for count in (1, 2, 4, 8):
        epochs = _epochs(machine, orders[:count], labels)
        rows += _shown(epochs, f"{count} orders at the same time")
        if count == 1:
            alone = [_epochs(machine, [order], labels) for order in orders[:4]]
            expected = [tuple(epoch.mistakes[0] for epoch in each) for each in alone]
        elif count == 4:
            same = expected == list(zip(*(epoch.mistakes for epoch in epochs), strict=True))
            rows.append(("… mistakes of all epochs as one after another", str(same)))
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
    machine = CudaEngine(problem)._machine
    scores, log = machine.zeros(), machine.log_of(alpha)
    machine.add(scores, log)
    for _ in range(3):
        machine.synchronize()
        began = time.perf_counter()
        machine.add(scores, log)
        machine.synchronize()
        seconds = time.perf_counter() - began
        billions = 2 * cells / seconds / 1e9
        rows.append(("visits of cells per second", f"{billions:.0f} billion ({seconds:.3f} s)"))
    return rows


def _scored(model: MarginalizedPerceptron, new: list[list[str]], truth: list[list[str]]) -> Rows:
    rows = []
    for name, decoding in (("posterior", _POSTERIOR), ("legal Viterbi", _LEGAL)):
        model.set_params(**decoding)
        model.predict(new)
        began = time.perf_counter()
        predicted = model.predict(new)
        seconds = time.perf_counter() - began
        labels, entities = label_scores(truth, predicted).micro.f1, entity_scores(truth, predicted).micro.f1
        rows.append((f"… {name}: label F1, entity F1", f"{100 * labels:.2f}, {100 * entities:.2f}"))
        rows.append(("… tagging testb", f"{seconds:.3f} s"))
    return rows


def _fit(X: list[list[str]], y: list[list[str]], engine: str = "cuda", **parameters: Any) -> Rows:
    new, truth = load("esp.testb")
    parameters = _WORDS | parameters
    MarginalizedPerceptron(epochs=1, engine=engine, **parameters).fit(X[:1500], y[:1500]).predict(new)
    rows, model = [], MarginalizedPerceptron(epochs=_EPOCHS, engine=engine, **_LEGAL, **parameters)
    for _ in range(2 if engine == "cuda" else 1):
        began = time.perf_counter()
        model.fit(X, y)
        rows.append((f"fit, engine={engine!r}", f"{time.perf_counter() - began:.2f} s"))
    rows.append(("… mistakes of the first order", ", ".join(map(str, model.mistakes_))))
    return [*rows, *_scored(model, new, truth)]


def _prior(X: list[list[str]], y: list[list[str]]) -> Rows:
    """With the time of one CRF apart."""
    new, truth = load("esp.testb")
    parameters = {"prior": CRF(features="S3"), "engine": "cuda", **_WORDS}
    model = MarginalizedPerceptron(epochs=5, **_LEGAL, **parameters)
    MarginalizedPerceptron(epochs=1, **parameters).fit(X[:1500], y[:1500]).predict(new)
    rows = []
    began = time.perf_counter()
    model.fit(X, y)
    rows.append(("fit with a CRF as prior, its training included", f"{time.perf_counter() - began:.2f} s"))
    began = time.perf_counter()
    CRF(features="S3").fit(X, y)
    rows.append(("… one CRF alone, of six", f"{time.perf_counter() - began:.2f} s"))
    rows.append(("… mistakes of the first order", ", ".join(map(str, model.mistakes_))))
    return [*rows, *_scored(model, new, truth)]


def _many(X: list[list[str]], y: list[list[str]]) -> tuple[Machine, np.ndarray, Rows]:
    """Eight copies of the corpus, with the words of each copy permuted among all words."""
    random, words = np.random.default_rng(0), sorted({word for words in X for word in words})
    many = list(X)
    for _ in range(_COPIES - 1):
        other = dict(zip(words, random.permutation(words).tolist(), strict=True))
        many += [[other[word] for word in sentence] for sentence in X]
    began = time.perf_counter()
    problem, labels = _problem(many), _numbers(y * _COPIES)
    prepared = time.perf_counter() - began
    machine = CudaEngine(problem)._machine
    return (
        machine,
        labels,
        [
            (f"{len(labels):,} tokens: encoded and coded", f"{prepared:.1f} s"),
            ("… bytes on the card", f"{machine.plan.needed:,}"),
        ],
    )


def _large(X: list[list[str]], y: list[list[str]]) -> Rows:
    machine, labels, rows = _many(X, y)
    order = np.arange(len(X) * _COPIES)
    return [*rows, *_shown(_epochs(machine, [[order] * 3], labels), "… three epochs")]


def _profile(X: list[list[str]], y: list[list[str]]) -> Rows:
    """One launch of a few pushes of one order."""
    modules.machine._LAUNCH_CELLS = 1e9
    machine, labels, rows = _many(X, y)
    order = np.arange(len(X) * _COPIES)[:400]
    return [*rows, *_shown(_epochs(machine, [[order]], labels), "… an epoch of 400 sentences")]


def _loads(X: list[list[str]], y: list[list[str]]) -> Rows:
    """A table of all pairs of words, whole and in loads of a tenth of it."""
    X, y = X[:2000], y[:2000]
    rows, problem, labels = [], _problem(X, Linear().normalized(), "text"), _numbers(y)
    orders = [[np.arange(len(X))] * 3]
    for name, share in (("first use", 1.0), ("whole table", 1.0), ("loads of a tenth of it", 0.1)):
        machine = CudaEngine(problem)._machine
        if share < 1.0:
            machine.plan = machine.plan._replace(rows=int(share * machine.plan.rows), has_one_load=False)
            machine._all = None
        rows += _shown(_epochs(machine, orders, labels), f"{len(labels):,} tokens, {name}")
    return rows


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
    machine = CudaEngine(problem)._machine
    machine.epochs(machine.zeros(), [np.arange(len(X))], labels, np.ones(len(labels)))
    middle = time.perf_counter()
    machine.add(machine.zeros(), machine.log_of(np.ones((len(labels), _LABELS))))
    machine.synchronize()
    scores = time.perf_counter() - middle
    print(f"{middle - began:.2f} s for an epoch, {scores:.2f} s more for scores")
    return []


PARTS = {
    "order": _order,
    "together": _together,
    "cells": _cells,
    "fit": _fit,
    "prior": _prior,
    "large": _large,
    "loads": _loads,
    "compile": _compile,
    "cpu": lambda X, y: _fit(X, y, "cpu"),
    "first": _first,
    "profile": _profile,
}


def main(parts: list[str]) -> None:
    """Print the rows of some parts."""
    X, y = load("esp.train")
    for part in parts or [name for name in PARTS if name not in ("first", "profile")]:
        for name, value in PARTS[part](X, y):
            print(f"{name:50} {value}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
