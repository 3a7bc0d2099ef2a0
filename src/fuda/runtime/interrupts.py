"""The effect of Ctrl-C on training, and of signals on the process of the command.

Training that the user started directly keeps what it has learned so far, warns, and returns a
fitted model. Training that is part of larger work (a fold of a cross-validation, the prior of
another model, a `partial_fit`) must not: the larger work would continue with an incomplete model.
It ends at once, with the exception.

Signals arrive in the main thread only. Training in another thread is ended from there: it looks
after every iteration whether it is to end, and then does as if it were interrupted.

While functions are compiled, Ctrl-C waits: LLVM asks Python questions, and an exception in an
answer is printed and lost.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache

_inner: ContextVar[bool] = ContextVar("inner", default=False)
_noted: list[int] = []  # signals that wait
_is_to_end: ContextVar[Callable[[], bool]] = ContextVar("is_to_end", default=lambda: False)


@contextmanager
def inner_training() -> Iterator[None]:
    """Within the block, training is part of larger work, and an interrupt leaves the block."""
    before = _inner.set(True)
    try:
        yield
    finally:
        _inner.reset(before)


def is_inner() -> bool:
    """Whether the current training is part of larger work."""
    return _inner.get()


def guard_compiled_code() -> None:
    """Keep KeyboardInterrupt out of where it would crash numba.

    Where a compiled function returns a named tuple, numba asks a Python function for its class, at
    every call, and goes on with a null pointer if that raises: an interrupt at this moment is a
    crash. A cache that is written in C answers without running Python code. What is asked for the
    first time is not covered; the command lets signals wait there (`fuda.cli.signals`).
    """
    from numba.core import serialize

    if not hasattr(serialize._numba_unpickle, "cache_info"):
        serialize._numba_unpickle = lru_cache(maxsize=None)(serialize._numba_unpickle)


@contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """Within the block, Ctrl-C is noted; KeyboardInterrupt is raised where it ends.

    Blocks may be nested, and then it is raised at the end of the innermost. All this only in the
    main thread, and only where Python's own handler is installed: another may have more to do than
    to raise. That of the command lets signals wait itself (`fuda.cli.signals`).
    """
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or before not in (signal.default_int_handler, _note):
        yield
        return
    signal.signal(signal.SIGINT, _note)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _note:
            signal.signal(signal.SIGINT, before)
        if _noted:
            _noted.clear()
            raise KeyboardInterrupt


def _note(number: int, _: object) -> None:
    """Handle a signal that waits."""
    _noted.append(number)


@contextmanager
def ended_by(is_to_end: Callable[[], bool]) -> Iterator[None]:
    """Within the block, training is interrupted as soon as the function returns True."""
    before = _is_to_end.set(is_to_end)
    try:
        yield
    finally:
        _is_to_end.reset(before)


def check_end() -> None:
    """Raise KeyboardInterrupt where another thread wants the training of this one to end."""
    if _is_to_end.get()():
        raise KeyboardInterrupt


def end_on_signals() -> None:
    """Let SIGINT and SIGTERM end this process at any moment, by a line and a shell's exit code.

    This is for the moments before and after a command runs, in which KeyboardInterrupt would be a
    traceback. Signals that are ignored, as in the background of a shell, stay so. When Python has
    begun to end, they are ignored: what the process did is decided, and was reported.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, end_process)
    atexit.register(_ignore_signals)


def end_process(number: int, _: object) -> None:
    """End the process at once, as the effect of a signal."""
    with suppress(OSError):  # standard error is closed, or its reader is gone
        os.write(2, b"fuda: interrupted\n")
    os._exit(128 + number)


def _ignore_signals() -> None:
    """Ignore signals from now on."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
