"""The names of `fuda.runtime.estimators` without scikit-learn, where no estimators are composed.

scikit-learn takes as long to import as everything else that labelling a sentence needs, and
learning and labelling use nothing of it but parameters by name. `fuda train`, `tag` and others set
`in_use` before they import a model. What else is called imports scikit-learn after all.
"""

from __future__ import annotations

import copy
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

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def __repr__(self) -> str:
        return as_code(self)


def as_code(estimator: Any) -> str:
    """Return Python code of an estimator, with the parameters that differ from defaults."""
    parameters = inspect.signature(type(estimator)).parameters
    changed = [
        f"{name}={value!r}"
        for name, value in estimator.get_params(deep=False).items()
        if repr(value) != repr(parameters[name].default)
    ]
    return f"{type(estimator).__name__}({', '.join(changed)})"


class ConvergenceWarning(UserWarning):
    """The warning of a training that ended early."""


def clone(estimator: Any) -> Any:
    """Return a new object with copies of the parameters; kernels and models are not fitted."""
    if not isinstance(estimator, BaseEstimator):
        return copy.deepcopy(estimator)
    return type(estimator)(**{name: clone(value) for name, value in estimator.get_params().items()})


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
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate "
            "arguments before using this estimator."
        )
