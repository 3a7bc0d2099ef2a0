"""Tasks that run side by side: in threads of this process, or by joblib's backend.

Threads suffice here, since compiled code runs without the interpreter lock, and they share data
and compiled code. Within ``joblib.parallel_config(backend="dask")``, or another backend of
processes, tasks run there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from fuda.errors import DataError
from fuda.runtime import parallel
from fuda.runtime.interrupts import ended_by

Key = TypeVar("Key")
Task = Callable[[], Any]


def has_processes() -> bool:
    """Whether joblib was told to run tasks in other processes."""
    import joblib

    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    return not getattr(backend, "supports_sharedmem", False)


def worker_count(n_jobs: int | None) -> int:
    """How many tasks can run side by side: by joblib's backend of processes, or in threads."""
    if not has_processes():
        return parallel.thread_count(n_jobs)
    import joblib

    return int(joblib.effective_n_jobs(-1))


def side_by_side(tasks: Iterable[tuple[Key, Task]], workers: int) -> Iterator[tuple[Key, Any]]:
    """Run tasks side by side.

    Parameters
    ----------
    tasks : iterable of (object, callable)
        A key and a function without parameters per task. In threads, the next task starts when a
        thread is free; if tasks may run in processes, it must be possible to pickle the functions.
    workers : int
        How many threads; with 1 the tasks run one by one in this one.

    Yields
    ------
    (object, object)
        The key and the result of each task, in the order of completion; if it raised a
        `DataError`, that is its result. Any other error is raised; then, and if the generator is
        closed or interrupted, trainings that are still running end after their current iteration.

    Examples
    --------
    >>> sorted(side_by_side([("a", lambda: 1), ("b", lambda: 2)], 2))
    [('a', 1), ('b', 2)]
    """
    if has_processes():
        yield from _in_processes(list(tasks))
    elif workers > 1:
        yield from _in_threads(iter(tasks), workers)
    else:
        for key, task in tasks:
            yield key, _outcome(task)


def _outcome(task: Task) -> Any:
    """The result of a task, or its DataError."""
    try:
        return task()
    except DataError as error:
        return error


def _in_processes(tasks: list[tuple[Key, Task]]) -> Iterator[tuple[Key, Any]]:
    import joblib

    outcomes = joblib.Parallel(n_jobs=-1)(joblib.delayed(_outcome)(task) for _, task in tasks)
    yield from zip([key for key, _ in tasks], outcomes, strict=True)


def _in_threads(tasks: Iterator[tuple[Key, Task]], workers: int) -> Iterator[tuple[Key, Any]]:
    # As in `fuda.runtime.parallel`, there are no locks that a signal could leave locked.
    done, running = SimpleQueue[tuple[Key, Any, BaseException | None]](), 0
    over, begun, finished = list[None](), list[None](), list[None]()

    def work(key: Key, task: Task) -> None:
        begun.append(None)  # from here on, the caller waits for the end of this task
        outcome, raised = None, None
        try:
            if not over:
                with ended_by(lambda: bool(over)):
                    outcome = _outcome(task)
        except BaseException as error:  # raised below, in the thread of the caller
            raised = error
        finished.append(None)
        done.put((key, outcome, raised))

    try:
        while True:
            while running < workers and (following := next(tasks, None)) is not None:
                try:
                    parallel.submit(partial(work, *following))
                except (RuntimeError, MemoryError):  # no more threads
                    work(*following)
                running += 1
            if not running:
                return
            key, outcome, raised = done.get()
            running -= 1
            if raised is not None:
                raise raised
            yield key, outcome
    finally:
        over.append(None)
        while len(finished) < len(begun):
            done.get()
