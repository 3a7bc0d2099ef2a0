"""The hidden Markov support vector machine: labels by a Markov model of largest margin.

    F(x, y) = Σ_t s_t(y_t) + Σ_{edges p→t} A(y_p, y_t),     s_t(σ) = Σ_τ β(τ, σ) k(x_τ, x_t)

with any kernel k on windows of observations. The right labeling y_i of each training structure
shall score more than any other by the loss Δ_i(y), which is 1, or with `rescale` the number of
wrong nodes:

    minimize ½‖w‖² + C Σ_i ξ_i  (slack "l1"), or + C/2 Σ_i ξ_i² ("l2"), or no slack at all (None),
    subject to F(x_i, y_i) − F(x_i, y) ≥ Δ_i(y) − ξ_i for all y ≠ y_i.

The solution is w = Σ_i Σ_y α_i(y) [Φ(x_i, y_i) − Φ(x_i, y)] over few *support sequences* y, those
with α_i(y) > 0, so that β and A count, weighted by α, labels and label pairs of y_i that y does
not have, minus those of y that y_i does not have. `fuda.training.max_margin` finds α.
"""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fuda.checks import check_counts, check_flags, check_numbers, is_choice
from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded
from fuda.errors import DataError, short
from fuda.functions import CACHE_BYTES, LabelFunction, function_for, scores_for, squared_norms
from fuda.kernels import Polynomial, as_kernel
from fuda.models.base import Labeler
from fuda.models.explained import markov as explained_markov
from fuda.models.files import hm_svm as hm_svm_file
from fuda.models.fitting.training_data import TrainingData
from fuda.models.fitting.validation import Validation
from fuda.models.likeliest import ScaledLoss, sampled
from fuda.models.markov import MarkovLabeler
from fuda.optimize.result import INTERRUPTED
from fuda.progress import Callback, Iterations, warn
from fuda.runtime.estimators import ConvergenceWarning, check_is_fitted
from fuda.runtime.interrupts import is_inner
from fuda.storage.checkpoint import Checkpoint
from fuda.training.max_margin import SLACKS, MaxMargin, Measured, violations
from fuda.training.working_sets import combine

Array = np.ndarray
Multipliers = list[tuple[Array, Array]]  # of each structure, labelings and their α
_CLOSE_FIT = 100.0  # with a larger C · k(x, x), hardly any margin is violated


class SupportSequence(NamedTuple):
    """A labeling that the solution depends on.

    Parameters
    ----------
    structure : int
        The number of the training structure.
    labels : list
        Its labels.
    alpha : float
        Its multiplier α.
    """

    structure: int
    labels: list[Any]
    alpha: float


# C = 1 suits kernel values of 3: with 100 to 8,000 sentences, in four languages, larger and
# smaller values are worse on average, and so is a margin of 1 for all labelings.
_LINEAR, _SQUARE = 3 * Polynomial(1).normalized(), 3 * Polynomial(2).normalized()
_USUAL_SQUARE = 30.0  # the usual number of features of a node, each with the value 1
_NAMED = ("text", "columns", "features")  # kinds of observations whose features have names


class HMSVM(MarkovLabeler):
    """Hidden Markov support vector machine on sequences and trees.

    Parameters
    ----------
    kernel : Kernel, callable or None, default=None
        A kernel of `fuda.kernels` on windows of observations, or a function of two observations.
        None is ``3 * Polynomial(1).normalized()`` for words, columns and given features, whose
        features tell enough one by one, and ``3 * Polynomial(2).normalized()`` for all else.
    C : float, default=1.0
        The cost of a violated margin. The larger C and the values of the kernel are, the closer
        the fit.
    slack : {"l1", "l2"} or None, default="l1"
        Violations cost in proportion ("l1") or in proportion to their squares ("l2"). None:
        margins are not violated, and data for which that is impossible are an error.
    rescale : bool or None, default=None
        Whether a labeling must be outscored by its number of wrong nodes, and not by 1, as in
        [1]_. Then `position_weight` may give the cost of a wrong node. None is True with the
        default kernel, and False with a given one.
    class_weight : dict, "balanced" or None, default=None
        Weights of nodes by their labels, for labels that are rare or matter more; "balanced" gives
        all labels the same weight in total. Needs `rescale`: it is then the cost of a wrong node.
    features : str, Template, callable or None, default=None
        A feature set of `fuda.features`, a template, or a function from an observation to names or
        a dict. None is "protein" or "dna" for residues or bases; for all else "text" with the
        default kernel, and "spelling", which has fewer of them, with a given one.
    window : int or None, default=None
        How many neighbours to each side are seen, with weights of their own. None is 1, with the
        features of residues 7, of bases 6, and 0 for dicts, lists and sets of features.
    scheme : {"IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU"} or None, default=None
        Predict only label sequences that are well-formed under this scheme. Acts at once.
    outside_penalty : float, default=0.0
        Subtracted from the score of the label O at every node when predicting: with little data
        many entities are missed, and a penalty around 1 finds more of them. Acts at once.
    max_iter : int, default=1000
        The largest number of rounds.
    tol : float, default=1e-3
        The relative duality gap (primal − dual) / primal at which training ends.
    n_jobs : int or None, default=None
        Threads; None is all cores. Results do not depend on it. Acts at once.
    cache_bytes : int, default=1073741824
        How many bytes kernel values, or the monomials of a polynomial kernel, may take in memory.
        Results do not depend on it, up to rounding; time does.
    random_state : int, RandomState or None, default=0
        Seed of the order in which structures are visited.
    checkpoint : str, Path or None, default=None
        A file to which the state of training is written every few seconds and at the end. A fit
        of the same data and parameters that finds the file continues from it, to the identical
        result. `fit` leaves it there: remove it when the model is saved. Never stored in model
        files.
    callback : callable or None, default=None
        Called after every round with a `fuda.progress.Iteration`. It may raise StopIteration to
        end the training and keep what has been learned; after another exception the model is not
        fitted. Never stored in model files.
    verbose : bool, default=False
        Whether to report rounds on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,), dtype object
        The labels, sorted.
    kernel_ : Kernel
        The kernel that the model was fitted with.
    transitions_ : ndarray of shape (n_labels, n_labels)
        The weights of label pairs; the label of the parent by rows.
    support_ : list of SupportSequence
        The support sequences; `show_support` prints them.
    square_ : float
        ‖w‖².
    history_ : list of Measured
        Dual and primal objective, duality gap and number of support sequences, by round. Not in
        model files.
    n_iter_ : int
        The number of rounds. Not in model files.

    Notes
    -----
    The problem is (13) to (15) of [1]_ in difference form, its dual (16), with L1 or L2 slack or
    none, solved by the working sets of Algorithm 2. `sample_weight` multiplies the C of a
    structure; 0 leaves it out. All labels have to be known.

    Scores are not log-probabilities. `predict_marginals` and the values of `predict_nbest` are of
    the CRF with these scores times one number, with which it is likeliest.

    References
    ----------
    .. [1] Y. Altun, I. Tsochantaridis, T. Hofmann. Hidden Markov support vector machines.
       ICML 2003, equations (13) to (16) and Algorithm 2; section 7: slack.

    Examples
    --------
    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> model = HMSVM().fit(X, y)
    >>> model.predict([["Ana", "is", "in", "Lima"]])[0]
    ['PER', 'O', 'O', 'LOC']
    >>> model.history_[-1].gap < 1e-3
    True
    """

    decode = "viterbi"
    _estimates_probabilities = False
    _defaults: ClassVar[dict[str, Any]] = {"kernel": _LINEAR, "features": "text", "rescale": True}
    _minimum_counts: ClassVar[tuple[int, int]] = (0, 2)  # those of monomials come on top

    def __init__(
        self,
        kernel: Any = None,
        *,
        C: float = 1.0,
        slack: str | None = "l1",
        rescale: bool | None = None,
        class_weight: Any = None,
        features: Any = None,
        window: int | None = None,
        scheme: str | None = None,
        outside_penalty: float = 0.0,
        max_iter: int = 1000,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        cache_bytes: int = CACHE_BYTES,
        random_state: int | np.random.RandomState | None = 0,
        checkpoint: str | Path | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernel, self.C, self.slack, self.rescale = kernel, C, slack, rescale
        self.class_weight = class_weight
        self.features, self.window, self.scheme = features, window, scheme
        self.outside_penalty = outside_penalty
        self.max_iter, self.tol = max_iter, tol
        self.n_jobs, self.cache_bytes, self.random_state = n_jobs, cache_bytes, random_state
        self.checkpoint, self.callback, self.verbose = checkpoint, callback, verbose

    @property
    def support_(self) -> list[SupportSequence]:
        """The support sequences, by structure; those of one structure with the largest α first."""
        check_is_fitted(self, "classes_")
        return [
            SupportSequence(int(self._structures[k]), [self.classes_[b] for b in labels], float(alpha))
            for k, labels, alpha in zip(self._owners, self._labelings, self._alpha, strict=True)
        ]

    def show_support(self, structure: int) -> str:
        """Return the support sequences of a training structure as text.

        Below the observations and the right labels, each support sequence has a line with its α
        and the labels that differ from the right ones.

        Parameters
        ----------
        structure : int
            The number of the training structure.

        Returns
        -------
        str
            Aligned lines.
        """
        check_is_fitted(self, "classes_")
        matches = np.flatnonzero(self._structures == structure)
        if not len(matches):
            return f"structure {structure} has no support sequences: its margin is kept without them"
        k = int(matches[0])
        right = [str(self.classes_[b]) for b in self._rights[k]]
        assert self._support is not None  # there is a support sequence
        rows = [["", *map(_shown, self._support.corpus.structures[k])], ["right", *right]]
        for j in np.flatnonzero(self._owners == k):
            labels = [str(self.classes_[b]) for b in self._labelings[j]]
            differing = ["·" if a == b else a for a, b in zip(labels, right, strict=True)]
            rows.append([f"{self._alpha[j]:.4f}", *differing])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(line.rstrip() for line in lines)

    def objective(self, X: Any, y: Any, *, sample_weight: Any = None, position_weight: Any = None) -> float:
        """Compute ½‖w‖² + C Σ ξ_i ("l1") or ½‖w‖² + C/2 Σ ξ_i² ("l2") at the fitted weights.

        Without slack it is infinite where a margin is violated by more than `tol`. On the data of
        `fit` it is the primal value that training ended at.

        Parameters
        ----------
        X : list of structures
            Structures to sum over.
        y : list of lists
            Their labels.
        sample_weight : array-like of shape (n_structures,), optional
            Weights of structures.
        position_weight : list of array-like, optional
            The costs of wrong nodes, with `rescale`, one array per structure.

        Returns
        -------
        float
            The objective.
        """
        data = self._labelled(X, y, sample_weight, position_weight)
        weights, loss, right = self._costs(data), self._loss(data), _complete_labels(data)
        violated = violations(data.encoded.corpus.graph, right, *self._scores(data.encoded), loss)
        slacks = np.where(weights > 0, np.maximum(violated, 0.0), 0.0)
        slack = self._fitted_params["slack"]
        if slack is None:
            return self.square_ / 2 if (slacks <= self._fitted_params["tol"]).all() else np.inf
        return self.square_ / 2 + float(weights @ slacks if slack == "l1" else weights @ slacks**2 / 2)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_numbers(self, "tol")
        check_numbers(self, "C", positive=True)
        if not is_choice(self.slack, SLACKS):
            raise DataError(f"slack={short(self.slack)}: choose 'l1', 'l2' or None")
        if self.rescale is not None:
            check_flags(self, "rescale")
        rescaled = self.kernel is None if self.rescale is None else self.rescale
        if self.class_weight is not None and not rescaled:
            raise DataError(
                "class_weight is the cost of a wrong node where margins are rescaled; set rescale=True"
            )
        check_counts(self, "max_iter")
        check_counts(self, "cache_bytes", least=0)

    def _defaults_by(self, corpus: Corpus, letters: str | None) -> dict[str, Any]:
        is_named = corpus.kind.name in _NAMED and letters is None
        return {
            "kernel": _LINEAR if is_named else _SQUARE,
            "features": letters or ("text" if self.kernel is None else "spelling"),
            "rescale": self.kernel is None,
        }

    def _costs(self, data: TrainingData) -> Array:
        """The cost C_i of each structure."""
        weights = np.ones(len(data.encoded.corpus)) if data.sample_weight is None else data.sample_weight
        return float(self._fitted_params["C"]) * weights

    def _loss(self, data: TrainingData) -> Array:
        """The loss of each wrong node; empty if every wrong labeling has the loss 1."""
        weights = data.position_weight
        if self._fitted_params["rescale"]:
            return np.ones(data.encoded.corpus.size) if weights is None else weights
        if weights is not None:
            raise DataError(
                "position_weight is the cost of a wrong node where margins are rescaled; choose "
                "rescale=True, or weigh structures by sample_weight"
            )
        return np.empty(0)

    def _fit(self, data: TrainingData) -> None:
        encoded, right = data.encoded, _complete_labels(data)
        self._refuse_pair_features(encoded)
        self.kernel_ = as_kernel(self._fitted_params["kernel"])
        problem = MaxMargin(
            encoded.corpus.graph,
            right,
            scores_for(self.kernel_, encoded, len(self.classes_), self.n_jobs, self.cache_bytes),
            self._costs(data),
            self.slack,
            self._loss(data),
            self.random_state,
            self.n_jobs,
        )

        def predict(others: Encoded) -> list[list[Any]]:
            probe = copy(self)
            probe._keep_support(problem.multipliers(), right, encoded)
            probe._prepare_predictions()
            return self._labels_of_numbers(others, probe._best_labels(others, None))

        validation = Validation(problem, data.held, predict)
        reason, (self.history_, multipliers) = self._run(problem, validation)
        if data.held is not None:
            self.validation_curve_ = validation.curve
        self.n_iter_ = len(self.history_)
        if reason is not None:
            warn(
                f"the HMSVM has not converged: {reason}; its duality gap is {self.history_[-1].gap:.2g}; "
                f"{self._remedy(float(squared_norms(self.kernel_, encoded).mean()))}",
                ConvergenceWarning,
            )
        self._keep_support(multipliers, right, encoded)
        beta = self._prepare_predictions()
        self.square_ = float((self.transitions_**2).sum())
        if self._support is not None:
            self.square_ += float((beta * self._scores(self._support)[0]).sum())
        self._scale = self._likeliest_scale(data)

    def _likeliest_scale(self, data: TrainingData) -> float:
        """The factor that turns scores into log-probabilities.

        The penalty of a CRF is meant for features with values of 1, of which a node has about 30.
        So ‖w‖² is rescaled as if k(x, x) were 30 on average.
        """
        encoded = data.encoded
        chosen = sampled(len(encoded.corpus))
        part, at = encoded.take(chosen), encoded.corpus.nodes_of(chosen)
        weight = np.ones(len(encoded.corpus)) if data.sample_weight is None else data.sample_weight
        square = self.square_ * float(squared_norms(self.kernel_, part).mean()) / _USUAL_SQUARE
        sample = part.corpus.graph, *self._scores(part), data.labels[at], weight[chosen]
        return ScaledLoss(*sample, len(chosen) / len(encoded.corpus)).likeliest(square)

    def _remedy(self, square: float) -> str:
        """The advice where training does not converge; `square` is the mean of k(x, x)."""
        if self.slack is None or self.C * square < _CLOSE_FIT:
            return "allow more rounds by max_iter, or a larger tol"
        return (
            f"C times the kernel of a node with itself is {self.C * square:,.0f} on average, so that margins "
            f"are hardly ever violated, which takes many rounds: normalize the kernel (kernel.normalized()), "
            f"or set C near {_CLOSE_FIT / 10 / square:.1g}, or allow a larger tol"
        )

    def _run(
        self, problem: MaxMargin, validation: Validation
    ) -> tuple[str | None, tuple[list[Measured], Multipliers]]:
        """Run rounds until the duality gap is small or a callback ends them.

        Returns why training ended otherwise, or None; and the measurements of each round, with the
        labelings and α of the last one.
        """
        result: tuple[list[Measured], Multipliers] = [], []  # replaced by a single assignment
        checkpoint = Checkpoint(validation)
        watch = Iterations("HM-SVM", self.verbose, checkpoint, self.callback, validation=validation)
        with watch as progress:
            progress.count, ended = problem.resumed, checkpoint.has_ended or validation.is_over
            try:
                while True:
                    last = problem.measure()
                    result = problem.history, problem.multipliers()
                    # Otherwise it was reported before the checkpoint.
                    if len(result[0]) > problem.resumed:
                        ended = progress.report(objective=last.primal, gap=last.gap)
                    if ended or last.gap <= self.tol or len(result[0]) >= self.max_iter:
                        break
                    problem.improve(self.tol)
                if validation.return_to_best():
                    ended, last, result = True, problem.measure(), (problem.history, problem.multipliers())
                checkpoint.finish()
            except KeyboardInterrupt:
                if is_inner() or len(result[0]) < 2:
                    raise  # there is nothing to keep yet
                if not validation.return_to_best():
                    return INTERRUPTED, result
                problem.measure()
                return None, (problem.history, problem.multipliers())
        converged = ended or last.gap <= self.tol
        return None if converged else f"max_iter={self.max_iter} was reached", result

    def _keep_support(self, multipliers: Multipliers, right: Array, encoded: Encoded) -> None:
        """Keep structures with support sequences, and these, each structure's largest α first."""
        structures: list[int] = []
        owners: list[int] = []
        rights, labelings, alphas = [], [], []
        for i, (labelings_of_i, alpha) in enumerate(multipliers):
            order = [k for k in np.argsort(-alpha, kind="stable") if alpha[k] > 0]
            if order:
                owners += [len(structures)] * len(order)
                structures.append(i)
                rights.append(right[slice(*encoded.corpus.offsets[i : i + 2])])
                labelings += [labelings_of_i[k] for k in order]
                alphas += [alpha[k] for k in order]
        self._structures = np.array(structures, dtype=np.int64)
        self._owners = np.array(owners, dtype=np.int64)
        self._support: Encoded | None = encoded.take(self._structures) if structures else None
        self._rights, self._labelings, self._alpha = rights, labelings, np.array(alphas)

    def _prepare_predictions(self) -> Array:
        """Compute what predictions use, and return β (N, L) of the support nodes."""
        self._function: LabelFunction | None = None
        beta, self.transitions_ = self._coefficients()
        if self._support is not None:
            self._function = function_for(self.kernel_, self._support, beta, self.n_jobs, self.cache_bytes)
        return beta

    def _coefficients(self) -> tuple[Array, Array]:
        """β (N, L) of the support nodes, and the weights (L, L) of label pairs."""
        size = len(self.classes_)
        transitions = np.zeros((size, size))
        if self._support is None:
            return np.zeros((0, size)), transitions
        graph = self._support.corpus.graph
        beta = np.zeros((graph.node_count, size))
        for y, alpha, k in zip(self._labelings, self._alpha, self._owners, strict=True):
            nodes = graph.nodes((k, k + 1))
            part = graph.heads[nodes], nodes.start
            combine(y[None], self._rights[k], *part, np.array([alpha]), beta[nodes], transitions)
        return beta, transitions

    @property
    def _has_pair_scores(self) -> bool:
        return True

    def _scores(self, encoded: Encoded) -> tuple[Array, Array]:
        if self._function is None:
            return np.zeros((encoded.corpus.size, len(self.classes_))), self.transitions_
        return self._function.of(encoded, self.n_jobs), self.transitions_

    _node_terms = explained_markov.position_terms
    _node_positions = explained_markov.svm_positions

    def _texts(self) -> list[list[str]]:
        return hm_svm_file.texts_of(self)

    def _arrays(self) -> dict[str, Array]:
        return hm_svm_file.arrays_of(self)

    def _restore(self, arrays: dict[str, Array], texts: list[list[str]], parts: dict[str, Labeler]) -> None:
        self.kernel_ = as_kernel(self._fitted_params["kernel"])
        hm_svm_file.restore(self, arrays, texts)
        self._prepare_predictions()


def _complete_labels(data: TrainingData) -> Array:
    """The label numbers, after checking that all are known."""
    labels = data.labels.astype(np.int64)
    if (labels < 0).any():
        place = data.encoded.corpus.place(int((labels < 0).argmax()))
        raise DataError(
            f"{place}: its label is None, but an HMSVM learns from complete labelings; give all labels, or "
            "leave the structure out"
        )
    return labels


def _shown(observation: Any) -> str:
    return observation if isinstance(observation, str) else short(observation)
