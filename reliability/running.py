"""The command line of campaigns."""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path


def run(doc: str | None, runs: int, campaign: Callable[[int, int, Path], tuple[list[str], str]]) -> int:
    """Run a campaign of (runs, seed, folder) by the options of the command line: its exit code.

    A campaign returns what broke, each with its reproduction, and the line of figures.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        broken, figures = campaign(given.runs, given.seed, Path(folder))
    for line in broken:
        print(line, file=sys.stderr)
    print(figures)
    return int(bool(broken))
