"""Progress of long work, on standard error, and only where that is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stage(doing: str) -> Iterator[Callable[[str], None]]:
    """Show `doing` with a spinner while the block runs, then a line with what came of it and the time it took.

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

    console = Console(stderr=True, highlight=False)
    began = time.perf_counter()
    with console.status(doing):
        yield say
    seconds = time.perf_counter() - began
    console.print(f"{doing}: {outcome or 'done'} [dim]({seconds:.1f} s)[/dim]")
