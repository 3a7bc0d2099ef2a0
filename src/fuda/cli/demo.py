"""fuda demo: models compared on the embedded corpus, and a label explained."""

from __future__ import annotations

import time
from typing import Any

import click

from fuda.cli.options import printer
from fuda.progress import stage
from fuda.runtime.interrupts import inner_training

_STATES = {"D": ("uses", "green"), "P": ("wants", "yellow"), "R": ("rejects", "red")}
_ROLES = {"p": "product", "v": "vendor", "n": "number", "r": "reason"}
_FEW = 8  # fitting to so many structures compiles or loads the code of a learner
_EXAMPLES = """\b
Examples:
  fuda demo
  fuda demo 2> /dev/null | less -R
"""


@click.command(epilog=_EXAMPLES)
def demo() -> None:
    """Compare models on an embedded corpus, and explain a label.

    The corpus is synthetic: sales-log sentences in which products, vendors, numbers and reasons
    are labelled by whether the customer uses, wants or rejects them. The deciding verb is often
    far away in the sentence, but close in its dependency tree. Seconds are without compilation,
    which happens once, in the first run.
    """
    from rich.table import Table

    from fuda.data.structures import Sequence
    from fuda.datasets import load_product_usage

    show = printer()
    data = load_product_usage()
    (X, y), (X_test, y_test) = data.train, data.test
    show(f"{len(X)} synthetic sales-log sentences to learn from, {len(X_test)} to label; 12 labels.\n")
    table = Table(title="Scores over all labels except O")
    table.add_column("model")
    table.add_column("shape")
    for name in ("precision", "recall", "F1", "seconds"):
        table.add_column(name, justify="right")
    predicted: Any = None
    for learner, name, shape in _learners():
        flat = shape == "sequence"
        known, new = ([Sequence(tree) for tree in part] if flat else part for part in (X, X_test))
        predicted, row = _fitted_and_scored(learner, f"{name} on {shape}s", known, new, y, y_test)
        table.add_row(name, shape, *row)
    show(table)
    kernel = learner  # the last one, on trees
    tree, node = _right_product(X_test, predicted, y_test)
    labels = predicted[tree]
    words = [form for form, *_ in X_test[tree]]
    show(f"\nThe kernel on trees labels a sentence of the test set: {' '.join(words)}\n")
    show(_drawn(words, labels, X_test[tree].heads.tolist(), node))
    verb = _STATES[labels[node][0]][0]
    show(f"\nWhy is [bold]{words[node]}[/bold] a product that the customer {verb}? These training positions")
    show("support that label or its rival, by what matched around them in the trees:\n")
    show(str(kernel.explain(X_test[tree], node, top=3)), markup=False)
    show("\nNext: [bold]fuda train FILE -o MODEL[/bold], and fuda --help.")


def _learners() -> list[tuple[Any, str, str]]:
    """The models, their names, and the shape of sentences that they see."""
    from fuda.models.crf import CRF
    from fuda.models.hmm import HMM
    from fuda.models.marginalized_perceptron import MarginalizedPerceptron

    def kernel() -> MarginalizedPerceptron:
        return MarginalizedPerceptron(calibrate=False, orders=1)  # the quickest form of it

    learners: list[tuple[Any, str, str]] = [(HMM(), "HMM", "sequence")]
    learners += [(CRF(), "CRF", shape) for shape in ("sequence", "tree")]
    return learners + [(kernel(), "marginalized kernel", shape) for shape in ("sequence", "tree")]


def _fitted_and_scored(
    learner: Any, title: str, X: Any, X_test: Any, y: Any, y_test: Any
) -> tuple[Any, list[str]]:
    """Fit a model after it has been compiled; its predictions, and its row of the table."""
    from fuda import metrics

    with inner_training():  # Ctrl-C ends the demo, and not just one training
        with stage(f"loading {title} (the first run compiles)"):
            learner.fit(X[:_FEW], y[:_FEW]).predict(X_test[:_FEW])
        began = time.perf_counter()
        with stage(f"training {title}"):
            predicted = learner.fit(X, y).predict(X_test)
    seconds = time.perf_counter() - began
    micro = metrics.label_scores(y_test, predicted).micro
    figures = [f"{100 * value:.1f}" for value in (micro.precision, micro.recall, micro.f1)]
    return predicted, [*figures, f"{seconds:.1f}"]


def _right_product(X: Any, predicted: Any, y: Any) -> tuple[int, int]:
    """A sentence of at most 20 nodes whose labels are all right, and a product in it."""
    for i, (tree, labels, gold) in enumerate(zip(X, predicted, y, strict=True)):
        products = [node for node, label in enumerate(labels) if label.endswith("-p")]
        if len(tree) <= 20 and products and list(labels) == list(gold):
            return i, products[0]
    return 0, 0


def _drawn(words: list[str], labels: list[str], heads: list[int], chosen: int) -> Any:
    """The tree of a sentence, coloured by state, the chosen node underlined."""
    from rich.text import Text
    from rich.tree import Tree

    def node_text(node: int) -> Text:
        state, _, role = labels[node].partition("-")
        text = Text(words[node], style=f"bold {_STATES[state][1]}" if role else "")
        if node == chosen:
            text.stylize("underline")
        return text.append(f"  {_meaning(labels[node])}", style="dim") if role else text

    branches = {-1: Tree("", hide_root=True)}
    pending = [node for node, head in enumerate(heads) if head == -1]
    while pending:
        node = pending.pop(0)
        branches[node] = branches[heads[node]].add(node_text(node))
        pending += [child for child, head in enumerate(heads) if head == node]
    return branches[-1]


def _meaning(label: str) -> str:
    """A label in words.

    >>> _meaning("P-p"), _meaning("O")
    ('wants product', 'nothing')
    """
    state, _, role = label.partition("-")
    return f"{_STATES[state][0]} {_ROLES[role]}" if role else "nothing"
