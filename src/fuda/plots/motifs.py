"""Logos of the motifs that models have learned around nodes with a label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from fuda.checks import is_whole
from fuda.data.structures import as_structures
from fuda.errors import DataError, described, short
from fuda.features.residues import BASES, RESIDUES
from fuda.plots.style import COLORS, INK, styled

# Probability (and _MOST) at which log-odds are cut: scores of kernel machines are large.
_LEAST = 1e-300
_MOST = 1 - 1e-16
_WIDE = 0.45  # letters at least as wide, in units of their size, fill their column
_GROUPS = {"KRH": COLORS[0], "DE": COLORS[4], "STNQ": COLORS[2], "PG": COLORS[3], "CY": COLORS[5]}


def motif_effects(
    model: Any, X: Any, y: Any, label: Any, window: int = 7, most: int = 40
) -> tuple[np.ndarray, list[str], Counter[str]]:
    """Measure the effect of letters around a node on its label, by replacing them one at a time.

    Nodes of the label are cut out with twice the window to each side. At each offset every letter
    is put in turn, and the log-odds of the label at the node are averaged over nodes. It works
    with every model that has `predict_marginals`, kernel machines included.

    Parameters
    ----------
    model : Labeler
        A fitted model of sequences of letters.
    X, y : list of sequences, list of lists
        Sequences and their labels.
    label : label
        The label of the nodes to look at.
    window : int, default=7
        How many neighbours to each side to replace.
    most : int, default=40
        How many nodes to look at, at most; they are spread evenly.

    Returns
    -------
    effects : (2 window + 1, n_letters) array
        Log-odds, less their mean over letters at each offset.
    letters : list of str
        The letters, those of the sequences.
    centres : Counter
        How often each letter has the label.
    """
    if not is_whole(window, 1, 100) or not is_whole(most, 1):
        raise DataError(f"window={short(window)}, most={short(most)}: give whole numbers of at least 1")
    if label not in list(model.classes_):
        raise DataError(f"label is {described(label)}; give one of {', '.join(map(str, model.classes_))}")
    sequences = [list(x.observations) for x in as_structures(X)]
    used = {letter for x in sequences for letter in x}
    if not all(isinstance(x, str) and len(x) == 1 for x in used):
        raise DataError("motifs are of sequences of letters, such as residues; give such sequences")
    usual = set("ACGTU") if used <= BASES else set("ACDEFGHIKLMNPQRSTVWY") if used <= RESIDUES else used
    letters = sorted(used & usual)
    nodes = [(i, t) for i, labels in enumerate(y) for t, other in enumerate(labels) if other == label]
    if not nodes:
        raise DataError(f"no node has the label {label!r}; give sequences with it")
    centres = Counter(sequences[i][t] for i, t in nodes)
    chosen = [nodes[k] for k in np.linspace(0, len(nodes) - 1, min(most, len(nodes))).astype(int)]
    totals, counts = np.zeros((2 * window + 1, len(letters))), np.zeros(2 * window + 1)
    column = list(model.classes_).index(label)
    for i, t in chosen:
        start = max(0, t - 2 * window)
        cut, node = sequences[i][start : t + 2 * window + 1], t - start
        offsets = [d for d in range(-window, window + 1) if 0 <= node + d < len(cut)]
        changed = [_with_letter(cut, node + d, letter) for d in offsets for letter in letters]
        odds = np.array([_log_odds(p[node, column]) for p in model.predict_marginals(changed)])
        rows = np.array(offsets) + window
        totals[rows] += odds.reshape(len(offsets), -1)
        counts[rows] += 1
    effects = totals / np.maximum(counts, 1)[:, None]
    return effects - effects.mean(axis=1, keepdims=True), letters, centres


def _with_letter(letters: Sequence[str], at: int, letter: str) -> list[str]:
    """The letters with one of them replaced."""
    return [*letters[:at], letter, *letters[at + 1 :]]


def _log_odds(p: float) -> float:
    """The log-odds of a probability."""
    p = min(max(float(p), _LEAST), _MOST)
    return float(np.log(p) - np.log1p(-p))


@styled
def motif(model: Any, X: Any, y: Any, label: Any, *, window: int = 7, most: int = 40, ax: Any = None) -> Any:
    """Draw the motif that a model has learned around nodes with a label, as a logo.

    Letters above the line support the label, those below oppose it, by the height of the
    letter: the change of the log-odds of the label when that letter takes the place of an average
    one. The nodes themselves are in the middle, by how often each letter is one, not to scale.

    Parameters
    ----------
    model : Labeler
        A fitted model of sequences of letters with `predict_marginals`.
    X, y : list of sequences, list of lists
        Sequences and their labels, in which nodes with the label are looked at.
    label : label
        One of its labels.
    window : int, default=7
        How many neighbours to each side are shown.
    most : int, default=40
        How many nodes are looked at, at most.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        The plot: offsets from the node from left to right.

    Examples
    --------
    >>> from fuda import CRF
    >>> X, y = [list("ARRASA"), list("AAAASA")], [list("OOOOXO"), list("OOOOOO")]
    >>> ax = motif(CRF().fit(X, y), X, y, "X", window=2)
    >>> ax.get_ylabel()
    'log-odds of X'
    """
    effects, letters, centres = motif_effects(model, X, y, label, window, most)
    effects[window] = 0.0
    top = float(np.maximum(effects, 0).sum(axis=1).max()) or 1.0
    bottom = float(np.minimum(effects, 0).sum(axis=1).min())
    for row, values in enumerate(effects):
        above = below = 0.0
        for k in np.argsort(np.abs(values)):
            height = float(values[k])
            if height > 0:
                _letter(ax, letters[k], row - window, above, height)
                above += height
            elif height < 0:
                below += height
                _letter(ax, letters[k], row - window, below, -height)
    base = 0.0
    for letter, count in reversed(centres.most_common(3)):
        height = top * count / sum(centres.values())
        _letter(ax, letter, 0, base, height, alpha=0.45)
        base += height
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set(xlim=(-window - 0.6, window + 0.6), ylim=(1.05 * bottom, 1.05 * top))
    ax.set(xlabel="offset", ylabel=f"log-odds of {label}", xticks=range(-window, window + 1))
    ax.grid(False)
    return ax


@lru_cache
def _outline(letter: str) -> Any:
    """The outline of a letter, one unit high or so."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    return TextPath((0, 0), letter, size=1, prop=FontProperties(family="DejaVu Sans", weight="bold"))


def _letter(ax: Any, letter: str, x: float, y: float, height: float, alpha: float = 1.0) -> None:
    """Draw a letter as wide as a column and of a height, its foot at y."""
    from matplotlib.patches import PathPatch
    from matplotlib.transforms import Affine2D

    path = _outline(letter)
    box = path.get_extents()
    width = 0.9 * min(1.0, box.width / _WIDE)  # an I stays narrow
    scale = Affine2D().translate(-box.x0, -box.y0).scale(width / (box.width or 1), height / (box.height or 1))
    color = next((color for group, color in _GROUPS.items() if letter in group), INK)
    ax.add_patch(
        PathPatch(scale.translate(x - width / 2, y).transform_path(path), color=color, lw=0, alpha=alpha)
    )
