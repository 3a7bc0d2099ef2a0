"""The maximum entropy Markov model on chains and trees.

    P(y|x) = Π_t P(y_t | y_p, x),   P(b | a, x) = exp(s_t(b) + A(a, b)) / Z_t(a),
    s_t(b) = Σ_c w_c[features of t in channel c, b],   Z_t(a) = Σ_b exp(s_t(b) + A(a, b)),

with p the parent of t (on a chain t − 1) and a row "start" of A where t has none. Each node is normalized by
itself, so that training is plain multinomial logistic regression: the parent's label, which is known there,
is one more channel. What is minimized is the sum over nodes of −w_t log P(y_t | y_p, x), plus l2 ‖w‖². A node
is left out where its own label or its parent's is not known.

For inference Z_t(a) counts as part of the score of its parent's label,

    F(x, y) = Σ_t [s_t(y_t) − Σ_{children u of t} log Z_u(y_t)] + Σ_{edges p→t} A(y_p, y_t) + roots,

so that one matrix A serves all edges, and Σ_y exp F(x, y) = 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.checks import (
    check_arrays,
    check_counts,
    check_flags,
    check_numbers,
    check_threads,
)
from fuda.compiled import compiled
from fuda.data.encoding import Encoded
from fuda.data.labels import node_weights, structure_weights
from fuda.errors import DataError
from fuda.functions.linear import LinearFunction
from fuda.models.base import Labeler
from fuda.models.markov import MarkovLabeler
from fuda.optimize import Lbfgs
from fuda.optimize.regularized import l2_regularized
from fuda.progress import Iterations
from fuda.training.memm_loss import LocalLoss

Array = np.ndarray


class MEMM(MarkovLabeler):
    """Maximum entropy Markov model on sequences and trees.

    Parameters
    ----------
    l2 : weight of ‖w‖².
    features, window : the feature set or function, and how many neighbours to each side have weights of
        their own.
    max_iter, tol : when L-BFGS stops; tol is relative to the objective (over ten iterations) and to the
        gradient.
    decode : "viterbi" (best labeling as a whole) or "posterior" (best label of each node).
    scheme : IOB1, IOB2, IOE1, IOE2, IOBES or BILOU: predict only label sequences that are well-formed under
        it.
    n_jobs : threads; None is all cores. Results do not depend on it.
    verbose : whether to report iterations on standard error.

    A node is left out of training where its own label or its parent's is None.

    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> MEMM().fit(X, y).predict([["Ana", "is", "in", "Lima"]])[0]
    ['PER', 'O', 'O', 'LOC']
    """

    def __init__(
        self,
        l2: float = 1.0,
        features: Any = "text",
        window: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-5,
        decode: str = "viterbi",
        scheme: str | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.l2 = l2
        self.features = features
        self.window = window
        self.max_iter = max_iter
        self.tol = tol
        self.decode = decode
        self.scheme = scheme
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def transitions_(self) -> Array:
        """(L, L) weights of label pairs, parent's label by rows; labels as in `classes_`."""
        return self.weights_[-1 - len(self.classes_) : -1]

    @property
    def start_(self) -> Array:
        """(L,) weights of the labels of nodes without a parent."""
        return self.weights_[-1]

    def objective(self, X: Any, y: Any, sample_weight: Any = None, position_weight: Any = None) -> float:
        """−Σ w_t log P(y_t | y_p, x) + l2 ‖w‖² at the fitted weights.

        On the data and weights of `fit` it is the value that training ended at.
        """
        encoded = self._encode(X)
        if encoded is None:
            raise DataError(
                "there is nothing to sum the objective over: X is empty; give at least one structure"
            )
        loss = LocalLoss(
            encoded,
            self._numbers(y, encoded.corpus),
            len(self.classes_),
            structure_weights(sample_weight, encoded.corpus),
            node_weights(position_weight, encoded.corpus),
            self.n_jobs,
        )
        w = self.weights_.ravel()
        return loss(w)[0] + self.l2 * float(w @ w)

    def _check_parameters(self) -> None:
        self._check_decode()
        check_numbers(self, "l2", "tol")
        check_counts(self, "max_iter")
        check_flags(self, "verbose")
        check_threads(self)

    def _fit(
        self, encoded: Encoded, labels: Array, sample_weight: Array | None, position_weight: Array | None
    ) -> None:
        self._refuse_pair_features(encoded)
        encoded.check_values()
        L = len(self.classes_)
        loss = LocalLoss(encoded, labels, L, sample_weight, position_weight, self.n_jobs)
        if not len(loss.labels):
            raise DataError(
                "there is nothing to learn from: no node has a label and a parent whose label is known "
                "too; give the labels of nodes next to each other"
            )
        # Rare and frequent features then move at comparable pace; of powers from 0 to ½ this is the fastest.
        scale = (loss.curvature() + 2 * self.l2) ** 0.1
        scale[scale == 0] = 1.0
        with Iterations("MEMM", shown=self.verbose) as progress:
            minimizer = Lbfgs(
                l2_regularized(loss, self.l2, scale, self.n_jobs), np.zeros(len(scale)), n_jobs=self.n_jobs
            )
            self.result_ = minimizer.minimize(self.tol, self.max_iter, progress)
        self.result_.x = self.result_.x / scale
        self.weights_ = self.result_.settled("MEMM").reshape(-1, L)

    def _scores(self, encoded: Encoded) -> tuple[Array, Array]:
        scores = self._prepare(self.weights_, self._function).of(encoded)
        _normalize(encoded.corpus.graph.heads, self.transitions_, self.start_, scores.copy(), scores)
        return scores, self.transitions_

    def _function(self) -> LinearFunction:
        """s as a function of encoded nodes."""
        counts = list(map(self.encoder_.feature_count, range(len(self.encoder_.channel_names()))))
        return LinearFunction(len(self.classes_), np.split(self.weights_, np.cumsum(counts))[:-1])

    def _arrays(self) -> dict[str, Array]:
        return {"weights": self.weights_}

    def _restore(self, arrays: dict[str, Array], texts: list[list[str]], parts: dict[str, Labeler]) -> None:
        L, channels = len(self.classes_), range(len(self.encoder_.channel_names()))
        check_arrays(arrays, {"weights": (sum(map(self.encoder_.feature_count, channels)) + L + 1, L)})
        self.weights_ = arrays["weights"]


@compiled
def _normalize(heads: Array, transitions: Array, start: Array, given: Array, scores: Array) -> None:
    """From s_t (`given`, and `scores` when called) to the node scores of F(x, y)."""
    for t in range(len(heads)):
        if heads[t] < 0:
            total = _log_sum(given[t], start)
            for b in range(len(start)):
                scores[t, b] += start[b] - total
        else:
            for a in range(len(start)):
                scores[heads[t], a] -= _log_sum(given[t], transitions[a])


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
