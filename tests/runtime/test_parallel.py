from __future__ import annotations

import _thread
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from fuda.errors import DataError
from fuda.runtime import parallel
from fuda.runtime.parallel import blocks, run, thread_count, usable_cores


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 100))
def test_blocks_cover_the_corpus(lengths, size):
    offsets = np.cumsum([0, *lengths])
    cut = blocks(offsets, size)
    assert [i for first, last in cut for i in range(first, last)] == list(range(len(lengths)))
    for first, last in cut:
        assert last - first == 1 or offsets[last] - offsets[first] <= size


def test_thread_count():
    assert thread_count(None) == thread_count(-1) == usable_cores() >= 1
    assert thread_count(7) == 7
    assert thread_count(-1000) == 1
    with pytest.raises(DataError, match="n_jobs=0"):
        thread_count(0)


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 30])
def test_results_come_in_order(n_jobs):
    def function(block):
        time.sleep(0.001 * (block[0] % 3))
        return block

    pairs = [(k, k + 1) for k in range(50)]
    assert run(function, pairs, n_jobs) == pairs
    assert run(function, [], n_jobs) == []


def test_work_is_shared():
    barrier = threading.Barrier(3, timeout=10)

    def function(block):
        barrier.wait()  # passes only when three threads work at once
        return threading.get_ident()

    assert len(set(run(function, [(k, k + 1) for k in range(3)], 3))) == 3


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_the_first_error_is_raised(n_jobs):
    started = []

    def function(block):
        started.append(block)
        if block[0] >= 5:
            raise DataError(f"block {block[0]}")

    with pytest.raises(DataError, match="block 5"):
        run(function, [(k, k + 1) for k in range(1000)], n_jobs)
    assert len(started) < 1000


@pytest.mark.parametrize("started", [0, 1])
def test_a_system_without_more_threads(started, monkeypatch):
    """Fewer threads do the work."""
    parallel._forget_threads()
    start, allowed = _thread.start_new_thread, [None] * started

    def refuse(*task):
        if not allowed:
            raise RuntimeError("can't start new thread")
        allowed.pop()
        return start(*task)

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    pairs = [(k, k + 1) for k in range(50)]
    for _ in range(20):
        assert run(sum, pairs, 5) == [2 * k + 1 for k in range(50)]


INTERRUPTED = """
import random, signal, sys, time
from fuda.runtime.parallel import run

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
random.seed(1)
count = 0
while count < 1000:
    running = set()
    def function(block):
        running.add(block)
        sum(range(300))
        running.remove(block)
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 5e-4))
        for _ in range(50):
            run(function, range(6), 4)
        time.sleep(0.01)  # a signal that another thread was given is handled afterwards
    except KeyboardInterrupt:
        count += 1
"""


def test_interrupts_never_leave_a_thread_behind_that_waits():
    """At any moment of a call; the process would not end."""
    subprocess.run([sys.executable, "-c", INTERRUPTED], check=True, timeout=120)


def test_calls_may_nest():
    def outer(block):
        return sum(run(lambda inner: inner[0], [(k, k + 1) for k in range(20)], 4)) + block[0]

    assert run(outer, [(k, k + 1) for k in range(20)], 4) == [190 + k for k in range(20)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_gets_its_own_threads():
    pairs = [(k, k + 1) for k in range(20)]
    assert run(sum, pairs, 3) == [2 * k + 1 for k in range(20)]
    child = os.fork()
    if child == 0:
        os._exit(0 if run(sum, pairs, 3) == [2 * k + 1 for k in range(20)] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_blas_has_one_thread_within_a_function_and_what_it_had_afterwards():
    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    inner = parallel.one_blas_thread(threads)

    @parallel.one_blas_thread
    def outer():
        return inner(), threads()  # the end of the inner one does not end the limit

    with threadpool_limits(2, "blas"):
        before = threads()
        assert outer() == ({1}, {1})
        assert threads() == before
