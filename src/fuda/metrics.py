"""How good predicted labels are: by node, by label and by entity.

Of a class (a label, or an entity type) let s be the number of true items (its support), p that of predicted
items and k that of items both true and predicted (correct). Then

    precision = k / p,    recall = k / s,    F1 = 2 · precision · recall / (precision + recall),

where a quotient by zero is 0. Over classes, *micro* takes the quotients of the sums of k, p and s, *macro*
the mean of the classes' figures, *weighted* their mean with the supports as weights.

- Label figures: an item is a node with its label. The outside label, O, is no class: neither a true O nor a
  predicted one is an item. So the papers on hidden Markov SVMs and marginalized kernels measure.
- Entity figures: an item is a segment with its type, as `fuda.schemes.entities` reads it from the labels.
  They equal seqeval's, in its default mode without a scheme and in its strict mode with one.

``y_true`` and ``y_pred`` hold one list of labels a structure. A true label None is not known. Its node is
left out of the token and label figures. Beside such a node one cannot tell where segments begin and end, so
entity figures are those of the structures whose labels are all known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fuda.data.labels import Label, plain_label
from fuda.errors import DataError, place
from fuda.schemes import OUTSIDE, Segment, check_labels, entities, scheme_name

_Lists = list[list[Label]]


@dataclass(frozen=True)
class Score:
    """Precision, recall and F1 of a class or of an average over classes, and the counts behind them."""

    precision: float
    recall: float
    f1: float
    support: int
    predicted: int
    correct: int


@dataclass(frozen=True)
class Scores:
    """The scores of each class, in order of its name, and their averages."""

    micro: Score
    macro: Score
    weighted: Score
    each: dict[Label, Score]


@dataclass(frozen=True)
class Report:
    """All figures of `evaluate`. Its text is laid out as that of the CoNLL evaluation script.

    `tokens` counts the nodes whose label is known, `correct` those of them labelled rightly. `entity_scores`
    is None where labels say no segments; else it is over `entity_structures` of all `structures`. `scheme` is
    the one by which entities were read, None for the lenient reading. `counts` is the confusion matrix over
    `labels`, rows true, columns predicted.
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
        """The report in plain JSON types; labels become strings where they are keys."""
        return {
            "structures": self.structures,
            "tokens": self.tokens,
            "correct": self.correct,
            "accuracy": self.accuracy,
            "outside": self.outside,
            "label_scores": _plain(self.label_scores),
            "entity_scores": None if self.entity_scores is None else _plain(self.entity_scores),
            "entity_structures": self.entity_structures,
            "scheme": self.scheme,
            "confusion": {"labels": self.labels, "counts": self.counts.tolist()},
        }

    def text(self) -> str:
        """Counts and percentages of all entity types, or of all labels where they say no segments."""
        scores = self.label_scores if self.entity_scores is None else self.entity_scores
        items = "labels" if self.entity_scores is None else "phrases"
        total = scores.micro
        width = max([17, *(len(str(name)) for name in scores.each)])
        lines = [
            f"processed {self.tokens} tokens with {total.support} {items}; "
            f"found: {total.predicted} {items}; correct: {total.correct}.",
            f"accuracy: {100 * self.accuracy:6.2f}%; {_percentages(total)}",
            *(
                f"{name!s:>{width}}: {_percentages(score)}  {score.predicted}"
                for name, score in scores.each.items()
            ),
        ]
        if self.entity_scores is not None and self.entity_structures < self.structures:
            lines.append(
                f"phrases are those of {self.entity_structures} of {self.structures} structures; "
                "the others have nodes whose label is not known"
            )
        return "\n".join(lines)

    __str__ = text


def token_accuracy(y_true: Any, y_pred: Any) -> float:
    """The share of nodes that are labelled rightly.

    >>> token_accuracy([["O", "B-PER"], ["O", None]], [["O", "O"], ["O", "O"]])
    0.6666666666666666
    """
    _, counts = confusion(y_true, y_pred)
    return _ratio(np.trace(counts), counts.sum())


def confusion(y_true: Any, y_pred: Any) -> tuple[list[Label], np.ndarray]:
    """The labels in order, and how many nodes have each true label (row) and predicted label (column).

    >>> labels, counts = confusion([["N", "V", "N"]], [["N", "N", "N"]])
    >>> labels, counts.tolist()
    (['N', 'V'], [[2, 0], [1, 0]])
    """
    return _confusion(*_aligned(y_true, y_pred))


def label_scores(y_true: Any, y_pred: Any, outside: Label = OUTSIDE) -> Scores:
    """Precision, recall and F1 over nodes and the labels other than `outside`.

    >>> scores = label_scores([["O", "B-PER", "I-PER"]], [["B-PER", "B-PER", "O"]])
    >>> scores.micro.precision, scores.micro.recall
    (0.5, 0.5)
    """
    return _label_scores(*confusion(y_true, y_pred), outside)


def entity_scores(y_true: Any, y_pred: Any, scheme: str | None = None) -> Scores:
    """Precision, recall and F1 over entities, equal to seqeval's: its default mode, or strict with a scheme.

    >>> scores = entity_scores([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "O", "O", "B-LOC"]])
    >>> scores.micro.f1, scores.each["LOC"].f1
    (0.5, 1.0)
    """
    return _entity_scores(*_aligned(y_true, y_pred), scheme)


def evaluate(y_true: Any, y_pred: Any, scheme: str | None = None, outside: Label = OUTSIDE) -> Report:
    """All figures in one `Report`.

    Entities are measured where some label looks like one of a segment, such as ``B-PER``, and always with a
    `scheme`. Without one the reading is lenient, except for BILOU labels: the lenient reading does not know L
    and U, so they are read by their scheme.

    >>> print(evaluate([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "O", "O"]]))
    processed 4 tokens with 2 phrases; found: 1 phrases; correct: 1.
    accuracy:  75.00%; precision: 100.00%; recall:  50.00%; FB1:  66.67
                  LOC: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
                  PER: precision: 100.00%; recall: 100.00%; FB1: 100.00  1
    """
    truth, guess = _aligned(y_true, y_pred)
    labels, counts = _confusion(truth, guess)
    scheme = _fitting_scheme(labels) if scheme is None else scheme_name(scheme)
    segments = scheme is not None or any(map(_looks_like_segment, labels))
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
    """Token accuracy of the estimator's predictions."""
    return token_accuracy(y, estimator.predict(X))


def label_f1_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Micro F1 over the labels other than O of the estimator's predictions."""
    return label_scores(y, estimator.predict(X)).micro.f1


def entity_f1_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Micro F1 over entities of the estimator's predictions, read as `evaluate` reads them."""
    report = evaluate(y, estimator.predict(X))
    if report.entity_scores is not None:
        return report.entity_scores.micro.f1
    for label in report.labels:
        if label != OUTSIDE:
            raise DataError(
                f"the labels, {label!r} for one, say no segments such as 'B-PER', so there are no entities; "
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
                f"{place(i)} has {len(a)} labels in y_true but {len(b)} in y_pred; give one a node in both"
            )
        if None in b:
            raise DataError(
                f"{place(i, b.index(None))}: its label in y_pred is None; a prediction is a label"
            )
    kinds = {type(label).__name__ for labels in truth + guess for label in labels if label is not None}
    if len(kinds) > 1:
        raise DataError(
            "labels are strings or integers, all of one kind, but the true and predicted ones hold both"
        )
    return truth, guess


def _label_lists(y: Any, name: str) -> _Lists:
    if isinstance(y, str | bytes | dict) or not isinstance(y, Iterable):
        raise DataError(f"{name} is one list of labels a structure, but {y!r} ({type(y).__name__}) was given")
    lists: _Lists = []
    for i, labels in enumerate(y):
        if isinstance(labels, str | bytes | dict) or not isinstance(labels, Iterable):
            raise DataError(
                f"{place(i)}: its labels in {name} are {labels!r}; give a list of labels, one a node"
            )
        lists.append([])
        for node, label in enumerate(labels):
            try:
                lists[-1].append(plain_label(label))
            except DataError as error:
                raise DataError(f"{place(i, node)} of {name}: {error}") from None
    return lists


def _confusion(truth: _Lists, guess: _Lists) -> tuple[list[Label], np.ndarray]:
    pairs = Counter(
        pair
        for a, b in zip(truth, guess, strict=True)
        for pair in zip(a, b, strict=True)
        if pair[0] is not None
    )
    labels = sorted({label for pair in pairs for label in pair})
    number = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for (a, b), count in pairs.items():
        counts[number[a], number[b]] = count
    return labels, counts


def _label_scores(labels: list[Label], counts: np.ndarray, outside: Label) -> Scores:
    diagonal, rows, columns = (
        part.tolist() for part in (np.diag(counts), counts.sum(axis=1), counts.sum(axis=0))
    )
    by_label = zip(labels, diagonal, columns, rows, strict=True)
    return _scores({label: _score(*figures) for label, *figures in by_label if label != outside})


def _all_known(truth: _Lists) -> list[bool]:
    return [None not in labels for labels in truth]


def _entity_scores(truth: _Lists, guess: _Lists, scheme: str | None) -> Scores:
    known = _all_known(truth)
    true, found = _all_entities(truth, known, scheme), _all_entities(guess, known, scheme)
    support, predicted, correct = (
        Counter(kind for kind, _, _ in items) for items in (true, found, true & found)
    )
    return _scores(
        {kind: _score(correct[kind], predicted[kind], support[kind]) for kind in support | predicted}
    )


def _all_entities(lists: _Lists, known: list[bool], scheme: str | None) -> set[Segment]:
    """The entities of the structures that are all known, joined with an O after each, as seqeval does."""
    joined: list[str] = []
    for i, labels in enumerate(lists):
        if known[i]:
            check_labels(labels, scheme, structure=i)
            joined += [*labels, OUTSIDE]
    return set(entities(joined, scheme))


def _looks_like_segment(label: Label) -> bool:
    return isinstance(label, str) and len(label) > 2 and label[0] in "BIESLU" and label[1] == "-"


def _fitting_scheme(labels: list[Label]) -> str | None:
    """BILOU where all labels are its own: the one scheme that the lenient reading does not know."""
    inner = [label for label in labels if label != OUTSIDE]
    prefixes = {label[0] for label in inner} if all(map(_looks_like_segment, inner)) else set()
    return "BILOU" if prefixes <= set("BILU") and prefixes & set("LU") else None


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def _score(correct: int, predicted: int, support: int) -> Score:
    precision, recall = _ratio(correct, predicted), _ratio(correct, support)
    return Score(
        precision, recall, _ratio(2 * precision * recall, precision + recall), support, predicted, correct
    )


def _scores(each: dict[Label, Score]) -> Scores:
    each = dict(sorted(each.items()))
    classes = each.values()
    micro = _score(
        sum(score.correct for score in classes),
        sum(score.predicted for score in classes),
        sum(score.support for score in classes),
    )

    def average(weights: list[int]) -> Score:
        """The mean of each figure, 0 without any weight, and the counts of micro."""
        precision, recall, f1 = (
            float(np.average([getattr(score, figure) for score in classes], weights=weights))
            if any(weights)
            else 0.0
            for figure in ("precision", "recall", "f1")
        )
        return replace(micro, precision=precision, recall=recall, f1=f1)

    return Scores(micro, average([1] * len(each)), average([score.support for score in classes]), each)


def _plain(scores: Scores) -> dict[str, Any]:
    averages = {name: asdict(getattr(scores, name)) for name in ("micro", "macro", "weighted")}
    return {**averages, "each": {str(name): asdict(score) for name, score in scores.each.items()}}


def _percentages(score: Score) -> str:
    precision, recall, f1 = (100 * figure for figure in (score.precision, score.recall, score.f1))
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"
