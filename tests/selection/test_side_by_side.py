from __future__ import annotations

import threading

import pytest

from fuda.errors import DataError
from fuda.runtime.interrupts import check_end
from fuda.selection.side_by_side import side_by_side


def failing():
    raise DataError("no such features")


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_with_their_keys_and_data_errors_are_results(workers):
    tasks = [(k, lambda k=k: k * k) for k in range(7)]
    results = dict(side_by_side([*tasks, ("bad", failing)], workers))
    assert str(results.pop("bad")) == "no such features"
    assert results == {k: k * k for k in range(7)}


@pytest.mark.parametrize("workers", [1, 2])
def test_tasks_are_taken_when_there_is_a_worker_for_them(workers):
    started = []

    def tasks():
        for k in range(6):
            started.append(k)
            yield k, lambda: None

    for done, _ in enumerate(side_by_side(tasks(), workers)):
        assert len(started) <= done + workers


def test_an_error_ends_what_is_running_beside_it():
    began, ended = threading.Event(), []

    def training():
        began.set()
        try:
            while True:
                check_end()
        except KeyboardInterrupt:
            ended.append("training")
            raise

    def broken():
        assert began.wait(60)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(side_by_side([("training", training), ("broken", broken)], 2))
    assert ended == ["training"]


def test_without_threads_tasks_run_in_this_one(monkeypatch):
    def no_more(task):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("fuda.runtime.parallel.submit", no_more)
    results = dict(side_by_side([(k, threading.get_ident) for k in range(3)], 2))
    assert set(results.values()) == {threading.get_ident()}
