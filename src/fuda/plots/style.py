"""What all plots share: new figures, colours, heat maps and curves with a band."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

import numpy as np

# After Okabe & Ito's palette for all kinds of colour vision, in tones that show on white
# and on black.
COLORS = ("#2f86c6", "#e08a1e", "#1f9e83", "#b86fb0", "#d9603b", "#8f8f2a")
INK = "#7b7b7b"
POSITIVE, NEGATIVE = COLORS[0], COLORS[4]
_FAINT = "#80808040"
_STYLE: dict[str, Any] = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "auto",
    "figure.dpi": 110,
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.edgecolor": _FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
}


def pyplot() -> Any:
    """Import matplotlib's pyplot, or raise an error that names the extra which installs it."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError("fuda.plots needs matplotlib; install it by: pip install 'fuda[plots]'") from None
    return plt


def styled(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function that draws into `ax` make a new figure in the style above if `ax` is None."""

    @wraps(draw)
    def drawn(*args: Any, ax: Any = None, **options: Any) -> Any:
        if ax is not None:
            return draw(*args, ax=ax, **options)
        plt = pyplot()
        with plt.rc_context(_STYLE):
            figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
            try:
                return draw(*args, ax=ax, **options)
            except BaseException:
                plt.close(figure)
                raise

    return drawn


def band(ax: Any, values: Mapping[Any, Iterable[float] | float], color: str, name: str | None = None) -> None:
    """Draw means over the keys, and the band of a standard deviation around them.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    values : mapping of numbers to numbers or lists of numbers
        What was measured at each point.
    color : str
        The colour.
    name : str, optional
        The name in the legend.
    """
    points = sorted(values)
    lists = [np.atleast_1d(np.asarray(values[point], dtype=float)) for point in points]
    means = np.array([scores.mean() for scores in lists])
    spread = np.array([scores.std() for scores in lists])
    ax.plot(points, means, "o-", color=color, label=name)
    if spread.any():
        ax.fill_between(points, means - spread, means + spread, color=color, alpha=0.18, linewidth=0)


def legend(ax: Any, place: str = "best") -> None:
    """Add a legend that can be read on any background.

    Parameters
    ----------
    ax : Axes
        The plot.
    place : str, default="best"
        Where.
    """
    ax.legend(loc=place, frameon=False, labelcolor=INK)


def heat_map(
    ax: Any,
    values: np.ndarray,
    rows: Iterable[Any],
    columns: Iterable[Any],
    colors: str,
    texts: np.ndarray | None = None,
) -> Any:
    """Draw a matrix as coloured cells, with texts in them where they fit.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    values : array of shape (n, m)
        What determines the colours. Where some are negative 0 is in the middle of the colours;
        where none is, cells of value 0 have no colour.
    rows, columns : iterables
        The names of rows and columns.
    colors : str
        The name of a colour map.
    texts : array of shape (n, m), optional
        The texts of the cells.

    Returns
    -------
    AxesImage
        For a colour bar.
    """
    bound = float(np.abs(values).max(initial=0.0)) or 1.0
    lowest = -bound if (values < 0).any() else 0.0
    shown = np.ma.masked_equal(values, 0.0) if lowest == 0.0 else values
    image = ax.imshow(shown, cmap=colors, vmin=lowest, vmax=bound, aspect="auto")
    row_names, column_names = list(map(str, rows)), list(map(str, columns))
    ax.set_yticks(range(len(row_names)), row_names)
    turned = max(map(len, column_names), default=0) * len(column_names) > 45
    ax.set_xticks(range(len(column_names)), column_names, rotation=60 if turned else 0)
    if turned:
        for text in ax.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if texts is not None and max(values.shape) <= 16:
        for (row, column), text in np.ndenumerate(texts):
            red, green, blue, _ = image.cmap(image.norm(values[row, column]))
            light = 0.3 * red + 0.59 * green + 0.11 * blue > 0.55
            place = {"ha": "center", "va": "center", "fontsize": 8}
            ax.text(column, row, text, color="#222222" if light else "#f5f5f5", **place)
    return image


def color_bar(ax: Any, image: Any, title: str) -> None:
    """Add a colour bar beside a heat map.

    Parameters
    ----------
    ax : Axes
        The heat map's.
    image : AxesImage
        The cells.
    title : str
        What the colours mean.
    """
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    bar.outline.set_visible(False)
    bar.set_label(title)
