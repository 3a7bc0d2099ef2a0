"""The perceptron over packed structures, one pass after another.

A labeling scores F(x, y) = Σ_t s_t(y_t) + G(c_t, y_t), G as in `fuda.inference.higher_order`. Where the best
labeling ŷ is not the right one y, with η the weight of the structure,

    primal:  s_t(σ) = Σ_f x_{tf} W(f, σ),        W(f, y_t) += η x_{tf},  W(f, ŷ_t) −= η x_{tf}
    dual:    s_t(σ) = Σ_τ β(τ, σ) k(x_τ, x_t),   β(t, y_t) += η,         β(t, ŷ_t) −= η

at nodes where y_t ≠ ŷ_t, and G(c_t, y_t) += η, G(ĉ_t, ŷ_t) −= η where these differ. In the dual the change is
pushed to the scores of all nodes; a structure without a mistake costs no more than its Viterbi.

Both keep w (W or β, and G) and, for the average of w over all n steps so far, u = Σ_i i Δ_i, where Δ_i is the
change made in step i: the sum of w over the steps is (n + 1) w − u, and u changes as seldom as w does.

A structure in which some labels are not known is right where ŷ agrees with those that are; else y is the best
of the labelings that agree with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fuda.checks import check_arrays
from fuda.compiled import compiled
from fuda.data.encoding import Encoded
from fuda.data.graph import Array, Graph
from fuda.errors import DataError
from fuda.functions import TrainingScores
from fuda.inference.higher_order import Grams, Shape, add_to_gram, decode, fill_contexts, no_grams, shape_of

_MAX_STEPS = 2**53  # files hold the number of steps as a float: these are exact


@dataclass
class Examples:
    """Structures to learn from: labels (N,), −1 where not known, and the weight η (n,) of each structure."""

    graph: Graph
    labels: Array
    eta: Array
    order: int
    label_count: int
    shape: Shape = field(init=False)

    def __post_init__(self) -> None:
        self.labels = self.labels.astype(np.int32)
        self.shape = shape_of(self.graph, self.order, self.label_count)


class Pass(NamedTuple):
    """What a pass over the data found: how many nodes of each structure were mistaken, the labels ŷ and the
    labels y, where there were."""

    mistaken: Array
    predicted: Array
    targets: Array


@dataclass
class State:
    """w and u: of the nodes (W or β), and of label stretches; and the number of steps, (1,)."""

    nodes: Array
    late_nodes: Array
    grams: Grams
    late_grams: Grams
    steps: Array

    @classmethod
    def new(cls, rows: int, order: int, label_count: int) -> State:
        nodes, late = np.zeros((2, rows, label_count))
        grams, late_grams = no_grams(order, label_count), no_grams(order, label_count)
        return cls(nodes, late, grams, late_grams, np.zeros(1, dtype=np.int64))

    def copy(self) -> State:
        """Another state of the same numbers, which changes without this one."""
        return self._with_nodes(self.nodes.copy(), self.late_nodes.copy())

    def _with_nodes(self, nodes: Array, late_nodes: Array) -> State:
        grams, late_grams = (Grams(*(part.copy() for part in own)) for own in (self.grams, self.late_grams))
        return State(nodes, late_nodes, grams, late_grams, self.steps.copy())

    def sums(self) -> tuple[Array, Grams]:
        """w of the nodes and of label stretches, summed over all steps."""
        n = float(self.steps[0])
        pairs = [(self.nodes, self.late_nodes), *zip(self.grams, self.late_grams, strict=True)]
        nodes, *grams = [(n + 1) * now - late for now, late in pairs]
        return nodes, Grams(*grams)

    def take(self, rows: Array) -> None:
        """Keep some rows of the nodes."""
        self.nodes, self.late_nodes = self.nodes[rows], self.late_nodes[rows]

    def insert(self, before: list[int], after: list[int]) -> State:
        """A copy with new rows of 0 for each channel, whose numbers of features were `before` and are
        `after`."""
        added = np.subtract(after, before)
        at = np.repeat(np.cumsum(before), added)
        return self._with_nodes(*(np.insert(w, at, 0.0, axis=0) for w in (self.nodes, self.late_nodes)))

    def arrays(self) -> dict[str, Array]:
        """What `of` makes the state from again."""
        return {
            "nodes": self.nodes,
            "late_nodes": self.late_nodes,
            "short": self.grams.short,
            "late_short": self.late_grams.short,
            "full": self.grams.full,
            "late_full": self.late_grams.full,
            "steps": self.steps.astype(np.float64),
        }

    @classmethod
    def of(cls, arrays: dict[str, Array], rows: int, order: int, label_count: int) -> State:
        """A state from its arrays, those of a model file."""
        shapes = {name: array.shape for name, array in cls.new(0, order, label_count).arrays().items()}
        check_arrays(arrays, shapes | {"nodes": (rows, label_count), "late_nodes": (rows, label_count)})
        steps = float(arrays["steps"][0])
        if not (0 <= steps <= _MAX_STEPS and steps.is_integer()):
            raise DataError(f"its number of steps is {steps:g}, which is not a count")
        return cls(
            arrays["nodes"],
            arrays["late_nodes"],
            Grams(arrays["short"], arrays["full"]),
            Grams(arrays["late_short"], arrays["late_full"]),
            arrays["steps"].astype(np.int64),
        )


class _Data(NamedTuple):
    """Examples as compiled loops use them."""

    offsets: Array
    shape: Shape
    labels: Array
    eta: Array


class _StateArrays(NamedTuple):
    """A state as compiled loops use it."""

    nodes: Array
    late_nodes: Array
    grams: Grams
    late_grams: Grams
    steps: Array


class _Work(NamedTuple):
    """Memory for the decoding of a structure, as `decode` needs it."""

    sums: Array
    below: Array


class PackedFeatures(NamedTuple):
    """The features of all nodes of a corpus. Node t has the rows rows[bounds[t]:bounds[t+1]]; row r has the
    features columns[row_bounds[r]:row_bounds[r+1]], counted from the first of its channel, `first`."""

    bounds: Array
    rows: Array
    first: Array
    row_bounds: Array
    columns: Array
    values: Array


def pack_features(encoded: Encoded) -> PackedFeatures:
    """The features of a corpus, those of the channels numbered one after another."""
    tables = [sp.csr_matrix(table.matrix) for table in encoded.tables]
    table_starts = np.cumsum([0, *(table.shape[0] for table in tables)])
    lengths = np.concatenate([np.diff(table.indptr) for table in tables])
    feature_starts = np.cumsum([0, *(encoded.tables[c.table].n_features for c in encoded.channels)])
    indptr = [np.arange(encoded.corpus.size + 1) if c.indptr is None else c.indptr for c in encoded.channels]
    bounds = np.sum(indptr, axis=0)
    rows, first = np.empty((2, bounds[-1]), dtype=np.int32)
    filled = bounds[:-1].copy()
    for channel, own, start in zip(encoded.channels, indptr, feature_starts, strict=False):
        counts = np.diff(own)
        at = np.repeat(filled - own[:-1], counts) + np.arange(own[-1])
        rows[at], first[at] = channel.rows + table_starts[channel.table], start
        filled += counts
    return PackedFeatures(
        bounds,
        rows,
        first,
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([table.indices for table in tables]),
        np.concatenate([table.data for table in tables]),
    )


@compiled
def fill_scores(begin: int, end: int, features: PackedFeatures, weights: Array, scores: Array) -> None:
    """s of the nodes begin … end − 1; its rows count from begin."""
    size = weights.shape[1]
    for t in range(begin, end):
        own = scores[t - begin]
        own[:] = 0.0
        for e in range(features.bounds[t], features.bounds[t + 1]):
            row = features.rows[e]
            for i in range(features.row_bounds[row], features.row_bounds[row + 1]):
                part = weights[features.first[e] + features.columns[i]]
                value = features.values[i]
                for b in range(size):
                    own[b] += value * part[b]


@compiled
def _change_node(
    t: int, features: PackedFeatures, weights: Array, plus: int, minus: int, amount: float
) -> None:
    for e in range(features.bounds[t], features.bounds[t + 1]):
        row = features.rows[e]
        for i in range(features.row_bounds[row], features.row_bounds[row + 1]):
            part = weights[features.first[e] + features.columns[i]]
            part[plus] += amount * features.values[i]
            part[minus] -= amount * features.values[i]


@compiled
def change_features(
    begin: int, features: PackedFeatures, weights: Array, target: Array, predicted: Array, amount: float
) -> None:
    """W += amount · (Φ(x, y) − Φ(x, ŷ)), of a structure whose first node is begin."""
    for j in range(len(target)):
        if target[j] != predicted[j]:
            _change_node(begin + j, features, weights, target[j], predicted[j], amount)


@compiled
def change_grams(
    begin: int, shape: Shape, grams: Grams, target: Array, predicted: Array, amount: float
) -> None:
    """G += amount · (stretches of y − stretches of ŷ), of a structure whose first node is begin."""
    _, _, depths, bounds = shape
    if len(bounds) == 2:  # order 0: no label depends on another
        return
    size, end = grams.full.shape[1], begin + len(target)
    right, wrong = np.empty((2, len(target)), dtype=np.int64)
    fill_contexts(begin, end, shape, size, target, right)
    fill_contexts(begin, end, shape, size, predicted, wrong)
    for j in range(len(target)):
        if target[j] != predicted[j] or right[j] != wrong[j]:
            add_to_gram(grams, bounds, depths[begin + j], right[j], target[j], amount)
            add_to_gram(grams, bounds, depths[begin + j], wrong[j], predicted[j], -amount)


@compiled
def _count_mistakes(labels: Array, predicted: Array) -> int:
    """How many known labels are mistaken."""
    mistaken = 0
    for j in range(len(labels)):
        if labels[j] >= 0 and labels[j] != predicted[j]:
            mistaken += 1
    return mistaken


# Apart from the decoding of ŷ, which would be slower in one function with a second one.
@compiled
def _fill_target(
    begin: int, shape: Shape, grams: Grams, scores: Array, work: _Work, labels: Array, target: Array
) -> None:
    """y: the labels, and where some are not known the best labeling that agrees with the others."""
    target[:] = labels
    if (labels >= 0).all():
        return
    allowed = scores[: len(labels)].copy()
    for j in range(len(labels)):
        if labels[j] >= 0:
            allowed[j] = -np.inf
            allowed[j, labels[j]] = scores[j, labels[j]]
    decode(begin, begin + len(labels), shape, grams, allowed, work.sums, work.below, target)


@compiled
def _primal_pass(
    which: Array, data: _Data, features: PackedFeatures, state: _StateArrays, found: Pass, work: _Work
) -> None:
    """Learn from the structures `which`, in that order."""
    weights, late_weights, grams, late_grams, steps = state
    scores = np.empty((len(work.sums), weights.shape[1]))
    for i in which:
        begin, end = data.offsets[i], data.offsets[i + 1]
        known = data.labels[begin:end]
        right, wrong = found.targets[begin:end], found.predicted[begin:end]
        fill_scores(begin, end, features, weights, scores)
        decode(begin, end, data.shape, grams, scores, work.sums, work.below, wrong)
        found.mistaken[i] = _count_mistakes(known, wrong)
        steps[0] += 1
        if found.mistaken[i]:
            eta = data.eta[i]
            late = eta * steps[0]
            _fill_target(begin, data.shape, grams, scores, work, known, right)
            change_features(begin, features, weights, right, wrong, eta)
            change_features(begin, features, late_weights, right, wrong, late)
            change_grams(begin, data.shape, grams, right, wrong, eta)
            change_grams(begin, data.shape, late_grams, right, wrong, late)


class Primal:
    """Weights of features."""

    def __init__(self, encoded: Encoded, examples: Examples, state: State) -> None:
        self.examples, self.state, self.features = examples, state, pack_features(encoded)

    def run(self, which: Array) -> Pass:
        """Learn from the structures `which`, in that order."""
        given, state = self.examples, self.state
        found = _nothing_found(given)
        data = _Data(given.graph.offsets, given.shape, given.labels, given.eta)
        arrays = _StateArrays(state.nodes, state.late_nodes, state.grams, state.late_grams, state.steps)
        _primal_pass(which, data, self.features, arrays, found, _work(given))
        return found


class Dual:
    """Expansion coefficients β of nodes under a kernel; the state has those of the first structures."""

    def __init__(self, held: TrainingScores, examples: Examples, state: State) -> None:
        self.examples, self.state, self.held = examples, state, held
        late = np.zeros_like(held.beta)
        late[: len(state.nodes)] = state.late_nodes
        held.add(0, len(state.nodes), state.nodes)
        state.nodes, state.late_nodes = held.beta, late

    def run(self, which: Array) -> Pass:
        """Learn from the structures `which`, in that order."""
        given, state = self.examples, self.state
        found, work = _nothing_found(given), _work(given)
        for i in which:
            nodes = slice(*given.graph.offsets[i : i + 2].tolist())
            known, right, wrong = given.labels[nodes], found.targets[nodes], found.predicted[nodes]
            scores = self.held.local(nodes.start, nodes.stop)
            decode(nodes.start, nodes.stop, given.shape, state.grams, scores, *work, wrong)
            found.mistaken[i] = _count_mistakes(known, wrong)
            state.steps += 1
            if found.mistaken[i]:
                eta = float(given.eta[i])
                late = eta * float(state.steps[0])
                _fill_target(nodes.start, given.shape, state.grams, scores, work, known, right)
                change = node_change(right, wrong, given.label_count)
                state.late_nodes[nodes] += late * change
                change_grams(nodes.start, given.shape, state.grams, right, wrong, eta)
                change_grams(nodes.start, given.shape, state.late_grams, right, wrong, late)
                self.held.add(nodes.start, nodes.stop, eta * change)
        return found


def node_change(target: Array, predicted: Array, label_count: int) -> Array:
    """(T, L) what a mistake changes in β: 1 for the right label, −1 for the wrong one."""
    one_hot = np.eye(label_count)
    return one_hot[target] - one_hot[predicted]


def _nothing_found(given: Examples) -> Pass:
    predicted, targets = np.full((2, given.graph.node_count), -1, dtype=np.int32)
    return Pass(np.zeros(len(given.graph), dtype=np.int64), predicted, targets)


def _work(given: Examples) -> _Work:
    """Memory for the decoding of the longest structure."""
    longest = int(np.diff(given.graph.offsets).max())
    return _Work(np.empty((longest, given.label_count**given.order)), np.empty(longest, dtype=np.int64))
