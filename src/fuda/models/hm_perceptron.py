"""The hidden Markov perceptron: a Markov model of labels, corrected mistake by mistake.

    F(x, y) = Σ_t s_t(y_t) + Σ_t G(c_t, y_t),      c_t the labels of the k nearest ancestors of t,

k = `order`; on a chain these are the k labels before t, and with k = 1 G is a matrix of label
pairs. For each structure the best labeling ŷ is found, and where it is not the right one y,

    primal:  w += Φ(x, y) − Φ(x, ŷ),
    dual:    β(t, y_t) += 1 and β(t, ŷ_t) −= 1 at nodes labelled wrongly, the same for G,

where the dual has s_t(σ) = Σ_τ β(τ, σ) k(x_τ, x_t), k any kernel on windows of observations. With
a linear k both are the same. Predictions use the mean of w over all steps of training
(`average`), which is far steadier than the last w.
"""

from __future__ import annotations

import itertools
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from fuda.checks import check_choice, check_counts, check_flags, check_memory, check_numbers, is_flag
from fuda.data.encoding import Encoded
from fuda.errors import AbsentError, DataError, short
from fuda.functions import CACHE_BYTES, LabelFunction, function_for, scores_for
from fuda.functions.linear import LinearFunction
from fuda.inference import higher_order
from fuda.inference.higher_order import Grams
from fuda.kernels import as_kernel
from fuda.models.base import Labeler
from fuda.models.explained import markov as explained_markov
from fuda.models.explained.named_weights import NamedWeights, feature_names, largest
from fuda.models.files import hm_perceptron as hm_perceptron_file
from fuda.models.fitting.training_data import TrainingData
from fuda.models.fitting.validation import Held, Validation
from fuda.models.markov import MarkovLabeler
from fuda.models.teaching.label_growth import added_labels
from fuda.models.teaching.perceptron import Curvature, curvature_of, grow_labels, learn_more
from fuda.progress import Callback, Iterations, warn
from fuda.runtime.estimators import ConvergenceWarning, check_is_fitted, clone
from fuda.runtime.interrupts import inner_training, is_inner
from fuda.runtime.parallel import one_blas_thread
from fuda.storage.checkpoint import Checkpoint
from fuda.training.online_updates import UPDATES, OnlineLearner, Update
from fuda.training.perceptron import Dual, Mistakes, Pass, PerceptronLearner, State, TrainingExamples
from fuda.training.perceptron_epochs import Epochs
from fuda.training.voted_perceptron import Correction, votes
from fuda.training.whole_perceptron import WholePrimal

Array = np.ndarray


class HMPerceptron(NamedWeights, MarkovLabeler):
    """Hidden Markov perceptron on sequences and trees.

    Parameters
    ----------
    kernel : Kernel, callable or None, default=None
        A kernel of `fuda.kernels` on windows of observations, or a function of two observations.
        None learns weights of features (primal), which is much faster with few, sparse features.
    order : int, default=1
        How many labels before a label it depends on; on trees, of how many ancestors. The time
        grows as L^(order + 1).
    update : {"perceptron", "passive-aggressive", "passive-aggressive-2", "arow"}
        The size of corrections (see `fuda.training.online_updates`): the same for all, which is
        the default; the smallest that gives the right labeling a margin (PA-I, PA-II [3]_); or
        that with a variance per weight (AROW [4]_, usually with average=False). All but the first
        need kernel=None.
    C : float, default=1.0
        How far a passive-aggressive or AROW correction may go for the margin.
    rescale : bool, default=True
        Whether the margin grows with the number of nodes labelled wrongly; else it is 1.
    features : str, Template, callable or None, default=None
        A feature set of `fuda.features`, a template, or a function from an observation to names or
        a dict. None is "protein" or "dna" for residues or bases, "text" for all else.
    window : int or None, default=None
        How many neighbours to each side are seen, with weights of their own. None is 1, with the
        features of residues 7, of bases 6, and 0 for dicts, lists and sets of features.
    scheme : {"IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU"} or None, default=None
        Predict only label sequences that are well-formed under this scheme. Acts at once.
    outside_penalty : float, default=0.0
        Subtracted from the score of the label O at every node when predicting: with little data
        many entities are missed, and a penalty around 1 finds more of them. Acts at once.
    epochs : int, default=10
        How often to go through the data; training ends sooner after an epoch without a mistake.
    shuffle : bool, default=True
        Whether each epoch visits the structures in a random order.
    average : bool or "voted", default=True
        True predicts by the mean of the weights over all steps of training, False by the last
        ones. "voted" lets the weights of every step vote on the label of each node; marginals are
        shares of votes. That costs a Viterbi search per mistake of the training.
    n_jobs : int or None, default=None
        Threads; None is all cores. Results do not depend on it; learning takes one. Acts at once.
    cache_bytes : int, default=1073741824
        How many bytes kernel values, or the monomials of a polynomial kernel, may take in memory.
        Results do not depend on it, up to rounding; time does.
    random_state : int, RandomState or None, default=0
        Seed of the random order.
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
    kernel_ : Kernel or None
        The kernel that the model was fitted with.
    order_ : int
        The order that the model was fitted with.
    mistakes_ : list of Mistakes
        How many structures and nodes were labelled wrongly in each epoch, those of `partial_fit`
        included.
    n_iter_ : int
        The number of epochs, those of `partial_fit` included: the length of `mistakes_`.
    weights_ : ndarray of shape (n_features, n_labels)
        The weights of features, channel after channel, where there is no kernel.
    transitions_ : ndarray of shape (n_labels, n_labels)
        The weights of label pairs where order ≤ 1, the label of the parent by rows.

    Notes
    -----
    The primal form is that of [1]_, the dual form Algorithm 1 of [2]_ with the scores of its
    section 4. A label None is not known: a structure is right where its known labels are, and is
    otherwise corrected towards the best labeling that has them. `sample_weight` is the size of the
    corrections of a structure; 0 leaves it out.

    Scores are not log-probabilities: `predict_marginals` and the values of `predict_nbest`, which
    treat them as such, express preferences of the model, not how often it is right.

    References
    ----------
    .. [1] M. Collins. Discriminative training methods for hidden Markov models. EMNLP 2002,
       section 2.
    .. [2] Y. Altun, I. Tsochantaridis, T. Hofmann. Hidden Markov support vector machines.
       ICML 2003, section 4 and Algorithm 1.
    .. [3] K. Crammer et al. Online passive-aggressive algorithms. JMLR 7, 2006, section 3.
    .. [4] K. Crammer et al. Adaptive regularization of weight vectors. NIPS 2009, section 3.

    Examples
    --------
    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> model = HMPerceptron().fit(X, y)
    >>> model.predict([["Ana", "is", "in", "Lima"]])[0]
    ['PER', 'O', 'O', 'LOC']
    >>> model.mistakes_[-1]
    Mistakes(structures=0, nodes=0)

    >>> from fuda.kernels import Polynomial
    >>> HMPerceptron(kernel=Polynomial(2)).fit(X, y).predict([["Ana", "sings"]])[0]
    ['PER', 'O']
    """

    decode = "viterbi"
    _estimates_probabilities = False
    _defaults: ClassVar[dict[str, Any]] = {"features": "text"}
    _minimum_counts: ClassVar[tuple[int, int]] = (0, 2)  # where there is a kernel
    _state: State
    _curvature: Curvature | None

    def __init__(
        self,
        kernel: Any = None,
        *,
        order: int = 1,
        update: str = "perceptron",
        C: float = 1.0,
        rescale: bool = True,
        features: Any = None,
        window: int | None = None,
        scheme: str | None = None,
        outside_penalty: float = 0.0,
        epochs: int = 10,
        shuffle: bool = True,
        average: bool | str = True,
        n_jobs: int | None = None,
        cache_bytes: int = CACHE_BYTES,
        random_state: int | np.random.RandomState | None = 0,
        checkpoint: str | Path | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernel, self.order, self.update, self.C, self.rescale = kernel, order, update, C, rescale
        self.features, self.window, self.scheme = features, window, scheme
        self.outside_penalty = outside_penalty
        self.epochs, self.shuffle, self.average = epochs, shuffle, average
        self.n_jobs, self.cache_bytes, self.random_state = n_jobs, cache_bytes, random_state
        self.checkpoint, self.callback, self.verbose = checkpoint, callback, verbose

    @property
    def n_iter_(self) -> int:
        """The number of epochs, those of `partial_fit` included."""
        return len(self.mistakes_)

    @one_blas_thread
    def partial_fit(self, X: Any, y: Any, *, sample_weight: Any = None, classes: Any = None) -> Self:
        """Learn from more structures, such as corrections; they are predicted from then on.

        New features and labels are added. A model that is not fitted begins with the structures,
        in one epoch. With a kernel, votes or an order above 1, and in files of older versions of
        fuda, learning goes on in one more epoch, which moves a mean of many steps by little. After
        any exception, an interrupt included, the model is as it was before.

        Parameters
        ----------
        X : list of structures
            Structures to learn from.
        y : list of lists
            Their labels, None where not known.
        sample_weight : array-like of shape (n_structures,), optional
            The size of the corrections of each structure.
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
                learn_more(learner, X, y, sample_weight, classes)
            else:
                learner.epochs, learner.checkpoint = 1, None
                learner.fit(X, y, sample_weight)
                learner.epochs = learner._fitted_params["epochs"] = self.epochs
                learner.checkpoint = learner._fitted_params["checkpoint"] = self.checkpoint
                grow_labels(learner, added_labels(learner, [], classes))
                learner._prepare_predictions()
        self._adopt_state(learner)
        return self

    def _best_labels(self, encoded: Encoded, known: Any) -> Array:
        if self.order_ < 2 or self._voted:
            return super()._best_labels(encoded, known)
        pairs = np.zeros((len(self.classes_),) * 2)
        scores = self._penalized(self._node_scores(encoded))
        scores, pairs = self._constrained(encoded.corpus, scores, pairs, known)
        grams = higher_order.with_pairs(self._grams, self.order_, pairs)
        return higher_order.viterbi(encoded.corpus.graph, scores, grams, self.order_, self.n_jobs)[0]

    @property
    def weights_(self) -> Array:
        """The weights of features (features, L), channel after channel, that predictions use."""
        check_is_fitted(self, "classes_")
        if self.kernel_ is not None:
            raise AbsentError(
                f"kernel={self.kernel_}: features have weights where kernel=None; fit with that"
            )
        return self._nodes / self._divisor

    @property
    def transitions_(self) -> Array:
        """The weights of label pairs (L, L), the label of the parent by rows."""
        check_is_fitted(self, "classes_")
        if self.order_ > 1:
            raise AbsentError(
                f"order={self.order_}: stretches of {self.order_ + 1} labels have weights, not pairs; "
                "fit with order=1"
            )
        return self._pairs()

    def _pairs(self) -> Array:
        L = len(self.classes_)
        return np.ascontiguousarray(np.broadcast_to(self._grams.full[0].T, (L, L)))

    def top_features(self, n: int = 10) -> dict[Any, list[tuple[str, float]]]:
        """Find the features of largest absolute weight for each label.

        ``[-1] w=in`` is a feature of the previous node, ``after B I`` the labels of the two
        nearest ancestors, the nearest last; ``<start>`` is the label above a root.

        Parameters
        ----------
        n : int, default=10
            How many features to list per label.

        Returns
        -------
        dict
            For each label the n features of largest absolute weight, as pairs (name, weight).
        """
        weights = [self.weights_]
        names = feature_names(self.encoder_)
        for length, part in enumerate(higher_order.by_context(self._grams, self.order_)):
            start = [] if length == self.order_ else ["<start>"]
            for labels in itertools.product(self.classes_, repeat=length):
                names.append(" ".join(["after", *start, *map(str, labels[::-1])]))
            weights.append(part)
        return largest(names, np.concatenate(weights), self.classes_, n)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_flag(self.average) and (not isinstance(self.average, str) or self.average != "voted"):
            raise DataError(f"average={short(self.average)}: give True, False or 'voted'")
        check_counts(self, "epochs")
        check_counts(self, "order", "cache_bytes", least=0)
        check_flags(self, "shuffle", "rescale")
        check_numbers(self, "C", positive=True)
        check_choice("update", self.update, UPDATES)
        if self.update != "perceptron" and (self.kernel is not None or isinstance(self.average, str)):
            raise DataError(f"update={self.update!r} needs kernel=None and average=True or False")

    def _fit(self, data: TrainingData) -> None:
        encoded, sample_weight = data.encoded, data.sample_weight
        if data.position_weight is not None:
            raise DataError(
                "position_weight: a perceptron corrects structures as a whole; weigh these by sample_weight"
            )
        self._refuse_pair_features(encoded)
        self._resolve_parameters()
        self.mistakes_: list[Mistakes] = []
        self._support: Encoded | None = None
        self._changes: list[Correction] = []
        rows, L = sum(self._feature_counts()) if self.kernel_ is None else 0, len(self.classes_)
        check_memory(
            16.0 * (rows * L + float(L) ** min(self.order_ + 1, 32)),
            f"order={self.order_} with {L:,} labels and {rows:,} features",
            "give fewer features or labels, or choose a lower order",
        )
        state = State.new(rows, self.order_, L)
        self._state = state._replace(variances=self._variances(data, state))
        eta = np.ones(len(encoded.corpus)) if sample_weight is None else sample_weight
        self._learn(encoded, data.labels, eta, self.epochs, data.held)
        self._prepare_predictions()
        self._curvature = self._measure_curvature(data)

    def _measure_curvature(self, data: TrainingData) -> Curvature | None:
        """The curvature of the weights; None if `partial_fit` continues by epochs."""
        return curvature_of(self, data)

    def _variances(self, data: TrainingData, state: State) -> Array:
        """Σ at the start of a fit, empty where it stays 1."""
        return np.ones(sum(part.size for part in state[:6:2]) if self.update == "arow" else 0)

    def _resolve_parameters(self) -> None:
        """Set attributes from the current parameters; later changes do not affect the model."""
        self.kernel_ = None if self.kernel is None else clone(as_kernel(self.kernel))
        self.order_ = int(self.order)
        self._update = Update(UPDATES.index(self.update), float(self.C), bool(self.rescale))
        self._voted = isinstance(self.average, str)
        self._averaged = bool(self.average) and not self._voted

    def _learn(
        self, encoded: Encoded, labels: Array, eta: Array, epochs: int, held: Held | None = None
    ) -> None:
        """Learn from the structures whose weight is not 0; those of the support come first."""
        examples = TrainingExamples.of(encoded.corpus.graph, labels, eta, self.order_, len(self.classes_))
        learner: PerceptronLearner
        if self._update.kind or len(self._state.variances):
            learner = OnlineLearner(encoded, examples, self._state, self._update)
            self._state = learner.state
        elif self.kernel_ is None:
            learner = WholePrimal(encoded, examples, self._state)
        else:
            scores = scores_for(self.kernel_, encoded, len(self.classes_), self.n_jobs, self.cache_bytes)
            learner = Dual(scores, examples, self._state)
            self._state = learner.state
        changes = self._changes if self._voted else None
        training = Epochs(learner, bool(self.shuffle), self.random_state, changes)

        def predict(others: Encoded) -> list[list[Any]]:
            probe = copy(self)
            probe._state, probe._changes = learner.state, training.changes or []
            probe._keep_support(encoded)
            probe._prepare_predictions()
            return self._labels_of_numbers(others, probe._best_labels(others, None))

        self._run(training, epochs, Validation(training, held, predict))
        self._keep_support(encoded)

    def _run(self, training: Epochs, epochs: int, validation: Validation) -> None:
        learner, checkpoint, before = training.learner, Checkpoint(validation), self.mistakes_
        watch = Iterations("HM-perceptron", self.verbose, checkpoint, self.callback, validation=validation)
        with watch as progress:
            progress.count = len(training.mistakes)
            try:
                while len(training.mistakes) < epochs and not training.is_perfect:
                    if checkpoint.has_ended or validation.is_over:
                        break
                    self._after_epoch(training.run(), learner.examples)
                    if progress.report(mistakes=training.mistakes[-1].nodes):
                        break
                validation.return_to_best()
                checkpoint.finish()
            except KeyboardInterrupt:
                if is_inner() or not training.end_epoch():
                    raise  # there is nothing to keep yet
                # part of an epoch would distort the mean
                text = f"the weights are those after {len(before) + len(training.mistakes)} epochs"
                warn(f"the perceptron was interrupted; {text}", ConvergenceWarning)
                validation.return_to_best()
        self._state, self._changes = learner.state, training.changes or []
        self.mistakes_ = [*before, *training.mistakes]
        if validation.held is not None:
            self.validation_curve_ = validation.curve

    def _after_epoch(self, mistakes: Pass, examples: TrainingExamples) -> None:
        """Called after each epoch with its mistakes; for subclasses."""

    def _keep_support(self, encoded: Encoded) -> None:
        """Keep only the structures that predictions need."""
        corpus = encoded.corpus
        is_support = np.zeros(len(corpus), dtype=bool)
        is_support[[change.structure for change in self._changes]] = True
        if self.kernel_ is not None:
            nodes = self._state.nodes.any(axis=1) | self._state.late_nodes.any(axis=1)
            is_support |= np.logical_or.reduceat(nodes, corpus.offsets[:-1])
            self._state = self._state.take(np.repeat(is_support, np.diff(corpus.offsets)))
        number = np.cumsum(is_support) - 1
        self._changes = [change._replace(structure=int(number[change.structure])) for change in self._changes]
        self._support = encoded.take(np.flatnonzero(is_support)) if is_support.any() else None

    def _prepare_predictions(self) -> None:
        """Compute what predictions use; sums of integers stay integers until they are divided."""
        state = self._state
        self._divisor = max(1.0, float(state.steps[0])) if self._averaged else 1.0
        self._nodes, grams = state.sums() if self._averaged else (state.nodes, state.grams)
        self._grams = Grams(*(part / self._divisor for part in grams))
        self._function: LinearFunction | LabelFunction | None = None
        if self.kernel_ is None:
            parts = np.split(self._nodes, np.cumsum(self._feature_counts()))[:-1]
            self._function = LinearFunction(len(self.classes_), parts)
        elif self._support is not None:
            self._function = function_for(
                self.kernel_, self._support, self._nodes, self.n_jobs, self.cache_bytes
            )

    def _feature_counts(self) -> list[int]:
        return [self.encoder_.feature_count(c) for c in range(len(self.encoder_.channel_names()))]

    def _node_scores(self, encoded: Encoded) -> Array:
        if self._function is None:
            return np.zeros((encoded.corpus.size, len(self.classes_)))
        scores: Array = self._function.of(encoded, self.n_jobs)
        return scores / self._divisor

    def _votes(self, encoded: Encoded) -> Array:
        """The share of votes (N, L) for each label."""
        L = len(self.classes_)
        if self._support is None:
            return np.eye(L)[np.zeros(encoded.corpus.size, dtype=np.int64)]
        steps, what = int(self._state.steps[0]), (self._support, encoded, self._changes)
        counted = votes(self.kernel_, *what, steps, self.order_, L, self.n_jobs)
        return counted / counted.sum(axis=1, keepdims=True)

    def _marginals(self, encoded: Encoded, known: Any) -> Array:
        if not self._voted:
            return super()._marginals(encoded, known)
        shares = self._votes(encoded)
        if known is not None:
            labels = self._label_numbers(known, encoded.corpus)
            shares[labels >= 0] = np.eye(len(self.classes_))[labels[labels >= 0]]
        return shares

    @property
    def _has_pair_scores(self) -> bool:
        return not self._voted and self.order_ < 2

    def _scores(self, encoded: Encoded) -> tuple[Array, Array]:
        L = len(self.classes_)
        if self._voted:
            return self._votes(encoded), np.zeros((L, L))
        if self.order_ > 1:
            raise DataError(
                f"order={self.order_}: marginals and n-best are known for orders 0 and 1; fit with order=1"
            )
        scores = self._node_scores(encoded)
        if self.order_:
            scores[encoded.corpus.graph.roots] += self._grams.short[0]
        return scores, self._pairs()

    _node_terms = explained_markov.perceptron_terms
    _node_positions = explained_markov.perceptron_positions

    def _texts(self) -> list[list[str]]:
        return hm_perceptron_file.texts_of(self)

    def _arrays(self) -> dict[str, Array]:
        return hm_perceptron_file.arrays_of(self)

    def _restore(self, arrays: dict[str, Array], texts: list[list[str]], parts: dict[str, Labeler]) -> None:
        self._resolve_parameters()
        hm_perceptron_file.restore(self, arrays, texts)
        self._prepare_predictions()
