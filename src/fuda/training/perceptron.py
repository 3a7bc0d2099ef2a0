"""The perceptron over packed structures, one pass after another.

A labeling scores F(x, y) = Σ_t s_t(y_t) + G(c_t, y_t), with G as in `fuda.inference.higher_order`.
Where the best labeling ŷ differs from the correct one y, with η the weight of the structure,

    primal:  s_t(σ) = Σ_f x_{tf} W(f, σ),        W(f, y_t) += η x_{tf},  W(f, ŷ_t) −= η x_{tf}
    dual:    s_t(σ) = Σ_τ β(τ, σ) k(x_τ, x_t),   β(t, y_t) += η,         β(t, ŷ_t) −= η

at nodes where y_t ≠ ŷ_t, and G(c_t, y_t) += η, G(ĉ_t, ŷ_t) −= η where these differ. In the
dual the change is pushed to the scores of all nodes; a structure without a mistake costs only
its Viterbi.

Both keep w (W or β, and G) and, for the average of w over all n steps so far, u = Σ_i i Δ_i, where
Δ_i is the change made in step i: the sum of w over the steps is (n + 1) w − u, and u changes as
seldom as w does.

A structure in which some labels are unknown is correct where ŷ agrees with the known ones;
otherwise y is the best of the labelings that agree with them.

`fuda.training.online_updates` has corrections of other sizes.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from fuda.checks import check_arrays
from fuda.data.encoding import Encoded
from fuda.data.graph import Array, Graph
from fuda.errors import DataError
from fuda.functions import TrainingScores
from fuda.inference.higher_order import Grams, Shape, add_to_gram, decode, fill_contexts, no_grams, shape_of
from fuda.runtime.compiled import compiled

_MAX_STEPS = 2**53  # files hold the number of steps as a float: these are exact


class TrainingExamples(NamedTuple):
    """Structures to learn from.

    Attributes
    ----------
    offsets : (n + 1,) array of int
        The bounds of the structures.
    shape : Shape
        The edges and contexts of the nodes.
    labels : (N,) array of int32
        The label of each node, −1 where unknown.
    eta : (n,) array
        The weight η of each structure.
    order : int
        How many labels before a label its score depends on.
    label_count : int
        L, the number of labels.
    """

    offsets: Array
    shape: Shape
    labels: Array
    eta: Array
    order: int
    label_count: int

    @classmethod
    def of(cls, graph: Graph, labels: Array, eta: Array, order: int, label_count: int) -> TrainingExamples:
        """Prepare the structures of a graph."""
        shape = shape_of(graph, order, label_count)
        return cls(graph.offsets, shape, labels.astype(np.int32), eta, order, label_count)


class Pass(NamedTuple):
    """The outcome of a pass over the data.

    Attributes
    ----------
    mistaken : (n,) array of int
        How many nodes of each structure were labelled incorrectly.
    predicted, targets : (N,) arrays of int32
        The labels ŷ of all structures visited, and y of those with mistakes.
    costs : (n,) array
        F(ŷ) − F(y) plus the margin, by the updates that measure it.
    """

    mistaken: Array
    predicted: Array
    targets: Array
    costs: Array


class Mistakes(NamedTuple):
    """The mistakes of an epoch.

    Parameters
    ----------
    structures : int
        How many structures were labelled wrongly.
    nodes : int
        How many of their nodes.
    """

    structures: int
    nodes: int


class State(NamedTuple):
    """w and u, in the notation of this module.

    Attributes
    ----------
    nodes, late_nodes : (rows, L) arrays
        W or β, and its part of u.
    short, late_short, full, late_full : arrays
        The two parts of G (see `fuda.inference.higher_order.Grams`), and their parts of u.
    steps : (1,) array of int
        n, the number of steps.
    variances : array
        Σ of the AROW update: of W, `short` and `full`, one after another; else empty.
    """

    nodes: Array
    late_nodes: Array
    short: Array
    late_short: Array
    full: Array
    late_full: Array
    steps: Array
    variances: Array

    @classmethod
    def new(cls, rows: int, order: int, label_count: int) -> State:
        """All zeros, for W or β of so many rows."""
        shapes = [(rows, label_count), *(part.shape for part in no_grams(order, label_count))]
        pairs = [np.zeros(shape) for shape in shapes for _ in range(2)]
        return cls._make([*pairs, np.zeros(1, dtype=np.int64), np.zeros(0)])

    @property
    def grams(self) -> Grams:
        """G, sharing the arrays of the state."""
        return Grams(self.short, self.full)

    def copy(self) -> State:
        """Copy all arrays."""
        return State(*(array.copy() for array in self))

    def become(self, other: State) -> None:
        """Overwrite all arrays."""
        for own, given in zip(self, other, strict=True):
            own[...] = given

    def sums(self) -> tuple[Array, Grams]:
        """W or β, and G, summed over all steps."""
        n = float(self.steps[0])
        nodes, *grams = [(n + 1) * self[k] - self[k + 1] for k in (0, 2, 4)]
        return nodes, Grams(*grams)

    def take(self, rows: Array) -> State:
        """Select rows of W or β."""
        return self._replace(nodes=self.nodes[rows], late_nodes=self.late_nodes[rows])

    def insert(self, before: list[int], after: list[int]) -> State:
        """Copy the state, with new zero rows of W for features that channels have gained.

        Parameters
        ----------
        before, after : lists of int
            The number of features of each channel, in this state and in the new one.

        Returns
        -------
        State
            The larger state.
        """
        at = np.repeat(np.cumsum(before), np.subtract(after, before))
        nodes, late_nodes = (np.insert(w, at, 0.0, axis=0) for w in (self.nodes, self.late_nodes))
        variances = self.variances
        if len(variances):
            variances = np.insert(variances, np.repeat(at * nodes.shape[1], nodes.shape[1]), 1.0)
        others = [array.copy() for array in self[2:7]]  # not W, which may take a hundred megabytes
        return State._make([nodes, late_nodes, *others, variances])

    def arrays(self) -> dict[str, Array]:
        """The arrays of the state by name, for model files."""
        arrays = self._asdict() | {"steps": self.steps.astype(np.float64)}
        return {name: array for name, array in arrays.items() if name != "variances" or len(array)}

    @classmethod
    def of(cls, arrays: dict[str, Array], rows: int, order: int, label_count: int) -> State:
        """Check the arrays of a model file, and make a state of them."""
        empty = cls.new(0, order, label_count)
        shapes = {name: array.shape for name, array in empty.arrays().items()}
        shapes |= {"nodes": (rows, label_count), "late_nodes": (rows, label_count)}
        if "variances" in arrays:
            shapes["variances"] = (rows * label_count + empty.short.size + empty.full.size,)
        check_arrays(arrays, shapes)
        steps = float(arrays["steps"][0])
        if not (0 <= steps <= _MAX_STEPS and steps.is_integer()):
            raise DataError(f"its number of steps is {steps:g}, which is not a count")
        variances = arrays.get("variances", empty.variances)
        if not ((variances >= 0) & (variances <= 1)).all():
            raise DataError("one of its variances is not a number from 0 to 1")
        return cls(**arrays | {"steps": arrays["steps"].astype(np.int64), "variances": variances})


class PackedFeatures(NamedTuple):
    """The features of all nodes of a corpus.

    Node t has the rows rows[bounds[t]:bounds[t+1]]; row r has the features
    columns[row_bounds[r]:row_bounds[r+1]], counted from the first feature of its channel, `first`.
    """

    bounds: Array
    rows: Array
    first: Array
    row_bounds: Array
    columns: Array
    values: Array


def pack_features(encoded: Encoded) -> PackedFeatures:
    """Pack the features of a corpus, numbered channel by channel."""
    tables = [sp.csr_matrix(table.matrix) for table in encoded.tables]
    table_starts = np.cumsum([0, *(table.shape[0] for table in tables)])
    lengths = np.concatenate([np.diff(table.indptr) for table in tables])
    feature_starts = np.cumsum([0, *(encoded.tables[c.table].n_features for c in encoded.channels)])
    indptr = [np.arange(encoded.corpus.size + 1) if c.indptr is None else c.indptr for c in encoded.channels]
    bounds = np.sum(indptr, axis=0)
    rows, first = np.empty((2, bounds[-1]), dtype=np.int32)
    filled = bounds[:-1].copy()
    are_plain = all(c.indptr is None for c in encoded.channels)
    for k, (channel, starts, start) in enumerate(zip(encoded.channels, indptr, feature_starts, strict=False)):
        at: Any = slice(k, None, len(indptr))
        if not are_plain:
            counts = np.diff(starts)
            at = np.repeat(filled - starts[:-1], counts) + np.arange(starts[-1])
            filled += counts
        rows[at], first[at] = channel.rows + table_starts[channel.table], start
    columns, values = (np.concatenate([getattr(table, of) for table in tables]) for of in ("indices", "data"))
    return PackedFeatures(bounds, rows, first, np.append(0, np.cumsum(lengths)), columns, values)


@compiled
def fill_scores(begin: int, end: int, features: PackedFeatures, weights: Array, scores: Array) -> None:
    """Compute s_t of the nodes t = begin … end − 1 into the rows t − begin of `scores`."""
    size = weights.shape[1]
    for t in range(begin, end):
        node_scores = scores[t - begin]
        node_scores[:] = 0.0
        for e in range(features.bounds[t], features.bounds[t + 1]):
            row = features.rows[e]
            for i in range(features.row_bounds[row], features.row_bounds[row + 1]):
                part = weights[features.first[e] + features.columns[i]]
                value = features.values[i]
                for b in range(size):
                    node_scores[b] += value * part[b]


@compiled
def _change_node(
    t: int, features: PackedFeatures, weights: Array, plus: int, minus: int, amount: float
) -> None:
    """W += amount · x_t for the label `plus`, −= for the label `minus`."""
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
    """W += amount · (Φ(x, y) − Φ(x, ŷ)), for the structure whose first node is `begin`."""
    for j in range(len(target)):
        if target[j] != predicted[j]:
            _change_node(begin + j, features, weights, target[j], predicted[j], amount)


@compiled
def change_grams(
    begin: int, shape: Shape, grams: Grams, target: Array, predicted: Array, amount: float
) -> None:
    """G += amount · (label counts of y − those of ŷ) for the structure with first node `begin`."""
    _, _, depths, bounds = shape
    if len(bounds) == 2:  # order 0: no label depends on another
        return
    size, end = grams.full.shape[1], begin + len(target)
    contexts, predicted_contexts = np.empty((2, len(target)), dtype=np.int64)
    fill_contexts(begin, end, shape, size, target, contexts)
    fill_contexts(begin, end, shape, size, predicted, predicted_contexts)
    for j in range(len(target)):
        if target[j] != predicted[j] or contexts[j] != predicted_contexts[j]:
            add_to_gram(grams, bounds, depths[begin + j], contexts[j], target[j], amount)
            add_to_gram(grams, bounds, depths[begin + j], predicted_contexts[j], predicted[j], -amount)


@compiled
def count_mistakes(labels: Array, predicted: Array) -> int:
    """Count the known labels that were predicted incorrectly."""
    mistaken = 0
    for j in range(len(labels)):
        mistaken += labels[j] >= 0 and labels[j] != predicted[j]
    return mistaken


# Not part of the loop that decodes ŷ: two calls of `decode` in one function make it slower.
@compiled
def fill_target(
    begin: int, shape: Shape, grams: Grams, scores: Array, work: tuple, labels: Array, target: Array
) -> None:
    """Compute y: the labels, or the best labeling that agrees with those that are known."""
    known = True
    for j in range(len(labels)):
        target[j] = labels[j]
        known &= labels[j] >= 0
    if known:
        return
    allowed = scores[: len(labels)].copy()
    for j in range(len(labels)):
        if labels[j] >= 0:
            allowed[j] = -np.inf
            allowed[j, labels[j]] = scores[j, labels[j]]
    decode(begin, begin + len(labels), shape, grams, allowed, work[0], work[1], target)


@compiled
def _primal_pass(
    structures: Array, examples: TrainingExamples, features: PackedFeatures, state: State, result: Pass,
    work: tuple,
) -> None:  # fmt: skip
    """Learn from structures, in that order."""
    weights, late_weights, shape, steps = state.nodes, state.late_nodes, examples.shape, state.steps
    grams, late_grams = Grams(state.short, state.full), Grams(state.late_short, state.late_full)
    scores = np.empty((len(work[0]), weights.shape[1]))
    for i in structures:
        begin, end = examples.offsets[i], examples.offsets[i + 1]
        labels = examples.labels[begin:end]
        target, predicted = result.targets[begin:end], result.predicted[begin:end]
        fill_scores(begin, end, features, weights, scores)
        decode(begin, end, shape, grams, scores, work[0], work[1], predicted)
        result.mistaken[i] = count_mistakes(labels, predicted)
        steps[0] += 1
        if result.mistaken[i]:
            eta = examples.eta[i]
            late = eta * steps[0]
            fill_target(begin, shape, grams, scores, work, labels, target)
            change_features(begin, features, weights, target, predicted, eta)
            change_features(begin, features, late_weights, target, predicted, late)
            change_grams(begin, shape, grams, target, predicted, eta)
            change_grams(begin, shape, late_grams, target, predicted, late)


class PerceptronLearner:
    """A perceptron, whose unit of work is a pass over the data.

    Attributes
    ----------
    examples : TrainingExamples
        The structures to learn from, their labels and weights.
    state : State
        The present state.
    is_compiled : bool
        Whether a pass is compiled code, which no interrupt leaves within a structure.
    """

    examples: TrainingExamples
    state: State
    is_compiled: ClassVar[bool] = True

    def run(self, structures: Array, result: Pass) -> None:
        """Learn from structures, in that order, and note the outcome."""
        raise NotImplementedError

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return int(self.state.steps[0])

    def restore(self, state: State) -> None:
        """Continue from another state."""
        self.state.become(state)


class Primal(PerceptronLearner):
    """The perceptron with weights W of features.

    Parameters
    ----------
    encoded : Encoded
        The training corpus.
    examples : TrainingExamples
        Its structures, labels and weights.
    state : State
        Where to start from; changed in place.
    """

    def __init__(self, encoded: Encoded, examples: TrainingExamples, state: State) -> None:
        self.examples, self.state, self.features = examples, state, pack_features(encoded)

    def run(self, structures: Array, result: Pass) -> None:
        """Learn from structures, in that order, and note the outcome."""
        _primal_pass(structures, self.examples, self.features, self.state, result, work_for(self.examples))


class Dual(PerceptronLearner):
    """The perceptron with coefficients β of nodes under a kernel.

    Parameters
    ----------
    scores : TrainingScores
        The scores of the training nodes; β is 0.
    examples : TrainingExamples
        The structures, their labels and weights.
    state : State
        Where to start from; its rows are those of the first nodes.

    Attributes
    ----------
    state : State
        The present state, with a row per node.
    """

    is_compiled = False

    def __init__(self, scores: TrainingScores, examples: TrainingExamples, state: State) -> None:
        self.examples, self.scores = examples, scores
        late = np.zeros_like(scores.beta)
        late[: len(state.nodes)] = state.late_nodes
        scores.add(0, len(state.nodes), state.nodes)
        self.state = state._replace(nodes=scores.beta, late_nodes=late)

    def run(self, structures: Array, result: Pass) -> None:
        """Learn from structures, in that order, and note the outcome."""
        examples, state, shape = self.examples, self.state, self.examples.shape
        grams, late_grams = state.grams, Grams(state.late_short, state.late_full)
        work = work_for(examples)
        for i in structures:
            begin, end = examples.offsets[i : i + 2].tolist()
            labels = examples.labels[begin:end]
            target, predicted = result.targets[begin:end], result.predicted[begin:end]
            scores = self.scores.local(begin, end)
            decode(begin, end, shape, grams, scores, *work, predicted)
            result.mistaken[i] = count_mistakes(labels, predicted)
            state.steps[0] += 1
            if result.mistaken[i]:
                eta = float(examples.eta[i])
                late = eta * float(state.steps[0])
                fill_target(begin, shape, grams, scores, work, labels, target)
                change = node_change(target, predicted, examples.label_count)
                state.late_nodes[begin:end] += late * change
                change_grams(begin, shape, grams, target, predicted, eta)
                change_grams(begin, shape, late_grams, target, predicted, late)
                self.scores.add(begin, end, eta * change)


def node_change(target: Array, predicted: Array, label_count: int) -> Array:
    """(T, L) the change of β at a mistake: 1 for the correct label, −1 for the predicted one."""
    one_hot = np.eye(label_count)
    return one_hot[target] - one_hot[predicted]


def new_pass(examples: TrainingExamples) -> Pass:
    """Memory for the outcome of a pass."""
    predicted, targets = np.full((2, len(examples.labels)), -1, dtype=np.int32)
    size = len(examples.eta)
    return Pass(np.zeros(size, dtype=np.int64), predicted, targets, np.zeros(size))


def work_for(examples: TrainingExamples) -> tuple[Array, Array]:
    """Memory to decode the longest structure: `sums` and `below` of `decode`."""
    longest = int(np.diff(examples.offsets).max())
    return np.empty((longest, examples.label_count**examples.order)), np.empty(longest, dtype=np.int64)
