"""Concurrency: threads and processes of any kind give the same answers, and how long others wait.

First, one model answers under 16 threads, and in processes that are forked, spawned and run by
loky; every answer must be that of a single thread. Then a thread that only counts time runs beside
`fit`, `predict`, `save` and `load` of each learner on Spanish sentences, and its longest pause is
printed: for so long another thread of Python waits for the interpreter. The first call of a
process, which reads compiled code from the disk or compiles, is measured apart.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import joblib

import fuda
from reliability.cases import cases

THREADS = 16
TICK = 0.001  # seconds
CORPUS = Path(__file__).resolve().parents[2] / "shared/data/conll2002/esp.train"
LEARNERS: dict[str, Callable[[], Any]] = {
    "HMM": fuda.HMM,
    "CRF": partial(fuda.CRF, max_iter=10),
    "MEMM": partial(fuda.MEMM, max_iter=10),
    "SemiCRF": partial(fuda.SemiCRF, max_iter=10),
    "HMPerceptron": partial(fuda.HMPerceptron, epochs=2),
    "HMSVM": partial(fuda.HMSVM, max_iter=3),
    "MarginalizedPerceptron": partial(fuda.MarginalizedPerceptron, epochs=1, calibrate=False),
    "MarginalizedSVM": partial(fuda.MarginalizedSVM, epochs=1, calibrate=False),
}


def answers(path: str, questions: Any) -> list[Any]:
    """Load a model and label structures."""
    labels: list[Any] = fuda.load(path).predict(questions).tolist()
    return labels


def by_threads(name: str, path: Path, count: int) -> tuple[list[Any], list[list[Any]]]:
    """The labels that one thread finds alone, and those that threads find at the same time.

    The model is saved for processes. Two of the threads fit a model of their own meanwhile.
    """
    case = cases()[name]
    model = case.model.fit(case.structures, case.labels)
    model.save(path)
    alone = model.predict(case.questions).tolist()
    model._cached = None  # what the first prediction prepares, all threads prepare at once

    def fit_and_predict() -> Any:
        new_model = cases()[name].model
        return new_model.fit(case.structures, case.labels).predict(case.questions)

    with ThreadPoolExecutor(THREADS) as threads:
        futures = [threads.submit(model.predict, case.questions) for _ in range(count)]
        futures += [threads.submit(fit_and_predict) for _ in range(2)]
        return alone, [future.result().tolist() for future in futures]


def disagreements(names: list[str], count: int) -> tuple[int, int]:
    """How many answers threads and processes gave, and how many were others than alone."""
    expected: dict[str, list[Any]] = {}
    total = others = 0

    def judge(way: str, named_answers: list[tuple[str, list[Any]]]) -> None:
        nonlocal total, others
        total += len(named_answers)
        for name, answer in named_answers:
            if answer != expected[name]:
                others += 1
                print(f"{name}: another answer by {way}", file=sys.stderr)

    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            expected[name], answered = by_threads(name, Path(folder) / name, count)
            judge("threads", [(name, answer) for answer in answered])
            print(f"{name}: {len(answered)} answers by threads", file=sys.stderr)
        paths, questions = (
            [str(Path(folder) / name) for name in names],
            [cases()[name].questions for name in names],
        )
        for method in ("fork", "spawn"):
            with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as processes:
                judge(method, list(zip(names, processes.map(answers, paths, questions), strict=True)))
        tasks = (joblib.delayed(answers)(path, X) for path, X in zip(paths, questions, strict=True))
        judge("loky", list(zip(names, joblib.Parallel(2, backend="loky")(tasks), strict=True)))
    return total, others


def longest_pause(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds that work takes, and the longest time between two ticks of a thread beside it."""
    ticks, done = [time.perf_counter()], threading.Event()

    def tick() -> None:
        while not done.is_set():
            time.sleep(TICK)
            ticks.append(time.perf_counter())

    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    done.set()
    ticker.join()
    return seconds, max(b - a for a, b in pairwise(ticks)) - TICK


def pauses(name: str, size: int) -> dict[str, tuple[float, float]]:
    """Time and longest pause of each operation: the first call, and the best of three others."""
    data = fuda.read(CORPUS)
    X, y = data.X[:size], (data.y or [])[:size]
    model, waits = LEARNERS[name](), {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of training that ended early
        path = Path(folder) / "model.fuda"
        work: dict[str, Callable[[], object]] = {
            "nothing (the noise of this machine)": lambda: time.sleep(1),
            "fit": lambda: model.fit(X, y),
            "predict": lambda: model.predict(X),
            "save": lambda: model.save(path),
            "load": lambda: fuda.load(path),
        }
        for operation, function in work.items():
            waits[f"{operation}, first"] = longest_pause(function)
            waits[operation] = min((longest_pause(function) for _ in range(3)), key=itemgetter(1))
    return waits


def in_process(name: str, size: int, compiling: bool) -> None:
    """Print the pauses of a learner, measured in a process of its own, to standard error."""
    line = [sys.executable, "-m", "reliability.concurrency", "--child", name, "--size", str(size)]
    with tempfile.TemporaryDirectory() as folder:
        # Code compiled with other options is not that in the cache.
        fresh = {"NUMBA_CACHE_DIR": folder, "NUMBA_SLP_VECTORIZE": "1"} if compiling else {}
        subprocess.run(line, env=os.environ | fresh, check=True)


def main() -> int:
    """Compare answers, measure pauses; the last line states the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=64, help="predictions by threads per model (default: 64)")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose names contain this")
    parser.add_argument("--size", type=int, default=1000, help="sentences for the pauses; 0 leaves them out")
    parser.add_argument("--compiling", action="store_true", help="also measure pauses with nothing compiled")
    parser.add_argument("--child", metavar="LEARNER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        for operation, (seconds, pause) in pauses(options.child, options.size).items():
            words = f"{options.child} {operation}: {seconds * 1e3:.0f} ms, longest pause {pause * 1e3:.0f} ms"
            print(words, file=sys.stderr)
        return 0
    start = time.monotonic()
    total, broken = disagreements([name for name in cases() if options.only in name], options.runs)
    if options.size:
        for name in LEARNERS:
            in_process(name, options.size, compiling=False)
            if options.compiling:
                in_process(name, options.size, compiling=True)
    seconds = time.monotonic() - start
    print(f"concurrency: {total} answers, {broken} others than alone, {THREADS} threads, {seconds:.0f} s")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
