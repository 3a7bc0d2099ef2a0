"""Goals: what one model is preferred to another for, as counts that add up over structures.

Every goal is a mean over classes c of F1 = 2 k_c / (p_c + s_c), with the numbers of correct,
predicted and true items of `fuda.metrics`:

==============  ===================  ========================================
goal            classes              items
==============  ===================  ========================================
token accuracy  one                  nodes, so that p = s and F1 = k / s
label F1        one                  nodes whose label is not O
macro F1        each label           nodes with that label
entity F1       one                  segments with their type
==============  ===================  ========================================

Counts of structures are an array (n, classes, 3), so that the score of any selection of structures is
a matter of sums.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fuda.errors import DataError
from fuda.metrics import evaluate
from fuda.schemes import OUTSIDE, entities, guess_scheme

_UNBALANCED = 0.8  # share of one label from which token accuracy says little


class Figure(NamedTuple):
    """A percentage over folds: mean and standard deviation."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.deviation:.2f}"


def figure(shares: list[float]) -> Figure:
    """Mean and standard deviation of shares, in per cent.

    Parameters
    ----------
    shares : list of float
        One per fold.

    Returns
    -------
    Figure
        The figure.

    Examples
    --------
    >>> print(figure([0.5, 0.6]))
    55.00 ± 5.00
    """
    return Figure(100 * float(np.mean(shares)), 100 * float(np.std(shares)))


@dataclass(frozen=True)
class Goal:
    """What is to be large.

    Parameters
    ----------
    name : {"token accuracy", "label F1", "macro F1", "entity F1"}
        The score.
    scheme : str or None
        The tag scheme that all labels are well-formed in, None where there is not exactly one.
    labels : tuple
        The labels, for macro F1.

    Examples
    --------
    >>> goal = Goal("entity F1")
    >>> truth, guess = [["B-PER", "O"], ["B-LOC", "I-LOC"]], [["B-PER", "O"], ["B-LOC", "O"]]
    >>> goal.score(goal.counts(truth, guess))
    0.5
    """

    name: str
    scheme: str | None = None
    labels: tuple[Any, ...] = ()

    def counts(self, y_true: Any, y_pred: Any) -> np.ndarray:
        """Count correct, predicted and true items.

        Parameters
        ----------
        y_true, y_pred : list of lists
            The true labels, None where not known, and the predicted ones.

        Returns
        -------
        ndarray of shape (n_structures, n_classes, 3)
            Numbers of correct, predicted and true items.
        """
        count = _COUNTERS[self.name]
        return np.array([count(self, *both) for both in zip(y_true, y_pred, strict=True)], dtype=float)

    def score(self, counts: np.ndarray) -> float:
        """Compute the score of structures by the sum of their counts.

        Parameters
        ----------
        counts : ndarray of shape (n_structures, n_classes, 3)
            Their counts.

        Returns
        -------
        float
            From 0 to 1.
        """
        return float(mean_f1(counts.sum(axis=0)))


def mean_f1(sums: np.ndarray) -> np.ndarray:
    """The mean of F1 over the classes that have items, of sums of counts (…, n_classes, 3)."""
    correct, items = sums[..., 0], sums[..., 1] + sums[..., 2]
    occur = items > 0
    each = np.divide(2 * correct, items, out=np.zeros_like(correct), where=occur)
    means: np.ndarray = each.sum(axis=-1) / np.maximum(1, occur.sum(axis=-1))
    return means


def goal_for(y: Any) -> Goal:
    """Choose a goal by the labels.

    Parameters
    ----------
    y : list of lists
        The labels of structures, None where not known.

    Returns
    -------
    Goal
        Entity F1 where labels encode segments; macro F1 where four of five nodes have the same
        label; else token accuracy.

    Examples
    --------
    >>> goal_for([["B-PER", "I-PER", "O"]]).name, goal_for([["N", "V", "N"]]).name
    ('entity F1', 'token accuracy')
    """
    known = [[label for label in labels if label is not None] for labels in y]
    frequency = Counter(label for labels in known for label in labels)
    if not frequency:
        raise DataError("no label is known; give some labels to learn from")
    if evaluate(known, known).entity_scores is not None:
        return Goal("entity F1", guess_scheme(y))
    labels = tuple(sorted(frequency))
    most = max(frequency.values()) / sum(frequency.values())
    return Goal("macro F1", None, labels) if most >= _UNBALANCED else Goal("token accuracy", None, labels)


def _of_nodes(goal: Goal, true: list[Any], guess: list[Any]) -> list[list[int]]:
    known = [(a, b) for a, b in zip(true, guess, strict=True) if a is not None]
    return [[sum(a == b for a, b in known), len(known), len(known)]]


def _of_labels(goal: Goal, true: list[Any], guess: list[Any]) -> list[list[int]]:
    known = [(a, b) for a, b in zip(true, guess, strict=True) if a is not None]
    correct = sum(a == b != OUTSIDE for a, b in known)
    return [[correct, sum(b != OUTSIDE for _, b in known), sum(a != OUTSIDE for a, _ in known)]]


def _of_each_label(goal: Goal, true: list[Any], guess: list[Any]) -> list[list[int]]:
    known = [(a, b) for a, b in zip(true, guess, strict=True) if a is not None]
    counts = [Counter(a for a, b in known if a == b), *map(Counter, zip(*known, strict=True))]
    correct, support, predicted = counts if known else (Counter(), Counter(), Counter())
    return [[correct[label], predicted[label], support[label]] for label in goal.labels]


def _of_entities(goal: Goal, true: list[Any], guess: list[Any]) -> list[list[int]]:
    if None in true:  # segments next to it have no known bounds
        return [[0, 0, 0]]
    # As `evaluate` does, BILOU strictly: the lenient interpretation does not know L and U.
    scheme = "BILOU" if goal.scheme == "BILOU" else None
    support, predicted = (set(entities(labels, scheme)) for labels in (true, guess))
    return [[len(support & predicted), len(predicted), len(support)]]


_COUNTERS = {
    "token accuracy": _of_nodes,
    "label F1": _of_labels,
    "macro F1": _of_each_label,
    "entity F1": _of_entities,
}
