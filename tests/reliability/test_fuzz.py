"""The inputs that fuzzing begins with, and all that it ever found, keep every promise."""

from __future__ import annotations

import time

import pytest

from reliability import seeds, targets

FINDS = [path for path in sorted(seeds.FINDS.glob("*/*")) if path.is_file()]


@pytest.mark.parametrize("path", FINDS, ids=lambda path: f"{path.parent.name}/{path.name}")
@pytest.mark.filterwarnings("ignore")  # numbers that overflow on the way to a refusal
def test_finds(path):
    began = time.monotonic()
    targets.run(path.parent.name, path.read_bytes())
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("target", targets.TARGETS)
@pytest.mark.filterwarnings("ignore")
def test_first_inputs(target):
    inputs = seeds.seeds(target)[:25]
    for data in inputs:
        targets.run(target, data)
    assert inputs


@pytest.mark.parametrize("target", targets.TARGETS)
def test_targets_take_any_bytes(target):
    assert [targets.run(target, data) for data in (b"", b"\0", b"\xff" * 9)] == [None] * 3


def test_a_broken_promise_is_seen(monkeypatch):
    monkeypatch.setattr("fuda.formats.jsonl.write", lambda records: '{"observations": ["other"]}')
    with pytest.raises(targets.Broken, match="was written as"):
        targets.run("jsonl", b'\0{"observations": ["a"]}')
