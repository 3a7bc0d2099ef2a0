"""What minimizers report, and when they stop."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning

# From a point to the value and the gradient there; the gradient may be overwritten by the next call.
Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
INTERRUPTED = "it was interrupted"
_PERIOD = 10


@dataclass(frozen=True)
class Progress:
    """The state after an iteration; `seconds` since the start."""

    iteration: int
    evaluations: int
    value: float
    gradient_norm: float
    seconds: float


@dataclass
class Result:
    """Where a minimizer ended: the point, why it stopped, and the way there."""

    x: np.ndarray
    converged: bool
    reason: str
    history: list[Progress] = field(default_factory=list)

    @property
    def value(self) -> float:
        return self.history[-1].value if self.history else float("nan")

    def settled(self, model: str) -> np.ndarray:
        """The point, for a `_fit` to keep; a warning to the caller of `fit` where it is not the best."""
        if not self.history and self.reason == INTERRUPTED:
            raise KeyboardInterrupt  # there is nothing yet that would be worth keeping
        if not self.converged:
            warnings.warn(
                f"the {model} has not converged: {self.reason}; the weights are the best so far",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self.x


class Watch:
    """Records the way of a minimizer and says when to stop.

    It stops where ‖gradient‖ ≤ tol · max(1, ‖x‖), and where the last ten iterations together have improved
    the objective by less than tol of its value.
    """

    def __init__(self, tol: float, max_iter: int, on_iteration: Callable[[Progress], None] | None) -> None:
        self.tol, self.max_iter, self.on_iteration = tol, max_iter, on_iteration
        self.history: list[Progress] = []
        self.evaluations = 0
        self._began = time.perf_counter()

    def resume(self, history: list[Progress]) -> None:
        """Go on behind iterations made earlier."""
        self.history = list(history)
        if history:
            self.evaluations = history[-1].evaluations - 1  # the last point is evaluated again
            self._began -= history[-1].seconds

    def record(self, value: float, gradient_norm: float) -> None:
        seconds = time.perf_counter() - self._began
        self.history.append(Progress(len(self.history) + 1, self.evaluations, value, gradient_norm, seconds))
        if self.on_iteration:
            self.on_iteration(self.history[-1])

    def verdict(self, x_norm: float, value: float, gradient_norm: float) -> str | None:
        """Why to stop now, or None."""
        if gradient_norm <= self.tol * max(1.0, x_norm):
            return "the gradient vanished"
        if len(self.history) > _PERIOD:
            before = self.history[-1 - _PERIOD].value
            if before - value <= self.tol * abs(value):
                return "the objective stopped falling"
        if len(self.history) >= self.max_iter:
            return f"max_iter={self.max_iter} was reached"
        return None
