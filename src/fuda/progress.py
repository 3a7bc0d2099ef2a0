"""Iterations of a training: the arguments of callbacks, and the display of progress.

Progress is written to standard error: one live line on a terminal, some lines elsewhere.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Protocol

from fuda.runtime.interrupts import check_end

__all__ = ["Iteration"]

_suppressed: ContextVar[tuple[type[Warning], ...]] = ContextVar("suppressed", default=())


@dataclass(frozen=True)
class Iteration:
    """What is known after an iteration of a training.

    An iteration is an epoch, a round, or a step of an optimizer. What a learner does not measure
    is None.

    Parameters
    ----------
    iteration : int
        The number of the iteration, from 1.
    seconds : float
        Time since training began, in seconds.
    objective : float or None
        The value of what is minimized.
    gradient_norm : float or None
        The norm of the gradient there.
    mistakes : int or None
        Mistakes made in this epoch.
    gap : float or None
        The relative duality gap, (primal − dual) / primal.
    evaluations : int or None
        How often the objective has been evaluated so far.
    validation : float or None
        The score on validation data.

    Examples
    --------
    >>> print(Iteration(3, 1.52, objective=1234.5, gap=0.012))
    iteration 3, objective 1,234.50, gap 0.012, 1.5 s
    """

    iteration: int
    seconds: float
    objective: float | None = None
    gradient_norm: float | None = None
    mistakes: int | None = None
    gap: float | None = None
    evaluations: int | None = None
    validation: float | None = None

    def __str__(self) -> str:
        measured = {
            "iteration {}": self.iteration,
            "objective {:,.2f}": self.objective,
            "gradient {:.2g}": self.gradient_norm,
            "mistakes {:,}": self.mistakes,
            "gap {:.2g}": self.gap,
            "validation {:.4f}": self.validation,
            "{:.1f} s": self.seconds,
        }
        return ", ".join(text.format(value) for text, value in measured.items() if value is not None)


@contextmanager
def without(category: type[Warning]) -> Iterator[None]:
    """Within the block, `warn` ignores a category, in this thread only.

    The filters of Python's own `warnings.catch_warnings` are those of all threads.
    """
    before = _suppressed.set((*_suppressed.get(), category))
    try:
        yield
    finally:
        _suppressed.reset(before)


def warn(message: str, category: type[Warning]) -> None:
    """Warn, naming the line outside of the package that the calls came from.

    Parameters
    ----------
    message : str
        The text of the warning.
    category : type of Warning
        Its class.
    """
    if issubclass(category, _suppressed.get()):
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("fuda."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class Validation(Protocol):
    """Scores a training after every iteration."""

    def measure(self) -> float | None:
        """Return the score, None where there is nothing to validate on."""

    @property
    def is_over(self) -> bool:
        """Whether to end the training."""


# Called after every iteration. StopIteration ends the training, which keeps what it has learned.
Callback = Callable[[Iteration], object]


def _on_terminal() -> bool:
    """Whether messages are shown as they come."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def stage(doing: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner with what a block does while it runs, then a line with result and time.

    Parameters
    ----------
    doing : str
        What the block does.

    Yields
    ------
    callable
        Takes the text of the result: ``report("8,323 sequences")``.
    """
    outcome = ""

    def report(text: str) -> None:
        nonlocal outcome
        outcome = text

    if not _on_terminal():
        yield report
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, highlight=False)
    began = time.perf_counter()
    with console.status(escape(doing)):
        yield report
    seconds = time.perf_counter() - began
    console.print(f"{escape(doing)}: {escape(outcome) or 'done'} [dim]({seconds:.1f} s)[/dim]")


@contextmanager
def bar(title: str, total: int, shown: bool) -> Iterator[Callable[..., None]]:
    """Show a progress bar while a block runs, on a terminal.

    Parameters
    ----------
    title : str
        What the block does.
    total : int
        The number of steps.
    shown : bool
        Whether to show it.

    Yields
    ------
    callable
        Takes the number of steps done, and optionally what is being done: ``advance(1, "crf")``.
    """
    if not shown or not _on_terminal():
        yield lambda steps, text="": None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as progress:
        task = progress.add_task(escape(title), total=total)

        def advance(steps: int, text: str = "") -> None:
            described = escape(f"{title}: {text}") if text else None
            progress.update(task, advance=steps, description=described)

        yield advance


class Iterations:
    """Shows iterations as they come, and runs callbacks after each of them.

    Parameters
    ----------
    title : str
        What is being trained.
    shown : bool
        Whether to show iterations: one live line on a terminal, else a line for every tenth.
    *callbacks : callable or None
        Called in this order, after the display; None is left out.
    validation : object, optional
        Its method `measure` returns the score after an iteration, or None; then its attribute
        `is_over` tells whether to end the training.

    Attributes
    ----------
    count : int
        The number of iterations so far, of earlier runs too where a training continues.
    """

    def __init__(
        self, title: str, shown: bool, *callbacks: Callback | None, validation: Validation | None = None
    ) -> None:
        self.title, self.shown, self.validation = title, shown, validation
        self.callbacks = [callback for callback in callbacks if callback is not None]
        self._status: Any = None
        self.count, self._began = 0, time.perf_counter()

    def __enter__(self) -> Iterations:
        if self.shown and _on_terminal():
            from rich.console import Console

            self._status = Console(stderr=True, highlight=False).status(
                f"{self.title}: compiling or starting"
            )
            self._status.start()
        return self

    def __call__(self, iteration: Iteration) -> bool:
        """Validate, show an iteration and run the callbacks; return whether one ends training."""
        check_end()
        if self.validation is not None:
            iteration = replace(iteration, validation=self.validation.measure())
        self.show(iteration.iteration, str(iteration))
        try:
            for callback in self.callbacks:
                callback(iteration)
        except StopIteration:
            return True
        return self.validation is not None and self.validation.is_over

    def report(self, **measured: Any) -> bool:
        """Count an iteration, show it with what was measured in it, and run the callbacks.

        Parameters
        ----------
        **measured : float or int
            Fields of `Iteration`.

        Returns
        -------
        bool
            Whether a callback ends the training.
        """
        self.count += 1
        return self(Iteration(self.count, time.perf_counter() - self._began, **measured))

    def show(self, number: int, text: str) -> None:
        """Show a text on an iteration.

        Parameters
        ----------
        number : int
            The number of the iteration, from 1.
        text : str
            The text.
        """
        if self._status is not None:
            self._status.update(f"{self.title}: {text}")
        elif self.shown and sys.stderr is not None and (number % 10 == 0 or number == 1):
            with suppress(OSError):  # nobody reads it any more, which must not end the training
                print(f"{self.title}: {text}", file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
