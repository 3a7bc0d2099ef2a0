"""Cross-validation: models fitted on some structures and tested on others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fuda.metrics import Report, evaluate
from fuda.runtime.estimators import clone
from fuda.runtime.interrupts import inner_training
from fuda.selection.folds import Split
from fuda.selection.goals import Figure, figure


class Times(NamedTuple):
    """Seconds by the clock, and of all processors.

    Parameters
    ----------
    wall, cpu : float
        The seconds by the clock and of processors.

    Examples
    --------
    >>> elapsed = Stopwatch()()
    >>> elapsed.wall >= 0, elapsed.cpu >= 0
    (True, True)
    """

    wall: float
    cpu: float


class Stopwatch:
    """Measures seconds since it was created.

    Parameters
    ----------
    cpu : callable, default=time.process_time
        Returns the seconds of processors: of the process, or by `time.thread_time` of this thread.
    """

    def __init__(self, cpu: Callable[[], float] = time.process_time) -> None:
        self._cpu, self._began = cpu, (time.perf_counter(), cpu())

    def __call__(self) -> Times:
        """Return the seconds until now."""
        return Times(time.perf_counter() - self._began[0], self._cpu() - self._began[1])


def taken(values: Any, members: np.ndarray) -> Any:
    """Some of the values of structures, such as labels or weights; None stays None.

    >>> taken(["a", "b", "c"], np.array([0, 2]))
    ['a', 'c']
    """
    return None if values is None else [values[i] for i in members]


@dataclass
class Validation:
    """The results of the folds of a cross-validation so far.

    Parameters
    ----------
    tests : list of ndarray
        The numbers of the structures that each fold was tested on.
    predictions : list of list
        The predicted labels of these structures, by fold.
    reports : list of Report
        Their scores.
    fits, predicts : list of Times
        The times of fitting and of predicting.
    train_sizes : list of int
        The numbers of structures fitted on.
    sizes : list of int
        The bytes of the models, where they were measured.

    Examples
    --------
    >>> from fuda import HMM
    >>> from fuda.selection import splits
    >>> X, y = [["a", "b"], ["b"], ["b", "a"]] * 4, [["A", "B"], ["B"], ["B", "A"]] * 4
    >>> found = cross_validate(HMM(), X, y, splits(12, folds=3))
    >>> found.train_sizes, len(found.predictions), found.accuracy.mean
    ([8, 8, 8], 3, 100.0)
    """

    tests: list[np.ndarray] = field(default_factory=list)
    predictions: list[list[Any]] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    fits: list[Times] = field(default_factory=list)
    predicts: list[Times] = field(default_factory=list)
    train_sizes: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def figure(self, of: Callable[[Report], float]) -> Figure:
        """Mean and spread over folds of something in their reports, in per cent.

        Parameters
        ----------
        of : callable
            From a Report to a share.

        Returns
        -------
        Figure
            The figure.
        """
        return figure([of(report) for report in self.reports])

    @property
    def accuracy(self) -> Figure:
        """Token accuracy."""
        return self.figure(lambda report: report.accuracy)

    @property
    def label_f1(self) -> Figure:
        """Micro F1 over the labels other than O."""
        return self.figure(lambda report: report.label_scores.micro.f1)

    @property
    def entity_f1(self) -> Figure | None:
        """Micro F1 over entities, in the folds whose labels encode some; None if none do."""
        all_scores = [report.entity_scores for report in self.reports]
        entity = [scores.micro.f1 for scores in all_scores if scores is not None]
        return figure(entity) if entity else None

    def out_of_fold(self) -> dict[int, Any]:
        """Return the predicted labels of every structure that was tested on.

        Returns
        -------
        dict of int to list
            By the number of the structure.
        """
        tests = np.concatenate(self.tests).tolist()
        predicted = [labels for fold in self.predictions for labels in fold]
        return dict(zip(tests, predicted, strict=True))


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    splits: Iterable[Split],
    after_fold: Callable[[Validation, Any], object] | None = None,
) -> Validation:
    """Cross-validate a model.

    Each fold fits a copy of the model, so that neither it nor a prior within it has seen the test
    data. An interrupt ends the work as a whole.

    Parameters
    ----------
    estimator : estimator
        The model, which is not changed.
    X, y : list
        Structures and their labels.
    splits : iterable of Split
        What to fit and test on, as by `fuda.selection.splits`.
    after_fold : callable, optional
        Called after each fold with the results so far and the fitted model.

    Returns
    -------
    Validation
        The results.

    Examples
    --------
    >>> from fuda import HMM
    >>> from fuda.selection import splits
    >>> X, y = [["a", "b"], ["b"], ["b", "a"]] * 4, [["A", "B"], ["B"], ["B", "A"]] * 4
    >>> cross_validate(HMM(), X, y, splits(12, folds=3)).accuracy.mean
    100.0
    """
    result = Validation()
    for train, test in splits:
        stopwatch = Stopwatch()
        with inner_training():
            fitted = clone(estimator).fit(taken(X, train), taken(y, train))
        result.fits.append(stopwatch())
        stopwatch = Stopwatch()
        predicted = list(fitted.predict(taken(X, test)))
        result.predicts.append(stopwatch())
        result.tests.append(test)
        result.predictions.append(predicted)
        result.train_sizes.append(len(train))
        result.reports.append(evaluate(taken(y, test), predicted))
        if after_fold is not None:
            after_fold(result, fitted)
    return result
