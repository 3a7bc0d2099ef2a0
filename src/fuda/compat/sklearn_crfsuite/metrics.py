"""scikit-learn's metrics over the labels of all sequences in one list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn import metrics

from fuda.compat.sklearn_crfsuite.utils import flatten


def _flat(name: str) -> Callable[..., Any]:
    """A metric of scikit-learn, of flat lists."""

    def metric(y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(metrics, name)(flatten(y_true), flatten(y_pred), *args, **kwargs)

    metric.__name__ = metric.__qualname__ = f"flat_{name}"
    metric.__doc__ = f"Compute scikit-learn's `{name}` over the labels of all sequences."
    return metric


flat_accuracy_score = _flat("accuracy_score")
flat_precision_score = _flat("precision_score")
flat_recall_score = _flat("recall_score")
flat_f1_score = _flat("f1_score")
flat_fbeta_score = _flat("fbeta_score")
_report = _flat("classification_report")


def flat_classification_report(y_true: Any, y_pred: Any, labels: Any = None, **kwargs: Any) -> Any:
    """Make scikit-learn's `classification_report` over the labels of all sequences.

    Parameters
    ----------
    y_true, y_pred : list of lists
        Correct and predicted labels.
    labels : list, optional
        The labels to report.
    **kwargs
        Other parameters of scikit-learn's function.

    Returns
    -------
    str or dict
        The report.
    """
    return _report(y_true, y_pred, labels=labels, **kwargs)


def sequence_accuracy_score(y_true: Any, y_pred: Any) -> float:
    """Compute the share of sequences all of whose labels are correct.

    Parameters
    ----------
    y_true, y_pred : list of lists
        Correct and predicted labels.

    Returns
    -------
    float
        The share; 0 where there are no sequences.
    """
    pairs = list(zip(y_true, y_pred, strict=True))
    return sum(list(a) == list(b) for a, b in pairs) / len(pairs) if pairs else 0
