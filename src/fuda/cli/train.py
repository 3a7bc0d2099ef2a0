"""fuda train: fit a model to labelled files and write it to a model file."""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Any

import click

from fuda.cli import options
from fuda.cli.values import LEARNERS, parameter
from fuda.errors import DataError
from fuda.registry import model_class

_EXAMPLES = """\b
Examples:
  fuda train esp.train -o spanish.fuda
  fuda train esp.train -o spanish.fuda --columns 1 --set loss=markov --set order=2
  fuda train esp.train -o spanish.fuda --learner hmm --set smoothing=0.5
  fuda train esp.train -o spanish.fuda --learner auto --budget 20m
  fuda train train.conllu -o entities.fuda --label MISC:NE --graph tree
  fuda train notes.tsv -o notes.fuda --template crfpp.template
  fuda train esp.train -o spanish.fuda --dev esp.testa
  fuda train esp.100 -o spanish.fuda --unlabelled news.txt --unlabelled esp.train
  fuda train esp.train -o m.fuda --learner marginalized --set prior=crf(l2=0.5)
  fuda train esp.train -o m.fuda --learner hm-svm --set "kernel=polynomial(2).normalized()"
"""
_CHECKPOINT = "Keep the state of training in a file: the same command continues from it after a kill."
_NO_STATE = "has no state of training to continue from; leave it out"
_NOT_SHARED = "is not trained on clusters; leave it out, or choose another learner, such as crf"
_CLUSTER = "Train on the workers of a Dask cluster with its scheduler at ADDRESS."
_DEV = "Validate on a labelled file: training ends when it no longer helps there."
_UNLABELLED = "More text without labels, to learn classes and vectors of words from; repeat it for several."
_SHOWN, _MANY, _MANY_OF_NODES = 20, 50, 0.05  # labels shown at most; more labels than these are suspicious
_BUDGET = "How long --learner auto may take, such as 60s, 20m or 1h; compiling, once per machine, is extra."
_SET = "A parameter of the learner, such as window=2; an unknown name prints the list of parameters."


@click.command(epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", required=True, metavar="MODEL", help="The model file to write.")
@click.option("--learner", type=click.Choice(list(LEARNERS)), default="crf", show_default=True)
@click.option("--set", "parameters", metavar="NAME=VALUE", multiple=True, help=_SET)
@click.option("--budget", metavar="TIME", help=_BUDGET)
@click.option("--checkpoint", metavar="FILE", help=_CHECKPOINT)
@click.option("--cluster", metavar="ADDRESS", help=_CLUSTER)
@click.option("--dev", metavar="FILE", help=_DEV)
@click.option("--unlabelled", metavar="FILE", multiple=True, help=_UNLABELLED)
@click.option("--template", metavar="FILE", help="Features by a CRF++ or Wapiti template.")
@options.reading_options
def train(
    files: tuple[str, ...],
    output: str,
    learner: str,
    parameters: tuple[str, ...],
    budget: str | None,
    checkpoint: str | None,
    dev: str | None,
    unlabelled: tuple[str, ...],
    template: str | None,
    **how: Any,
) -> None:
    """Fit a model to labelled FILEs.

    Ctrl-C ends the training early: a model that has learned something is written, and the exit
    code is 130. A second one ends the command at once.
    """
    if output == "-":
        raise DataError("-o -: a model is not written to standard output; name a file")
    options.check_output(output, *files, *unlabelled, *filter(None, [template, dev]))
    cluster = how.pop("cluster")
    keywords = options.reading_keywords(**how)
    assigned = options.assignments(parameters, "--set", parameter) | _budget(budget, learner)
    if checkpoint is not None:
        assigned = _with_option(assigned, learner, "checkpoint", checkpoint, _NO_STATE)
        options.check_output(checkpoint, output, *files)
    if cluster is not None:
        assigned = _with_option(assigned, learner, "cluster", cluster, _NOT_SHARED)
    model = make_learner(learner, assigned, template)
    parts = [options.read(path, keywords) for path in files]
    dev_data = None if dev is None else options.read(dev, keywords)
    for path, part in zip((*files, dev), (*parts, dev_data), strict=True):
        if part is not None and part.y is None:
            raise DataError(
                f"{options.first_unlabelled(str(path), part)} has no labels to learn from; name their column "
                "with --label, or make some with `fuda label`"
            )
    X, y = [x for part in parts for x in part.X], [labels for part in parts for labels in part.y or []]
    summary = _labels_found(y)
    if template is None:
        _warn_of_positions(X)
    if dev_data is not None:
        options.warn_of_other_labels(str(dev), *({*chain(*some)} - {None} for some in (dev_data.y or [], y)))
    if sys.stderr.isatty():
        click.echo(summary, err=True)
    reading = options.options_to_store(files[0], keywords, parts[0])
    further: dict[str, Any] = {} if dev_data is None else {"X_val": dev_data.X, "y_val": dev_data.y}
    if unlabelled:
        further["unlabelled"] = _words_of(unlabelled, reading, files[0])
    with options.errors_name_file(files, parts):
        fit(model, X, y, **further)
    model.reading_ = reading
    with click.get_current_context().obj.deferred():
        model.save(output)
        remove_checkpoint(model)
    if not sys.stderr.isatty():  # where an error is a single line
        click.echo(summary, err=True)
    if dev_data is not None:
        _show_curve(model)
    if hasattr(model, "report_"):
        show = options.printer(err=True)
        show(model.report_.table().rich())
        show(*model.report_.table().notes, markup=False)
    labels = options.counted(len(model.classes_), "label")
    click.echo(f"{output}: {type(model).__name__}, {options.describe(*parts)}, {labels}", err=True)


def _words_of(paths: tuple[str, ...], reading: dict[str, Any], trained_on: str) -> list[list[str]]:
    """The words of files without labels, which may differ in format and shape."""
    from fuda.vectors.learning import sentences

    words = []
    for path in paths:
        data = options.read_unlabelled(path, reading, trained_on)
        with options.errors_name_file([path], [data]):
            words += sentences(data.X)
    return words


def _labels_found(y: list[list[Any]]) -> str:
    """The labels on one line, most frequent first; warns if there are too many to be labels."""
    counts = Counter(label for labels in y for label in labels if label is not None)
    shown = [f"{label} {count:,}" for label, count in counts.most_common(_SHOWN)]
    more = f", and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else ""
    nodes = sum(counts.values())
    if len(counts) > max(_MANY, nodes * _MANY_OF_NODES):
        click.echo(
            f"fuda: {len(counts):,} labels for {nodes:,} nodes are many; if these are not what to learn, "
            "name the right column with --label. Time and memory grow with the square of their number",
            err=True,
        )
    return f"labels: {', '.join(shown)}{more}"


def _warn_of_positions(X: list[Any]) -> None:
    """Warn of columns whose whole numbers grow along the structures: offsets or counts of words.

    No learner can use what never comes again at the same place, and it spoils what it
    counts beside.
    """
    rows = [list(zip(*x.observations, strict=False)) for x in X if _has_columns(x)]
    count = min((len(columns) for columns in rows), default=0)
    growing = [c for c in range(count) if all(_grows(columns[c]) for columns in rows)]
    if growing and any(len(columns[growing[0]]) > 1 for columns in rows):
        noun = "columns " * (len(growing) > 1) or "column "
        click.echo(
            f"fuda: {noun}{', '.join(str(c + 1) for c in growing)} of the observations: numbers that "
            "grow along every structure, such as offsets; nothing is learned from these, choose the "
            "others with --columns",
            err=True,
        )


def _has_columns(x: Any) -> bool:
    """Whether the observations of a structure are the texts of several columns."""
    return len(x.observations) > 0 and isinstance(x.observations[0], tuple)


def _grows(column: tuple[Any, ...]) -> bool:
    """Whether all texts of a column are whole numbers, each greater than the one before."""
    if not all(isinstance(text, str) and text.isdecimal() and len(text) < 20 for text in column):
        return False
    return all(int(a) < int(b) for a, b in pairwise(column))


def _show_curve(model: Any) -> None:
    """Print the validation scores after the first, some, the best and the last iteration."""
    from fuda.models.fitting.validation import score_name

    curve = model.validation_curve_
    rounds = {base * 10**power for base in (1, 2, 5) for power in range(6)}
    shown = sorted({k for k in rounds if k < len(curve)} | {model.n_iter_, len(curve)})
    points = [f"{k}: {curve[k - 1]:.4f}{' (best)' if k == model.n_iter_ else ''}" for k in shown]
    click.echo(f"{score_name(model.classes_)} by iteration: {', '.join(points)}", err=True)


def _budget(text: str | None, learner: str) -> dict[str, float]:
    """The parameter for `--budget`: a number with a unit, seconds without one."""
    if text is None:
        return {}
    if learner != "auto":
        raise DataError(f"--budget {text}: {learner} takes what it takes; choose --learner auto")
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(s|m|h|)", text.strip())
    if match is None:
        raise DataError(f"--budget {text}: give a time such as 60s, 20m or 1h")
    return {"budget": float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]}


def _with_option(
    parameters: dict[str, Any], learner: str, name: str, value: str, problem: str
) -> dict[str, Any]:
    """The parameters with that of an option of the same name; not all learners have it."""
    if name in parameters:
        raise DataError(f"--{name} and --set {name}=… both give the same; give one")
    if name not in model_class(LEARNERS[learner])._get_param_names():
        raise DataError(f"--{name}: {learner} {problem}")
    return parameters | {name: value}


def fit(model: Any, X: list[Any], y: list[list[Any]], **further: Any) -> None:
    """Fit a model, with progress on a terminal; each warning becomes a line on standard error."""
    verbose = getattr(model, "verbose", None)
    if verbose is False:
        model.verbose = sys.stderr.isatty()

    with shown_warnings():
        model.fit(X, y, **further)
    if verbose is False:  # the file does not depend on where the command ran
        model.verbose = verbose


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Within the block, each warning becomes a line on standard error."""

    def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        click.echo(f"fuda: {' '.join(str(message).split())}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show_warning
        yield


def remove_checkpoint(model: Any) -> None:
    """Remove the checkpoint of a finished fit whose model is saved."""
    from fuda.storage.checkpoint import remove_finished

    path = getattr(model, "checkpoint", None)
    if path is None:
        return
    try:
        remove_finished(path)
    except OSError as error:
        click.echo(f"fuda: {path}: the finished checkpoint cannot be removed: {error.strerror}", err=True)


def make_learner(name: str, parameters: dict[str, Any], template: str | None = None) -> Any:
    """The unfitted model of that name on the command line, with its parameters checked."""
    from fuda.data.encoders import make_encoder

    cls = model_class(LEARNERS[name])
    known = cls._get_param_names()
    for key in parameters:
        if key not in known:
            from fuda.models.fitting.foreign_parameters import FOREIGN_PARAMETERS

            hint = FOREIGN_PARAMETERS.get(key, f"it has {', '.join(known)}")
            raise DataError(f"--set {key}=…: {name} has no such parameter; {hint}")
    if template is not None:
        from fuda.features.templates import Template

        if "features" in parameters:
            raise DataError("--template and --set features=… both determine the features; give one")
        parameters = parameters | {"features": Template.read(template)}
    model = cls(**parameters)
    model._check_parameters()
    make_encoder(model.features, model.window)
    return model
