"""The conditional random field on chains and trees.

    f(y|x) = exp F(x, y) / Z(x),   F(x, y) = Σ_t Σ_c w_c[features of t in channel c, y_t] + Σ_{edges} A(y_p, y_t)

fitted by minimizing  loss(w) + l2 ‖w‖² + l1 ‖w‖₁  with one of the losses of `fuda.losses`; the loss is a sum over structures.
Optimization runs in the coordinates z = w · h^{1/4}, h a rough diagonal of the Hessian: rare and frequent features then move at
comparable pace, and a third of the iterations are enough.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from fuda.encoding import Encoded
from fuda.errors import DataError
from fuda.losses import Loss, TrainingLoss, Weights, score_structures
from fuda.models.checkpoint import Checkpoint
from fuda.models.markov import MarkovLabeler
from fuda.optimize import Lbfgs, Result, adagrad, conjugate_gradient
from fuda.optimize.result import Function
from fuda.optimize.vectors import Vectors
from fuda.progress import Iterations

SOLVERS = ("lbfgs", "cg", "sgd")
_BATCH_NODES = 12_000


class CRF(MarkovLabeler):
    """Conditional random field on sequences and trees.

    Parameters
    ----------
    loss : "sequential" (the labeling as a whole), "pointwise" (each label by itself) or "markov" (stretches of order + 1 labels).
    order : k of the Markov loss, any number ≥ 0; λ = k / (k + 1) is the share of the sequential loss.
    l2, l1 : weights of ‖w‖² and ‖w‖₁, as CRFsuite's c2 and c1.
    features, window : the feature set or function, and how many neighbours to each side have weights of their own.
    pair_features : whether the features of a node also have weights for pairs of labels, its parent's and its own.
    solver : "lbfgs" (with an L1 term OWL-QN), "cg" (conjugate gradient) or "sgd" (AdaGrad, a fast start).
    max_iter, tol : when to stop; tol is relative to the objective (over ten iterations) and to the gradient.
    decode : "viterbi" (best labeling as a whole) or "posterior" (best label of each node).
    scheme : IOB1, IOB2, IOE1, IOE2, IOBES or BILOU: predict only label sequences that are well-formed under it.
    warm_start : begin at the weights of the last fit, matched by feature and label.
    n_jobs : threads; None is all cores. Results do not depend on it.
    checkpoint : a file to which the state of L-BFGS goes every few seconds; a fit that finds it there goes on from it.
    verbose : whether to report iterations on standard error.

    A label None is not known: the sequential loss sums over it, the pointwise loss leaves it out.

    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> CRF().fit(X, y).predict([["Ana", "is", "in", "Lima"]])[0]
    ['PER', 'O', 'O', 'LOC']
    """

    def __init__(
        self,
        loss: str = "sequential",
        order: float = 1.0,
        l2: float = 1.0,
        l1: float = 0.0,
        features: Any = "text",
        window: int = 1,
        pair_features: bool = False,
        solver: str = "lbfgs",
        max_iter: int = 1000,
        tol: float = 1e-5,
        decode: str = "viterbi",
        scheme: str | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        checkpoint: str | Path | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.order = order
        self.l2 = l2
        self.l1 = l1
        self.features = features
        self.window = window
        self.pair_features = pair_features
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.decode = decode
        self.scheme = scheme
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    @property
    def transitions_(self) -> np.ndarray:
        """(L, L) weights of label pairs, parent's label by rows; labels as in `classes_`."""
        return self._layout.views(self.weights_)[1]

    def objective(self, X: Any, y: Any) -> float:
        """The training objective at the fitted weights: loss of (X, y), a sum over structures, + l2 ‖w‖² + l1 ‖w‖₁."""
        encoded = self._encode(X)
        value = 0.0
        if encoded is not None:
            numbers = self._numbers(y, encoded.corpus)
            value = self._training_loss(encoded, numbers, None, None)(self.weights_)[0]
        w = self.weights_
        return value + self.l2 * float(w @ w) + self.l1 * float(np.abs(w).sum())

    def top_features(self, n: int = 10) -> dict[Any, list[tuple[str, float]]]:
        """For each label the n features of largest weight, by magnitude: (name with its offset, weight)."""
        check_is_fitted(self, "weights_")
        by_channel, _, _ = self._layout.views(self.weights_)
        names = [
            f"[{channel}] {feature}"
            for c, channel in enumerate(self.encoder_.channel_names())
            for feature in self.encoder_.feature_names(c)
        ]
        weights = np.concatenate(by_channel)
        top = {}
        for i, label in enumerate(self.classes_):
            order = np.argsort(-np.abs(weights[:, i]), kind="stable")[:n]
            top[label] = [(names[k], float(weights[k, i])) for k in order if weights[k, i]]
        return top

    def _check_parameters(self) -> None:
        self._check_decode()
        Loss.named(self.loss, 0.0)
        for name in ("order", "l2", "l1", "tol"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < np.inf:
                raise DataError(f"{name}={value!r}: give a number of 0 or more")
        if self.solver not in SOLVERS:
            raise DataError(f"solver={self.solver!r}: choose {', '.join(SOLVERS)}")
        if isinstance(self.max_iter, bool) or not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise DataError(f"max_iter={self.max_iter!r}: give a whole number of at least 1")
        if self.l1 and self.solver != "lbfgs":
            raise DataError(f"l1={self.l1!r} with solver={self.solver!r}: an L1 term needs solver='lbfgs' (OWL-QN)")
        if self.checkpoint is not None and self.solver != "lbfgs":
            raise DataError(f"checkpoint with solver={self.solver!r}: only solver='lbfgs' keeps a state to go on from")

    @property
    def _layout(self) -> Weights:
        encoder = self.encoder_
        features = [encoder.feature_count(c) for c in range(len(encoder.channel_names()))]
        pairs = [len(encoder.edge_feature_names(k)) for k in range(len(encoder.edge_channel_names()))]
        if self.pair_features:
            pairs.append(features[len(features) // 2])
        return Weights(features, pairs, len(self.classes_))

    def _with_pairs(self, encoded: Encoded) -> Encoded:
        if not self.pair_features:
            return encoded
        own = encoded.channels[len(encoded.channels) // 2]
        return replace(encoded, edge_channels=[*encoded.edge_channels, own])

    def _training_loss(
        self, encoded: Encoded, labels: np.ndarray, sample_weight: np.ndarray | None, position_weight: np.ndarray | None
    ) -> TrainingLoss:
        return TrainingLoss(
            self._with_pairs(encoded),
            labels,
            len(self.classes_),
            Loss.named(self.loss, self.order),
            sample_weight,
            position_weight,
            self.n_jobs,
        )

    def _fit(
        self, encoded: Encoded, labels: np.ndarray, sample_weight: np.ndarray | None, position_weight: np.ndarray | None
    ) -> None:
        start = self._start()
        with Iterations(f"CRF, {self.loss} loss", self.max_iter, shown=self.verbose) as progress:
            if self.solver == "sgd":
                parts = self._batches(encoded, labels, sample_weight, position_weight)
                self.result_ = adagrad(
                    parts, start, max_iter=self.max_iter, tol=self.tol, seed=self.random_state, on_iteration=progress
                )
            else:
                loss = self._training_loss(encoded, labels, sample_weight, position_weight)
                self.result_ = self._minimize(loss, start, progress)
        self.weights_ = self.result_.x
        self.result_.x = self.weights_
        if not self.result_.converged:
            warnings.warn(
                f"the CRF has not converged: {self.result_.reason}; the weights are the best so far",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._names = self._weight_names() if self.warm_start else None

    def _minimize(self, loss: TrainingLoss, start: np.ndarray, progress: Any) -> Result:
        curvature = loss.curvature() + 2 * self.l2
        curvature[curvature == 0] = 1.0
        scale = curvature**0.25
        function = _rescaled(loss, self.l2, scale, self.n_jobs)
        if self.solver == "cg":
            result = conjugate_gradient(function, start * scale, self.tol, self.max_iter, progress, self.n_jobs)
        else:
            overlap = max(1.0, _features_a_node(loss.encoded))

            def first_step(direction: np.ndarray) -> float:
                return float(direction @ direction) / (overlap * float(curvature @ (direction / scale) ** 2))

            l1 = self.l1 / scale if self.l1 else None
            minimizer = Lbfgs(function, start * scale, l1, first_step=first_step, n_jobs=self.n_jobs)
            with Checkpoint(self.checkpoint, minimizer, self._fingerprint(loss)) as checkpoint:
                result = minimizer.minimize(self.tol, self.max_iter, lambda p: (progress(p), checkpoint(p)))
        result.x = result.x / scale
        return result

    def _fingerprint(self, loss: TrainingLoss) -> list[Any]:
        """What a checkpoint must agree in to be gone on from."""
        parameters = {k: str(v) for k, v in sorted(self.get_params().items()) if k not in ("n_jobs", "checkpoint", "verbose")}
        return [parameters, self.classes_, self.encoder_.vocabularies(), loss.digest()]

    def _batches(
        self, encoded: Encoded, labels: np.ndarray, sample_weight: np.ndarray | None, position_weight: np.ndarray | None
    ) -> list[Function]:
        """Losses over parts of the data, each with its share of the L2 term."""
        corpus = encoded.corpus
        count = max(1, round(corpus.size / _BATCH_NODES))
        order = np.random.RandomState(0).permutation(len(corpus))
        parts: list[Function] = []
        for members in np.array_split(order, min(count, len(corpus))):
            structures = [corpus.structures[i] for i in members]
            nodes = np.concatenate([np.arange(*corpus.offsets[i : i + 2]) for i in members])
            loss = self._training_loss(
                self.encoder_.encode(structures),
                labels[nodes],
                None if sample_weight is None else sample_weight[members],
                None if position_weight is None else position_weight[nodes],
            )
            ones = np.ones(loss.weights.size)
            parts.append(_rescaled(loss, self.l2 * len(members) / len(corpus), ones, self.n_jobs))
        return parts

    def _start(self) -> np.ndarray:
        """Zero, or the last fit's weights where feature and label are the same."""
        start = np.zeros(self._layout.size)
        before = getattr(self, "_names", None)
        if self.warm_start and before is not None:
            index = {name: i for i, name in enumerate(before)}
            for i, name in enumerate(self._weight_names()):
                if name in index:
                    start[i] = self.weights_[index[name]]
        return start

    def _weight_names(self) -> list[tuple]:
        labels, encoder = self.classes_, self.encoder_
        names: list[tuple] = [
            (channel, feature, label)
            for c, channel in enumerate(encoder.channel_names())
            for feature in encoder.feature_names(c)
            for label in labels
        ]
        names += [("", a, b) for a in labels for b in labels]
        pairs = [
            (f"pair {channel}", feature)
            for k, channel in enumerate(encoder.edge_channel_names())
            for feature in encoder.edge_feature_names(k)
        ]
        if self.pair_features:
            middle = len(encoder.channel_names()) // 2
            pairs += [("pair", feature) for feature in encoder.feature_names(middle)]
        return names + [(*pair, a, b) for pair in pairs for a in labels for b in labels]

    def _scores(self, encoded: Encoded) -> tuple[np.ndarray, np.ndarray]:
        return score_structures(self._with_pairs(encoded), self._layout, self.weights_)

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"weights": self.weights_}

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        expected = (self._layout.size,)
        if set(arrays) != {"weights"} or arrays["weights"].shape != expected or arrays["weights"].dtype != np.float64:
            found = {name: array.shape for name, array in arrays.items()}
            raise DataError(f"its arrays {found} are not the {expected[0]} weights of its labels and features")
        self.weights_ = arrays["weights"]


def _rescaled(loss: TrainingLoss, l2: float, scale: np.ndarray, n_jobs: int | None) -> Function:
    """z ↦ loss(w) + l2 ‖w‖² at w = z / scale, and its gradient in z."""
    vectors = Vectors(len(scale), n_jobs)
    factors = 1.0 / scale
    w = np.empty_like(scale)

    def function(z: np.ndarray) -> tuple[float, np.ndarray]:
        vectors.multiply(z, factors, w)
        value, gradient = loss(w)
        return value + l2 * vectors.dot(w, w), vectors.regularize(gradient, w, 2 * l2, factors)

    return function


def _features_a_node(encoded: Encoded) -> float:
    """How many features a node has on average, over all channels."""
    total = 0.0
    for channel in encoded.channels:
        matrix = encoded.tables[channel.table].matrix
        total += float(channel.gather(np.asarray(abs(matrix).sum(axis=1)).reshape(-1, 1)).sum())
    return total / encoded.corpus.size
