"""The kernel machine: its inner loop against this machine's limit, and training on Spanish.

A *cell* is a pair of positions (τ,t), visited once on the way up and once on the way down. A
visit reads k(τ,t) and K_U(τ−1,t−1), adds 1, multiplies, and writes K_U(τ,t): so the limit is
half the rate of

    along[t] = row[t] · (1 + along[t])

over arrays in the innermost cache. What a push does besides (rows of k, equal words,
sums into the scores) is not in the limit. Both are timed in turn with all cores at work, in
seconds that a core has spent on them, so that other programs disturb little; the figure is the
median of their ratios.
"""

from __future__ import annotations

import resource
import statistics
import time

import numpy as np
from numba import njit

from common import load
from fuda import MarginalizedPerceptron
from fuda.data.structures import as_structures
from fuda.data.window_encoding import WindowEncoder
from fuda.kernels import Polynomial
from fuda.marginalized.engines.cpu.engine import CpuEngine
from fuda.marginalized.priors import Prior
from fuda.marginalized.problem import Examples, Settings, Sources
from fuda.metrics import entity_scores, label_scores
from fuda.runtime.parallel import run, usable_cores

_STEPS = 200_000
_BLOCK = 1024
_PUSHES = 200
_ROUNDS = 7
_LABELS = 9
_LEGAL, _POSTERIOR = {"decode": "viterbi", "scheme": "IOB2"}, {"decode": "posterior", "scheme": None}


@njit(nogil=True)
def _step_often(row: np.ndarray, along: np.ndarray, times: int) -> None:
    for _ in range(times):
        for t in range(len(row)):
            along[t] = row[t] * (1.0 + along[t])


def _aligned() -> np.ndarray:
    """A block of memory at the start of a cache line, which a quarter of the time depends on."""
    memory = np.empty(_BLOCK + 8)
    return memory[-memory.ctypes.data % 64 // 8 :][:_BLOCK]


def _limit() -> float:
    """Cells per second and core of the bare loop."""

    def work(_: int) -> None:
        row, along = _aligned(), _aligned()
        row[:], along[:] = 0.1, 1.0
        _step_often(row, along, _STEPS)

    began = time.process_time()
    run(work, range(usable_cores()))
    return usable_cores() * _STEPS * _BLOCK / 2 / (time.process_time() - began)


def _pushed(engine: CpuEngine, first: int) -> float:
    """Cells per second and core of pushes with mistakes at both ends, which visit all cells."""
    sizes, cells = engine.problem.sources.sizes, 0
    for i in range(first, first + _PUSHES):
        alpha = np.zeros((sizes[i], _LABELS))
        alpha[0, :2] = alpha[-1, :2] = 1.0, -1.0
        engine.push(i, alpha)
        cells += int(sizes[i]) * int(engine.problem.targets.offsets[-1])
    began = time.process_time()
    engine.all_scores()
    return cells / (time.process_time() - began)


def _loop(X: list[list[str]]) -> list[tuple[str, str]]:
    encoded = WindowEncoder("spelling", 0).fit(as_structures(X))
    examples = Examples.of(encoded, Prior(np.full((encoded.corpus.size, _LABELS), 1 / _LABELS)))
    settings = Settings(Polynomial(2).normalized(), np.eye(_LABELS), 3.0, 0.0)
    engine = CpuEngine(Sources(settings, examples).problem())
    _limit(), _pushed(engine, 0)  # compiled
    pairs = [(_pushed(engine, _PUSHES * r), _limit()) for r in range(1, _ROUNDS + 1)]
    share = statistics.median(ours / limit for ours, limit in pairs)
    ours, limit = (statistics.median(column) for column in zip(*pairs, strict=True))
    return [
        ("cells per second and core of a push", f"{ours / 1e9:.2f} billion"),
        ("the machine's limit", f"{limit / 1e9:.2f} billion"),
        ("share of the limit, median of ratios", f"{share:.0%}"),
    ]


def _small(X: list[list[str]], y: list[list[str]]) -> list[tuple[str, str]]:
    began, scores = time.perf_counter(), []
    for fold in range(5):
        inside = [i for i in range(300) if i // 60 != fold]
        outside = slice(60 * fold, 60 * fold + 60)
        model = MarginalizedPerceptron(**_LEGAL).fit([X[i] for i in inside], [y[i] for i in inside])
        whole = model.predict(X[outside])
        posterior = label_scores(y[outside], model.set_params(**_POSTERIOR).predict(X[outside])).micro.f1
        scores.append(
            (
                posterior,
                label_scores(y[outside], whole).micro.f1,
                entity_scores(y[outside], whole).micro.f1,
            )
        )
    seconds, means = time.perf_counter() - began, 100 * np.mean(scores, axis=0)
    return [
        ("300 sentences, 5 folds: label F1 posterior", f"{means[0]:.1f}"),
        ("… with the legal Viterbi decoding: label F1, entity F1", f"{means[1]:.1f}, {means[2]:.1f}"),
        ("… all folds", f"{seconds:.1f} s"),
    ]


def _whole(X: list[list[str]], y: list[list[str]]) -> list[tuple[str, str]]:
    began = time.perf_counter()
    model = MarginalizedPerceptron(epochs=8, **_LEGAL).fit(X, y)
    trained = time.perf_counter()
    new, truth = load("esp.testb")
    whole = model.predict(new)
    tagged = time.perf_counter()
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    predicted = model.set_params(**_POSTERIOR).predict(new)
    labels, entities = label_scores(truth, whole).micro.f1, entity_scores(truth, whole).micro.f1
    corrected_at = time.perf_counter()
    model.partial_fit(new[:1], truth[:1])
    corrected = time.perf_counter() - corrected_at
    return [
        ("esp.train, 8 epochs, word + spelling", f"{trained - began:.1f} s, {gigabytes:.2f} GB"),
        ("… mistakes of each epoch", ", ".join(map(str, model.mistakes_[:8]))),
        ("tagging testb", f"{tagged - trained:.1f} s"),
        ("label F1 on testb, posterior", f"{100 * label_scores(truth, predicted).micro.f1:.2f}"),
        (
            "… with the legal Viterbi decoding: label F1, entity F1",
            f"{100 * labels:.2f}, {100 * entities:.2f}",
        ),
        ("one corrected sentence", f"{1000 * corrected:.0f} ms"),
    ]


def rows() -> list[tuple[str, str]]:
    """Rows of the table."""
    X, y = load("esp.train")
    return [*_loop(X), *_small(X, y), *_whole(X, y)]


if __name__ == "__main__":
    for name, figure in rows():
        print(f"| {name} | {figure} |", flush=True)
