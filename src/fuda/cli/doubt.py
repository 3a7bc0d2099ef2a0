"""fuda doubt: the labels of files that the rest of the files contradicts."""

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
  fuda doubt batch1.conll batch2.conll
  fuda doubt train.conllu --label UPOS --graph tree --learner crf
  fuda doubt esp.train --top 500 --json > doubts.json
"""
_LEARNER = "The learner that judges; by default what suits the data, mostly a CRF."
_FOLDS = "The number of models, each of which judges what the others learn from."
_AROUND = 6  # nodes shown to each side of a doubt


@click.command(epilog=_EXAMPLES)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@click.option("--learner", type=click.Choice(list(LEARNERS)), help=_LEARNER)
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help=_FOLDS)
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="How many to show.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.reading_options
def doubt(
    paths: tuple[str, ...], learner: str | None, folds: int, top: int, as_json: bool, **how: Any
) -> None:
    """Show the labels of FILEs that the rest of them contradicts.

    Every structure is judged by a model that has learned from the others, in all files together;
    the most doubtful labels come first. A doubt is about a node or an entity: how it is labelled,
    what the model suggests instead, how sure it is of that if one of both is right, and the
    evidence for it.
    """
    from fuda.active.doubts import doubts
    from fuda.progress import bar

    model, keywords = None if learner is None else make_learner(learner, {}), options.reading_keywords(**how)
    parts = [options.read(path, keywords) for path in paths]
    for path, part in zip(paths, parts, strict=True):
        if part.y is None:
            where = options.first_unlabelled(path, part)
            raise DataError(f"{where} has no labels to doubt; name their column with --label")
    data, names = options.joined(paths, parts)
    with options.errors_name_file(paths, parts), shown_warnings(), bar("judging", folds, True) as advance:
        found_doubts = doubts(
            data.X, data.y, estimator=model, folds=folds, top=top, progress=lambda share: advance(1)
        )
    if as_json:
        places = [(path, i) for path, part in zip(paths, parts, strict=True) for i in range(len(part))]
        listed = [_with_words(doubted, data, *places[doubted.structure]) for doubted in found_doubts]
        click.echo(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    show = options.printer()
    for number, doubted in enumerate(found_doubts, start=1):
        show(_lines(number, doubted, data, names[doubted.structure]), soft_wrap=True)


def _with_words(doubt: Doubt, data: Dataset, path: str, index: int) -> dict[str, Any]:
    """A doubt for JSON: with its words, its file, and the number of the structure within it."""
    from fuda.render.text import shown

    words = data.X[doubt.structure].observations[doubt.start : doubt.end]
    return doubt.to_dict() | {"file": path, "structure": index, "words": list(map(shown, words))}


def _lines(number: int, doubt: Doubt, data: Dataset, where: str) -> Any:
    """A doubt for the terminal: where it is, both labelings in context, and why."""
    from rich.text import Text

    from fuda.render.text import plain

    last = doubt.end - 1
    nodes = f"node {last}" if doubt.start == last else f"nodes {doubt.start} to {last}"
    text = Text()
    text.append(f"{number}. structure {plain(where)}, {nodes}", style="bold")
    text.append(f"  {100 * doubt.probability:.1f} %\n")
    for name, labels in (("given", doubt.given), ("suggested", doubt.suggested)):
        text.append(f"   {name:<11}", style="dim")
        text.append(_words_with_labels(data.X[doubt.structure], doubt, labels))
        text.append("\n")
    if doubt.explanation:
        text.append(f"   {plain(doubt.explanation)}\n", style="dim")
    return text


def _words_with_labels(structure: Any, doubt: Doubt, labels: list[Any]) -> Any:
    """The words around a doubt, with the labels of its nodes after them."""
    from rich.text import Text

    from fuda.render.nodes import nodes_of
    from fuda.render.text import plain

    all_labels = [None] * doubt.start + labels + [None] * (len(structure) - doubt.end)
    text = Text("… " if doubt.start > _AROUND else "")
    begin, end = max(0, doubt.start - _AROUND), doubt.end + _AROUND
    for node in nodes_of(structure, all_labels, None, None)[begin:end]:
        text.append("[" if node.bar is not None and node.bar.first else "")
        text.append(plain(node.word), style="" if node.bar is None else "bold")
        text.append(f"]{plain(node.bar.kind)}" if node.bar is not None and node.bar.last else "")
        text.append(" ")
    text.append("…" if doubt.end + _AROUND < len(structure) else "")
    text.rstrip()
    return text
