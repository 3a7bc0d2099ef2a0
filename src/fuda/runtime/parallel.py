"""Threads over blocks of structures.

A corpus is divided into contiguous blocks of whole structures. The division depends on the corpus
only, never on the number of threads, and results are returned in the order of the blocks: so no
result depends on ``n_jobs``. Threads help because compiled functions and numpy release the
interpreter lock.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, wraps
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

import numpy as np

from fuda.errors import DataError

Block = tuple[int, int]
Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

# Tasks for the threads of this process, and an entry per thread that waits for one.
_tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
_idle: list[None] = []

# How many functions with `one_blas_thread` are running, in all threads, and what ends the limit.
_limited: list[Any] = []
_limiting = threading.Lock()


def one_blas_thread(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """While the function runs, BLAS has one thread in this process.

    With more it divides sums by their number, so that the last digits would depend on it.
    """

    @wraps(function)
    def limited(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        with _limiting:
            _limited.append(None if _limited else _blas().limit(limits=1, user_api="blas"))
        try:
            return function(*arguments, **keywords)
        finally:
            with _limiting:
                limit = _limited.pop()
                if not _limited:
                    limit.restore_original_limits()

    return limited


@cache
def _blas() -> Any:
    """The libraries of this process."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def usable_cores() -> int:
    """Return the number of cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``: None and −1 are all cores, −2 all but one.

    >>> thread_count(3)
    3
    >>> thread_count(None) == thread_count(-1) == usable_cores()
    True
    """
    if n_jobs is None:
        return usable_cores()
    if n_jobs == 0:
        raise DataError("n_jobs=0: give the number of threads, or None (the same as -1) for all cores")
    return n_jobs if n_jobs > 0 else max(1, usable_cores() + 1 + n_jobs)


def blocks(offsets: np.ndarray, size: int) -> list[Block]:
    """Return ranges ``(first, last)`` of structures of at most `size` nodes, or of one structure.

    >>> blocks(np.array([0, 4, 5, 6, 14, 16]), size=6)
    [(0, 3), (3, 4), (4, 5)]
    """
    if 0 < offsets[-1] <= size:  # one sentence should not wait for a search
        return [(0, len(offsets) - 1)]
    ranges, first = [], 0
    while first < len(offsets) - 1:
        last = int(np.searchsorted(offsets, offsets[first] + size, side="right")) - 1
        ranges.append((first, max(last, first + 1)))
        first = ranges[-1][1]
    return ranges


def run(
    function: Callable[[Item], Result], blocks: Sequence[Item], n_jobs: int | None = None
) -> list[Result]:
    """Return ``[function(block) for block in blocks]``, computed by several threads.

    The error of the first block that failed is raised. The calling thread works too and
    never waits for a helper that has not started, so calls may nest, and several threads may
    call at once.

    >>> run(sum, [(0, 3), (3, 4)])
    [3, 7]
    """
    # Counting the cores is a system call, which one small block does not wait for.
    threads = 1 if n_jobs is None and len(blocks) < 2 else min(thread_count(n_jobs), len(blocks))
    if threads <= 1:
        return [function(block) for block in blocks]
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}
    # A signal may interrupt the caller anywhere, even inside the methods of a lock, which would
    # then stay locked for ever. So there are none: each of these operations is a single step.
    pending, done = deque(range(len(blocks))), SimpleQueue[None]()
    entered, finished = list[None](), list[None]()

    def work() -> None:
        while pending:
            try:
                k = pending.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                results[k] = function(blocks[k])
            except BaseException as error:  # handed to the caller below
                errors[k] = error
                pending.clear()

    def work_and_report() -> None:
        entered.append(None)  # from now on the caller waits; before, it has left nothing to do
        try:
            work()
        finally:
            finished.append(None)
            done.put(None)

    try:
        with suppress(RuntimeError, MemoryError):  # no more threads: those that have started work
            for _ in range(threads - 1):
                submit(work_and_report)
        work()
    except KeyboardInterrupt as error:
        errors[-1] = error
    pending.clear()
    while len(finished) < len(entered):
        try:
            done.get()
        except KeyboardInterrupt as error:
            errors[-1] = error
    if errors:
        raise errors[min(errors)]
    return [results[k] for k in range(len(blocks))]


def submit(task: Callable[[], None]) -> None:
    """Let a thread run a task: one that is idle, or a new one."""
    try:
        _idle.pop()
    except IndexError:
        _thread.start_new_thread(_run_tasks, (_tasks, _idle))
    _tasks.put(task)


def _run_tasks(tasks: SimpleQueue[Callable[[], None]], idle: list[None]) -> None:
    """Run tasks as they come, until the process ends."""
    while True:
        tasks.get()()
        idle.append(None)


def _forget_threads() -> None:
    """Reset after a fork: the child has no threads."""
    global _tasks, _idle
    _tasks, _idle = SimpleQueue(), []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
