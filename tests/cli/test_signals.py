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


def test_a_signal_in_a_finalizer_is_not_lost():
    """Python prints an exception there, and goes on."""

    def work():
        with Signals():
            Signalled()  # ends at once
            ended = time.monotonic() + 10
            while time.monotonic() < ended:
                time.sleep(0.001)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.signal(signal.SIGINT, handler)
