"""Plots of what predictions are worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fuda.errors import DataError, described
from fuda.metrics import Report
from fuda.plots.style import COLORS, INK, band, color_bar, heat_map, legend, styled

_LEAST_NODES = 5  # groups with fewer nodes are not drawn


@styled
def learning_curves(
    curves: Mapping[str, Mapping[int, Iterable[float] | float]], *, ylabel: str = "F1", ax: Any = None
) -> Any:
    """Draw scores over the number of training structures, a curve per learner.

    Parameters
    ----------
    curves : mapping of str to mapping of int to number or list of numbers
        For each learner the scores at each size; of several folds or repetitions the mean is
        drawn, and the band of a standard deviation around it.
    ylabel : str, default="F1"
        What the scores are.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        The plot.

    Examples
    --------
    >>> ax = learning_curves({"CRF": {100: [0.52, 0.55], 300: [0.61, 0.63]}})
    >>> ax.get_xlabel()
    'training structures'
    """
    _nonempty(curves, "curves", 'give {"name": {size: scores}}')
    for number, (name, scores) in enumerate(curves.items()):
        band(ax, scores, COLORS[number % len(COLORS)], name)
    sizes = sorted({size for scores in curves.values() for size in scores})
    if sizes[-1] >= 8 * sizes[0]:
        ax.set_xscale("log")
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
        ax.minorticks_off()
    ax.set(xlabel="training structures", ylabel=ylabel)
    legend(ax)
    return ax


@styled
def confusion(report: Report, *, outside: bool = True, ax: Any = None) -> Any:
    """Draw which labels are predicted for which true labels.

    Parameters
    ----------
    report : Report
        Of `fuda.metrics.evaluate`.
    outside : bool, default=True
        Whether to draw the row and column of the outside label, O.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        The plot: rows are true labels, columns predicted ones; colours are shares of a row, and
        cells have the counts.

    Examples
    --------
    >>> from fuda.metrics import evaluate
    >>> ax = confusion(evaluate([["PER", "O", "LOC"]], [["PER", "O", "O"]]))
    >>> ax.get_ylabel()
    'true label'
    """
    if not isinstance(report, Report):
        raise DataError(
            f"report is {described(report)}; give the Report of fuda.metrics.evaluate(y, predicted)"
        )
    shown = [i for i, label in enumerate(report.labels) if outside or label != report.outside]
    totals = np.maximum(report.counts.sum(axis=1, keepdims=True), 1)
    cells = np.ix_(shown, shown)
    shares, counts = (100 * report.counts / totals)[cells], report.counts[cells]
    names = [report.labels[i] for i in shown]
    texts = np.where(counts > 0, counts.astype(str), "")
    color_bar(ax, heat_map(ax, shares, names, names, "cividis", texts), "% of the true label")
    ax.set(xlabel="predicted label", ylabel="true label")
    return ax


@styled
def calibration(
    model: Any, X: Any, y: Any, *, bins: int = 10, name: str | None = None, ax: Any = None
) -> Any:
    """Draw how often labels are right over how probable the model calls them.

    The most probable label of each node counts, also if the model decodes by Viterbi. A model is
    calibrated where of the labels to which it gives 80 % four in five are right: on the diagonal.

    Parameters
    ----------
    model : estimator
        A fitted model with `predict_marginals`.
    X, y : list
        Structures that the model was not fitted on, and their labels; nodes of label None are left
        out.
    bins : int, default=10
        How many groups of nodes there are, of equal width in probability; groups of fewer than
        five nodes are left out.
    name : str, optional
        The name in the legend; default: that of the class.
    ax : Axes, optional
        Where to draw, such as the Axes of another model; default: a new figure.

    Returns
    -------
    Axes
        The plot. Its legend has the expected calibration error: the mean over nodes of the
        distance from the diagonal.

    Examples
    --------
    >>> from fuda import CRF
    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> ax = calibration(CRF().fit(X, y), X * 5, y * 5)
    >>> ax.get_ylabel()
    'share that is right'
    """
    if not hasattr(model, "predict_marginals"):
        raise DataError(f"a {type(model).__name__} has no marginals to calibrate; give a model that has")
    probable, right = _confidences(model, X, y)
    group = np.minimum((probable * bins).astype(int), bins - 1)
    counts = np.bincount(group, minlength=bins)
    sums, rights = np.bincount(group, probable, bins), np.bincount(group, right, bins)
    error = float(np.abs(sums - rights).sum() / counts.sum())
    full = counts >= _LEAST_NODES
    mean, share = sums[full] / counts[full], rights[full] / counts[full]
    if not ax.lines:
        ax.plot([0, 1], [0, 1], "--", color=INK, linewidth=1)
    color = COLORS[(len(ax.lines) - 1) % len(COLORS)]
    ax.plot(mean, share, "-", color=color, label=f"{name or type(model).__name__}, error {100 * error:.1f} %")
    ax.scatter(mean, share, s=12 + 120 * counts[full] / counts.max(), color=color, alpha=0.8, linewidth=0)
    ax.set(xlabel="probability of the label", ylabel="share that is right", aspect="equal")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    legend(ax, "lower right")
    return ax


def _confidences(model: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The largest probability at each node of known label, and whether that label is right."""
    marginals = np.concatenate([np.asarray(table) for table in model.predict_marginals(X)])
    labels = [label for label_list in y for label in label_list]
    known = np.array([label is not None for label in labels])
    if not known.any():
        raise DataError("no node of X has a label in y; give some labels")
    best = np.asarray(model.classes_, dtype=object)[marginals.argmax(axis=1)]
    right = np.array([a == b for a, b in zip(best, labels, strict=True)], dtype=float)
    return marginals.max(axis=1)[known], right[known]


def _nonempty(values: Any, name: str, remedy: str) -> None:
    """Refuse what is not a mapping, or an empty one."""
    if not isinstance(values, Mapping) or not values:
        raise DataError(f"{name} is {described(values)}; {remedy}")
