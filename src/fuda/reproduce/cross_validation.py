"""Cross-validation over folds of consecutive structures, as in the tables of the papers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fuda.formats.dataset import Dataset
from fuda.interrupts import inner_training
from fuda.metrics import evaluate


class Figure(NamedTuple):
    """A percentage over folds: mean and standard deviation."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.deviation:.2f}"


class Row(NamedTuple):
    """The result of cross-validating a method.

    Attributes
    ----------
    method : str
        The name of the method.
    accuracy : Figure
        Token accuracy.
    precision, recall, label_f1 : Figure
        Over the labels other than O.
    entity_f1 : Figure or None
        F1 of whole entities; None if the labels do not encode entities.
    seconds : float
        The time of all folds.
    """

    method: str
    accuracy: Figure
    precision: Figure
    recall: Figure
    label_f1: Figure
    entity_f1: Figure | None
    seconds: float


def folds(data: Dataset, count: int) -> Iterator[tuple[Dataset, Dataset]]:
    """Split a dataset into folds of consecutive structures.

    Parameters
    ----------
    data : Dataset
        At least `count` structures.
    count : int
        The number of folds.

    Yields
    ------
    train, test : Dataset
        The fold to test on, and all others to train on.
    """
    for part in np.array_split(np.arange(len(data)), count):
        first, last = int(part[0]), int(part[-1]) + 1
        rest = [*data.records[:first], *data.records[last:]]
        yield Dataset(rest), Dataset(data.records[first:last])


def cross_validated(
    method: str, model: Any, data: Dataset, count: int, progress: Callable[[str], None]
) -> Row:
    """Cross-validate a model.

    Each fold fits a copy of the model, so that neither it nor a prior within it has seen the test
    data.

    Parameters
    ----------
    method : str
        The name of the method.
    model : Labeler
        The model, which is not changed.
    data : Dataset
        Labelled structures.
    count : int
        The number of folds.
    progress : callable
        Called with a line of text after each fold.

    Returns
    -------
    Row
        The scores.
    """
    from sklearn.base import clone

    began = time.perf_counter()
    reports = []
    for k, (train, test) in enumerate(folds(data, count)):
        with inner_training():
            fitted = clone(model).fit(train.X, train.y)
        reports.append(evaluate(test.y or [], fitted.predict(test.X)))
        score = reports[-1].label_scores.micro.f1
        progress(f"{method}, fold {k + 1} of {count}: label F1 {100 * score:.2f}")
    labels = [report.label_scores.micro for report in reports]
    entities = [report.entity_scores.micro.f1 for report in reports if report.entity_scores is not None]
    return Row(
        method,
        _figure([report.accuracy for report in reports]),
        _figure([score.precision for score in labels]),
        _figure([score.recall for score in labels]),
        _figure([score.f1 for score in labels]),
        _figure(entities) if len(entities) == count else None,
        time.perf_counter() - began,
    )


def _figure(values: list[float]) -> Figure:
    """Mean and standard deviation, in per cent."""
    return Figure(100 * float(np.mean(values)), 100 * float(np.std(values)))
