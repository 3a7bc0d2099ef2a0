"""Genes: prediction of the translated parts of mouse loci, cross-validated over loci.

Two models share features and weights (`fuda.reproduce.gene_signals`): a chain of bases
(`fuda.reproduce.gene_chain`), and segments, which score the lengths of exons too
(`fuda.reproduce.gene_segments`). Weights are those of counts, or learned: for the chain by the
likelihood, for segments by the accuracy on the training loci.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fuda.reproduce.gene_chain import COUNTED, PLAIN, TIED, Machine, learned, pieces_of
from fuda.reproduce.gene_segments import Scores, best_exons, log_lengths, segment_scores
from fuda.reproduce.gene_signals import Counts, Locus, Signals, counts, load, repeated_words
from fuda.runtime.parallel import run

Array = np.ndarray
Exons = list[tuple[int, int]]
FOLDS = 8
# Features and the search of weights were developed on this many first folds.
DEVELOPED_ON = 3
# The search of weights for segments: its starting point, found on the folds above, and its
# directions, each of which is followed as long as the result improves.
_BEGINNING = {"codons": 0.65, "exon": 2.5, "gc of exons": -0.04, "repeat": -0.4, "GT": 2.6, "ATG": 3.5}
_DIRECTIONS: list[dict[str, float]] = [
    {"exon": 1.0},
    {"codons": -0.1, "exon": 1.0},
    {"gc of exons": -0.02},
    {"GT": 0.3, "AG": 0.3},
    {"outside": 0.1},
    {"ATG": -0.5},
]
_NONE = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
# Means over sequences as published, in per cent: bases, AC and exons, where one figure for exons
# is the mean of sensitivity and specificity. On the 570 vertebrate sequences of Burset and Guigó:
# a page of GENSCAN, http://genes.mit.edu/Accuracy.html. On the 92 murine sequences of HMR195:
# S. Rogic et al., Genome Research 11 (2001) 817, table 7.
_VERTEBRATE, _MURINE = "(570 vertebrate sequences)", "(92 murine sequences)"
PUBLISHED = {
    f"GENSCAN {_VERTEBRATE}": ("93 / 93", 91, "78 / 81"),
    f"FGENEH {_VERTEBRATE}": ("77 / 85", 78, "61 / 61"),
    f"GENSCAN {_MURINE}": ("", 92, "70"),
    f"HMMgene {_MURINE}": ("", 92, "79"),
    f"FGENES {_MURINE}": ("", 82, "68"),
    f"GeneMark.hmm {_MURINE}": ("", 84, "51"),
}


class Row(NamedTuple):
    """The result of a method: per cent, over all loci and over those of the unseen folds.

    Attributes
    ----------
    method : str
    bases : (2,) array
        Sensitivity and specificity of translated bases, of all loci together.
    exons : (2,) array
        Those of exons, both of whose ends must be right.
    mean_bases, mean_exons : (2,) array
        Means over loci; specificity over those with a prediction.
    correlation : float
        The mean over loci of the approximate correlation AC.
    unseen : (2,) array
        `exons` of the folds that nothing was chosen on.
    genes : int
        How many genes are right as a whole.
    seconds : float
    predicted : list of lists of (start, end)
        The exons that are predicted, by locus.
    """

    method: str
    bases: Array
    exons: Array
    mean_bases: Array
    mean_exons: Array
    correlation: float
    unseen: Array
    genes: int
    seconds: float
    predicted: list[Exons]


class Method(NamedTuple):
    """How genes are found.

    Attributes
    ----------
    segments : bool
        By segments, or by a chain.
    learn : bool
        With weights that are learned, or those of counts.
    """

    segments: bool
    learn: bool


METHODS = {
    "chain, counts": Method(segments=False, learn=False),
    "chain, CRF": Method(segments=False, learn=True),
    "segments, counts": Method(segments=True, learn=False),
    "segments, searched": Method(segments=True, learn=True),
}


class Finder:
    """A gene finder, learned from loci.

    Parameters
    ----------
    loci : list of Locus
        What to learn from.
    counted : list of Counts
        Their counts.
    method : Method
        How genes are found.
    """

    def __init__(self, loci: Sequence[Locus], counted: Sequence[Counts], method: Method) -> None:
        self.method, self.weights = method, COUNTED
        self.machine = Machine(PLAIN) if method.segments else Machine()
        labels = [self.machine.labels(locus) for locus in loci]
        self.steps = self.machine.steps(labels)
        self.lengths = log_lengths([locus.exons for locus in loci])
        total = counted[0]
        for other in counted[1:]:
            total = total.plus(other)
        self.signals, self.repeated = Signals(total), repeated_words(loci)
        if method.learn:
            features = [
                Signals(total.plus(of_locus, -1)).features(
                    locus.bases, self.repeated, repeated_words([locus])
                )
                for locus, of_locus in zip(loci, counted, strict=True)
            ]
            self.weights = (self._searched if method.segments else self._likely)(loci, features)

    def exons(self, bases: Array) -> Exons:
        """Return the predicted exons on the strand of `bases`."""
        return self._scored(bases)[0]

    def exons_of_either(self, bases: Array) -> tuple[Exons, bool]:
        """Return the exons of the strand with the higher score, and whether it is that of `bases`.

        Positions of exons are those on the strand of `bases`. If no gene is found, both strands
        have the same score; genes on both strands at once are not found.
        """
        (forward, score), (backward, other) = self._scored(bases), self._scored(3 - bases[::-1])
        if score >= other:
            return forward, True
        return sorted((len(bases) - end, len(bases) - start) for start, end in backward), False

    def _scored(self, bases: Array) -> tuple[Exons, float]:
        return self._exons(bases, self.signals.features(bases, self.repeated, _NONE), self.weights)

    def _exons(self, bases: Array, features: Array, weights: Array) -> tuple[Exons, float]:
        if self.method.segments:
            return best_exons(self._segment_scores(bases, features, weights))
        return self.machine.predict(bases, self.machine.scores(features, weights), self.steps)

    def _segment_scores(self, bases: Array, features: Array, weights: Array) -> Scores:
        return segment_scores(bases, self.machine.scores(features, weights), self.steps, self.lengths)

    def _likely(self, loci: Sequence[Locus], features: Sequence[Array]) -> Array:
        """The weights of a CRF, learned without the memory of introns, at little loss."""
        plain = Machine(PLAIN)
        steps = plain.steps([plain.labels(locus) for locus in loci])
        return learned(plain, pieces_of(plain, loci, features), steps)

    def _searched(self, loci: Sequence[Locus], features: Sequence[Array]) -> Array:
        """The weights of highest accuracy on the loci, by a search along `_DIRECTIONS`."""

        def score(weights: Array) -> float:
            predicted = run(lambda k: self._exons(loci[k].bases, features[k], weights)[0], range(len(loci)))
            result = accuracy(loci, predicted)
            return float(_shares(result["exons"]).mean() + 100 * result["correlation"].mean())

        weights = np.array([_BEGINNING.get(name, weight) for name, (weight, _) in TIED.items()])
        best = score(weights)
        for direction in _DIRECTIONS:
            step = np.array([direction.get(name, 0.0) for name in TIED])
            for sign in (1, -1):
                while (value := score(weights + sign * step)) > best:
                    weights, best = weights + sign * step, value
        return weights


def accuracy(loci: Sequence[Locus], predicted: Sequence[Exons]) -> dict[str, Array]:
    """Compare predicted exons with those of loci, by the definitions of Burset and Guigó.

    Parameters
    ----------
    loci : list of Locus
        What is true.
    predicted : list of lists of (start, end)
        Exons.

    Returns
    -------
    dict
        Per locus, ``bases`` and ``exons`` (n, 3): how many are right, true and predicted;
        ``correlation`` (n,), AC; ``genes`` (n,), whether all exons are right.
    """
    bases, exons, correlation = [], [], []
    for locus, found in zip(loci, predicted, strict=True):
        true, ours = (np.zeros(len(locus.bases), dtype=bool) for _ in range(2))
        for marked, parts in ((true, locus.exons), (ours, found)):
            for start, end in parts:
                marked[start:end] = True
        bases.append([(true & ours).sum(), true.sum(), ours.sum()])
        exons.append([len(set(locus.exons) & set(found)), len(locus.exons), len(found)])
        same = true == ours
        shares = [same[part].mean() for part in (true, ours, ~true, ~ours) if part.any()]
        correlation.append(2 * (np.mean(shares) - 0.5))
    return {
        "bases": np.array(bases, dtype=float),
        "exons": np.array(exons, dtype=float),
        "correlation": np.array(correlation),
        "genes": np.array([locus.exons == found for locus, found in zip(loci, predicted, strict=True)]),
    }


def _shares(table: Array) -> Array:
    """Sensitivity and specificity, in per cent, of numbers right, true and predicted."""
    right, *totals = table.sum(axis=0)
    return 100 * right / np.maximum(totals, 1)


def _mean_shares(table: Array) -> Array:
    """Their means over loci; specificity over those with a prediction."""
    some = table[table[:, 2] > 0]
    return 100 * np.array([(table[:, 0] / table[:, 1]).mean(), (some[:, 0] / some[:, 2]).mean()])


class Fold(NamedTuple):
    """The exons that are predicted in the loci of a fold, by number, and the time it took."""

    exons: dict[int, Exons]
    seconds: float


def folds_of(loci: Sequence[Locus]) -> list[Array]:
    """Return the numbers of the loci of each fold."""
    order = np.random.RandomState(0).permutation(len(loci))
    return [order[k::FOLDS] for k in range(FOLDS)]


def evaluated(method: Method, loci: Sequence[Locus], counted: Sequence[Counts], fold: Array) -> Fold:
    """Learn from all other loci and find the exons of those of a fold."""
    started = time.process_time()
    train = [i for i in range(len(loci)) if i not in fold]
    finder = Finder([loci[i] for i in train], [counted[i] for i in train], method)
    exons = {int(i): finder.exons(loci[i].bases) for i in fold}
    return Fold(exons, time.process_time() - started)


def summary(method: str, loci: Sequence[Locus], folds: Sequence[Fold]) -> Row:
    """Return the scores of a method by all of its folds."""
    by_locus = {i: exons for fold in folds for i, exons in fold.exons.items()}
    predicted = [by_locus[i] for i in range(len(loci))]
    result = accuracy(loci, predicted)
    unseen = np.concatenate(folds_of(loci)[DEVELOPED_ON:])
    return Row(
        method,
        _shares(result["bases"]),
        _shares(result["exons"]),
        _mean_shares(result["bases"]),
        _mean_shares(result["exons"]),
        100 * float(result["correlation"].mean()),
        _shares(result["exons"][unseen]),
        int(result["genes"].sum()),
        sum(fold.seconds for fold in folds),
        predicted,
    )


def comparison(data: str | Path, progress: Callable[[str], None]) -> Iterator[Row]:
    """Cross-validate the methods over folds of loci.

    Parameters
    ----------
    data : str or Path
        The folder with the loci.
    progress : callable
        Called with a line of text before and after each fold.

    Yields
    ------
    Row
        The scores of a method.
    """
    loci = load(data)
    counted = [counts(locus) for locus in loci]
    for name, method in METHODS.items():
        folds: list[Fold] = []
        for k, fold in enumerate(folds_of(loci), 1):
            progress(f"{name}, fold {k} of {FOLDS}")
            folds.append(evaluated(method, loci, counted, fold))
            result = accuracy([loci[i] for i in fold], [folds[-1].exons[i] for i in fold])
            sensitivity, specificity = _shares(result["exons"])
            progress(f"{name}, fold {k} of {FOLDS}: exons {sensitivity:.1f} and {specificity:.1f} %")
        yield summary(name, loci, folds)
