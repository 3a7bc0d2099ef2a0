"""fuda tag: label a file with a model."""

from __future__ import annotations

from typing import Any

import click

from fuda.cli.options import read_as_trained, reading, reading_options
from fuda.progress import stage

_EXAMPLES = """\b
Examples:
  fuda tag spanish.fuda news.conll > tagged.conll
  fuda tag spanish.fuda news.conll.gz -o tagged.conll.gz
  cat news.conll | fuda tag spanish.fuda
"""


@click.command(epilog=_EXAMPLES)
@click.argument("model_path", metavar="MODEL")
@click.argument("file", default="-", metavar="[FILE]")
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write; standard output by default.")
@reading_options
def tag(model_path: str, file: str, output: str, **how: Any) -> None:
    """Label the structures of FILE (standard input by default) and write them in the same format.

    Labels that the file has already are replaced; a file without a label column gets one.
    """
    import fuda
    from fuda import formats

    model = fuda.load(model_path)
    data = read_as_trained(file, model, reading(**how))
    with stage("labelling (the first run compiles, for some seconds)"):
        predicted = model.predict(data.X)
    target = None if output != "-" else formats.format_of(file, how["format_name"]).name
    formats.write(data.with_labels(predicted), output, format=target)
