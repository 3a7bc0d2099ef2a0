"""Pushes of sequences, whose features are runs.

With k = weight · mass, κ = weight · u · d and

    K_U(τ,t) = k(τ,t) (1 + K_U(τ−1,t−1)),    K_D(τ,t) = k(τ,t) (1 + K_D(τ+1,t+1)),

all targets of a block lie one after another, with an *empty place* before, between and after structures where
k is 0. So a row K_U(τ,·) is made from the row before by one loop, and nothing runs from one structure into
the next. Up to the last marked τ K_U is made, and kept where τ is marked; down to the first marked τ goes
K_D, and their product is added to Q.

K_U(τ,t) takes the place of K_U(τ−1,t−1): a diagonal t − τ keeps one place in memory, and where nothing is
marked four rows are gone through at once,

    K_U(τ+3,t+3) = k(τ+3,t+3) (1 + k(τ+2,t+2) (1 + k(τ+1,t+1) (1 + k(τ,t) (1 + K_U(τ−1,t−1))))).

A code's row of weights over the block is gathered once and used by all nodes with that code. Where the mass
is the same everywhere it is a row of k as well, and the few diagonals that meet a twin are computed again,
one by one; else every node has a row of k of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.compiled import compiled
from fuda.marginalized.engines.cpu.push import (
    NODES,
    Lists,
    Task,
    add,
    first_twin,
    gather,
    masses,
    most_nodes,
    twin_lists,
)
from fuda.marginalized.numbers import Array

_SHARED = 256  # rows that stay gathered, most frequent codes first
_LEAP = 4  # rows that are gone through at once where nothing is marked
_EDGE = 8  # places at either end of a row at which k is 0, so that a leap may start and end beyond the block
_VECTOR = 32  # numbers that unrolled loops take at once


class Room(NamedTuple):
    """What pushes to one block work in.

    The table's column of each place; rows of k (or of weights, where masses differ) with edges, those of
    frequent codes first, and which of them have been gathered; rows of k of one structure, where masses
    differ; of its nodes the row and the first twin; of its marked nodes what is kept on the way up, and κ
    of one; the twin numbers of places and their lists; K_U or K_D by diagonal; and the diagonals that
    meet a twin, with their values before.
    """

    columns: Array
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
    """One structure on its way through a block: rows of k with edges, one after another; of its nodes
    the row, twin number, own value and first twin; and of `Room` what the way needs."""

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
    """Add pushes first..last to scores (L, places) of places begin..end, from an empty one to an empty one.

    `mass` is that of all pairs of nodes, or 0 where it differs or is 0.
    """
    room, pushes = _room(begin, end, task, first, last, mass), task.pushes
    for p in range(first, last):
        rows = slice(pushes.firsts[p], pushes.firsts[p + 1])
        marked = pushes.marked[rows] - pushes.begins[p]
        walk = _enter(pushes.begins[p], pushes.ends[p], marked, begin, end, task, mass, room)
        _go_up(marked, walk, mass, room.kept)
        _go_down(marked, pushes.gamma[rows], walk, mass, room, begin, end, scores)


@compiled
def _room(begin: int, end: int, task: Task, first: int, last: int, mass: float) -> Room:
    """Room for pushes first..last to places begin..end.

    Empty places fill up the columns, so that with _EDGE more no vector loop has a remainder.
    """
    size = end - begin
    columns = np.full(size + -(size + _EDGE) % _VECTOR, task.values.table.shape[1] - 1, dtype=np.int32)
    for t in range(size):
        columns[t] = task.values.column_of[task.targets.codes[begin + t]]
    longest, most = most_nodes(task.pushes, first, last)
    size, shared = len(columns), min(len(task.values.table), _SHARED)
    places = task.targets.twins[begin:end]
    return Room(
        columns,
        np.zeros((shared + longest, size + 2 * _EDGE)),
        np.zeros(shared, dtype=np.bool_),
        np.zeros((0 if mass else -(-longest // NODES) * NODES, size + 2 * _EDGE)),
        np.zeros(longest, dtype=np.int64),
        np.zeros(longest, dtype=np.int64),
        np.empty((most, size)),
        np.empty(size),
        places,
        twin_lists(places),
        np.empty(longest + size + 3 * _EDGE),
        np.empty(_LEAP * size, dtype=np.int64),
        np.empty(_LEAP * size),
    )


@compiled
def _enter(
    start: int, stop: int, marked: Array, begin: int, end: int, task: Task, mass: float, room: Room
) -> Walk:
    """The rows of k of a source structure; where masses differ, the weights of marked nodes are kept."""
    sources, values, lists = task.sources, task.values, room.lists
    slots, twins, rows, shared, size = room.slots, room.twins, room.rows, len(room.gathered), len(room.kappa)
    ids, own = sources.twins[start:stop], (mass if mass else 1.0) * sources.own[start:stop]
    spare = shared  # rows of frequent codes are gathered once, those of others each time
    for i in range(stop - start):
        twins[i] = first_twin(ids[i], lists)
        row = values.row_of[sources.codes[start + i]]
        slots[i] = row if row < shared else spare
        spare += slots[i] == spare
        if slots[i] >= shared or not room.gathered[row]:
            gathered_row = rows[slots[i], _EDGE : _EDGE + size]
            gather(values.table[row], room.columns, mass if mass else 1.0, gathered_row)
        if slots[i] < shared:
            room.gathered[row] = True
    if not mass:
        for m in range(len(marked)):
            i = marked[m]
            room.kept[m] = rows[slots[i], _EDGE : _EDGE + size]
            place = twins[i]
            while place >= 0:
                room.kept[m, place] = own[i]
                place = lists[2][place]
        masses(sources.share[start:stop], task.targets.share, begin, end, _EDGE, room.products)
        for i in range(stop - start):
            _multiply(rows[slots[i]], own[i], twins[i], lists[2], room.before, room.products[i])
            slots[i], twins[i] = i, -1
    flat = rows.reshape(-1) if mass else room.products.reshape(-1)
    return Walk(flat, slots, ids, own, twins, room.places, lists[2], room.diagonals, room.again, room.before)


@compiled
def _go_up(marked: Array, walk: Walk, mass: float, kept: Array) -> None:
    """K_U up to the last marked node; k u (or weight · u, where masses differ) of marked nodes is kept."""
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


@compiled
def _go_down(
    marked: Array, gamma: Array, walk: Walk, mass: float, room: Room, begin: int, end: int, scores: Array
) -> None:
    """K_D down to the first marked node; what was kept, times d, goes into the scores."""
    diagonals, nodes = walk.diagonals, len(walk.ids)
    diagonals[:] = 0.0
    i, m = nodes - 1, len(marked) - 1
    while m >= 0:
        if marked[m] <= i - _LEAP:
            _advance(i, _LEAP, -1, walk)
            i -= _LEAP
            continue
        if marked[m] == i:
            _times_one_plus(room.kept[m], diagonals, nodes - i + _EDGE, room.kappa)
            add(gamma[m], 1.0 / mass if mass else 1.0, room.kappa, begin, end, scores)
            m -= 1
            if m < 0:
                break
        _advance(i, 1, -1, walk)
        i -= 1


@compiled
def _advance(i: int, count: int, way: int, walk: Walk) -> None:
    """From node i on take `count` nodes, one or _LEAP, up (way 1) or down (way −1)."""
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


@compiled
def _step(rows: Array, at: int, diagonals: Array, first: int, size: int) -> None:
    a, d = np.uint64(at), np.uint64(first)  # which need no test of their sign
    for t in range(np.uint64(size)):
        diagonals[d + t] = rows[a + t] * (1.0 + diagonals[d + t])


@compiled
def _leap(
    rows: Array, at: int, at1: int, at2: int, at3: int, diagonals: Array, first: int, size: int
) -> None:
    a, b, c, e, d = np.uint64(at), np.uint64(at1), np.uint64(at2), np.uint64(at3), np.uint64(first)
    for t in range(np.uint64(size)):
        value = rows[b + t] * (1.0 + rows[a + t] * (1.0 + diagonals[d + t]))
        diagonals[d + t] = rows[e + t] * (1.0 + rows[c + t] * (1.0 + value))


@compiled
def _times_one_plus(row: Array, diagonals: Array, first: int, out: Array) -> None:
    at = np.uint64(first)
    for t in range(np.uint64(len(row))):
        out[t] = row[t] * (1.0 + diagonals[at + t])


@compiled
def _multiply(weights: Array, own: float, twin: int, others: Array, before: Array, masses: Array) -> None:
    """k = weight · mass, in the place of the masses; the weight of twins is `own`."""
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
