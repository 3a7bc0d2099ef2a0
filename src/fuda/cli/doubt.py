"""fuda doubt: the labels of a file that the rest of the file contradicts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from fuda.cli import options
from fuda.cli.train import LEARNERS, make_learner, shown_warnings
from fuda.errors import DataError

if TYPE_CHECKING:
    from fuda.active.doubts import Doubt
    from fuda.formats import Dataset

_EXAMPLES = """\b
Examples:
  fuda doubt esp.train
  fuda doubt esp.train --top 50 --folds 10
  fuda doubt train.conllu --label UPOS --graph tree --learner crf
  fuda doubt esp.train --top 500 --json > doubts.json
"""
_LEARNER = "The learner that judges; by default what suits the data, mostly a CRF."
_FOLDS = "The number of models, each of which judges what the others learn from."
_AROUND = 6  # nodes of context


@click.command(epilog=_EXAMPLES)
@click.argument("file", metavar="FILE")
@click.option("--learner", type=click.Choice(list(LEARNERS)), help=_LEARNER)
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help=_FOLDS)
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="How many to show.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.reading_options
def doubt(file: str, learner: str | None, folds: int, top: int, as_json: bool, **how: Any) -> None:
    """Show the labels of FILE that the rest of it contradicts.

    Every structure is judged by a model that has learned from the others; the most doubtful labels
    come first. A doubt is about a node or an entity: how it is labelled, what the model suggests
    instead, how sure it is of that if one of both is right, and what speaks for it.
    """
    from fuda.active.doubts import doubts
    from fuda.progress import bar

    model = None if learner is None else make_learner(learner, {})
    data = options.read(file, options.reading_keywords(**how))
    if data.y is None:
        raise DataError(f"{file}: has no labels to doubt; name their column with --label")
    with options.errors_name_file([file], [data]), shown_warnings(), bar("judging", folds, True) as advance:
        found = doubts(
            data.X, data.y, estimator=model, folds=folds, top=top, progress=lambda share: advance(1)
        )
    if as_json:
        click.echo(json.dumps([_with_words(one, data) for one in found], indent=2, ensure_ascii=False))
        return
    show = options.printer()
    for number, one in enumerate(found, start=1):
        show(_lines(number, one, data), soft_wrap=True)


def _with_words(one: Doubt, data: Dataset) -> dict[str, Any]:
    """A doubt for JSON."""
    from fuda.render.text import shown

    words = data.X[one.structure].observations[one.start : one.end]
    return one.to_dict() | {"words": list(map(shown, words))}


def _lines(number: int, one: Doubt, data: Dataset) -> Any:
    """A doubt for the terminal: where it is, both labelings in context, and why."""
    from rich.text import Text

    from fuda.render.text import plain

    nodes = f"node {one.start}" if one.end == one.start + 1 else f"nodes {one.start} to {one.end - 1}"
    text = Text()
    text.append(f"{number}. structure {one.structure}, {nodes}", style="bold")
    text.append(f"  {100 * one.probability:.1f} %\n")
    for name, labels in (("given", one.given), ("suggested", one.suggested)):
        text.append(f"   {name:<11}", style="dim")
        text.append(_marked(data.X[one.structure], one, labels))
        text.append("\n")
    if one.explanation:
        text.append(f"   {plain(one.explanation)}\n", style="dim")
    return text


def _marked(structure: Any, one: Doubt, labels: list[Any]) -> Any:
    """The words around a doubt, with the labels of its nodes after them."""
    from rich.text import Text

    from fuda.render.nodes import nodes_of
    from fuda.render.text import plain

    whole = [None] * one.start + labels + [None] * (len(structure) - one.end)
    text = Text("… " if one.start > _AROUND else "")
    for node in nodes_of(structure, whole, None, None)[max(0, one.start - _AROUND) : one.end + _AROUND]:
        text.append("[" if node.bar is not None and node.bar.first else "")
        text.append(plain(node.word), style="" if node.bar is None else "bold")
        text.append(f"]{plain(node.bar.kind)}" if node.bar is not None and node.bar.last else "")
        text.append(" ")
    text.append("…" if one.end + _AROUND < len(structure) else "")
    text.rstrip()
    return text
