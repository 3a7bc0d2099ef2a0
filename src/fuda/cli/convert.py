"""fuda convert: from one file format to another."""

from __future__ import annotations

from typing import Any

import click

from fuda.cli.options import assignments, check_output, describe, naming, read, reading, reading_options

_EXAMPLES = """\b
Examples:
  fuda convert train.conllu train.jsonl --label MISC:NE
  fuda convert train.conllu words.conll --write flatten=true
  fuda convert proteins.fasta - --to jsonl
"""
_WRITE = "An option of the format written, by the name that messages use: --write flatten=true."


@click.command(epilog=_EXAMPLES)
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--to", metavar="NAME", help="The format to write; by default what OUT's extension says.")
@click.option("--write", "writing", metavar="NAME=VALUE", multiple=True, help=_WRITE)
@reading_options
def convert(source: str, target: str, to: str | None, writing: tuple[str, ...], **how: Any) -> None:
    """Convert IN to the format of OUT.

    - is standard input or output, of CoNLL columns unless --format or --to names another format.
    """
    from fuda import formats

    if target != "-":
        check_output(target)
    target_format = formats.format_of(target, to)
    options = target_format.from_command(assignments(writing, "--write"))
    data = read(source, reading(**how))
    with naming([source], [data]):
        target_format.write_file(data, target, options)
    if target != "-":
        click.echo(f"{target}: {describe(data)}", err=True)
