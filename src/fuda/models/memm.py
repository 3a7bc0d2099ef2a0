"""The maximum entropy Markov model on chains and trees.

    P(y|x) = Π_t P(y_t | y_p, x),   P(b | a, x) = exp(s_t(b) + A(a, b)) / Z_t(a),
    s_t(b) = Σ_c w_c[features of t in channel c, b],   Z_t(a) = Σ_b exp(s_t(b) + A(a, b)),

with p the parent of t (on a chain t − 1) and a row "start" of A where t has none. Each node is
normalized by itself, so that training is plain multinomial logistic regression: the label of the
parent, which is known there, is one more channel. What is minimized is the sum over nodes of −w_t
log P(y_t | y_p, x), plus l2 ‖w‖². A node is left out where its own label or its parent's is not
known.

For inference Z_t(a) counts as part of the score of the label of the parent,

    F(x, y) = Σ_t [s_t(y_t) − Σ_{children u of t} log Z_u(y_t)] + Σ_{p→t} A(y_p, y_t) + roots,

so that one matrix A serves all edges, and Σ_y exp F(x, y) = 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fuda.checks import check_arrays, check_counts, check_numbers
from fuda.data.encoding import Encoded
from fuda.errors import DataError
from fuda.functions.linear import LinearFunction
from fuda.models.base import Labeler
from fuda.models.explained import markov as explained_markov
from fuda.models.explained.named_weights import NamedWeights
from fuda.models.fitting.training_data import TrainingData
from fuda.models.markov import MarkovLabeler
from fuda.optimize import Lbfgs
from fuda.optimize.regularized import l2_regularized
from fuda.progress import Callback
from fuda.runtime.compiled import compiled
from fuda.training.memm_loss import LocalLoss

Array = np.ndarray


class MEMM(NamedWeights, MarkovLabeler):
    """Maximum entropy Markov model on sequences and trees.

    Parameters
    ----------
    l2 : float, default=1.0
        Weight of ‖w‖².
    class_weight : dict, "balanced" or None, default=None
        Weights of nodes by their labels, for labels that are rare or matter more; "balanced" gives
        all labels the same weight in total.
    features : str, Template, callable or None, default=None
        A feature set of `fuda.features`, a template, or a function from an observation to names or
        a dict. None is "protein" or "dna" for residues or bases, "text" for all else.
    window : int or None, default=None
        How many neighbours to each side are seen, with weights of their own. None is 1, with the
        features of residues 7, of bases 6, and 0 for dicts, lists and sets of features.
    decode : {"viterbi", "posterior"} or None, default=None
        Predict the best labeling as a whole, or the best label of each node. None is "posterior"
        for residues, whose labels are uncertain and long, and "viterbi" for all else.
        Acts at once.
    scheme : {"IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU"} or None, default=None
        Predict only label sequences that are well-formed under this scheme. Acts at once.
    outside_penalty : float, default=0.0
        Subtracted from the score of the label O at every node when predicting: with little data
        many entities are missed, and a penalty around 1 finds more of them. Acts at once.
    max_iter : int, default=1000
        The largest number of iterations of L-BFGS.
    tol : float, default=1e-5
        Training ends where the gradient is below this share of max(1, ‖w‖), or where ten
        iterations improve the objective by less than this share of it.
    n_jobs : int or None, default=None
        Threads; None is all cores. Results do not depend on it. Acts at once.
    checkpoint : str, Path or None, default=None
        A file to which the state of training is written every few seconds and at the end. A fit
        of the same data and parameters that finds the file continues from it, to the identical
        result. `fit` leaves it there: remove it when the model is saved. Never stored in model
        files.
    callback : callable or None, default=None
        Called after every iteration with a `fuda.progress.Iteration`. It may raise StopIteration
        to end the training and keep what has been learned; after another exception the model is
        not fitted. Never stored in model files.
    verbose : bool, default=False
        Whether to report iterations on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,), dtype object
        The labels, sorted.
    weights_ : ndarray of shape (n_features + n_labels + 1, n_labels)
        The weights of features, channel after channel, of the label of the parent, and of nodes
        without a parent.
    transitions_ : ndarray of shape (n_labels, n_labels)
        The weights of label pairs; the label of the parent by rows.
    start_ : ndarray of shape (n_labels,)
        The weights of the labels of nodes without a parent.
    result_ : Result
        How the minimizer ended, and what it measured after each iteration. Not in model files.
    n_iter_ : int
        The number of iterations. Not in model files.

    Notes
    -----
    P(y|x) = Π_t P(y_t | y_p, x) with P(b | a, x) = exp(s_t(b) + A(a, b)) / Z_t(a) [1]_; minimized
    is −Σ_t w_t log P(y_t | y_p, x) + l2 ‖w‖². A node is left out of training where its own label
    or its parent's is None.

    References
    ----------
    .. [1] A. McCallum, D. Freitag, F. Pereira. Maximum entropy Markov models for information
       extraction and segmentation. ICML 2000, section 2.

    Examples
    --------
    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> MEMM().fit(X, y).predict([["Ana", "is", "in", "Lima"]])[0]
    ['PER', 'O', 'O', 'LOC']
    """

    _free_params = MarkovLabeler._free_params | {"tol", "max_iter"}
    _defaults: ClassVar[dict[str, Any]] = {"features": "text", "decode": "viterbi"}

    def __init__(
        self,
        l2: float = 1.0,
        *,
        class_weight: Any = None,
        features: Any = None,
        window: int | None = None,
        decode: str | None = None,
        scheme: str | None = None,
        outside_penalty: float = 0.0,
        max_iter: int = 1000,
        tol: float = 1e-5,
        n_jobs: int | None = None,
        checkpoint: str | Path | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.l2, self.class_weight = l2, class_weight
        self.features, self.window, self.decode, self.scheme = features, window, decode, scheme
        self.outside_penalty = outside_penalty
        self.max_iter, self.tol, self.n_jobs = max_iter, tol, n_jobs
        self.checkpoint, self.callback, self.verbose = checkpoint, callback, verbose

    @property
    def transitions_(self) -> Array:
        """The weights of label pairs (L, L), the label of the parent by rows."""
        return self.weights_[-1 - len(self.classes_) : -1]

    @property
    def start_(self) -> Array:
        """The weights (L,) of the labels of nodes without a parent."""
        return self.weights_[-1]

    def objective(self, X: Any, y: Any, *, sample_weight: Any = None, position_weight: Any = None) -> float:
        """Compute −Σ_t w_t log P(y_t | y_p, x) + l2 ‖w‖² at the fitted weights.

        On the data of `fit` it is the value that training ended at.

        Parameters
        ----------
        X : list of structures
            Structures to sum over.
        y : list of lists
            Their labels, None where not known.
        sample_weight : array-like of shape (n_structures,), optional
            Weights of structures.
        position_weight : list of array-like, optional
            Weights of nodes, one array per structure.

        Returns
        -------
        float
            The objective.
        """
        loss = self._training_loss(self._labelled(X, y, sample_weight, position_weight))
        w = self.weights_.ravel()
        return loss(w)[0] + self._fitted_params["l2"] * float(w @ w)

    def _training_loss(self, data: TrainingData) -> LocalLoss:
        weights = data.sample_weight, data.position_weight
        return LocalLoss(data.encoded, data.labels, len(self.classes_), *weights, self.n_jobs)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_numbers(self, "l2", "tol")
        check_counts(self, "max_iter")

    def _fit(self, data: TrainingData) -> None:
        self._refuse_pair_features(data.encoded)
        loss = self._training_loss(data)
        if not len(loss.labels):
            raise DataError(
                "there is nothing to learn from: no node has a label and a parent whose label is known "
                "too; give the labels of nodes next to each other"
            )
        # Rare and frequent features then move at comparable pace; of powers from 0 to ½ this is
        # the fastest.
        scale = (loss.curvature() + 2 * self.l2) ** 0.1
        scale[scale == 0] = 1.0
        function = l2_regularized(loss, self.l2, scale, self.n_jobs)
        minimizer = Lbfgs(function, np.zeros(len(scale)), n_jobs=self.n_jobs)
        shape = (-1, len(self.classes_))
        self.result_ = self._minimized(minimizer, "MEMM", data.held, lambda x: (x / scale).reshape(shape))
        self.result_.x = self.result_.x / scale
        self.n_iter_ = len(self.result_.history)
        self.weights_ = self.result_.solution("MEMM").reshape(shape)

    def _scores(self, encoded: Encoded) -> tuple[Array, Array]:
        scores = self._cached_for(self.weights_, self._function).of(encoded)
        _normalize(encoded.corpus.graph.heads, self.transitions_, self.start_, scores.copy(), scores)
        return scores, self.transitions_

    def _function(self) -> LinearFunction:
        """s as a function of encoded nodes."""
        counts = list(map(self.encoder_.feature_count, range(len(self.encoder_.channel_names()))))
        return LinearFunction(len(self.classes_), np.split(self.weights_, np.cumsum(counts))[:-1])

    _node_terms = explained_markov.memm_terms

    def _arrays(self) -> dict[str, Array]:
        return {"weights": self.weights_}

    def _restore(self, arrays: dict[str, Array], texts: list[list[str]], parts: dict[str, Labeler]) -> None:
        L, channels = len(self.classes_), range(len(self.encoder_.channel_names()))
        check_arrays(arrays, {"weights": (sum(map(self.encoder_.feature_count, channels)) + L + 1, L)})
        self.weights_ = arrays["weights"]


@compiled
def _normalize(heads: Array, transitions: Array, start: Array, node_scores: Array, scores: Array) -> None:
    """Convert s_t into the node scores of F(x, y); both arrays contain s_t when called."""
    for t in range(len(heads)):
        if heads[t] < 0:
            total = _log_sum(node_scores[t], start)
            for b in range(len(start)):
                scores[t, b] += start[b] - total
        else:
            for a in range(len(start)):
                scores[heads[t], a] -= _log_sum(node_scores[t], transitions[a])


@compiled
def _log_sum(scores: Array, others: Array) -> float:
    """log Σ_b exp(scores(b) + others(b))."""
    top = -np.inf
    for b in range(len(scores)):
        top = max(top, scores[b] + others[b])
    total = 0.0
    for b in range(len(scores)):
        total += np.exp(scores[b] + others[b] - top)
    return top + np.log(total)
