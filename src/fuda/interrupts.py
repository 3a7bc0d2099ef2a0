"""The effect of Ctrl-C on training, and of signals on the process of the command.

Training that the user started directly keeps what it has learned so far, warns, and returns a
fitted model. Training that is part of larger work (a fold of a cross-validation, the prior of
another model, a `partial_fit`) must not: the larger work would continue with an incomplete model.
It ends at once, with the exception.
"""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

_inner: ContextVar[bool] = ContextVar("inner", default=False)


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


def own_process() -> None:
    """Let SIGINT and SIGTERM end this process at any moment, by a line and a shell's exit code.

    This is for the moments before and after a command runs, in which KeyboardInterrupt would be a
    traceback. Signals that are ignored, as in the background of a shell, stay so. When Python has
    begun to end, they are ignored: what the process did is decided, and has been said.
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
