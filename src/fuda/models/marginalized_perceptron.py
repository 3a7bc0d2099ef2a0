"""The kernel marginalized labeling perceptron, dual form, online as in the papers.

Structures are visited one after another, and the nodes t of a structure one after another. With
the scores S of `fuda.models.marginalized`,

    ŷ_t = argmax_σ S(t,σ), of equal scores the first label;
    ŷ_t ≠ y_t:   α_t(y_t) += 1,   α_t(ŷ_t) −= 1,   before the next node is scored.

An epoch is computed by an engine (`fuda.marginalized.engines`); one without mistakes
ends training.

The averaged perceptron predicts with the mean of α over all *steps*, where a step is a visit of a
structure. With Δ_s the change in step s = 0, 1, …, n−1 the mean is α − (1/n) Σ_s s Δ_s, so that
one more sum is enough. The result depends much on the order of structures, since a few long
matches weigh as much as many short ones; therefore the mean is taken over perceptrons with
several orders.
"""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from fuda.checks import check_counts, check_flags
from fuda.data.labels import flat_labels
from fuda.data.structures import Structure
from fuda.errors import DataError
from fuda.marginalized import memory
from fuda.marginalized.engines import Engine, PerceptronState, can_train_jointly, make_engine
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.problem import Examples, Problem, Sources
from fuda.marginalized.support import Support, merged, relabelled, supports
from fuda.models.base import Labeler
from fuda.models.machines.perceptron_orders import Perceptrons, planned_trainings
from fuda.models.machines.validation import validation_of
from fuda.models.marginalized import MarginalizedLabeler
from fuda.models.teaching.label_growth import added_labels
from fuda.models.teaching.marginalized_growth import grow_marginalized
from fuda.progress import Callback, Iterations
from fuda.runtime.parallel import one_blas_thread
from fuda.storage.checkpoint import Checkpoint

Array = np.ndarray

# The size of an update in `partial_fit`, in units of the usual |α|.
_STEP = 0.04
# The lead that a label should have in `partial_fit`, in units of the node's largest |score|.
_MARGIN = 0.5
# The largest number of epochs of trainings that compare values of c.
_EPOCHS_OF_COMPARISON = 5
# The default number of perceptrons in the mean: one more changes little, and takes as much time.
_ORDERS = 4


class MarginalizedPerceptron(MarginalizedLabeler):
    """Kernel marginalized labeling perceptron on sequences, trees and DAGs.

    Parameters
    ----------
    kernel : Kernel, callable or None, default=None
        The kernel k_x between observations. None is Polynomial(1).normalized() for the features
        "text" of words in sequences, else Polynomial(2).normalized(); on trees and DAGs plus
        Constant(0.5), where features are "text" Linear().normalized() + Constant(0.5).
    label_kernel : Kernel, ndarray of shape (n_labels, n_labels) or None, default=None
        The kernel k_y between labels; None is the identity.
    mixing : float or None, default=None
        c, the weight of each node of a match; None chooses by held-out scores, from the largest c
        with c²k ≤ 1 downwards, so that no number grows with the length of a match.
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
        to five more perceptrons trained on parts of the data.
    epochs : int, default=10
        The largest number of epochs; training ends sooner after an epoch without a mistake.
    average : bool, default=True
        Whether to predict with the mean of α over all steps of training, or with the last α.
    orders : int or None, default=None
        How many perceptrons to average: the first one visits structures in the order of the data,
        the others in a new random order every epoch. None is 4 where `average` is true, else 1.
    engine : {"auto", "cpu", "cuda"}, default="auto"
        The engine that computes scores: CPU cores, or an NVIDIA card. "auto" takes a card that can
        be used where the data are large. Acts at once.
    n_jobs : int or None, default=None
        Threads; None is all cores. Results do not depend on it. Acts at once.
    cluster : str or None, default=None
        The address of the scheduler of a Dask cluster, whose workers `fit` shares its structures
        out to, in place of `engine`. Results are the same. Never stored in model files.
    random_state : int, RandomState or None, default=0
        Seed of the random orders of structures.
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
    mistakes_ : list of int
        The number of mistakes in each epoch of the first perceptron, and then in each call of
        `partial_fit`.
    n_iter_ : int
        The number of epochs of all perceptrons, and of calls of `partial_fit`. Not in model files:
        after `load`, only later calls of `partial_fit` count.
    orders_ : int
        How many perceptrons were averaged. Not in model files.
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
    ρ and t with label σ, marginalized over the other labels by the prior: (10) of [1]_. The
    perceptron is that of its Figure 3, in dual form. `sample_weight` and `position_weight` are the
    sizes of corrections.

    References
    ----------
    .. [1] H. Kashima, Y. Tsuboi. Kernel-based discriminative learning algorithms for labeling
       sequences, trees, and graphs. ICML 2004, equations (5) to (10) and figure 3; sections
       4.1 to 4.3: the kernels.

    Examples
    --------
    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> model = MarginalizedPerceptron().fit(X, y)
    >>> model.predict([["Ana", "is", "in", "Lima"]])[0]
    ['PER', 'O', 'O', 'LOC']
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        label_kernel: Any = None,
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
        epochs: int = 10,
        average: bool = True,
        orders: int | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        cluster: str | None = None,
        random_state: int | np.random.RandomState | None = 0,
        checkpoint: str | Path | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernel, self.label_kernel, self.mixing = kernel, label_kernel, mixing
        self.gap, self.parts = gap, parts
        self.prior, self.prior_form, self.class_weight = prior, prior_form, class_weight
        self.features, self.decode, self.scheme, self.calibrate = features, decode, scheme, calibrate
        self.epochs, self.average, self.orders = epochs, average, orders
        self.engine, self.n_jobs, self.cluster, self.random_state = engine, n_jobs, cluster, random_state
        self.checkpoint, self.callback, self.verbose = checkpoint, callback, verbose

    _is_scale_free: ClassVar[bool] = True

    mistakes_: list[int]
    orders_: int
    n_iter_: int

    @one_blas_thread
    def partial_fit(self, X: Any, y: Any, *, prior: Any = None, classes: Any = None) -> Self:
        """Learn from more structures, such as corrections; they are predicted from then on.

        The labels in y are predicted afterwards, and predictions of other text change little:
        coefficients are changed by small steps, and corrections that these do not achieve are
        remembered for the same words in the same context. The structures of `fit` are not visited
        again, so that learning a structure takes about as long as predicting it. A CRF that is the
        prior learns too, an HMM or MEMM does not. New labels are added, except with a label
        kernel, a chain prior or priors given as arrays. On a model that is not fitted this is
        `fit`. After any exception, an interrupt included, the model is as it was before.

        Parameters
        ----------
        X : list of structures
            Structures to learn from.
        y : list of lists
            Their labels, None where not known.
        prior : list of ndarray, optional
            One array of shape (n_nodes, n_labels) per structure, in place of the model's own
            prior.
        classes : list, optional
            Labels that may come later. Labels that are new in y need not be among them.

        Returns
        -------
        Self
            The fitted model itself.
        """
        if not hasattr(self, "classes_"):
            if prior is not None:
                raise DataError(
                    "the model is not fitted yet, and `fit` takes its prior from the parameter; "
                    "set_params(prior=…)"
                )
            self.fit(X, y)
            grow_marginalized(self, added_labels(self, [], classes))
            return self
        learner = copy(self)
        learner._update(X, y, prior, classes)
        self._adopt_state(learner)
        return self

    def _update(self, X: Any, y: Any, prior: Any, classes: Any) -> None:
        """Learn from more structures; lists and vocabularies are replaced, not changed."""
        new = self._encode(X)
        new_labels = [] if new is None else flat_labels(y, new.corpus)
        grow_marginalized(self, added_labels(self, new_labels, classes))
        if new is None:
            return
        self.encoder_, encoded = self.encoder_.grown(new.corpus)
        labels, prior_of_X = self._label_numbers(y, encoded.corpus), self._prior_of(encoded.corpus, prior)
        examples = Examples.of(encoded, prior_of_X)
        scores = self._scores_by(self._support, encoded, prior_of_X)
        predicted = self._decode(encoded, self._inputs_with_memory(encoded, prior_of_X, scores))
        is_wrong = (predicted != labels) & (labels >= 0)
        alpha = self._small_steps(examples, labels, scores)
        self.mistakes_ = [*self.mistakes_, int(is_wrong.sum())]
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1
        self._support = merged([*self._support, *supports(examples, alpha)])
        if prior is None and self.prior_source_.can_learn:
            self.prior_source_ = self.prior_source_.taught(X, y)
            examples = Examples.of(encoded, self._prior_of(encoded.corpus, None))
        for i in range(len(examples.sizes)):
            structure, nodes = examples.take(np.array([i])), slice(*examples.offsets[i : i + 2].tolist())
            self._memory = merged([*self._memory, *self._memory_of(structure, labels[nodes])])

    def _relabel(self, X: list[Structure], y: Any) -> None:
        """Replace the labels of stored support structures.

        Coefficients are exchanged between the old and the new label of a node. All others stay the
        same, so that predictions which they were balanced for may change.
        """
        number = {None: -1} | {label: k for k, label in enumerate(self.classes_.tolist())}
        for x, new_labels in zip(X, y, strict=True):
            numbers = np.array([number.get(label, len(self.classes_)) for label in new_labels])
            self._support = [relabelled(part, x, numbers) for part in self._support]
            self._memory = [relabelled(part, x, numbers) for part in self._memory]

    def _small_steps(self, examples: Examples, labels: Array, scores: Numbers) -> Array:
        """α (N, L) of new structures after an epoch of small steps.

        Where a label does not lead by a margin, α changes by a small part of the usual |α|. A step
        of the usual size would change all scores of its two labels, since all observations have
        something in common, and further training would have to balance that.
        """
        rows, known = scores.doubles().copy(), labels >= 0
        rows[known, labels[known]] -= _MARGIN * np.abs(rows[known]).max(axis=1)
        sizes = np.concatenate([np.ones(0), *(np.abs(part.alpha).ravel() for part in self._support)])
        usual = float(sizes @ sizes / sizes.sum()) if sizes.any() else 1.0
        engine = make_engine(
            self.engine, Sources(self._settings, examples, self.n_jobs).problem(), self.n_jobs
        )
        state = PerceptronState(np.zeros((2, *rows.shape)), base=scores.with_rows(rows))
        order, amounts = np.arange(len(examples.sizes)), np.full(len(labels), _STEP * usual)
        engine.perceptron_epoch(order, labels, amounts, state)
        return state.alpha(average=False)

    def _memory_of(self, structure: Examples, labels: Array) -> list[Support]:
        """What to remember so that the labels of a structure are predicted; empty if they are."""
        inputs = self._inputs_of(structure.encoded, structure.prior)
        right = np.maximum(labels, 0)

        def shortfalls(recalled: Array) -> list[memory.Shortfall]:
            current = inputs._replace(memory=inputs.memory + recalled)
            predicted, of_decoders = self._decode(structure.encoded, current), []
            if self._decoding == "posterior":
                of_decoders.append(memory.shortfall(self._calibration.ranks(current), right))
            else:
                nodes, rows = self._calibration.labelings(current)[0], np.arange(len(right))
                lack = np.maximum(nodes[rows, predicted] - nodes[rows, right], 0.0) + memory.LEAD
                of_decoders.append((np.where(predicted == right, 0.0, lack), predicted))
            if self._fitted_params["calibrate"]:
                of_decoders.append(memory.shortfall(self._calibration.logits(current), right))
            return of_decoders

        problem = Sources(self._memory_settings, structure, self.n_jobs).problem()
        kappa = make_engine(self.engine, problem, self.n_jobs).kappa(0, 0).clipped()
        alpha = memory.coefficients(shortfalls, labels, kappa, structure.prior.nodes, self.label_kernel_)
        return supports(structure, alpha)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_counts(self, "epochs")
        if self.orders is not None:
            check_counts(self, "orders")
        check_flags(self, "average")

    def _for_comparison(self) -> Self:
        self.orders, self.epochs = 1, min(self.epochs, _EPOCHS_OF_COMPARISON)
        return self

    def _plan_joint_training(
        self, sources: Sources, parts: list[Array], labels: Array, amounts: Array
    ) -> list[list[Engine] | None]:
        if not can_train_jointly(self.engine):
            return [None] * len(parts)
        engine, orders = make_engine(self.engine, sources.problem(), self.n_jobs), self._order_count
        count, problems = len(sources.examples.sizes), list[Problem]()
        for part in parts:
            problems += [engine.problem if len(part) == count else sources.take(part).problem()] * orders
        known = np.where(amounts > 0, labels, -1)
        planned = planned_trainings(self, parts, orders)
        engines = engine.plan_joint_training(planned, problems, known, amounts)
        if engines is None:  # all structures use this engine, and parts create their own
            return [[engine] if len(part) == count else None for part in parts]
        return [engines[first : first + orders] for first in range(0, len(engines), orders)]

    @property
    def _order_count(self) -> int:
        """The number of perceptrons to average."""
        return self.orders or (_ORDERS if self.average else 1)

    def _learn(
        self,
        sources: Sources,
        labels: Array,
        amounts: Array,
        alpha: Array,
        engines: list[Engine] | None = None,
    ) -> None:
        engines = engines or [make_engine(self.engine, sources.problem(), self.n_jobs)]
        labels, self.orders_ = np.where(amounts > 0, labels, -1), self._order_count
        training = Perceptrons(self, engines, alpha)
        validation = validation_of(self, sources, training, training.mean, training.return_to)
        checkpoint = Checkpoint(validation)
        title, has_ended = "MarginalizedPerceptron", checkpoint.has_ended or validation.is_over
        with Iterations(title, self.verbose, checkpoint, self.callback, validation=validation) as progress:
            progress.count = self.n_iter_
            while training.number < self.orders_ and not has_ended:
                stopped = False
                try:
                    while not stopped and training.has_next_epoch:
                        training.run_epoch(labels, amounts)
                        stopped = progress.report(mistakes=training.mistakes[-1])
                        stopped |= self.n_iter_ == self._max_epochs
                finally:
                    alpha[:] = training.mean()
                if stopped:
                    break
                training.begin_next()
        validation.return_to_best()
        checkpoint.finish()
        if validation.held is not None:
            self.validation_curve_ = validation.curve

    def _arrays(self) -> dict[str, Array]:
        return super()._arrays() | {"mistakes": np.array(self.mistakes_, dtype=np.int64)}

    def _restore(self, arrays: dict[str, Array], texts: list[list[str]], parts: dict[str, Labeler]) -> None:
        mistakes = arrays.pop("mistakes", np.empty(0))
        if mistakes.dtype != np.int64 or mistakes.ndim != 1:
            raise DataError("its array 'mistakes' is missing or does not hold whole numbers")
        self.mistakes_ = mistakes.tolist()
        super()._restore(arrays, texts, parts)
