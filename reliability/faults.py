"""Faults injected one by one: every system call and every large allocation fails in turn.

A preloaded library (`faults.c`) lets the n-th call of an operation fail, for n = 1, 2, 3 …: files are
opened, read, written (all of the data or half), synced, renamed and removed; memory is allocated.
After each fault:

- an old file is as it was or a new one is complete, and no temporary file is left;
- the error is a DataError or ModelFileError of one line, or a MemoryError; the command prints one
  line and exits with 2;
- what is in memory is as it was or new, never half, and the operation succeeds when it is repeated.

Each fault happens in a process of its own, so that crashes are found too. It needs Linux and a C
compiler.

    python -m reliability.faults [--runs N] [--seed S] [--jobs N] [--parts N] [--only PATTERN]

By default every call fails once for each kind of fault; `--runs` bounds the faults of a kind in one
operation.
"""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import os
import random
import re
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

from fuda import DataError
from reliability.operations import Operation, empty, groups
from reliability.running import Found, done, options, said

OPEN, READ, WRITE, SYNC, RENAME, CHMOD, UNLINK, ALLOCATE = (1 << k for k in range(8))
ONCE, ALWAYS, SHORT, SHORT_THEN = range(4)
CHANGES = OPEN | WRITE | SYNC | RENAME | CHMOD | UNLINK
LEAST = 1 << 14  # bytes of an allocation that counts; the data of arrays count from 1000
LEARNED = 54321  # bytes by which the library learns where the data of arrays are allocated
NEVER = 10**9
SAMPLE = 40  # faults of a kind in an operation whose calls cannot be numbered
BROKEN = 1  # the exit code of a process in which a promise was broken


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


def attempt(operation: Operation, fault: Fault, n: int, folder: Path) -> tuple[int, str]:
    """Let the n-th call fail in a process of its own.

    Returns its exit code, and the number of calls or what went wrong.
    """
    empty(folder)
    story = folder.with_suffix(".story")
    child = os.fork()
    if not child:
        code = BROKEN
        with open(story, "w") as stream:
            faulthandler.enable(stream)
            try:
                operation.prepare()
                stream.write(str(_injected(operation, fault, n, folder)))
                code = 0
            except BaseException:  # told by exit code and story; the process must end here
                traceback.print_exc(file=stream)
            finally:
                stream.flush()
                os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, story.read_text()


def _injected(operation: Operation, fault: Fault, n: int, folder: Path) -> int:
    """Let the n-th call fail in this process, and check what must hold; return the number of calls."""
    shim, error = ctypes.CDLL(None), None
    where = os.fsencode(f"{folder}/")
    shim.fault_arm(fault.kinds, ctypes.c_long(n), fault.error, fault.mode, where, ctypes.c_size_t(LEAST))
    try:
        operation.run()
    except BaseException as raised:  # judged below
        error = raised
    calls = shim.fault_disarm()
    allowed = (DataError, SystemExit, *([MemoryError] if fault.kinds == ALLOCATE else []))
    if error is not None and not isinstance(error, allowed):
        raise error
    if isinstance(error, DataError):
        assert "\n" not in str(error), f"not one line: {error}"
        assert str(folder) in str(error), f"no file is named: {error}"
    operation.check(error)
    left = [path.name for path in folder.iterdir() if path.name.endswith(".part")]
    assert not left, f"temporary files are left: {left}"
    return calls


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


def work(unit: tuple[str, int, int, int], seed: int, folder: Path) -> Found:
    """Inject faults into the operations of one group: those that fall to this part of the work.

    A dry run counts the calls of a kind, and then each of them fails, or as many as are asked for.
    """
    group, part, parts, runs = unit
    if group.startswith("Auto"):  # goes by the clock: another run makes other calls
        runs = min(runs, SAMPLE)
    learn()
    chance, broken, counts = random.Random(f"{seed} {group}"), list[str](), Counter[str]()
    place = folder / "folder"
    for name, operation in groups(place)[group]():
        counts["operations"] += part == 0
        for words, fault in ((FILES if operation.uses_files else {}) | MEMORY).items():
            code, story = attempt(operation, fault, NEVER, place)
            if code:
                broken.append(f"{name} without a fault: {story}")
                break
            calls = range(1, int(story) + 1)
            chosen = calls if len(calls) <= runs else sorted(chance.sample(calls, runs))
            counts["calls left out"] += (len(calls) - len(chosen)) * (part == 0)
            for n in chosen[part::parts]:
                code, story = attempt(operation, fault, n, place)
                counts["faults"] += 1
                counts[words] += 1
                if code:
                    broken.append(f"{name}: {words} at call {n}: exit code {code}\n{story}")
            print(f"{name}: {words}: {len(chosen[part::parts])} of {len(calls)}", file=sys.stderr, flush=True)
    return Found(broken, counts)


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
    parser.add_argument("--parts", type=int, default=1, help="that the work on each of these is divided into")
    given = parser.parse_args()
    if not hasattr(ctypes.CDLL(None), "fault_arm"):
        return preloaded()
    start = time.monotonic()
    names = [name for name in groups(Path()) if re.search(given.only, name)]
    units = [(name, part, given.parts, given.runs) for part in range(given.parts) for name in names]
    found = done(units, work, given)
    print(f"faults: {said(found)}, seed {given.seed}, {time.monotonic() - start:.0f} s")
    return int(bool(found.broken))


if __name__ == "__main__":
    sys.exit(main())
