"""Signals while a command runs."""

from __future__ import annotations

import signal
import time

import pytest
from llvmlite.binding.executionengine import ExecutionEngine
from numba.core import serialize

from fuda.cli.signals import _NOT_IN, Signals


class Signalled:
    """An object within whose finalizer a signal comes."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def _numba_unpickle():
    signal.raise_signal(signal.SIGINT)
    return True


def _raw_object_cache_notify():
    return _numba_unpickle()


@pytest.mark.parametrize("moment", [Signalled, _numba_unpickle, _raw_object_cache_notify])
def test_a_signal_where_nothing_may_be_raised_is_not_lost(moment):
    """In a finalizer, after which Python goes on, and where numba or LLVM ask for something."""

    def work():
        with Signals():
            assert moment()  # which ends at once
            ended = time.monotonic() + 10
            while time.monotonic() < ended:
                time.sleep(0.001)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.signal(signal.SIGINT, handler)


def test_what_numba_and_llvm_ask_has_these_names():
    asked = (serialize, "_numba_unpickle"), *((ExecutionEngine, name) for name in _NOT_IN[2:])
    assert len(asked) == 3
    assert all(callable(getattr(where, name)) for where, name in asked)
