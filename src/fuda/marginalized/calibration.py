"""Probabilities from the scores of kernel machines.

The scores S(t,σ) of a kernel machine rank the labels but have no scale: they are sums of κ, which
may be of any size and vary much between nodes. So they are divided by the largest at their node,
and combined with the prior:

    z(t,σ) = a S(t,σ) / max_ρ |S(t,ρ)| + b log P(σ|t).

Per node, and for labelings as a whole,

    P(y_t = σ) ∝ exp z(t,σ),
    P(y) ∝ exp( Σ_t z'(t,y_t) + w Σ_{edges p→t} m(y_p, y_t) ),
    m(ρ,σ) = log [ n(ρ,σ) n / (n(ρ) n(σ)) ],

where z' has coefficients a', b' instead of a, b. Where the prior gives the scores of whole
labelings, as a CRF does, these may replace log P(σ|t) in z', and b' times its scores of pairs
replace w m: a product of marginals, with m added, may be a worse labeler than the CRF itself.
n(ρ,σ) counts the pairs of labels along edges of the training data, each count increased by 1;
n(ρ), n(σ) and n are its sums. The five coefficients a, b, a', b', w are positive and maximize the
likelihood of held-out scores: those of structures by machines trained on other structures.
Likelihood measures confidence, though: a machine that is often right but sometimes very wrong gets
a small a'. For labels of good quality, a' is then multiplied by the factor, and the prior used in
the one way or the other, that gives the same structures the best F1 of entities or, where labels
are not tags of entities, of labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fuda import inference
from fuda.marginalized.priors import Joint
from fuda.optimize import Lbfgs

Array = np.ndarray
# Smaller probabilities are replaced by this one before their logarithm is taken.
_LEAST = 1e-12
_FACTORS = 2.0 ** np.arange(-1, 4.5, 0.5)  # the candidates for a' are multiples of its fitted value by these
_BESIDE_LABELINGS = np.array(
    [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0]
)  # the candidates for a' where the prior scores labelings
_REGULARIZATION = 0.01  # the strength of the pull of coefficients towards 1


class DecisionInputs(NamedTuple):
    """What decides about the labels of nodes.

    Attributes
    ----------
    scores : array (N, L)
        S(t,σ), up to a factor per node.
    prior : array (N, L)
        The prior P(σ|t).
    memory : array (N, L) or (1, 1)
        M(t,σ), from remembered corrections.
    joint : Joint or None
        The scores of labelings by the prior.
    """

    scores: Array
    prior: Array
    memory: Array = np.zeros((1, 1))
    joint: Joint | None = None

    def scaled(self) -> Array:
        """Return S(t,σ) / max_ρ |S(t,ρ)|."""
        largest = np.abs(self.scores).max(axis=1, keepdims=True)
        return self.scores / np.where(largest > 0, largest, 1.0)


@dataclass(frozen=True)
class Calibration:
    """The coefficients of probabilities.

    Attributes
    ----------
    point : array (2,)
        a and b.
    labeling_coefficients : array (3,)
        a', b' and w.
    pairs : array (L, L)
        m.
    by_labelings : bool
        Whether z' is that of a prior that scores labelings as a whole.
    """

    point: Array
    labeling_coefficients: Array
    pairs: Array
    by_labelings: bool = False

    def marginals(self, inputs: DecisionInputs) -> Array:
        """Return P(y_t = σ) per node, (N, L)."""
        return _softmax(self.logits(inputs))

    def ranks(self, inputs: DecisionInputs) -> Array:
        """Return what ranks the labels of each node by scores and memory alone."""
        if not inputs.memory.any():
            return inputs.scores
        return self.point[0] * inputs.scaled() + inputs.memory

    def logits(self, inputs: DecisionInputs) -> Array:
        """Return z + M per node, (N, L)."""
        return self.point @ _parts(inputs) + inputs.memory

    def candidates(self) -> list[Calibration]:
        """Return this calibration with other values of a', to choose by the labels they give."""
        values = _BESIDE_LABELINGS if self.by_labelings else self.labeling_coefficients[0] * _FACTORS
        return [
            replace(self, labeling_coefficients=np.append(a, self.labeling_coefficients[1:]))
            for a in values.tolist()
        ]

    def labelings(self, inputs: DecisionInputs) -> tuple[Array, Array]:
        """Return the node scores (N, L) and pair scores (L, L) of labelings as a whole."""
        joint = inputs.joint if self.by_labelings else None
        scores, pairs = _labeling_scores(self.labeling_coefficients, _parts(inputs, joint), joint, self.pairs)
        return scores + inputs.memory, pairs


def label_f1(labels: Array, predicted: Array, outside: int | None) -> float:
    """Return F1 over labels other than `outside`, at nodes whose label is known (≥ 0)."""
    known = labels >= 0
    true, positive = known & (labels != outside), known & (predicted != outside)
    correct = float((true & (labels == predicted)).sum())
    return 2 * correct / max(1.0, float(true.sum() + positive.sum()))


def untrained(label_count: int) -> Calibration:
    """Return the calibration used when there are too few structures to fit one."""
    return Calibration(np.ones(2), np.ones(3), np.zeros((label_count, label_count)))


def pair_information(labels: Array, edges: Array, label_count: int) -> Array:
    """Return m (L, L) of labels (N,), −1 where unknown, along edges (E, 2)."""
    ends = labels[edges[(labels[edges] >= 0).all(axis=1)]]
    counts = np.ones((label_count, label_count))
    np.add.at(counts, (ends[:, 0], ends[:, 1]), 1.0)
    return np.log(counts * counts.sum() / np.outer(counts.sum(axis=1), counts.sum(axis=0)))


def fit(
    inputs: DecisionInputs,
    labels: Array,
    graph: inference.Graph | None,
    pairs: Array,
    n_jobs: int | None = None,
) -> Calibration:
    """Fit a calibration.

    Parameters
    ----------
    inputs : DecisionInputs
        Held-out scores S(t,σ) and priors P(σ|t).
    labels : array (N,)
        Label numbers, −1 where unknown.
    graph : Graph or None
        The chains or trees of the nodes; without it w = 1 and z' = z.
    pairs : array (L, L)
        m.
    n_jobs : int or None
        The number of threads.

    Returns
    -------
    Calibration
        The coefficients of maximum likelihood.
    """
    parts = _parts(inputs)
    known = np.flatnonzero(labels >= 0)
    point = _fitted(lambda x: _point_loss(x, parts[known], labels[known]), np.ones(2))
    coefficients, joint = np.append(point, 1.0), inputs.joint
    if graph is None:
        return Calibration(point, coefficients, pairs)
    if joint is not None:  # it has scores of pairs, so that w = 0
        parts, pairs = _parts(inputs, joint), np.zeros_like(pairs)
        coefficients = np.append(point[0], np.ones(2))
    coefficients = _fitted(
        lambda x: _labeling_loss(x, parts, joint, labels, graph, pairs, n_jobs), coefficients
    )
    return Calibration(point, coefficients, pairs, joint is not None)


def _parts(inputs: DecisionInputs, joint: Joint | None = None) -> Array:
    """Return the two terms of z (of z' with a joint prior) without coefficients: (N, 2, L)."""
    of_prior = np.log(np.maximum(inputs.prior, _LEAST)) if joint is None else joint.nodes
    return np.stack([inputs.scaled(), of_prior], axis=1)


def _labeling_scores(numbers: Array, parts: Array, joint: Joint | None, pairs: Array) -> tuple[Array, Array]:
    """Return the node scores (N, L) and pair scores (L, L) of labelings."""
    of_prior = 0.0 if joint is None else numbers[1] * joint.pairs
    return numbers[:2] @ parts, numbers[2] * pairs + of_prior


def _fitted(loss: Callable[[Array], tuple[float, Array]], start: Array) -> Array:
    """Return the positive coefficients that minimize a loss, optimized as logarithms.

    The loss is divided by its value at the start, since the gradient of a sum over thousands of
    nodes cannot vanish as far as that of one of them: rounding would keep the search for steps
    going.
    """
    unit = max(1.0, loss(start)[0])

    def by_logarithm(x: Array) -> tuple[float, Array]:
        numbers = np.exp(x)
        value, gradient = loss(numbers)
        gradient = gradient * numbers + 2 * _REGULARIZATION * x
        return (value + _REGULARIZATION * float(x @ x)) / unit, gradient / unit

    return np.exp(Lbfgs(by_logarithm, np.log(start)).minimize(tol=1e-6, max_iter=200).x)


def _point_loss(numbers: Array, parts: Array, labels: Array) -> tuple[float, Array]:
    """Return the negative log-likelihood per node, and its gradient."""
    rows = np.arange(len(labels))
    p = _softmax(numbers @ parts)
    value = -np.log(np.maximum(p[rows, labels], 1e-300)).sum()
    p[rows, labels] -= 1.0
    return float(value), np.einsum("tl,tkl->k", p, parts)


def _labeling_loss(
    numbers: Array,
    parts: Array,
    joint: Joint | None,
    labels: Array,
    graph: inference.Graph,
    pairs: Array,
    n_jobs: int | None,
) -> tuple[float, Array]:
    """Return the negative log-likelihood of labelings, unknown labels summed out, and gradient."""
    scores, transitions = _labeling_scores(numbers, parts, joint, pairs)
    clamped = np.where((labels[:, None] < 0) | (labels[:, None] == np.arange(len(pairs))), scores, -np.inf)
    free, fixed = (inference.expectations(graph, s, transitions, n_jobs=n_jobs) for s in (scores, clamped))
    nodes, edges = free[1] - fixed[1], free[2] - fixed[2]
    gradient = np.append(np.einsum("tl,tkl->k", nodes, parts), (edges * pairs).sum())
    if joint is not None:
        gradient[1] += (edges * joint.pairs).sum()
    return float((free[0] - fixed[0]).sum()), gradient


def _softmax(logits: Array) -> Array:
    """Return exp(logits), normalized per row."""
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
