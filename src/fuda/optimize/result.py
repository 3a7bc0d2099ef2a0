"""The loop that all minimizers share: what they record and report, and when they stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fuda.interrupts import is_inner
from fuda.progress import Iteration, warn

# From a point to value and gradient there; the next call may overwrite the gradient.
Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
# Called after every iteration; a true result ends the minimization.
OnIteration = Callable[[Iteration], object]
# A point of a minimization, its value, and the norms of the gradient and of the point.
Point = tuple[np.ndarray, float, float, float]
INTERRUPTED = "it was interrupted"
STOPPED = "a callback ended it"
_PERIOD = 10  # iterations over which the objective must improve


@dataclass
class Result:
    """The last point of a minimization, and why it is the last.

    Parameters
    ----------
    x : ndarray
        The point.
    converged : bool
        Whether the gradient vanished or the objective stopped falling.
    reason : str
        Why it stopped.
    history : list of Iteration
        The measurements after each iteration.
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
        """Return the point; warn unless it is a minimum or a callback ended the training.

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
            raise KeyboardInterrupt  # there is no result yet that is worth keeping
        if not self.converged and self.reason != STOPPED:
            message = f"the {model} has not converged: {self.reason}; the weights are the best so far"
            warn(message, ConvergenceWarning)
        return self.x


class Watch:
    """The loop of a minimizer: records its iterations and decides when to stop.

    It stops where ‖gradient‖ ≤ tol · max(1, ‖x‖), and where the last ten iterations together have
    improved the objective by less than tol times its value.

    Parameters
    ----------
    tol : float
        The relative size of gradient and improvement at which to stop.
    max_iter : int
        The largest number of iterations.
    on_iteration : callable or None
        Called with every `Iteration`; a true result stops the minimizer.

    Attributes
    ----------
    history : list of Iteration
        The iterations so far.
    evaluations : int
        How often the function has been evaluated.
    """

    def __init__(self, tol: float, max_iter: int, on_iteration: OnIteration | None) -> None:
        self.tol, self.max_iter, self.on_iteration = tol, max_iter, on_iteration
        self.history: list[Iteration] = []
        self.evaluations = 0
        self.stopped = False
        self._began = time.perf_counter()

    def resume(self, history: list[Iteration]) -> None:
        """Continue after the iterations of an earlier run."""
        self.history = list(history)
        if history:
            self.evaluations = (history[-1].evaluations or 0) - 1  # it is evaluated again
            self._began -= history[-1].seconds

    def counted(self, function: Function) -> Function:
        """Return the function with its evaluations counted."""

        def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
            found = function(x)
            self.evaluations += 1
            return found

        return evaluate

    def follow(self, points: Iterator[Point], x: np.ndarray) -> Result:
        """Iterate over the points of a minimizer, of which the first is its start, until it stops.

        Ctrl-C ends it after the last whole iteration, unless it is part of a larger training.

        Parameters
        ----------
        points : iterator of Point
            Ends where no step improves the objective.
        x : ndarray
            The start.

        Returns
        -------
        Result
            The last point.
        """
        converged, reason = True, "no step improves the objective any more"
        try:
            for k, point in enumerate(points):
                x, value, gradient_norm, x_norm = point
                if k > 0:
                    self.record(value, gradient_norm)
                stop = self.verdict(x_norm, value, gradient_norm)
                if stop:
                    converged, reason = stop
                    break
        except KeyboardInterrupt:
            if is_inner():
                raise
            converged, reason = False, INTERRUPTED
        return Result(x, converged, reason, self.history)

    def record(self, value: float, gradient_norm: float) -> None:
        """Record an iteration and report it."""
        seconds = time.perf_counter() - self._began
        number = len(self.history) + 1
        self.history.append(Iteration(number, seconds, value, gradient_norm, evaluations=self.evaluations))
        if self.on_iteration:
            self.stopped = bool(self.on_iteration(self.history[-1]))

    def verdict(self, x_norm: float, value: float, gradient_norm: float) -> tuple[bool, str] | None:
        """Whether the minimizer has converged, and why it stops now; None to continue."""
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
