"""What to label next, which labels to doubt, and how far one is: for people who label data."""

from __future__ import annotations

from fuda.active.doubts import Doubt, doubts
from fuda.active.learners import learner_for
from fuda.active.outlook import Outlook, Point, learning_curve, outlook
from fuda.active.queries import ORDERS, Chooser, entropies

__all__ = [
    "ORDERS",
    "Chooser",
    "Doubt",
    "Outlook",
    "Point",
    "doubts",
    "entropies",
    "learner_for",
    "learning_curve",
    "outlook",
]
