"""System calls and allocations that fail, one at a time: a few of the faults of the campaign."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import fuda
from reliability import faults

ROOT = Path(__file__).resolve().parents[2]


def test_calls_with_equal_stacks_within_the_package_are_one_site(tmp_path):
    source = Path(fuda.__file__).parent
    stack = f'  File "/lib/zipfile.py", line {{}} in write\n  File "{source}/files.py", line {{}} in save\n'
    text = "".join(
        f"call 4\nCurrent thread 0x1 (most recent call first):\n{stack.format(other, line)}"
        for other, line in [(1, 7), (2, 7), (3, 7), (4, 8), (5, 7)]
    )
    sites = faults.sites_in(text + "call 1\n")
    assert sites == [*[(4, ("files.py:7",))] * 3, (4, ("files.py:8",)), (4, ("files.py:7",)), (1, ())]
    assert list(faults.calls_by_site(sites).values()) == [[1, 2, 5], [4], [6]]
    assert [faults.is_first("a site", tmp_path) for _ in range(2)] == [True, False]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler")
def test_nothing_is_lost_when_a_call_fails(monkeypatch, capfd):
    monkeypatch.chdir(ROOT)  # where the process with the faults finds the campaign
    monkeypatch.setattr(sys, "argv", ["faults", "--only", "^(fuda convert|HMM-dict)$", "--runs", "1"])
    ended = faults.main()
    output = capfd.readouterr()
    assert ended == 0, output.err
    assert ", 0 broken" in output.out
