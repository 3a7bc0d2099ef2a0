"""Models do not depend on numbers of threads and hash seeds: one process for each choice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reliability import determinism

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_every_learner_gives_the_same_bytes(monkeypatch, capfd):
    """One thread, and two with another hash seed, for each registered model."""
    monkeypatch.chdir(ROOT)  # where the processes find the campaign
    monkeypatch.setattr(sys, "argv", ["determinism", "--runs", "2", "--only", "^[A-Za-z]*$"])
    ended = determinism.main()
    output = capfd.readouterr()
    assert ended == 0, output.err
    assert output.out.startswith("determinism: 10 models in each of 2 processes, 0 differ")
