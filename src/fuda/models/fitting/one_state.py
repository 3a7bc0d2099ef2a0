"""Predictions of a model while another thread fits it or calls `partial_fit`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def on_snapshot(method: F) -> F:
    """Run a method of a labeler on a snapshot of its state at the time of the call.

    `fit` and `partial_fit` replace all attributes at once (`Labeler._adopt_state`). The method is
    called on an object that shares the attributes the labeler had, so that it never reads some of
    the old state and some of the new.
    """

    @wraps(method)
    def call(self: Any, *args: Any, **keywords: Any) -> Any:
        snapshot = object.__new__(type(self))
        snapshot.__dict__ = self.__dict__
        return method(snapshot, *args, **keywords)

    return call  # type: ignore[return-value]
