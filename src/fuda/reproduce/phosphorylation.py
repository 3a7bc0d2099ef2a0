"""Phosphorylation sites of the kinases PKA and CK2: whole proteins as sequences, sites rare.

Files are FASTA with a mark after each site; marks on other residues than S, T and Y are ignored. Every
residue is a node. Methods are compared by how they rank the residues S, T and Y, the only ones that
can be phosphorylated: by the area under the ROC curve, and that under the curve of precision by
recall (average precision), whose value is the share of sites where ranks are random.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics import average_precision_score, roc_auc_score

from fuda.errors import DataError
from fuda.formats import read
from fuda.formats.dataset import Dataset
from fuda.formats.fasta import SITE
from fuda.selection import splits
from fuda.selection.goals import Figure, figure

KINASES = ("PKA", "CK2")
RESIDUES = "STY"
FOLDS = 5

# ROC AUC of public predictors on sites of PhosphoSitePlus that none of them was trained on: table 5
# of J. Song et al., Scientific Reports 7 (2017) 6862. Other proteins than these.
PUBLISHED = {
    "KinasePhos": {"PKA": 0.775, "CK2": 0.714},
    "PPSP": {"PKA": 0.836, "CK2": 0.838},
    "GPS": {"PKA": 0.880, "CK2": 0.821},
    "Musite": {"PKA": 0.877, "CK2": 0.809},
    "PhosphoPredict": {"PKA": 0.896, "CK2": 0.727},
}


class Row(NamedTuple):
    """The result of a method: over folds of the training proteins, and on the others."""

    method: str
    roc: Figure
    precision: Figure
    test_roc: float
    test_precision: float
    found: int  # sites of the test proteins that are predicted
    right: int  # how many of them are
    seconds: float


def load(data: str | Path, kinase: str, part: str) -> Dataset:
    """Read the proteins of a kinase.

    Parameters
    ----------
    data : str or Path
        The folder, or one above it, with train_PKA.fasta and so on.
    kinase : str
        One of `KINASES`.
    part : {"train", "test"}
        Which file.

    Returns
    -------
    Dataset
        Proteins with the labels site and O.
    """
    name = f"{part}_{kinase}.fasta"
    path = next((p for p in (Path(data) / "phospho" / name, Path(data) / name) if p.is_file()), None)
    if path is None:
        raise DataError(f"{data}: has no file {name}; --data names the folder with the corpora")
    return read(path, sites=RESIDUES)


def methods() -> dict[str, Any]:
    """Return unfitted models by name, in the order of the table."""
    from fuda.models.crf import CRF

    return {
        "CRF, default": CRF(),
        "CRF, l2=10": CRF(l2=10.0, tol=1e-4),
        "CRF, l2=10, sites weigh 20": CRF("pointwise", l2=10.0, class_weight={SITE: 20.0}, tol=1e-4),
        "CRF, l2=10, BLOSUM62": CRF(l2=10.0, features="blosum62", window=7, tol=1e-4),
    }


def ranked(model: Any, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return for each residue S, T or Y whether it is a site, and its probability to be one."""
    column = list(model.classes_).index(SITE)
    scores = np.concatenate([marginals[:, column] for marginals in model.predict_marginals(data.X)])
    residues = [residue for x in data.X for residue in x.observations]
    sites = [label == SITE for labels in data.y or [] for label in labels]
    kept = np.array([residue in RESIDUES for residue in residues])
    return np.array(sites)[kept], scores[kept]


def comparison(
    data: str | Path, kinase: str, progress: Callable[[str], None], chosen: dict[str, Any] | None = None
) -> Iterator[Row]:
    """Compare the methods on the proteins of a kinase.

    Parameters
    ----------
    data : str or Path
        The folder with the files.
    kinase : str
        One of `KINASES`.
    progress : callable
        Called with a line of text after each fold.
    chosen : dict, optional
        Models by name; by default all.

    Yields
    ------
    Row
        The scores of a method.
    """
    train, test = (load(data, kinase, part) for part in ("train", "test"))
    for name, unfitted in (methods() if chosen is None else chosen).items():
        started, rocs, precisions = time.perf_counter(), [], []
        for number, split in enumerate(splits(len(train), FOLDS, seed=0), 1):
            part = train[split.train]
            sites, scores = ranked(clone(unfitted).fit(part.X, part.y), train[split.test])
            rocs.append(float(roc_auc_score(sites, scores)))
            precisions.append(float(average_precision_score(sites, scores)))
            progress(f"{kinase}, {name}, fold {number} of {FOLDS}: ROC AUC {rocs[-1]:.3f}")
        model = clone(unfitted).fit(train.X, train.y)
        sites, scores = ranked(model, test)
        pairs = [
            (label == SITE, found == SITE)
            for labels, predicted in zip(test.y or [], model.predict(test.X), strict=True)
            for label, found in zip(labels, predicted, strict=True)
        ]
        yield Row(
            name,
            figure(rocs),
            figure(precisions),
            100 * float(roc_auc_score(sites, scores)),
            100 * float(average_precision_score(sites, scores)),
            sum(found for _, found in pairs),
            sum(is_site and found for is_site, found in pairs),
            time.perf_counter() - started,
        )
