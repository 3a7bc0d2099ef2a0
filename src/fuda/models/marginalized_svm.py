"""The kernel marginalized labeling machine of largest margin: every position is an example.

A multi-class support vector machine (Crammer and Singer) with the marginalized kernel between
positions, trained by the coordinate ascent of `fuda.training.crammer_singer`: structure by
structure, position by position, each time to the best coefficients of that position. The dual
objective never falls; training ends when the primal objective is within the share `tol` above it.
Structures and positions come in a new random order every epoch: in the order of the data, where
neighbours are alike, the duality gap closes a hundred times more slowly.

C is in units of the kernel: C_t = C · weight of t / m, with m the mean of K(t,t,y_t,y_t) over
training positions, so that one C suits any kernel, prior and c.

**c.** A structure matches itself from end to end. With c²k = 1 that match weighs more than all
others together, and a large margin is reached by memorizing structures. Therefore mixing=None
chooses here from c with c²k ≤ ½, so that every further node of a match counts half or less.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from fuda.checks import check_arrays, check_counts, check_numbers, count_in, split_prefix
from fuda.errors import DataError, short
from fuda.marginalized.engines import Engine, Margins, make_engine
from fuda.marginalized.problem import Examples, Sources
from fuda.models.machines.validation import validation_of
from fuda.models.marginalized import MarginalizedLabeler
from fuda.progress import Callback, Iterations, warn
from fuda.runtime.estimators import ConvergenceWarning, check_random_state
from fuda.runtime.randomness import restore_random, stored_random
from fuda.storage.checkpoint import Checkpoint
from fuda.training.crammer_singer import duality_gaps

Array = np.ndarray

# The relative duality gap up to which machines are trained that compare values of c.
_GAP_OF_COMPARISON = 0.05
# Bounds of C_t: nodes with a smaller one are left out, and a larger one is an error.
_SMALLEST_BOUND, _LARGEST_BOUND = 1e-200, 1e100


class Epoch(NamedTuple):
    """The state of training after an epoch.

    Parameters
    ----------
    dual, primal : float
        The objectives.
    gap : float
        The relative duality gap, (primal − dual) / primal.
    support : int
        The number of nodes with coefficients.
    seconds : float
        Time since training began.
    """

    dual: float
    primal: float
    gap: float
    support: int
    seconds: float

    def __str__(self) -> str:
        duality_gap = f"duality gap {self.gap:.2g}"
        return f"dual {self.dual:,.4g}, {duality_gap}, support {self.support:,}, {self.seconds:.1f} s"


class MarginalizedSVM(MarginalizedLabeler):
    """Kernel marginalized labeling with a large margin, on sequences, trees and DAGs.

    Parameters
    ----------
    kernel : Kernel, callable or None, default=None
        The kernel k_x between observations. None is Polynomial(1).normalized() for the features
        "text" of words in sequences, else Polynomial(2).normalized(); on trees and DAGs plus
        Constant(0.5), where features are "text" Linear().normalized() + Constant(0.5).
    label_kernel : Kernel, ndarray of shape (n_labels, n_labels) or None, default=None
        The kernel k_y between labels; None is the identity.
    C : float, default=10.0
        The cost of a violated margin, in units of the kernel, above 0.
    mixing : float or None, default=None
        c, the weight of each node of a match; None chooses by held-out scores, from the largest c
        with c²k ≤ ½ downwards, so that every further node of a match counts half or less.
    gap : float, default=0.0
        For sequences the factor per skipped node of a match, from 0 (no gaps) to 1.
    parts : {"subtrees", "paths", "lines"}, also with "sided-" before it, or None, default=None
        What may match around two nodes of trees, and "paths" or "sided-paths" of DAGs: connected
        subtrees, directed paths, or paths between any two nodes; with sides a child before its
        parent, as nodes are numbered, matches only another such child. None chooses by held-out
        scores.
    prior : "uniform", HMM, MEMM, CRF or list of ndarray, default="uniform"
        P(y|x): uniform, the posterior of a labeler, which may be fitted or not, or one array of
        shape (n_nodes, n_labels) per structure.
    prior_form : {"marginals", "chain"}, default="marginals"
        Whether a labeler's prior is its node marginals, or its exact distribution over sequences.
    class_weight : dict, "balanced" or None, default=None
        Weights of nodes by their labels, for labels that are rare or matter more; "balanced" gives
        all labels the same weight in total.
    features : str, callable or None, default=None
        A feature set of `fuda.features`, or a function from an observation to names or a dict.
        None is "protein" or "dna" for residues or bases, "text" for sequences of up to 4,096
        distinct observations and for text in trees and DAGs where the kernel is None too, and
        "spelling" for all else, which is much faster where there are many.
    decode : {"posterior", "viterbi"} or None, default=None
        Predict the label of largest score of each node, or the best labeling as a whole. None is
        "viterbi" for sequences whose labels encode segments, such as B-PER, if `calibrate` is
        true, and where a scheme is given; else "posterior". Acts at once.
    scheme : {"IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU"} or None, default=None
        Predict only label sequences that are well-formed under this scheme; requires
        decode="viterbi". Acts at once.
    calibrate : bool, default=True
        Whether to fit probabilities, which decode="viterbi" and `predict_marginals` need, with up
        to five more machines trained on parts of the data.
    epochs : int, default=100
        The largest number of epochs.
    tol : float, default=1e-2
        The relative duality gap (primal − dual) / primal at which training ends.
    engine : {"auto", "cpu", "cuda"}, default="auto"
        The engine that computes scores: CPU cores, or an NVIDIA card. "auto" takes a card that can
        be used where the data are large. Acts at once.
    n_jobs : int or None, default=None
        Threads; None is all cores. Results do not depend on it. Acts at once.
    cluster : str or None, default=None
        The address of the scheduler of a Dask cluster, whose workers `fit` shares its structures
        out to, in place of `engine`. Results are the same. Never stored in model files.
    random_state : int, RandomState or None, default=0
        Seed of the order in which positions are visited.
    checkpoint : str, Path or None, default=None
        A file to which the state of training is written every few seconds and at the end. A fit
        of the same data and parameters that finds the file continues from it, to the identical
        result. `fit` leaves it there: remove it when the model is saved. Never stored in model
        files.
    callback : callable or None, default=None
        Called after every epoch with a `fuda.progress.Iteration`. It may raise StopIteration to
        end the training and keep what has been learned; after another exception the model is not
        fitted. Never stored in model files.
    verbose : bool, default=False
        Whether to report epochs on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,), dtype object
        The labels, sorted.
    history_ : list of Epoch
        Dual and primal objective, duality gap, support and time, by epoch. Not in model files.
    n_iter_ : int
        The number of epochs. Not in model files.
    kernel_ : Kernel
        The kernel that the model was fitted with.
    label_kernel_ : ndarray of shape (n_labels, n_labels)
        The matrix of the label kernel.
    mixing_ : float
        c as chosen or given.
    gap_ : float
        The factor per skipped node.
    parts_ : str
        The parts as chosen or given; "runs" for sequences.
    support_ : list of SupportPosition
        The nodes with coefficients.
    support_structures_ : list of structures
        Their structures.

    Notes
    -----
    K(τ,t,ρ,σ) sums over all matches of labelled parts of two structures that contain τ with label
    ρ and t with label σ, marginalized over the other labels by the prior: (10) of [1]_.
    The machine is that of [2]_, with C_t = C · weight of t / mean of K(t,t,y_t,y_t).

    References
    ----------
    .. [1] H. Kashima, Y. Tsuboi. Kernel-based discriminative learning algorithms for labeling
       sequences, trees, and graphs. ICML 2004, equation (10); sections
       4.1 to 4.3: the kernels.
    .. [2] K. Crammer, Y. Singer. On the algorithmic implementation of multiclass kernel-based
       vector machines. JMLR 2, 2001, equations (7) and (13).

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
        parts: str | None = None,
        prior: Any = "uniform",
        prior_form: str = "marginals",
        class_weight: Any = None,
        features: Any = None,
        decode: str | None = None,
        scheme: str | None = None,
        calibrate: bool = True,
        epochs: int = 100,
        tol: float = 1e-2,
        engine: str = "auto",
        n_jobs: int | None = None,
        cluster: str | None = None,
        random_state: int | np.random.RandomState | None = 0,
        checkpoint: str | Path | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernel, self.label_kernel, self.C = kernel, label_kernel, C
        self.mixing, self.gap, self.parts = mixing, gap, parts
        self.prior, self.prior_form, self.class_weight = prior, prior_form, class_weight
        self.features, self.decode, self.scheme, self.calibrate = features, decode, scheme, calibrate
        self.epochs, self.tol = epochs, tol
        self.engine, self.n_jobs, self.cluster, self.random_state = engine, n_jobs, cluster, random_state
        self.checkpoint, self.callback, self.verbose = checkpoint, callback, verbose

    history_: list[Epoch]

    @property
    def n_iter_(self) -> int:
        """The number of epochs."""
        return len(self.history_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_numbers(self, "tol")
        check_numbers(self, "C", positive=True)
        check_counts(self, "epochs")

    def _for_comparison(self) -> Self:
        self.tol = max(self.tol, _GAP_OF_COMPARISON)
        return self

    def _largest_mixing(self, examples: Examples) -> float:
        return super()._largest_mixing(examples) / float(np.sqrt(2.0))

    def _learn(
        self,
        sources: Sources,
        labels: Array,
        amounts: Array,
        alpha: Array,
        engines: list[Engine] | None = None,
    ) -> None:
        engine = make_engine(self.engine, sources.problem(), self.n_jobs)
        if engine.problem.is_scaled:
            raise DataError(
                f"mixing={self.mixing_:g} with the kernel {short(self.kernel_)}: the kernel of two positions "
                "may exceed 1e260, where margins are meaningless; choose a smaller mixing or "
                "kernel.normalized(), or split large structures"
            )
        labels = np.where(amounts > 0, labels, -1)
        bounds = self.C * amounts / _mean_self_kernel(engine, labels)
        if bounds.max() > _LARGEST_BOUND:
            raise DataError(
                f"C={self.C:g} with mixing={self.mixing_:g} and the kernel {short(self.kernel_)}: "
                f"coefficients may exceed {_LARGEST_BOUND:g}; choose a larger mixing, or a smaller C"
            )
        margins = Margins(np.where(bounds > _SMALLEST_BOUND, labels, -1), bounds, 0.0)
        training = _Ascent(engine, margins, check_random_state(self.random_state), alpha)
        validation = validation_of(self, sources, training, alpha.copy, training.return_to)
        checkpoint, self.history_ = Checkpoint(validation), training.history
        title, max_epochs = "MarginalizedSVM", self._max_epochs or self.epochs
        with Iterations(title, self.verbose, checkpoint, self.callback, validation=validation) as progress:
            progress.count = len(self.history_)
            ended = checkpoint.has_ended or validation.is_over
            while not ended and len(self.history_) < max_epochs:
                if self.history_ and self.history_[-1].gap <= self.tol:
                    break
                training.run_epoch(self.tol)
                last = self.history_[-1]
                ended = progress.report(objective=last.primal, gap=last.gap)
        ended |= validation.return_to_best() or max_epochs < self.epochs
        checkpoint.finish()
        if validation.held is not None:
            self.validation_curve_ = validation.curve
        if not ended and self.history_[-1].gap > self.tol:
            warn(
                f"MarginalizedSVM has not converged: after {self.epochs} epochs the duality gap is "
                f"{self.history_[-1].gap:.2g}, and tol={self.tol:g}; allow more epochs, or a smaller C",
                ConvergenceWarning,
            )


class _Ascent:
    """The epochs of a machine of largest margin; training can be continued after any of them."""

    def __init__(self, engine: Engine, margins: Margins, random: np.random.RandomState, alpha: Array) -> None:
        self.engine, self.margins, self.random, self.alpha = engine, margins, random, alpha
        self.history: list[Epoch] = []
        self._began = time.perf_counter()

    def run_epoch(self, tol: float) -> None:
        """Learn in one more epoch."""
        margins = self.margins
        if self.history:
            margins = margins._replace(tolerance=0.5 * tol * self.history[-1].primal / len(margins.labels))
        order = self.random.permutation(len(self.engine.problem.targets.sizes))
        scores = self.engine.margin_epoch(order, margins, self.alpha, self.random)
        self.history.append(_epoch(scores, self.alpha, margins, self._began))

    def return_to(self, alpha: Array, epochs: int) -> None:
        """Return to α after a number of epochs."""
        self.alpha[:] = alpha
        del self.history[epochs:]

    def state(self, final: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what the next epoch depends on; a `final` state has α and the history alone."""
        arrays = {"alpha": self.alpha, "random": stored_random(self.random)}
        arrays["history"] = np.array(self.history, dtype=np.float64).reshape(-1, len(Epoch._fields))
        if not final:
            arrays |= {f"engine_{name}": array for name, array in self.engine.state().items()}
        return {"final": final, "epochs": len(self.history)}, arrays

    def restore(self, values: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Continue from a `state()`; raises DataError where it does not fit this problem."""
        engine_arrays, arrays = split_prefix(arrays, "engine_")
        random = arrays.pop("random", np.empty(0))
        epochs = count_in(values, "epochs")
        check_arrays(arrays, {"alpha": self.alpha.shape, "history": (epochs, len(Epoch._fields))})
        if values.get("final") is not True:
            self.engine.restore(engine_arrays)
        restore_random(self.random, random)
        self.alpha[:] = arrays["alpha"]
        rows = arrays["history"].tolist()
        self.history.extend(Epoch._make([*row[:3], int(row[3]), row[4]]) for row in rows)
        self._began -= rows[-1][4] if rows else 0.0


def _mean_self_kernel(engine: Engine, labels: Array) -> float:
    """The mean of K(t,t,y_t,y_t) over labelled positions; 1 if all are 0 or there are none."""
    self_kernel, targets = np.zeros(len(labels)), engine.problem.targets
    for structure in range(len(targets.sizes)):
        nodes = targets.nodes(structure)
        diagonal = np.diagonal(engine.kappa(structure, structure).doubles()).T  # (T, labels)
        squares = targets.prior[nodes] ** 2 * np.diagonal(engine.problem.label_gram) * diagonal
        of_label = np.take_along_axis(squares, np.maximum(labels[nodes], 0)[:, None], axis=1)
        self_kernel[nodes] = of_label[:, 0]
    known = self_kernel[labels >= 0]
    return float(known.mean()) or 1.0 if len(known) else 1.0


def _epoch(scores: Array, alpha: Array, margins: Margins, began: float) -> Epoch:
    """The state of training, from the scores S (N, L) of α."""
    labels = margins.labels
    known = np.flatnonzero(labels >= 0)
    dual = alpha[known, labels[known]].sum() - 0.5 * (alpha * scores).sum()
    primal = dual + duality_gaps(scores, alpha, labels, margins.bounds).sum()
    support = int(alpha.any(axis=1).sum())
    duality_gap = float(1 - dual / primal) if primal > 0 else 0.0
    return Epoch(float(dual), float(primal), duality_gap, support, time.perf_counter() - began)
