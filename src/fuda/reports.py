"""What evaluations return: scores of classes, their averages, and reports (`fuda.metrics`)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fuda.data.labels import Label


@dataclass(frozen=True)
class Score:
    """Precision, recall and F1 of a class or of an average over classes.

    Parameters
    ----------
    precision, recall, f1 : float
        The quotients.
    support, predicted, correct : int
        The numbers of true items, of predicted items, and of items that are both.

    Examples
    --------
    >>> from fuda.metrics import label_scores
    >>> score = label_scores([["A", "A", "O"]], [["A", "O", "O"]]).each["A"]
    >>> score.precision, score.recall, score.support, score.predicted, score.correct
    (1.0, 0.5, 2, 1, 1)
    """

    precision: float
    recall: float
    f1: float
    support: int
    predicted: int
    correct: int


@dataclass(frozen=True)
class Scores:
    """The scores of each class and their averages.

    Parameters
    ----------
    micro, macro, weighted : Score
        The averages.
    each : dict of label or type to Score
        Sorted by key.

    Examples
    --------
    >>> from fuda.metrics import label_scores
    >>> scores = label_scores([["A", "B", "O"]], [["A", "O", "O"]])
    >>> sorted(scores.each), scores.micro.recall, scores.macro.f1
    (['A', 'B'], 0.5, 0.5)
    """

    micro: Score
    macro: Score
    weighted: Score
    each: dict[Label, Score]


@dataclass(frozen=True)
class Report:
    """The result of `evaluate`. Its text has the layout of the CoNLL evaluation script.

    Parameters
    ----------
    structures : int
        The number of structures.
    tokens, correct : int
        The numbers of nodes with known labels, and of those with the correct label.
    accuracy : float
        The quotient of both.
    label_scores : Scores
        By label.
    entity_scores : Scores or None
        None if labels encode no segments.
    entity_structures : int
        The number of structures that entity scores are computed from.
    scheme : str or None
        The scheme of the entities, None for the lenient interpretation.
    outside : label
        The label that is not a class.
    labels : list
        All labels, sorted.
    counts : (L, L) array of int
        The confusion matrix, rows true, columns predicted.

    Examples
    --------
    >>> from fuda.metrics import evaluate
    >>> report = evaluate([["B-PER", "O"]], [["B-PER", "B-PER"]])
    >>> report.accuracy, report.entity_scores.micro.precision, report.labels
    (0.5, 0.5, ['B-PER', 'O'])
    >>> report.counts.tolist()
    [[1, 0], [1, 0]]
    """

    structures: int
    tokens: int
    correct: int
    accuracy: float
    label_scores: Scores
    entity_scores: Scores | None
    entity_structures: int
    scheme: str | None
    outside: Label
    labels: list[Label]
    counts: np.ndarray

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict of JSON types.

        Returns
        -------
        dict
            Labels are strings where they are keys.
        """
        report: dict[str, Any] = asdict(self)
        for scores in (report["label_scores"], report["entity_scores"] or {"each": {}}):
            scores["each"] = {str(name): score for name, score in scores["each"].items()}
        report["confusion"] = {"labels": report.pop("labels"), "counts": report.pop("counts").tolist()}
        return report

    def text(self) -> str:
        """Return counts and percentages of entity types, or of labels if they encode no segments.

        Returns
        -------
        str
            Several lines.
        """
        scores = self.label_scores if self.entity_scores is None else self.entity_scores
        items = "labels" if self.entity_scores is None else "phrases"
        total = scores.micro
        width = max([17, *(len(str(name)) for name in scores.each)])
        lines = [
            f"processed {self.tokens} tokens with {total.support} {items}; "
            f"found: {total.predicted} {items}; correct: {total.correct}.",
            f"accuracy: {100 * self.accuracy:6.2f}%; {_percentages(total)}",
        ]
        for name, score in scores.each.items():
            lines.append(f"{name!s:>{width}}: {_percentages(score)}  {score.predicted}")
        if self.entity_scores is not None and self.entity_structures < self.structures:
            lines.append(
                f"phrases are those of {self.entity_structures} of {self.structures} structures; "
                "the others have nodes whose label is not known"
            )
        return "\n".join(lines)

    __str__ = text

    def _repr_html_(self) -> str:
        from fuda.render.report import report_html

        return report_html(self, alone=True)


def _percentages(score: Score) -> str:
    """Precision, recall and F1 for the report."""
    precision, recall, f1 = 100 * score.precision, 100 * score.recall, 100 * score.f1
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"
