"""fuda evaluate: compare the predictions of a model with the labels of a file."""

from __future__ import annotations

import json
from typing import Any

import click

from fuda.cli.options import errors_name_file, read_as_trained, reading_keywords, reading_options
from fuda.errors import DataError
from fuda.progress import stage

_EXAMPLES = """\b
Examples:
  fuda evaluate spanish.fuda esp.testb
  fuda evaluate spanish.fuda esp.testb --json | jq .entity_scores.micro.f1
  fuda evaluate pos.fuda dev.conllu --label UPOS
"""
_SCHEME = (
    "Read entities strictly under IOB1, IOB2, IOE1, IOE2, IOBES or BILOU; by default BILOU strictly and "
    "others leniently, as conlleval does."
)


@click.command(epilog=_EXAMPLES)
@click.argument("model_path", metavar="MODEL")
@click.argument("file", metavar="FILE")
@click.option("--scheme", metavar="NAME", help=_SCHEME)
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
@reading_options
def evaluate(model_path: str, file: str, scheme: str | None, as_json: bool, **how: Any) -> None:
    """Compare the labels of MODEL with those of FILE.

    FILE is read like the files that MODEL was trained on, if it has their format; - is standard
    input.
    """
    import fuda
    from fuda import metrics
    from fuda.schemes import scheme_name

    scheme = None if scheme is None else scheme_name(scheme)
    model = fuda.load(model_path)
    data = read_as_trained(file, model, reading_keywords(**how), labelled=True)
    with errors_name_file([file], [data]):
        if data.y is None:
            raise DataError("has no labels to compare with; name their column or field with --label")
        if all(label is None for labels in data.y for label in labels):
            raise DataError("every label in it is unknown; give labels to compare with")
        with stage("labelling (the first run compiles, for some seconds)"):
            predicted = model.predict(data.X)
        report = metrics.evaluate(data.y, predicted, scheme=scheme)
    click.echo(json.dumps(report.to_dict(), indent=2, ensure_ascii=False) if as_json else report.text())
