"""Plots of trainings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuda.errors import DataError, described
from fuda.plots.style import COLORS, legend, styled

_QUANTITIES = {
    "objective": "objective",
    "gap": "relative duality gap",
    "mistakes": "mistakes per epoch",
    "gradient_norm": "norm of the gradient",
}


@styled
def convergence(runs: Any, *, quantity: str | None = None, by: str = "iteration", ax: Any = None) -> Any:
    """Draw what is measured after each iteration of a training.

    Parameters
    ----------
    runs : model, list of Iteration, or a mapping of names to these
        A fitted model, or what a callback was given: ``CRF(callback=found.append)`` fills a list
        `found`.
    quantity : {"objective", "gap", "mistakes", "gradient_norm"}, optional
        What to draw; default: the first of these that all runs have measured.
    by : {"iteration", "seconds"}, default="iteration"
        What to draw it over; models themselves know no seconds, except those with `result_`.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        The plot. Gaps and norms, and objectives that fall to less than a tenth, are on a
        logarithmic scale.

    Examples
    --------
    >>> from fuda import CRF
    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> ax = convergence(CRF().fit(X, y))
    >>> ax.get_xlabel()
    'iteration'
    """
    runs_by_name = runs if isinstance(runs, Mapping) else {None: runs}
    histories = {name: _history(run) for name, run in runs_by_name.items()}
    quantity = quantity or _common(list(histories.values()))
    if quantity not in _QUANTITIES:
        raise DataError(f"quantity={quantity!r}: give one of {', '.join(_QUANTITIES)}")
    for number, (name, history) in enumerate(histories.items()):
        values = [_measurement(entry, quantity) for entry in history]
        over = [_measurement(entry, by) for entry in history]
        if None in values or (by != "iteration" and None in over):
            missing = quantity if None in values else by
            raise DataError(f"{name or 'the run'} has not measured {missing}; collect it by a callback")
        points = over if None not in over else range(1, len(history) + 1)
        color = COLORS[number % len(COLORS)]
        ax.plot(points, values, "o-" if len(history) <= 40 else "-", color=color, label=name)
        if quantity in ("gap", "gradient_norm") or 0 < 10 * min(values) < max(values):
            ax.set_yscale("log")
    ax.set(xlabel=by, ylabel=_QUANTITIES[quantity])
    if None not in runs_by_name:
        legend(ax)
    return ax


def _history(run: Any) -> list[Any]:
    """The measurements of a run, which is a list of them or a model."""
    history = run if isinstance(run, list) else getattr(getattr(run, "result_", None), "history", None)
    for name in ("history_", "mistakes_"):
        history = getattr(run, name, None) if history is None else history
    if not history:
        raise DataError(
            f"{described(run)} has no history: give the list that a callback filled, or a model after its "
            "fit, since model files hold none"
        )
    return list(history)


def _measurement(entry: Any, quantity: str) -> Any:
    """A quantity of an entry; a bare number is a number of mistakes."""
    if isinstance(entry, int):
        return entry if quantity == "mistakes" else None
    value = getattr(entry, quantity, None)
    return getattr(entry, "nodes", None) if value is None and quantity == "mistakes" else value


def _common(histories: list[list[Any]]) -> str | None:
    """The first quantity that all histories have."""
    for quantity in _QUANTITIES:
        if all(_measurement(history[-1], quantity) is not None for history in histories):
            return quantity
    raise DataError("the runs have measured nothing in common; draw them one by one")
