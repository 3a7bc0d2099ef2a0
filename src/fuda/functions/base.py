"""The interface of functions in a kernel's space, and the compiled loops that they share.

A function maps nodes to scores of L labels, s_t(σ) = Σ_τ β(τ, σ) k(x_τ, x_t), with coefficients β
of the nodes τ of a training corpus. During training it is a `TrainingScores`, which returns the
scores of the training nodes as β changes; the result is a `LabelFunction`, which scores the nodes
of any corpus.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from fuda.data.encoding import Encoded
from fuda.runtime.compiled import compiled

Array = np.ndarray


class LabelFunction(Protocol):
    """A function from nodes to scores of labels."""

    def of(self, encoded: Encoded, n_jobs: int | None = None) -> Array:
        """(M, L) the scores of the nodes of a corpus."""


class NodeMonomials(NamedTuple):
    """The monomials of all nodes in CSR form, in the notation of `fuda.functions.explicit`.

    Attributes
    ----------
    indptr, ids : arrays of int
        The bounds of the nodes, and the numbers f of their monomials.
    values : array
        Their values x_tf; empty where all are 1.
    factors : (N,) array
        ν_t of each node.
    coefficients : (F,) array
        c_f of each monomial.
    """

    indptr: Array
    ids: Array
    values: Array
    factors: Array
    coefficients: Array


class ScoreArrays(NamedTuple):
    """Training scores as compiled loops use them: by monomials, or by rows of kernel values.

    Attributes
    ----------
    monomials : NodeMonomials
        The monomials of all nodes.
    weights : (F, L) array
        Their weights.
    rows : (R, N) array
        Kernel values between some nodes and all nodes; empty where monomials are used.
    row_of : (N,) array of int
        The row of each node that has one.
    by_label : (L, N) array
        The scores of all nodes, where `rows` are used.
    beta : (N, L) array
        The coefficients β.
    """

    monomials: NodeMonomials
    weights: Array
    rows: Array
    row_of: Array
    by_label: Array
    beta: Array


class TrainingScores(Protocol):
    """The scores of all nodes of a training corpus, as its coefficients β change.

    Attributes
    ----------
    label_count : int
        L, the number of labels.
    beta : (N, L) array
        The coefficients β, all 0 at first.
    """

    label_count: int
    beta: Array

    @property
    def scores(self) -> Array:
        """(N, L) the scores of all nodes."""

    def state(self) -> dict[str, Array]:
        """The arrays, `beta` among them, that all scores to come depend on, up to the last bit."""

    def restore(self, arrays: dict[str, Array]) -> None:
        """Continue from a `state()` of the same corpus; raises DataError where it does not fit."""

    def local(self, begin: int, end: int) -> Array:
        """(end − begin, L) the scores of the nodes begin … end − 1, in a new array."""

    def add(self, begin: int, end: int, delta: Array) -> None:
        """Add delta (end − begin, L) to β of the nodes begin … end − 1; rows of 0 cost nothing."""

    def scale(self, factor: float) -> None:
        """Multiply the function by a number."""

    def gram(self, nodes: Array, others: Array) -> Array:
        """(n, m) kernel values between some nodes and others."""

    def arrays(self, nodes: Array) -> ScoreArrays | None:
        """The arrays by which compiled loops change β of nodes; None if memory is too small."""

    def function(self) -> LabelFunction:
        """The function learned, without the training corpus."""


@compiled
def score_node(arrays: ScoreArrays, t: int, scores: Array) -> None:
    """Add the scores of node t to `scores` (L,)."""
    if len(arrays.rows) > 0:
        for b in range(len(scores)):
            scores[b] += arrays.by_label[b, t]
        return
    indptr, ids, values, factors, _ = arrays.monomials
    for e in range(indptr[t], indptr[t + 1]):
        weights = arrays.weights[ids[e]]
        x = values[e] * factors[t] if len(values) > 0 else factors[t]
        for b in range(len(scores)):
            scores[b] += x * weights[b]


@compiled
def update_node(arrays: ScoreArrays, t: int, delta: Array) -> None:
    """Add delta (L,) to β of node t, and update the scores of all nodes."""
    labels = np.flatnonzero(delta)
    for b in labels:
        arrays.beta[t, b] += delta[b]
    if len(arrays.rows) > 0:
        row = arrays.rows[arrays.row_of[t]]
        for b in labels:
            scores, x = arrays.by_label[b], delta[b]
            for n in range(len(row)):
                scores[n] += x * row[n]
        return
    indptr, ids, values, factors, coefficients = arrays.monomials
    for e in range(indptr[t], indptr[t + 1]):
        weights = arrays.weights[ids[e]]
        x = values[e] * factors[t] if len(values) > 0 else factors[t]
        x *= coefficients[ids[e]]
        for b in labels:
            weights[b] += x * delta[b]


@compiled
def score_nodes(arrays: ScoreArrays, begin: int, scores: Array) -> None:
    """Add the scores of the nodes from `begin` on to the rows of `scores`."""
    for n in range(scores.shape[0]):
        score_node(arrays, begin + n, scores[n])


@compiled
def update_nodes(arrays: ScoreArrays, begin: int, delta: Array) -> None:
    """Add the rows of delta to β of the nodes from `begin` on."""
    for n in range(delta.shape[0]):
        if delta[n].any():
            update_node(arrays, begin + n, delta[n])
