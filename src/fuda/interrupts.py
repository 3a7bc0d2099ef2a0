"""What Ctrl-C does to a training.

A training that stands alone keeps what it has learned so far, warns, and yields a fitted model. A training
that is part of larger work (a fold of a cross-validation, the prior of another model, a `partial_fit`) must
not do so: the larger work would go on with a model that was cut short. It ends at once, by the exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_inner: ContextVar[bool] = ContextVar("inner", default=False)


@contextmanager
def inner_training() -> Iterator[None]:
    """Within the block, trainings are part of larger work, and an interrupt leaves the block."""
    before = _inner.set(True)
    try:
        yield
    finally:
        _inner.reset(before)


def is_inner() -> bool:
    """Whether the training that runs is part of larger work."""
    return _inner.get()
