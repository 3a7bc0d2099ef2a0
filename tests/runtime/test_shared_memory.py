"""Numbers that two processes share, and processes that are out of reach."""

from __future__ import annotations

import multiprocessing
import os
import sys

import numpy as np
import pytest

from fuda.runtime.shared_memory import Offer, accepted, offered

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files of memory are Linux's")


def open_files():
    return len(os.listdir("/proc/self/fd"))


def double(offer):
    """In another process: numbers are doubled where they are."""
    numbers = accepted(offer)
    if numbers is not None:
        numbers *= 2.0
    return numbers is not None


@pytest.fixture(scope="module")
def other_process():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield pool


@linux
def test_another_process_writes_numbers_that_are_read_here(other_process):
    with offered(10_000) as (numbers, offer):
        numbers[:] = np.arange(10_000.0)
        assert other_process.apply(double, (offer,))
    assert numbers.tolist() == np.arange(0.0, 20_000.0, 2.0).tolist()


@linux
def test_an_offer_ends_but_what_was_accepted_stays():
    with offered(3) as (numbers, offer):
        theirs = accepted(offer)
    assert accepted(offer) is None
    numbers[2] = 5.0
    del numbers
    assert theirs.tolist() == [0.0, 0.0, 5.0]


@linux
def test_nothing_stays_open():
    before = open_files()
    for _ in range(3):
        with offered(100) as (numbers, offer):
            theirs = accepted(offer)
        assert len(theirs) == len(numbers) == 100
        del numbers, theirs
    assert open_files() == before


@linux
def test_another_file_at_the_same_place_is_not_taken_for_it(tmp_path):
    """As on another machine, where a process has the same number."""
    with offered(3) as (numbers, offer), open(tmp_path / "file", "wb+") as other:
        other.write(bytes(24))
        assert accepted(offer._replace(name=f"{offer.name} of another machine")) is None
        assert accepted(Offer(f"/proc/{os.getpid()}/fd/{other.fileno()}", offer.name)) is None
        assert accepted(offer._replace(path="/proc/1/fd/99999")) is None
        assert numbers.tolist() == [0.0, 0.0, 0.0]


def test_no_memory_of_this_kind(monkeypatch):
    def refused(name):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "memfd_create", refused, raising=False)
    with offered(2) as (numbers, offer):
        assert offer is None
        assert numbers.tolist() == [0.0, 0.0]


def test_neither_where_there_is_nothing_to_share_or_no_memory(monkeypatch):
    with offered(0) as (numbers, offer):
        assert len(numbers) == 0
        assert offer is None

    def full(file, size):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(os, "ftruncate", full)
    with offered(2) as (numbers, offer):
        assert offer is None
        assert numbers.tolist() == [0.0, 0.0]
