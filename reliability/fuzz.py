"""Fuzzing by coverage (atheris): readers, models, checkpoints, templates, kernels, the command.

Each target of `reliability.targets` runs in a process of its own, for a number of executions or of
seconds. What breaks a promise, hangs or takes too much memory is kept as a file and named. atheris
(the extra `fuzz`) has wheels for Linux and Python 3.11 to 3.13.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

# Modules without compiled functions, whose bytecode numba would not understand once instrumented.
_INSTRUMENTED = ["fuda.formats", "fuda.files", "fuda.features", "fuda.storage", "fuda.kernels", "fuda.cli",
                 "fuda.data", "fuda.checks", "fuda.schemes"]  # fmt: skip
_SHARES = {"conll": 6, "conllu": 6, "fasta": 6, "jsonl": 6, "file": 3, "template": 4, "graph": 4,
           "kernel": 1, "model-bytes": 2, "model-meta": 1, "model-changed": 1, "checkpoint": 1,
           "command": 1}  # fmt: skip


def fuzz(target: str, runs: int, seconds: int, seed: int, finds: Path) -> None:
    """Fuzz one target in this process, which libFuzzer ends."""
    import atheris

    with atheris.instrument_imports(include=_INSTRUMENTED):
        for name in _INSTRUMENTED:
            module = import_module(name)
            for inner in iter_modules(getattr(module, "__path__", []), f"{name}."):
                import_module(inner.name)
        from reliability import seeds, targets

    with tempfile.TemporaryDirectory() as corpus:
        for i, data in enumerate(seeds.seeds(target)):
            (Path(corpus) / str(i)).write_bytes(data)
            targets.run(target, data)  # compiles
        limits = [
            f"-runs={runs}",
            f"-max_total_time={seconds}",
            "-timeout=5",
            "-rss_limit_mb=4096",
            "-max_len=4096",
        ]
        places = [f"-artifact_prefix={finds / target}-", f"-seed={seed + 1}", "-print_final_stats=1", corpus]
        atheris.Setup([sys.argv[0], *limits, *places], lambda data: targets.run(target, data))
        atheris.Fuzz()


def main() -> None:
    """Fuzz all targets, each for its share of the runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000, help="executions, over all targets")
    parser.add_argument("--seconds", type=int, default=0, help="seconds, over all targets; 0 for no limit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--finds", type=Path, default=Path("finds"), help="the folder for what is found")
    parser.add_argument("--only", choices=list(_SHARES), action="append", help="this target")
    parser.add_argument("--target", choices=list(_SHARES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.target:
        fuzz(options.target, options.runs, options.seconds, options.seed, options.finds)
        return
    options.finds.mkdir(parents=True, exist_ok=True)
    began, chosen, done, broken, edges = time.time(), options.only or list(_SHARES), 0, [], 0
    whole = sum(_SHARES[name] for name in chosen)
    for name in chosen:
        share, start = _SHARES[name] / whole, time.time()
        runs, seconds = round(options.runs * share), round(options.seconds / len(chosen))
        arguments = [f"--target={name}", f"--runs={runs}", f"--seconds={seconds}"]
        arguments += [f"--seed={options.seed}", f"--finds={options.finds.resolve()}"]
        ended = subprocess.run(
            [sys.executable, "-m", "reliability.fuzz", *arguments],
            capture_output=True, text=True, errors="replace", env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )  # fmt: skip
        counts = re.findall(r"number_of_executed_units: (\d+)", ended.stderr)
        counts = counts or re.findall(r"^#(\d+)", ended.stderr, re.MULTILINE) or ["0"]
        covered = re.findall(r"cov: (\d+)", ended.stderr) or ["0"]
        done, edges = done + int(counts[-1]), edges + int(covered[-1])
        figures = f"{int(counts[-1]):,} executions, {covered[-1]} edges, {time.time() - start:.0f} s"
        print(f"{name}: {figures}, exit code {ended.returncode}", file=sys.stderr, flush=True)
        if ended.returncode:
            broken.append(name)
            print(ended.stdout[-3000:], ended.stderr[-3000:], sep="\n", file=sys.stderr, flush=True)
    finds = f"finds in {', '.join(broken)}" if broken else "no finds"
    took = f"seed {options.seed}, {time.time() - began:.0f} s"
    print(f"fuzz: {done:,} executions, {len(chosen)} targets, {edges:,} edges, {finds}, {took}")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
