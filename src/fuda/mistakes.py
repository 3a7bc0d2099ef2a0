"""What goes wrong in predictions: which labels are confused, where, and with which words.

Each entity, true or predicted, is counted once, by its closest counterpart:

- *correct*: type and bounds are right,
- *bounds*: one of the same type overlaps it,
- *type*: one of another type overlaps it,
- *missed* (a true one) or *invented* (a predicted one): none overlaps it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuda.data.labels import Label
from fuda.metrics import Report
from fuda.schemes import Segment, entities

OUTCOMES = ("correct", "bounds", "type", "missed", "invented")


@dataclass(frozen=True)
class Confusion:
    """A label that was predicted for another one.

    Parameters
    ----------
    right, predicted : label
        The labels.
    places : list of (int, int)
        The structures and nodes where it happened.

    Examples
    --------
    >>> from fuda.metrics import evaluate
    >>> y_true, y_pred = [["LOC", "O"]], [["PER", "O"]]
    >>> first = find_mistakes(y_true, y_pred, evaluate(y_true, y_pred)).confusions[0]
    >>> first.right, first.predicted, first.places
    ('LOC', 'PER', [(0, 0)])
    """

    right: Label
    predicted: Label
    places: list[tuple[int, int]]


@dataclass(frozen=True)
class Mistakes:
    """All mistakes of predictions.

    Parameters
    ----------
    confusions : list of Confusion
        The most frequent first.
    structures : int
        The number of structures with a mistake.
    by_type : dict of str to dict of str to int
        The numbers of entities by type and outcome; empty if labels encode no entities.
    seen, unseen : (int, int) or None
        The numbers of nodes and of wrong labels, at words that the model knows and at new ones;
        None where that is not known.

    Examples
    --------
    >>> from fuda.metrics import evaluate
    >>> y_true, y_pred = [["LOC", "O"], ["O"]], [["PER", "O"], ["O"]]
    >>> found = find_mistakes(y_true, y_pred, evaluate(y_true, y_pred))
    >>> found.structures, len(found.confusions)
    (1, 1)
    """

    confusions: list[Confusion]
    structures: int
    by_type: dict[str, dict[str, int]]
    seen: tuple[int, int] | None
    unseen: tuple[int, int] | None

    def to_dict(self, examples: int = 3) -> dict[str, Any]:
        """Return the mistakes as a dict of JSON types.

        Parameters
        ----------
        examples : int
            How many places of each confusion.

        Returns
        -------
        dict
            For a JSON file.
        """
        confusions = [
            {
                "right": c.right,
                "predicted": c.predicted,
                "count": len(c.places),
                "places": [{"structure": i, "node": t} for i, t in c.places[:examples]],
            }
            for c in self.confusions
        ]
        words = {
            name: None if pair is None else {"nodes": pair[0], "wrong": pair[1]}
            for name, pair in (("seen", self.seen), ("unseen", self.unseen))
        }
        return {"structures": self.structures, "confusions": confusions, "by_type": self.by_type} | words


def find_mistakes(
    y_true: Sequence[Sequence[Any]],
    y_pred: Sequence[Sequence[Any]],
    report: Report,
    new: Sequence[np.ndarray] | None = None,
) -> Mistakes:
    """Find the mistakes of predictions.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences
        The true and predicted labels of each structure; true labels may be None.
    report : Report
        What `fuda.metrics.evaluate` found of them.
    new : sequence of arrays of bool, optional
        Which nodes the model has not seen the words of.

    Returns
    -------
    Mistakes
        By pairs of labels, types and words.

    Examples
    --------
    >>> from fuda.metrics import evaluate
    >>> y_true, y_pred = [["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]]
    >>> found = find_mistakes(y_true, y_pred, evaluate(y_true, y_pred))
    >>> found.confusions
    [Confusion(right='I-PER', predicted='O', places=[(0, 1)])]
    >>> found.by_type["PER"]["bounds"]
    1
    """
    places: dict[tuple[Any, Any], list[tuple[int, int]]] = defaultdict(list)
    counts = np.zeros((2, 2), dtype=np.int64)  # by whether the word is new, and the label wrong
    for i, (truth, guess) in enumerate(zip(y_true, y_pred, strict=True)):
        for t, (right, predicted) in enumerate(zip(truth, guess, strict=True)):
            if right is None:
                continue
            if right != predicted:
                places[right, predicted].append((i, t))
            if new is not None:
                counts[int(new[i][t]), int(right != predicted)] += 1
    confusions = [Confusion(*pair, where) for pair, where in places.items()]
    confusions.sort(key=lambda c: (-len(c.places), str(c.right), str(c.predicted)))
    wrong = {i for c in confusions for i, _ in c.places}
    seen, unseen = (None if new is None else (int(row.sum()), int(row[1])) for row in counts)
    by_type = _by_type(y_true, y_pred, report.scheme) if report.entity_scores is not None else {}
    return Mistakes(confusions, len(wrong), by_type, seen, unseen)


def _by_type(
    y_true: Sequence[Sequence[Any]], y_pred: Sequence[Sequence[Any]], scheme: str | None
) -> dict[str, dict[str, int]]:
    """The numbers of entities by type and outcome, over structures whose labels are all known."""
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for truth, guess in zip(y_true, y_pred, strict=True):
        if None in truth:
            continue
        true, predicted = entities(truth, scheme), entities(guess, scheme)
        for segment in true:
            outcomes[segment[0]][_outcome(segment, predicted, "missed")] += 1
        for segment in predicted:
            if _outcome(segment, true, "invented") == "invented":
                outcomes[segment[0]]["invented"] += 1
    return {kind: {name: outcomes[kind][name] for name in OUTCOMES} for kind in sorted(outcomes)}


def _outcome(segment: Segment, others: list[Segment], alone: str) -> str:
    """What an entity is, compared with those of the other labeling."""
    kind, start, end = segment
    if segment in others:
        return "correct"
    over = {other[0] for other in others if other[1] < end and start < other[2]}
    return "bounds" if kind in over else "type" if over else alone
