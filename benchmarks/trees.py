"""Syntactic functions of the nodes of dependency trees, by the parts of trees that match.

Learns from a few hundred random trees of a UD treebank (FORM alone) and labels nodes of others
with their DEPREL. Prints a line per fit, and the table of docs/models/trees.md: mean accuracy over
seeds, lowest and highest, median processor seconds of a fit. Marginalized models are not
calibrated, which takes as long again and does not change their labels.

    python benchmarks/trees.py ewt ja_gsd_ne --seeds 3
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuda import CRF, Dag, MarginalizedPerceptron, Sequence, read
from fuda.kernels import Polynomial
from fuda.metrics import token_accuracy

DATA = Path(os.environ.get("FUDA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def marginalized(parts: str | None = None) -> MarginalizedPerceptron:
    """The model as it comes, or with parts that are not chosen."""
    return MarginalizedPerceptron(parts=parts, calibrate=False)


def before(parts: str) -> MarginalizedPerceptron:
    """The kernel without a constant, with parts that are not chosen."""
    kernel = Polynomial(2).normalized()
    return MarginalizedPerceptron(kernel, features="spelling", parts=parts, calibrate=False)


CONTENDERS: dict[str, Callable[[], Any]] = {
    "CRF()": CRF,
    "MarginalizedPerceptron()": marginalized,
    "… parts='sided-paths'": lambda: marginalized(parts="sided-paths"),
    "… parts='sided-subtrees'": lambda: marginalized(parts="sided-subtrees"),
    "… parts='lines'": lambda: marginalized(parts="lines"),
    "… parts='paths'": lambda: marginalized(parts="paths"),
    "… parts='subtrees'": lambda: marginalized(parts="subtrees"),
    "as DAGs": marginalized,
    "spelling, degree 2, paths": lambda: before("paths"),
    "spelling, degree 2, subtrees": lambda: before("subtrees"),
    "CRF() on sequences": CRF,
}


def shaped(name: str, trees: list[Any]) -> list[Any]:
    """The trees as a contender gets them."""
    if name.endswith("sequences"):
        return [Sequence(tree.observations) for tree in trees]
    if name.endswith("DAGs"):
        return [Dag(tree.observations, tree.edges.tolist()) for tree in trees]
    return trees


@cache
def whole(corpus: str, part: str) -> tuple[Any, Any]:
    """All trees of a file, with their labels."""
    X, y = read(DATA / corpus / f"{part}.conllu.gz", label="DEPREL")
    return X, y


def sample(corpus: str, part: str, count: int, seed: int) -> tuple[list[Any], list[Any]]:
    """Some random trees of a file, with their labels."""
    X, y = whole(corpus, part)
    chosen = np.random.RandomState(seed).permutation(len(X))[:count]
    return [X[i] for i in chosen], [y[i] for i in chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), help="beginnings of names")
    args = parser.parse_args()
    names = [name for name in CONTENDERS if name.startswith(tuple(args.contenders))]
    figures: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for name in names:
        for corpus in args.corpora:
            for seed in range(args.seeds):
                X, y = sample(corpus, "train", args.trees, seed)
                new, gold = sample(corpus, "dev", 500, seed)
                began = time.process_time()
                model = CONTENDERS[name]().fit(shaped(name, X), y)
                seconds = time.process_time() - began
                accuracy = 100 * token_accuracy(gold, model.predict(shaped(name, new)))
                figures.setdefault((name, corpus), []).append((accuracy, seconds))
                chosen = f"{getattr(model, 'parts_', '')} {getattr(model, 'mixing_', 0.0):.2f}"
                print(f"{corpus} {seed} {name}: {accuracy:.2f} {seconds:.0f} s {chosen}", flush=True)
    for (name, corpus), runs in figures.items():
        reached, seconds_of = zip(*runs, strict=True)
        spread = f"{min(reached):.1f}–{max(reached):.1f}"
        print(
            f"| {name} | {corpus} | {np.mean(reached):.1f} ({spread}) | {statistics.median(seconds_of):.0f} |"
        )


if __name__ == "__main__":
    main()
