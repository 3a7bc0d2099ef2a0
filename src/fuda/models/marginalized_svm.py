"""The kernel marginalized labeling machine with a large margin: every position is one example.

A multi-class support vector machine (Crammer and Singer) with the marginalized kernel between
positions, trained by the coordinate ascent of `fuda.training.crammer_singer`: structure by
structure, position by position, each time to the best coefficients of that position. The dual
objective never falls; training ends when the primal objective is within the share `tol` above it.
Structures and positions come in a new random order every epoch: in the order of the data, where
neighbours are alike, the gap closes a hundred times more slowly.

C is in units of the kernel: C_t = C · weight of t / m, with m the mean of K(t,t,y_t,y_t) over training
positions, so that one C suits any kernel, prior and c.

**c.** A structure matches itself from end to end. When c²k is 1, that match is worth more than all others
together, and a machine that asks for a margin learns structures by heart. So mixing=None is here the c at
which c²k is never above ½, and every further node of a match counts half.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from fuda.checks import check_counts, check_numbers
from fuda.errors import DataError, short
from fuda.marginalized.engines import make_engine
from fuda.marginalized.engines.base import Engine, Margins
from fuda.marginalized.problem import Examples, Sources
from fuda.models.marginalized import MarginalizedLabeler
from fuda.progress import Callback, Iterations, warn
from fuda.training.crammer_singer import duality_gaps

Array = np.ndarray


class Epoch(NamedTuple):
    """Where training stood after an epoch; `gap` is the duality gap (primal − dual) / primal."""

    dual: float
    primal: float
    gap: float
    support: int
    seconds: float

    def __str__(self) -> str:
        return f"dual {self.dual:,.4g}, gap {self.gap:.2g}, support {self.support:,}, {self.seconds:.1f} s"


class MarginalizedSVM(MarginalizedLabeler):
    """Kernel marginalized labeling with a large margin, on sequences, trees and DAGs.

    Parameters
    ----------
    kernel : Kernel or callable, optional
        The kernel between observations; None is the normalized polynomial of degree 2.
    label_kernel : Kernel or array (labels, labels), optional
        The kernel between labels; None is the identity.
    C : float
        How much a margin that is not kept costs, against the norm of the weights, above 0.
    mixing : float, optional
        c, what each node of a match weighs; None is the c at which c²k is never above ½, so that every
        further node of a match counts half.
    gap : float
        For sequences the price of a skipped node, from 0 (none is skipped) to 1.
    prior : str, labeler or list of arrays
        P(y|x): "uniform", an HMM, MEMM or CRF, fitted or not, or an array (nodes, labels) per structure.
    prior_form : str
        How a labeler is used as prior: by its node "marginals", or exactly as a "chain".
    features : str or callable
        The feature set or function that the kernel sees.
    decode : str
        "pointwise", or "viterbi" for the best labeling as a whole.
    scheme : str, optional
        The tag scheme that labelings keep to, with decode="viterbi".
    calibrate : bool
        Whether to fit probabilities, which decode="viterbi" and `predict_marginals` need.
    epochs : int
        How often to go through the training structures, at most.
    tol : float
        Training ends when primal and dual objective differ by at most this share of the primal.
    engine : str
        What computes: "cpu", which is what "auto" chooses.
    n_jobs : int, optional
        Threads; None is all cores. Results do not depend on it.
    random_state : int or RandomState
        Seed of the order in which positions are visited.
    callback : callable, optional
        Called after every epoch with a `fuda.progress.Iteration`; StopIteration ends the training.
    verbose : bool
        Whether to report epochs on standard error.

    Attributes
    ----------
    classes_ : labels, in the order of columns
    history_ : list of Epoch
        Dual and primal objective, duality gap, support and time after each epoch.
    n_iter_ : int
        The number of epochs.
    kernel_, label_kernel_, mixing_, gap_ : the parameters that the model was fitted with, defaults
        resolved; `label_kernel_` is a matrix.
    support_, support_structures_ : the nodes with coefficients, and their structures

    Examples
    --------
    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> MarginalizedSVM().fit(X, y).predict([["Ana", "is", "in", "Lima"]])[0]
    ['PER', 'O', 'O', 'LOC']
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        label_kernel: Any = None,
        C: float = 10.0,
        mixing: float | None = None,
        gap: float = 0.0,
        prior: Any = "uniform",
        prior_form: str = "marginals",
        features: Any = "spelling",
        decode: str = "pointwise",
        scheme: str | None = None,
        calibrate: bool = True,
        epochs: int = 100,
        tol: float = 1e-2,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernel, self.label_kernel, self.C = kernel, label_kernel, C
        self.mixing, self.gap = mixing, gap
        self.prior, self.prior_form = prior, prior_form
        self.features, self.decode, self.scheme, self.calibrate = features, decode, scheme, calibrate
        self.epochs, self.tol = epochs, tol
        self.engine, self.n_jobs, self.random_state = engine, n_jobs, random_state
        self.callback, self.verbose = callback, verbose

    history_: list[Epoch]

    @property
    def n_iter_(self) -> int:
        return len(self.history_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_numbers(self, "tol")
        check_numbers(self, "C", positive=True)
        check_counts(self, "epochs")

    def _largest_mixing(self, examples: Examples) -> float:
        return super()._largest_mixing(examples) / float(np.sqrt(2.0))

    def _learn(self, sources: Sources, labels: Array, amounts: Array, alpha: Array) -> None:
        engine = make_engine(self.engine, sources.problem(), self.n_jobs)
        if engine.problem.is_scaled:
            raise DataError(
                f"mixing={self.mixing_:g} with the kernel {short(self.kernel_)}: the kernel of two positions "
                "may pass 1e260, where no margin means anything; choose a smaller mixing, or "
                "kernel.normalized()"
            )
        began = time.perf_counter()
        labels = np.where(amounts > 0, labels, -1)
        margins = Margins(labels, self.C * amounts / _mean_self_kernel(engine, labels), 0.0)
        random = check_random_state(self.random_state)
        self.history_ = []
        with Iterations("MarginalizedSVM", self.verbose, self.callback) as progress:
            for _ in range(self.epochs):
                order = random.permutation(len(engine.problem.targets.sizes))
                scores = engine.margin_epoch(order, margins, alpha, random)
                last = _epoch(scores, alpha, margins, began)
                self.history_.append(last)
                if progress.report(objective=last.primal, gap=last.gap) or last.gap <= self.tol:
                    break
                margins = margins._replace(tolerance=0.5 * self.tol * last.primal / len(labels))
            else:
                warn(
                    f"MarginalizedSVM has not converged: after {self.epochs} epochs the gap is "
                    f"{self.history_[-1].gap:.2g}, and tol={self.tol:g}; allow more epochs, or a smaller C",
                    ConvergenceWarning,
                )


def _mean_self_kernel(engine: Engine, labels: Array) -> float:
    """The mean of K(t,t,y_t,y_t) over positions with a label; 1 where all are 0, or there is none."""
    own, side = np.zeros(len(labels)), engine.problem.targets
    for structure in range(len(side.sizes)):
        nodes = side.nodes(structure)
        diagonal = np.diagonal(engine.kappa(structure, structure).doubles()).T  # (T, labels)
        squares = side.prior[nodes] ** 2 * np.diagonal(engine.problem.label_gram) * diagonal
        own[nodes] = np.take_along_axis(squares, np.maximum(labels[nodes], 0)[:, None], axis=1)[:, 0]
    known = own[labels >= 0]
    return float(known.mean()) or 1.0 if len(known) else 1.0


def _epoch(scores: Array, alpha: Array, margins: Margins, began: float) -> Epoch:
    """Where training stands, by the scores S (N, L) of α."""
    labels = margins.labels
    known = np.flatnonzero(labels >= 0)
    dual = alpha[known, labels[known]].sum() - 0.5 * (alpha * scores).sum()
    primal = dual + duality_gaps(scores, alpha, labels, margins.bounds).sum()
    support = int(alpha.any(axis=1).sum())
    gap = float(1 - dual / primal) if primal > 0 else 0.0
    return Epoch(float(dual), float(primal), gap, support, time.perf_counter() - began)
