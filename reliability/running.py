"""The command line of campaigns, and their work in several processes."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple


class Found(NamedTuple):
    """What a part of a campaign found: what broke, each with its reproduction, and counts."""

    broken: list[str]
    counts: Counter[str]


Work = Callable[[Any, int, Path], Found]
LEFT_OUT = "parts left out for lack of time"


def options(doc: str | None, runs: int) -> argparse.ArgumentParser:
    """The options that campaigns share."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the work (default: 1)")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which no more work is begun")
    return parser


def done(units: list[Any], work: Work, given: argparse.Namespace) -> Found:
    """Do the work of all units, each in a folder of its own, by the options."""
    broken: list[str] = []
    counts: Counter[str] = Counter()
    until = time.time() + given.seconds
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder).resolve() / str(number) for number in range(len(units))]
        calls = [(work, unit, given.seed, place, until) for unit, place in zip(units, places, strict=True)]
        with ExitStack() as stack:
            parts = map(_part, calls)
            if given.jobs > 1:
                pool = ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn"))
                parts = stack.enter_context(pool).map(_part, calls)
            for found in parts:
                broken += found.broken
                counts += found.counts
                for line in found.broken:
                    print(line, file=sys.stderr, flush=True)
    return Found(broken, counts)


def _part(call: tuple[Work, Any, int, Path, float]) -> Found:
    """The work of one unit."""
    work, unit, seed, folder, until = call
    if time.time() > until:
        return Found([], Counter({LEFT_OUT: 1}))
    warnings.simplefilter("ignore")
    folder.mkdir()
    return work(unit, seed, folder)


def run(doc: str | None, runs: int, units: Callable[[int, int], list[Any]], work: Work) -> int:
    """Run a campaign by the options of the command line: its exit code.

    `units` divides so many runs with a seed into parts, which `work` does with the seed
    and a folder.
    """
    given = options(doc, runs).parse_args()
    began = time.perf_counter()
    found = done(units(given.runs, given.seed), work, given)
    name = Path(sys.argv[0]).stem
    print(f"{name}: {said(found)}, seed {given.seed}, {time.perf_counter() - began:.0f} s")
    return int(bool(found.broken))


def said(found: Found) -> str:
    """The figures in words."""
    counts = ", ".join(f"{count:,} {what}" for what, count in sorted(found.counts.items()))
    return f"{counts}, {len(found.broken)} broken"
