"""Kill −9 of workers at random moments of trainings on a cluster: they end in the same result.

Each run trains a CRF or a marginalized perceptron on two workers of this machine, kills one of
them at a random moment, and compares the objective of every iteration, or the mistakes of every
epoch, with those of a training in which nothing was killed. They are the same to the last bit.

    python -m reliability.cluster [--runs N] [--seed S]
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster

from fuda import CRF, MarginalizedPerceptron, datasets
from reliability.running import Findings, run

DATA = datasets.load_product_usage()
X, Y = [list(x.observations) for x in DATA.X[:200]], DATA.y[:200]
MODELS = {
    "CRF": CRF(max_iter=40, tol=0.0),
    "MarginalizedPerceptron": MarginalizedPerceptron(epochs=6, orders=1, mixing=0.5, calibrate=False),
}


def measured(name: str, address: str, callback: Any = None) -> tuple[list[float], float]:
    """What a training measures, iteration by iteration, and the seconds it takes."""
    began = time.perf_counter()
    model: Any = MODELS[name].set_params(cluster=address, callback=callback).fit(X, Y)
    seconds = time.perf_counter() - began
    return [h.objective for h in model.result_.history] if name == "CRF" else model.mistakes_, seconds


def on_two_workers(name: str, rng: random.Random | None, iterations: int = 0) -> tuple[list[float], float]:
    """What a training measures on a new cluster; an `rng` kills a worker at a random moment."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=60) as cluster:
        with Client(cluster, set_as_default=False) as client:
            pids = sorted(client.run(os.getpid).values())
        kill = rng and killer(rng.choice(pids), rng.randint(1, iterations - 2), rng.uniform(0.0, 0.2))
        return measured(name, cluster.scheduler_address, kill)


def killer(pid: int, iteration: int, delay: float) -> Callable[[Any], None]:
    """A callback that kills a process some moments after an iteration."""

    def callback(step: Any) -> None:
        if step.iteration == iteration:
            threading.Timer(delay, os.kill, (pid, signal.SIGKILL)).start()

    return callback


def units(runs: int, seed: int) -> list[range]:
    """All runs, one after another: each has two workers."""
    return [range(runs)]


def work(unit: range, seed: int, folder: Path) -> Findings:
    """Train and kill."""
    rng, broken = random.Random(seed), []
    expected = {name: on_two_workers(name, None)[0] for name in MODELS}
    for number in unit:
        name = list(MODELS)[number % 2]
        identity, took = on_two_workers(name, rng, len(expected[name]))
        same = identity == expected[name]
        print(f"{name}: {'the same' if same else 'broken'}, {took:.1f} s", file=sys.stderr, flush=True)
        if not same:
            broken.append(f"{name}: seed {seed}, run {number}: {identity} and not {expected[name]}")
    return Findings(broken, Counter({"kills during trainings": len(unit)}))


if __name__ == "__main__":
    sys.exit(run(__doc__, 10, units, work))
