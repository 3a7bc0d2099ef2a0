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

The row of weights of a code over the block is gathered once and used by all nodes with that code.
If the mass is constant it is also a row of k, and the few diagonals with a twin are recomputed
one by one; otherwise every node has a row of k of its own.

What is done for every structure or node is inlined: to pass so many arrays, with a reference count
each, would take longer than the work itself where the targets are a single sentence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.compiled import compiled
from fuda.marginalized.engines.cpu.push import (
    NODES,
    Columns,
    Lists,
    Task,
    add,
    columns_of,
    counted,
    first_twin,
    gather,
    masses,
    most_nodes,
    twin_lists,
)
from fuda.marginalized.numbers import Array

_SHARED = 256  # rows that are gathered once, most frequent codes first
_LEAP = 4  # rows that are computed at a time between marked nodes
_EDGE = 8  # places at either end of a row with k = 0, so that a leap may extend beyond the block
_VECTOR = 32  # numbers per iteration of an unrolled loop


class Buffers(NamedTuple):
    """The work arrays of pushes to one block.

    Attributes
    ----------
    columns : Columns
        The column of the values of each place.
    rows, gathered : arrays
        Rows of k (or of weights, if masses differ) with edges, those of frequent codes first, and
        whether they have been gathered.
    products : array
        Rows of k of one structure, if masses differ.
    slots, twins : arrays
        The row and the first twin of each node of one structure.
    kept, kappa : arrays
        Rows of its marked nodes stored on the way up, and κ of one node.
    places, lists : array and Lists
        The twin numbers of places, and the places of each.
    diagonals : array
        K_U or K_D by diagonal.
    again, before : arrays
        The diagonals with a twin, and their previous values.
    """

    columns: Columns
    rows: Array
    gathered: Array
    products: Array
    slots: Array
    twins: Array
    kept: Array
    kappa: Array
    places: Array
    lists: Lists
    diagonals: Array
    again: Array
    before: Array


class Walk(NamedTuple):
    """One structure that is pushed to a block.

    `rows` are rows of k with edges, flattened; `slots`, `ids`, `own` and `twins` are the row, twin
    number, own value and first twin of each node; the other arrays are those of `Buffers`.
    """

    rows: Array
    slots: Array
    ids: Array
    own: Array
    twins: Array
    places: Array
    others: Array
    diagonals: Array
    again: Array
    before: Array


@compiled
def runs(begin: int, end: int, task: Task, first: int, last: int, mass: float, scores: Array) -> None:
    """Add pushes first … last−1 to scores (L, places) of a block.

    The block has the places begin … end−1, of which the first and the last are empty. `mass` is
    that of all pairs of nodes, or 0 if it differs or is 0.
    """
    task, pushes = counted(task, task.targets.codes[begin:end], first, last), task.pushes
    work = _buffers(begin, end, task, first, last, mass)
    for p in range(first, last):
        rows = slice(pushes.firsts[p], pushes.firsts[p + 1])
        marked = pushes.marked[rows] - pushes.begins[p]
        walk = _enter(pushes.begins[p], pushes.ends[p], marked, begin, end, task, mass, work)
        if pushes.ends[p] == pushes.begins[p] + 1:
            _alone(pushes.gamma[rows], walk, mass, work, begin, end, scores)
            continue
        _go_up(marked, walk, mass, work.kept)
        _go_down(marked, pushes.gamma[rows], walk, mass, work, begin, end, scores)


@compiled
def _buffers(begin: int, end: int, task: Task, first: int, last: int, mass: float) -> Buffers:
    """Allocate the work arrays.

    Columns are padded with empty places, so that with _EDGE more no vector loop has a remainder.
    """
    size = end - begin
    size += -(size + _EDGE) % _VECTOR
    columns = columns_of(task.targets.codes[begin:end], size, task.values)
    longest, most = most_nodes(task.pushes, first, last)
    shared = min(len(task.values.row_of), _SHARED)
    places = task.targets.twins[begin:end]
    # Rows are cleared when they are gathered: few pushes need few of them.
    rows, gathered = np.empty((shared + longest, size + 2 * _EDGE)), np.zeros(shared, dtype=np.bool_)
    products = np.zeros((0 if mass else -(-longest // NODES) * NODES, size + 2 * _EDGE))
    slots, twins = np.zeros(longest, dtype=np.int64), np.zeros(longest, dtype=np.int64)
    kept, kappa, diagonals = np.empty((most, size)), np.empty(size), np.empty(longest + size + 3 * _EDGE)
    again, before, lists = np.empty(_LEAP * size, dtype=np.int64), np.empty(_LEAP * size), twin_lists(places)
    return Buffers(
        columns, rows, gathered, products, slots, twins, kept, kappa, places, lists, diagonals, again, before
    )


@compiled(inline="always")
def _enter(
    start: int, stop: int, marked: Array, begin: int, end: int, task: Task, mass: float, work: Buffers
) -> Walk:
    """Compute the rows of k of a structure; store weights of marked nodes if masses differ."""
    sources, values, lists = task.sources, task.values, work.lists
    slots, twins, rows = work.slots, work.twins, work.rows
    shared, size = len(work.gathered), len(work.kappa)
    ids, own = sources.twins[start:stop], (mass if mass else 1.0) * sources.own[start:stop]
    spare = shared  # rows of frequent codes are gathered once, other rows each time
    for i in range(stop - start):
        twins[i] = first_twin(ids[i], lists)
        code = sources.codes[start + i]
        row = values.row_of[code]
        slots[i] = row if row < shared else spare
        spare += slots[i] == spare
        if slots[i] >= shared or not work.gathered[row]:
            rows[slots[i], :_EDGE] = rows[slots[i], _EDGE + size :] = 0.0
            gathered_row = rows[slots[i], _EDGE : _EDGE + size]
            gather(values, code, work.columns, mass if mass else 1.0, gathered_row)
        if slots[i] < shared:
            work.gathered[row] = True
    if not mass:
        for m in range(len(marked)):
            i = marked[m]
            work.kept[m] = rows[slots[i], _EDGE : _EDGE + size]
            place = twins[i]
            while place >= 0:
                work.kept[m, place] = own[i]
                place = lists[2][place]
        masses(sources.share[start:stop], task.targets.share, begin, end, _EDGE, work.products)
        for i in range(stop - start):
            _multiply(rows[slots[i]], own[i], twins[i], lists[2], work.before, work.products[i])
            slots[i], twins[i] = i, -1
    flat = rows.reshape(-1) if mass else work.products.reshape(-1)
    return Walk(flat, slots, ids, own, twins, work.places, lists[2], work.diagonals, work.again, work.before)


@compiled
def _alone(gamma: Array, walk: Walk, mass: float, work: Buffers, begin: int, end: int, scores: Array) -> None:
    """Add a structure of one node, which no match extends beyond: κ is k (or the weight)."""
    if not mass:
        add(gamma[0], 1.0, work.kept[0], begin, end, scores)
        return
    row, before, found = work.rows[walk.slots[0], _EDGE : _EDGE + len(work.kappa)], work.before, 0
    place = walk.twins[0]
    while place >= 0:
        before[found], row[place] = row[place], walk.own[0]
        found, place = found + 1, walk.others[place]
    add(gamma[0], 1.0 / mass, row, begin, end, scores)
    found, place = 0, walk.twins[0]
    while place >= 0:
        row[place] = before[found]
        found, place = found + 1, walk.others[place]


@compiled(inline="always")
def _go_up(marked: Array, walk: Walk, mass: float, kept: Array) -> None:
    """Compute K_U up to the last marked node; store k u (or weight · u, if masses differ)."""
    diagonals, nodes, size = walk.diagonals, len(walk.ids), kept.shape[1]
    diagonals[:] = 0.0
    i, m = 0, 0
    while m < len(marked):
        if marked[m] >= i + _LEAP:
            _advance(i, _LEAP, 1, walk)
            i += _LEAP
            continue
        if marked[m] == i and not mass:
            _times_one_plus(kept[m], diagonals, nodes - i + _EDGE, kept[m])
        _advance(i, 1, 1, walk)
        if marked[m] == i:
            if mass:
                at = nodes - i + _EDGE
                kept[m] = diagonals[at : at + size]
            m += 1
        i += 1


@compiled(inline="always")
def _go_down(
    marked: Array, gamma: Array, walk: Walk, mass: float, work: Buffers, begin: int, end: int, scores: Array
) -> None:
    """Compute K_D down to the first marked node; add the stored rows times d to the scores."""
    diagonals, nodes = walk.diagonals, len(walk.ids)
    diagonals[:] = 0.0
    i, m = nodes - 1, len(marked) - 1
    while m >= 0:
        if marked[m] <= i - _LEAP:
            _advance(i, _LEAP, -1, walk)
            i -= _LEAP
            continue
        if marked[m] == i:
            _times_one_plus(work.kept[m], diagonals, nodes - i + _EDGE, work.kappa)
            add(gamma[m], 1.0 / mass if mass else 1.0, work.kappa, begin, end, scores)
            m -= 1
            if m < 0:
                break
        _advance(i, 1, -1, walk)
        i -= 1


@compiled(inline="always")
def _advance(i: int, count: int, way: int, walk: Walk) -> None:
    """Advance from node i by `count` nodes, one or _LEAP, up (way 1) or down (way −1)."""
    rows, slots, ids, own, twins, places, others, diagonals, again, before = walk
    nodes, size = len(ids), len(again) // _LEAP + _EDGE
    width, base = size + _EDGE, nodes - i + _EDGE
    found = 0
    for j in range(count):
        place = twins[i + way * j]
        while place >= 0:
            again[found] = base - way * j + place
            before[found] = diagonals[again[found]]
            found += 1
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
    for n in range(found):
        value = before[n]
        for j in range(count):
            node, place = i + way * j, again[n] - base + way * j
            k = 0.0
            if 0 <= place < len(places):
                k = own[node] if places[place] == ids[node] else rows[slots[node] * width + _EDGE + place]
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


@compiled(inline="always")
def _times_one_plus(row: Array, diagonals: Array, first: int, out: Array) -> None:
    """Write row · (1 + diagonals) into `out`."""
    at = np.uint64(first)
    for t in range(np.uint64(len(row))):
        out[t] = row[t] * (1.0 + diagonals[at + t])


@compiled
def _multiply(weights: Array, own: float, twin: int, others: Array, before: Array, masses: Array) -> None:
    """Overwrite masses by k = weight · mass; the weight of twins is `own`."""
    place, found = twin, 0
    while place >= 0:
        before[found] = own * masses[_EDGE + place]
        place, found = others[place], found + 1
    for t in range(len(weights)):
        masses[t] *= weights[t]
    place, found = twin, 0
    while place >= 0:
        masses[_EDGE + place] = before[found]
        place, found = others[place], found + 1
