"""fuda evaluate: compare a model's labels with those of a file."""

from __future__ import annotations

import json
from typing import Any

import click

from fuda.cli.options import read_as_trained, reading, reading_options
from fuda.errors import DataError
from fuda.formats.files import display_name
from fuda.progress import stage

_EXAMPLES = """\b
Examples:
  fuda evaluate spanish.fuda esp.testb
  fuda evaluate spanish.fuda esp.testb --json | jq .entities.f1
  fuda evaluate pos.fuda dev.conllu --label UPOS
"""


@click.command(epilog=_EXAMPLES)
@click.argument("model_path", metavar="MODEL")
@click.argument("file", metavar="FILE")
@click.option("--scheme", metavar="NAME", help="Read entities strictly under IOB1, IOB2, IOE1, IOE2, IOBES or BILOU; by default BILOU "
              "strictly and others leniently, as conlleval does.")
@click.option("--json", "as_json", is_flag=True, help="Print figures as JSON.")
@reading_options
def evaluate(model_path: str, file: str, scheme: str | None, as_json: bool, **how: Any) -> None:
    """Label FILE with MODEL and compare with the labels that FILE has."""
    import fuda
    from fuda import metrics

    model = fuda.load(model_path)
    data = read_as_trained(file, model, reading(**how))
    if data.y is None:
        raise DataError(f"{display_name(file)}: has no labels to compare with; say where they stand with --label")
    with stage("labelling (the first run compiles, for some seconds)"):
        predicted = model.predict(data.X)
    report = metrics.evaluate(data.y, predicted, scheme=scheme)
    click.echo(json.dumps(report.to_dict(), indent=2) if as_json else report.text())
