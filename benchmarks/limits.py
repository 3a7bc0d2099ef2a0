"""What a perfect machine would need for one iteration of CRF training, and how far we are from it.

The counts are of the work that the model requires, at the rates that this machine reaches with
nothing else to do: N tokens, L labels, C channels, n weights, nnz entries of the table.

- Arithmetic: forward, backward and pair expectations are 3 L² multiply-adds per token.
- Caches: C rows of L numbers per token are read in the forward pass, and read and written in the
  gather of the gradient; for every entry of the table and channel a row of weights and one of the
  gradient are read.
- Memory: L-BFGS reads its 2m single-precision vectors twice; objective and line search read and
  write about ten vectors.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from numba import njit

from common import load, word_features
from fuda import CRF, Sequence
from fuda.inference.simd_doubles import LANES, multiply
from fuda.optimize.vectors import VectorArithmetic
from fuda.runtime.parallel import run, usable_cores

_MEMORY_VECTORS, _OTHER_VECTORS = 10, 10


@njit(nogil=True)
def _multiply_often(matrix: np.ndarray, vectors: np.ndarray, out: np.ndarray, times: int) -> None:
    for _ in range(times):
        multiply(matrix, vectors, out)


def _multiply_adds_per_second(size: int) -> float:
    """Multiply-adds in a cache, by all cores."""
    times = 200_000

    def work(_: int) -> None:
        _multiply_often(np.full((size, size), 0.1), np.ones((size, LANES)), np.empty((size, LANES)), times)

    run(work, range(usable_cores()))
    began = time.perf_counter()
    run(work, range(usable_cores()))
    return usable_cores() * times * size * size * LANES / (time.perf_counter() - began)


def _bytes_per_second(size: int) -> float:
    """Bytes read and written by a sum of two vectors of that many numbers, by all cores."""
    vectors, a, b, out = VectorArithmetic(size), np.ones(size), np.ones(size), np.empty(size)
    rounds = max(3, 200_000_000 // size)
    vectors.move(a, 2.0, b, out)
    began = time.perf_counter()
    for _ in range(rounds):
        vectors.move(a, 2.0, b, out)
    return rounds * 3 * 8 * size / (time.perf_counter() - began)


def rows() -> list[tuple[str, str]]:
    """Rows of the table."""
    X, y = load("esp.train")
    warnings.simplefilter("ignore")
    CRF(features=word_features, max_iter=12).fit(X[:300], y[:300])
    model = CRF(features=word_features, max_iter=40, tol=0.0).fit(X, y)
    history = model.result_.history[10:]
    measured = float(np.median(np.diff([p.seconds for p in history])))
    gradients = (history[-1].evaluations - history[0].evaluations) / (len(history) - 1)

    encoded = model.encoder_.encode([Sequence(words) for words in X])
    tokens, labels, channels = encoded.corpus.size, len(model.classes_), len(encoded.channels)
    entries, weights = encoded.tables[0].matrix.nnz, len(model.weights_)
    adds = 3 * labels**2 * tokens
    cached = 8 * labels * channels * (3 * tokens + 2 * entries)
    streamed = 2 * 2 * _MEMORY_VECTORS * 4 * weights + _OTHER_VECTORS * 8 * weights
    add_rate, cache_rate, memory_rate = (
        _multiply_adds_per_second(labels),
        _bytes_per_second(300_000),
        _bytes_per_second(8_000_000),
    )
    needed = adds / add_rate + cached / cache_rate + streamed / memory_rate
    return [
        ("multiply-adds per second, in cache", f"{add_rate / 1e9:.1f} G"),
        ("bytes per second, vectors that fit into the shared cache", f"{cache_rate / 1e9:.1f} GB"),
        ("bytes per second, vectors that do not", f"{memory_rate / 1e9:.1f} GB"),
        ("arithmetic of an iteration", f"{adds / 1e6:.0f} M multiply-adds, {1e3 * adds / add_rate:.1f} ms"),
        ("cache traffic of an iteration", f"{cached / 1e6:.0f} MB, {1e3 * cached / cache_rate:.1f} ms"),
        ("memory traffic of an iteration", f"{streamed / 1e6:.0f} MB, {1e3 * streamed / memory_rate:.1f} ms"),
        ("all three, one after another", f"{1e3 * needed:.1f} ms"),
        (
            "measured",
            f"{1e3 * measured:.1f} ms with {gradients:.2f} gradients, {measured / needed:.1f} of the limit",
        ),
    ]


if __name__ == "__main__":
    for name, figure in rows():
        print(f"{name:<60}{figure}")
