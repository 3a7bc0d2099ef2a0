"""Threads and processes of any kind give the answers of a single thread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_threads_fork_spawn_and_loky_agree():
    line = [sys.executable, "-m", "reliability.concurrency", "--only", "CRF-tree", "--size", "0"]
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("concurrency: 69 answers, 0 others than alone")
