"""Evaluation reports as HTML: scores, confusion, and tables in general."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fuda.render.style import fragment
from fuda.render.text import safe

_MOST_LABELS = 40


def table(
    head: Sequence[object], rows: Iterable[Sequence[object]], total: bool = False, left: int = 1
) -> str:
    """Return a table as HTML; the first columns are aligned left, the last row may be a total."""

    def line(cells: Sequence[object], tag: str, name: str = "") -> str:
        sides = [' class="left"' if i < left else "" for i in range(len(cells))]
        texts = (f"<{tag}{side}>{safe(cell)}</{tag}>" for side, cell in zip(sides, cells, strict=True))
        return f"<tr{name}>{''.join(texts)}</tr>"

    every = list(rows)
    lines = [
        line(row, "td", ' class="total"' if total and i == len(every) - 1 else "")
        for i, row in enumerate(every)
    ]
    body = f"<table><thead>{line(head, 'th')}</thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<div class="scroll">{body}</div>'


def report_html(report: Any, alone: bool = False) -> str:
    """Return an evaluation report as HTML.

    Parameters
    ----------
    report : Report
        Of `fuda.metrics`.
    alone : bool
        Whether to add the style, as a notebook needs it.

    Returns
    -------
    str
        HTML.
    """
    scores = report.label_scores if report.entity_scores is None else report.entity_scores
    item = "label" if report.entity_scores is None else "entity"
    rows = [(name, *_figures(score)) for name, score in scores.each.items()]
    rows.append(("all", *_figures(scores.micro)))
    facts = (
        f"{report.tokens:,} nodes of {report.structures:,} structures, "
        f"{100 * report.accuracy:.2f} % with the right label"
    )
    heads = [item, "precision", "recall", "F1", "true", "predicted", "correct"]
    text = f"<p>{facts}</p>{table(heads, rows, total=True)}"
    if report.entity_scores is not None and report.entity_structures < report.structures:
        rest = report.structures - report.entity_structures
        text += f'<p class="soft small">Entities are those of {report.entity_structures:,} structures; '
        text += f"the other {rest:,} have nodes whose label is not known.</p>"
    text += confusion_html(report.labels, report.counts.tolist())
    return fragment(text) if alone else text


def _figures(score: Any) -> tuple[object, ...]:
    quotients = (f"{100 * value:.2f}" for value in (score.precision, score.recall, score.f1))
    return (*quotients, *(f"{n:,}" for n in (score.support, score.predicted, score.correct)))


def confusion_html(labels: Sequence[Any], counts: Sequence[Sequence[int]]) -> str:
    """Return a confusion table as HTML; cells are coloured by their share of the row.

    Parameters
    ----------
    labels : sequence
        The labels.
    counts : sequence of sequences of int
        Rows true, columns predicted.

    Returns
    -------
    str
        HTML; empty where there are too many labels to look at.
    """
    if not labels or len(labels) > _MOST_LABELS:
        return ""
    heads = "".join(f"<th>{safe(label)}</th>" for label in labels)
    rows = []
    for i, (label, row) in enumerate(zip(labels, counts, strict=True)):
        total = sum(row) or 1
        cells = []
        for j, count in enumerate(row):
            share = 100 * count / total
            # A small share of errors should be seen too.
            strength = 0 if not count else 12 + 0.55 * share
            colour = "var(--good)" if i == j else "var(--bad)"
            look = f' class="cell" style="--tone:{colour};--x:{strength:.0f}"' if count else ""
            cells.append(f"<td{look}>{count if count else '·'}</td>")
        rows.append(f'<tr><th class="left">{safe(label)}</th>{"".join(cells)}</tr>')
    body = f"<thead><tr><th></th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody>"
    caption = '<p class="soft small">Rows: the right label; columns: the predicted one.</p>'
    return f'<h2>Confusion</h2>{caption}<div class="scroll"><table class="heat">{body}</table></div>'
