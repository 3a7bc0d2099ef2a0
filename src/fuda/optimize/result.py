"""What minimizers report, and when they stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fuda.progress import Iteration, warn

# From a point to value and gradient there; the next call may overwrite the gradient.
Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
# Called after every iteration; a true answer ends the minimization.
OnIteration = Callable[[Iteration], object]
INTERRUPTED = "it was interrupted"
STOPPED = "a callback ended it"
_PERIOD = 10


@dataclass
class Result:
    """Where a minimizer ended.

    Parameters
    ----------
    x : ndarray
        The point.
    converged : bool
        Whether a condition on the gradient or the objective was met.
    reason : str
        Why it stopped.
    history : list of Iteration
        What was measured after each iteration.
    """

    x: np.ndarray
    converged: bool
    reason: str
    history: list[Iteration] = field(default_factory=list)

    @property
    def value(self) -> float:
        """The last value of the objective, nan where there was no iteration."""
        last = self.history[-1].objective if self.history else None
        return float("nan") if last is None else last

    def solution(self, model: str) -> np.ndarray:
        """Return the point, with a warning where training ended before a minimum, unasked.

        Parameters
        ----------
        model : str
            The name of the model whose `_fit` calls this.

        Returns
        -------
        ndarray
            The point.
        """
        if not self.history and self.reason == INTERRUPTED:
            raise KeyboardInterrupt  # there is nothing yet that would be worth keeping
        if not self.converged and self.reason != STOPPED:
            text = f"the {model} has not converged: {self.reason}; the weights are the best so far"
            warn(text, ConvergenceWarning)
        return self.x


class Watch:
    """Records the iterations of a minimizer and says when to stop.

    It stops where ‖gradient‖ ≤ tol · max(1, ‖x‖), and where the last ten iterations together have
    improved the objective by less than tol of its value.

    Parameters
    ----------
    tol : float
        The relative size of gradient and improvement at which to stop.
    max_iter : int
        The largest number of iterations.
    on_iteration : callable or None
        Called with every `Iteration`; a true answer stops the minimizer.
    """

    def __init__(self, tol: float, max_iter: int, on_iteration: OnIteration | None) -> None:
        self.tol, self.max_iter, self.on_iteration = tol, max_iter, on_iteration
        self.history: list[Iteration] = []
        self.evaluations = 0
        self.stopped = False
        self._began = time.perf_counter()

    def resume(self, history: list[Iteration]) -> None:
        """Continue after iterations made earlier."""
        self.history = list(history)
        if history:
            # the last point is evaluated again
            self.evaluations = (history[-1].evaluations or 0) - 1
            self._began -= history[-1].seconds

    def record(self, value: float, gradient_norm: float) -> None:
        """Record an iteration and report it."""
        seconds = time.perf_counter() - self._began
        number = len(self.history) + 1
        self.history.append(Iteration(number, seconds, value, gradient_norm, evaluations=self.evaluations))
        if self.on_iteration:
            self.stopped = bool(self.on_iteration(self.history[-1]))

    def verdict(self, x_norm: float, value: float, gradient_norm: float) -> tuple[bool, str] | None:
        """Whether the minimizer has converged, and why it stops now; None where it goes on."""
        if self.stopped:
            return False, STOPPED
        if gradient_norm <= self.tol * max(1.0, x_norm):
            return True, "the gradient vanished"
        if len(self.history) > _PERIOD:
            before = self.history[-1 - _PERIOD].objective
            if before is not None and before - value <= self.tol * abs(value):
                return True, "the objective stopped falling"
        if len(self.history) >= self.max_iter:
            return False, f"max_iter={self.max_iter} was reached"
        return None
