"""The kernel marginalized labeling perceptron, dual form, in the papers' order of events.

Structures come one after another, and the nodes t of a structure one after another. With the scores S of
`fuda.models.marginalized`,

    ŷ_t = argmax_σ S(t,σ), of equal scores the first label;
    ŷ_t ≠ y_t:   α_t(y_t) += 1,   α_t(ŷ_t) −= 1,   at once, so that later nodes of the structure see it.

An epoch is the work of an engine (`fuda.marginalized.engines`); one without mistakes ends training.

The averaged perceptron predicts with the mean of α over all *steps*, a step being a structure visited. With
Δ_s the change in step s = 0, 1, …, n−1 the mean is α − (1/n) Σ_s s Δ_s, so that one more sum is all it needs.
What is learned depends much on the order of structures, since a few long matches weigh as much as many short
ones; so the mean goes over perceptrons with several orders.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from fuda.checks import check_counts, check_flags
from fuda.errors import DataError
from fuda.marginalized.engines import make_engine
from fuda.marginalized.engines.base import Engine, PerceptronState
from fuda.marginalized.problem import Examples, Sources
from fuda.marginalized.support import merged, supports
from fuda.models.base import Labeler
from fuda.models.marginalized import MarginalizedLabeler
from fuda.progress import Callback, Iterations

Array = np.ndarray

_ORDERS = 4  # that the mean goes over: one more changes little, and costs as much as the first


class MarginalizedPerceptron(MarginalizedLabeler):
    """Kernel marginalized labeling perceptron on sequences, trees and DAGs.

    Parameters
    ----------
    kernel : Kernel or callable, optional
        The kernel between observations; None is the normalized polynomial of degree 2.
    label_kernel : Kernel or array (labels, labels), optional
        The kernel between labels; None is the identity.
    mixing : float, optional
        c, what each node of a match weighs; None is the largest c at which c²k is never above 1, so that
        no number grows with the length of a match.
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
        Whether to fit probabilities, which decode="viterbi" and `predict_marginals` need, by up to five
        more machines that learn from parts of the data.
    epochs : int
        How often to go through the training structures, at most.
    average : bool
        Whether to predict with the mean of all coefficients on the way, and not with the last.
    orders : int, optional
        How many perceptrons the mean goes over besides: the first goes through structures as they stand,
        each further one in a new random order every epoch. None is 4 where `average` is true, else 1.
    engine : str
        What computes: "cpu", which is what "auto" chooses.
    n_jobs : int, optional
        Threads; None is all cores. Results do not depend on it.
    random_state : int or RandomState
        Seed of the random orders.
    callback : callable, optional
        Called after every epoch with a `fuda.progress.Iteration`; StopIteration ends the training.
    verbose : bool
        Whether to report epochs on standard error.

    Attributes
    ----------
    classes_ : labels, in the order of columns
    mistakes_ : list of int
        The number of mistakes in each epoch, of the perceptron with the first order, and then in each
        call of `partial_fit`.
    n_iter_ : int
        The number of epochs, of the perceptrons of all orders and of `partial_fit`.
    kernel_, label_kernel_, mixing_, gap_, orders_ : the parameters that the model was fitted with, defaults
        resolved; `label_kernel_` is a matrix.
    support_, support_structures_ : the nodes with coefficients, and their structures

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
        prior: Any = "uniform",
        prior_form: str = "marginals",
        features: Any = "spelling",
        decode: str = "pointwise",
        scheme: str | None = None,
        calibrate: bool = True,
        epochs: int = 10,
        average: bool = True,
        orders: int | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernel, self.label_kernel, self.mixing, self.gap = kernel, label_kernel, mixing, gap
        self.prior, self.prior_form = prior, prior_form
        self.features, self.decode, self.scheme, self.calibrate = features, decode, scheme, calibrate
        self.epochs, self.average, self.orders = epochs, average, orders
        self.engine, self.n_jobs, self.random_state = engine, n_jobs, random_state
        self.callback, self.verbose = callback, verbose

    mistakes_: list[int]
    orders_: int
    n_iter_: int

    def partial_fit(self, X: Any, y: Any, prior: Any = None) -> Self:
        """Go once through more structures, and correct the coefficients that predictions are made with.

        Nothing is asked again of the structures of `fit`, so one corrected structure costs about as much as
        its prediction. Labels are those of `fit`; on a model that is not fitted this is `fit`. After any
        exception the model is as it was before.
        """
        if not hasattr(self, "classes_"):
            if prior is not None:
                raise DataError(
                    "the model is not fitted yet, and `fit` takes its prior from the parameter; "
                    "set_params(prior=…)"
                )
            return self.fit(X, y)
        learner = copy(self)
        learner._go_on(X, y, prior)
        self._become(learner)
        return self

    def _go_on(self, X: Any, y: Any, prior: Any) -> None:
        """Learn from more structures; lists and vocabularies are replaced, not changed."""
        new = self._encode(X)
        if new is None:
            return
        self.encoder_, encoded = self.encoder_.grown(new.corpus)
        labels, of_X = self._numbers(y, encoded.corpus), self._prior_of(encoded.corpus, prior)
        examples = Examples.of(encoded, of_X)
        sums = np.zeros((2, len(labels), len(self.classes_)))
        state = PerceptronState(sums, base=self._support_scores(encoded, of_X))
        problem = Sources(self._settings, examples, self.n_jobs).problem()
        engine, order = make_engine(self.engine, problem, self.n_jobs), np.arange(len(encoded.corpus))
        mistakes = engine.perceptron_epoch(order, labels, np.ones(len(labels)), state)
        self.mistakes_ = [*self.mistakes_, mistakes]
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1
        self._support = merged([*self._support, *supports(examples, state.alpha(average=False))])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_counts(self, "epochs")
        if self.orders is not None:
            check_counts(self, "orders")
        check_flags(self, "average")

    def _learn(self, sources: Sources, labels: Array, amounts: Array, alpha: Array) -> None:
        labels, random = np.where(amounts > 0, labels, -1), check_random_state(self.random_state)
        self.orders_ = self.orders or (_ORDERS if self.average else 1)
        problem = sources.problem()
        engine = make_engine(self.engine, problem, self.n_jobs)
        self.n_iter_ = 0
        with Iterations("MarginalizedPerceptron", self.verbose, self.callback) as progress:
            for k in range(self.orders_):
                state, mistakes = PerceptronState(np.zeros((2, *alpha.shape))), list[int]()
                self.mistakes_ = self.mistakes_ if k else mistakes
                engine = engine.aimed_at(problem) if k else engine
                stopped = False
                try:
                    stopped = self._run(
                        engine, random if k else None, labels, amounts, state, mistakes, progress
                    )
                finally:
                    alpha += (state.alpha(self.average) - alpha) / (k + 1)  # the mean of all orders so far
                if stopped:
                    break

    def _run(
        self,
        engine: Engine,
        random: np.random.RandomState | None,
        labels: Array,
        amounts: Array,
        state: PerceptronState,
        mistakes: list[int],
        progress: Iterations,
    ) -> bool:
        """Learn from structures in the given order, or in random orders, until an epoch has no mistakes.

        Returns whether a callback ends the training.
        """
        order = np.arange(len(engine.problem.targets.sizes))
        while len(mistakes) < self.epochs and (not mistakes or mistakes[-1]):
            if random is not None:
                order = random.permutation(order)
            mistakes.append(engine.perceptron_epoch(order, labels, amounts, state))
            self.n_iter_ += 1
            if progress.report(mistakes=mistakes[-1]):
                return True
        return False

    def _arrays(self) -> dict[str, Array]:
        return super()._arrays() | {"mistakes": np.array(self.mistakes_, dtype=np.int64)}

    def _restore(self, arrays: dict[str, Array], texts: list[list[str]], parts: dict[str, Labeler]) -> None:
        mistakes = arrays.pop("mistakes", np.empty(0))
        if mistakes.dtype != np.int64 or mistakes.ndim != 1:
            raise DataError("its array 'mistakes' is missing or does not hold whole numbers")
        self.mistakes_ = mistakes.tolist()
        super()._restore(arrays, texts, parts)
