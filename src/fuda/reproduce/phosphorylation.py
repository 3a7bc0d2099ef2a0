"""Phosphorylation sites of a kinase, such as PKA and CK2: whole proteins as sequences, sites rare.

Files are FASTA with a mark after each site; marks on other residues than S, T and Y are ignored,
and letters in lower case are read as upper case. Every residue is a node. Methods are compared by
how they rank the residues S, T and Y, the only ones that can be phosphorylated: by the area under
the ROC curve, and that under the curve of precision by recall (average precision), whose value is
the share of sites where ranks are random.

A method is a list of models. In every fold one of them is chosen by its training proteins, so that
no figure depends on the proteins that it is measured on.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics import average_precision_score, roc_auc_score

from fuda.data import structures
from fuda.errors import DataError
from fuda.formats import read
from fuda.formats.dataset import Dataset
from fuda.formats.fasta import SITE
from fuda.reproduce.corpora import find, folders
from fuda.selection.folds import fold_numbers
from fuda.selection.goals import Figure, figure

# The kinases of published figures, which are listed first if there are files of them.
KINASES = ("PKA", "CK2")
RESIDUES = "STY"
_CORPUS = "phospho"
FOLDS = 5
KERNEL = "HM-perceptron, RBF of BLOSUM62"
# The methods whose curves are drawn.
DRAWN = ("CRF, default", "CRF, BLOSUM62", KERNEL)
_BUDGET = 60  # seconds of Auto
# The values of l2 of CRFs to choose from, and those of gamma and order of the kernel machine.
_L2 = (1.0, 3.0, 10.0, 30.0, 100.0)
_GAMMA, _ORDERS = (0.02, 0.05), (0, 1)
# With 10 epochs, ranks are random on half of PKA's proteins without the first fold.
_EPOCHS = 100

# ROC AUC of public predictors on sites of PhosphoSitePlus that none of them was trained on: table
# 5 of J. Song et al., Scientific Reports 7 (2017) 6862. Their proteins differ from those here.
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
    found: int  # the number of residues of the test proteins that are predicted to be sites
    right: int  # how many of them are sites
    f1: float  # of these sites, in per cent
    seconds: float
    folds: list[Part]
    model: Any  # the one that labelled the test proteins


class Part(NamedTuple):
    """The predictions of a model for the residues S, T and Y of proteins it did not learn from.

    Attributes
    ----------
    sites : (n,) array of bool
        Whether they are sites.
    scores : (n,) array
        Their probabilities of being sites.
    predicted : (n,) array of bool
        Whether they are labelled as sites.
    seconds : float
    model : Labeler
    """

    sites: np.ndarray
    scores: np.ndarray
    predicted: np.ndarray
    seconds: float
    model: Any

    @property
    def roc(self) -> float:
        """The area under the ROC curve; NaN if all residues are sites, or if there are none."""
        return float(roc_auc_score(self.sites, self.scores)) if len(set(self.sites)) == 2 else np.nan

    @property
    def precision(self) -> float:
        """The area under the curve of precision by recall; NaN without sites."""
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
    dataset = read(find(data, _CORPUS, f"{part}_{kinase}.fasta"), sites=RESIDUES + RESIDUES.lower())
    upper = [
        replace(record, structure=structures.Sequence([x.upper() for x in record.structure.observations]))
        for record in dataset.records
    ]
    return Dataset(upper, dataset.notes)


def methods() -> dict[str, list[Any]]:
    """Return unfitted models by the name of the method, in the order of the table."""
    from fuda.kernels import RBF
    from fuda.models.auto import Auto
    from fuda.models.crf import CRF
    from fuda.models.hm_perceptron import HMPerceptron

    def crfs(loss: str = "sequential", **parameters: Any) -> list[Any]:
        return [CRF(loss, l2=l2, tol=1e-4, **parameters) for l2 in _L2]

    seen: dict[str, Any] = {"features": "blosum62", "window": 7}
    return {
        "CRF, default": [CRF()],
        "CRF, l2 chosen": crfs(),
        "CRF, sites weigh 20": crfs("pointwise", class_weight={SITE: 20.0}),
        "CRF, BLOSUM62": crfs(**seen),
        KERNEL: [
            HMPerceptron(RBF(gamma), order=order, epochs=_EPOCHS, **seen)
            for gamma, order in itertools.product(_GAMMA, _ORDERS)
        ],
        f"Auto, {_BUDGET} seconds": [Auto(_BUDGET)],
    }


def chosen(models: Sequence[Any], train: Dataset) -> Any:
    """Return the model that ranks sites best in each half of proteins, learning from the other.

    Parameters
    ----------
    models : list of Labeler
        What to choose from.
    train : Dataset
        Proteins; where fewer than two have a site there is nothing to choose by.

    Returns
    -------
    Labeler
        The one of the largest mean of average precisions, not fitted; else the first.
    """
    if len(models) == 1 or _with_site(train).sum() < 2:
        return models[0]
    halves = _folds(train, 2)

    def precision(model: Any) -> float:
        ranked = [_ranked(clone(model).fit(half.X, half.y), other) for half, other in halves]
        return float(np.mean([average_precision_score(sites, scores) for sites, scores in ranked]))

    return max(models, key=precision)


def _ranked(model: Any, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Whether the residues S, T and Y are sites, and their probabilities by a model."""
    column, can_be_site = list(model.classes_).index(SITE), _can_be_sites(data)
    scores = np.concatenate([marginals[:, column] for marginals in model.predict_marginals(data.X)])
    sites = np.array([label == SITE for labels in data.y or [] for label in labels])
    return sites[can_be_site], scores[can_be_site]


def _can_be_sites(data: Dataset) -> np.ndarray:
    """Whether residues are S, T or Y."""
    return np.array([residue in RESIDUES for x in data.X for residue in x.observations])


def _with_site(data: Dataset) -> np.ndarray:
    """Whether proteins have a site."""
    return np.array([SITE in (labels or []) for labels in data.y or []], dtype=bool)


def evaluated(models: Sequence[Any], train: Dataset, test: Dataset) -> Part:
    """Choose a model by some proteins, learn from them, and rank S, T and Y of others."""
    started = time.process_time()
    model = clone(chosen(models, train)).fit(train.X, train.y)
    sites, scores = _ranked(model, test)
    labels = np.array([label == SITE for labels in model.predict(test.X) for label in labels])
    seconds = time.process_time() - started
    return Part(sites, scores, labels[_can_be_sites(test)], seconds, model)


def parts(data: str | Path, kinase: str) -> list[tuple[Dataset, Dataset]]:
    """Return training and test parts: five folds, and all against the test proteins.

    Every fold has a site; where there are fewer than five proteins with sites there are
    fewer folds.
    """
    train, test = (load(data, kinase, part) for part in ("train", "test"))
    count = min(FOLDS, int(_with_site(train).sum()))
    if count < 2:
        raise DataError(
            f"{data}: {count} of the {len(train)} proteins of train_{kinase}.fasta has a site, a # after "
            "S, T or Y; give at least 2, since one learns from some and tests on others"
        )
    return [*_folds(train, count), (train, test)]


def _folds(data: Dataset, count: int) -> list[tuple[Dataset, Dataset]]:
    """Folds of proteins; those with sites are distributed separately if a fold has none."""
    has_site, fold = _with_site(data), fold_numbers(len(data), count, seed=0)
    if len(set(fold[has_site])) < count:
        fold[has_site] = fold_numbers(int(has_site.sum()), count, seed=0)
    return [(data[np.flatnonzero(fold != k)], data[np.flatnonzero(fold == k)]) for k in range(count)]


def summary(method: str, results: list[Part]) -> Row:
    """Return the scores of a method by its `parts`, in their order."""
    *folds, test = results
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
        sum(part.seconds for part in results),
        folds,
        test.model,
    )


def comparison(
    data: str | Path, kinase: str, progress: Callable[[str], None], given: dict[str, list[Any]] | None = None
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
    given : dict, optional
        Methods by name; by default all.

    Yields
    ------
    Row
        The scores of a method.
    """
    pairs = parts(data, kinase)
    for name, models in (methods() if given is None else given).items():
        results: list[Part] = []
        for number, (train, test) in enumerate(pairs, 1):
            results.append(evaluated(models, train, test))
            text = f"fold {number} of {len(pairs) - 1}" if number < len(pairs) else "test proteins"
            used = [f"ROC AUC {results[-1].roc:.3f}", *_choices(results[-1].model, models)]
            progress(f"{kinase}, {name}, {text}: {', '.join(used)}")
        yield summary(name, results)


def _choices(model: Any, models: Sequence[Any]) -> Iterator[str]:
    """The parameters in which the models of a method differ, and what Auto chose."""
    if hasattr(model, "report_"):
        yield model.report_.chosen
    for name, value in model.get_params(deep=False).items():
        if len({repr(other.get_params(deep=False)[name]) for other in models}) > 1:
            yield f"{name}={value}"
