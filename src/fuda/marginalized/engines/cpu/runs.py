"""Pushes of sequences, whose features are runs.

With k = weight · mass, κ = weight · u · d and

    K_U(τ,t) = k(τ,t) (1 + K_U(τ−1,t−1)),    K_D(τ,t) = k(τ,t) (1 + K_D(τ+1,t+1)),

all targets of a block are adjacent in memory, with an *empty place* before, between and after
structures where k is 0. So a row K_U(τ,·) is computed from the row before by one loop, and no run
extends over two structures. K_U is computed up to the last marked τ, and stored where τ is
marked; K_D is computed down to the first marked τ, and the products are added to Q.

K_U(τ,t) replaces K_U(τ−1,t−1): a diagonal t − τ has one memory location, and between marked nodes
four rows are computed at a time,

    K_U(τ+3,t+3) = k(τ+3,t+3) (1 + k(τ+2,t+2) (1 + k(τ+1,t+1) (1 + k(τ,t) (1 + K_U(τ−1,t−1))))).

The row of weights of a class over the block is gathered once and used by all nodes of that class.
If the mass is constant it is also a row of k, and the few diagonals with an equal node are
recomputed one by one; otherwise every node has a row of k of its own.

What is done for every structure or node is inlined, with tuples that were made before, and reads
arrays by unsigned numbers. Making views and passing arrays around, each with a reference count,
would take longer than the work itself where the targets are a single sentence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.marginalized.engines.cpu.push import (
    NODES,
    Lists,
    Pushes,
    Sources,
    TargetColumns,
    Task,
    Values,
    columns_of,
    counted,
    first_place,
    look_up,
    look_up_counted,
    masses,
    most_nodes,
    places_by_id,
)
from fuda.marginalized.numbers import Array
from fuda.runtime.compiled import compiled

_SHARED = 256  # rows that are gathered once, most frequent classes first
_LEAP = 4  # rows that are computed at a time between marked nodes
_EDGE = 8  # places at either end of a row with k = 0, so that a leap may extend beyond the block
_VECTOR = 32  # numbers per iteration of an unrolled loop


class Push(NamedTuple):
    """A pushed structure: its first node, their number, and its marked nodes first … last−1."""

    start: int
    nodes: int
    first: int
    last: int


class Walk(NamedTuple):
    """What K_U and K_D of a structure are computed from.

    Attributes
    ----------
    rows : array
        Rows of k with edges, one after another.
    slots, equals : arrays
        The row of each node of the structure, and the first place with its id.
    ids, self_values : arrays
        The id and the value with itself of each source node.
    factor : float
        That of `self_values`: the mass of all pairs, or 1 if masses differ.
    places, others : arrays
        The id of each place, and the next place that has it.
    diagonals : array
        K_U or K_D by diagonal.
    again, before : arrays
        The diagonals with an equal node, and their previous values.
    """

    rows: Array
    slots: Array
    equals: Array
    ids: Array
    self_values: Array
    factor: float
    places: Array
    others: Array
    diagonals: Array
    again: Array
    before: Array


class Buffers(NamedTuple):
    """The other work arrays of pushes to one block.

    Attributes
    ----------
    columns : TargetColumns
        The column of the values of each place.
    weights, gathered : arrays
        Rows of k (or of weights, if masses differ) with edges, those of frequent classes first,
        and whether they have been gathered.
    products : array
        Rows of k of one structure, if masses differ.
    marked_rows, kappa : arrays
        Rows of its marked nodes stored on the way up, and κ of one node.
    lists : Lists
        The places of each id.
    """

    columns: TargetColumns
    weights: Array
    gathered: Array
    products: Array
    marked_rows: Array
    kappa: Array
    lists: Lists


@compiled
def runs(begin: int, end: int, task: Task, first: int, last: int, mass: float, scores: Array) -> None:
    """Add pushes first … last−1 to scores (L, places) of a block.

    The block has the places begin … end−1, of which the first and the last are empty. `mass` is
    that of all pairs of nodes, or 0 if it differs or is 0.
    """
    task = counted(task, task.targets.classes[begin:end], first, last)
    walk, work = _buffers(begin, end, task, first, last, mass)
    sources, values, pushes = task.sources, task.values, task.pushes
    for p in range(first, last):
        start, nodes = pushes.begins[p], pushes.ends[p] - pushes.begins[p]
        push = Push(start, nodes, pushes.firsts[p], pushes.firsts[p + 1])
        _enter(push, sources, values, walk, work)
        if not mass:
            _multiply(push, pushes.marked, task, begin, end, walk, work)
        if nodes == 1:
            _alone(push, pushes.gamma, mass, begin, end, walk, work, scores)
            continue
        _go_up(push, pushes.marked, mass, walk, work.marked_rows)
        _go_down(push, pushes, mass, begin, end, walk, work, scores)


@compiled
def _buffers(begin: int, end: int, task: Task, first: int, last: int, mass: float) -> tuple[Walk, Buffers]:
    """Allocate the work arrays.

    Columns are padded with empty places, of which the first are the edge, so that no vector loop
    has a remainder.
    """
    sources, size = task.sources, end - begin + _EDGE
    size += -size % _VECTOR
    columns = columns_of(task.targets.classes[begin:end], size, task.values)
    longest, most = most_nodes(task.pushes, first, last)
    shared = min(len(task.values.row_of), _SHARED)
    places = task.targets.ids[begin:end]
    lists = places_by_id(places)
    # Rows are cleared when they are gathered: few pushes need few of them.
    weights, gathered = np.empty((shared + longest, _EDGE + size)), np.zeros(shared, dtype=np.bool_)
    products = np.zeros((0 if mass else -(-longest // NODES) * NODES, _EDGE + size))
    rows = weights.reshape(-1) if mass else products.reshape(-1)
    slots, equals = np.zeros(longest, dtype=np.int64), np.zeros(longest, dtype=np.int64)
    marked_rows, kappa = np.empty((most, size)), np.empty(size)
    diagonals = np.empty(longest + size + 2 * _EDGE)
    again, before = np.empty(_LEAP * size, dtype=np.int64), np.empty(_LEAP * size)
    ids, self_values, factor, others = sources.ids, sources.self_values, mass if mass else 1.0, lists[2]
    walk = Walk(rows, slots, equals, ids, self_values, factor, places, others, diagonals, again, before)
    return walk, Buffers(columns, weights, gathered, products, marked_rows, kappa, lists)


@compiled(inline="always")
def _enter(push: Push, sources: Sources, values: Values, walk: Walk, work: Buffers) -> None:
    """Find the rows of the nodes of a structure: of k, or of weights if masses differ."""
    slots, equals, gathered, weights, lists = walk.slots, walk.equals, work.gathered, work.weights, work.lists
    # Arrays in tuples are taken out here: each is counted, which the next loop must not do.
    ids, classes, at, norms = walk.ids, sources.classes, work.columns.numbers, work.columns.norms
    table, row_of, counts, count_of = values.table, values.row_of, values.counts, values.count_of
    levels, row_norms, factor = values.products.levels, values.products.row_norms, walk.factor
    shared = len(gathered)
    spare = shared  # rows of frequent classes are gathered once, other rows each time
    for i in range(push.nodes):
        equals[i] = first_place(ids[push.start + i], lists)
        class_ = classes[push.start + i]
        row = row_of[class_]
        slot = row if row < shared else spare
        spare += slot == spare
        slots[i] = slot
        if slot >= shared or not gathered[slot]:
            for t in range(_EDGE):
                weights[slot, t] = 0.0
            if len(levels):
                norm, count = row_norms[class_], count_of[class_]
                look_up_counted(levels, norm, norms, counts, count, at, factor, weights, slot, _EDGE)
            else:
                look_up(table, row, at, factor, weights, slot, _EDGE)
            if slot < shared:
                gathered[slot] = True


@compiled
def _multiply(push: Push, marked: Array, task: Task, begin: int, end: int, walk: Walk, work: Buffers) -> None:
    """Keep the weights of marked nodes; k = weight · mass of all nodes of a structure."""
    slots, equals, others, before = walk.slots, walk.equals, walk.others, walk.before
    self_values = walk.self_values
    marked_rows, weights, products = work.marked_rows, work.weights, work.products
    edge, size = np.uint64(_EDGE), np.uint64(marked_rows.shape[1])
    for m in range(push.first, push.last):
        row, slot = np.uint64(m - push.first), np.uint64(slots[marked[m] - push.start])
        for t in range(size):
            marked_rows[row, t] = weights[slot, edge + t]
        place = equals[marked[m] - push.start]
        while place >= 0:
            marked_rows[row, place] = self_values[marked[m]]
            place = others[place]
    share = task.sources.share[push.start : push.start + push.nodes]
    masses(share, task.targets.share, begin, end, _EDGE, products)
    for i in range(push.nodes):
        row, slot, place, n = np.uint64(i), np.uint64(slots[i]), equals[i], 0
        while place >= 0:
            before[n] = self_values[push.start + i] * products[row, _EDGE + place]
            place, n = others[place], n + 1
        for t in range(size):
            products[row, edge + t] *= weights[slot, edge + t]
        place, n = equals[i], 0
        while place >= 0:
            products[row, _EDGE + place] = before[n]
            place, n = others[place], n + 1
        slots[i], equals[i] = i, -1


@compiled
def _alone(
    push: Push, gamma: Array, mass: float, begin: int, end: int, walk: Walk, work: Buffers, scores: Array
) -> None:
    """Add a structure of one node, which no match extends beyond: κ is k (or the weight)."""
    if not mass:
        work.kappa[:] = work.marked_rows[0]
    else:
        work.kappa[:] = work.weights[walk.slots[0], _EDGE:]
        place = walk.equals[0]
        while place >= 0:
            work.kappa[place] = walk.factor * walk.self_values[push.start]
            place = walk.others[place]
    _add(gamma, push.first, 1.0 / mass if mass else 1.0, work.kappa, begin, end, scores)


@compiled(inline="always")
def _go_up(push: Push, marked: Array, mass: float, walk: Walk, marked_rows: Array) -> None:
    """Compute K_U up to the last marked node; store k u (or weight · u, if masses differ)."""
    diagonals, size = walk.diagonals, np.uint64(marked_rows.shape[1])
    diagonals[:] = 0.0
    i, m = 0, push.first
    while m < push.last:
        left = marked[m] - push.start - i
        if left >= _LEAP:
            _advance(i, _LEAP, 1, push, walk)
            i += _LEAP
            continue
        at, row = np.uint64(push.nodes - i + _EDGE), np.uint64(m - push.first)
        if left == 0 and not mass:
            for t in range(size):
                marked_rows[row, t] *= 1.0 + diagonals[at + t]
        _advance(i, 1, 1, push, walk)
        if left == 0:
            if mass:
                for t in range(size):
                    marked_rows[row, t] = diagonals[at + t]
            m += 1
        i += 1


@compiled(inline="always")
def _go_down(
    push: Push, pushes: Pushes, mass: float, begin: int, end: int, walk: Walk, work: Buffers, scores: Array
) -> None:
    """Compute K_D down to the first marked node; add the stored rows times d to the scores."""
    diagonals, marked_rows, kappa, marked = walk.diagonals, work.marked_rows, work.kappa, pushes.marked
    diagonals[:] = 0.0
    i, m = push.nodes - 1, push.last - 1
    while m >= push.first:
        left = i - (marked[m] - push.start)
        if left >= _LEAP:
            _advance(i, _LEAP, -1, push, walk)
            i -= _LEAP
            continue
        if left == 0:
            at, row = np.uint64(push.nodes - i + _EDGE), np.uint64(m - push.first)
            for t in range(np.uint64(len(kappa))):
                kappa[t] = marked_rows[row, t] * (1.0 + diagonals[at + t])
            _add(pushes.gamma, m, 1.0 / mass if mass else 1.0, kappa, begin, end, scores)
            m -= 1
            if m < push.first:
                break
        _advance(i, 1, -1, push, walk)
        i -= 1


@compiled(inline="always")
def _add(gamma: Array, m: int, factor: float, kappa: Array, begin: int, end: int, scores: Array) -> None:
    """Q(t,σ) += factor · κ(t) γ(m,σ) for places begin … end−1."""
    first, size = np.uint64(begin), np.uint64(end - begin)
    for label in range(np.uint64(gamma.shape[1])):
        g = factor * gamma[m, label]
        if g != 0.0:
            for t in range(size):
                scores[label, first + t] += g * kappa[t]


@compiled(inline="always")
def _advance(i: int, count: int, way: int, push: Push, walk: Walk) -> None:
    """Advance from node i by `count` nodes, one or _LEAP, up (way 1) or down (way −1)."""
    rows, slots, equals, ids, self_values, factor, places, others, diagonals, again, before = walk
    size = len(again) // _LEAP
    width, base = size + _EDGE, push.nodes - i + _EDGE
    equal_count = 0
    for j in range(count):
        place = equals[i + way * j]
        while place >= 0:
            again[equal_count] = base - way * j + place
            before[equal_count] = diagonals[again[equal_count]]
            equal_count += 1
            place = others[place]
    first = base - (count - 1 if way > 0 else 0)
    at = slots[i] * width + _EDGE + first - base
    if count == 1:
        _step(rows, at, diagonals, first, size)
    else:
        at1 = (slots[i + way] - slots[i]) * width + at + way
        at2 = (slots[i + 2 * way] - slots[i]) * width + at + 2 * way
        at3 = (slots[i + 3 * way] - slots[i]) * width + at + 3 * way
        _leap(rows, at, at1, at2, at3, diagonals, first, size)
    for n in range(equal_count):
        value = before[n]
        for j in range(count):
            node, place = i + way * j, again[n] - base + way * j
            k = 0.0
            if 0 <= place < len(places):
                is_equal = places[place] == ids[push.start + node]
                if is_equal:
                    k = factor * self_values[push.start + node]
                else:
                    k = rows[slots[node] * width + _EDGE + place]
            value = k * (1.0 + value)
        diagonals[again[n]] = value


@compiled(inline="always")
def _step(rows: Array, at: int, diagonals: Array, first: int, size: int) -> None:
    """Advance all diagonals by one node."""
    a, d = np.uint64(at), np.uint64(first)  # unsigned, which avoids tests of the sign
    for t in range(np.uint64(size)):
        diagonals[d + t] = rows[a + t] * (1.0 + diagonals[d + t])


@compiled(inline="always")
def _leap(
    rows: Array, at: int, at1: int, at2: int, at3: int, diagonals: Array, first: int, size: int
) -> None:
    """Advance all diagonals by _LEAP nodes."""
    a, b, c, e, d = np.uint64(at), np.uint64(at1), np.uint64(at2), np.uint64(at3), np.uint64(first)
    for t in range(np.uint64(size)):
        value = rows[b + t] * (1.0 + rows[a + t] * (1.0 + diagonals[d + t]))
        diagonals[d + t] = rows[e + t] * (1.0 + rows[c + t] * (1.0 + value))
