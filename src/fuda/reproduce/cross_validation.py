"""Cross-validation over folds of consecutive structures, as in the tables of the papers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fuda.formats.dataset import Dataset
from fuda.selection import Validation, cross_validate, splits
from fuda.selection.goals import Figure


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
        Of processors, for all folds.
    """

    method: str
    accuracy: Figure
    precision: Figure
    recall: Figure
    label_f1: Figure
    entity_f1: Figure | None
    seconds: float


def cross_validated(
    method: str, model: Any, data: Dataset, count: int, progress: Callable[[str], None]
) -> Row:
    """Cross-validate a model over folds of consecutive structures.

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

    def after_fold(result: Validation, _: Any) -> None:
        score, k = result.reports[-1].label_scores.micro.f1, len(result.reports)
        progress(f"{method}, fold {k} of {count}: label F1 {100 * score:.2f}")

    result = cross_validate(model, data.X, data.y, splits(len(data), count, seed=None), after_fold)
    return Row(
        method,
        result.accuracy,
        result.figure(lambda report: report.label_scores.micro.precision),
        result.figure(lambda report: report.label_scores.micro.recall),
        result.label_f1,
        result.entity_f1,
        sum(times.cpu for times in [*result.fits, *result.predicts]),
    )
