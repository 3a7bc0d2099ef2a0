"""sklearn-crfsuite: tagging from words to labels, feature extraction included."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from common import load, measure, ratio, spread, window_features, worker

HERE = Path(__file__).parent


def run() -> dict[str, Any]:
    """Train for 50 iterations, then tag testb and the training set."""
    import sys

    # this file has the rival's name: take its folder off the path before importing the rival
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != HERE.resolve()]
    sys.modules.pop("sklearn_crfsuite", None)
    from sklearn_crfsuite import CRF

    X, y = load("esp.train")
    began = time.perf_counter()
    model = CRF(
        algorithm="lbfgs",
        c1=0.0,
        c2=1.0,
        max_iterations=50,
        all_possible_states=True,
        all_possible_transitions=True,
    )
    model.fit([window_features(words) for words in X], y)
    figures: dict[str, Any] = {"whole": time.perf_counter() - began}
    for name in ("esp.testb", "esp.train"):
        words, _ = load(name)
        began = time.perf_counter()
        model.predict([window_features(sentence) for sentence in words])
        figures[name] = sum(map(len, words)) / (time.perf_counter() - began)
    return figures


def compare(rounds: int = 3) -> list[tuple[str, str]]:
    """Rows of the table: what, and how many times faster we are."""
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(measure(__file__, "run"))
        ours.append(measure(str(HERE / "fuda_jobs.py"), "tag"))
    rows = []
    for name in ("esp.testb", "esp.train"):
        a, b = [f[name] for f in theirs], [f[name] for f in ours]
        rows += [
            (f"tagging {name}, tokens/s, theirs / ours", f"{spread(a, 0)} / {spread(b, 0)}"),
            (f"tagging {name}", ratio(b, a)),
        ]
    return rows


if __name__ == "__main__":
    worker({"run": run})
