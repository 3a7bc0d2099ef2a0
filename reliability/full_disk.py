"""A disk that is really full: operations run on a small one, full at another moment each time.

The disk is a tmpfs, filled but for a few pages before each attempt, more of them each time, until
there is room for all; it holds the files of the operation, standard output among them, and the
cache of compiled code. Operations and promises are those of `reliability.faults`, where single
calls fail; here all writes fail from some moment on, in whichever call, of whichever library, the
system says so. Removing what is not needed makes room again.

    python -m reliability.full_disk [--seed S] [--jobs N] [--only PATTERN]

It needs Linux and the right to mount; without, it says so and does nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from numba import njit

from fuda import DataError
from fuda.page.store import Step, Store
from fuda.runtime.compiled import _Cache, compiled
from reliability.operations import TEXT, Error, Operation, Operations, empty, groups, make_store
from reliability.running import Findings, options, run_units, summary

SIZE = 64 << 20  # bytes of the disk
PAGE = os.sysconf("SC_PAGE_SIZE")  # what a tmpfs gives out
NOBODY = Step("nobody", "tab")
CLOSE = 16  # free pages up to which every number is tried; further numbers grow by a quarter


@contextmanager
def disk(folder: Path) -> Iterator[None]:
    """Within the block a folder is a small disk; OSError where mounting is not permitted."""
    folder.mkdir(exist_ok=True)
    line = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "fuda", str(folder)]
    ended = subprocess.run(line, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise OSError(ended.stderr.strip())
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def reason_not_to(folder: Path) -> str | None:
    """Why there can be no such disk here; None if there can."""
    try:
        with disk(folder):
            return None
    except OSError as error:
        return str(error)


def fill(folder: Path, pages: int) -> Path:
    """Leave so many free pages on the disk of a folder; return the file that fills it."""
    filler = folder / "filler"
    free = os.statvfs(folder)
    with filler.open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, (free.f_bfree - pages) * free.f_frsize)
    return filler


def attempt(operation: Operation, pages: int, folder: Path) -> tuple[str, str]:
    """Run an operation in a process of its own: ``well``, ``refused`` or ``broken``, and why."""
    empty(folder)
    story = folder.with_suffix(".story")
    child = os.fork()
    if not child:
        code = 2
        with story.open("w") as stream:
            try:
                operation.prepare()
                code = int(is_refused(operation, pages, folder))
            except BaseException:  # reported by exit code and story; the process must end here
                traceback.print_exc(file=stream)
            finally:
                stream.flush()
                os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {0: "well", 1: "refused"}.get(code, "broken"), f"exit code {code}\n{story.read_text()}"


def is_refused(operation: Operation, pages: int, folder: Path) -> bool:
    """Run an operation, and check what must hold; whether there was an error."""
    error: BaseException | None = None
    filler = fill(folder, pages)
    try:
        operation.run()
    except (DataError, SystemExit) as raised:
        error = raised
    temporary = [path.name for path in folder.iterdir() if path.name.endswith((".part", ".tmp"))]
    assert not temporary, f"temporary files are left: {temporary}"
    filler.unlink()
    if isinstance(error, DataError):
        assert "\n" not in str(error), f"not one line: {error}"
        assert str(folder) in str(error), f"no file is named: {error}"
    operation.check(error)
    return error is not None and not (isinstance(error, SystemExit) and error.code == 0)


def store_operations(folder: Path) -> Operations:
    """A store of the page is made, and answers are kept in it."""
    path = folder / "store.db"
    acknowledged: list[int] = []

    def prepare() -> None:
        (folder / "data.conll").write_text(TEXT)

    def check_made(error: Error) -> None:
        make_store(folder)  # from whatever is there
        with closing(Store(path)) as store:
            assert store.count("1") == TEXT.count("\n\n"), "a file was added twice, or in part"

    def answer() -> None:
        with closing(Store(path)) as store:
            for number, structure in enumerate(list(store.structures()), start=1):
                store.step("accept", number, 0, ["O"] * len(structure), NOBODY)
                acknowledged.append(number)

    def check_answers(error: Error) -> None:
        with closing(Store(path)) as store:
            assert [number for *_, number, _ in store.steps()] == acknowledged, "not what was acknowledged"
            for item in store.items("source = 'person'"):
                assert item.labels == ["O"] * len(item.record.structure), "other labels than were given"

    yield "store made", Operation(partial(make_store, folder), check_made, prepare)
    yield "store answers", Operation(answer, check_answers, lambda: (prepare(), make_store(folder)))


def scaled(x: float) -> float:
    """Something to compile."""
    return 2.0 * x


def cache_operations(folder: Path) -> Operations:
    """A function is compiled, and its code is kept on the disk if there is room."""

    def run() -> None:
        assert compiled(scaled)(3.0) == 6.0

    def check(error: Error) -> None:
        assert error is None
        run()

    def prepare() -> None:
        _Cache._folders = lambda self: [folder]  # type: ignore[method-assign]

    njit(scaled)(3.0)  # sets up the compiler, once for all attempts, which are forks
    yield "compiled code", Operation(run, check, prepare)


def all_groups(folder: Path) -> dict[str, Callable[[], Operations]]:
    """The operations of all campaigns, and those of this one."""
    further = {"store": partial(store_operations, folder), "compiled code": partial(cache_operations, folder)}
    return further | groups(folder)


def work(unit: str, seed: int, folder: Path) -> Findings:
    """Let the operations of one group meet a full disk."""
    broken, counts = list[str](), Counter[str]()
    place = folder / "disk"
    with disk(place):
        for name, operation in all_groups(place)[unit]():
            if not operation.uses_files:
                continue
            counts["operations"] += 1
            for pages in moments(operation, place):
                ended, story = attempt(operation, pages, place)
                counts["attempts"] += 1
                counts[ended] += 1
                if ended == "broken":
                    broken.append(f"{name}: {pages} free pages: {story}")
            print(f"{name}: {dict(counts)}", file=sys.stderr, flush=True)
    return Findings(broken, counts)


def moments(operation: Operation, folder: Path) -> list[int]:
    """Numbers of free pages, from none to more than the operation takes."""
    attempt(operation, SIZE // PAGE // 2, folder)
    used = os.statvfs(folder)
    steps, last = [0], 2 * (used.f_blocks - used.f_bfree) + 1
    while steps[-1] < last:
        steps.append(steps[-1] + (1 if steps[-1] < CLOSE else steps[-1] // 4))
    return steps


def main() -> int:
    """Run the campaign; the last line states its figures."""
    parser = options(__doc__, 0)
    parser.add_argument("--only", default="", metavar="PATTERN", help="learners or commands that match")
    args = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        reason = reason_not_to(Path(folder))
    if reason:
        print(f"full_disk: nothing was done, since no disk can be mounted here: {reason}")
        return 0
    findings = run_units([name for name in all_groups(Path()) if re.search(args.only, name)], work, args)
    print(f"full_disk: {summary(findings)}, {time.monotonic() - start:.0f} s")
    return int(bool(findings.broken))


if __name__ == "__main__":
    sys.exit(main())
