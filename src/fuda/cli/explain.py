"""fuda explain: why a model gives a node its label, and not another one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from fuda.cli import options
from fuda.errors import DataError
from fuda.progress import stage

if TYPE_CHECKING:
    from rich.table import Table

    from fuda.explanations.decisions import Decision

_EXAMPLES = """\b
Examples:
  fuda explain spanish.fuda esp.testb --structure 3
  fuda explain spanish.fuda esp.testb --structure 3 --node 7
  fuda explain spanish.fuda esp.testb --structure 3 --node 7 --top 10 --html why.html
"""
_STRUCTURE = "The number of the structure in FILE, from 0; by default 0."
_NODE = "The number of the node, from 0; by default all nodes are listed."
_TOP = "How many contributions of each kind to list."
_HTML = "Write a page to this file instead."


@click.command(epilog=_EXAMPLES)
@click.argument("model_path", metavar="MODEL")
@click.argument("file", default="-", metavar="[FILE]")
@click.option("--structure", type=int, default=0, metavar="I", help=_STRUCTURE)
@click.option("--node", type=int, metavar="N", help=_NODE)
@click.option("--top", type=click.IntRange(min=1), default=5, metavar="K", help=_TOP)
@click.option("--html", metavar="FILE", help=_HTML)
@options.reading_options
def explain(
    model_path: str, file: str, structure: int, node: int | None, top: int, html: str | None, **how: Any
) -> None:
    """Show why MODEL labels a node of FILE as it does.

    Contributions add up to the difference between the label and the best other one. Without --node
    all nodes are listed with their labels and how certain these are.
    """
    import fuda
    from fuda import files
    from fuda.explanations.decisions import explained
    from fuda.render.explanation import explanation_html
    from fuda.render.style import page

    if html is not None:
        options.check_output(html, model_path, file)
    model = fuda.load(model_path)
    data = options.read_as_trained(file, model, options.reading_keywords(**how), labelled=False)
    with options.errors_name_file([file], [data]):
        _check("structure", structure, len(data))
        x = data.X[structure]
        _check("node", node or 0, len(x))
        with stage("explaining (the first run compiles, for some seconds)"):
            decision = model._decision(model._encode([x]))
            explanation = _Overview(model, decision) if node is None else explained(decision, node, top)
    if html is None:
        options.printer()(explanation)
        return
    body = explanation.html() if isinstance(explanation, _Overview) else explanation_html(explanation)
    title = f"{os.path.basename(files.display_name(file))}, structure {structure}"
    files.write_text(html, page(title if node is None else f"{title}, node {node}", body))


def _check(name: str, number: int, count: int) -> None:
    """Raise DataError for a number of a structure or node that does not exist."""
    if not count:
        raise DataError(f"there is no {name} to explain; name another one")
    if not 0 <= number < count:
        raise DataError(f"--{name} {number}: there are {count:,}; give a number from 0 to {count - 1}")


class _Overview:
    """All nodes of a structure: labels, their best rivals, and how certain they are."""

    def __init__(self, model: Any, decision: Decision) -> None:
        from fuda.models.explained.diagnosis import probabilities

        self.decision, self.labels = decision, [decision.classes[k] for k in decision.labels]
        self.rivals: list[Any] = []
        self.ahead: list[float | None] = []
        for node in range(len(decision.labels)):
            other = decision.rival(node)
            self.rivals.append(None if other is None else decision.classes[other[node]])
            self.ahead.append(None if other is None else decision.difference(other, node))
        marginals = probabilities(model, [decision.structure], [self.labels])
        self.probabilities = None if marginals is None else marginals[0]

    def _rows(self) -> Iterator[list[str]]:
        """The cells of a table."""
        from fuda.render.text import shown

        for node, observation in enumerate(self.decision.structure.observations):
            ahead, p = self.ahead[node], self.probabilities
            yield [
                str(node),
                shown(observation),
                str(self.labels[node]),
                "" if self.rivals[node] is None else str(self.rivals[node]),
                "" if ahead is None else f"{ahead:.3g}",
                *([] if p is None else [f"{p[node]:.3f}"]),
            ]

    @property
    def _heads(self) -> list[str]:
        heads = ["node", "observation", "label", "rival", "ahead by"]
        return heads if self.probabilities is None else [*heads, "probability"]

    def __rich__(self) -> Table:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        from fuda.render.terminal import colour
        from fuda.render.text import kinds_of, plain

        kinds = kinds_of([self.labels])
        caption = f"ahead by: {self.decision.unit}; --node N explains a node"
        table = Table(box=SIMPLE_HEAD, caption=caption, caption_justify="left", pad_edge=False)
        for name in self._heads:
            table.add_column(name, justify="right" if name in ("node", "ahead by", "probability") else "left")
        for row, label in zip(self._rows(), self.labels, strict=True):
            cells = [Text(plain(cell)) for cell in row]
            cells[2].stylize(colour(kinds, label))
            table.add_row(*cells)
        return table

    def html(self) -> str:
        """Return the structure with labels, and the table."""
        from fuda.render.display import Display
        from fuda.render.report import table

        p = None if self.probabilities is None else [self.probabilities]
        shape = Display([self.decision.structure], [self.labels], probabilities=p)
        note = f'<p class="soft small">ahead by: {self.decision.unit}</p>'
        return f"{shape.legend()}{shape.one(0)}{table(self._heads, self._rows(), left=4)}{note}"
