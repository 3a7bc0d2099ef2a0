"""A simulated person who labels: how good the model is after how many sentences, and the cost.

The person labels sentences of a pool by the gold labels, in the order of the file, at random, or
as `fuda.active.Chooser` says. The learner is that of `fuda.active.learner_for`: it is taught every
sentence by `partial_fit` and refitted to all of them after every 25, when the pool is scored
again. After some numbers of sentences, F1 over entities on other sentences is measured.

Before a sentence is taught, the model proposes its entities, and what the person has to correct is
counted: entities that are missed, that are of another type or extent, or that are invented.
The rival is the same CRF when it is only refitted after every 25 sentences; it gets the
same sentences.

Run: ``python benchmarks/labelling.py [CORPUS ...] [--part test] [--seeds N] [--jobs N] [--json
FILE] [--plot FILE]``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from copy import copy
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from corpora import FILES, sentences
from fuda.active import Chooser, learner_for
from fuda.metrics import entity_scores
from fuda.schemes import entities

MEASURED, EVERY = (50, 100, 200, 300, 500), 25
POOL, TEST = 2_000, 1_000
Labels = list[list[str]]


def corrections(gold: list[str], proposed: list[str]) -> int:
    """How many entities a person has to change, add or remove."""
    right, predicted = entities(gold), entities(proposed)
    stray = [s for s in predicted if not any(t[1] < s[2] and s[1] < t[2] for t in right)]
    return sum(segment not in predicted for segment in right) + len(stray)


def data(corpus: str, part: str, seed: int) -> tuple[Labels, Labels, Labels, Labels]:
    """A pool in the order of the file, and other sentences to measure on."""
    X, y = sentences(corpus)
    shuffled = np.random.RandomState(seed).permutation(len(X))
    pool = np.sort(shuffled[:POOL])
    if part in FILES[corpus]:
        others, labels = sentences(corpus, part)
        tested = np.random.RandomState(seed).permutation(len(others))[:TEST]
    else:
        others, labels, tested = X, y, shuffled[POOL : POOL + TEST]
    return (
        [X[i] for i in pool],
        [y[i] for i in pool],
        [others[i] for i in tested],
        [labels[i] for i in tested],
    )


def label(corpus: str, order: str, part: str, seed: int, followed: int) -> dict[str, Any]:
    """The figures of one person; corrections are counted in the first `followed` sentences."""
    X, y, test_X, test_y = data(corpus, part, seed)
    shuffled = np.random.RandomState(seed).permutation(len(X)).tolist()
    chooser = Chooser(X, order="useful" if order == "ours" else "file", random_state=seed)
    done: list[int] = []
    model: Any = None
    rival: Any = None
    counts, rows, times, began = np.zeros(2, dtype=int), [], [], time.perf_counter()
    while len(done) < MEASURED[-1]:
        i = shuffled[len(done)] if order == "random" else chooser.next(done)
        for k, proposer in enumerate((model, rival) if len(done) < followed else ()):
            proposed = ["O"] * len(X[i]) if proposer is None else list(proposer.predict([X[i]])[0])
            counts[k] += corrections(y[i], proposed)
        done.append(i)
        started = time.perf_counter()
        model = learner_for(X, "IOB2") if model is None else model
        if len(done) % EVERY == 0 and (order == "ours" or len(done) < followed or len(done) in MEASURED):
            model.set_params(**learner_for(X, "IOB2", labelled=len(done)).get_params())
            model.fit([X[k] for k in done], [y[k] for k in done])
            rival = copy(model)
            if order == "ours":
                chooser.scored(range(len(X)), model, X)
        elif len(done) < followed:
            model.partial_fit([X[i]], [y[i]])
            times.append(1e3 * (time.perf_counter() - started))
        if len(done) in MEASURED:
            f1 = 100 * entity_scores(test_y, list(rival.predict(test_X))).micro.f1
            words = sum(len(X[k]) for k in done)
            rows.append({"sentences": len(done), "words": words, "f1": f1})
            if len(done) <= followed:
                rows[-1] |= {"corrected": int(counts[0]), "corrected, refitted only": int(counts[1])}
    run = {"corpus": corpus, "order": order, "part": part, "seed": seed, "rows": rows}
    return run | {"ms": float(np.median(times or [0.0])), "seconds": time.perf_counter() - began}


def one_person(job: tuple[str, str, str, int, int]) -> dict[str, Any]:
    """The figures of one person, in a process of its own."""
    warnings.simplefilter("ignore")
    return label(*job)


def plot(all_runs: list[dict[str, Any]], path: Path) -> None:
    """Draw F1 by the number of sentences, one panel per corpus."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "labelling"
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(run["corpus"] for run in all_runs))
    figure, panels = plt.subplots(1, len(names), figsize=(3.2 * len(names), 2.8), squeeze=False)
    for axes, name in zip(panels[0], names, strict=True):
        for order, colour in (("file", "#999999"), ("random", "#0072b2"), ("ours", "#d55e00")):
            runs = [run["rows"] for run in all_runs if run["corpus"] == name and run["order"] == order]
            if runs:
                mean = np.mean([[row["f1"] for row in rows] for rows in runs], axis=0)
                x = [row["sentences"] for row in runs[0]]
                axes.plot(x, mean, marker="o", markersize=3, color=colour, label=order)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("sentences labelled")
        axes.grid(alpha=0.3)
    panels[0][0].set_ylabel("F1 over entities")
    panels[0][-1].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("corpora", nargs="*", default=list(FILES))
    parser.add_argument("--part", default="test")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--followed", type=int, default=MEASURED[-1])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    jobs = [
        (corpus, order, options.part, seed, 0 if order == "file" else options.followed)
        for seed in range(options.seeds)
        for corpus in options.corpora
        for order in ("ours", "random", "file")
    ]
    runs = []
    with get_context("spawn").Pool(options.jobs) as pool:
        for run in pool.imap_unordered(one_person, jobs, chunksize=1):
            runs.append(run)
            print(json.dumps(run), flush=True)
            if options.json is not None:
                options.json.write_text(json.dumps(runs, indent=1))
    if options.plot is not None:
        plot(runs, options.plot)


if __name__ == "__main__":
    main()
