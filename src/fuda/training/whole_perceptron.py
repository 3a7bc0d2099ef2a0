"""The perceptron in whole numbers: what Viterbi looks for is one maximum of integers.

If features are there or not (x_tf is 1 or 0) and η is whole, then so are W and G: sums are exact
in any order, and in numbers of 32 bits as long as they are small. With U ≥ L a power of two and
v_t(b) = s_t(b) + Σ_{children u} m_u(b), one maximum of the keys

    q_t(a) = max_b U (v_t(b) + G(a, b)) + (U − 1 − b)

gives the message, m_t(a) = ⌊q_t(a) / U⌋, and in its last digits the label b that it is of; of
equal values the smallest label, as in `fuda.inference.higher_order`. Labels are then read off,
parents before children. Only differences of m_t(a) matter: it counts from m_t(0), so that numbers
do not grow with the length of a chain. This is done for sixteen labels a at once
(`fuda.runtime.simd_integers`).

If no number of U W and U G is beyond M, no message is beyond 2M, and no key beyond
(F + 2C + 1) M + U, for nodes with at most F features and C children. Where that might not fit into
32 bits, learning goes on in doubles.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numba import config

from fuda.data.encoding import Encoded
from fuda.data.graph import Array
from fuda.inference.higher_order import Shape
from fuda.runtime.compiled import compiled
from fuda.runtime.simd_integers import WIDTH, larger, load, minus, plus, spread, store, without, zeros
from fuda.training.perceptron import (
    PackedFeatures,
    Pass,
    Primal,
    State,
    TrainingExamples,
    count_mistakes,
)

_LARGEST = 2**31 - 1


class _Lists(NamedTuple):
    """The rows of W that are the features of node t: rows[bounds[t]:bounds[t+1]]."""

    bounds: Array
    rows: Array

    @classmethod
    def of(cls, features: PackedFeatures) -> Self:
        """One list per node: to look it up in several takes longer than to add up the rows."""
        counts = np.diff(features.row_bounds)[features.rows]
        bounds = np.append(0, np.cumsum(counts))[features.bounds]
        rows = np.empty(bounds[-1], dtype=np.int32)
        _fill_rows(features, rows)
        return cls(bounds, rows)


@compiled
def _fill_rows(features: PackedFeatures, rows: Array) -> None:
    """Compute the rows of all nodes, one after another."""
    n = 0
    for e in range(len(features.rows)):
        row = features.rows[e]
        for i in range(features.row_bounds[row], features.row_bounds[row + 1]):
            rows[n] = features.first[e] + features.columns[i]
            n += 1


class _Whole(NamedTuple):
    """The weights times U as rows of lanes, and memory for the longest structure.

    Attributes
    ----------
    weights, starts, pairs : (rows, width), (1, width) and (L, width) arrays
        U W and U G; a row of `pairs` is of one label b, its lanes are of the labels a above.
    tie_breaks : (1, width) array
        U − 1 − b, by which the smallest of several best labels has the largest key.
    values, keys : (longest, width) arrays
        Memory for U v and q.
    """

    weights: Array
    starts: Array
    pairs: Array
    tie_breaks: Array
    values: Array
    keys: Array

    @classmethod
    def of(cls, state: State, longest: int) -> Self:
        """The numbers of a state."""
        size = state.nodes.shape[1]
        unit = _unit(size)

        def whole(numbers: Array) -> Array:
            rows = zeros(len(numbers), size)
            if state.steps[0]:  # else they are all 0
                np.multiply(numbers, unit, out=rows[:, :size], casting="unsafe")
            return rows

        tie_breaks = zeros(1, size)
        tie_breaks[0, :size] = unit - 1 - np.arange(size)
        weights, starts, pairs = (whole(numbers) for numbers in (state.nodes, state.short, state.full[0]))
        if not len(starts):  # order 0: all are 0
            starts = zeros(1, size)
        return cls(weights, starts, pairs, tie_breaks, zeros(longest, size), zeros(longest, size))


def _unit(label_count: int) -> int:
    """U."""
    return 1 << (label_count - 1).bit_length()


@compiled
def _decode(
    begin: int, end: int, shape: Shape, lists: _Lists, whole: _Whole, known: Array, labels: Array
) -> None:
    """Find the best labels of one structure among those that agree with the known ones, ≥ 0."""
    order, parents = shape[0], shape[1]
    bounds, rows = lists
    weights, starts, pairs, tie_breaks, values, keys = whole
    size, width = pairs.shape
    last_digits = tie_breaks[0, 0]
    for j in range(end - begin):
        for k in range(0, width, WIDTH):
            total = load(tie_breaks, 0, k)
            for i in range(bounds[begin + j], bounds[begin + j + 1]):
                total = plus(total, load(weights, rows[i], k))
            store(values, j, k, total)
    for n in range(end - 1, begin - 1, -1):
        j, p = order[n] - begin, parents[order[n]] - begin
        if p < 0:
            continue
        lowest = max(known[j], 0)
        highest = known[j] if known[j] >= 0 else size - 1
        for k in range(0, width, WIDTH):
            key = plus(spread(values[j, lowest]), load(pairs, lowest, k))
            for b in range(lowest + 1, highest + 1):
                key = larger(key, plus(spread(values[j, b]), load(pairs, b, k)))
            store(keys, j, k, key)
            message = minus(without(key, spread(last_digits)), spread(keys[j, 0] & ~last_digits))
            store(values, p, k, plus(load(values, p, k), message))
    for n in range(begin, end):
        j, p = order[n] - begin, parents[order[n]] - begin
        if p >= 0:
            labels[j] = last_digits - (keys[j, labels[p]] & last_digits)
        elif known[j] >= 0:
            labels[j] = known[j]
        else:
            top = values[j, 0] + starts[0, 0]
            for b in range(1, size):
                top = max(top, values[j, b] + starts[0, b])
            labels[j] = last_digits - (top & last_digits)


@compiled
def _correct(
    begin: int, shape: Shape, lists: _Lists, whole: _Whole, state: State, target: Array, predicted: Array,
    eta: int,
) -> int:  # fmt: skip
    """Correct the mistakes of one structure; the largest magnitude of what is new in `whole`."""
    bounds, rows = lists
    weights, starts, pairs = whole.weights, whole.starts, whole.pairs
    amount = eta * (whole.tie_breaks[0, 0] + 1)
    _, late_nodes, short, late_short, full, late_full, steps, _ = state
    parents, most = shape[1], 0
    for j in range(len(target)):
        p = parents[begin + j] - begin
        for sign in (1, -1):
            labels, others = (target, predicted) if sign > 0 else (predicted, target)
            b, change, late = labels[j], sign * eta, sign * eta * steps[0]
            if b != others[j]:
                for i in range(bounds[begin + j], bounds[begin + j + 1]):
                    row = rows[i]
                    late_nodes[row, b] += late
                    weights[row, b] += sign * amount
                    most = max(most, abs(weights[row, b]))
            if p >= 0 and (b != others[j] or labels[p] != others[p]):
                a = labels[p]
                full[0, b, a] += change
                late_full[0, b, a] += late
                pairs[b, a] += sign * amount
                most = max(most, abs(pairs[b, a]))
            elif b != others[j] and len(short):
                short[0, b] += change
                late_short[0, b] += late
                starts[0, b] += sign * amount
                most = max(most, abs(starts[0, b]))
    return most


@compiled
def _whole_pass(
    structures: Array,
    examples: TrainingExamples,
    lists: _Lists,
    whole: _Whole,
    state: State,
    result: Pass,
    limit: int,
) -> int:
    """Learn from structures, in that order, until a number of `whole` is beyond M.

    How many structures that are.
    """
    shape = examples.shape
    unknown = np.full(len(whole.values), -1, dtype=np.int32)
    for n in range(len(structures)):
        i = structures[n]
        begin, end = examples.offsets[i], examples.offsets[i + 1]
        labels = examples.labels[begin:end]
        target, predicted = result.targets[begin:end], result.predicted[begin:end]
        _decode(begin, end, shape, lists, whole, unknown, predicted)
        result.mistaken[i] = count_mistakes(labels, predicted)
        state.steps[0] += 1
        if result.mistaken[i]:
            target[:] = labels
            if labels.min() < 0:
                _decode(begin, end, shape, lists, whole, labels, target)
            eta = int(examples.eta[i])
            if _correct(begin, shape, lists, whole, state, target, predicted, eta) > limit:
                return n + 1
    return len(structures)


class WholePrimal(Primal):
    """The perceptron of order 0 or 1 with weights of features, in whole numbers as long as small.

    Parameters
    ----------
    encoded : Encoded
        The training corpus.
    examples : TrainingExamples
        Its structures, labels and weights.
    state : State
        Where to start from; changed in place.
    """

    _newer: _Whole | None = None  # what W is to be computed from when it is asked for

    def __init__(self, encoded: Encoded, examples: TrainingExamples, state: State) -> None:
        super().__init__(encoded, examples, state)
        self._whole: _Whole | None = None
        is_plain = examples.order <= 1 and bool((self.features.values == 1).all())
        self._can_be_whole = is_plain and not config.__dict__["DISABLE_JIT"]  # lanes need the compiler
        if self._can_be_whole:
            if not examples.order:  # every node is a root
                order, parents, lengths, bounds = examples.shape
                examples = examples._replace(shape=(order, np.full_like(parents, -1), lengths, bounds))
            self._linked = examples
            self._lists = _Lists.of(self.features)
            self._limit = _limit(self._lists, examples)

    @property
    def state(self) -> State:
        """The present state, in doubles."""
        if self._newer is not None:
            size = self.examples.label_count
            np.multiply(self._newer.weights[:, :size], 1 / _unit(size), out=self._state.nodes)
            self._newer = None
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state, self._newer = state, None

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return int(self._state.steps[0])

    def run(self, structures: Array, result: Pass) -> None:
        """Learn from structures, in that order, and note the outcome."""
        whole, done = self._whole or self._in_whole_numbers(), 0
        self._whole = None  # unless it is good for one more pass
        if whole is not None:
            self._newer = whole
            done = _whole_pass(structures, self._linked, self._lists, whole, self._state, result, self._limit)
            self._whole = whole if done == len(structures) else None
        if done < len(structures):
            super().run(structures[done:], result)

    def restore(self, state: State) -> None:
        """Continue from another state."""
        super().restore(state)
        self._whole = None

    def _in_whole_numbers(self) -> _Whole | None:
        """The state in whole numbers; None where these would be too large, or are not whole."""
        if not self._can_be_whole:
            return None
        state, unit = self.state, _unit(self.examples.label_count)
        given = [state.nodes, state.short, state.full] if state.steps[0] else []
        for numbers in [*given, self.examples.eta]:
            if (np.rint(numbers) != numbers).any() or np.abs(numbers).max(initial=0.0) * unit > self._limit:
                return None
        return _Whole.of(state, int(np.diff(self.examples.offsets).max()))


def _limit(lists: _Lists, examples: TrainingExamples) -> int:
    """M: what one more structure adds fits into 32 bits too."""
    unit, parents = _unit(examples.label_count), examples.shape[1]
    features = int(np.diff(lists.bounds).max(initial=1))
    children = int(np.bincount(parents[parents >= 0]).max(initial=0))
    longest = int(np.diff(examples.offsets).max())
    growth = longest * features * unit * int(examples.eta.max())
    return min((_LARGEST - unit) // (features + 2 * children + 1), _LARGEST - growth)
