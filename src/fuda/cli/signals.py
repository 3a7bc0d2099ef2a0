"""SIGINT and SIGTERM while a command runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from types import FrameType
from typing import Any, Self

from fuda.runtime.interrupts import end_process

_MOMENT = 0.01  # a signal that cannot be raised where it arrives is sent again after so many seconds
_NOT_IN = ("__del__", "_numba_unpickle", "_raw_object_cache_notify", "_raw_object_cache_getbuffer")


class Signals:
    """Within the block the first SIGINT or SIGTERM raises KeyboardInterrupt; the second is fatal.

    It then has the effect it has by default, also in the middle of compiled code: the process
    ends. That stays so after the block, in a process that runs only the command. Signals that are
    ignored, as in the background of a shell, stay so.

    Attributes
    ----------
    received : int
        The number of the signal, 0 where there was none.
    came_late : bool
        Whether it came within `deferred`.
    """

    def __init__(self) -> None:
        self.received, self.came_late, self._is_deferring = 0, False, False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler in (signal.SIG_DFL, signal.default_int_handler, end_process):
                self._before[number] = handler
                signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            if not self.received or handler is not end_process:
                signal.signal(number, handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if _must_not_raise(frame):
            Timer(_MOMENT, os.kill, (os.getpid(), number)).start()
            return
        self.received, self.came_late = number, self._is_deferring
        for other_number in self._before:
            signal.signal(other_number, signal.SIG_DFL)
        if not self._is_deferring:
            raise KeyboardInterrupt

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Within the block the first signal waits, so that what has been learned is saved."""
        self._is_deferring = True
        try:
            yield
        finally:
            self._is_deferring = False


def _must_not_raise(frame: FrameType | None) -> bool:
    """Whether a frame belongs to the end of an object, or answers compiled code or the compiler.

    After an exception at the end of an object, or in an answer to the compiler, Python prints it
    and goes on as if there were none; and a signal that comes while LLVM works is seen in its next
    question. After one in an answer to compiled code numba crashes.
    """
    while frame is not None:
        if frame.f_code.co_name in _NOT_IN or frame.f_globals.get("__name__") == "weakref":
            return True
        frame = frame.f_back
    return False
