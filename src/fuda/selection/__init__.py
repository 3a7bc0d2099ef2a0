"""Choosing between models: folds, cross-validation, significance, search within a time budget.

Everything here takes estimators as objects, and knows no model.
"""

from fuda.selection.comparison import Comparison as Comparison
from fuda.selection.comparison import compare as compare
from fuda.selection.folds import Split as Split
from fuda.selection.folds import splits as splits
from fuda.selection.goals import Goal as Goal
from fuda.selection.goals import goal_for as goal_for
from fuda.selection.significance import randomization_test as randomization_test
from fuda.selection.validation import Validation as Validation
from fuda.selection.validation import cross_validate as cross_validate
