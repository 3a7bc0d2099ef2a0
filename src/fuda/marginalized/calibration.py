"""From scores to probabilities.

Scores S(t,σ) of a kernel machine have the right order and no scale: they are sums of κ, which may be of any
size and differ much from node to node. So they are taken in units of the largest at their node, and joined
with what the prior says by itself:

    z(t,σ) = a S(t,σ) / max_ρ |S(t,ρ)| + b log P(σ|t).

Pointwise, and as a whole,

    P(y_t = σ) ∝ exp z(t,σ),
    P(y) ∝ exp( Σ_t z'(t,y_t) + w Σ_{edges p→t} m(y_p, y_t) ),    m(ρ,σ) = log [ n(ρ,σ) n / (n(ρ) n(σ)) ],

z' with numbers a', b' of its own. n(ρ,σ) counts the pairs of labels along edges of the training data, each
count raised by 1; n(ρ), n(σ) and n are its sums. The five numbers a, b, a', b', w are positive, and fitted by
likelihood on honest scores: those that structures have by machines that learned from others. But likelihood
asks how sure one may be, and a machine that is often right and sometimes wildly wrong hardly counts for it.
To label well is another matter; so of several multiples of a' the one is taken by which the same structures
get the best labels (by label F1, which leaves the label O out).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fuda import inference
from fuda.optimize import Lbfgs

Array = np.ndarray
_LEAST = 1e-12  # of a probability whose logarithm is taken
FACTORS = 2.0 ** np.arange(-1, 4.5, 0.5)  # of a', to choose from
_PULL = 0.01  # towards 1, of numbers about which the data say little


@dataclass(frozen=True)
class Calibration:
    """`point` are a and b, `whole` a', b' and w, `pairs` (L, L) is m."""

    point: Array
    whole: Array
    pairs: Array

    def marginals(self, scores: Array, belief: Array) -> Array:
        """P(y_t = σ), each node for itself (N, L); `belief` (N, L) is the prior P(σ|t)."""
        return _softmax(self.point @ _parts(scores, belief))

    def trusting(self, factor: float) -> Calibration:
        """The same, but with a' times a factor."""
        return replace(self, whole=self.whole * [factor, 1.0, 1.0])

    def labelings(self, scores: Array, belief: Array) -> tuple[Array, Array]:
        """Node scores (N, L) and pair scores (L, L) of labelings as a whole."""
        return self.whole[:2] @ _parts(scores, belief), self.whole[2] * self.pairs


def label_f1(labels: Array, predicted: Array, outside: int | None) -> float:
    """F1 of labels other than the outside one, over nodes whose label is known (≥ 0)."""
    known = labels >= 0
    wanted, found = known & (labels != outside), known & (predicted != outside)
    right = float((wanted & (labels == predicted)).sum())
    return 2 * right / max(1.0, float(wanted.sum() + found.sum()))


def untrained(label_count: int) -> Calibration:
    """What stands where there are too few structures to learn from."""
    return Calibration(np.ones(2), np.ones(3), np.zeros((label_count, label_count)))


def pair_information(labels: Array, edges: Array, label_count: int) -> Array:
    """m (L, L) of the labels (N,), −1 where not known, along edges (E, 2)."""
    ends = labels[edges[(labels[edges] >= 0).all(axis=1)]]
    counts = np.ones((label_count, label_count))
    np.add.at(counts, (ends[:, 0], ends[:, 1]), 1.0)
    return np.log(counts * counts.sum() / np.outer(counts.sum(axis=1), counts.sum(axis=0)))


def fit(
    scores: Array,
    belief: Array,
    labels: Array,
    graph: inference.Graph | None,
    pairs: Array,
    n_jobs: int | None = None,
) -> Calibration:
    """The calibration that fits labels (N,), −1 where not known; w = 1 and z' = z where there is no graph."""
    parts = _parts(scores, belief)
    known = np.flatnonzero(labels >= 0)
    point = _fitted(lambda x: _point_loss(x, parts[known], labels[known]), np.ones(2))
    whole = np.append(point, 1.0)
    if graph is not None:
        whole = _fitted(lambda x: _whole_loss(x, parts, labels, graph, pairs, n_jobs), whole)
    return Calibration(point, whole, pairs)


def _parts(scores: Array, belief: Array) -> Array:
    """(N, 2, L) the two parts of z."""
    largest = np.abs(scores).max(axis=1, keepdims=True)
    return np.stack(
        [scores / np.where(largest > 0, largest, 1.0), np.log(np.maximum(belief, _LEAST))], axis=1
    )


def _fitted(loss: Callable[[Array], tuple[float, Array]], start: Array) -> Array:
    """The positive numbers at which a loss is least, found by their logarithms."""

    def by_logarithm(x: Array) -> tuple[float, Array]:
        numbers = np.exp(x)
        value, gradient = loss(numbers)
        return value + _PULL * float(x @ x), gradient * numbers + 2 * _PULL * x

    return np.exp(Lbfgs(by_logarithm, np.log(start)).minimize(tol=1e-6, max_iter=200).x)


def _point_loss(numbers: Array, parts: Array, labels: Array) -> tuple[float, Array]:
    rows = np.arange(len(labels))
    p = _softmax(numbers @ parts)
    value = -np.log(np.maximum(p[rows, labels], 1e-300)).sum()
    p[rows, labels] -= 1.0
    return float(value), np.einsum("tl,tkl->k", p, parts)


def _whole_loss(
    numbers: Array, parts: Array, labels: Array, graph: inference.Graph, pairs: Array, n_jobs: int | None
) -> tuple[float, Array]:
    """Labels that are not known are summed over."""
    scores, transitions = numbers[:2] @ parts, numbers[2] * pairs
    held = np.where((labels[:, None] < 0) | (labels[:, None] == np.arange(len(pairs))), scores, -np.inf)
    free, fixed = (inference.expectations(graph, s, transitions, n_jobs=n_jobs) for s in (scores, held))
    nodes, edges = free[1] - fixed[1], free[2] - fixed[2]
    gradient = np.append(np.einsum("tl,tkl->k", nodes, parts), (edges * pairs).sum())
    return float((free[0] - fixed[0]).sum()), gradient


def _softmax(logits: Array) -> Array:
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
