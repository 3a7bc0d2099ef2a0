"""What the package takes from scikit-learn: its base of estimators, and some helpers.

All that loading a model imports takes them from here, so that a process that only applies models
can do without scikit-learn (`fuda.runtime.light_estimators`).
"""

from typing import TYPE_CHECKING

from fuda.runtime import light_estimators

if TYPE_CHECKING or not light_estimators.in_use:
    from sklearn.base import BaseEstimator, clone
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted
else:
    from fuda.runtime.light_estimators import (
        BaseEstimator,
        ConvergenceWarning,
        check_is_fitted,
        check_random_state,
        clone,
    )

__all__ = ["BaseEstimator", "ConvergenceWarning", "check_is_fitted", "check_random_state", "clone"]
