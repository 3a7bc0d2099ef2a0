"""The effect of Ctrl-C on training.

Training that the user started directly keeps what it has learned so far, warns, and returns a fitted
model. Training that is part of larger work (a fold of a cross-validation, the prior of another model,
a `partial_fit`) must not: the larger work would continue with an incomplete model. It ends at once,
with the exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_inner: ContextVar[bool] = ContextVar("inner", default=False)


@contextmanager
def inner_training() -> Iterator[None]:
    """Within the block, training is part of larger work, and an interrupt leaves the block."""
    before = _inner.set(True)
    try:
        yield
    finally:
        _inner.reset(before)


def is_inner() -> bool:
    """Whether the current training is part of larger work."""
    return _inner.get()
