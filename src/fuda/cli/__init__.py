"""The command ``fuda``: one module per subcommand.

Exit codes: 0 success, 2 an error in data or usage, 130 interrupted by Ctrl-C and 143 by SIGTERM,
also where a training ended early and its model was saved. A second signal ends the process at
once. Results are printed to standard output, everything else to standard error. Subcommands import
large libraries when they run, which keeps the help fast.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

import click

from fuda import __version__
from fuda.cli import options
from fuda.cli.compare import compare
from fuda.cli.convert import convert
from fuda.cli.demo import demo
from fuda.cli.doubt import doubt
from fuda.cli.evaluate import evaluate
from fuda.cli.explain import explain
from fuda.cli.export import export
from fuda.cli.inspect import inspect
from fuda.cli.label import label
from fuda.cli.render import render
from fuda.cli.reproduce import reproduce
from fuda.cli.signals import Signals
from fuda.cli.tag import tag
from fuda.cli.train import train
from fuda.cli.warmup import warmup
from fuda.errors import DataError
from fuda.runtime import light_estimators

_EXAMPLES = """\b
Examples:
  fuda demo
  fuda train esp.train -o spanish.fuda
  fuda evaluate spanish.fuda esp.testb
  fuda tag spanish.fuda news.conll > tagged.conll

Exit codes: 0 success, 2 an error in data or usage, 130 interrupted, 143 terminated.
"""
# Commands that need of scikit-learn only what `light_estimators` has.
_LIGHT = (train, tag, evaluate, explain, inspect)
_NO_MEMORY = "there is not enough memory; give fewer data or features, or use a larger machine"


class Commands(click.Group):
    """Subcommands in the order of use; an error becomes a line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands in the order in which they were added."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments; without any, which is wrong usage, the help is a message."""
        if not args and not ctx.resilient_parsing:  # versions of click differ in the exit code
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def make_context(self, *given: Any, **further: Any) -> click.Context:
        """Return the context of a run; the help is printed here."""
        try:
            return super().make_context(*given, **further)
        except OSError as error:  # click would make 1 of a pipe that is closed
            _end_output(error)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand."""
        options.outputs.clear()
        signals = ctx.obj = Signals()
        try:
            with signals:
                try:
                    result = super().invoke(ctx)
                except DataError as error:
                    _end(str(error), 2)
                except OSError as error:
                    _end_output(error)
                except MemoryError:
                    _end(_NO_MEMORY, 2)
        except KeyboardInterrupt:
            # Where the signal came inside an `exec` of some text, as imports do, Python would end
            # by SIGINT with any exit code; the next `exec` resets that.
            exec("")
            _end(f"interrupted; {options.written()}", 128 + (signals.received or signal.SIGINT))
        if signals.received and signals.came_late:
            _end(f"interrupted; {options.written()}", 128 + signals.received)
        if signals.received:  # a training ended early, has warned of that, and its model is saved
            sys.exit(128 + signals.received)
        return result


def _end_output(error: OSError) -> NoReturn:
    """Exit after a failure of standard output (files raise DataError), as on a full disk."""
    # What is still buffered cannot be written, and the interpreter would fail on it at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(error, BrokenPipeError):  # as `head` does
        sys.exit(0)
    _end(f"{error.filename or '<stdout>'}: cannot be read or written: {error.strerror}", 2)


def _end(message: str, code: int) -> NoReturn:
    """Print one line to standard error, with any characters in names of files, and exit."""
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)
    click.echo(f"fuda: {line}", err=True)
    sys.exit(code)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EXAMPLES,
)
@click.version_option(__version__, prog_name="fuda")
def group() -> None:
    """Learn to label the nodes of sequences, trees and graphs."""


for command in (
    *(demo, label, export, train, compare, evaluate, tag, explain, render, doubt),
    *(inspect, convert, reproduce, warmup),
):
    group.add_command(command)


def _without_short_writes(stdout: io.TextIOWrapper) -> io.TextIOWrapper:
    """Standard output as a stream that writes all of a text or raises an OSError."""
    errors = "backslashreplace"  # for a terminal that cannot show a label
    if isinstance(stdout.buffer, io.RawIOBase):  # PYTHONUNBUFFERED: a short write would lose text
        return open(stdout.fileno(), "w", 1, stdout.encoding, errors, closefd=False)
    stdout.reconfigure(errors=errors)
    return stdout


class _Messages(io.FileIO):
    """Standard error: what cannot be written there is lost, and must not end the work."""

    def write(self, data: Any) -> int:
        """Write what can be written."""
        with suppress(OSError):  # a full disk, a pipe that nobody reads
            super().write(data)
        return len(data)


def _never_failing(stderr: io.TextIOWrapper) -> io.TextIOWrapper:
    """Standard error as a stream that never fails."""
    raw = _Messages(stderr.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), stderr.encoding, stderr.errors, line_buffering=True, write_through=True
    )


def _replace_closed_streams() -> None:
    """Open standard streams that are closed, so that no other file gets their descriptors.

    They are opened in the wrong direction: to read or write them fails, as it should. Messages
    have no other place to go, and are lost.
    """
    for name, mode, flags in (
        ("stdin", "r", os.O_WRONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


class _Deferred(ModuleType):
    """A module that is imported when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # asked of every module
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def main() -> None:
    """Run the command."""
    # scikit-learn imports it, half of the time until a model is loaded, and the command
    # never uses it.
    sys.modules.setdefault("scipy.stats", _Deferred("scipy.stats"))
    light_estimators.in_use = sys.argv[1:2] in [[command.name] for command in _LIGHT]
    _replace_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _without_short_writes(sys.stdout)
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _never_failing(sys.stderr)
    try:
        try:
            group(prog_name="fuda")
        finally:
            sys.stdout.flush()  # while a failure can still be reported
    except OSError as error:
        _end_output(error)
