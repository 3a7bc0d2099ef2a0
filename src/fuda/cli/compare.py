"""fuda compare: cross-validate several learners on labelled files."""

from __future__ import annotations

import json
from typing import Any

import click

from fuda.cli import options
from fuda.cli.train import LEARNERS, make_learner, shown_warnings
from fuda.errors import DataError
from fuda.registry import model_class

_EXAMPLES = """\b
Examples:
  fuda compare esp.train --learners crf,hmm,hm-perceptron
  fuda compare esp.train --learners crf,crf:l2=0.1,crf:features=spelling --folds 10
  fuda compare esp.train --learners crf,marginalized --sizes 100,300,1000 --plot curves.png
  fuda compare train.conllu --label UPOS --graph tree --json comparison.json
"""
_LEARNERS = (
    "Learners, separated by commas, each with parameters of its own after colons: crf:l2=0.1:window=2."
)
_SET = "A parameter of all learners that have it, such as window=2."
_SIZES = "Numbers of structures to learn from, separated by commas, for learning curves."


@click.command(epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--learners", default="crf,hm-perceptron,marginalized", show_default=True, help=_LEARNERS)
@click.option("--set", "parameters", metavar="NAME=VALUE", multiple=True, help=_SET)
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True)
@click.option("--sizes", metavar="LIST", help=_SIZES)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the folds.")
@click.option("--plot", metavar="FILE", help="Draw the scores, or learning curves, to a file (fuda[plots]).")
@click.option("--json", "json_path", metavar="FILE", help="Write all figures to a file.")
@options.reading_options
def compare(
    files: tuple[str, ...],
    learners: str,
    parameters: tuple[str, ...],
    folds: int,
    sizes: str | None,
    seed: int,
    plot: str | None,
    json_path: str | None,
    **how: Any,
) -> None:
    """Compare learners on labelled FILEs by cross-validation.

    The table has token accuracy, F1 of labels and of entities with their spread over folds, p of
    the difference from the best learner, times and the size of model files. Ctrl-C ends the
    comparison with the folds that are done, and the exit code is 130.
    """
    outputs = [path for path in (plot, json_path) if path is not None]
    for path in outputs:
        options.check_output(path, *files, *(other for other in outputs if other is not path))
    models = _models(learners, options.assignments(parameters, "--set"))
    keywords = options.reading_keywords(**how)
    train_sizes = None if sizes is None else _numbers(sizes)
    if plot is not None:
        from fuda.selection.comparison import check_plots

        check_plots()
    parts = [options.read(path, keywords) for path in files]
    for path, part in zip(files, parts, strict=True):
        if part.y is None:
            where = options.first_unlabelled(path, part)
            raise DataError(f"{where} has no labels to learn from; name their column with --label")
    X, y = [x for part in parts for x in part.X], [labels for part in parts for labels in part.y or []]
    from fuda import selection

    with options.errors_name_file(files, parts), shown_warnings():
        comparison = selection.compare(models, X, y, folds=folds, sizes=train_sizes, seed=seed, verbose=True)
    with click.get_current_context().obj.deferred():
        show, table = options.printer(), comparison.table()
        show(table.rich())
        show(*table.notes, markup=False)
        if json_path is not None:
            from fuda.files import write_text

            write_text(json_path, json.dumps(comparison.to_dict(), indent=2, ensure_ascii=False) + "\n")
        if plot is not None:
            comparison.plot(plot)


def _models(learners: str, shared: dict[str, Any]) -> dict[str, Any]:
    """The models by the names that they are given by."""
    models: dict[str, Any] = {}
    known: set[str] = set()
    for text in learners.split(","):
        name, *pairs = text.strip().split(":")
        if name not in LEARNERS:
            raise DataError(f"--learners {text}: there is no learner {name!r}; choose {', '.join(LEARNERS)}")
        if text.strip() in models:
            raise DataError(f"--learners {learners}: {text.strip()} is there twice; give it once")
        accepted = set(model_class(LEARNERS[name])._get_param_names())
        common = {key: value for key, value in shared.items() if key in accepted}
        models[text.strip()] = make_learner(name, common | options.assignments(pairs, f"--learners {name}:"))
        known |= accepted
    for key in shared.keys() - known:
        raise DataError(f"--set {key}=…: none of the learners has such a parameter; leave it out")
    return models


def _numbers(sizes: str) -> list[int]:
    """The numbers of --sizes."""
    numbers = [part.strip() for part in sizes.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in numbers):
        raise DataError(f"--sizes {sizes}: give numbers of structures, separated by commas")
    return [int(part) for part in numbers]
