"""fuda export: what was labelled on a page, and the model that learned it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from fuda.cli import options
from fuda.errors import DataError, short
from fuda.progress import stage

if TYPE_CHECKING:
    from fuda.page.store import Store

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
    written; read them in again with `fuda label FILE --store STORE`. JSONL has where each word
    stands in its text.
    """
    from fuda import files
    from fuda.formats import format_of
    from fuda.page import export as exporting

    if output != "-":
        options.check_output(output, store_path)
    is_model = to is None and output.endswith(".fuda")
    format: Any = None if is_model else format_of(output, to)
    with _opened(store_path) as store:
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
    if output != "-":
        click.echo(f"{output}: {written}", err=True)


@contextmanager
def _opened(path: str) -> Iterator[Store]:
    """Within the block, a store is open; what a damaged or foreign one causes is a DataError."""
    import sqlite3

    from fuda.page.store import Store

    store = None
    try:
        store = Store(path, shared=True)
        yield store
    except DataError:
        raise
    except (sqlite3.Error, ValueError, TypeError, LookupError, AttributeError) as error:
        why = f"{type(error).__name__}: {short(str(error))}"
        raise DataError(f"{path}: not a usable store ({why}); name another file, or a copy of it") from error
    finally:
        if store is not None:
            store.close()
