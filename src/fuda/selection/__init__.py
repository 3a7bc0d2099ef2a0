"""Choosing between models: folds, cross-validation, significance, search within a time budget.

Everything here takes estimators as objects, and knows no model.
"""

from fuda.selection.comparison import Comparison, compare
from fuda.selection.folds import Split, splits
from fuda.selection.goals import Figure, Goal, goal_for
from fuda.selection.search_report import SearchReport
from fuda.selection.significance import randomization_test
from fuda.selection.validation import Times, Validation, cross_validate

__all__ = [
    "Comparison",
    "Figure",
    "Goal",
    "SearchReport",
    "Split",
    "Times",
    "Validation",
    "compare",
    "cross_validate",
    "goal_for",
    "randomization_test",
    "splits",
]
