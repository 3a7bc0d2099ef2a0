"""Predictions of a model that another thread fits or teaches meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def of_one_state(method: F) -> F:
    """Let a method of a labeler see it as it was at the call, whatever becomes of it meanwhile.

    `fit` and `partial_fit` replace all attributes at once (`Labeler._become`). The method gets an
    object that shares those of the call, so that it never reads some old ones and some new ones.
    """

    @wraps(method)
    def seen(self: Any, *given: Any, **named: Any) -> Any:
        view = object.__new__(type(self))
        view.__dict__ = self.__dict__
        return method(view, *given, **named)

    return seen  # type: ignore[return-value]
