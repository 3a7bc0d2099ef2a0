"""fuda render: a page of structures with labels."""

from __future__ import annotations

import os
from typing import Any

import click

from fuda.cli import options
from fuda.progress import stage

_EXAMPLES = """\b
Examples:
  fuda render esp.testb -o esp.html
  fuda render esp.testb --model spanish.fuda -o errors.html
  fuda render esp.testb --model spanish.fuda --limit 20
"""
_OUTPUT = "The page to write; by default structures are shown in the terminal."
_MODEL = "Label the structures with this model; the labels of FILE are then shown where they differ."
_LIMIT = "How many structures to show, the first ones; by default 200."


@click.command(epilog=_EXAMPLES)
@click.argument("file", metavar="FILE")
@click.option("-o", "--output", metavar="FILE", help=_OUTPUT)
@click.option("--model", "model_path", metavar="MODEL", help=_MODEL)
@click.option("--limit", type=click.IntRange(min=1), default=200, metavar="N", help=_LIMIT)
@options.reading_options
def render(file: str, output: str | None, model_path: str | None, limit: int, **how: Any) -> None:
    """Show the structures of FILE with their labels.

    The result is a page, or text in the terminal. With a model, its labels are compared with those
    of FILE.
    """
    from fuda import files
    from fuda.render import Display, page

    if output is not None:
        options.check_output(output, *filter(None, [model_path, file]))
    if model_path is None:
        data = options.read(file, options.reading_keywords(**how))
        labels: Any = [record.labels for record in data.records]
        display = Display(data.X, labels if any(labels) else None, limit=limit)
    else:
        display = _predicted(model_path, file, limit, how)
    if output is None:
        options.printer()(display)
    else:
        files.write_text(output, page(os.path.basename(files.display_name(file)), display.html()))


def _predicted(model_path: str, file: str, limit: int, how: dict[str, Any]) -> Any:
    """The structures as a model labels them, against the labels of the file."""
    import fuda
    from fuda.formats import Dataset
    from fuda.models.explained.diagnosis import probabilities
    from fuda.render import Display

    model = fuda.load(model_path)
    data = options.read_as_trained(file, model, options.reading_keywords(**how), labelled=False)
    few = Dataset(data.records[:limit])
    with options.errors_name_file([file], [data]), stage("labelling (the first run compiles)"):
        labels = model.predict(few.X)
        certain = probabilities(model, few.X, labels)
    gold: Any = [record.labels for record in few.records]
    return Display(few.X, list(labels), gold if any(gold) else None, certain, limit=None)
