"""Engines solve a `fuda.marginalized.problem.Problem`; `base` defines their protocol.

To add an engine, add a row to ENGINES; models refer to engines only by the parameter ``engine``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fuda.errors import DataError, short
from fuda.marginalized.engines.base import Engine
from fuda.marginalized.problem import Problem

AUTO = "auto"
# The class of each engine, in the order of preference of "auto".
ENGINES = {"cpu": "fuda.marginalized.engines.cpu.engine.CpuEngine"}


def check_engine(name: Any) -> None:
    """Raise DataError if there is no engine of that name."""
    known = [AUTO, *ENGINES]
    if not isinstance(name, str) or name not in known:
        raise DataError(
            f"engine={short(name)} is not built; choose {' or '.join(map(repr, known))} (the engines built "
            f"into this version: {', '.join(ENGINES)})"
        )


def make_engine(name: str, problem: Problem, n_jobs: int | None = None) -> Engine:
    """Make the engine of a name.

    Parameters
    ----------
    name : str
        A name of ENGINES, or "auto".
    problem : Problem
        The problem to solve.
    n_jobs : int or None
        The number of threads.

    Returns
    -------
    Engine
        The engine, at α = 0.
    """
    check_engine(name)
    module, cls = ENGINES[next(iter(ENGINES)) if name == AUTO else name].rsplit(".", 1)
    made: Engine = getattr(import_module(module), cls)(problem, n_jobs)
    return made
