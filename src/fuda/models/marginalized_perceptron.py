"""The kernel marginalized labeling perceptron, dual form, in the papers' order of events.

Structures come one after another, and the nodes t of a structure one after another. With the scores S of
`fuda.models.marginalized`,

    ŷ_t = argmax_σ S(t,σ), of equal scores the first label;
    ŷ_t ≠ y_t:   α_t(y_t) += 1,   α_t(ŷ_t) −= 1,   at once, so that later nodes of the structure see it.

A structure that makes a mistake has its kernel with itself computed, which its later nodes need, and is
pushed to all others when it is done; one without mistakes costs nothing. An epoch without mistakes ends
training.

The averaged perceptron predicts with the mean of α over all *steps*, a step being a structure visited. With
Δ_s the change in step s = 0, 1, …, n−1 the mean is α − (1/n) Σ_s s Δ_s, so that one more sum is all it needs.
What is learned depends much on the order of structures, since a few long matches weigh as much as many short
ones; so the mean goes over perceptrons with several orders.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import check_random_state

from fuda.checks import check_counts, check_flags, check_randomness
from fuda.errors import DataError
from fuda.kernels import Linear, Polynomial
from fuda.marginalized.machine import Machine, Side
from fuda.marginalized.primal import PrimalMachine
from fuda.marginalized.scaled import Table
from fuda.marginalized.tables import added, doubles, each, product, put, taken
from fuda.models.base import Labeler
from fuda.models.marginalized import MarginalizedLabeler
from fuda.progress import Iterations

if TYPE_CHECKING:
    from fuda.marginalized.explain import Explanation

Array = np.ndarray

_ORDERS = 4  # that the mean goes over: one more changes little, and costs as much as the first


class MarginalizedPerceptron(MarginalizedLabeler):
    """Kernel marginalized labeling perceptron on sequences, trees and DAGs.

    Parameters
    ----------
    kernel, features : the kernel between observations, and the feature set or function that it sees.
    label_kernel : the kernel between labels, or its matrix; None is the identity.
    mixing : c, what each node of a match weighs; None is the largest at which c²k is never above 1, so that
        no number grows with the length of a match.
    prior, prior_form : P(y|x): "uniform", an HMM, MEMM or CRF, fitted or not, or arrays; taken by its node
        "marginals", or exactly as a "chain".
    gap : for sequences the price of a skipped node, from 0 (none is skipped) to 1.
    max_nodes : None is the dual, which sums over matches of any size by the kernel. A number is the primal:
        weights of explicit features of at most so many nodes, one by one, with kernel=Linear(). Slow; it is
        there to check the dual by, and to see the features.
    average : whether to predict with the mean of all coefficients on the way, and not with the last.
    orders : over how many perceptrons the mean goes besides: the first goes through structures as they stand,
        each further one in a new random order every epoch. None is 4 where `average` is true, else 1.
    epochs : how often the training structures are gone through, at most.
    decode, scheme : "pointwise", or "viterbi" for the best labelling as a whole, well-formed under a scheme.
    calibrate : whether to fit probabilities, which decode="viterbi" and `predict_marginals` need: by up to
        five more machines that learn from parts of the data.
    engine : "cpu", which is what "auto" chooses.
    window : 0; the kernel sees the neighbours of a node by itself.
    n_jobs : threads; None is all cores. Results do not depend on it.
    random_state : seed of the random orders.
    verbose : whether to report epochs on standard error.

    `mistakes_` has the number of mistakes in each epoch, by the perceptron of the first order.

    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> model = MarginalizedPerceptron().fit(X, y)
    >>> model.predict([["Ana", "is", "in", "Lima"]])[0]
    ['PER', 'O', 'O', 'LOC']
    """

    def __init__(
        self,
        kernel: Any = None,
        label_kernel: Any = None,
        mixing: float | None = None,
        prior: Any = "uniform",
        prior_form: str = "marginals",
        gap: float = 0.0,
        max_nodes: int | None = None,
        average: bool = True,
        orders: int | None = None,
        epochs: int = 10,
        decode: str = "pointwise",
        scheme: str | None = None,
        calibrate: bool = True,
        engine: str = "auto",
        features: Any = "spelling",
        window: int = 0,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self.kernel = Polynomial(2).normalized() if kernel is None else kernel
        self.label_kernel = label_kernel
        self.mixing = mixing
        self.prior = prior
        self.prior_form = prior_form
        self.gap = gap
        self.max_nodes = max_nodes
        self.average = average
        self.orders = orders
        self.epochs = epochs
        self.decode = decode
        self.scheme = scheme
        self.calibrate = calibrate
        self.engine = engine
        self.features = features
        self.window = window
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    mistakes_: list[int]

    def partial_fit(self, X: Any, y: Any, prior: Any = None) -> Self:
        """Go once through more structures, and correct the coefficients that predictions are made with.

        Nothing is asked again of the structures of `fit`, so one corrected structure costs about as much as
        its prediction. Labels are those of `fit`; on a model that is not fitted this is `fit`. After any
        exception, an interrupt included, the model is as it was before.
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
        encoded = self._encode(X)
        if encoded is None:
            return
        labels = self._numbers(y, encoded.corpus)
        side = self._more(encoded, prior)
        heard, machine = self._spoken(self._support, side.encoded, side.prior), self._machine(side, side)
        alpha = np.zeros((len(labels), len(self.classes_)))
        self.mistakes_ = [*self.mistakes_, 0]
        for i in range(len(side.sizes)):
            nodes = side.nodes(i)
            scores = added(taken(heard, nodes), machine.scores(i))
            alpha[nodes], mistakes = correct(machine, i, scores, labels[nodes], np.ones(len(labels[nodes])))
            if mistakes:
                machine.push(i, alpha[nodes])
                self.mistakes_[-1] += mistakes
        self._support = self._joined([*self._support, *self._kept(side, alpha)])

    def _check_parameters(self) -> None:
        self._check_shared_parameters()
        check_counts(self, "epochs")
        if self.orders is not None:
            check_counts(self, "orders")
        if self.max_nodes is not None:
            check_counts(self, "max_nodes")
            plain = self.gap == 0 and self.label_kernel is None and self.prior_form == "marginals"
            if self.kernel != Linear() or not plain:
                raise DataError(
                    "max_nodes lists features one by one, which goes with kernel=Linear(), gap=0, "
                    "label_kernel=None and prior_form='marginals'"
                )
        check_flags(self, "average")
        check_randomness(self)

    def _machine(self, sources: Side, targets: Side) -> Any:
        if self.max_nodes is None:
            return super()._machine(sources, targets)
        return PrimalMachine(self.max_nodes, self.mixing_, sources, targets)

    def explain(self, x: Any, node: int, prior: Any = None, top: int = 5) -> Explanation:
        if self.max_nodes is not None:
            raise DataError("explain tells what matched in the kernel; fit with max_nodes=None")
        return super().explain(x, node, prior, top)

    def _learn(self, side: Side, labels: Array, amounts: Array, alpha: Array) -> None:
        labels = np.where(amounts > 0, labels, -1)
        random, orders = (
            check_random_state(self.random_state),
            self.orders or (_ORDERS if self.average else 1),
        )
        with Iterations("MarginalizedPerceptron", shown=self.verbose) as progress:
            for k in range(orders):
                own = _Course(np.zeros((2, *alpha.shape)))
                self.mistakes_ = self.mistakes_ if k else own.mistakes
                try:
                    self._go_through(side, random if k else None, labels, amounts, own, progress)
                finally:
                    alpha += (own.alpha(self.average) - alpha) / (k + 1)  # the mean of all orders so far

    def _go_through(
        self,
        side: Side,
        random: np.random.RandomState | None,
        labels: Array,
        amounts: Array,
        own: _Course,
        progress: Iterations,
    ) -> None:
        """Learn from structures as they stand, or in random orders."""
        order, log = np.arange(len(side.sizes)), own.mistakes
        machine = self._machine(side, side)
        while len(log) < self.epochs and (not log or log[-1]):
            log.append(0)
            if random is not None:
                order = random.permutation(order)
                machine.visit_in(order)
            for i in order.tolist():
                nodes = side.nodes(i)
                change, mistakes = correct(machine, i, machine.scores(i), labels[nodes], amounts[nodes])
                if mistakes:
                    own.sums[:, nodes] += np.multiply.outer([1.0, own.steps], change)
                    machine.push(i, change)
                    log[-1] += mistakes
                own.steps += 1
            progress.say(len(log), f"epoch {len(log)}, {log[-1]:,} mistakes")

    def _arrays(self) -> dict[str, Array]:
        return super()._arrays() | {"mistakes": np.array(self.mistakes_, dtype=np.int64)}

    def _restore(self, arrays: dict[str, Array], texts: list[list[str]], parts: dict[str, Labeler]) -> None:
        mistakes = arrays.pop("mistakes", np.empty(0))
        if mistakes.dtype != np.int64 or mistakes.ndim != 1:
            raise DataError("its array 'mistakes' is missing or does not hold whole numbers")
        self.mistakes_ = mistakes.tolist()
        super()._restore(arrays, texts, parts)


@dataclass
class _Course:
    """A perceptron on its way: Σ_s Δ_s and Σ_s s Δ_s (2, N, L), which change together, so that an interrupt
    finds them whole; steps; the mistakes of each epoch."""

    sums: Array
    steps: int = 0
    mistakes: list[int] = field(default_factory=list)

    def alpha(self, average: bool) -> Array:
        """α now, or its mean over the steps so far."""
        return self.sums[0] - self.sums[1] / self.steps if average and self.steps else self.sums[0]


def correct(
    machine: Machine, structure: int, scores: Table, labels: Array, amounts: Array
) -> tuple[Array, int]:
    """The change of α (nodes, L) that the mistakes in a structure make, and their number.

    `scores` (nodes, L) are used up. `labels` are −1 where nothing is to be corrected; `amounts` is what a
    mistake changes.
    """
    best, mistakes = doubles(scores).argmax(axis=1), 0
    wrong = np.flatnonzero((best != labels) & (labels >= 0))
    change = np.zeros((len(labels), len(machine.label_gram)))
    if not len(wrong):
        return change, mistakes
    first = machine.sources.nodes(structure).start
    kappa = each(_with_labels, machine.kappa(structure, structure))
    prior = machine.targets.prior.nodes[machine.targets.nodes(structure)]
    while len(wrong):
        t = int(wrong[0])
        change[t, labels[t]] += amounts[t]
        change[t, best[t]] -= amounts[t]
        mistakes += 1
        later = slice(t + 1, None)
        gamma = machine.gamma(change[t : t + 1], slice(first + t, first + t + 1))
        heard = added(taken(scores, later), product(taken(kappa, (t, later)), gamma * prior[later]))
        put(scores, later, heard)
        best[later] = doubles(heard).argmax(axis=1)
        wrong = t + 1 + np.flatnonzero((best[later] != labels[later]) & (labels[later] >= 0))
    return change, mistakes


def _with_labels(kappa: Array) -> Array:
    """κ (T, T, labels), or (T, T, 1) where it is the same for all labels."""
    return kappa.reshape(*kappa.shape[:2], -1)
