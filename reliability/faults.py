"""Faults injected one by one: every system call and every large allocation fails in turn.

A preloaded library (`faults.c`) lets the n-th call of an operation fail, for n = 1, 2, 3 …: files
are opened, read, written (all of the data or half), synced, renamed and removed; memory is
allocated. After each fault:

- an old file is as it was or a new one is complete, and no temporary file is left;
- the error is a DataError or ModelFileError of one line, or a MemoryError; the command prints one
  line and exits with 2;
- what is in memory is as it was or new, never half, and the operation succeeds when it
  is repeated.

Each fault happens in a process of its own, so that crashes are found too. It needs Linux and a C
compiler.

    python -m reliability.faults [--all] [--runs N] [--seed S] [--jobs N] [--parts N]
                                 [--only PATTERN]

A dry run tells from where in Fuda each call comes. Calls with equal stacks within Fuda in the same
kind of operation, such as `save`, whatever the learner, are at one *site*. By default the
first, the second and the last call at each site fail for each kind of fault, where the site is
first met; with `--all` every call of every learner does. `--runs` bounds the faults of a kind
in one operation.
"""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np

import fuda
from fuda import DataError
from reliability.operations import Operation, empty, groups
from reliability.running import Findings, options, run_units, summary

OPEN, READ, WRITE, SYNC, RENAME, CHMOD, UNLINK, ALLOCATE = (1 << k for k in range(8))
ONCE, ALWAYS, SHORT, SHORT_THEN = range(4)
CHANGES = OPEN | WRITE | SYNC | RENAME | CHMOD | UNLINK
LEAST = 1 << 14  # bytes of an allocation that counts; the data of arrays count from 1000
LEARNED = 54321  # bytes by which the library learns where the data of arrays are allocated
NEVER = 10**9
SAMPLE = 40  # faults of a kind in an operation whose calls cannot be numbered
BROKEN = 1  # the exit code of a process in which a promise was broken
Site = tuple[int, tuple[str, ...]]  # the kind of a call; file and line of each frame within Fuda


class Fault(NamedTuple):
    """A kind of fault: the calls it concerns, the error, and what becomes of later calls."""

    kinds: int
    error: int
    mode: int = ONCE


FILES = {
    "ENOSPC": Fault(CHANGES, errno.ENOSPC),
    "EDQUOT": Fault(CHANGES, errno.EDQUOT),
    "EROFS": Fault(CHANGES, errno.EROFS),
    "EIO": Fault(CHANGES | READ, errno.EIO),
    "short write": Fault(WRITE, 0, SHORT),
    "short write, then ENOSPC": Fault(WRITE | SYNC, errno.ENOSPC, SHORT_THEN),
    "ENOSPC from then on": Fault(WRITE | SYNC, errno.ENOSPC, ALWAYS),
}
MEMORY = {
    "ENOMEM": Fault(ALLOCATE, errno.ENOMEM),
    "ENOMEM from then on": Fault(ALLOCATE, errno.ENOMEM, ALWAYS),
}


class Attempt(NamedTuple):
    """How a process ended, what went wrong, and the sites of all calls or of the failed one."""

    code: int
    story: str
    sites: list[Site]


def attempt(operation: Operation, fault: Fault, n: int, folder: Path) -> Attempt:
    """Let the n-th call fail in a process of its own."""
    empty(folder)
    story, places = folder.with_suffix(".story"), folder.with_suffix(".sites")
    child = os.fork()
    if not child:
        code = BROKEN
        with open(story, "w") as stream, open(places, "w") as sites:
            faulthandler.enable(stream)
            faulthandler.register(signal.SIGUSR1, sites, all_threads=False)
            ctypes.CDLL(None).fault_trace(sites.fileno(), n == NEVER)
            try:
                operation.prepare()
                _inject(operation, fault, n, folder)
                code = 0
            except BaseException:  # reported by exit code and story; the process must end here
                traceback.print_exc(file=stream)
            finally:
                stream.flush()
                os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Attempt(code, story.read_text(), sites_in(places.read_text()))


def sites_in(text: str) -> list[Site]:
    """The sites of calls that the library and `faulthandler` have written."""
    frames = re.compile(rf'File "{re.escape(os.path.dirname(fuda.__file__))}/(.+?)", line (\d+)')
    _, *parts = re.split(r"^call (\d+)$", text, flags=re.MULTILINE)
    return [
        (int(kind), tuple(f"{file}:{line}" for file, line in frames.findall(stack)))
        for kind, stack in zip(parts[::2], parts[1::2], strict=True)
    ]


def _inject(operation: Operation, fault: Fault, n: int, folder: Path) -> None:
    """Let the n-th call fail in this process, and check what must hold."""
    shim, error = ctypes.CDLL(None), None
    where = os.fsencode(f"{folder}/")
    shim.fault_arm(fault.kinds, ctypes.c_long(n), fault.error, fault.mode, where, ctypes.c_size_t(LEAST))
    try:
        operation.run()
    except BaseException as raised:  # judged below
        error = raised
    shim.fault_disarm()
    allowed = (DataError, SystemExit, *([MemoryError] if fault.kinds == ALLOCATE else []))
    if error is not None and not isinstance(error, allowed):
        raise error
    if isinstance(error, DataError):
        assert "\n" not in str(error), f"not one line: {error}"
        assert str(folder) in str(error), f"no file is named: {error}"
    operation.check(error)
    temporary = [path.name for path in folder.iterdir() if path.name.endswith(".part")]
    assert not temporary, f"temporary files are left: {temporary}"


@cache
def learn() -> None:
    """Show the library where the data of arrays are allocated."""
    compiled = numba.njit(lambda: (np.empty(LEARNED, np.uint8), np.zeros(LEARNED, np.uint8)))
    compiled()
    shim = ctypes.CDLL(None)
    shim.fault_learn(1)
    np.empty(LEARNED, np.uint8)
    np.zeros(LEARNED, np.uint8)
    np.empty(2 * LEARNED, np.uint8).resize(LEARNED, refcheck=False)
    compiled()
    shim.fault_learn(0)


class Unit(NamedTuple):
    """The operations of a group whose faults no other part of the campaign has tried."""

    group: str
    part: int
    runs: int
    every: bool


def work(unit: Unit, seed: int, folder: Path) -> Findings:
    """Inject faults into the operations of one group."""
    learn()
    # Auto goes by the clock.
    runs = min(unit.runs, SAMPLE) if unit.group.startswith("Auto") else unit.runs
    chance, broken, counts = random.Random(f"{seed} {unit.group}"), list[str](), Counter[str]()
    place, seen_before = folder / "folder", folder.parent / "taken"
    seen_before.mkdir(exist_ok=True)
    for name, operation in groups(place)[unit.group]():
        kinds = (FILES if operation.uses_files else {}) | MEMORY
        dry = attempt(
            operation, Fault(CHANGES | READ | ALLOCATE if operation.uses_files else ALLOCATE, 0), NEVER, place
        )
        if dry.code:
            broken.append(f"{name} without a fault: {dry.story}")
            continue
        counts["operations"] += unit.part == 0
        for words, fault in kinds.items():
            sites = [site for site in dry.sites if site[0] & fault.kinds]
            counts["calls"] += len(sites) * (unit.part == 0)
            like = name if unit.every else name.removeprefix(unit.group)
            chosen = every_call(sites) if unit.every else calls_by_site(sites)
            for key, numbers in sorted(chance.sample(list(chosen.items()), min(runs, len(chosen)))):
                if not is_first(f"{like} {words} {key}", seen_before):
                    continue
                counts["sites"] += not unit.every
                for n in numbers:
                    tried = attempt(operation, fault, n, place)
                    counts["faults"] += 1
                    counts[words] += 1
                    counts["faults at another site than in the dry run"] += tried.sites != [sites[n - 1]]
                    if tried.code:
                        broken.append(f"{name}: {words} at call {n}: exit code {tried.code}\n{tried.story}")
        print(f"{name}: {dict(counts)}", file=sys.stderr, flush=True)
    return Findings(broken, counts)


def every_call(sites: list[Site]) -> dict[str, list[int]]:
    """The number of every call."""
    return {f"{n:09}": [n] for n in range(1, len(sites) + 1)}


def calls_by_site(sites: list[Site]) -> dict[str, list[int]]:
    """The first, the second and the last call at each site."""
    numbers_of: dict[Site, list[int]] = {}
    for n, site in enumerate(sites, start=1):
        numbers_of.setdefault(site, []).append(n)
    return {repr(site): sorted({*numbers[:2], numbers[-1]}) for site, numbers in numbers_of.items()}


def is_first(key: str, folder: Path) -> bool:
    """Whether nobody, in whichever process, has asked so for this key before."""
    try:
        (folder / hashlib.sha256(key.encode()).hexdigest()).open("x").close()
    except FileExistsError:
        return False
    return True


def preloaded() -> int:
    """Run this module again with the library preloaded; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "faults.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        environment = os.environ | {"LD_PRELOAD": str(library)}
        line = [sys.executable, "-m", "reliability.faults", *sys.argv[1:]]
        return subprocess.run(line, env=environment, check=False).returncode


def main() -> int:
    """Run the campaign; the last line states its figures."""
    parser = options(__doc__, NEVER)
    parser.add_argument("--only", default="", metavar="PATTERN", help="learners or commands that match")
    parser.add_argument("--all", action="store_true", help="let every call fail")
    parser.add_argument("--parts", type=int, default=1, help="that the work on each of these is divided into")
    args = parser.parse_args()
    if not hasattr(ctypes.CDLL(None), "fault_arm"):
        return preloaded()
    start = time.monotonic()
    names = [name for name in groups(Path()) if re.search(args.only, name)]
    units = [Unit(name, part, args.runs, args.all) for part in range(args.parts) for name in names]
    findings = run_units(units, work, args)
    print(f"faults: {summary(findings)}, seed {args.seed}, {time.monotonic() - start:.0f} s")
    return int(bool(findings.broken))


if __name__ == "__main__":
    sys.exit(main())
