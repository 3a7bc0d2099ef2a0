"""What to label next, which labels to doubt, and how far one is: for people who label data."""

from __future__ import annotations

from fuda.active.learners import learner_for
from fuda.active.queries import ORDERS, Chooser, uncertainties

__all__ = ["ORDERS", "Chooser", "learner_for", "uncertainties"]
