"""Working sets: the labelings of each structure that have multipliers in maximum-margin training.

Let y_i be the correct labeling of structure i, y another, d_i(y) = Φ(x_i, y_i) − Φ(x_i, y), and
Δ_i(y) the loss by which F(y_i) should exceed F(y) = ⟨w, Φ(x_i, y)⟩. With multipliers α_i(y) ≥ 0
and w = Σ α_i(y) d_i(y), the dual objective as a function of the multipliers of one structure is

    bᵀα − ½ αᵀ(Q + p)α + const,   Q(y, y') = ⟨d(y), d(y')⟩,   b(y) = Δ(y) − ⟨w, d(y)⟩ + (Qα₀)(y),

where α₀ are their present values, p is a penalty on (Σα)², and Σα ≤ C where there is a bound. This
is maximized exactly (`ascend`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fuda.checks import check_arrays
from fuda.errors import DataError
from fuda.functions.base import ScoreArrays, score_node, update_node
from fuda.optimize import qp
from fuda.runtime.compiled import compiled

Array = np.ndarray


@dataclass
class WorkingSet:
    """Incorrect labelings of a structure, with their multipliers.

    Attributes
    ----------
    labelings : (m, T) array of int
        The labelings.
    alpha, losses : (m,) arrays
        Their multipliers α and losses Δ.
    gram : (m, m) array
        Q.
    idle : (m,) array of int
        For how many rounds each α has been 0.
    """

    labelings: Array
    alpha: Array = field(default_factory=lambda: np.zeros(0))
    losses: Array = field(default_factory=lambda: np.zeros(0))
    gram: Array = field(default_factory=lambda: np.zeros((0, 0)))
    idle: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def append(self, labeling: Array, loss: float, products: Array) -> None:
        """Add a labeling with α = 0; `products` is its row of Q, the labeling itself last."""
        size = len(self.alpha)
        gram = np.empty((size + 1, size + 1))
        gram[:size, :size] = self.gram
        gram[size] = gram[:, size] = products
        self.gram = gram
        self.labelings = np.concatenate((self.labelings, labeling[None]))
        self.alpha = np.concatenate((self.alpha, (0.0,)))
        self.losses = np.concatenate((self.losses, (loss,)))
        self.idle = np.concatenate((self.idle, (0,)))

    def drop_idle(self, most: int) -> None:
        """Drop labelings whose α has been 0 for more than `most` rounds."""
        if _count_idle(self.alpha, self.idle, most):
            recent = self.idle <= most
            self.labelings, self.alpha, self.losses, self.idle = (
                part[recent] for part in (self.labelings, self.alpha, self.losses, self.idle)
            )
            self.gram = self.gram[np.ix_(recent, recent)]

    def packed(self) -> PackedSets:
        """Pack this set alone, sharing its arrays."""
        first, labels_at, gram_at = np.zeros((3, 2), dtype=np.int64)
        first[1], labels_at[1], gram_at[1] = len(self.alpha), self.labelings.size, self.gram.size
        labelings, gram = self.labelings.reshape(-1), self.gram.reshape(-1)
        return PackedSets(first, labels_at, gram_at, labelings, self.losses, gram, self.alpha)


@compiled
def _count_idle(alpha: Array, idle: Array, most: int) -> int:
    """Update the idle rounds of each labeling: how many have been idle for more than `most`."""
    count = 0
    for j in range(len(alpha)):
        idle[j] = 0 if alpha[j] > 0.0 else idle[j] + 1
        count += idle[j] > most
    return count


class PackedSets(NamedTuple):
    """Working sets of several structures in flat arrays.

    The labelings of set k have the numbers first[k] … first[k+1] − 1, which index `losses` and
    `alpha`; their labels begin at labels_at[k] in `labelings`, T per labeling, and Q at
    gram_at[k] in `gram`.
    """

    first: Array
    labels_at: Array
    gram_at: Array
    labelings: Array
    losses: Array
    gram: Array
    alpha: Array


def pack(sets: list[WorkingSet]) -> PackedSets:
    """Pack several working sets; their α become views of one array."""
    counts = np.array([len(s.alpha) for s in sets], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(counts)])
    alpha = np.concatenate([s.alpha for s in sets])
    for s, begin, end in zip(sets, first, first[1:], strict=False):
        s.alpha = alpha[begin:end]
    labels_at, gram_at = (
        np.append(0, np.cumsum(sizes)) for sizes in ([s.labelings.size for s in sets], counts**2)
    )
    labelings, losses, gram = (
        np.concatenate([getattr(s, name).ravel() for s in sets]) for name in ("labelings", "losses", "gram")
    )
    return PackedSets(first, labels_at, gram_at, labelings, losses, gram, alpha)


def unpack(arrays: dict[str, Array], right: Array, offsets: Array, label_count: int) -> list[WorkingSet]:
    """Check the arrays of a file, and make a working set per structure of them.

    Parameters
    ----------
    arrays : dict of str to array
        `first`, `labelings`, `losses`, `gram` and `alpha` of `PackedSets`, and `idle`.
    right : (N,) array of int
        The correct labels.
    offsets : (n + 1,) array of int
        The bounds of the structures.
    label_count : int
        The number of labels.

    Returns
    -------
    list of WorkingSet
        The sets.

    Raises
    ------
    DataError
        Where the arrays are not those of working sets of these structures.
    """
    integer_dtypes = dict.fromkeys(("first", "labelings", "idle"), np.int64)
    check_arrays({"first": arrays.get("first", right)}, {"first": (len(offsets),)}, integer_dtypes)
    counts, sizes = np.diff(arrays["first"]), np.diff(offsets)
    if arrays["first"][0] != 0 or (counts < 0).any() or counts.max() > 1 << 24:
        raise DataError("its working sets are not numbered one after another")
    total = int(arrays["first"][-1])
    shapes = {"first": (len(offsets),), "labelings": (int(counts @ sizes),), "gram": (int(counts @ counts),)}
    check_arrays(arrays, shapes | dict.fromkeys(("losses", "alpha", "idle"), (total,)), integer_dtypes)
    if (arrays["idle"] < 0).any() or (arrays["alpha"] < 0).any() or (arrays["losses"] < 0).any():
        raise DataError("its multipliers, losses or idle rounds are negative")
    labelings = np.split(arrays["labelings"], np.cumsum(counts * sizes)[:-1])
    grams = np.split(arrays["gram"], np.cumsum(counts**2)[:-1])
    alpha, losses, idle = (
        np.split(arrays[name], arrays["first"][1:-1]) for name in ("alpha", "losses", "idle")
    )
    if not ((arrays["labelings"] >= 0) & (arrays["labelings"] < label_count)).all():
        raise DataError("its working sets have labels that do not exist")
    return [
        WorkingSet(
            labelings[i].reshape(m, -1 if m else sizes[i]),
            alpha[i],
            losses[i],
            grams[i].reshape(m, m),
            idle[i],
        )
        for i, m in enumerate(counts.tolist())
    ]


class MarginProblem(NamedTuple):
    """A maximum-margin problem in the form that compiled loops use.

    Attributes
    ----------
    offsets : (n + 1,) array of int
        The bounds of the structures.
    parents, right : (N,) arrays of int
        The parent, −1 at roots, and the correct label of each node.
    bounds, penalties : (n,) arrays
        C and p of each structure.
    transitions : (L, L) array
        The weights of label pairs, part of w.
    """

    offsets: Array
    parents: Array
    right: Array
    bounds: Array
    penalties: Array
    transitions: Array


class Visits(NamedTuple):
    """Per working set the gain of the last visit, and the total change Σ|δα| of its α."""

    gains: Array
    travelled: Array


@compiled
def margins(
    labelings: Array, right: Array, parents: Array, base: int, scores: Array, transitions: Array
) -> Array:
    """(m,) F(y_i) − F(y) of each labeling y of the structure whose first node is `base`."""
    margin_values = np.zeros(len(labelings))
    for k in range(len(labelings)):
        y = labelings[k]
        for t in range(len(right)):
            p = parents[t] - base
            if y[t] != right[t]:
                margin_values[k] += scores[t, right[t]] - scores[t, y[t]]
            if p >= 0 and (y[t] != right[t] or y[p] != right[p]):
                margin_values[k] += transitions[right[p], right[t]] - transitions[y[p], y[t]]
    return margin_values


@compiled
def combine(
    labelings: Array, right: Array, parents: Array, base: int, weights: Array, beta: Array, transitions: Array
) -> None:
    """Add Σ_k weight_k d(y_k) to β (T, L) and to the transitions (L, L)."""
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


@compiled
def wrong_nodes(labeling: Array, right: Array, labelings: Array) -> Array:
    """The nodes where a labeling is incorrect; none if it is one of the `labelings` (m, T)."""
    for k in range(len(labelings)):
        if (labelings[k] == labeling).all():
            return np.empty(0, dtype=np.int64)
    return np.flatnonzero(labeling != right)


@compiled
def products(
    labeling: Array, labelings: Array, right: Array, parents: Array, base: int, wrong: Array, kernel: Array
) -> Array:
    """(m + 1,) ⟨d(y), d(labeling)⟩ for each y of `labelings` (m, T), and last the labeling.

    `kernel` (T, w) has the kernel values between all nodes of the structure and the `wrong` ones.
    """
    size = max(labeling.max(), right.max(), labelings.max() if len(labelings) else 0) + 1
    scores, pairs = np.zeros((len(right), size)), np.zeros((size, size))
    beta = np.zeros_like(scores)
    every = np.concatenate((labelings, labeling.reshape((1, -1))))
    combine(every[-1:], right, parents, base, np.ones(1), beta, pairs)
    for t in range(len(right)):  # the scores under w = d(labeling)
        for j in range(len(wrong)):
            for b in (right[wrong[j]], labeling[wrong[j]]):
                scores[t, b] += kernel[t, j] * beta[wrong[j], b]
    return margins(every, right, parents, base, scores, pairs)


@compiled
def ascend(
    alpha: Array, losses: Array, gram: Array, margin_values: Array, bound: float, penalty: float
) -> tuple[Array, int]:
    """The change of one structure's α to the maximum, and the quadratic program's outcome."""
    size = len(alpha)
    matrix, linear = np.empty((size, size)), np.empty(size)
    for j in range(size):
        linear[j] = losses[j] - margin_values[j]
        for k in range(size):
            linear[j] += gram[j, k] * alpha[k]
            matrix[j, k] = gram[j, k] + penalty
    new = alpha.copy()
    outcome = qp.minimize(matrix, linear, bound, new)
    change = new - alpha
    if gain_of(change, alpha, losses, gram, margin_values, penalty) <= 0.0:  # no more than rounding
        change[:] = 0.0
    return change, outcome


@compiled
def gain_of(
    change: Array, alpha: Array, losses: Array, gram: Array, margin_values: Array, penalty: float
) -> float:
    """The increase of the dual objective when the α of one structure change."""
    gain = 0.0
    for j in range(len(change)):
        gain += change[j] * (losses[j] - margin_values[j])
        for k in range(len(change)):
            gain -= change[j] * (0.5 * (gram[j, k] + penalty) * change[k] + penalty * alpha[k])
    return gain


@compiled
def weighted_margins(
    problem: MarginProblem, first: int, scores: Array, packed: PackedSets, weighted: Array
) -> None:
    """Compute Σ_y α_i(y) ⟨w, d_i(y)⟩ of the structures from `first` on, from nodes' `scores`."""
    base = problem.offsets[first]
    for n in range(len(weighted)):
        i = first + n
        begin, end = problem.offsets[i], problem.offsets[i + 1]
        size = packed.first[i + 1] - packed.first[i]
        y = packed.labelings[packed.labels_at[i] : packed.labels_at[i + 1]].reshape((size, end - begin))
        right, parents = problem.right[begin:end], problem.parents[begin:end]
        local = scores[begin - base : end - base]
        margin_values = margins(y, right, parents, begin, local, problem.transitions)
        weighted[n] = 0.0
        for k in range(size):
            weighted[n] += packed.alpha[packed.first[i] + k] * margin_values[k]


@compiled
def visit(
    k: int, i: int, problem: MarginProblem, packed: PackedSets, local: Array, moves: Array, visits: Visits
) -> int:
    """Maximize over the α of working set k, of structure i: the outcome of the quadratic program.

    `local` contains the scores of the structure's nodes on entry, and the change of β on return;
    the transitions are updated. `moves` are changes of α to apply instead, empty to maximize.
    """
    begin, end = problem.offsets[i], problem.offsets[i + 1]
    right, parents = problem.right[begin:end], problem.parents[begin:end]
    first = packed.first[k]
    size = packed.first[k + 1] - first
    alpha, losses = packed.alpha[first : first + size], packed.losses[first : first + size]
    y = packed.labelings[packed.labels_at[k] : packed.labels_at[k + 1]].reshape((size, len(right)))
    gram = packed.gram[packed.gram_at[k] : packed.gram_at[k + 1]].reshape((size, size))
    margin_values = margins(y, right, parents, begin, local, problem.transitions)
    penalty = problem.penalties[i]
    if len(moves) > 0:
        change, outcome = moves[first : first + size], qp.SOLVED
    else:
        change, outcome = ascend(alpha, losses, gram, margin_values, problem.bounds[i], penalty)
    visits.gains[k] = gain_of(change, alpha, losses, gram, margin_values, penalty)
    local[:] = 0.0
    for j in range(size):
        visits.travelled[k] += abs(change[j])
        alpha[j] = max(0.0, alpha[j] + change[j])
    combine(y, right, parents, begin, change, local, problem.transitions)
    return outcome


@compiled
def wrong_somewhere(problem: MarginProblem, structures: Array, packed: PackedSets) -> Array:
    """(N,) whether a labeling in the working sets of these structures is incorrect at the node."""
    wrong = np.zeros(len(problem.right), dtype=np.bool_)
    for k in range(len(structures)):
        begin, end = problem.offsets[structures[k]], problem.offsets[structures[k] + 1]
        for at in range(packed.labels_at[k], packed.labels_at[k + 1]):
            t = begin + (at - packed.labels_at[k]) % (end - begin)
            wrong[t] |= packed.labelings[at] != problem.right[t]
    return wrong


@compiled
def sweep(
    order: Array,
    structures: Array,
    problem: MarginProblem,
    packed: PackedSets,
    wrong: Array,
    arrays: ScoreArrays,
    moves: Array,
    visits: Visits,
) -> int:
    """Visit working sets in order; returns a structure whose dual is unbounded, or −1."""
    for k in order:
        i = structures[k]
        begin, end = problem.offsets[i], problem.offsets[i + 1]
        local = np.zeros((end - begin, len(problem.transitions)))
        for t in range(begin, end):
            if wrong[t]:  # the scores of other nodes cancel from all margins
                score_node(arrays, t, local[t - begin])
        outcome = visit(k, i, problem, packed, local, moves, visits)
        if outcome == qp.UNBOUNDED:
            return int(i)
        for t in range(begin, end):
            if local[t - begin].any():
                update_node(arrays, t, local[t - begin])
    return -1
