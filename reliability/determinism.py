"""Determinism: the same data, parameters and seed give the same model bytes.

Each configuration is a process of its own, with its numbers of threads (`n_jobs`, and those of
BLAS, OpenMP and numba) and its PYTHONHASHSEED. All of them fit every learner on the same data,
where it can, continue the fit, and must arrive at the files of the first process, and at the same
predictions.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import fuda
from fuda.kernels import RBF, Linear, Polynomial
from reliability.cases import cases

POOLS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
THREADS = (1, 2, 5)


def large_cases() -> Iterator[tuple[str, Any, list[Any], list[Any]]]:
    """Learners on data that make several blocks and are large enough for the threads of BLAS."""
    chance = np.random.default_rng(0)
    sentences = [chance.integers(0, 400, size) for size in chance.integers(1, 40, 300)]
    points = chance.normal(size=(400, 60))
    words = [[f"w{k}" for k in sentence] for sentence in sentences]
    vectors = [list(points[sentence]) for sentence in sentences]
    labels = [[f"L{(k + (i > 3)) % 5}" for i, k in enumerate(sentence)] for sentence in sentences]
    on_words = {
        "CRF": fuda.CRF(max_iter=10),
        "CRF-cg": fuda.CRF(solver="cg", max_iter=5),
        "CRF-sgd": fuda.CRF(solver="sgd", max_iter=3),
        "CRF-markov": fuda.CRF(loss="markov", order=2, max_iter=5),
        "MEMM": fuda.MEMM(max_iter=5),
        "SemiCRF": fuda.SemiCRF(max_iter=5),
        "HMPerceptron": fuda.HMPerceptron(epochs=2),
        "HMPerceptron-dual": fuda.HMPerceptron(kernel=RBF(0.1), epochs=1),
        "HMSVM": fuda.HMSVM(kernel=Polynomial(2), max_iter=3),
        "MarginalizedPerceptron": fuda.MarginalizedPerceptron(prior=fuda.HMM(), orders=1, epochs=2),
        "MarginalizedSVM": fuda.MarginalizedSVM(C=1.0, epochs=2),
    }
    on_vectors = {
        "CRF-vectors": fuda.CRF(max_iter=10),
        "MEMM-vectors": fuda.MEMM(max_iter=5),
        "HMPerceptron-dual-vectors": fuda.HMPerceptron(kernel=RBF(0.1), epochs=1),
        "HMSVM-vectors": fuda.HMSVM(kernel=Linear(), max_iter=2),
        "MarginalizedPerceptron-vectors": fuda.MarginalizedPerceptron(kernel=RBF(0.01), orders=1, epochs=1),
    }
    for models, structures in ((on_words, words), (on_vectors, vectors)):
        for name, model in models.items():
            size = 60 if "dual" in name or "vectors" in name else 300
            yield f"large {name}", model, structures[:size], labels[:size]


def _threaded(model: Any, n_jobs: int | None) -> Any:
    """The model, with a number of threads where it has that parameter."""
    return model.set_params(n_jobs=n_jobs) if "n_jobs" in model.get_params() else model


def fingerprints(n_jobs: int, only: str, large: bool) -> dict[str, str]:
    """A hash of the files and predictions of every model before and after `partial_fit`."""
    digests = {}
    small = ((name, case.model, case.structures, case.labels) for name, case in cases().items())
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of training that ended early
        for name, model, X, y in (*small, *(large_cases() if large else ())):
            if not re.search(only, name):
                continue
            start = time.monotonic()
            digest, fitted = hashlib.sha256(), _threaded(clone(model), n_jobs).fit(X, y)
            for continued in (False, True):
                if continued and hasattr(fitted, "partial_fit"):
                    fitted.partial_fit(X[::-1], y[::-1])
                digest.update(json.dumps(fitted.predict(X).tolist()).encode())
                if name.startswith("Auto"):  # goes by the clock, and stores what it took
                    break
                _threaded(fitted, None).save(Path(folder) / "model.fuda")
                digest.update((Path(folder) / "model.fuda").read_bytes())
                _threaded(fitted, n_jobs)
            digests[name] = digest.hexdigest()
            print(f"{name}: {time.monotonic() - start:.1f} s", file=sys.stderr)
    return digests


def in_process(n_jobs: int, threads: int, hash_seed: int) -> dict[str, str]:
    """The fingerprints that a new process with the same arguments finds."""
    environment = os.environ | dict.fromkeys(POOLS, str(threads)) | {"PYTHONHASHSEED": str(hash_seed)}
    line = [sys.executable, "-m", "reliability.determinism", *sys.argv[1:], "--child", str(n_jobs)]
    ended = subprocess.run(line, env=environment, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(ended.stdout))


def main() -> int:
    """Compare processes; the last line states the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=9, help="processes (default: 9)")
    parser.add_argument("--seed", type=int, default=0, help="of numbers of threads and of hashes")
    parser.add_argument("--jobs", type=int, default=1, help="processes at the same time (default: 1)")
    parser.add_argument("--only", default="", metavar="PATTERN", help="models whose names match")
    parser.add_argument("--large", action="store_true", help="also on larger data")
    parser.add_argument("--child", type=int, metavar="N_JOBS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        json.dump(fingerprints(options.child, options.only, options.large), sys.stdout)
        return 0
    start, chance, broken = time.monotonic(), random.Random(options.seed), 0
    ways = [(1, 1, 0)] + [
        (THREADS[run % 3], THREADS[(run + run // 3) % 3], chance.randrange(1, 2**32))
        for run in range(1, options.runs)
    ]
    with ThreadPoolExecutor(options.jobs) as pool:
        expected, *others = pool.map(lambda way: in_process(*way), ways)
    for (jobs, threads, hash_seed), digests in zip(ways[1:], others, strict=True):
        for name in expected:
            if digests[name] != expected[name]:
                broken += 1
                where = f"n_jobs={jobs}, {threads} threads of libraries, PYTHONHASHSEED={hash_seed}"
                print(f"{name}: another model with {where}", file=sys.stderr)
    models = f"{len(expected)} models in each of {options.runs} processes"
    figures = f"{models}, {broken} differ, seed {options.seed}, {time.monotonic() - start:.0f} s"
    print(f"determinism: {figures}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
