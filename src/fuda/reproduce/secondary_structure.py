"""Protein secondary structure: three states from single sequences, on the domains of CB513.

The data are the 513 domains of J. A. Cuff and G. J. Barton (Proteins 34 (1999) 508), cut to what
they have of their chains, in seven folds by domain. Helices are H, G and I of DSSP,
strands E and B.

Methods see one chain at a time, and no related sequences. The last ones see pairs of residues and
hydrophobic moments (`fuda.features.structure`), and *ends*: labels are refined by how far a
residue is from the ends of its segment, so that the Markov model knows how segments begin and end
and that they have a least length; probabilities are summed over the refinements of a state.
"""

from __future__ import annotations

import csv
import gzip
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fuda.errors import DataError
from fuda.reproduce.corpora import find
from fuda.reproduce.segment_overlap import segment_overlap
from fuda.selection import splits
from fuda.selection.goals import Figure, figure

FOLDS = 7
STATES = "HEC"
# Features, ends and l2 of the last methods were chosen on this many first folds.
DEVELOPED_ON = 2
_FILE = "cb513.csv.gz"
# The number of residues from each end of a segment that have separate labels, by state.
ENDS = {"H": 2, "E": 1, "C": 0}
# The budget of Auto, in seconds.
_BUDGET = 120
# Models whose time grows with the square of the number of chains learn from so many chains.
_FEW = 60

# Q3 as published; that of GOR IV on these chains, that of the networks on others.
PUBLISHED = {
    "GOR IV on CB513, single sequences, G and B as coil (Cuff, Barton 1999)": 65.7,
    "SPIDER3-Single, a deep network (TEST2020, Singh et al. 2022)": 71.3,
    "SPOT-1D, profiles (TEST2020, Singh et al. 2022)": 80.5,
}


Labels = list[list[str]]


class Chains(NamedTuple):
    """Chains and the states of their residues."""

    X: list[list[str]]
    y: list[list[str]]

    def take(self, members: Iterable[int]) -> Chains:
        """Return some of the chains."""
        chosen = list(members)
        return Chains([self.X[i] for i in chosen], [self.y[i] for i in chosen])


class Row(NamedTuple):
    """The result of a method: by fold, and over all residues by state."""

    method: str
    q3: Figure
    q3_unseen: Figure  # over the folds that nothing was chosen on
    by_state: dict[str, float]
    overlap: Figure
    seconds: float


class Fold(NamedTuple):
    """States of the test chains of a fold, and the time of training and prediction."""

    truth: Labels
    predicted: Labels
    seconds: float

    @property
    def right(self) -> list[tuple[str, bool]]:
        """The true state of each residue, and whether it is predicted."""
        both = zip(self.truth, self.predicted, strict=True)
        return [(a, a == b) for labels in both for a, b in zip(*labels, strict=True)]

    @property
    def q3(self) -> float:
        """The share of residues whose state is predicted."""
        return float(np.mean([right for _, right in self.right]))


Predict = Callable[[Chains, list[list[str]]], Labels]  # from training chains and chains to label


def load(data: str | Path) -> Chains:
    """Read the domains of CB513.

    Parameters
    ----------
    data : str or Path
        The folder, or one above it, with cb513.csv.gz: columns input, dssp3 and, where only a part
        of a chain counts, cb513_mask.

    Returns
    -------
    Chains
        What the mask leaves of each chain; a chain of which it leaves nothing is left out.
    """
    path = find(data, "cb513", _FILE)
    X, y = [], []
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            try:
                mask = row.get("cb513_mask", "1 " * len(row["input"]))
                is_kept = [float(cell) > 0 for cell in mask.split()]
                pairs = list(zip(row["input"].upper(), row["dssp3"], is_kept, strict=True))
            except (KeyError, ValueError, AttributeError, TypeError):
                raise DataError(
                    f"{path}: record {number}: input, dssp3 and cb513_mask do not have the same length; "
                    "give the file as it was published"
                ) from None
            states = [state for _, state, keep in pairs if keep]
            if not set(states) <= set(STATES):
                other = next(state for state in states if state not in STATES)
                raise DataError(f"{path}: record {number}: dssp3 has {other!r}; states are H, E and C")
            if states:
                X.append([residue for residue, _, keep in pairs if keep])
                y.append(states)
    return Chains(X, y)


def refined(labels: Sequence[str]) -> list[str]:
    """Return labels that tell how far a residue is from the nearer end of its segment.

    Parameters
    ----------
    labels : sequence of str
        The states of a chain.

    Returns
    -------
    list of str
        The state, followed by the distance from the beginning or the end of its segment if small.

    Examples
    --------
    >>> refined("CHHHHHE")
    ['C', 'H+0', 'H+1', 'H', 'H-1', 'H-0', 'E+0']
    """
    labels_with_ends = []
    for state, run in groupby(labels):
        length = sum(1 for _ in run)
        for after in range(length):
            before = length - 1 - after
            near = min(after, before) < ENDS[state]
            labels_with_ends.append(
                f"{state}{'+' if after <= before else '-'}{min(after, before)}" if near else state
            )
    return labels_with_ends


def by_state(model: Any, X: list[Any]) -> list[np.ndarray]:
    """Return the probabilities of the states, summed over refinements; columns as `STATES`."""
    sums = np.array([[label[0] == state for state in STATES] for label in model.classes_], dtype=float)
    return [marginals @ sums for marginals in model.predict_marginals(X)]


def labelled(probabilities: list[np.ndarray]) -> Labels:
    """Return the most probable state of each residue."""
    states = np.array(list(STATES))
    return [states[rows.argmax(axis=1)].tolist() for rows in probabilities]


def methods() -> dict[str, Predict]:
    """Return the methods by name, in the order of the table."""
    from fuda.kernels import RBF, Polynomial, Substitution
    from fuda.models.auto import Auto
    from fuda.models.crf import CRF
    from fuda.models.hm_svm import HMSVM
    from fuda.models.hmm import HMM
    from fuda.models.marginalized_perceptron import MarginalizedPerceptron

    def plain(model: Any, chains: int | None = None) -> Predict:
        def predict(train: Chains, X: list[list[str]]) -> Labels:
            return list(model.fit(train.X[:chains], train.y[:chains]).predict(X))

        return predict

    def crf(**parameters: Any) -> Predict:
        return plain(CRF(l2=3.0, tol=1e-4, **parameters))

    def chosen(train: Chains, X: list[list[str]]) -> Labels:
        return list(Auto(_BUDGET).fit(*train).predict(X))

    svm: dict[str, Any] = {"features": "word", "window": 6, "rescale": True, "tol": 0.05}
    few = f", {_FEW} chains"
    marginalized = MarginalizedPerceptron(
        kernel=Substitution("BLOSUM62", beta=0.3466).normalized(), epochs=3, orders=1
    )
    return {
        "HMM": plain(HMM()),
        "CRF, Viterbi decoding": crf(decode="viterbi"),
        "CRF": crf(),
        "CRF, pointwise loss": crf(loss="pointwise"),
        "CRF, Markov loss": crf(loss="markov"),
        "HM-SVM, degree 2": plain(HMSVM(Polynomial(2, scale=0.1), C=0.05, **svm)),
        f"HM-SVM, RBF{few}": plain(HMSVM(RBF(0.05), C=0.1, **svm), _FEW),
        f"marginalized, BLOSUM62{few}": plain(marginalized, _FEW),
        f"CRF{few}": plain(CRF(l2=3.0, tol=1e-4), _FEW),
        f"Auto, {_BUDGET} seconds": chosen,
        "CRF, pairs and moments": _structured(ends=False),
        "CRF, pairs, moments, ends": _structured(ends=True),
    }


def _structured(ends: bool) -> Predict:
    """The CRF with the features of `fuda.features.structure`."""
    from fuda.features.structure import structure_columns, structure_template
    from fuda.models.crf import CRF

    def predict(train: Chains, X: list[list[str]]) -> Labels:
        model = CRF(l2=100.0, tol=1e-3, features=structure_template())
        y = list(map(refined, train.y)) if ends else train.y
        model.fit([structure_columns(x) for x in train.X], y)
        return labelled(by_state(model, [structure_columns(x) for x in X]))

    return predict


def evaluated(predict: Predict, chains: Chains, number: int) -> Fold:
    """Learn from all folds but one and label that, the folds counted from 0."""
    split = list(splits(len(chains.X), FOLDS, shuffle=True))[number]
    test, started = chains.take(split.test), time.process_time()
    predicted = predict(chains.take(split.train), test.X)
    return Fold(test.y, predicted, time.process_time() - started)


def summary(method: str, folds: Sequence[Fold]) -> Row:
    """Return the scores of a method by its folds, in their order."""
    by_fold, overlaps = [fold.q3 for fold in folds], []
    right: dict[str, list[bool]] = {state: [] for state in STATES}
    for fold in folds:
        for state, is_right in fold.right:
            right[state].append(is_right)
        both = zip(fold.truth, fold.predicted, strict=True)
        overlaps.append(float(np.mean([segment_overlap(*labels) for labels in both])) / 100)
    return Row(
        method,
        figure(by_fold),
        figure(by_fold[DEVELOPED_ON:]),
        {state: 100 * float(np.mean(values)) for state, values in right.items()},
        figure(overlaps),
        sum(fold.seconds for fold in folds),
    )


def comparison(
    chains: Chains, progress: Callable[[str], None], chosen: dict[str, Predict] | None = None
) -> Iterator[Row]:
    """Cross-validate the methods.

    Parameters
    ----------
    chains : Chains
        The data.
    progress : callable
        Called with a line of text after each fold.
    chosen : dict, optional
        Methods by name; by default all.

    Yields
    ------
    Row
        The scores of a method.
    """
    for name, predict in (methods() if chosen is None else chosen).items():
        folds: list[Fold] = []
        for number in range(FOLDS):
            folds.append(evaluated(predict, chains, number))
            text = f"Q3 {100 * folds[-1].q3:.2f}, {folds[-1].seconds:.0f} s"
            progress(f"{name}, fold {number + 1} of {FOLDS}: {text}")
        yield summary(name, folds)
