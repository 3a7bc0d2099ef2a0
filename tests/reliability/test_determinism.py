"""Models do not depend on numbers of threads and hash seeds: one process for each choice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_every_learner_gives_the_same_bytes():
    """One thread, and two with another hash seed, for each registered model."""
    line = [sys.executable, "-m", "reliability.determinism", "--runs", "2", "--only", "^[A-Za-z]*$"]
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("determinism: 10 models in each of 2 processes, 0 differ")
