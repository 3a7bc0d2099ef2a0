"""Passive-aggressive and AROW corrections of the hidden Markov perceptron.

At a mistake let δ = Φ(x, y) − Φ(x, ŷ), over features and label n-grams alike, let d be the number
of nodes labelled wrongly, Σ a diagonal of variances, 1 at the start, η the weight of the structure
and

    ℓ = F(x, ŷ) − F(x, y) + m(d)

the cost, by how much y falls short of beating ŷ by the margin m(d). Then

    perceptron              w += η Σδ
    passive-aggressive      w += η τ Σδ,   τ = min(C, ℓ / δᵀΣδ)              PA-I, m(d) = √d
    passive-aggressive-2    w += η τ Σδ,   τ = ℓ / (δᵀΣδ + 1 / 2C)           PA-II, m(d) = √d
    arow                    w += η α Σδ,   α = ℓ / (δᵀΣδ + 1 / C),           m(d) = d
                            Σ_kk = 1 / (1 / Σ_kk + η C δ_k²)

or m(d) = 1 without `rescale`. The passive-aggressive step is the smallest change of w that gives y
the margin, at the price C for what it falls short; AROW also keeps how certain each weight is, and
changes rare features more. A variance of 0 keeps a weight at 0.

References
----------
K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer. Online passive-aggressive
algorithms. JMLR 7, 2006. A. Mejer, K. Crammer. Confidence in structured-prediction using
confidence-weighted models. EMNLP 2010. K. Crammer, A. Kulesza, M. Dredze. Adaptive regularization
of weight vectors. NIPS 2009.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.data.encoding import Encoded
from fuda.data.graph import Array
from fuda.inference.higher_order import Grams, Shape, decode, fill_contexts
from fuda.runtime.compiled import compiled
from fuda.training.perceptron import (
    PackedFeatures,
    Pass,
    PerceptronLearner,
    State,
    TrainingExamples,
    count_mistakes,
    fill_scores,
    fill_target,
    pack_features,
    work_for,
)

UPDATES = ("perceptron", "passive-aggressive", "passive-aggressive-2", "arow")
_AROW = 3


class Update(NamedTuple):
    """How large corrections are.

    Attributes
    ----------
    kind : int
        The index in `UPDATES`.
    C : float
        The price of falling short of the margin.
    rescale : bool
        Whether the margin grows with the number of mistakes.
    """

    kind: int
    C: float
    rescale: bool


class Flat(NamedTuple):
    """All weights as vectors: W, `short` and `full` of a `State`, one after another.

    Attributes
    ----------
    weights, late, variances : (K,) arrays
        w, u and Σ.
    delta : (K,) array
        δ while a correction is made, else 0.
    at, values : arrays
        Buffers for the summands of δ: indices into it, and values.
    """

    weights: Array
    late: Array
    variances: Array
    delta: Array
    at: Array
    values: Array


class OnlineLearner(PerceptronLearner):
    """The perceptron with weights W of features and corrections of other sizes.

    Parameters
    ----------
    encoded : Encoded
        The training corpus.
    examples : TrainingExamples
        Its structures, labels and weights.
    state : State
        Where to start from; it is not changed. Without variances these are 1.
    update : Update
        How large corrections are.

    Attributes
    ----------
    state : State
        The present state.
    """

    def __init__(self, encoded: Encoded, examples: TrainingExamples, state: State, update: Update) -> None:
        self.examples, self.features, self.update = examples, pack_features(encoded), update
        parts, late = (state[0], state[2], state[4]), (state[1], state[3], state[5])
        weights, late_weights = (np.concatenate([part.ravel() for part in of]) for of in (parts, late))
        variances = state.variances.copy() if len(state.variances) else np.ones(len(weights))
        capacity = _most_summands(self.features, examples)
        buffers = np.empty(capacity, dtype=np.int64), np.empty(capacity)
        self.flat = Flat(weights, late_weights, variances, np.zeros(len(weights)), *buffers)
        ends = np.cumsum([part.size for part in parts])[:-1]
        views = [
            part.reshape(like.shape)
            for pair in zip(np.split(weights, ends), np.split(late_weights, ends), parts, strict=True)
            for part, like in ((pair[0], pair[2]), (pair[1], pair[2]))
        ]
        stored_variances = variances if len(state.variances) else state.variances
        self.state = State._make([*views, state.steps.copy(), stored_variances])

    def run(self, structures: Array, result: Pass) -> None:
        """Learn from structures, in that order, and note the outcome."""
        work = work_for(self.examples)
        _online_pass(
            structures, self.examples, self.features, self.state, self.flat, self.update, result, work
        )


def _most_summands(features: PackedFeatures, examples: TrainingExamples) -> int:
    """How many summands δ may have for one structure."""
    ends = np.append(0, np.cumsum(np.diff(features.row_bounds)[features.rows]))
    of_structures = np.diff(ends[features.bounds][examples.offsets]) + np.diff(examples.offsets)
    return 2 * int(of_structures.max())


@compiled
def _add_features(
    begin: int, features: PackedFeatures, size: int, target: Array, predicted: Array, flat: Flat
) -> int:
    """δ += its part of features; returns the number of summands. `size` is L."""
    count = 0
    for j in range(len(target)):
        if target[j] == predicted[j]:
            continue
        for e in range(features.bounds[begin + j], features.bounds[begin + j + 1]):
            row = features.rows[e]
            for i in range(features.row_bounds[row], features.row_bounds[row + 1]):
                start = (features.first[e] + features.columns[i]) * size
                flat.at[count], flat.values[count] = start + target[j], features.values[i]
                flat.at[count + 1], flat.values[count + 1] = start + predicted[j], -features.values[i]
                count += 2
    return count


@compiled
def _add_grams(
    begin: int, shape: Shape, grams: Grams, target: Array, predicted: Array, flat: Flat, count: int
) -> int:
    """δ += its part of label n-grams, after `count` summands; returns their new number."""
    _, _, depths, bounds = shape
    most = len(bounds) - 2
    if most == 0:
        return count
    size, last = grams.full.shape[1], grams.full.shape[2]
    full_start = len(flat.weights) - grams.full.size
    short_start = full_start - grams.short.size
    contexts = np.empty(len(target), dtype=np.int64)
    for sign in (1.0, -1.0):
        labels = target if sign > 0 else predicted
        fill_contexts(begin, begin + len(target), shape, size, labels, contexts)
        for j in range(len(target)):
            depth, context = depths[begin + j], contexts[j]
            if depth < most:
                at = short_start + (bounds[depth] + context) * size + labels[j]
            else:
                at = full_start + (context // last * size + labels[j]) * last + context % last
            flat.at[count], flat.values[count] = at, sign
            count += 1
    return count


@compiled
def _correct(flat: Flat, count: int, update: Update, mistaken: int, eta: float, step: int) -> float:
    """Change w, u and Σ by the `count` summands of δ; the cost ℓ."""
    at, values, delta = flat.at[:count], flat.values[:count], flat.delta
    cost = 1.0
    if update.rescale:
        cost = float(mistaken) if update.kind == _AROW else np.sqrt(mistaken)
    for i in range(count):
        delta[at[i]] += values[i]
        cost -= values[i] * flat.weights[at[i]]
    square = 0.0
    for i in range(count):
        square += values[i] * delta[at[i]] * flat.variances[at[i]]
    amount = 1.0
    if update.kind == 1:
        amount = min(update.C, cost / square) if square > 0 else 0.0
    elif update.kind == 2:
        amount = cost / (square + 0.5 / update.C)
    elif update.kind == _AROW:
        amount = cost / (square + 1.0 / update.C)
    for i in range(count):
        k, change = at[i], delta[at[i]]
        delta[k] = 0.0  # a weight that is listed again is not changed again
        variance = flat.variances[k]
        flat.weights[k] += eta * amount * variance * change
        flat.late[k] += step * eta * amount * variance * change
        if update.kind == _AROW:
            flat.variances[k] = variance / (1.0 + eta * update.C * change * change * variance)
    return cost


@compiled
def _online_pass(
    structures: Array, examples: TrainingExamples, features: PackedFeatures, state: State, flat: Flat,
    update: Update, result: Pass, work: tuple,
) -> None:  # fmt: skip
    """Learn from structures, in that order."""
    shape, grams, size = examples.shape, Grams(state.short, state.full), state.nodes.shape[1]
    scores = np.empty((len(work[0]), size))
    for i in structures:
        begin, end = examples.offsets[i], examples.offsets[i + 1]
        labels = examples.labels[begin:end]
        target, predicted = result.targets[begin:end], result.predicted[begin:end]
        fill_scores(begin, end, features, state.nodes, scores)
        decode(begin, end, shape, grams, scores, work[0], work[1], predicted)
        result.mistaken[i] = count_mistakes(labels, predicted)
        state.steps[0] += 1
        if result.mistaken[i]:
            fill_target(begin, shape, grams, scores, work, labels, target)
            count = _add_features(begin, features, size, target, predicted, flat)
            count = _add_grams(begin, shape, grams, target, predicted, flat, count)
            eta, step = examples.eta[i], state.steps[0]
            result.costs[i] = _correct(flat, count, update, result.mistaken[i], eta, step)
