"""Threads over blocks of structures.

A corpus is divided into contiguous blocks of whole structures. The division depends on the corpus
only, never on the number of threads, and results are returned in the order of the blocks: so no
result depends on ``n_jobs``. Threads help because compiled functions and numpy release the
interpreter lock.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

import numpy as np

from fuda.errors import DataError

Block = tuple[int, int]
Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_THREADS = 1024  # the executor starts threads only as they are needed
_executor: ThreadPoolExecutor | None = None
_lock = threading.Lock()


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

    The error of the first block that failed is raised. The calling thread works too and never waits
    for a helper that has not started, so calls may nest, and several threads may call at once.

    >>> run(sum, [(0, 3), (3, 4)])
    [3, 7]
    """
    # Counting the cores is a system call, which one small block does not wait for.
    threads = 1 if n_jobs is None and len(blocks) < 2 else min(thread_count(n_jobs), len(blocks))
    if threads <= 1:
        return [function(block) for block in blocks]
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}
    ticket = itertools.count()  # next() is atomic

    def work() -> None:
        while not errors and (k := next(ticket)) < len(blocks):
            try:
                results[k] = function(blocks[k])
            except BaseException as error:  # handed to the caller below
                errors[k] = error

    # Helpers that have not started when all blocks are taken, whenever that is, find the gate closed.
    gate, inside, closed = threading.Condition(), 0, False

    def help() -> None:
        nonlocal inside
        with gate:
            if closed:
                return
            inside += 1
        work()
        with gate:
            inside -= 1
            gate.notify()

    with suppress(RuntimeError, MemoryError):  # no more threads: those that have started do the work
        for _ in range(threads - 1):
            _shared_executor().submit(help)
    work()
    with gate:
        closed = True
        gate.wait_for(lambda: not inside)
    if errors:
        raise errors[min(errors)]
    return [results[k] for k in range(len(blocks))]


def _shared_executor() -> ThreadPoolExecutor:
    """The executor of this process."""
    global _executor
    with _lock:
        if _executor is None:
            _executor = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="fuda")
        return _executor


def _forget_executor() -> None:
    """Reset after a fork: the child has no threads, and its copy of the lock may be locked."""
    global _executor, _lock
    _executor = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_executor)
