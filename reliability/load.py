"""Load: large structures cost what the table says, or are refused before memory is allocated.

Every learner is fitted on every case and labels it again, each in a process of its own with
bounded memory. The promise is kept where a process gives labels or a `DataError`; it is broken by
any other exception, by the end of memory, and by the end of time. A Markdown table of seconds (of
the processor, all cores together) and of peak memory goes to standard output, then the line with
the figures::

    python -m reliability.load [--share 0.1] [--learners crf;hmm] [--cases chain;…]
                               [--limit BYTES] [--jobs 4]
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from fuda import (
    CRF,
    HMM,
    HMSVM,
    MEMM,
    Auto,
    Dag,
    HMPerceptron,
    MarginalizedPerceptron,
    MarginalizedSVM,
    Reranker,
    SemiCRF,
    Sequence,
    Tree,
)
from fuda.errors import DataError
from fuda.kernels import Polynomial

Data = tuple[list[Any], list[list[str]]]

# Few iterations: what one costs is the question. All take the words alone.
LEARNERS: dict[str, Callable[[], Any]] = {
    "crf": lambda: CRF(features="word", max_iter=3),
    "hmm": lambda: HMM(),
    "memm": lambda: MEMM(features="word", max_iter=3),
    "semi-crf": lambda: SemiCRF(features="word", max_iter=3),
    "hm-perceptron": lambda: HMPerceptron(features="word", epochs=2),
    "hm-perceptron, dual": lambda: HMPerceptron(Polynomial(2), features="word", epochs=2),
    "hm-svm": lambda: HMSVM(features="word", max_iter=2),
    "marginalized": lambda: MarginalizedPerceptron(features="word", epochs=1, calibrate=False),
    "marginalized-svm": lambda: MarginalizedSVM(features="word", epochs=1, calibrate=False),
    "reranker": lambda: Reranker(CRF(features="word", max_iter=3), folds=2, n=3, epochs=1, features="word"),
    "auto": lambda: Auto(budget=5.0, candidates={"crf": CRF(features="word", max_iter=3), "hmm": HMM()}),
}


def _labels(size: int, count: int, random: np.random.Generator) -> list[str]:
    return [f"L{number}" for number in random.integers(count, size=size)]


def _words(size: int, types: int, random: np.random.Generator) -> list[str]:
    return [f"w{number}" for number in random.integers(types, size=size)]


def chain(nodes: int) -> Data:
    """One sequence."""
    random = np.random.default_rng(1)
    return [Sequence(_words(nodes, 1000, random))], [_labels(nodes, 3, random)]


def deep(nodes: int) -> Data:
    """One tree in which every node but the last has one child."""
    random = np.random.default_rng(2)
    return [Tree(_words(nodes, 1000, random), np.arange(-1, nodes - 1))], [_labels(nodes, 3, random)]


def wide(nodes: int) -> Data:
    """One tree whose root has all other nodes as children."""
    random = np.random.default_rng(3)
    return [Tree(_words(nodes, 1000, random), np.r_[-1, np.zeros(nodes - 1, int)])], [
        _labels(nodes, 3, random)
    ]


def dag(edges: int) -> Data:
    """One graph with five edges per node, each from one of the hundred nodes before."""
    random = np.random.default_rng(4)
    nodes = edges // 5
    children = np.repeat(np.arange(1, nodes), 5)
    parents = np.maximum(0, children - random.integers(1, 100, size=len(children)))
    pairs = np.unique(np.c_[parents, children], axis=0)
    return [Dag(_words(nodes, 1000, random), pairs)], [_labels(nodes, 3, random)]


def many_labels(labels: int) -> Data:
    """Sequences of twenty nodes in which every label occurs."""
    random = np.random.default_rng(5)
    X = [Sequence(_words(20, 1000, random)) for _ in range(labels // 10)]
    numbers = np.resize(random.permutation(labels), (len(X), 20))
    return X, [[f"L{number}" for number in row] for row in numbers]


def many_types(types: int) -> Data:
    """Sequences of ten observations that occur once."""
    random = np.random.default_rng(6)
    X = [Sequence([f"w{10 * i + t}" for t in range(10)]) for i in range(types // 10)]
    return X, [_labels(10, 3, random) for _ in X]


def one_token(sentences: int) -> Data:
    """Sequences of one node."""
    random = np.random.default_rng(7)
    X = [Sequence([word]) for word in _words(sentences, 1000, random)]
    return X, [[label] for label in _labels(sentences, 3, random)]


# The function, its full size, and what the size counts.
CASES: dict[str, tuple[Callable[[int], Data], int, str]] = {
    "chain": (chain, 1_000_000, "nodes in a chain"),
    "chain, 100,000": (chain, 100_000, "nodes in a chain"),
    "chain, 20,000": (chain, 20_000, "nodes in a chain"),
    "deep": (deep, 100_000, "nodes in a tree, each below the other"),
    "wide": (wide, 100_000, "nodes in a tree, all below the first"),
    "dag": (dag, 1_000_000, "edges in a DAG"),
    "labels": (many_labels, 1_000, "labels"),
    "types": (many_types, 1_000_000, "types"),
    "one-token": (one_token, 100_000, "sentences of one token"),
}


def measured(learner: str, case: str, share: float, limit: int) -> dict[str, Any]:
    """Fit and predict in this process: seconds and peak memory, or the refusal."""
    make, full, _ = CASES[case]
    X, y = make(max(10, int(full * share)))
    model = LEARNERS[learner]()
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    figures: dict[str, Any] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # too few iterations to converge
            began = time.process_time()
            model.fit(X, y)
            figures["fit"] = time.process_time() - began
            began = time.process_time()
            labels = model.predict(X)
            figures["predict"] = time.process_time() - began
        if [len(labelled) for labelled in labels] != [len(x) for x in X]:
            figures["broken"] = "the labels do not fit the structures"
    except DataError as error:
        figures["refused"] = str(error)
    figures["bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return figures


def in_a_process(learner: str, case: str, share: float, limit: int, seconds: int) -> dict[str, Any]:
    """What `measured` finds in a new process, or how that ended."""
    command = [sys.executable, "-m", "reliability.load", "--one", learner, case]
    limits = ["--share", str(share), "--limit", str(limit), "--seconds", str(seconds)]
    ended = subprocess.run([*command, *limits], capture_output=True, text=True, check=False)
    if ended.returncode == -signal.SIGXCPU:
        return {"broken": f"no answer within {seconds:g} s"}
    if ended.returncode:
        lines = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
        at = [line.strip() for line in lines if "/fuda/" in line][-1:]
        return {"broken": "; ".join([lines[-1], *at])}
    figures: dict[str, Any] = json.loads(ended.stdout)
    return figures


def cell(figures: dict[str, Any]) -> str:
    """One cell of the table."""
    if "broken" in figures:
        return f"**{figures['broken']}**"
    if "refused" in figures:
        needed = re.search(r"needs ([\d,]+) bytes", figures["refused"])
        why = f", {float(needed[1].replace(',', '')) / 1e9:,.0f} GB" if needed else ""
        return f"{'predict' if 'fit' in figures else 'fit'} refused{why}"
    return f"{figures['fit']:.1f} + {figures['predict']:.1f} s, {figures['bytes'] / 1e9:.1f} GB"


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--share", type=float, default=1.0, help="of the full sizes")
    parser.add_argument("--limit", type=int, default=8 << 30, help="bytes of address space of a process")
    parser.add_argument(
        "--seconds", type=int, default=360, help="of the processor, after which a process has failed"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--learners", help="separated by semicolons")
    parser.add_argument("--cases", help="separated by semicolons")
    args = parser.parse_args()
    if args.one:
        resource.setrlimit(resource.RLIMIT_CPU, (args.seconds, args.seconds + 10))
        print(json.dumps(measured(*args.one, args.share, args.limit)))
        return 0
    learners = args.learners.split(";") if args.learners else list(LEARNERS)
    cases = args.cases.split(";") if args.cases else list(CASES)
    began, broken, refused = time.perf_counter(), 0, 0
    print(f"| case | {' | '.join(learners)} |\n|---|{'---|' * len(learners)}", flush=True)
    with ThreadPoolExecutor(args.jobs) as pool:  # of threads that wait for processes
        bounds = args.share, args.limit, args.seconds
        waiting = {
            case: [pool.submit(in_a_process, learner, case, *bounds) for learner in learners]
            for case in cases
        }
        for case, answers in waiting.items():
            _, full, unit = CASES[case]
            row = [f"{max(10, int(full * args.share)):,} {unit}"]
            for learner, answer in zip(learners, answers, strict=True):
                figures = answer.result()
                broken += "broken" in figures
                refused += "refused" in figures
                print(f"{case}, {learner}: {json.dumps(figures)}", file=sys.stderr, flush=True)
                row.append(cell(figures))
            print(f"| {' | '.join(row)} |", flush=True)
    runs = len(cases) * len(learners)
    print(
        f"load: {runs} runs, {runs - broken - refused} answers, {refused} refusals, {broken} broken, "
        f"share {args.share:g}, {args.limit:,} bytes, {time.perf_counter() - began:.0f} s"
    )
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
