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
"""

from __future__ import annotations

import argparse
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
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np

from fuda import DataError
from reliability.operations import Operation, empty, groups

OPEN, READ, WRITE, SYNC, RENAME, CHMOD, UNLINK, ALLOCATE = (1 << k for k in range(8))
ONCE, ALWAYS, SHORT, SHORT_THEN = range(4)
CHANGES = OPEN | WRITE | SYNC | RENAME | CHMOD | UNLINK
LEAST = 1 << 14  # bytes of an allocation that counts; the data of arrays count from 1000
LEARNED = 54321  # bytes by which the library learns where the data of arrays are allocated
NEVER = 10**9
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


def campaign(pattern: str, runs: int, seed: int) -> str:
    """Inject all faults into the operations of groups whose names match; return the figures.

    Raises
    ------
    SystemExit
        If a promise was broken.
    """
    chance, names, injected, broken = random.Random(seed), 0, dict.fromkeys([*FILES, *MEMORY], 0), 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve() / "folder"
        found = (
            found for name, make in groups(folder).items() if re.search(pattern, name) for found in make()
        )
        for name, operation in found:
            names += 1
            for words, fault in ((FILES if operation.uses_files else {}) | MEMORY).items():
                code, story = attempt(operation, fault, NEVER, folder)
                assert code == 0, f"{name} without a fault: {story}"
                calls = range(1, int(story) + 1)
                for n in calls if len(calls) <= runs else sorted(chance.sample(calls, runs)):
                    code, story = attempt(operation, fault, n, folder)
                    injected[words] += 1
                    if code:
                        broken += 1
                        print(f"{name}: {words} at call {n}: exit code {code}\n{story}", file=sys.stderr)
                print(f"{name}: {words}: {len(calls)} calls", file=sys.stderr)
    by_kind = ", ".join(f"{count} {words}" for words, count in injected.items())
    figures = f"{sum(injected.values())} faults in {names} operations ({by_kind}), {broken} broke a promise"
    if broken:
        sys.exit(f"faults: {figures}")
    return figures


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
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--runs", type=int, default=NEVER, help="faults of a kind per operation (default: all)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the choice where there are more")
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="learners or commands whose names match"
    )
    options = parser.parse_args()
    if not hasattr(ctypes.CDLL(None), "fault_arm"):
        return preloaded()
    start = time.monotonic()
    learn()
    figures = campaign(options.only, options.runs, options.seed)
    print(f"faults: {figures}, seed {options.seed}, {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
