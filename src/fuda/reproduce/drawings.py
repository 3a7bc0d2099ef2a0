"""Plots of the experiments on proteins and genes, for the page about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fuda.formats.fasta import SITE
from fuda.plots import motif
from fuda.plots.style import COLORS, INK, legend, styled
from fuda.reproduce import genes, phosphorylation
from fuda.reproduce.gene_signals import Locus, load
from fuda.reproduce.genes import Exons

Array = np.ndarray
_MANY = 10  # exons of the locus that is drawn
Curve = Callable[[Array, Array], tuple[Array, Array]]


def save(axes: Any, folder: str | Path, name: str) -> None:
    """Write the figure of axes into a folder, on white, and close it."""
    from matplotlib import pyplot

    axes.figure.savefig(Path(folder) / f"{name}.png", facecolor="white")
    pyplot.close(axes.figure)


def roc(sites: Array, scores: Array) -> tuple[Array, Array]:
    """Return the shares of other residues and of sites above each score."""
    order = np.argsort(-scores, kind="stable")
    right = sites[order]
    return _share(~right), _share(right)


def precision_by_recall(sites: Array, scores: Array) -> tuple[Array, Array]:
    """Return the recall above each score and the best precision at that recall or a higher one."""
    right = sites[np.argsort(-scores, kind="stable")]
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    return _share(right), np.maximum.accumulate(precision[::-1])[::-1]


def _share(marked: Array) -> Array:
    return np.cumsum(marked) / max(1, int(marked.sum()))


@styled
def site_curves(rows: Sequence[phosphorylation.Row], curve: Curve, *, ax: Any = None) -> Any:
    """Draw curves of methods over folds: the mean, and the band of a standard deviation around it.

    Parameters
    ----------
    rows : list of Row
        What methods reached.
    curve : callable
        `roc` or `precision_by_recall`.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        The plot.
    """
    at = np.linspace(0, 1, 201)
    for row, color in zip(rows, COLORS, strict=False):
        curves = np.array([np.interp(at, *curve(fold.sites, fold.scores)) for fold in row.folds])
        mean, spread = curves.mean(axis=0), curves.std(axis=0)
        area = row.roc if curve is roc else row.precision
        ax.plot(at, mean, color=color, label=f"{row.method}: {area.mean:.1f} ± {area.deviation:.1f}")
        ax.fill_between(at, mean - spread, mean + spread, color=color, alpha=0.15, linewidth=0)
    if curve is roc:
        ax.plot(at, at, color=INK, linewidth=0.8, linestyle=":")
    names = ("share of other residues", "share of sites") if curve is roc else ("recall", "precision")
    ax.set(xlabel=names[0], ylabel=names[1], xlim=(0, 1), ylim=(0, 1))
    legend(ax, "lower right" if curve is roc else "upper right")
    return ax


def draw_sites(
    rows: Sequence[phosphorylation.Row], data: str | Path, kinase: str, folder: str | Path
) -> None:
    """Draw the curves of methods on the sites of a kinase, and the motif of a kernel machine."""
    shown = [row for row in rows if row.method in phosphorylation.DRAWN]
    for curve, name in ((roc, "roc"), (precision_by_recall, "precision")):
        axes = site_curves(shown, curve)
        axes.set_title(kinase)
        save(axes, folder, f"{name}_{kinase.lower()}")
    train = phosphorylation.load(data, kinase, "train")
    model = next(row.model for row in rows if row.method == phosphorylation.KERNEL)
    save(motif(model, train.X, train.y, SITE), folder, f"motif_{kinase.lower()}")


@styled
def gene(locus: Locus, predicted: Exons, *, ax: Any = None) -> Any:
    """Draw the true and the predicted exons of a locus along its bases.

    Parameters
    ----------
    locus : Locus
        The locus.
    predicted : list of (start, end)
        The exons that are predicted.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        The plot: predicted exons with both ends right, in part right, and wrong ones have colours.
    """
    true = set(locus.exons)
    least = len(locus.bases) / 600  # so that a short exon can be seen
    ax.broken_barh([(start, max(end - start, least)) for start, end in locus.exons], (1.1, 0.6), color=INK)
    kinds: dict[str, list[tuple[int, int]]] = {"right": [], "one end or both wrong": [], "no exon there": []}
    for start, end in predicted:
        partly = any(a < end and start < b for a, b in true)
        kind = "right" if (start, end) in true else "one end or both wrong" if partly else "no exon there"
        kinds[kind].append((start, end))
    for (kind, exons), color in zip(kinds.items(), (COLORS[2], COLORS[1], COLORS[4]), strict=True):
        bars = [(start, max(end - start, least)) for start, end in exons]
        if bars:
            ax.broken_barh(bars, (0.1, 0.6), color=color, label=kind)
    for y in (0.4, 1.4):
        ax.axhline(y, color=INK, linewidth=0.6, zorder=0)
    ax.set(yticks=(0.4, 1.4), yticklabels=("predicted", "true"), ylim=(0, 2), xlim=(0, len(locus.bases)))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.set(xlabel="bases", title=f"{locus.name}: {len(locus.exons)} exons, {len(predicted)} predicted")
    ax.grid(False)
    if predicted:
        place = {"loc": "lower right", "bbox_to_anchor": (1, 0.98), "ncols": len(kinds)}
        ax.legend(frameon=False, labelcolor=INK, fontsize=8, **place)
    ax.figure.set_size_inches(7.6, 2.2)
    return ax


def draw_gene(row: genes.Row, data: str | Path, folder: str | Path) -> None:
    """Draw the locus of many exons with median correlation, of folds not used for any choice."""
    loci = load(data)
    correlation = genes.accuracy(loci, row.predicted)["correlation"]
    unseen = np.concatenate(genes.folds_of(loci)[genes.DEVELOPED_ON :])
    most = np.array([len(loci[i].exons) for i in unseen])
    unseen = unseen[most >= min(_MANY, most.max())]
    middle = unseen[np.argsort(correlation[unseen], kind="stable")[len(unseen) // 2]]
    save(gene(loci[middle], row.predicted[middle]), folder, "gene")
