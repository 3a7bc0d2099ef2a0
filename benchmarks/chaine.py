"""chaine, a descendant of CRFsuite: training end to end for 50 iterations of L-BFGS."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import load, measure, ratio, spread, window_features, worker

HERE = Path(__file__).parent


def train() -> dict[str, Any]:
    """Train for 50 iterations, from words and labels."""
    # this file has the rival's name: take its folder off the path before importing the rival
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != HERE.resolve()]
    sys.modules.pop("chaine", None)
    from chaine.training import Trainer

    X, y = load("esp.train")
    began = time.perf_counter()
    trainer = Trainer(
        "lbfgs", max_iterations=50, c1=0.0, c2=1.0, all_possible_states=True, all_possible_transitions=True
    )
    with tempfile.TemporaryDirectory() as folder:
        data = [[dict.fromkeys(row, True) for row in window_features(words)] for words in X]
        trainer.train(data, y, model_filepath=str(Path(folder) / "model"))
        ended = time.perf_counter()
    return {"whole": ended - began}


def compare(rounds: int = 2) -> list[tuple[str, str]]:
    """Rows of the table: what, and how many times faster we are."""
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(measure(__file__, "train")["whole"])
        ours.append(measure(str(HERE / "fuda_jobs.py"), "train", 50, 2)["whole"])
    return [
        ("50 iterations end to end, seconds, theirs / ours", f"{spread(theirs)} / {spread(ours)}"),
        ("50 iterations end to end, 2 threads", ratio(theirs, ours)),
    ]


if __name__ == "__main__":
    worker({"train": train})
