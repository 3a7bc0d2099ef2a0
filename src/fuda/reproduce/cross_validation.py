"""Cross-validation over stretches of structures that follow one another, as the papers' tables show it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuda.formats.dataset import Dataset
from fuda.interrupts import inner_training
from fuda.metrics import evaluate


@dataclass(frozen=True)
class Figure:
    """A percentage by folds: mean and standard deviation."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.deviation:.2f}"


@dataclass(frozen=True)
class Row:
    """What cross-validation says of a method: token accuracy; precision, recall and F1 of the labels other
    than O; F1 of whole entities, None where labels say none. `seconds` is the time of all folds."""

    method: str
    accuracy: Figure
    precision: Figure
    recall: Figure
    label_f1: Figure
    entity_f1: Figure | None
    seconds: float


def folds(data: Dataset, count: int) -> Iterator[tuple[Dataset, Dataset]]:
    """Training and test data, the latter one stretch of structures after another."""
    for part in np.array_split(np.arange(len(data)), count):
        first, last = int(part[0]), int(part[-1]) + 1
        rest = [*data.records[:first], *data.records[last:]]
        yield Dataset(rest), Dataset(data.records[first:last])


def cross_validated(method: str, model: Any, data: Dataset, count: int, say: Callable[[str], None]) -> Row:
    """The figures of a model. Each of `count` folds fits a copy of it, so that nothing, a prior within it
    neither, has seen what it is tested on."""
    from sklearn.base import clone

    began = time.perf_counter()
    reports = []
    for k, (train, test) in enumerate(folds(data, count)):
        with inner_training():
            fitted = clone(model).fit(train.X, train.y)
        reports.append(evaluate(test.y or [], fitted.predict(test.X)))
        say(f"{method}, fold {k + 1} of {count}: label F1 {100 * reports[-1].label_scores.micro.f1:.2f}")
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
    return Figure(100 * float(np.mean(values)), 100 * float(np.std(values)))
