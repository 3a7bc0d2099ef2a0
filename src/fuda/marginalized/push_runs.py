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
from numba import njit

from fuda.marginalized.push import (
    NODES,
    Task,
    add,
    first_twin,
    gather,
    masses,
    most_nodes,
    twin_lists,
)
from fuda.marginalized.scaled import Array

_SHARED = 256  # rows that stay gathered, most frequent codes first
_LEAP = 4  # rows that are gone through at once where nothing is marked
_EDGE = 8  # places at either end of a row at which k is 0, so that a leap may start and end beyond the block
_VECTOR = 32  # numbers that unrolled loops take at once


class Walk(NamedTuple):
    """One structure on its way through a block: rows of k with edges, one after another; of its nodes the
    row, twin number, own value and first twin; the places' twin numbers, and the next of each; K_U or K_D by
    diagonal; and room for diagonals that meet a twin."""

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


@njit(cache=True, nogil=True)
def runs(begin: int, end: int, task: Task, first: int, last: int, mass: float, scores: Array) -> None:
    """Add pushes first..last to scores (L, places) of places begin..end, from an empty one to an empty one.

    `mass` is that of all pairs of nodes, or 0 where it differs or is 0.
    """
    targets, sources, values, pushes = task
    columns, longest, most = _room(begin, end, task, first, last)
    size, shared = len(columns), min(len(values.table), _SHARED)
    rows, gathered = np.zeros((shared + longest, size + 2 * _EDGE)), np.zeros(shared, dtype=np.bool_)
    products = np.zeros((0 if mass else -(-longest // NODES) * NODES, size + 2 * _EDGE))
    slots, twins = np.zeros(longest, dtype=np.int64), np.zeros(longest, dtype=np.int64)
    diagonals, kept, kappa = np.empty(longest + size + 3 * _EDGE), np.empty((most, size)), np.empty(size)
    places, room = targets.twins[begin:end], _LEAP * size
    lists = twin_lists(places)
    again, before = np.empty(room, dtype=np.int64), np.empty(room)
    for p in range(first, last):
        start, stop = pushes.begins[p], pushes.ends[p]
        marked, gamma = pushes.marked[pushes.firsts[p] : pushes.firsts[p + 1]] - start, pushes.gamma
        ids, own = sources.twins[start:stop], (mass if mass else 1.0) * sources.own[start:stop]
        # The rows of k, or of the weight alone: gathered once for each frequent code.
        spare = shared
        for i in range(stop - start):
            twins[i] = first_twin(ids[i], lists)
            row = values.row_of[sources.codes[start + i]]
            slots[i] = row if row < shared else spare
            spare += slots[i] == spare
            if slots[i] >= shared or not gathered[row]:
                gather(
                    values.table[row], columns, mass if mass else 1.0, rows[slots[i], _EDGE : _EDGE + size]
                )
            if slots[i] < shared:
                gathered[row] = True
        if not mass:
            for m in range(len(marked)):
                i = marked[m]
                kept[m] = rows[slots[i], _EDGE : _EDGE + size]
                place = twins[i]
                while place >= 0:
                    kept[m, place] = own[i]
                    place = lists[2][place]
            masses(sources.share[start:stop], targets.share, begin, end, _EDGE, products)
            for i in range(stop - start):
                _multiply(rows[slots[i]], own[i], twins[i], lists[2], before, products[i])
                slots[i], twins[i] = i, -1
        flat = rows.reshape(-1) if mass else products.reshape(-1)
        walk = Walk(flat, slots, ids, own, twins, places, lists[2], diagonals, again, before)
        # Up: K_U, and k u (or weight · u, where the mass differs) is kept.
        diagonals[:] = 0.0
        i, m = 0, 0
        while m < len(marked):
            if marked[m] >= i + _LEAP:
                _advance(i, _LEAP, 1, walk)
                i += _LEAP
                continue
            if marked[m] == i and not mass:
                _times_one_plus(kept[m], diagonals, len(ids) - i + _EDGE, kept[m])
            _advance(i, 1, 1, walk)
            if marked[m] == i:
                if mass:
                    at = len(ids) - i + _EDGE
                    kept[m] = diagonals[at : at + size]
                m += 1
            i += 1
        # Down: K_D, and what was kept times d goes into the scores.
        diagonals[:] = 0.0
        i, m = len(ids) - 1, len(marked) - 1
        while m >= 0:
            if marked[m] <= i - _LEAP:
                _advance(i, _LEAP, -1, walk)
                i -= _LEAP
                continue
            if marked[m] == i:
                _times_one_plus(kept[m], diagonals, len(ids) - i + _EDGE, kappa)
                add(gamma[pushes.firsts[p] + m], 1.0 / mass if mass else 1.0, kappa, begin, end, scores)
                m -= 1
                if m < 0:
                    break
            _advance(i, 1, -1, walk)
            i -= 1


@njit(cache=True, nogil=True)
def _room(begin: int, end: int, task: Task, first: int, last: int) -> tuple[Array, int, int]:
    """The table's column of each place, the longest structure pushed, and the most nodes marked in one.

    Empty places fill it up, so that with _EDGE more loops have nothing left over.
    """
    size = end - begin
    columns = np.full(size + -(size + _EDGE) % _VECTOR, task.values.table.shape[1] - 1, dtype=np.int32)
    for t in range(size):
        columns[t] = task.values.column_of[task.targets.codes[begin + t]]
    return columns, *most_nodes(task.pushes, first, last)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _step(rows: Array, at: int, diagonals: Array, first: int, size: int) -> None:
    a, d = np.uint64(at), np.uint64(first)  # which need no test of their sign
    for t in range(np.uint64(size)):
        diagonals[d + t] = rows[a + t] * (1.0 + diagonals[d + t])


@njit(cache=True, nogil=True)
def _leap(
    rows: Array, at: int, at1: int, at2: int, at3: int, diagonals: Array, first: int, size: int
) -> None:
    a, b, c, e, d = np.uint64(at), np.uint64(at1), np.uint64(at2), np.uint64(at3), np.uint64(first)
    for t in range(np.uint64(size)):
        value = rows[b + t] * (1.0 + rows[a + t] * (1.0 + diagonals[d + t]))
        diagonals[d + t] = rows[e + t] * (1.0 + rows[c + t] * (1.0 + value))


@njit(cache=True, nogil=True)
def _times_one_plus(row: Array, diagonals: Array, first: int, out: Array) -> None:
    at = np.uint64(first)
    for t in range(np.uint64(len(row))):
        out[t] = row[t] * (1.0 + diagonals[at + t])


@njit(cache=True, nogil=True)
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
