"""fuda convert: from one file format to another."""

from __future__ import annotations

from typing import Any

import click

from fuda.cli.options import assignments, describe, read, reading, reading_options

_EXAMPLES = """\b
Examples:
  fuda convert train.conllu train.jsonl --label MISC:NE
  fuda convert train.conllu words.conll --write flatten=true
  fuda convert proteins.fasta - --to jsonl
"""


@click.command(epilog=_EXAMPLES)
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--to", metavar="NAME", help="The format to write; by default what OUT's extension says.")
@click.option("--write", "writing", metavar="NAME=VALUE", multiple=True, help="An option of the format written.")
@reading_options
def convert(source: str, target: str, to: str | None, writing: tuple[str, ...], **how: Any) -> None:
    """Read IN and write it to OUT in the format of OUT; - is standard input or output."""
    from fuda import formats

    data = read(source, reading(**how))
    formats.write(data, target, format=to, **assignments(writing, "--write"))
    if target != "-":
        click.echo(f"{target}: {describe(data)}", err=True)
