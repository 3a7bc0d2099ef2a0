"""Engines solve a `fuda.marginalized.problem.Problem`; `base` defines their protocol.

To add an engine, add a row to ENGINES. Models import this module alone, and refer to engines only
by the parameter ``engine``; engines know each other by their classes alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fuda.errors import DataError, short
from fuda.marginalized.engines.base import Engine, Margins, PerceptronState, PlannedTraining
from fuda.marginalized.engines.cluster import ClusterEngine, current_client, on_cluster
from fuda.marginalized.problem import Problem
from fuda.progress import warn

__all__ = [
    "AUTO", "ENGINES", "Engine", "Margins", "PerceptronState", "PlannedTraining", "can_train_jointly",
    "check_engine", "make_engine", "on_cluster",
]  # fmt: skip
AUTO = "auto"
ENGINES = {
    "cpu": "fuda.marginalized.engines.cpu.engine.CpuEngine",
    "cuda": "fuda.marginalized.engines.cuda.engine.CudaEngine",
}
# With at least so many pairs of nodes, "auto" uses a card: the CPU is fast with fewer. In training
# the limit is lower, since every epoch computes the pairs again.
_LARGE, _LARGE_IN_TRAINING = 1 << 30, 1 << 24


def check_engine(name: Any) -> None:
    """Raise DataError if there is no engine of that name."""
    known = [AUTO, *ENGINES]
    if not isinstance(name, str) or name not in known:
        names = ", ".join(map(repr, known))
        raise DataError(f"engine={short(name)}: there is no such engine; choose {names}")


def make_engine(name: str, problem: Problem, n_jobs: int | None = None) -> Engine:
    """Make the engine of a name.

    Parameters
    ----------
    name : str
        A name of ENGINES, or "auto": "cuda" for large problems that it solves where there is
        a card that can be used, else "cpu". Within `cluster.on_cluster` it is the engine of
        the cluster.
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
    if (client := current_client()) is not None:
        return ClusterEngine(problem, n_jobs, client)
    if name != AUTO:
        return _created(name, problem, n_jobs)
    from fuda.marginalized.engines.cuda.device import NoCard, Refused, has_driver
    from fuda.marginalized.engines.cuda.engine import refusal
    from fuda.marginalized.engines.cuda.plan import is_training

    pairs = int(problem.sources.offsets[-1]) * int(problem.targets.offsets[-1])
    if pairs >= (_LARGE_IN_TRAINING if is_training(problem) else _LARGE) and has_driver():
        try:
            if refusal(problem) is None:
                return _created("cuda", problem, n_jobs)
        except NoCard:  # as if there were no driver
            pass
        except Refused as error:
            warn(f"{error}; engine='auto' continues on the CPU", UserWarning)
    return _created("cpu", problem, n_jobs)


def can_train_jointly(name: str) -> bool:
    """Return whether engines of that name may train several perceptrons at the same time."""
    from fuda.marginalized.engines.cuda.device import has_driver

    return current_client() is None and (name == "cuda" or (name == AUTO and has_driver()))


def _created(name: str, problem: Problem, n_jobs: int | None) -> Engine:
    module, cls = ENGINES[name].rsplit(".", 1)
    engine: Engine = getattr(import_module(module), cls)(problem, n_jobs)
    return engine
