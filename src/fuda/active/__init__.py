"""What to label next, which labels may be wrong, and how much further labels will help."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuda.active.doubts import Doubt
    from fuda.active.learners import learner_for
    from fuda.active.outlook import Outlook, Point, learning_curve
    from fuda.active.queries import ORDERS, Chooser, entropies

__all__ = ["ORDERS", "Chooser", "Doubt", "Outlook", "Point", "entropies", "learner_for", "learning_curve"]

# Imported on first use: a page responds before the models are loaded. The functions `doubts` and
# `outlook` are imported from the modules of the same names.
_MODULES = {
    "Doubt": "doubts",
    "learner_for": "learners",
    "Outlook": "outlook",
    "Point": "outlook",
    "learning_curve": "outlook",
    "ORDERS": "queries",
    "Chooser": "queries",
    "entropies": "queries",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'fuda.active' has no attribute {name!r}")
    return getattr(import_module(f"fuda.active.{_MODULES[name]}"), name)
