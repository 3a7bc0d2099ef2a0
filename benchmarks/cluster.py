"""The CRF on a cluster of this machine: workers of one thread, and local threads.

    python benchmarks/cluster.py [WORKERS…]     numbers of workers; 1 and 2 unless given

Beside seconds, which other programs on the machine spoil, it prints the CPU seconds of the longest
chain of what waits for one another: here, and on the busier worker.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from pathlib import Path

from distributed import Client, LocalCluster

from common import load
from fuda import CRF

ROUNDS, ITERATIONS, FIRST = 3, 20, 6  # the first iterations load code, and are not counted


def measured(X, y, cluster: LocalCluster | None, n_jobs: int | None = None) -> tuple[float, float, float]:
    """Median and least seconds of an iteration, and CPU seconds of the chain."""
    moments: list[tuple[float, float, float]] = []
    client = None if cluster is None else Client(cluster, set_as_default=False)

    def busiest() -> float:
        return 0.0 if client is None else max(client.run(time.process_time).values())

    def callback(iteration: object) -> None:
        number = len(moments) + 1
        others = busiest() if number in (FIRST, ITERATIONS) else 0.0
        moments.append((time.perf_counter(), time.process_time(), others))

    address = None if cluster is None else cluster.scheduler_address
    CRF(max_iter=ITERATIONS, tol=0.0, cluster=address, n_jobs=n_jobs, callback=callback).fit(X, y)
    if client is not None:
        client.close()
    walls = [b[0] - a[0] for a, b in zip(moments[FIRST:-2], moments[FIRST + 1 : -1], strict=True)]
    chain = sum(moments[-1][1:]) - sum(moments[FIRST - 1][1:])
    return statistics.median(walls), min(walls), chain / (ITERATIONS - FIRST)


def main(counts: list[int]) -> None:
    warnings.simplefilter("ignore")
    X, y = load("esp.train")
    for round in range(ROUNDS):
        for count in counts:
            with LocalCluster(
                n_workers=count, threads_per_worker=1, dashboard_address=":0", silence_logs=60
            ) as cluster:
                show(f"round {round}: {count} workers", measured(X, y, cluster))
        for threads in counts:
            show(f"round {round}: {threads} threads, no cluster", measured(X, y, None, threads))


def show(name: str, times: tuple[float, float, float]) -> None:
    busy = Path("/proc/loadavg").read_text().split()[0]
    ms = [f"{1e3 * seconds:.0f}" for seconds in times]
    print(f"{name:<34} median {ms[0]}, least {ms[1]}, CPU of the chain {ms[2]} ms; load {busy}", flush=True)


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1:]] or [1, 2])
