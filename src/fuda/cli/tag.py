"""fuda tag: label a file with a model."""

from __future__ import annotations

from typing import Any

import click

from fuda.cli.options import check_output, naming, read_as_trained, reading, reading_options
from fuda.progress import stage

_EXAMPLES = """\b
Examples:
  fuda tag spanish.fuda news.conll > tagged.conll
  fuda tag spanish.fuda news.conll.gz -o tagged.conll.gz
  cat news.conll | fuda tag spanish.fuda
"""
_OUTPUT = "Where to write, in the format of its extension; standard output in the format of FILE by default."


@click.command(epilog=_EXAMPLES)
@click.argument("model_path", metavar="MODEL")
@click.argument("file", default="-", metavar="[FILE]")
@click.option("-o", "--output", default="-", metavar="FILE", help=_OUTPUT)
@reading_options
def tag(model_path: str, file: str, output: str, **how: Any) -> None:
    """Label the structures of FILE, by default standard input.

    All is written as it was but the labels: those that FILE has are replaced, and a file without a label
    column gets one. Files of the format that MODEL was trained on are read as they were then.
    """
    import fuda
    from fuda import formats

    target_format = None
    if output != "-":
        check_output(output, model_path)
        target_format = formats.format_of(output, how["format_name"]).name
    model = fuda.load(model_path)
    data, format_name = read_as_trained(file, model, reading(**how), labelled=False)
    with naming([file], [data]):
        with stage("labelling (the first run compiles, for some seconds)"):
            predicted = model.predict(data.X)
        formats.write(data.with_labels(predicted), output, format=target_format or format_name)
