"""Plots of the marginalized kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fuda.errors import DataError, described
from fuda.marginalized.kernel import marginalized_kernel
from fuda.plots.style import COLORS, INK, band, color_bar, heat_map, styled


@styled
def kernel_heatmap(a: Any, b: Any, *, ax: Any = None, **options: Any) -> Any:
    """Draw the marginalized kernel between all nodes of two structures.

    Parameters
    ----------
    a, b : structures
        Two structures of the same shape.
    ax : Axes, optional
        Where to draw; default: a new figure.
    **options : object
        Parameters of `fuda.marginalized_kernel`, of which `kernel` is needed. Without a `prior`
        all nodes have the same, single label, so that observations alone have to match.

    Returns
    -------
    Axes
        The plot: the kernel, summed over labels, by nodes of a (rows) and of b (columns).

    Examples
    --------
    >>> from fuda.kernels import Delta
    >>> ax = kernel_heatmap(["in", "Lima"], ["to", "Lima"], kernel=Delta())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['in', 'Lima']
    """
    if "prior" not in options:
        options["prior"] = (np.ones((len(a), 1)), np.ones((len(b), 1)))
    values = marginalized_kernel(a, b, **options).sum(axis=(2, 3))
    rows, columns = ([_word(observation) for observation in structure] for structure in (a, b))
    texts = np.array([[f"{value:.2g}" if value else "" for value in row] for row in values])
    color_bar(ax, heat_map(ax, values, rows, columns, "cividis", texts), "kernel")
    return ax


@styled
def mixing_effect(
    scores: Mapping[float, Iterable[float] | float],
    *,
    chosen: float | None = None,
    ylabel: str = "F1",
    ax: Any = None,
) -> Any:
    """Draw scores over c, the weight of each node of a match.

    Parameters
    ----------
    scores : mapping of numbers to numbers or lists of numbers
        The scores at each c, such as those of folds: the mean is drawn, and the band of a standard
        deviation around it.
    chosen : float, optional
        A c to mark, such as `mixing_` of a model.
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
    >>> ax = mixing_effect({0.5: [0.61, 0.63], 1.0: [0.66, 0.68], 2.0: [0.64, 0.62]}, chosen=1.0)
    >>> ax.get_xlabel()
    'mixing c'
    """
    if not isinstance(scores, Mapping) or not scores:
        raise DataError(f"scores is {described(scores)}; give {{c: scores}}")
    band(ax, scores, COLORS[0])
    ax.set_xscale("log")
    points = sorted(scores)
    ax.set_xticks(points, [f"{point:g}" for point in points])
    ax.minorticks_off()
    if chosen is not None:
        ax.axvline(chosen, color=INK, linestyle=":", linewidth=1.2)
        middle = float(np.sqrt(points[0] * points[-1]))
        side = {"ha": "right", "xytext": (-4, 4)} if chosen > middle else {"ha": "left", "xytext": (4, 4)}
        place = (chosen, ax.get_ylim()[0])
        ax.annotate(f"c = {chosen:.3g}", place, textcoords="offset points", color=INK, fontsize=9, **side)
    ax.set(xlabel="mixing c", ylabel=ylabel)
    return ax


def _word(observation: Any) -> str:
    """An observation as the name of a row: its first column, cut where it is long."""
    text = str(observation[0] if isinstance(observation, tuple) and observation else observation)
    return text if len(text) <= 16 else text[:15] + "…"
