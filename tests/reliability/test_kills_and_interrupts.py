"""Small campaigns of kills and interrupts; `make campaigns` runs larger ones."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fuda import registry
from fuda.registry import model_class
from reliability import interrupts, kills, trainings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("name", "runs"), [("kills", 1), ("interrupts", 2)])
def test_a_small_campaign(name, runs):
    line = [sys.executable, "-m", f"reliability.{name}", "--runs", str(runs), "--seed", "1"]
    result = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{name}: ")
    assert ", 0 broken" in result.stdout
    assert len(result.stdout.splitlines()) == 1


def test_every_model_is_killed_and_interrupted():
    assert {type(model).__name__ for model in trainings.LEARNERS.values()} == set(registry.MODELS)
    killed = {type(trainings.LEARNERS[name]).__name__ for name in trainings.RESUMABLE}
    assert killed == {
        name for name in registry.MODELS if "checkpoint" in model_class(name)._get_param_names()
    }
    assert set(interrupts.COMMANDS) == {model.command for model in registry.MODELS.values()}
    runs = interrupts.units(300, 0)
    assert sorted(number for *_, numbers in runs for number in numbers) == list(range(300))
    assert {name for kind, name, _ in runs if kind == "fit"} == set(trainings.LEARNERS)
    assert {name for kind, name, _ in runs if kind == "process"} == set(interrupts.COMMANDS)
    assert {name for name, _ in kills.units(200, 0)} == set(trainings.RESUMABLE)
