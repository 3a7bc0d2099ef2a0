"""The names of `fuda.estimators` for a process that only applies models: without scikit-learn.

scikit-learn takes as long to import as everything else that labelling a sentence needs, and
labelling uses nothing of it but parameters by name. `fuda tag` sets `in_use` before it imports a
model. What else is called imports scikit-learn after all.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, Self

in_use = False


class BaseEstimator:
    """An object with parameters, which are those of its constructor."""

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        return sorted(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, those of parameters left out."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters."""
        for name, value in params.items():
            setattr(self, name, value)
        return self


class ConvergenceWarning(UserWarning):
    """The warning of a training, of which there is none."""


def clone(estimator: Any) -> Any:
    """Return a new object with the same parameters, of which kernels and models are new, too."""
    params = estimator.get_params()
    inner = {name: clone(value) for name, value in params.items() if isinstance(value, BaseEstimator)}
    return type(estimator)(**params | inner)


def check_random_state(seed: Any) -> Any:
    """See `sklearn.utils.check_random_state`."""
    if seed is None or isinstance(seed, int):  # parameters are checked when a model is loaded
        from numpy.random import RandomState

        return RandomState(seed)
    from sklearn import utils

    return utils.check_random_state(seed)


def check_is_fitted(estimator: Any, attributes: str) -> None:
    """See `sklearn.utils.validation.check_is_fitted`."""
    if not hasattr(estimator, attributes):
        from sklearn.utils import validation

        validation.check_is_fitted(estimator, attributes)
