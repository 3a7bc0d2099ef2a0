"""fuda convert: convert a file to another format."""

from __future__ import annotations

from typing import Any

import click

from fuda.cli import options

_EXAMPLES = """\b
Examples:
  fuda convert train.conllu train.jsonl --label MISC:NE
  fuda convert train.conllu words.conll --write flatten=true
  fuda convert proteins.fasta - --to jsonl
"""
_WRITE = "An option of the format to write: --write flatten=true."


@click.command(epilog=_EXAMPLES)
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--to", metavar="NAME", help="The format to write; by default that of OUT's extension.")
@click.option("--write", "writing", metavar="NAME=VALUE", multiple=True, help=_WRITE)
@options.reading_options
def convert(source: str, target: str, to: str | None, writing: tuple[str, ...], **how: Any) -> None:
    """Convert IN to the format of OUT.

    - is standard input or output, in CoNLL columns unless --format or --to names another format.
    """
    from fuda import formats

    if target != "-":
        options.check_output(target)
    target_format = formats.format_of(target, to)
    write_options = target_format.from_command(options.assignments(writing, "--write"))
    data = options.read(source, options.reading_keywords(**how))
    with options.errors_name_file([source], [data]):
        target_format.write_file(data, target, write_options)
    if target != "-":
        click.echo(f"{target}: {options.describe(data)}", err=True)
