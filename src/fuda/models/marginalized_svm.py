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
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from fuda.checks import check_counts, check_numbers, check_randomness
from fuda.errors import DataError, short
from fuda.kernels import Polynomial
from fuda.marginalized.machine import Machine, Side
from fuda.models.marginalized import MarginalizedLabeler
from fuda.progress import Iterations
from fuda.training.crammer_singer import ascend, position_gaps

Array = np.ndarray


class Epoch(NamedTuple):
    """Where training stood after an epoch; `gap` is (primal − dual) / primal."""

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
    C : how much a margin that is not kept costs, against the norm of the weights, above 0.
    tol, epochs : training ends when primal and dual differ by at most the share tol, or after so many epochs.
    kernel, features : the kernel between observations, and the feature set or function that it sees.
    label_kernel : the kernel between labels; None is the identity.
    mixing : c, what each node of a match weighs; None is the c at which a match of any length is bounded.
    prior, prior_form : P(y|x): "uniform", a labeler or arrays; its node "marginals", or as a "chain".
    gap : for sequences the price of a skipped node, from 0 (none is skipped) to 1.
    decode, scheme : "pointwise", or "viterbi" for the best labelling as a whole, well-formed under a scheme.
    calibrate : whether to fit probabilities, which decode="viterbi" and `predict_marginals` need.
    n_jobs : threads; None is all cores. Results do not depend on it.
    random_state : seed of the order in which positions are visited.
    verbose : whether to report epochs on standard error.

    `history_` has an `Epoch` for each epoch: dual and primal objective, their gap, support and time.

    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> MarginalizedSVM().fit(X, y).predict([["Ana", "is", "in", "Lima"]])[0]
    ['PER', 'O', 'O', 'LOC']
    """

    def __init__(
        self,
        C: float = 10.0,
        tol: float = 1e-2,
        epochs: int = 100,
        kernel: Any = None,
        features: Any = "spelling",
        window: int = 0,
        label_kernel: Any = None,
        mixing: float | None = None,
        prior: Any = "uniform",
        prior_form: str = "marginals",
        gap: float = 0.0,
        decode: str = "pointwise",
        scheme: str | None = None,
        calibrate: bool = True,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.tol = tol
        self.epochs = epochs
        self.kernel = Polynomial(2).normalized() if kernel is None else kernel
        self.features = features
        self.window = window
        self.label_kernel = label_kernel
        self.mixing = mixing
        self.prior = prior
        self.prior_form = prior_form
        self.gap = gap
        self.decode = decode
        self.scheme = scheme
        self.calibrate = calibrate
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        self._check_shared_parameters()
        check_randomness(self)
        check_numbers(self, "tol")
        check_numbers(self, "C", positive=True)
        check_counts(self, "epochs")

    def _largest_mixing(self, side: Side) -> float:
        return super()._largest_mixing(side) / float(np.sqrt(2.0))

    def _learn(self, side: Side, labels: Array, amounts: Array, alpha: Array) -> None:
        machine = self._machine(side, side)
        if machine.is_scaled:
            raise DataError(
                f"mixing={self.mixing_:g} with the kernel {short(self._kernel)}: the kernel of two positions "
                "may pass 1e260, where no margin means anything; choose a smaller mixing, or "
                "kernel.normalized()"
            )
        began = time.perf_counter()
        labels = np.where(amounts > 0, labels, -1)
        bounds = self.C * amounts / _mean_self_kernel(machine, labels)
        random = check_random_state(self.random_state)
        least = 0.0  # the gap of a position that is left alone
        self.history_: list[Epoch] = []
        with Iterations("MarginalizedSVM", shown=self.verbose) as progress:
            for _ in range(self.epochs):
                order = random.permutation(len(side.sizes))
                machine.visit_in(order)
                for i in order.tolist():
                    _improve(machine, i, alpha, labels, bounds, least, random)
                self.history_.append(_epoch(machine, alpha, labels, bounds, began))
                progress.say(len(self.history_), f"epoch {len(self.history_)}, {self.history_[-1]}")
                if self.history_[-1].gap <= self.tol:
                    break
                least = 0.5 * self.tol * self.history_[-1].primal / len(labels)
            else:
                warnings.warn(
                    f"MarginalizedSVM has not converged: after {self.epochs} epochs the gap is "
                    f"{self.history_[-1].gap:.2g}, and tol={self.tol:g}; allow more epochs, or a smaller C",
                    ConvergenceWarning,
                    stacklevel=5,
                )


def _improve(
    machine: Machine,
    structure: int,
    alpha: Array,
    labels: Array,
    bounds: Array,
    least: float,
    random: np.random.RandomState,
) -> None:
    """Ascend over the positions of a structure, and push what has changed."""
    nodes = machine.targets.nodes(structure)
    scores, old = np.ascontiguousarray(machine.scores(structure)), alpha[nodes].copy()
    if position_gaps(scores, old, labels[nodes], bounds[nodes]).max() > least:
        ascend(
            _labelled_kappa(machine, structure),
            machine.targets.prior.nodes[nodes],
            machine.label_gram,
            labels[nodes],
            bounds[nodes],
            least,
            random.permutation(len(scores)),
            scores,
            alpha[nodes],
        )
        machine.push(structure, alpha[nodes] - old)


def _labelled_kappa(machine: Machine, structure: int) -> Array:
    """κ(τ,t,σ) of a structure with itself, (T, T, L), or (T, T, 1) where it is the same for all labels."""
    kappa = np.asarray(machine.kappa(structure, structure))
    return kappa if kappa.ndim == 3 else kappa[:, :, None]


def _mean_self_kernel(machine: Machine, labels: Array) -> float:
    """The mean of K(t,t,y_t,y_t) over positions with a label; 1 where all are 0, or there is none."""
    own = np.zeros(len(labels))
    for structure in range(len(machine.targets.sizes)):
        nodes = machine.targets.nodes(structure)
        diagonal = np.diagonal(_labelled_kappa(machine, structure)).T  # (T, labels)
        squares = machine.targets.prior.nodes[nodes] ** 2 * np.diagonal(machine.label_gram) * diagonal
        own[nodes] = np.take_along_axis(squares, np.maximum(labels[nodes], 0)[:, None], axis=1)[:, 0]
    known = own[labels >= 0]
    return float(known.mean()) or 1.0 if len(known) else 1.0


def _epoch(machine: Machine, alpha: Array, labels: Array, bounds: Array, began: float) -> Epoch:
    known = np.flatnonzero(labels >= 0)
    scores = np.ascontiguousarray(machine.all_scores())
    dual = alpha[known, labels[known]].sum() - 0.5 * (alpha * scores).sum()
    primal = dual + position_gaps(scores, alpha, labels, bounds).sum()
    support = int(alpha.any(axis=1).sum())
    gap = float(1 - dual / primal) if primal > 0 else 0.0
    return Epoch(float(dual), float(primal), gap, support, time.perf_counter() - began)
