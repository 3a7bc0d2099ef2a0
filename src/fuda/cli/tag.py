"""fuda tag: label a file with a model."""

from __future__ import annotations

import gc
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from fuda.cli import options
from fuda.errors import DataError
from fuda.progress import stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from fuda.formats import Format, Record

_EXAMPLES = """\b
Examples:
  fuda tag spanish.fuda news.conll > tagged.conll
  fuda tag spanish.fuda news.conll.gz -o tagged.conll.gz
  cat news.conll | fuda tag spanish.fuda
"""
_OUTPUT = "The file to write, in the format of its extension; by default standard output, in that of FILE."


@click.command(epilog=_EXAMPLES)
@click.argument("model_path", metavar="MODEL")
@click.argument("file", default="-", metavar="[FILE]")
@click.option("-o", "--output", default="-", metavar="FILE", help=_OUTPUT)
@options.reading_options
def tag(model_path: str, file: str, output: str, **how: Any) -> None:
    """Label the structures of FILE as they come.

    - is standard input, the default. Output follows as soon as structures are complete.

    Only labels change: those in FILE are replaced, and a label column is added to a file without
    one. A file of the format that MODEL was trained on is read like the training files.
    """
    import fuda
    from fuda import files, formats

    target = None
    if output != "-":
        options.check_output(output, model_path)
        target = formats.format_of(output, how["format_name"])
    model = fuda.load(model_path)
    format, keywords = options.as_trained(file, model, options.reading_keywords(**how), labelled=False)
    target = target or format
    gc.freeze()  # garbage collections, which new records set off, need not visit the model
    notes: list[str] = []
    # On one terminal a spinner and the output would be mixed up.
    quiet = output == "-" and sys.stdout.isatty()
    with (
        nullcontext(str) if quiet else stage("labelling (the first run compiles, for some seconds)") as show,
        files.text_output(output) as write,
    ):
        batches = _Batches(model, file, target, write)
        lines = files.Lines(file, batches.flush if target.appends else None)
        try:
            for record in format.read_lines(lines, keywords, notes):
                batches.waiting.append(record)
        except DataError:
            batches.flush()  # what was complete before the error
            raise
        batches.flush()
        show(batches.described())
    for note in notes:
        click.echo(f"fuda: {note}", err=True)


class _Batches:
    """Records that wait to be labelled and written, and what was written before them."""

    def __init__(self, model: Any, file: str, target: Format, write: Callable[[str], None]) -> None:
        self.model, self.file, self.target, self.write = model, file, target, write
        self.waiting: list[Record] = []
        self.first: Record | None = None
        self.structures = self.nodes = 0

    def flush(self) -> None:
        """Label and write the records that wait."""
        from fuda.formats import Dataset

        if not self.waiting:
            return
        data, self.waiting = Dataset(self.waiting), []
        with options.errors_name_file([self.file], [data], self.structures):
            labelled = data.with_labels(self.model.predict(data.X)).records
            more = {"after": self.first} if self.target.appends else {}
            text = self.target.write(labelled, **more)
        self.write(text)
        self.first = self.first or labelled[0]
        self.structures += len(data)
        self.nodes += sum(map(len, data.X))

    def described(self) -> str:
        """What was written, in words."""
        shape = "" if self.first is None else self.first.structure.shape
        return f"{options.counted(self.structures, shape)}, {options.counted(self.nodes, 'node')}"
