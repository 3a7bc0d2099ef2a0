"""fuda evaluate: compare the predictions of a model with the labels of files."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from fuda.cli import options
from fuda.errors import DataError
from fuda.progress import stage

if TYPE_CHECKING:
    from fuda.formats import Dataset
    from fuda.metrics import Report
    from fuda.mistakes import Mistakes

_EXAMPLES = """\b
Examples:
  fuda evaluate spanish.fuda esp.testb
  fuda evaluate news.fuda test/*.conll --errors
  fuda evaluate spanish.fuda esp.testb --report report.html
  fuda evaluate spanish.fuda esp.testb --json | jq .entity_scores.micro.f1
  fuda evaluate pos.fuda dev.conllu --label UPOS
"""
_SCHEME = (
    "Read entities strictly under IOB1, IOB2, IOE1, IOE2, IOBES or BILOU; by default BILOU strictly and "
    "others leniently, as conlleval does."
)
_ERRORS = "Also show what is confused, with examples, by entity type, and at new words."
_REPORT = "Write a page with scores, confusions and errors in context."
_MOST, _MOST_ON_PAGE = 10, 30  # so many confusions are shown at most
_PLACES, _PLACES_ON_PAGE = 3, 8  # so many examples of a confusion are shown at most
_AROUND = 5  # nodes shown to each side of a mistake


@click.command(epilog=_EXAMPLES)
@click.argument("model_path", metavar="MODEL")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@click.option("--scheme", metavar="NAME", help=_SCHEME)
@click.option("--errors", is_flag=True, help=_ERRORS)
@click.option("--report", "page_path", metavar="FILE", help=_REPORT)
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
@options.reading_options
def evaluate(
    model_path: str,
    paths: tuple[str, ...],
    scheme: str | None,
    errors: bool,
    page_path: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Compare the labels of MODEL with those of FILEs.

    A FILE is read like the files that MODEL was trained on, if it has their format; - is standard
    input. The scores are those of all files together.
    """
    import fuda
    from fuda import files, metrics
    from fuda.mistakes import find_mistakes
    from fuda.models.explained.diagnosis import unseen
    from fuda.schemes import scheme_name

    scheme = None if scheme is None else scheme_name(scheme)
    if page_path is not None:
        options.check_output(page_path, model_path, *paths)
    model, keywords = fuda.load(model_path), options.reading_keywords(**how)
    parts = [options.read_as_trained(path, model, keywords, labelled=True) for path in paths]
    for path, part in zip(paths, parts, strict=True):
        if part.y is None:
            problem = "has no labels to compare with; name their column or field with --label"
            raise DataError(f"{options.first_unlabelled(path, part)} {problem}")
    data, names = options.joined(paths, parts)
    with options.errors_name_file(paths, parts):
        assert data.y is not None
        labels = {label for labels in data.y for label in labels if label is not None}
        if not labels:
            raise DataError("every label in it is unknown; give labels to compare with")
        with stage("labelling (the first run compiles, for some seconds)"):
            predicted = model.predict(data.X)
        report = metrics.evaluate(data.y, predicted, scheme=scheme)
        mistakes = None
        if errors or page_path is not None:
            mistakes = find_mistakes(data.y, predicted, report, unseen(model, data.X))
    title = files.display_name(paths[0])
    if len(paths) > 1:
        title += f" and {options.counted(len(paths) - 1, 'other file')}"
    options.warn_of_other_labels(title, labels, set(model.classes_))
    if as_json:
        scores = report.to_dict()
        if errors and mistakes is not None:
            scores["errors"] = mistakes.to_dict(_PLACES)
        click.echo(json.dumps(scores, indent=2, ensure_ascii=False))
    else:
        click.echo(report.text())
        if errors and mistakes is not None:
            _show(mistakes, data, list(predicted), names)
    if page_path is not None and mistakes is not None:
        from fuda.render.style import page

        content = _page(report, mistakes, data, list(predicted), names)
        title = f"{os.path.basename(model_path)} on {os.path.basename(title)}"
        files.write_text(page_path, page(title, content))


def _show(mistakes: Mistakes, data: Dataset, predicted: list[Any], names: list[str]) -> None:
    """Print mistakes to the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from fuda.mistakes import OUTCOMES
    from fuda.render.nodes import nodes_of
    from fuda.render.terminal import line
    from fuda.render.text import kinds_of, plain

    show = options.printer()
    if not mistakes.confusions:
        show("\nno mistakes")
        return
    show(f"\nmistakes in {mistakes.structures:,} of {len(data):,} structures")
    for text in _by_words(mistakes):
        show(text)
    if mistakes.by_type:
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("entity")
        for name in OUTCOMES:
            table.add_column(name, justify="right")
        for kind, counts in mistakes.by_type.items():
            table.add_row(Text(plain(kind)), *(f"{n:,}" for n in counts.values()))
        show(table)
    kinds = kinds_of([*(data.y or []), *predicted])
    for confusion in mistakes.confusions[:_MOST]:
        count = f"{len(confusion.places):,} ×"
        show(
            Text(
                f"\n{count:>7}  {plain(confusion.right)} predicted as {plain(confusion.predicted)}",
                style="bold",
            )
        )
        for i, t in confusion.places[:_PLACES]:
            nodes = nodes_of(data.X[i], None, None, None)[max(0, t - _AROUND) : t + _AROUND + 1]
            where = Text(f"         {plain(names[i])}, {t}: ", style="dim")
            show(where + line(nodes, kinds, t), no_wrap=True, overflow="ellipsis")
    rest = len(mistakes.confusions) - _MOST
    if rest > 0:
        show(f"\nand {options.counted(rest, 'other pair')} of labels")


def _by_words(mistakes: Mistakes) -> list[str]:
    """How often labels are wrong at words that the model knows, and at new ones."""
    lines = []
    for name, pair in (("known words", mistakes.seen), ("new words", mistakes.unseen)):
        if pair is not None and pair[0]:
            lines.append(f"{name}: {pair[1]:,} of {pair[0]:,} labels wrong, {100 * pair[1] / pair[0]:.2f} %")
    return lines


def _page(report: Report, mistakes: Mistakes, data: Dataset, predicted: list[Any], names: list[str]) -> str:
    """Scores, confusions and errors in context as HTML."""
    from fuda.mistakes import OUTCOMES
    from fuda.render.display import Display
    from fuda.render.report import report_html, table
    from fuda.render.text import safe

    parts = [report_html(report), "<h2>Mistakes</h2>"]
    parts.append(f"<p>In {mistakes.structures:,} of {len(data):,} structures.</p>")
    parts += [f"<p>{line}</p>" for line in _by_words(mistakes)]
    if mistakes.by_type:
        rows = [(kind, *counts.values()) for kind, counts in mistakes.by_type.items()]
        parts.append(table(["entity", *OUTCOMES], rows))
    display = Display(data.X, predicted, data.y)
    parts.append(display.legend())
    for confusion in mistakes.confusions[:_MOST_ON_PAGE]:
        pair = f"{safe(confusion.right)} predicted as {safe(confusion.predicted)}"
        count = f'<span class="soft">{len(confusion.places):,} ×</span>'
        parts.append(f"<h2>{pair} {count}</h2>")
        for i, t in confusion.places[:_PLACES_ON_PAGE]:
            begin, end = max(0, t - 2 * _AROUND), min(len(data.X[i]), t + 2 * _AROUND + 1)
            where = f'<div class="name">structure {safe(names[i])}, node {t}</div>'
            parts.append(f'<div class="item">{where}{display.one(i, t, begin, end)}</div>')
    rest = len(mistakes.confusions) - _MOST_ON_PAGE
    if rest > 0:
        parts.append(f'<p class="soft">and {options.counted(rest, "other pair")} of labels</p>')
    return "".join(parts)
