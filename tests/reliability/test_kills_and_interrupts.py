"""Small campaigns of kills and interrupts; `python -m reliability.NAME` runs the large ones."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("name", "runs"), [("kills", 2), ("interrupts", 6), ("labelling", 5)])
def test_a_small_campaign(name, runs):
    line = [sys.executable, "-m", f"reliability.{name}", "--runs", str(runs), "--seed", "3"]
    found = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith(f"{name}: ")
    assert ", 0 broken" in found.stdout
    assert len(found.stdout.splitlines()) == 1
