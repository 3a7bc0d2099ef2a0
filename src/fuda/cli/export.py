"""fuda export: what was labelled on a page, and the model that learned it."""

from __future__ import annotations

from typing import Any

import click

from fuda.cli import options
from fuda.progress import stage

_EXAMPLES = """\b
Examples:
  fuda export news.txt.db -o news.jsonl
  fuda export news.txt.db -o news.conll
  fuda export news.txt.db -o news.fuda
"""
_OUTPUT = "The file: a model if it ends in .fuda, else labelled sentences in the format of its extension."
_FORMAT = "The format to write; by default that of FILE's extension."


@click.command(epilog=_EXAMPLES)
@click.argument("store_path", metavar="STORE")
@click.option("-o", "--output", required=True, metavar="FILE", help=_OUTPUT)
@click.option("--to", metavar="NAME", help=_FORMAT)
def export(store_path: str, output: str, to: str | None) -> None:
    """Write what was labelled with `fuda label` to FILE.

    The page may be open meanwhile. Sentences that were accepted, or that came with labels, are
    written; read them in again with `fuda label FILE --store STORE`. JSONL has where each word stands
    in its text.
    """
    from fuda import files
    from fuda.formats import format_of
    from fuda.page import export as exporting
    from fuda.page.store import Store

    if output != "-":
        options.check_output(output, store_path)
    is_model = to is None and output.endswith(".fuda")
    format: Any = None if is_model else format_of(output, to)
    store = Store(store_path, shared=True)
    try:
        if is_model:
            with stage("rebuilding the model"):
                exporting.model_of(store).save(output)
            written = "the model"
        else:
            files.write_text(output, exporting.text_of(store, format))
            written = options.counted(store.counts()["done"], "structure")
            if exporting.flattened(store, format):
                click.echo(
                    f"fuda: {output}: a {store.shape} is written as a sequence, since columns have no edges; "
                    "write .conllu or .jsonl to keep them",
                    err=True,
                )
    finally:
        store.close()
    if output != "-":
        click.echo(f"{output}: {written}", err=True)
