"""What to label next, which labels to doubt, and how far one is: for people who label data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuda.active.learners import learner_for
    from fuda.active.queries import ORDERS, Chooser, uncertainties

__all__ = ["ORDERS", "Chooser", "learner_for", "uncertainties"]

# Imported on first use: a page answers before the models are there.
_MODULES = {
    "learner_for": "fuda.active.learners",
    "ORDERS": "fuda.active.queries",
    "Chooser": "fuda.active.queries",
    "uncertainties": "fuda.active.queries",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'fuda.active' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
