"""What all representations of functions in a kernel's space have in common.

A function maps nodes to scores of L labels, s_t(σ) = Σ_τ β(τ, σ) k(x_τ, x_t), with coefficients β over the
nodes τ of a training corpus. While it is learned it is a `TrainingScores`, which gives the scores of the
training nodes as β changes; what is learned is a `LabelFunction`, which scores the nodes of any corpus.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from fuda.compiled import compiled
from fuda.data.encoding import Encoded

Array = np.ndarray


class LabelFunction(Protocol):
    """A function from nodes to scores of labels."""

    def of(self, encoded: Encoded, n_jobs: int | None = None) -> Array:
        """(M, L) the scores of the nodes of a corpus."""
        ...


class NodeMonomials(NamedTuple):
    """Monomials of all nodes in CSR form: bounds, numbers and values (empty where all are 1); ν (N,) by
    node, and c by monomial, as in `fuda.functions.explicit`."""

    indptr: Array
    ids: Array
    values: Array
    factors: Array
    coefficients: Array


class ScoreArrays(NamedTuple):
    """Training scores as compiled loops use them: monomials with weights (F, L), or, where `rows` has
    entries, rows of kernel values by node with the scores (L, N) of all nodes."""

    monomials: NodeMonomials
    weights: Array
    rows: Array
    row_of: Array
    by_label: Array
    beta: Array


class TrainingScores(Protocol):
    """The scores of all nodes of a training corpus, as its coefficients β (N, L) change."""

    label_count: int
    beta: Array

    @property
    def scores(self) -> Array:
        """(N, L) the scores of all nodes."""
        ...

    def local(self, begin: int, end: int) -> Array:
        """(end − begin, L) the scores of some nodes, to be overwritten at will."""
        ...

    def add(self, begin: int, end: int, delta: Array) -> None:
        """Add delta (end − begin, L) to β of the nodes begin..end; rows of 0 cost nothing."""
        ...

    def scale(self, factor: float) -> None:
        """Multiply the function by a number."""
        ...

    def gram(self, nodes: Array, others: Array) -> Array:
        """(n, m) kernel values between some nodes and others."""
        ...

    def arrays(self, nodes: Array) -> ScoreArrays | None:
        """What compiled loops need to change β of some nodes; None where it does not fit into memory."""
        ...

    def function(self) -> LabelFunction:
        """What has been learned, without the training corpus."""
        ...


@compiled
def score_node(held: ScoreArrays, t: int, scores: Array) -> None:
    """Add the scores of node t to `scores` (L,)."""
    if len(held.rows) > 0:
        for b in range(len(scores)):
            scores[b] += held.by_label[b, t]
        return
    indptr, ids, values, factors, _ = held.monomials
    for e in range(indptr[t], indptr[t + 1]):
        weights = held.weights[ids[e]]
        x = values[e] * factors[t] if len(values) > 0 else factors[t]
        for b in range(len(scores)):
            scores[b] += x * weights[b]


@compiled
def update_node(held: ScoreArrays, t: int, delta: Array) -> None:
    """Add delta (L,) to β of node t, and bring the scores of all nodes up to date."""
    labels = np.flatnonzero(delta)
    for b in labels:
        held.beta[t, b] += delta[b]
    if len(held.rows) > 0:
        row = held.rows[held.row_of[t]]
        for b in labels:
            into, x = held.by_label[b], delta[b]
            for n in range(len(row)):
                into[n] += x * row[n]
        return
    indptr, ids, values, factors, coefficients = held.monomials
    for e in range(indptr[t], indptr[t + 1]):
        weights = held.weights[ids[e]]
        x = values[e] * factors[t] if len(values) > 0 else factors[t]
        x *= coefficients[ids[e]]
        for b in labels:
            weights[b] += x * delta[b]


@compiled
def score_nodes(held: ScoreArrays, begin: int, scores: Array) -> None:
    """Add the scores of the nodes from `begin` on to the rows of `scores`."""
    for n in range(scores.shape[0]):
        score_node(held, begin + n, scores[n])


@compiled
def update_nodes(held: ScoreArrays, begin: int, delta: Array) -> None:
    """Add the rows of delta to β of the nodes from `begin` on."""
    for n in range(delta.shape[0]):
        if delta[n].any():
            update_node(held, begin + n, delta[n])
