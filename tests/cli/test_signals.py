"""Signals while a command runs."""

from __future__ import annotations

import signal
import time

import pytest

from fuda.cli.signals import Signals


class Signalled:
    """An object within whose finalizer a signal comes."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def _numba_unpickle():
    signal.raise_signal(signal.SIGINT)
    return True


@pytest.mark.parametrize("moment", [Signalled, _numba_unpickle])
def test_a_signal_where_nothing_may_be_raised_is_not_lost(moment):
    """In a finalizer, after which Python goes on, and where numba asks for a class."""

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
