"""fuda demo: models compared on the embedded corpus."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click

from fuda.cli.options import printer
from fuda.interrupts import inner_training
from fuda.progress import stage

_STATES = {"D": ("uses", "green"), "P": ("wants", "yellow"), "R": ("rejects", "red")}
_ROLES = {"p": "product", "v": "vendor", "n": "number", "r": "reason"}
_EXAMPLES = """\b
Examples:
  fuda demo
  fuda demo 2> /dev/null | less -R
"""


@click.command(epilog=_EXAMPLES)
def demo() -> None:
    """Compare models on an embedded corpus, in under a minute.

    The corpus is synthetic: sales-log sentences in which products, vendors, numbers and reasons
    are labelled by whether the customer uses, wants or rejects them. The deciding verb is often
    far away in the sentence, but close in its dependency tree.
    """
    from rich.table import Table

    from fuda import metrics
    from fuda.data.structures import Sequence
    from fuda.datasets import load_product_usage
    from fuda.models.crf import CRF
    from fuda.models.hmm import HMM

    show = printer()
    data = load_product_usage()
    (X, y), (X_test, y_test) = data.train, data.test
    show(f"{len(X)} synthetic sales-log sentences to learn from, {len(X_test)} to label; 12 labels.\n")

    table = Table(title="Scores over all labels except O")
    table.add_column("model")
    table.add_column("shape of sentences")
    for name in ("precision", "recall", "F1", "seconds"):
        table.add_column(name, justify="right")
    predicted: Any = None
    for learner, shape in ((HMM(), "sequence"), (HMM(), "tree"), (CRF(), "sequence"), (CRF(), "tree")):
        parts = [[Sequence(tree) for tree in part] if shape == "sequence" else part for part in (X, X_test)]
        name = type(learner).__name__
        began = time.perf_counter()
        with stage(f"training {name} on {shape}s (the first run compiles)"):
            with inner_training():  # Ctrl-C ends the demo, and not just one training
                learner.fit(parts[0], y)
            predicted = learner.predict(parts[1])
        micro = metrics.label_scores(y_test, predicted).micro
        figures = (f"{100 * value:.1f}" for value in (micro.precision, micro.recall, micro.f1))
        table.add_row(name, shape, *figures, f"{time.perf_counter() - began:.1f}")
    show(table)
    show("\nThe CRF on trees labels three sentences of the test set:\n")
    for tree, labels, gold in list(zip(X_test, predicted, y_test, strict=True))[:3]:
        _show_sentence(show, [form for form, *_ in tree], labels, gold)
    show("Next: [bold]fuda train FILE -o MODEL[/bold], and fuda --help.")


def _show_sentence(show: Callable[..., None], words: list[str], labels: list[str], gold: list[str]) -> None:
    """Print the words, coloured by state, and the labels that are not O or wrong."""
    from rich.text import Text

    line = Text()
    meanings = []
    for word, label, true in zip(words, labels, gold, strict=True):
        state, _, role = label.partition("-")
        line.append(word, style=f"bold {_STATES[state][1]}" if role else "")
        line.append(" ")
        if role or label != true:
            wrong = "" if label == true else f" (should be {_meaning(true)})"
            meanings.append(f"{word}: {_meaning(label)}{wrong}")
    show(line)
    show("  " + "; ".join(meanings) + "\n", style="dim", markup=False)


def _meaning(label: str) -> str:
    """A label in words.

    >>> _meaning("P-p"), _meaning("O")
    ('wants product', 'nothing')
    """
    state, _, role = label.partition("-")
    return f"{_STATES[state][0]} {_ROLES[role]}" if role else "nothing"
