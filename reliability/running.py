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


class Findings(NamedTuple):
    """The findings of a part of a campaign: what broke, each with its reproduction, and counts."""

    broken: list[str]
    counts: Counter[str]


Work = Callable[[Any, int, Path], Findings]
LEFT_OUT = "parts left out for lack of time"


def options(doc: str | None, runs: int) -> argparse.ArgumentParser:
    """The options that campaigns share."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the work (default: 1)")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which no more work is begun")
    return parser


def run_units(units: list[Any], work: Work, args: argparse.Namespace) -> Findings:
    """Do the work of all units, each in its own folder, by the options."""
    broken: list[str] = []
    counts: Counter[str] = Counter()
    until = time.time() + args.seconds
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder).resolve() / str(number) for number in range(len(units))]
        calls = [(work, unit, args.seed, place, until) for unit, place in zip(units, places, strict=True)]
        with ExitStack() as stack:
            parts = map(_part, calls)
            if args.jobs > 1:
                pool = ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn"))
                parts = stack.enter_context(pool).map(_part, calls)
            for findings in parts:
                broken += findings.broken
                counts += findings.counts
                for line in findings.broken:
                    print(line, file=sys.stderr, flush=True)
    return Findings(broken, counts)


def _part(call: tuple[Work, Any, int, Path, float]) -> Findings:
    """The work of one unit."""
    work, unit, seed, folder, until = call
    if time.time() > until:
        return Findings([], Counter({LEFT_OUT: 1}))
    warnings.simplefilter("ignore")
    folder.mkdir()
    return work(unit, seed, folder)


def run(doc: str | None, runs: int, units: Callable[[int, int], list[Any]], work: Work) -> int:
    """Run a campaign by the options of the command line; return its exit code.

    `units` divides so many runs with a seed into parts, which `work` does with the seed
    and a folder.
    """
    args = options(doc, runs).parse_args()
    began = time.perf_counter()
    findings = run_units(units(args.runs, args.seed), work, args)
    name = Path(sys.argv[0]).stem
    print(f"{name}: {summary(findings)}, seed {args.seed}, {time.perf_counter() - began:.0f} s")
    return int(bool(findings.broken))


def summary(findings: Findings) -> str:
    """Findings in words."""
    counts = ", ".join(f"{count:,} {name}" for name, count in sorted(findings.counts.items()))
    return f"{counts}, {len(findings.broken)} broken"
