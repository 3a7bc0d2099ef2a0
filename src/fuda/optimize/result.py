"""The loop that all minimizers share: what they record and report, and when they stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuda.checks import check_arrays, count_in
from fuda.errors import DataError
from fuda.progress import Iteration, warn
from fuda.runtime.estimators import ConvergenceWarning
from fuda.runtime.interrupts import is_inner

# From a point to value and gradient there; the next call may overwrite the gradient.
Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
# Called after every iteration; a true result ends the minimization.
OnIteration = Callable[[Iteration], object]
# A point of a minimization, its value, and the norms of the gradient and of the point.
Point = tuple[np.ndarray, float, float, float]
INTERRUPTED = "it was interrupted"
STOPPED = "a callback ended it"
_PERIOD = 10  # the objective must improve within so many iterations


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

    def resume(self, history: list[Iteration], stopped: bool) -> None:
        """Continue after the iterations of an earlier run, which a callback may have ended."""
        self.history, self.stopped = list(history), stopped
        if history:
            self.evaluations = (history[-1].evaluations or 0) - 1  # it is evaluated again
            self._began -= history[-1].seconds

    def counted(self, function: Function) -> Function:
        """Return the function with its evaluations counted."""

        def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
            value_and_gradient = function(x)
            self.evaluations += 1
            return value_and_gradient

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


class Minimizer:
    """A minimizer that can be stopped after any iteration and resumed exactly from `state()`.

    A subclass defines `_points(watch)`, and adds what the next iteration depends on to `state` and
    `restore`.

    Parameters
    ----------
    x : ndarray
        The starting point, which is copied.

    Attributes
    ----------
    x : ndarray
        The current point.
    history : list of Iteration
        The iterations so far.
    stopped : bool
        Whether a callback has ended it.
    """

    def __init__(self, x: np.ndarray) -> None:
        self.x = np.array(x, dtype=np.float64)
        self.history: list[Iteration] = []
        self.stopped = False

    def minimize(
        self, tol: float = 1e-5, max_iter: int = 1000, on_iteration: OnIteration | None = None
    ) -> Result:
        """Iterate until the gradient vanishes, the objective stops falling, or `max_iter`.

        Ctrl-C ends it after the last whole iteration, unless it is part of a larger training.

        Parameters
        ----------
        tol : float
            The relative size of gradient and improvement at which to stop.
        max_iter : int
            The largest number of iterations, earlier ones included.
        on_iteration : callable or None
            Called after every iteration; a true result stops the minimization.

        Returns
        -------
        Result
            The last point, and why it is the last.
        """
        watch = Watch(tol, max_iter, on_iteration)
        watch.resume(self.history, self.stopped)
        self.history = watch.history
        result = watch.follow(self._points(watch), self.x)
        self.stopped = watch.stopped
        return result

    def _points(self, watch: Watch) -> Iterator[Point]:
        """The current point, and the point after each iteration, until no step improves."""
        raise NotImplementedError

    def state(self, final: bool = False) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what the next iteration depends on: values for JSON, and arrays, not copied."""
        rows = [(p.iteration, p.evaluations, p.objective, p.gradient_norm, p.seconds) for p in self.history]
        history = np.array(rows, dtype=np.float64).reshape(-1, 5)
        return {"stopped": self.stopped, "iterations": len(history)}, {"x": self.x, "history": history}

    def restore(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a `state()`; raises DataError where it does not fit this problem."""
        check_arrays(arrays, {"x": self.x.shape, "history": (count_in(values, "iterations"), 5)})
        history: np.ndarray = arrays["history"]
        iterations, evaluations = history[:, 0], history[:, 1]
        numbered = np.array_equal(iterations, np.arange(1, len(history) + 1))
        if not numbered or not ((iterations <= evaluations) & (evaluations < 1 << 48)).all():
            raise DataError("its array 'history' does not count iterations and evaluations")
        if type(values.get("stopped")) is not bool:
            raise DataError("it does not say whether a callback ended it")
        self.x, self.stopped = arrays["x"].copy(), values["stopped"]
        self.history = [
            Iteration(int(i), seconds, value, norm, evaluations=int(n))
            for i, n, value, norm, seconds in history.tolist()
        ]
