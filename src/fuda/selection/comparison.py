"""Comparison of models by cross-validation: scores, spread, times, sizes, significance, curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fuda.errors import DataError, short
from fuda.progress import bar, warn
from fuda.runtime.estimators import ConvergenceWarning
from fuda.runtime.interrupts import is_inner
from fuda.selection.folds import cut, splits
from fuda.selection.goals import Figure, Goal, goal_for
from fuda.selection.significance import randomization_test
from fuda.selection.tables import PrintedTable, Tabular
from fuda.selection.validation import Validation, cross_validate


@dataclass
class Comparison(Tabular):
    """The results of `compare`.

    Parameters
    ----------
    goal : Goal
        The score by which models are ranked and tested.
    folds : int
        The number of folds.
    y : list of lists
        The true labels.
    results : dict of (str, int) to Validation
        By model and number of structures fitted on. After an interrupt some have fewer folds, or
        are missing.

    Examples
    --------
    >>> from fuda import CRF, HMM
    >>> X, y = [["a", "b"], ["b"], ["b", "a"]] * 4, [["A", "B"], ["B"], ["B", "A"]] * 4
    >>> found = compare({"crf": CRF(), "hmm": HMM()}, X, y, folds=3)
    >>> found.goal.name, sorted(found.results)
    ('token accuracy', [('crf', 8), ('hmm', 8)])
    """

    goal: Goal
    folds: int
    y: list[Any]
    results: dict[tuple[str, int], Validation] = field(default_factory=dict)

    def figure(self, name: str, size: int) -> Figure:
        """Return mean and spread over folds of the goal, in per cent.

        Parameters
        ----------
        name : str
            The model.
        size : int
            The number of structures fitted on.

        Returns
        -------
        Figure
            The figure.
        """
        result = self.results[name, size]
        scores = [self.goal.score(counts) for counts in self._counts_by_fold(result)]
        return Figure(100 * float(np.mean(scores)), 100 * float(np.std(scores)))

    def best(self, size: int) -> str:
        """Return the model with the largest mean at a size.

        Parameters
        ----------
        size : int
            The number of structures fitted on.

        Returns
        -------
        str
            Its name.
        """
        return max(
            (name for name, of in self.results if of == size), key=lambda name: self.figure(name, size)
        )

    def p_value(self, first: str, second: str, size: int) -> float:
        """Test whether two models differ, by paired approximate randomization.

        Parameters
        ----------
        first, second : str
            The models.
        size : int
            The number of structures fitted on.

        Returns
        -------
        float
            p, over the structures that both have labelled.
        """
        predictions = [self.results[name, size].out_of_fold() for name in (first, second)]
        both = sorted(predictions[0].keys() & predictions[1].keys())
        true = [self.y[i] for i in both]
        counts = [self.goal.counts(true, [labels[i] for i in both]) for labels in predictions]
        return randomization_test(counts[0], counts[1])

    def rows(self) -> list[dict[str, Any]]:
        """Return the figures of each model and size, in the order of the models within a size.

        Returns
        -------
        list of dict
            Scores in per cent as pairs (mean, deviation), mean times in seconds, bytes, and p of
            the difference from the best model at that size, None for itself.
        """
        rows = []
        for (name, size), result in self.results.items():
            best = self.best(size)
            entity = result.entity_f1
            rows.append(
                {
                    "model": name,
                    "structures": size,
                    "folds": len(result.reports),
                    "token_accuracy": tuple(result.accuracy),
                    "label_f1": tuple(result.label_f1),
                    "entity_f1": None if entity is None else tuple(entity),
                    "goal": tuple(self.figure(name, size)),
                    "p": None if name == best else self.p_value(name, best, size),
                    "fit_seconds": float(np.mean([times.wall for times in result.fits])),
                    "fit_cpu_seconds": float(np.mean([times.cpu for times in result.fits])),
                    "predict_seconds": float(np.mean([times.wall for times in result.predicts])),
                    "bytes": int(np.mean(result.sizes)) if result.sizes else None,
                }
            )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types.

        Returns
        -------
        dict
            The goal, the number of folds, and the rows.
        """
        return {"goal": self.goal.name, "folds": self.folds, "rows": self.rows()}

    def table(self) -> PrintedTable:
        """Return the rows as a table.

        Returns
        -------
        PrintedPrintedTable
            A row per model and size.
        """
        rows = self.rows()
        several = len({row["structures"] for row in rows}) > 1
        entities = any(row["entity_f1"] for row in rows)
        macro = self.goal.name == "macro F1"
        header = ["model", *(["size"] if several else []), "accuracy", "label F1"]
        header += [*(["entity F1"] if entities else []), *(["macro F1"] if macro else [])]
        made = []
        for row in rows:
            figures = [row["token_accuracy"], row["label_f1"]]
            figures += [*([row["entity_f1"]] if entities else []), *([row["goal"]] if macro else [])]
            made.append(
                [
                    row["model"] + ("" if row["folds"] == self.folds else f" ({row['folds']} folds)"),
                    *([f"{row['structures']:,}"] if several else []),
                    *("–" if each is None else f"{each[0]:.1f}±{each[1]:.1f}" for each in figures),
                    "best" if row["p"] is None else f"{row['p']:.4f}",
                    *(f"{row[time]:.2f}" for time in ("fit_seconds", "fit_cpu_seconds", "predict_seconds")),
                    "–" if row["bytes"] is None else _size(row["bytes"]),
                ]
            )
        header += ["p", "fit", "CPU", "label", "bytes"]
        notes = (
            f"Means and standard deviations over {self.folds} folds, in per cent. p: difference in "
            f"{self.goal.name} from the best, by approximate randomization. fit, CPU, label: seconds to fit "
            "by the clock and of processors, and to label the test part. bytes: of the model file.",
        )
        return PrintedTable(header, made, notes)

    def plot(self, path: str | Path | None = None, ax: Any = None) -> Any:
        """Draw the goal with its spread: curves over sizes, or a bar per model at a single size.

        Parameters
        ----------
        path : str or Path, optional
            A file to write the picture to; its extension decides the format.
        ax : matplotlib.axes.Axes, optional
            Where to draw. Default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            What was drawn on.
        """
        if ax is None:
            ax = _pyplot().subplots(figsize=(6.4, 4.0), layout="constrained")[1]
        names = list(dict.fromkeys(name for name, _ in self.results))
        sizes = sorted({size for _, size in self.results})
        if len(sizes) > 1:
            for name in names:
                compared = [size for size in sizes if (name, size) in self.results]
                figures = [self.figure(name, size) for size in compared]
                means, errors = zip(*figures, strict=True)
                ax.errorbar(compared, means, yerr=errors, label=name, marker="o", markersize=4, capsize=3)
            ax.set(xscale="log", xlabel="structures fitted on", ylabel=f"{self.goal.name} (%)")
            ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
            ax.minorticks_off()
            ax.legend(frameon=False)
        else:
            means, errors = zip(*(self.figure(name, sizes[0]) for name in names), strict=True)
            ax.barh(names, means, xerr=errors, height=0.6, capsize=3)
            ax.invert_yaxis()
            ax.set(xlabel=f"{self.goal.name} (%)")
        ax.spines[["top", "right"]].set_visible(False)
        if path is not None:
            try:
                ax.figure.savefig(path, dpi=150)
            except (OSError, ValueError) as error:  # the file, or an unknown format
                raise DataError(f"{path}: cannot be drawn: {error}; name another file") from None
        return ax

    def _counts_by_fold(self, result: Validation) -> Iterator[np.ndarray]:
        for test, predicted in zip(result.tests, result.predictions, strict=True):
            yield self.goal.counts([self.y[i] for i in test], predicted)


def compare(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    folds: int = 5,
    sizes: list[int] | None = None,
    goal: Goal | None = None,
    seed: int = 0,
    verbose: bool = False,
) -> Comparison:
    """Compare models by cross-validation on the same folds.

    Ctrl-C ends the comparison with what has been found, and a warning.

    Parameters
    ----------
    models : mapping of str to estimator
        The models by name, which are not changed.
    X, y : list
        Structures and their labels, None where not known.
    folds : int, default=5
        The number of folds.
    sizes : list of int, optional
        Numbers of structures to fit on, for learning curves; a size above that of a fold is all
        of it. Default: all.
    goal : Goal, optional
        What models are ranked by. Default: `goal_for` the labels.
    seed : int, default=0
        The seed of the folds.
    verbose : bool, default=False
        Whether to show a progress bar on standard error.

    Returns
    -------
    Comparison
        Its `str` is a table.

    Examples
    --------
    >>> from fuda import CRF, HMM
    >>> X, y = [["a", "b"], ["b"], ["b", "a"]] * 4, [["A", "B"], ["B"], ["B", "A"]] * 4
    >>> found = compare({"crf": CRF(), "hmm": HMM()}, X, y, folds=3)
    >>> found.best(8)
    'crf'
    """
    if not models:
        raise DataError("there is nothing to compare: give at least one model")
    X, y = list(X), [list(labels) for labels in y]
    parts = splits(len(X), folds, seed)
    largest = min(len(split.train) for split in parts)
    training_sizes = sorted({min(size, largest) for size in sizes or [largest]})
    if training_sizes[0] < 1:
        raise DataError(f"sizes={short(sizes)}: give numbers of structures, of at least 1")
    comparison = Comparison(goal or goal_for(y), folds, y)
    try:
        with bar("comparing", len(models) * len(training_sizes) * folds, verbose) as advance:
            for size in training_sizes:
                cuts = [cut(split, size, seed) for split in parts] if size < largest else parts
                for name, model in models.items():
                    advance(0, f"{name} on {size:,}")

                    def after_fold(
                        result: Validation, fitted: Any, key: tuple[str, int] = (name, size)
                    ) -> None:
                        result.sizes += _stored_sizes(fitted)
                        comparison.results[key] = result
                        advance(1)

                    cross_validate(model, X, y, cuts, after_fold)
    except KeyboardInterrupt:
        if is_inner() or not comparison.results:
            raise
        warn("the comparison was interrupted; it has what was found until then", ConvergenceWarning)
    return comparison


def _stored_sizes(fitted: Any) -> list[int]:
    """The bytes of the file of a model; nothing where it cannot be stored."""
    if not hasattr(fitted, "save"):
        return []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        try:
            fitted.save(path)
        except DataError:  # such as a kernel that is a function
            return []
        return [path.stat().st_size]


def _size(count: int) -> str:
    """A number of bytes in words.

    >>> _size(900), _size(2_345_678)
    ('0.9k', '2.3M')
    """
    return f"{count / 1e6:.1f}M" if count >= 1e6 else f"{count / 1e3:.1f}k"


def check_plots() -> None:
    """Raise DataError where nothing can be drawn."""
    _pyplot()


def _pyplot() -> Any:
    """matplotlib.pyplot, or an error that says how to install it."""
    try:
        return import_module("matplotlib.pyplot")
    except ImportError:
        raise DataError("plots need matplotlib, which is missing; install fuda[plots]") from None
