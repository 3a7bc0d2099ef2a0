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
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from fuda.errors import DataError
from fuda.kernels import Polynomial
from fuda.marginalized.machine import Machine, Side
from fuda.marginalized.scaled import Table
from fuda.marginalized.tables import added, doubles, each, product, put, taken
from fuda.models.base import Labeler
from fuda.models.marginalized import MarginalizedLabeler
from fuda.models.parameters import check_counts, check_flags, check_randomness
from fuda.progress import Iterations

Array = np.ndarray


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
    prior_power : to which power node marginals are raised before the kernel sees them: 1 takes them as they
        are, less flattens a prior that is too sure of itself. Probabilities and decode="viterbi" hear the
        prior as it is besides.
    gap : for sequences the price of a skipped node, from 0 (none is skipped) to 1.
    average : whether to predict with the mean of all coefficients on the way, and not with the last.
    epochs : how often the training structures are gone through, at most.
    decode, scheme : "pointwise", or "viterbi" for the best labelling as a whole, well-formed under a scheme.
    calibrate : whether to fit probabilities, which decode="viterbi" and `predict_marginals` need: by up to
        five more machines that learn from parts of the data.
    engine : "cpu", which is what "auto" chooses.
    window : 0; the kernel sees the neighbours of a node by itself.
    n_jobs : threads; None is all cores. Results do not depend on it.
    random_state : the seed of the order in which structures are visited, the same in every epoch; None visits
        them as they stand, which does less well where neighbours are alike.
    verbose : whether to report epochs on standard error.

    `mistakes_` has the number of mistakes in each epoch.

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
        prior_power: float = 1.0,
        gap: float = 0.0,
        average: bool = True,
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
        self.prior_power = prior_power
        self.gap = gap
        self.average = average
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
        its prediction. Labels are those of `fit`; on a model that is not fitted this is `fit`.
        """
        if not hasattr(self, "classes_"):
            return self.fit(X, y)
        encoded = self._encode(X)
        if encoded is None:
            return self
        labels = self._numbers(y, encoded.corpus)
        side = self._more(encoded, prior)
        heard, machine = self._spoken(self._support, side.encoded, side.prior), self._machine(side, side)
        alpha = np.zeros((len(labels), len(self.classes_)))
        self.mistakes_.append(0)
        for i in range(len(side.sizes)):
            nodes = side.nodes(i)
            scores = added(taken(heard, nodes), machine.scores(i))
            alpha[nodes], mistakes = correct(machine, i, scores, labels[nodes], np.ones(len(labels[nodes])))
            if mistakes:
                machine.push(i, alpha[nodes])
                self.mistakes_[-1] += mistakes
        self._support = self._joined([*self._support, *self._kept(side, alpha)])
        return self

    def _check_parameters(self) -> None:
        self._check_shared_parameters()
        check_counts(self, "epochs")
        check_flags(self, "average")
        check_randomness(self)

    def _order(self, count: int) -> Array:
        """Structures as they stand, or in one random order."""
        if self.random_state is None:
            return np.arange(count)
        return check_random_state(self.random_state).permutation(count)

    def _training_machine(self, side: Side) -> Machine:
        return self._machine(side, side, order=self._order(len(side.sizes)))

    def _learn(self, machine: Machine, labels: Array, amounts: Array) -> Array:
        side, order = machine.targets, machine.order
        raw, late = np.zeros((2, len(labels), len(self.classes_)))
        labels = np.where(amounts > 0, labels, -1)
        self.mistakes_, step = [], 0
        with Iterations("MarginalizedPerceptron", shown=self.verbose) as progress:
            for epoch in range(self.epochs):
                self.mistakes_.append(0)
                for i in order.tolist():
                    nodes = side.nodes(i)
                    change, mistakes = correct(machine, i, machine.scores(i), labels[nodes], amounts[nodes])
                    if mistakes:
                        raw[nodes] += change
                        late[nodes] += step * change
                        machine.push(i, change)
                        self.mistakes_[-1] += mistakes
                    step += 1
                progress.say(epoch + 1, f"epoch {epoch + 1}, {self.mistakes_[-1]:,} mistakes")
                if not self.mistakes_[-1]:
                    break
        return raw - late / step if self.average else raw

    def _arrays(self) -> dict[str, Array]:
        return super()._arrays() | {"mistakes": np.array(self.mistakes_, dtype=np.int64)}

    def _restore(self, arrays: dict[str, Array], texts: list[list[str]], parts: dict[str, Labeler]) -> None:
        mistakes = arrays.pop("mistakes", np.empty(0))
        if mistakes.dtype != np.int64 or mistakes.ndim != 1:
            raise DataError("its array 'mistakes' is missing or does not hold whole numbers")
        self.mistakes_ = mistakes.tolist()
        super()._restore(arrays, texts, parts)


def correct(
    machine: Machine, structure: int, scores: Table, labels: Array, amounts: Array
) -> tuple[Array, int]:
    """The change of α (nodes, L) that the mistakes in a structure make, and their number.

    `scores` (nodes, L) are used up. `labels` are −1 where nothing is to be corrected; `amounts` is what a
    mistake changes.
    """
    change = np.zeros((len(labels), len(machine.label_gram)))
    first, mistakes = machine.sources.nodes(structure).start, 0
    best = doubles(scores).argmax(axis=1)
    wrong = np.flatnonzero((best != labels) & (labels >= 0))
    while len(wrong):
        if not mistakes:
            kappa = each(_with_labels, machine.kappa(structure, structure))
            prior = machine.targets.prior.nodes[machine.targets.nodes(structure)]
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
