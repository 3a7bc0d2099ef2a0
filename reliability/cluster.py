"""Kill −9 of workers at random moments of trainings on a cluster: they end in the same result.

Each run trains a CRF or a marginalized perceptron on two workers of this machine, kills one of them
at a random moment, and compares what was measured with a training without a cluster: the objective of
every iteration to 1e-9, or the mistakes of every epoch.

    python -m reliability.cluster [--runs N] [--seed S]
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from fuda import CRF, MarginalizedPerceptron, datasets
from reliability.running import run

DATA = datasets.load_product_usage()
X, Y = [list(x.observations) for x in DATA.X[:200]], DATA.y[:200]
MODELS = {
    "CRF": CRF(max_iter=40, tol=0.0),
    "MarginalizedPerceptron": MarginalizedPerceptron(epochs=6, orders=1, mixing=0.5, calibrate=False),
}


def measured(name: str, address: str | None) -> tuple[list[float], float]:
    """What a training measures, iteration by iteration, and the seconds it takes."""
    began = time.perf_counter()
    model: Any = MODELS[name].set_params(cluster=address).fit(X, Y)
    seconds = time.perf_counter() - began
    return [h.objective for h in model.result_.history] if name == "CRF" else model.mistakes_, seconds


def kill_later(cluster: LocalCluster, seconds: float, chosen: int) -> threading.Timer:
    """Kill a worker after some seconds."""
    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
        pids = sorted(client.run(os.getpid).values())
    timer = threading.Timer(seconds, os.kill, (pids[chosen], signal.SIGKILL))
    timer.start()
    return timer


def campaign(runs: int, seed: int, folder: Path) -> tuple[list[str], str]:
    """Train and kill."""
    rng, broken, during, began = random.Random(seed), [], 0, time.perf_counter()
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=60) as cluster:
        usual = {}
        for name in MODELS:
            measured(name, cluster.scheduler_address)  # workers load and compile code
            usual[name] = measured(name, None)[0], measured(name, cluster.scheduler_address)[1]
        for number in range(runs):
            name = list(MODELS)[number % 2]
            expected, seconds = usual[name]
            moment = rng.uniform(0.0, seconds)
            timer = kill_later(cluster, moment, rng.randrange(2))
            found, took = measured(name, cluster.scheduler_address)
            during += not timer.is_alive()
            timer.join()
            same = len(found) == len(expected) and np.allclose(found, expected, rtol=1e-9, atol=0.0)
            print(
                f"{name}: killed after {moment:.1f} s, took {took:.1f} s, usually {seconds:.1f}", flush=True
            )
            if not same:
                broken.append(f"{name}: seed {seed}, run {number}: {found} and not {expected}")
    took = time.perf_counter() - began
    return broken, f"{runs} kills, {during} of them during a training, {len(broken)} broken, {took:.0f} s"


if __name__ == "__main__":
    sys.exit(run(__doc__, 10, campaign))
