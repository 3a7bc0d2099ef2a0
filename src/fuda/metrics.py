"""Evaluation of predicted labels: by node, by label and by entity.

For a class (a label or an entity type) let s be the number of true items (its support), p that of
predicted items and k that of items both true and predicted (correct). Then

    precision = k / p,    recall = k / s,    F1 = 2 · precision · recall / (precision + recall),

where a quotient by zero is 0. Over classes, *micro* is the quotients of the sums of k, p and s,
*macro* the mean over classes, *weighted* the mean with the supports as weights.

- Label scores: an item is a node with its label. The outside label, O, is not a class: neither a
  true O nor a predicted one is an item, as in the papers on hidden Markov SVMs and marginalized
  kernels.
- Entity scores: an item is a segment with its type, see `fuda.schemes.entities`. They equal
  seqeval's, in its default mode without a scheme and in its strict mode with one.

``y_true`` and ``y_pred`` are lists of labels per structure. A true label None is unknown. Its node
is left out of the token and label scores. Next to such a node segments have no known bounds, so
entity scores are those of the structures whose labels are all known.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import numpy as np

from fuda.checks import listed
from fuda.data.labels import Label, encode_segments, plain_label, reading_of
from fuda.errors import DataError, described, place
from fuda.reports import Report, Score, Scores
from fuda.schemes import OUTSIDE, Segment, check_labels, entities, scheme_name

_Lists = list[list[Label]]


__all__ = [
    "Report",
    "Score",
    "Scores",
    "confusion",
    "entity_f1_scorer",
    "entity_scores",
    "evaluate",
    "label_f1_scorer",
    "label_scores",
    "token_accuracy",
    "token_accuracy_scorer",
]


def token_accuracy(y_true: Any, y_pred: Any) -> float:
    """Return the fraction of nodes with the correct label.

    Parameters
    ----------
    y_true, y_pred : iterable of iterables
        The true and predicted labels of each structure; true labels may be None.

    Returns
    -------
    float
        Over the nodes whose true label is known.

    Examples
    --------
    >>> token_accuracy([["O", "B-PER"], ["O", None]], [["O", "O"], ["O", "O"]])
    0.6666666666666666
    """
    _, counts = confusion(y_true, y_pred)
    return _ratio(np.trace(counts), counts.sum())


def confusion(y_true: Any, y_pred: Any) -> tuple[list[Label], np.ndarray]:
    """Return the confusion matrix over nodes.

    Parameters
    ----------
    y_true, y_pred : iterable of iterables
        The true and predicted labels of each structure; true labels may be None.

    Returns
    -------
    labels : list
        All labels, sorted.
    counts : (L, L) array of int
        The number of nodes with each true label (row) and predicted label (column).

    Examples
    --------
    >>> labels, counts = confusion([["N", "V", "N"]], [["N", "N", "N"]])
    >>> labels, counts.tolist()
    (['N', 'V'], [[2, 0], [1, 0]])
    """
    return _confusion(*_aligned(y_true, y_pred))


def label_scores(y_true: Any, y_pred: Any, outside: Label = OUTSIDE) -> Scores:
    """Return precision, recall and F1 over nodes and the labels other than `outside`.

    Parameters
    ----------
    y_true, y_pred : iterable of iterables
        The true and predicted labels of each structure; true labels may be None.
    outside : label, optional
        The label that is not a class.

    Returns
    -------
    Scores
        By label.

    Examples
    --------
    >>> scores = label_scores([["O", "B-PER", "I-PER"]], [["B-PER", "B-PER", "O"]])
    >>> scores.micro.precision, scores.micro.recall
    (0.5, 0.5)
    """
    return _label_scores(*confusion(y_true, y_pred), outside)


def entity_scores(y_true: Any, y_pred: Any, scheme: str | None = None) -> Scores:
    """Return precision, recall and F1 over entities, equal to seqeval's.

    Parameters
    ----------
    y_true, y_pred : iterable of iterables
        The true and predicted labels of each structure; true labels may be None.
    scheme : str, optional
        Default: seqeval's default mode; with a scheme, its strict mode.

    Returns
    -------
    Scores
        By entity type.

    Examples
    --------
    >>> scores = entity_scores([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "O", "O", "B-LOC"]])
    >>> scores.micro.f1, scores.each["LOC"].f1
    (0.5, 1.0)
    """
    return _entity_scores(*_aligned(y_true, y_pred), scheme)


def evaluate(y_true: Any, y_pred: Any, scheme: str | None = None, outside: Label = OUTSIDE) -> Report:
    """Return all scores in one `Report`.

    Entity scores are computed if the labels encode segments, like ``B-PER`` or bare ``B``, ``I``
    and ``O``, and always with a `scheme`. Without one the labels decide how they are read: by the
    lenient interpretation, which is right for well-formed labels of IOB1, IOB2, IOE1, IOE2 and
    IOBES alike, or, since it does not know L and U, by the scheme BILOU where labels have these.

    Parameters
    ----------
    y_true, y_pred : iterable of iterables
        The true and predicted labels of each structure; true labels may be None.
    scheme : str, optional
        The scheme of the labels, for the strict interpretation.
    outside : label, optional
        The label that is not a class.

    Returns
    -------
    Report
        Its `str` is a table.

    Examples
    --------
    >>> print(evaluate([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "O", "O"]]))
    processed 4 tokens with 2 phrases; found: 1 phrases; correct: 1.
    accuracy:  75.00%; precision: 100.00%; recall:  50.00%; FB1:  66.67
                  LOC: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
                  PER: precision: 100.00%; recall: 100.00%; FB1: 100.00  1
    """
    truth, guess = _aligned(y_true, y_pred)
    labels, counts = _confusion(truth, guess)
    scheme = reading_of(labels) if scheme is None else scheme_name(scheme)
    segments = scheme is not None or encode_segments(labels)
    return Report(
        structures=len(truth),
        tokens=int(counts.sum()),
        correct=int(np.trace(counts)),
        accuracy=_ratio(np.trace(counts), counts.sum()),
        label_scores=_label_scores(labels, counts, outside),
        entity_scores=_entity_scores(truth, guess, scheme) if segments else None,
        entity_structures=sum(_all_known(truth)) if segments else 0,
        scheme=scheme,
        outside=outside,
        labels=labels,
        counts=counts,
    )


# Scorers for scikit-learn: pass one as ``scoring``.


def token_accuracy_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return the token accuracy of the predictions of an estimator.

    Parameters
    ----------
    estimator : estimator
        A fitted model.
    X, y : list
        Structures and their true labels.

    Returns
    -------
    float
        The score.

    Examples
    --------
    >>> from fuda import HMM
    >>> X, y = [["Ana", "sings"], ["Ana", "runs"]], [["B-PER", "O"], ["B-PER", "O"]]
    >>> token_accuracy_scorer(HMM().fit(X, y), X, [["B-PER", "O"], ["O", "O"]])
    0.75
    """
    return token_accuracy(y, estimator.predict(X))


def label_f1_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return the micro F1 over labels other than O of the predictions of an estimator.

    Parameters
    ----------
    estimator : estimator
        A fitted model.
    X, y : list
        Structures and their true labels.

    Returns
    -------
    float
        The score.

    Examples
    --------
    >>> from fuda import HMM
    >>> X, y = [["Ana", "sings"], ["Ana", "runs"]], [["B-PER", "O"], ["B-PER", "O"]]
    >>> label_f1_scorer(HMM().fit(X, y), X, [["B-PER", "O"], ["B-ORG", "O"]])
    0.5
    """
    return label_scores(y, estimator.predict(X)).micro.f1


def entity_f1_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return the micro F1 over entities, as in `evaluate`, of the predictions of an estimator.

    Parameters
    ----------
    estimator : estimator
        A fitted model.
    X, y : list
        Structures and their true labels.

    Returns
    -------
    float
        The score.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from fuda import CRF
    >>> X, y = [["Ana", "sings"]] * 6, [["B-PER", "O"]] * 6
    >>> cross_val_score(CRF(), X, y, cv=3, scoring=entity_f1_scorer).tolist()
    [1.0, 1.0, 1.0]
    """
    report = evaluate(y, estimator.predict(X))
    if report.entity_scores is not None:
        return report.entity_scores.micro.f1
    for label in report.labels:
        if label != OUTSIDE:
            raise DataError(
                f"the labels, such as {label!r}, encode no segments, so there are no entities; "
                "score with label_f1_scorer or token_accuracy_scorer"
            )
    return 0.0


def _aligned(y_true: Any, y_pred: Any) -> tuple[_Lists, _Lists]:
    """Both as lists of lists of plain labels, after a check that they fit each other."""
    truth, guess = _label_lists(y_true, "y_true"), _label_lists(y_pred, "y_pred")
    if len(truth) != len(guess):
        raise DataError(
            f"y_true has labels for {len(truth)} structures but y_pred for {len(guess)}; "
            "give the predictions of the same structures"
        )
    for i, (a, b) in enumerate(zip(truth, guess, strict=True)):
        if len(a) != len(b):
            raise DataError(
                f"{place(i)} has {len(a)} labels in y_true but {len(b)} in y_pred; give one per node in both"
            )
        if None in b:
            raise DataError(f"{place(i, b.index(None))}: its label in y_pred is None; give a label")
    kinds = {type(label).__name__ for labels in truth + guess for label in labels if label is not None}
    if len(kinds) > 1:
        raise DataError("the true and predicted labels are strings and integers; give labels of one type")
    return truth, guess


def _label_lists(y: Any, name: str) -> _Lists:
    """Labels as lists of plain labels, checked."""
    structures = listed(y)
    if structures is None:
        raise DataError(f"{name} is {described(y)}; give one list of labels per structure")
    lists: _Lists = []
    for i, labels_given in enumerate(structures):
        labels = listed(labels_given)
        if labels is None:
            raise DataError(
                f"{place(i)}: its labels in {name} are {described(labels_given)}; give a list, one per node"
            )
        lists.append([])
        for node, label in enumerate(labels):
            try:
                lists[-1].append(plain_label(label))
            except DataError as error:
                raise DataError(f"{place(i, node)} of {name}: {error}") from None
    return lists


def _confusion(truth: _Lists, guess: _Lists) -> tuple[list[Label], np.ndarray]:
    """The labels and the confusion matrix."""
    flat = zip(chain.from_iterable(truth), chain.from_iterable(guess), strict=True)
    pairs = Counter(pair for pair in flat if pair[0] is not None)
    labels = sorted({label for pair in pairs for label in pair})
    number = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for (a, b), count in pairs.items():
        counts[number[a], number[b]] = count
    return labels, counts


def _label_scores(labels: list[Label], counts: np.ndarray, outside: Label) -> Scores:
    """The scores of the labels from a confusion matrix."""
    figures = np.column_stack([np.diag(counts), counts.sum(axis=0), counts.sum(axis=1)]).tolist()
    by_label = zip(labels, figures, strict=True)
    return _scores({label: _score(*row) for label, row in by_label if label != outside})


def _all_known(truth: _Lists) -> list[bool]:
    """Whether all labels of each structure are known."""
    return [None not in labels for labels in truth]


def _entity_scores(truth: _Lists, guess: _Lists, scheme: str | None) -> Scores:
    """The scores of the entity types."""
    true, predicted = (_all_entities(lists, _all_known(truth), scheme) for lists in (truth, guess))
    counts = [Counter(kind for kind, _, _ in items) for items in (true & predicted, predicted, true)]
    return _scores({kind: _score(*(count[kind] for count in counts)) for kind in counts[1] | counts[2]})


def _all_entities(lists: _Lists, known: list[bool], scheme: str | None) -> set[Segment]:
    """The entities of all known structures, joined with an O after each, as in seqeval."""
    joined: list[str] = []
    for i, labels in enumerate(lists):
        if known[i]:
            check_labels(labels, scheme, structure=i)
            joined += [*labels, OUTSIDE]
    return set(entities(joined, scheme))


def _ratio(part: float, total: float) -> float:
    """A quotient; 0 by zero."""
    return float(part / total) if total else 0.0


def _score(correct: int, predicted: int, support: int) -> Score:
    """The score from counts."""
    precision, recall = _ratio(correct, predicted), _ratio(correct, support)
    f1 = _ratio(2 * precision * recall, precision + recall)
    return Score(precision, recall, f1, support, predicted, correct)


def _scores(by_class: dict[Label, Score]) -> Scores:
    """The scores of classes, sorted, and their averages."""
    by_class = dict(sorted(by_class.items()))
    classes = by_class.values()
    micro = _score(
        *(sum(getattr(score, n) for score in classes) for n in ("correct", "predicted", "support"))
    )

    def average(weights: list[int]) -> Score:
        """The mean of each figure, 0 if all weights are 0, and the counts of micro."""
        figures = ([getattr(score, name) for score in classes] for name in ("precision", "recall", "f1"))
        means = [float(np.average(values, weights=weights)) if any(weights) else 0.0 for values in figures]
        return Score(means[0], means[1], means[2], micro.support, micro.predicted, micro.correct)

    return Scores(
        micro, average([1] * len(by_class)), average([score.support for score in classes]), by_class
    )
