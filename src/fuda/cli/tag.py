"""fuda tag: label a file with a model."""

from __future__ import annotations

from typing import Any

import click

from fuda.cli import options
from fuda.progress import stage

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
    """Label the structures of FILE, by default standard input.

    Only labels change: those in FILE are replaced, and a label column is added to a file without
    one. A file of the format that MODEL was trained on is read like the training files.
    """
    import fuda
    from fuda import formats

    target_format = None
    if output != "-":
        options.check_output(output, model_path)
        target_format = formats.format_of(output, how["format_name"]).name
    model = fuda.load(model_path)
    data, format_name = options.read_as_trained(file, model, options.reading_keywords(**how), labelled=False)
    with options.errors_name_file([file], [data]):
        with stage("labelling (the first run compiles, for some seconds)"):
            predicted = model.predict(data.X)
        formats.write(data.with_labels(predicted), output, format=target_format or format_name)
