"""Pushing: what some structures with coefficients γ add to the scores of all nodes.

Of a source structure with nodes τ, every target node t gains

    Q(t,σ) += Σ_τ κ(τ,t) γ_τ(σ),

where κ is that of `fuda.marginalized`. For runs in sequences κ = weight · u · d with k = weight · mass and

    K_U(τ,t) = k(τ,t) (1 + K_U(τ−1,t−1)),    K_D(τ,t) = k(τ,t) (1 + K_D(τ+1,t+1)).

All targets lie one after another, with an *empty place* before, between and after structures where k is 0.
So a whole block of structures is one row K_U(τ,·), made from the row before by one loop over contiguous
memory, and nothing runs from one structure into the next. Up to the last marked τ (γ_τ ≠ 0) K_U is made, and
kept where τ is marked; down to the first marked τ goes K_D, and their product is added to Q.

K_U(τ,t) takes the place of K_U(τ−1,t−1): a diagonal t − τ keeps one place in memory, and where nothing is
marked four rows are gone through at once,

    K_U(τ+3,t+3) = k(τ+3,t+3) (1 + k(τ+2,t+2) (1 + k(τ+1,t+1) (1 + k(τ,t) (1 + K_U(τ−1,t−1))))).

Rows of k come from a table by the *codes* of observations. Where observations of one code differ from one
another, k is the table's value for two different ones, and of an observation with itself (its *twin*) it
is `own`. A code's row over the block is gathered once and used by all nodes with that code; the few diagonals
that meet a twin are computed again, one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from fuda.marginalized import chain_prior, pair
from fuda.marginalized.chain_prior import Steps
from fuda.marginalized.links import Links
from fuda.marginalized.scaled import Array, Table, plus, read, times, write

_SHARED = 256  # rows that stay gathered, most frequent codes first
_LEAP = 4  # rows that are gone through at once where nothing is marked
_EDGE = 8  # places at either end of a row at which k is 0, so that a leap may start and end beyond the block
_NODES, _LABELS, _TILE = 4, 3, 256  # nodes, labels and places that masses are computed of at once
_VECTOR = 32  # numbers that unrolled loops take at once
# Twin numbers that equal no other: where codes tell all observations apart, and of empty places.
APART, NONE = -1, -2


# The places of each twin number as linked lists: keys and first places by hash, and the next of each place.
Lists = tuple[Array, Array, Array]


class Sources(NamedTuple):
    """The nodes that speak: code, twin number and own value of each, and (N, L) Σ_ρ P(ρ|τ) k_y(ρ,·)."""

    codes: Array
    twins: Array
    own: Array
    share: Array


class Targets(NamedTuple):
    """The places that are spoken to: code and twin number of each, and (L, places) P(σ|t)."""

    codes: Array
    twins: Array
    share: Array


class Values(NamedTuple):
    """c² k_x by code: table[row_of[source code], column_of[target code]]; the last column, 0, is for empty
    places."""

    table: Array
    row_of: Array
    column_of: Array


class Pushes(NamedTuple):
    """Push p is of the structure with source nodes begins[p]..ends[p], in which the nodes
    marked[firsts[p]:firsts[p+1]] have the rows of `gamma`."""

    begins: Array
    ends: Array
    firsts: Array
    marked: Array
    gamma: Array


class Task(NamedTuple):
    """What is pushed, from where to where."""

    targets: Targets
    sources: Sources
    values: Values
    pushes: Pushes


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
    products = np.zeros((0 if mass else -(-longest // _NODES) * _NODES, size + 2 * _EDGE))
    slots, twins = np.zeros(longest, dtype=np.int64), np.zeros(longest, dtype=np.int64)
    diagonals, kept, kappa = np.empty(longest + size + 3 * _EDGE), np.empty((most, size)), np.empty(size)
    block, places = scores[:, begin:end], targets.twins[begin:end]
    lists, room = _twin_lists(places), _LEAP * size
    again, before = np.empty(room, dtype=np.int64), np.empty(room)
    for p in range(first, last):
        start, stop = pushes.begins[p], pushes.ends[p]
        marked, gamma = pushes.marked[pushes.firsts[p] : pushes.firsts[p + 1]] - start, pushes.gamma
        ids, own = sources.twins[start:stop], (mass if mass else 1.0) * sources.own[start:stop]
        # The rows of k, or of the weight alone: gathered once for each frequent code.
        spare = shared
        for i in range(stop - start):
            twins[i] = _first_twin(ids[i], lists)
            row = values.row_of[sources.codes[start + i]]
            slots[i] = row if row < shared else spare
            spare += slots[i] == spare
            if slots[i] >= shared or not gathered[row]:
                _gather(
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
            _masses(sources.share[start:stop], targets.share, begin, end, products)
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
                _times_one_plus(diagonals, len(ids) - i + _EDGE, kept[m])
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
                kappa[:] = kept[m]
                _times_one_plus(diagonals, len(ids) - i + _EDGE, kappa)
                _add(gamma[pushes.firsts[p] + m], 1.0 / mass if mass else 1.0, kappa, block)
                m -= 1
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
    longest, most, pushes = 0, 0, task.pushes
    for p in range(first, last):
        longest = max(longest, pushes.ends[p] - pushes.begins[p])
        most = max(most, pushes.firsts[p + 1] - pushes.firsts[p])
    return columns, longest, most


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
def _gather(values: Array, columns: Array, factor: float, row: Array) -> None:
    for t in range(len(columns)):
        row[t] = factor * values[columns[t]]


@njit(cache=True, nogil=True)
def _times_one_plus(diagonals: Array, first: int, row: Array) -> None:
    along = diagonals[first : first + len(row)]
    for t in range(len(row)):
        row[t] *= 1.0 + along[t]


@njit(cache=True, nogil=True)
def _masses(of_sources: Array, of_targets: Array, begin: int, end: int, rows: Array) -> None:
    """mass(i, t) = Σ_σ of_sources(i, σ) of_targets(σ, begin + t), into rows with edges.

    By tiles of targets whose shares stay in the fastest cache, and of these for several nodes at once.
    """
    count, labels = of_sources.shape
    shares = np.zeros((-(-count // _NODES) * _NODES, -(-labels // _LABELS) * _LABELS))
    shares[:count, :labels] = of_sources
    flat = rows.reshape(-1)
    for t in range(begin, end, _TILE):
        size, at = min(_TILE, end - t), _EDGE + t - begin
        for i in range(0, count, _NODES):
            for label in range(0, labels, _LABELS):
                # Beyond the last label the shares are 0, and any row will do.
                p = of_targets[label]
                q, r = of_targets[min(label + 1, labels - 1)], of_targets[min(label + 2, labels - 1)]
                few = shares[i : i + _NODES, label : label + _LABELS]
                _few_masses(few, p, q, r, t, size, label == 0, flat, i * rows.shape[1] + at, rows.shape[1])


@njit(cache=True, nogil=True, fastmath={"contract"})
def _few_masses(
    few: Array, p: Array, q: Array, r: Array, t: int, size: int, anew: bool, flat: Array, at: int, width: int
) -> None:
    """What _LABELS labels add to the masses of _NODES nodes."""
    a0, a1, a2, b0, b1, b2 = few[0, 0], few[0, 1], few[0, 2], few[1, 0], few[1, 1], few[1, 2]
    c0, c1, c2, d0, d1, d2 = few[2, 0], few[2, 1], few[2, 2], few[3, 0], few[3, 1], few[3, 2]
    old = 0.0 if anew else 1.0
    first, a, w = np.uint64(t), np.uint64(at), np.uint64(width)
    b, c, d = a + w, a + w + w, a + w + w + w
    for n in range(np.uint64(size)):
        x, y, z = p[first + n], q[first + n], r[first + n]
        flat[a + n] = old * flat[a + n] + (a0 * x + a1 * y + a2 * z)
        flat[b + n] = old * flat[b + n] + (b0 * x + b1 * y + b2 * z)
        flat[c + n] = old * flat[c + n] + (c0 * x + c1 * y + c2 * z)
        flat[d + n] = old * flat[d + n] + (d0 * x + d1 * y + d2 * z)


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


@njit(cache=True, nogil=True)
def _add(gamma: Array, factor: float, kappa: Array, scores: Array) -> None:
    for label in range(len(gamma)):
        g = factor * gamma[label]
        if g != 0.0:
            row = scores[label]
            for t in range(len(row)):
                row[t] += g * kappa[t]


@njit(cache=True, nogil=True)
def _twin_lists(twins: Array) -> Lists:
    """The places of each twin number."""
    room = 64
    while room < 2 * len(twins):
        room *= 2
    keys, heads = np.full(room, NONE, dtype=np.int64), np.full(room, -1, dtype=np.int64)
    others = np.full(len(twins), -1, dtype=np.int64)
    for t in range(len(twins)):
        if twins[t] != NONE:
            at = _slot(twins[t], keys)
            keys[at] = twins[t]
            others[t] = heads[at]
            heads[at] = t
    return keys, heads, others


@njit(cache=True, nogil=True)
def _slot(twin: int, keys: Array) -> int:
    """Where a hash table has a twin number, or has room for it."""
    at = (twin * 40503) & (len(keys) - 1)
    while keys[at] != twin and keys[at] != NONE:
        at = (at + 1) & (len(keys) - 1)
    return at


@njit(cache=True, nogil=True)
def _first_twin(twin: int, lists: Lists) -> int:
    """The first place of a twin number, −1 if there is none."""
    keys, heads, _ = lists
    return -1 if twin == APART else heads[_slot(twin, keys)]


@njit(cache=True, nogil=True)
def pairs(
    shape: int,
    gap: float,
    structures: tuple[Array, Array, Array],
    links: tuple[Links, Links],
    task: Task,
    first: int,
    last: int,
    room: tuple[Array, Array, Table, Table],
    scores: Table,
) -> None:
    """As `runs`, pair by pair of structures, for every shape and in both kinds of numbers.

    `structures` are, of target structures, the first place and the first and the last + 1 node; `links` those
    of sources and targets; `room` is weight, mass, kappa and work.
    """
    weight, mass, kappa, work = room
    pushes = task.pushes
    for p in range(first, last):
        start, stop = pushes.begins[p], pushes.ends[p]
        for j in range(len(structures[0])):
            place, begin, end = structures[0][j], structures[1][j], structures[2][j]
            fill_weight(start, stop, place, end - begin, task, weight)
            fill_mass(start, stop, place, end - begin, task, mass)
            pair.fill(shape, links[0], start, stop, links[1], begin, end, weight, mass, gap, kappa, work)
            for m in range(pushes.firsts[p], pushes.firsts[p + 1]):
                i = pushes.marked[m] - start
                for label in range(pushes.gamma.shape[1]):
                    g = pushes.gamma[m, label]
                    if g != 0.0:
                        for t in range(end - begin):
                            more = times(g, read(kappa, (i, t)))
                            at = (label, place + t)
                            write(scores, at, plus(read(scores, at), more))


@njit(cache=True, nogil=True)
def chains(
    structures: tuple[Array, Array, Array],
    steps: tuple[Steps, Steps],
    task: Task,
    first: int,
    last: int,
    room: tuple[Array, Table, Table],
    scores: Table,
) -> None:
    """As `pairs`, for runs under a chain prior, where κ has a label; `steps` of sources and of targets."""
    weight, kappa, work = room
    pushes = task.pushes
    labels = steps[0][0].shape[1]
    for p in range(first, last):
        start, stop = pushes.begins[p], pushes.ends[p]
        for j in range(len(structures[0])):
            place, begin, end = structures[0][j], structures[1][j], structures[2][j]
            fill_weight(start, stop, place, end - begin, task, weight)
            chain_prior.fill_diagonal(steps[0], start, stop, steps[1], begin, end, weight, kappa, work)
            for m in range(pushes.firsts[p], pushes.firsts[p + 1]):
                i = pushes.marked[m] - start
                for label in range(pushes.gamma.shape[1]):
                    g = pushes.gamma[m, label]
                    if g != 0.0:
                        for t in range(end - begin):
                            more = times(g, read(kappa, (i, t, label % labels)))
                            at = (label, place + t)
                            write(scores, at, plus(read(scores, at), more))


@njit(cache=True, nogil=True)
def fill_weight(start: int, stop: int, place: int, size: int, task: Task, weight: Array) -> None:
    """weight(τ,t) of source nodes start..stop and `size` places from `place` on, into a corner."""
    targets, sources, values, _ = task
    for i in range(stop - start):
        row = values.row_of[sources.codes[start + i]]
        twin, own = sources.twins[start + i], sources.own[start + i]
        for t in range(size):
            same = targets.twins[place + t] == twin
            weight[i, t] = own if same else values.table[row, values.column_of[targets.codes[place + t]]]


@njit(cache=True, nogil=True)
def fill_mass(start: int, stop: int, place: int, size: int, task: Task, mass: Array) -> None:
    """mass(τ,t) of the same nodes, into a corner of `mass`."""
    for i in range(stop - start):
        for t in range(size):
            mass[i, t] = 0.0
        for label in range(task.sources.share.shape[1]):
            x = task.sources.share[start + i, label]
            for t in range(size):
                mass[i, t] += x * task.targets.share[label, place + t]
