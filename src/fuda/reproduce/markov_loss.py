"""Tables 1 and 2 of the Markov-loss paper (Tsuboi & Kashima) on the Spanish corpus of CoNLL-2002.

The Markov losses are normalized, M_k / (k + 1) = λ L₁ + (1 − λ) L₀, the paper's mixed loss, so
that one grid of L2 weights suits all of them.

Table 1: the full training set, S3 features, entity F1 on testb; the L2 weight of each loss is the
best on testa.
Table 2: the first n training sentences without regularization, mean entity F1 of testa and testb,
by conjugate gradient as in the paper. Separable data have no optimum without regularization; the
weights grow until the objective decreases by less than a thousandth in ten iterations.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fuda.formats.dataset import Dataset
from fuda.metrics import Score, entity_scores
from fuda.reproduce import spanish
from fuda.runtime.interrupts import inner_training

if TYPE_CHECKING:
    from fuda.models.crf import CRF

LOSSES = ("point", "k=1", "k=2", "k=3", "k=4", "k=5", "seq")
L2_GRID = (0.01, 0.03, 0.1, 0.3)
SIZES = (100, 200, 300, 400, 600, 800)
PAPER_TABLE_1 = (77.30, 77.40, 77.41, 77.53, 77.43, 77.36, 77.47)
PAPER_TABLE_2 = {
    100: (46.62, 46.65, 47.43, 47.33, 46.66, 45.60, 46.51),
    200: (51.58, 51.65, 51.69, 52.01, 52.07, 51.02, 51.68),
    300: (54.56, 54.13, 54.55, 54.72, 54.79, 54.43, 54.39),
    400: (55.55, 55.49, 55.04, 55.32, 55.24, 55.5, 55.08),
    600: (58.25, 58.25, 58.35, 57.97, 57.70, 57.74, 56.8),
    800: (59.56, 59.72, 59.71, 59.65, 59.35, 59.49, 58.31),
}


class Corpus(NamedTuple):
    """The three files of the Spanish corpus; observations are words only."""

    train: Dataset
    testa: Dataset
    testb: Dataset


class Tuned(NamedTuple):
    """A loss, the L2 weight chosen on testa, F1 on testa, and the scores on testb, in per cent."""

    loss: str
    l2: float
    testa: float
    precision: float
    recall: float
    testb: float


def load(folder: str | Path) -> Corpus:
    """Read the corpus.

    Parameters
    ----------
    folder : str or Path
        The folder of esp.train, esp.testa and esp.testb, or the parent of a folder conll2002 with
        them.

    Returns
    -------
    Corpus
        The three files.
    """
    return Corpus(*spanish.load(folder, "esp.train", "esp.testa", "esp.testb"))


def table_1(corpus: Corpus, progress: Callable[[str], None]) -> Iterator[Tuned]:
    """Tune the L2 weight of each loss on testa, and compute the scores on testb.

    Parameters
    ----------
    corpus : Corpus
        The three files.
    progress : callable
        Called with a line of text after each training.

    Yields
    ------
    Tuned
        The result of a loss.
    """
    for loss in LOSSES:
        results = []
        for l2 in L2_GRID:
            began = time.perf_counter()
            testa, testb = _scores(_fitted(loss, l2, corpus.train), corpus)
            percentages = (100 * x for x in (testa.f1, testb.precision, testb.recall, testb.f1))
            results.append(Tuned(loss, l2, *percentages))
            progress(f"{loss} l2={l2}: testa {100 * testa.f1:.2f} ({time.perf_counter() - began:.1f} s)")
        yield max(results, key=lambda tuned: tuned.testa)


def table_2(corpus: Corpus, progress: Callable[[str], None]) -> Iterator[tuple[int, list[float]]]:
    """Compute the mean F1 of testa and testb for each training size and loss.

    Parameters
    ----------
    corpus : Corpus
        The three files.
    progress : callable
        Called with a line of text after each training.

    Yields
    ------
    size : int
        The number of training sentences.
    row : list of float
        The mean F1 under each loss.
    """
    for size in SIZES:
        part = Dataset(corpus.train.records[:size])
        row = []
        for loss in LOSSES:
            row.append(50 * sum(score.f1 for score in _scores(_fitted(loss, 0.0, part), corpus)))
            progress(f"first {size} sentences, {loss}: {row[-1]:.2f}")
        yield size, row


def _scores(model: CRF, corpus: Corpus) -> list[Score]:
    """The entity scores of a model on testa and testb."""
    tests = (corpus.testa, corpus.testb)
    return [entity_scores(data.y or [], model.predict(data.X)).micro for data in tests]


def _fitted(loss: str, l2: float, data: Dataset) -> CRF:
    """A CRF fitted with a loss of `LOSSES`."""
    from sklearn.exceptions import ConvergenceWarning

    from fuda.models.crf import CRF

    name = {"point": "pointwise", "seq": "sequential"}.get(loss, "markov")
    order = float(loss[2:]) if name == "markov" else 0.0
    scale = order + 1.0 if name == "markov" else 1.0
    with warnings.catch_warnings(), inner_training():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = CRF(loss=name, order=order, l2=l2 * scale, features="S3", max_iter=300)
        if not l2:  # weights of separable data grow without bound: stop as the paper does
            model.set_params(solver="cg", tol=1e-3)
        return model.fit(data.X, data.y)
