"""Functions from nodes to label scores in a kernel's space.

Scores are computed by explicit weights of monomials or by pushing kernel values, behind one
protocol (`fuda.functions.base`).
"""

from __future__ import annotations

from fuda.functions.base import LabelFunction, TrainingScores
from fuda.functions.choice import function_for, scores_for, squared_norms
from fuda.functions.pushed import CACHE_BYTES

__all__ = ["CACHE_BYTES", "LabelFunction", "TrainingScores", "function_for", "scores_for", "squared_norms"]
