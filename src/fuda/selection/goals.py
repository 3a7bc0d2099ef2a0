"""Goals: the scores by which models are compared, as counts that add up over structures.

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

Counts of structures are an array (n, classes, 3), so that the score of any selection of structures
is a matter of sums. Segments are those of the lenient interpretation of `fuda.schemes`; on
well-formed labels every interpretation is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from fuda.errors import DataError
from fuda.metrics import evaluate
from fuda.schemes import OUTSIDE, entities, guess_scheme, split_label

Counts = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
# If one label has at least this share of all nodes, token accuracy is not informative.
_UNBALANCED = 0.8


class Figure(NamedTuple):
    """A percentage over folds: mean and standard deviation.

    Parameters
    ----------
    mean, deviation : float
        In per cent.

    Examples
    --------
    >>> print(Figure(87.5, 1.25))
    87.50 ± 1.25
    """

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
    """An objective: the score that is to be maximized.

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
        sides = [*chain.from_iterable(y_true)], [*chain.from_iterable(y_pred)]
        classes = sorted({label for labels in sides for label in labels if label is not None})
        number = {label: k for k, label in enumerate(classes)} | {None: -1}
        true, guess = (np.array([number[label] for label in labels], dtype=np.int64) for labels in sides)
        offsets = np.cumsum([0, *map(len, y_true)])
        return self.counter(classes)(true, guess, offsets)

    def counter(self, classes: Sequence[Any]) -> Counts:
        """The function that counts items by label numbers of these classes.

        Parameters
        ----------
        classes : sequence
            The labels.

        Returns
        -------
        callable
            From true numbers (N,), −1 where not known, predicted ones (N,), and the offsets
            (n + 1,) of the structures, to counts (n, n_classes, 3).
        """
        if self.name == "entity F1":
            return _EntityCounts(classes)
        outside = {"token accuracy": [], "label F1": [OUTSIDE], "macro F1": []}[self.name]
        by_label = self.labels if self.name == "macro F1" else None
        return partial(_node_counts, list(classes), outside, by_label)

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
    f1 = np.divide(2 * correct, items, out=np.zeros_like(correct), where=occur)
    means: np.ndarray = f1.sum(axis=-1) / np.maximum(1, occur.sum(axis=-1))
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
        Entity F1 where labels encode segments, or label F1 if most structures have nodes whose
        label is not known; macro F1 where four of five nodes have the same label; else token
        accuracy.

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
        complete = sum(None not in labels for labels in y)
        return Goal("entity F1" if 2 * complete >= len(known) else "label F1", guess_scheme(y))
    labels = tuple(sorted(frequency))
    most = max(frequency.values()) / sum(frequency.values())
    return Goal("macro F1", None, labels) if most >= _UNBALANCED else Goal("token accuracy", None, labels)


def _node_counts(
    classes: list[Any],
    outside: list[Any],
    by_label: tuple[Any, ...] | None,
    true: np.ndarray,
    guess: np.ndarray,
    offsets: np.ndarray,
) -> np.ndarray:
    """Counts over nodes with labels other than `outside`, or for each label of `by_label`."""
    known = true >= 0
    groups = [[k for k, label in enumerate(classes) if label not in outside]]
    if by_label is not None:
        groups = [[classes.index(label)] if label in classes else [] for label in by_label]
    counts = []
    for group in groups:
        is_true, is_guess = known & np.isin(true, group), known & np.isin(guess, group)
        items = is_true & (true == guess), is_guess, is_true
        counts.append([_sums(item, offsets) for item in items])
    return np.array(counts).transpose(2, 0, 1)


def _sums(items: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The sum within each structure."""
    before = np.concatenate([[0.0], np.cumsum(items, dtype=float)])
    return before[offsets[1:]] - before[offsets[:-1]]


class _EntityCounts:
    """Counts segments leniently, so that pairs of neighbouring labels determine all bounds."""

    def __init__(self, classes: Sequence[Any]) -> None:
        as_iobes = {"L": "E", "U": "S"}  # the lenient interpretation does not have L and U
        labels = [as_iobes.get(label[0], label[0]) + label[1:] for label in classes]
        kinds = [split_label(label) for label in labels]
        self.inside = np.array([prefix != OUTSIDE for prefix, _ in kinds], dtype=bool)
        self.kind = np.unique([kind for _, kind in kinds], return_inverse=True)[1]
        both = [[len(entities([a, b])) == 1 for b in labels] for a in labels]
        self.joined = np.array(both) & self.inside[:, None] & self.inside

    def __call__(self, true: np.ndarray, guess: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        # The bounds of segments next to a node without a known label are not known: only
        # structures with complete labels are counted.
        is_complete = np.repeat(_sums(true < 0, offsets) == 0, np.diff(offsets))
        support, predicted = (self._segments(np.where(is_complete, y, -1), offsets) for y in (true, guess))
        items = support[np.isin(support, predicted)], predicted, support
        owner = np.searchsorted(offsets, np.arange(offsets[-1]), side="right") - 1
        counts = [np.bincount(owner[keys // self._base], minlength=len(offsets) - 1) for keys in items]
        return np.array(counts, dtype=float).T[:, None]

    def _segments(self, labels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """A number for each segment, determined by its first node, its last node and its type."""
        inside, count = self.inside[labels] & (labels >= 0), len(labels)
        joined = np.zeros(count + 1, dtype=bool)  # whether a node continues the segment before it
        joined[1:count] = self.joined[labels[:-1], labels[1:]] & inside[1:] & inside[:-1]
        joined[offsets] = False
        first = np.flatnonzero(inside & ~joined[:-1])
        last = np.flatnonzero(inside & ~joined[1:])
        self._base = (count + 1) * (len(self.inside) + 1)
        return first * self._base + last * (len(self.inside) + 1) + self.kind[labels[first]]
