"""python-crfsuite, L-BFGS, all feature/label pairs, c2 = 1: to objective 50 and to convergence."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path
from typing import Any

from common import load, measure, ratio, spread, window_features, worker

HERE = Path(__file__).parent


def train(iterations: float) -> dict[str, Any]:
    """Train for so many iterations (0: to convergence)."""
    import pycrfsuite

    X, y = load("esp.train")
    began = time.perf_counter()
    trainer = pycrfsuite.Trainer("lbfgs", verbose=True)
    parameters: dict[str, Any] = {"c1": 0.0, "c2": 1.0}
    parameters |= {"feature.possible_states": True, "feature.possible_transitions": True}
    parameters |= {"max_iterations": int(iterations)} if iterations else {}
    trainer.set_params(parameters)
    messages: list[str] = []
    trainer.message = messages.append
    for words, labels in zip(X, y, strict=True):
        trainer.append(window_features(words), labels)
    with tempfile.TemporaryDirectory() as folder:
        training = time.perf_counter()
        trainer.train(str(Path(folder) / "model"))
        ended = time.perf_counter()
    log = "".join(messages)
    losses = [float(value) for value in re.findall(r"Loss: ([\d.]+)", log)]
    return {
        "whole": ended - began,
        "training": ended - training,
        "objective": losses[-1],
        "iterations": len(losses),
    }


def compare(rounds: int = 3) -> list[tuple[str, str]]:
    """Rows of the table: what, and how many times faster we are."""
    rows = []
    ours, theirs = str(HERE / "fuda_jobs.py"), __file__
    for name, iterations in (("to its objective after 50 iterations", 50), ("to its converged objective", 0)):
        measured: dict[str, list[dict[str, Any]]] = {"theirs": [], "two": [], "one": []}
        needed = 0
        for _ in range(rounds if iterations else max(1, rounds - 1)):
            measured["theirs"].append(measure(theirs, "train", iterations))
            if not needed:
                run = measure(ours, "iterations_to", measured["theirs"][0]["objective"])
                needed = run["iterations"]
                if needed is None:
                    rows.append((f"{name}: not reached", f"best {run['best']:.2f}"))
                    break
            measured["two"].append(measure(ours, "train", needed, 2))
            measured["one"].append(measure(ours, "train", needed, 1))
        if not needed:
            continue

        def column(contender: str, figure: str) -> list[float]:
            return [figures[figure] for figures in measured[contender]]  # noqa: B023

        first, last = measured["theirs"][0], measured["two"][-1]
        rows += [
            (
                f"{name}: objective theirs / ours",
                f"{first['objective']:.2f} in {first['iterations']} iterations / "
                f"{last['objective']:.2f} in {needed} ({last['evaluations']} gradients)",
            ),
            (f"{name}: their training, seconds", spread(column("theirs", "training"))),
            (f"{name}: our training, 2 threads, seconds", spread(column("two", "training"))),
            (f"{name}: our training, 1 thread, seconds", spread(column("one", "training"))),
            (f"{name}: training, 2 threads", ratio(column("theirs", "training"), column("two", "training"))),
            (f"{name}: training, 1 thread", ratio(column("theirs", "training"), column("one", "training"))),
            (f"{name}: end to end, 2 threads", ratio(column("theirs", "whole"), column("two", "whole"))),
            (
                f"{name}: peak memory, MB, theirs / ours",
                f"{first['megabytes']:.0f} / {last['megabytes']:.0f}",
            ),
        ]
    return rows


if __name__ == "__main__":
    worker({"train": train})
