"""What the benchmarks share: corpus, features, workers run in turn, ratios with their spread.

Machines are noisy. A figure here is never a time alone but a ratio of times measured in turn: the
median over rounds, with the lowest and highest. Each measurement runs in a separate process, so
that peak memory is separate too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuda.features.sets import _spelling_flags

DATA = (
    Path(os.environ.get("FUDA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "conll2002"
)


def word_features(word: str) -> list[str]:
    """Word, affixes of two and three characters, spelling flags: what every contender gets."""
    affixes = [f"p2={word[:2]}", f"p3={word[:3]}", f"s2={word[-2:]}", f"s3={word[-3:]}"]
    return [f"w={word}", *affixes, *_spelling_flags(word)]


def window_features(words: list[str]) -> list[list[str]]:
    """The same for the previous, current and next word, for programs without windows."""
    features = [word_features(word) for word in words]
    rows = []
    for t in range(len(words)):
        row = []
        for offset in (-1, 0, 1):
            inside = 0 <= t + offset < len(words)
            row += (
                [f"{offset}:{name}" for name in features[t + offset]]
                if inside
                else [f"{offset}:<{offset:+d}>"]
            )
        rows.append(row)
    return rows


def load(name: str) -> tuple[list[list[str]], list[list[str]]]:
    """Words and labels of a file of the corpus."""
    from fuda import read

    if not (DATA / name).exists():
        sys.exit(f"{DATA / name} is missing; set FUDA_DATA to the folder that holds conll2002")
    X, y = read(DATA / name, columns=1)
    return [list(x) for x in X], y


def worker(jobs: dict[str, Callable[..., dict[str, Any]]]) -> None:
    """Run the job named on the command line and print its figures and its peak memory as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=list(jobs))
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    figures = jobs[options.job](*map(float, options.arguments))
    figures["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(figures))


def measure(script: str, job: str, *arguments: float) -> dict[str, Any]:
    """The figures of a job, run in a separate process."""
    command = [sys.executable, script, job, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def ratio(theirs: list[float], ours: list[float]) -> str:
    """The median of theirs/ours, round by round, with the lowest and highest."""
    ratios = [a / b for a, b in zip(theirs, ours, strict=True)]
    return f"{statistics.median(ratios):.1f}× ({min(ratios):.1f}–{max(ratios):.1f})"


def spread(values: list[float], digits: int = 2) -> str:
    """The median, with the lowest and highest."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"
