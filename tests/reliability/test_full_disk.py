"""A small disk that is full: a few attempts of the campaign, where a disk may be mounted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reliability.full_disk import reason_not_to

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_nothing_is_lost_on_a_full_disk(tmp_path):
    reason = reason_not_to(tmp_path)
    if reason:
        pytest.skip(f"no disk can be mounted: {reason}")
    line = [sys.executable, "-m", "reliability.full_disk", "--only", "^(store|compiled code|fuda convert)$"]
    run = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert " 0 broken" in run.stdout
    assert " refused" in run.stdout
