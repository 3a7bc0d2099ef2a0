"""Progress of long work, on standard error, and only where that is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any


@contextmanager
def stage(doing: str) -> Iterator[Callable[[str], None]]:
    """Show `doing` with a spinner while the block runs, then a line with what came of it and the time.

    The block calls what it gets with the words to leave behind: ``say("8,323 sequences")``.
    """
    outcome = ""

    def say(words: str) -> None:
        nonlocal outcome
        outcome = words

    if not sys.stderr.isatty():
        yield say
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, highlight=False)
    began = time.perf_counter()
    with console.status(escape(doing)):
        yield say
    seconds = time.perf_counter() - began
    console.print(f"{escape(doing)}: {escape(outcome) or 'done'} [dim]({seconds:.1f} s)[/dim]")


class Iterations:
    """Iterations of long work, as they come: one live line on a terminal, else a line for every tenth."""

    def __init__(self, title: str, shown: bool) -> None:
        self.title, self.shown = title, shown
        self._status: Any = None

    def __enter__(self) -> Iterations:
        if self.shown and sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True, highlight=False).status(
                f"{self.title}: compiling or starting"
            )
            self._status.start()
        return self

    def __call__(self, progress: Any) -> None:
        self.say(
            progress.iteration,
            f"iteration {progress.iteration}, objective {progress.value:,.2f}, "
            f"gradient {progress.gradient_norm:.2g}, {progress.seconds:.1f} s",
        )

    def say(self, number: int, words: str) -> None:
        """Show the words on an iteration, whose number counts from 1."""
        if self._status is not None:
            self._status.update(f"{self.title}: {words}")
        elif self.shown and (number % 10 == 0 or number == 1):
            print(f"{self.title}: {words}", file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
