"""Engines compute what a `fuda.marginalized.problem.Problem` asks for; `base` has their protocol.

To add an engine, add a row to ENGINES; models name engines by the parameter ``engine`` only.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fuda.errors import DataError, short
from fuda.marginalized.engines.base import Engine
from fuda.marginalized.problem import Problem

AUTO = "auto"
# Where the class of each engine is, in the order in which "auto" prefers them.
ENGINES = {"cpu": "fuda.marginalized.engines.cpu.engine.CpuEngine"}


def check_engine(name: Any) -> None:
    """Raise DataError where a name is not that of an engine."""
    known = [AUTO, *ENGINES]
    if not isinstance(name, str) or name not in known:
        raise DataError(
            f"engine={short(name)} is not built; choose {' or '.join(map(repr, known))} (the engines built "
            f"into this version: {', '.join(ENGINES)})"
        )


def make_engine(name: str, problem: Problem, n_jobs: int | None = None) -> Engine:
    """The engine of that name for a problem, at α = 0."""
    check_engine(name)
    module, cls = ENGINES[next(iter(ENGINES)) if name == AUTO else name].rsplit(".", 1)
    made: Engine = getattr(import_module(module), cls)(problem, n_jobs)
    return made
