"""Working sets: the labelings of each structure that a maximum-margin labeler holds multipliers for.

Let y_i be the right labeling of structure i, y another, d_i(y) = Φ(x_i, y_i) − Φ(x_i, y), and Δ_i(y) the loss
by which F(y_i) should exceed F(y) = ⟨w, Φ(x_i, y)⟩. With multipliers α_i(y) ≥ 0 and w = Σ α_i(y) d_i(y), the
dual objective is, as a function of the multipliers of one structure alone,

    bᵀα − ½ αᵀ(Q + p)α + const,   Q(y, y') = ⟨d(y), d(y')⟩,   b(y) = Δ(y) − ⟨w, d(y)⟩ + (Qα₀)(y),

α₀ being their present values, p a penalty on (Σα)², and Σα ≤ C where there is a bound. This is maximized
exactly (`ascend`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit

from fuda.functions.explicit import score_node, update_node
from fuda.optimize import qp

Array = np.ndarray


@dataclass
class WorkingSet:
    """Labelings (m, T) of a structure, none of them right; their α, losses Δ, matrix Q, and for how many
    rounds α has been 0."""

    labelings: Array
    alpha: Array = field(default_factory=lambda: np.zeros(0))
    losses: Array = field(default_factory=lambda: np.zeros(0))
    gram: Array = field(default_factory=lambda: np.zeros((0, 0)))
    idle: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def holds(self, labeling: Array) -> bool:
        return bool((self.labelings == labeling).all(axis=1).any())

    def append(self, labeling: Array, loss: float, products: Array) -> None:
        """One labeling more, its α 0; `products` with the others and, last, with itself."""
        size = len(self.alpha)
        gram = np.empty((size + 1, size + 1))
        gram[:size, :size] = self.gram
        gram[size] = gram[:, size] = products
        self.gram = gram
        self.labelings = np.concatenate([self.labelings, labeling[None]])
        self.alpha, self.losses = np.append(self.alpha, 0.0), np.append(self.losses, loss)
        self.idle = np.append(self.idle, 0)

    def drop_idle(self, most: int) -> None:
        """Leave out labelings whose α has been 0 for more than `most` rounds."""
        self.idle = np.where(self.alpha > 0, 0, self.idle + 1)
        kept = self.idle <= most
        if not kept.all():
            self.labelings, self.alpha, self.losses = (
                self.labelings[kept],
                self.alpha[kept],
                self.losses[kept],
            )
            self.gram, self.idle = self.gram[np.ix_(kept, kept)], self.idle[kept]


class Packed:
    """Working sets of several structures in flat arrays; the α of each set become views of one array.

    Of structure k, the labelings are planes[k]..planes[k+1]; their labels lie from labels_at[k] on, T each,
    and Q from gram_at[k] on.
    """

    def __init__(self, sets: list[WorkingSet]) -> None:
        counts = np.array([len(s.alpha) for s in sets], dtype=np.int64)
        self.planes = np.concatenate([[0], np.cumsum(counts)])
        self.labels_at = np.concatenate([[0], np.cumsum([s.labelings.size for s in sets])])
        self.gram_at = np.concatenate([[0], np.cumsum(counts**2)])
        self.labelings = np.concatenate([s.labelings.ravel() for s in sets])
        self.losses = np.concatenate([s.losses for s in sets])
        self.gram = np.concatenate([s.gram.ravel() for s in sets])
        self.alpha = np.concatenate([s.alpha for s in sets])
        for s, first, last in zip(sets, self.planes, self.planes[1:], strict=False):
            s.alpha = self.alpha[first:last]

    @property
    def arrays(self) -> tuple[Array, ...]:
        return (self.planes, self.labels_at, self.gram_at, self.labelings, self.losses, self.gram, self.alpha)


@njit(cache=True, nogil=True)
def margins(
    labelings: Array, right: Array, parents: Array, base: int, scores: Array, transitions: Array
) -> Array:
    """(m,) F(right) − F(y) of each labeling y of one structure, whose first node is `base`."""
    found = np.zeros(len(labelings))
    for k in range(len(labelings)):
        y = labelings[k]
        for t in range(len(right)):
            p = parents[t] - base
            if y[t] != right[t]:
                found[k] += scores[t, right[t]] - scores[t, y[t]]
            if p >= 0 and (y[t] != right[t] or y[p] != right[p]):
                found[k] += transitions[right[p], right[t]] - transitions[y[p], y[t]]
    return found


@njit(cache=True, nogil=True)
def combine(
    labelings: Array, right: Array, parents: Array, base: int, weights: Array, beta: Array, transitions: Array
) -> None:
    """Σ_k weight_k d(y_k), added to β (T, L) and to the transitions (L, L)."""
    for k in range(len(labelings)):
        y = labelings[k]
        for t in range(len(right)):
            p = parents[t] - base
            if y[t] != right[t]:
                beta[t, right[t]] += weights[k]
                beta[t, y[t]] -= weights[k]
            if p >= 0 and (y[t] != right[t] or y[p] != right[p]):
                transitions[right[p], right[t]] += weights[k]
                transitions[y[p], y[t]] -= weights[k]


@njit(cache=True, nogil=True)
def ascend(
    alpha: Array, losses: Array, gram: Array, found: Array, bound: float, penalty: float
) -> tuple[Array, int]:
    """How the α of one structure change to the best, given its margins, and the outcome of the quadratic
    program."""
    size = len(alpha)
    matrix, linear = np.empty((size, size)), np.empty(size)
    for j in range(size):
        linear[j] = losses[j] - found[j]
        for k in range(size):
            linear[j] += gram[j, k] * alpha[k]
            matrix[j, k] = gram[j, k] + penalty
    new = alpha.copy()
    outcome = qp.minimize(matrix, linear, bound, new)
    change = new - alpha
    if gain_of(change, alpha, losses, gram, found, penalty) <= 0.0:  # no more than rounding
        change[:] = 0.0
    return change, outcome


@njit(cache=True, nogil=True)
def gain_of(change: Array, alpha: Array, losses: Array, gram: Array, found: Array, penalty: float) -> float:
    """What the dual gains when the α of one structure change."""
    gain = 0.0
    for j in range(len(change)):
        gain += change[j] * (losses[j] - found[j])
        for k in range(len(change)):
            gain -= change[j] * (0.5 * (gram[j, k] + penalty) * change[k] + penalty * alpha[k])
    return gain


@njit(cache=True, nogil=True)
def own_margins(
    forest: Any, right: Array, scores: Array, transitions: Array, packed: Any, own: Array
) -> None:
    """Σ_y α_i(y) ⟨w, d_i(y)⟩ of the structures of a block; `right` and `scores` are of its nodes."""
    first, offsets, parents, _ = forest
    planes, labels_at, _, labelings, _, _, alpha = packed
    for n in range(len(own)):
        i = first + n
        begin, end = offsets[i], offsets[i + 1]
        size = planes[i + 1] - planes[i]
        y = labelings[labels_at[i] : labels_at[i + 1]].reshape((size, end - begin))
        local = slice(begin - offsets[first], end - offsets[first])
        found = margins(y, right[local], parents[begin:end], begin, scores[local], transitions)
        own[n] = 0.0
        for k in range(size):
            own[n] += alpha[planes[i] + k] * found[k]


@njit(cache=True, nogil=True)
def visit(
    k: int,
    right: Array,
    parents: Array,
    base: int,
    packed: Any,
    bound: float,
    penalty: float,
    local: Array,
    transitions: Array,
    moves: Array,
    gains: Array,
    travelled: Array,
) -> int:
    """Maximize over the α of the k-th working set, or move it: the outcome.

    `local` comes in as the scores of the structure's nodes and leaves as the change of β; the transitions are
    brought up to date.
    """
    planes, labels_at, gram_at, labelings, losses, gram, alpha = packed
    own = slice(planes[k], planes[k + 1])
    size = planes[k + 1] - planes[k]
    y = labelings[labels_at[k] : labels_at[k + 1]].reshape((size, len(right)))
    found = margins(y, right, parents, base, local, transitions)
    matrix = gram[gram_at[k] : gram_at[k + 1]].reshape((size, size))
    if len(moves) > 0:
        change, outcome = moves[own], qp.SOLVED
    else:
        change, outcome = ascend(alpha[own], losses[own], matrix, found, bound, penalty)
    gains[k] = gain_of(change, alpha[own], losses[own], matrix, found, penalty)
    local[:] = 0.0
    for j in range(size):
        travelled[k] += abs(change[j])
        alpha[planes[k] + j] = max(0.0, alpha[planes[k] + j] + change[j])
    combine(y, right, parents, base, change, local, transitions)
    return outcome


@njit(cache=True, nogil=True)
def sweep_features(
    order: Array,
    structures: Array,
    forest: Any,
    right: Array,
    packed: Any,
    bounds: Array,
    penalties: Array,
    features: Any,
    weights: Array,
    transitions: Array,
    moves: Array,
    gains: Array,
    travelled: Array,
) -> int:
    """Visit structures in order: the structure whose dual has no bound, or −1."""
    _, offsets, parents, _ = forest
    _, labels_at, _, labelings, _, _, _ = packed
    for k in order:
        i = structures[k]
        begin, end = offsets[i], offsets[i + 1]
        local = np.zeros((end - begin, weights.shape[1]))
        for t in range(begin, end):
            for at in range(labels_at[k] + t - begin, labels_at[k + 1], end - begin):
                if labelings[at] != right[t]:
                    score_node(features, weights, t, local[t - begin])
                    break
        outcome = visit(
            k,
            right[begin:end],
            parents[begin:end],
            begin,
            packed,
            bounds[i],
            penalties[i],
            local,
            transitions,
            moves,
            gains,
            travelled,
        )
        if outcome == qp.UNBOUNDED:
            return int(i)
        for t in range(begin, end):
            if local[t - begin].any():
                update_node(features, weights, t, local[t - begin])
    return -1
