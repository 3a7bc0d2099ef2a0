"""Phosphorylation sites of a kinase, such as PKA and CK2: whole proteins as sequences, sites rare.

Files are FASTA with a mark after each site; marks on other residues than S, T and Y are ignored, and
letters in lower case are read as upper case. Every residue is a node. Methods are compared by how
they rank the residues S, T and Y, the only ones that can be phosphorylated: by the area under the ROC
curve, and that under the curve of precision by recall (average precision), whose value is the share
of sites where ranks are random.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics import average_precision_score, roc_auc_score

from fuda.data.structures import Sequence
from fuda.errors import DataError
from fuda.formats import read
from fuda.formats.dataset import Dataset
from fuda.formats.fasta import SITE
from fuda.reproduce.corpora import find, folders
from fuda.selection.folds import fold_numbers
from fuda.selection.goals import Figure, figure

KINASES = ("PKA", "CK2")  # that come first where there are files of them; published figures are of these
RESIDUES = "STY"
_CORPUS = "phospho"
FOLDS = 5
KERNEL = "HM-perceptron, RBF of BLOSUM62"
DRAWN = ("CRF, default", "CRF, l2=10, BLOSUM62", KERNEL)  # methods whose curves are shown
_BUDGET = 120  # seconds of Auto

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
    f1: float  # of these sites, in per cent
    seconds: float
    folds: list[Part]


class Part(NamedTuple):
    """What a model that learned from some proteins says of the residues S, T and Y of others.

    Attributes
    ----------
    sites : (n,) array of bool
        Which are sites.
    scores : (n,) array
        How probable it is that they are.
    predicted : (n,) array of bool
        Which are labelled as sites.
    seconds : float
    """

    sites: np.ndarray
    scores: np.ndarray
    predicted: np.ndarray
    seconds: float

    @property
    def roc(self) -> float:
        """The area under the ROC curve; NaN where all residues are sites or none is."""
        return float(roc_auc_score(self.sites, self.scores)) if len(set(self.sites)) == 2 else np.nan

    @property
    def precision(self) -> float:
        """The area under the curve of precision by recall; NaN where there is no site."""
        return float(average_precision_score(self.sites, self.scores)) if self.sites.any() else np.nan


def kinases_in(data: str | Path) -> list[str]:
    """Return the kinases of which a folder has proteins, `KINASES` first, then by name.

    Parameters
    ----------
    data : str or Path
        The folder, or one above it, with train_PKA.fasta, test_PKA.fasta and so on.

    Returns
    -------
    list of str
        Their names, from those of the files to learn from.
    """
    paths = next(filter(None, (sorted(f.glob("train_*.fasta")) for f in folders(data, _CORPUS))), [])
    names = [path.stem.removeprefix("train_") for path in paths]
    return sorted(names, key=lambda name: (KINASES.index(name) if name in KINASES else len(KINASES), name))


def load(data: str | Path, kinase: str, part: str) -> Dataset:
    """Read the proteins of a kinase.

    Parameters
    ----------
    data : str or Path
        The folder, or one above it, with train_PKA.fasta and so on.
    kinase : str
        The name of the kinase, as in those of the files.
    part : {"train", "test"}
        Which file.

    Returns
    -------
    Dataset
        Proteins with the labels site and O.
    """
    found = read(find(data, _CORPUS, f"{part}_{kinase}.fasta"), sites=RESIDUES + RESIDUES.lower())
    upper = [
        replace(record, structure=Sequence([x.upper() for x in record.structure.observations]))
        for record in found.records
    ]
    return Dataset(upper, found.notes)


def methods() -> dict[str, Any]:
    """Return unfitted models by name, in the order of the table."""
    from fuda.kernels import RBF
    from fuda.models.auto import Auto
    from fuda.models.crf import CRF
    from fuda.models.hm_perceptron import HMPerceptron

    # order 0: on long chains with few sites the scores of label pairs outgrow those of residues
    kernel = HMPerceptron(RBF(0.05), order=0, features="blosum62", window=7, epochs=100)
    return {
        "CRF, default": CRF(),
        "CRF, l2=10": CRF(l2=10.0, tol=1e-4),
        "CRF, l2=10, sites weigh 20": CRF("pointwise", l2=10.0, class_weight={SITE: 20.0}, tol=1e-4),
        "CRF, l2=10, BLOSUM62": CRF(l2=10.0, features="blosum62", window=7, tol=1e-4),
        KERNEL: kernel,
        f"Auto, {_BUDGET} seconds": Auto(_BUDGET),
    }


def evaluated(model: Any, train: Dataset, test: Dataset) -> Part:
    """Learn from some proteins and rank the residues S, T and Y of others."""
    started = time.process_time()
    fitted = clone(model).fit(train.X, train.y)
    column = list(fitted.classes_).index(SITE)
    scores = np.concatenate([marginals[:, column] for marginals in fitted.predict_marginals(test.X)])
    labels = [label == SITE for labels in fitted.predict(test.X) for label in labels]
    seconds = time.process_time() - started
    kept = np.array([residue in RESIDUES for x in test.X for residue in x.observations])
    sites = np.array([label == SITE for labels in test.y or [] for label in labels])
    return Part(sites[kept], scores[kept], np.array(labels)[kept], seconds)


def parts(data: str | Path, kinase: str) -> list[tuple[Dataset, Dataset]]:
    """Return what is learned from and what is tested on: five folds, and all against the test proteins.

    Every fold has a site: proteins with sites are dealt out by themselves where chance gives a fold
    none, and where there are fewer than five there are fewer folds.
    """
    train, test = (load(data, kinase, part) for part in ("train", "test"))
    has_site = np.array([SITE in (labels or []) for labels in train.y or []], dtype=bool)
    count = min(FOLDS, int(has_site.sum()))
    if count < 2:
        raise DataError(
            f"{data}: {count} of the {len(train)} proteins of train_{kinase}.fasta has a site, a # after "
            "S, T or Y; give at least 2, since one learns from some and tests on others"
        )
    fold = fold_numbers(len(train), count, seed=0)
    if len(set(fold[has_site])) < count:
        fold[has_site] = fold_numbers(int(has_site.sum()), count, seed=0)
    folds = [(train[np.flatnonzero(fold != k)], train[np.flatnonzero(fold == k)]) for k in range(count)]
    return [*folds, (train, test)]


def summary(method: str, found: list[Part]) -> Row:
    """Return the scores of a method by its `parts`, in their order."""
    *folds, test = found
    right = int((test.sites & test.predicted).sum())
    return Row(
        method,
        figure([fold.roc for fold in folds]),
        figure([fold.precision for fold in folds]),
        100 * test.roc,
        100 * test.precision,
        int(test.predicted.sum()),
        right,
        200 * right / max(1, int(test.predicted.sum() + test.sites.sum())),
        sum(part.seconds for part in found),
        folds,
    )


def comparison(
    data: str | Path, kinase: str, progress: Callable[[str], None], chosen: dict[str, Any] | None = None
) -> Iterator[Row]:
    """Compare the methods on the proteins of a kinase.

    Parameters
    ----------
    data : str or Path
        The folder with the files.
    kinase : str
        The name of the kinase.
    progress : callable
        Called with a line of text after each fold.
    chosen : dict, optional
        Models by name; by default all.

    Yields
    ------
    Row
        The scores of a method.
    """
    pairs = parts(data, kinase)
    for name, model in (methods() if chosen is None else chosen).items():
        found: list[Part] = []
        for number, (train, test) in enumerate(pairs, 1):
            found.append(evaluated(model, train, test))
            text = f"fold {number} of {len(pairs) - 1}" if number < len(pairs) else "test proteins"
            progress(f"{kinase}, {name}, {text}: ROC AUC {found[-1].roc:.3f}")
        yield summary(name, found)
