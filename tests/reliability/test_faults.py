"""System calls and allocations that fail, one at a time: a few of the faults of the campaign."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler")
def test_nothing_is_lost_when_a_call_fails():
    line = [sys.executable, "-m", "reliability.faults", "--only", "^(fuda convert|HMM-dict)$", "--runs", "1"]
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ", 0 broken" in ended.stdout
