"""The command ``fuda``: one module a subcommand. Heavy libraries load inside the subcommands that need them."""

from __future__ import annotations

import os
import sys

import click

from fuda import __version__
from fuda.cli.convert import convert
from fuda.cli.demo import demo
from fuda.cli.evaluate import evaluate
from fuda.cli.inspect import inspect
from fuda.cli.reproduce import reproduce
from fuda.cli.tag import tag
from fuda.cli.train import train
from fuda.errors import DataError

_EXAMPLES = """\b
Examples:
  fuda demo
  fuda train esp.train -o spanish.fuda
  fuda evaluate spanish.fuda esp.testb
  fuda tag spanish.fuda news.conll > tagged.conll
"""


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EXAMPLES,
)
@click.version_option(__version__, prog_name="fuda")
def group() -> None:
    """Learn to label the nodes of sequences, trees and graphs."""


for command in (train, tag, evaluate, inspect, convert, reproduce, demo):
    group.add_command(command)


def main() -> None:
    """Run the command. Mistakes in data or usage end in one line and exit code 2, never in a traceback."""
    try:
        group(prog_name="fuda")
    except DataError as error:
        click.echo(f"fuda: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
