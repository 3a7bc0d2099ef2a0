"""The conditional random field on chains and trees.

    f(y|x) = exp F(x, y) / Z(x)
    F(x, y) = Σ_t Σ_c w_c[features of t in channel c, y_t] + Σ_{edges p→t} A(y_p, y_t)

fitted by minimizing loss(w) + l2 ‖w‖² + l1 ‖w‖₁ with one of the losses of
`fuda.training.crf_loss`; the loss is a sum over structures. Optimization runs in the coordinates
z = w · h^{1/5}, h a rough diagonal of the Hessian: rare and frequent features then move at
comparable pace, and a third of the iterations are enough. After 22 iterations the coordinates
of `fuda.optimize.deflation` save more than half of the others. Features that always occur together
have one weight meanwhile (`fuda.training.merged_features`)."""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from fuda.checks import check_counts, check_flags, check_numbers, is_choice
from fuda.data.encoding import Encoded
from fuda.data.labels import flat_labels
from fuda.errors import DataError, short
from fuda.functions.linear import LinearFunction
from fuda.models.base import Labeler
from fuda.models.explained import markov as explained_markov
from fuda.models.explained.named_weights import NamedBy, NamedWeights, carry_over, largest, named_parts
from fuda.models.files import crf as crf_file
from fuda.models.fitting.training_data import TrainingData, data_weights
from fuda.models.markov import MarkovLabeler
from fuda.models.teaching.crf import grow_labels, teach
from fuda.models.teaching.label_growth import added_labels
from fuda.optimize import AdaGrad, ConjugateGradient, Lbfgs
from fuda.optimize.deflation import Deflation, Spectrum
from fuda.optimize.regularized import l2_regularized
from fuda.optimize.result import Function, Minimizer
from fuda.optimize.vectors import dot
from fuda.progress import Callback
from fuda.runtime.estimators import check_is_fitted
from fuda.runtime.interrupts import inner_training
from fuda.runtime.parallel import one_blas_thread
from fuda.training.crf_curvature import curvature, features_per_node, quantized
from fuda.training.crf_loss import Loss, TrainingLoss, Weights, pair_scores
from fuda.training.crf_parts import DistributedLoss, distributed_loss
from fuda.training.merged_features import MergedFeatures
from fuda.training.spectrum import DEFLATED_POWER, LEAST_NODES, POWER, leading_crf_curvature

SOLVERS = ("lbfgs", "cg", "sgd")
_BATCH_NODES = 4_000


class CRF(NamedWeights, MarkovLabeler):
    """Conditional random field on sequences and trees.

    Parameters
    ----------
    loss : {"sequential", "pointwise", "markov"}, default="sequential"
        What is minimized: −log P of the labeling as a whole, of each label by itself, or of
        stretches of order + 1 labels.
    order : float, default=1.0
        k of the Markov loss, any number of at least 0; λ = k / (k + 1) is the share of the
        sequential loss.
    l2 : float, default=1.0
        Weight of ‖w‖², as CRFsuite's c2.
    l1 : float, default=0.0
        Weight of ‖w‖₁, as CRFsuite's c1.
    class_weight : dict, "balanced" or None, default=None
        Weights of nodes by their labels, for labels that are rare or matter more; "balanced" gives
        all labels the same weight in total. Needs the pointwise or the Markov loss.
    features : str, Template, callable or None, default=None
        A feature set of `fuda.features`, a template, or a function from an observation to names or
        a dict. None is "protein" or "dna" for residues or bases, "text" for all else.
    window : int or None, default=None
        How many neighbours to each side are seen, with weights of their own. None is 1, with the
        features of residues 7, of bases 6, and 0 for dicts, lists and sets of features.
    pair_features : bool, default=False
        Whether the features of a node also have weights for pairs of labels, its parent's and
        its own.
    decode : {"viterbi", "posterior"} or None, default=None
        Predict the best labeling as a whole, or the best label of each node. None is "posterior"
        for residues, whose labels are uncertain and long, and "viterbi" for all else.
        Acts at once.
    scheme : {"IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU"} or None, default=None
        Predict only label sequences that are well-formed under this scheme. Acts at once.
    outside_penalty : float, default=0.0
        Subtracted from the score of the label O at every node when predicting: with little data
        many entities are missed, and a penalty around 1 finds more of them. Acts at once.
    solver : {"lbfgs", "cg", "sgd"}, default="lbfgs"
        L-BFGS (OWL-QN with an L1 term), conjugate gradient, or AdaGrad, a fast start.
    max_iter : int, default=1000
        The largest number of iterations.
    tol : float, default=1e-5
        Training ends where the gradient is below this share of max(1, ‖w‖), or where ten
        iterations improve the objective by less than this share of it.
    warm_start : bool, default=False
        Begin at the weights of the last fit, matched by feature and label.
    n_jobs : int or None, default=None
        Threads; None is all cores. Results do not depend on it. Acts at once.
    cluster : str or None, default=None
        The address of the scheduler of a Dask cluster, on whose workers `fit` computes losses and
        gradients. Needs solver "lbfgs" or "cg". Never stored in model files.
    random_state : int, RandomState or None, default=0
        Seed of the order in which solver="sgd" visits parts of the data.
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
    weights_ : ndarray
        All weights: of features by channel, of label pairs, of features with label pairs.
    transitions_ : ndarray of shape (n_labels, n_labels)
        The weights of label pairs; the label of the parent by rows.
    result_ : Result
        How the minimizer ended, and what it measured after each iteration. Not in model files.
    n_iter_ : int
        The number of iterations. Not in model files.

    Notes
    -----
    With f(y|x) = exp F(x, y) / Z(x) and p_t its node marginals, the losses of [2]_ are

        L₁ = −Σ_i log f(y⁽ⁱ⁾|x⁽ⁱ⁾)                       "sequential"
        L₀ = −Σ_i Σ_t w_t log p_t(y_t⁽ⁱ⁾)                "pointwise", (2.2)
        M_k = k L₁ + L₀ = L_λ / (1 − λ), λ = k / (k + 1)  "markov", (3.6), (3.9), (3.10)

    and loss(w) + l2 ‖w‖² + l1 ‖w‖₁ is minimized. Their gradients are (2.1) and (2.3) there. A
    label None is not known: the sequential loss sums over it, the pointwise loss leaves it out.
    `position_weight` gives w_t of the pointwise loss.

    References
    ----------
    .. [1] J. Lafferty, A. McCallum, F. Pereira. Conditional random fields: probabilistic models
       for segmenting and labeling sequence data. ICML 2001, equation (1).
    .. [2] Y. Tsuboi, H. Kashima. A new loss function with "Markov property" for information
       extraction. Equations (2.1) to (2.3), (3.6) and (3.9) to (3.11); Theorem 1, Corollary 1.

    Examples
    --------
    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> CRF().fit(X, y).predict([["Ana", "is", "in", "Lima"]])[0]
    ['PER', 'O', 'O', 'LOC']

    A callback that ends the training after three iterations:

    >>> def three(progress):
    ...     if progress.iteration == 3:
    ...         raise StopIteration
    >>> CRF(callback=three).fit(X, y).n_iter_
    3
    """

    _free_params = MarkovLabeler._free_params | {"tol", "max_iter", "warm_start"}
    _defaults: ClassVar[dict[str, Any]] = {"features": "text", "decode": "viterbi"}
    _last: tuple[NamedBy, np.ndarray]
    _merges_features = True  # those that always occur together
    # The curvature at each weight, see `fuda.training.crf_curvature`; None in old files.
    _curvature: np.ndarray | None

    def __init__(
        self,
        loss: str = "sequential",
        *,
        order: float = 1.0,
        l2: float = 1.0,
        l1: float = 0.0,
        class_weight: Any = None,
        features: Any = None,
        window: int | None = None,
        pair_features: bool = False,
        decode: str | None = None,
        scheme: str | None = None,
        outside_penalty: float = 0.0,
        solver: str = "lbfgs",
        max_iter: int = 1000,
        tol: float = 1e-5,
        warm_start: bool = False,
        n_jobs: int | None = None,
        cluster: str | None = None,
        random_state: int | np.random.RandomState | None = 0,
        checkpoint: str | Path | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss, self.order, self.l2, self.l1 = loss, order, l2, l1
        self.class_weight = class_weight
        self.features, self.window, self.pair_features = features, window, pair_features
        self.decode, self.scheme = decode, scheme
        self.outside_penalty = outside_penalty
        self.solver, self.max_iter, self.tol, self.warm_start = solver, max_iter, tol, warm_start
        self.n_jobs, self.random_state, self.checkpoint = n_jobs, random_state, checkpoint
        self.cluster, self.callback, self.verbose = cluster, callback, verbose

    @one_blas_thread
    def partial_fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, position_weight: Any = None, classes: Any = None
    ) -> Self:
        """Learn from more structures, such as corrections; they are predicted from then on.

        The structures learned before are not visited again: the weights and the curvature of the
        loss at each of them stand for these. New features and labels are added. On a model that is
        not fitted this is `fit`. After any exception, an interrupt included, the model is as it
        was before.

        Parameters
        ----------
        X : list of structures
            Structures to learn from.
        y : list of lists
            Their labels, None where not known.
        sample_weight : array-like of shape (n_structures,), optional
            Weights of structures.
        position_weight : list of array-like, optional
            Weights of nodes in the pointwise loss, one array per structure.
        classes : list, optional
            Labels that may come later. Labels that are new in y need not be among them.

        Returns
        -------
        Self
            The fitted model itself.
        """
        learner = copy(self)
        with inner_training():
            if hasattr(self, "classes_"):
                learner._update(X, y, sample_weight, position_weight, classes)
            else:
                learner.fit(X, y, sample_weight, position_weight)
                grow_labels(learner, added_labels(learner, [], classes))
        self._adopt_state(learner)
        return self

    @property
    def can_learn(self) -> bool:
        """Whether `partial_fit` is possible; it is not with files of other programs."""
        return not hasattr(self, "classes_") or self._curvature is not None

    def _update(self, X: Any, y: Any, sample_weight: Any, position_weight: Any, classes: Any) -> None:
        """Learn from more structures; arrays and vocabularies are replaced, not changed."""
        self._check_parameters()
        if not self.can_learn:
            raise DataError(
                "this model comes from another program or an older version of fuda, and does not say how "
                "certain each weight is; fit a model, which can then learn more"
            )
        new = self._encode(X)
        new_labels = [] if new is None else flat_labels(y, new.corpus)
        grow_labels(self, added_labels(self, new_labels, classes))
        if new is None:
            return
        encoder, encoded = self.encoder_.grown(new.corpus)
        encoded.check_values()
        labels = self._label_numbers(y, new.corpus)
        weights = data_weights(new.corpus, sample_weight, position_weight)
        data = TrainingData(encoder, encoded, self.classes_.tolist(), labels, *weights)
        teach(self, encoder, data.weighted(self._fitted_params.get("class_weight")))

    @property
    def transitions_(self) -> np.ndarray:
        """The weights of label pairs (L, L), the label of the parent by rows."""
        return self._layout.views(self.weights_)[1]

    def objective(self, X: Any, y: Any, *, sample_weight: Any = None, position_weight: Any = None) -> float:
        """Compute loss + l2 ‖w‖² + l1 ‖w‖₁ at the fitted weights.

        The loss is a sum over structures. On the data of `fit` it is the value that training ended
        at.

        Parameters
        ----------
        X : list of structures
            Structures to sum over.
        y : list of lists
            Their labels, None where not known.
        sample_weight : array-like of shape (n_structures,), optional
            Weights of structures.
        position_weight : list of array-like, optional
            Weights of nodes in the pointwise loss, one array per structure.

        Returns
        -------
        float
            The objective.
        """
        loss = self._training_loss(self._labelled(X, y, sample_weight, position_weight))
        w, fitted = self.weights_, self._fitted_params
        return loss(w)[0] + fitted["l2"] * float(w @ w) + fitted["l1"] * float(np.abs(w).sum())

    def top_features(self, n: int = 10) -> dict[Any, list[tuple[str, float]]]:
        """Find the features of largest absolute weight for each label.

        ``[-1] w=in`` is a feature of the previous node, ``after O`` the label of the parent, and
        ``[0] w=in after O`` both together.

        Parameters
        ----------
        n : int, default=10
            How many features to list per label.

        Returns
        -------
        dict
            For each label the n features of largest absolute weight, as pairs (name, weight).
        """
        check_is_fitted(self, "weights_")
        names, columns = list[str](), list[np.ndarray]()
        for (kind, channel), (features, part) in named_parts(self._names, self.weights_).items():
            node = [f"[{channel}] {feature}" for feature in features] if kind != "transitions" else [""]
            after = [""] if kind == "label" else [f"after {label}" for label in self.classes_]
            names += [" ".join(filter(None, both)) for both in itertools.product(node, after)]
            columns.append(part.reshape(-1, len(self.classes_)))
        return largest(names, np.concatenate(columns), self.classes_, n)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        Loss.by_name(self.loss, 0.0)
        check_numbers(self, "order", "l2", "l1", "tol")
        check_flags(self, "pair_features", "warm_start")
        if self.class_weight is not None and self.loss == "sequential":
            raise DataError(
                "class_weight weighs nodes in the pointwise loss, which loss='sequential' has no part of; "
                "choose loss='pointwise' or 'markov'"
            )
        if not is_choice(self.solver, SOLVERS):
            raise DataError(f"solver={short(self.solver)}: choose {', '.join(SOLVERS)}")
        check_counts(self, "max_iter")
        if self.cluster is not None and self.solver == "sgd":
            raise DataError(
                f"cluster={self.cluster} with solver='sgd': its steps follow one another and are not shared "
                "out; choose solver='lbfgs' or 'cg'"
            )
        if self.l1 and self.solver != "lbfgs":
            raise DataError(
                f"l1={self.l1!r} with solver={self.solver!r}: an L1 term needs solver='lbfgs' (OWL-QN)"
            )

    @property
    def _layout(self) -> Weights:
        encoder = self.encoder_
        features = [encoder.feature_count(c) for c in range(len(encoder.channel_names()))]
        pairs = [len(encoder.edge_feature_names(k)) for k in range(len(encoder.edge_channel_names()))]
        if self.has_pairs_:
            pairs.append(features[encoder.own_channel()])
        return Weights(features, pairs, len(self.classes_))

    @property
    def _names(self) -> NamedBy:
        return self.classes_, self.encoder_, self.has_pairs_

    def _with_pairs(self, encoded: Encoded) -> Encoded:
        if not self.has_pairs_:
            return encoded
        node_channel = encoded.channels[self.encoder_.own_channel()]
        return replace(encoded, edge_channels=[*encoded.edge_channels, node_channel])

    def _training_arguments(
        self, data: TrainingData
    ) -> tuple[Encoded, np.ndarray, int, Loss, np.ndarray | None, np.ndarray | None]:
        loss = Loss.by_name(self._fitted_params["loss"], self._fitted_params["order"])
        encoded, weights = self._with_pairs(data.encoded), (data.sample_weight, data.position_weight)
        return encoded, data.labels, len(self.classes_), loss, *weights

    def _training_loss(self, data: TrainingData) -> TrainingLoss:
        return TrainingLoss(*self._training_arguments(data), self.n_jobs)

    def _fit(self, data: TrainingData) -> None:
        if data.position_weight is not None and self.loss == "sequential":
            raise DataError(
                "position_weight weighs nodes in the pointwise loss, which loss='sequential' has no part of; "
                "choose loss='pointwise' or 'markov', or sample_weight"
            )
        self.has_pairs_ = bool(self.pair_features)
        merged = MergedFeatures(self._with_pairs(data.encoded), len(self.classes_), self._merges_features)
        data = data._replace(encoded=replace(data.encoded, tables=merged.tables))
        start, scale = merged.reduce(self._start()), np.ones(1)
        with self._loss_of(data) as loss:
            if self.solver == "sgd":
                minimizer: Minimizer = AdaGrad(self._batches(data), start, seed=self.random_state)
            else:
                minimizer, scale = self._scaled_minimizer(data, loss, start, merged.roots)
            problem = minimizer, f"CRF, {self.loss}", data.held
            self.result_ = self._minimized(*problem, lambda x: merged.expand(x / scale))
            merged_weights = self.result_.x / scale
            self.result_.x = merged.expand(merged_weights)
            self.n_iter_ = len(self.result_.history)
            self.weights_ = self.result_.solution("CRF")
            self._curvature = self._measure_curvature(loss, merged_weights, merged)

    def _loss_of(self, data: TrainingData) -> AbstractContextManager[TrainingLoss | DistributedLoss]:
        """The loss of the training data, computed here or by the workers of the cluster."""
        if self.cluster is None:
            return nullcontext(self._training_loss(data))
        return distributed_loss(self.cluster, *self._training_arguments(data), self.n_jobs)

    def _measure_curvature(
        self, loss: TrainingLoss | DistributedLoss, u: np.ndarray, merged: MergedFeatures
    ) -> np.ndarray | None:
        """The curvature of the loss at merged weights u; None if `partial_fit` is not possible."""
        at_u = loss.curvature_at(u) if isinstance(loss, DistributedLoss) else curvature(loss, u)
        return quantized(merged.expand(at_u, power=2))

    def _scaled_minimizer(
        self, data: TrainingData, loss: TrainingLoss | DistributedLoss, start: np.ndarray, roots: np.ndarray
    ) -> tuple[Minimizer, np.ndarray]:
        """The minimizer of z, and by what w is multiplied to be z; |w| counts `roots` times."""
        curvature = loss.curvature() + 2 * self.l2
        curvature[curvature == 0] = 1.0
        scale = curvature**POWER
        function = l2_regularized(loss, self.l2, scale, self.n_jobs)
        if self.solver == "cg":
            return ConjugateGradient(function, start * scale, self.n_jobs), scale
        overlap = max(1.0, features_per_node(loss.encoded))

        def first_step(direction: np.ndarray) -> float:
            return dot(direction, direction) / (overlap * dot(curvature, (direction / scale) ** 2))

        def measure(z: np.ndarray) -> Spectrum:
            arguments = self._training_arguments(data)
            return leading_crf_curvature(z / scale, arguments, curvature, self.l2, self.n_jobs)

        l1 = self.l1 * roots / scale if self.l1 else None
        deflated = l1 is None and data.encoded.corpus.size >= LEAST_NODES
        deflation = (
            Deflation(curvature ** (POWER - DEFLATED_POWER), measure, self.n_jobs) if deflated else None
        )
        minimizer = Lbfgs(
            function, start * scale, l1, first_step=first_step, n_jobs=self.n_jobs, deflation=deflation
        )
        return minimizer, scale

    def _batches(self, data: TrainingData) -> list[Function]:
        """Losses over parts of the data, each with its share of the L2 term."""
        corpus = data.encoded.corpus
        count = max(1, round(corpus.size / _BATCH_NODES))
        order = np.random.RandomState(0).permutation(len(corpus))
        parts: list[Function] = []
        for members in np.array_split(order, min(count, len(corpus))):
            loss = self._training_loss(data.take(members))
            ones = np.ones(loss.weights.size)
            parts.append(l2_regularized(loss, self.l2 * len(members) / len(corpus), ones, self.n_jobs))
        return parts

    def _without_fit(self) -> Self:
        """A copy without what was learned, except for what a warm start continues from.

        The weights of the last fit and their names outlive a fit that fails.
        """
        other = super()._without_fit()
        if self.warm_start and hasattr(self, "classes_"):
            other._last = self._names, self.weights_
        return other

    def _start(self) -> np.ndarray:
        """Zero, or the last fit's weights where feature and label are the same."""
        start = np.zeros(self._layout.size)
        last: tuple[NamedBy, np.ndarray] | None = self.__dict__.pop("_last", None)
        if self.warm_start and last is not None:
            carry_over(last, self._names, start)
        return start

    @property
    def _has_pair_scores(self) -> bool:
        return not self.has_pairs_

    def _scores(self, encoded: Encoded) -> tuple[np.ndarray, np.ndarray]:
        function, transitions, by_edge = self._cached_for(self.weights_, self._predictor)
        return function.of(encoded), pair_scores(self._with_pairs(encoded), transitions, by_edge)

    def _predictor(self) -> tuple[LinearFunction, np.ndarray, list[np.ndarray]]:
        """The weights in the form that predictions use."""
        by_channel, transitions, by_edge = self._layout.views(self.weights_)
        return LinearFunction(len(self.classes_), by_channel), transitions, by_edge

    _node_terms = explained_markov.crf_terms
    _edge_terms = explained_markov.pair_terms

    def _arrays(self) -> dict[str, np.ndarray]:
        return crf_file.arrays_of(self)

    def _restore(
        self, arrays: dict[str, np.ndarray], texts: list[list[str]], parts: dict[str, Labeler]
    ) -> None:
        self.has_pairs_ = bool(self.pair_features)
        crf_file.restore(self, arrays)
