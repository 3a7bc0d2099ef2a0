"""Scores of sequences by windows: matches reach a few nodes to either side.

With k = c² k_x · mass, and nodes farther away than the reach r left out,

    κ_r(τ,t) = weight(τ,t) · u_r(τ,t) · d_r(τ,t),
    u_r(τ,t) = 1 + k(τ−1,t−1) (1 + k(τ−2,t−2) (1 + … (1 + k(τ−r,t−r)))),

and d_r mirrored. Where k ≤ q < 1, what is left out of u is at most q^(r+1) / (1 − q). What a
support position adds to a score then depends on the window of 2r + 1 nodes around it: on their
codes, but for pairs of equal observations. Positions whose windows have the same codes are merged,
and their coefficients added; those with the same codes to the left share u_r. Targets whose
windows have the same codes are scored once. Pairs of positions and targets with equal observations
in their windows (*twins*) are found by an index, and what they differ by from pairs with the same
codes is added one by one.

Most nodes are clear cases. So all targets are scored with a reach of one node for codes, where few
windows differ. With every longer reach only those are scored whose best label does not lead by the
margin of this label, and the nodes next to them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.compiled import compiled
from fuda.marginalized.numbers import Array
from fuda.marginalized.problem import Problem
from fuda.parallel import blocks, run

REACHES = (1, 2, 6)  # the reach r of each stage
NEVER = 3.0  # a margin by which no label leads: leads are at most 2
# The longest reach, which pairs of nodes with equal observations have in all stages.
_REACH = REACHES[-1]
_TILE = 256  # the number of targets for which rows of k are computed together
_BATCH = 16  # the number of positions whose κ are computed before they are added
_TOGETHER = 4  # the number of positions whose κ are added together
_LARGEST = 2.0  # the largest k, with which κ is far from the largest float32
_NUMBER = np.float32  # the type of rows of k
_BLOCK = 1024  # windows per task of a thread


class Windows(NamedTuple):
    """Windows of nodes: (n, 2r + 1) codes and twin numbers.

    Outside of a structure these are a further code, and −1.
    """

    codes: Array
    twins: Array


class Positions(NamedTuple):
    """Support positions.

    Attributes
    ----------
    codes, twins : arrays (n, 2r + 1)
        Their windows.
    self_values : array
        k of observations with themselves, by twin number.
    gamma : array (n, L)
        γ / mass.
    firsts, entries : arrays
        The positions with twin number w at place j of their windows are entries[a:b], with a and b
        the numbers (2r + 1) w + j and the next one of `firsts`.
    """

    codes: Array
    twins: Array
    self_values: Array
    gamma: Array
    firsts: Array
    entries: Array


class Merged(NamedTuple):
    """Support positions, those with equal codes merged, in groups with equal codes to the left.

    Attributes
    ----------
    reach : int
        The reach of the codes that are compared.
    lefts, middles, rights : arrays (groups, r), (n,), (n, r)
        The rows of k to the left of each group, of each position, and to its right, by their first
        elements, the nearest first. Empty rows make two of them, and four more at a time.
    groups : array
        Group g has the positions groups[g] … groups[g+1]−1.
    firsts : array
        Label σ of L has the terms firsts[L·b + σ] … firsts[L·b + σ + 1]−1 of batch b of positions,
        a multiple of _TOGETHER, the last of them perhaps 0.
    rows, amounts : arrays
        The rows of κ of the terms within their batch, by their first elements, and γ / mass.
    """

    reach: int
    lefts: Array
    middles: Array
    rights: Array
    groups: Array
    firsts: Array
    rows: Array
    amounts: Array


class WindowSupport:
    """A support, prepared for scores by windows.

    Parameters
    ----------
    problem : Problem
        A problem of sequences whose masses are all the same and whose codes are shared.
    alpha : array (N, L)
        The coefficients of the sources.
    """

    def __init__(self, problem: Problem, alpha: Array) -> None:
        side, mass = problem.sources, problem.mass
        self._origin = alpha, mass, side.codes, side.twins
        self._count = int(side.codes.max()) + 1
        nodes = np.flatnonzero(alpha.any(axis=1))
        codes, twins = windows_of(side.offsets, side.codes, side.twins, nodes, self._count)
        self_values = np.zeros(int(side.twins.max(initial=-1)) + 1)
        self_values[side.twins[side.twins >= 0]] = mass * problem.self_values[side.twins >= 0]
        gamma = problem.gamma(alpha[nodes], nodes) / mass
        self.positions = Positions(codes, twins, self_values, gamma, *_index(twins, len(self_values)))
        reaches = REACHES if len(nodes) else ()  # all coefficients are 0 where corrections took them back
        self.stages = [_merged(self.positions, reach, self._count) for reach in reaches]

    def suits(self, problem: Problem, alpha: Array) -> bool:
        """Return whether this is also the support of another problem."""
        known, mass, codes, twins = self._origin
        same = alpha is known and problem.mass == mass
        sources = problem.sources
        return same and np.array_equal(sources.codes, codes) and np.array_equal(sources.twins, twins)

    def scores(self, problem: Problem, pruning_margins: Array, n_jobs: int | None) -> Array:
        """Return S (N, L) of all targets of a problem with the same sources.

        `pruning_margins` (stages − 1, L) are those of the labels for every stage but the last, in
        units of the largest |score| of a node.
        """
        side, outside = problem.targets, problem.codes.counts[1]
        at, scores = np.arange(side.offsets[-1]), np.zeros(side.prior.shape)
        targets = Windows(*windows_of(side.offsets, side.codes, side.twins, at, outside))
        table = np.zeros((self._count + 1, outside + 1))
        assert problem.codes.all_values is not None
        factor = problem.mixing**2 * problem.mass
        np.multiply(problem.codes.all_values[: self._count], factor, out=table[:-1, :-1])
        for stage, support in enumerate(self.stages):
            is_last = support is self.stages[-1]
            if not len(at) or (not is_last and (pruning_margins[stage] >= NEVER).all()):
                continue
            scores[at] = self._scored(targets, at, support, table, n_jobs) * side.prior[at]
            if not is_last:
                at = doubtful(scores, at, pruning_margins[stage], side.offsets)
        return scores

    def _scored(
        self, targets: Windows, at: Array, support: Merged, table: Array, n_jobs: int | None
    ) -> Array:
        """Return Q (n, L) of the targets `at`."""
        seen = slice(_REACH - support.reach, _REACH + support.reach + 1)
        codes = np.ascontiguousarray(targets.codes[at, seen])
        order, begins = _distinct(codes, table.shape[1])
        codes, small = codes[order[begins[:-1]]], table.astype(_NUMBER)
        labels = self.positions.gamma.shape[1]

        def of_windows(block: tuple[int, int]) -> Array:
            return add_windows(codes[slice(*block)], small, support, labels)

        def of_twins(block: tuple[int, int]) -> None:
            some = slice(*block)
            add_twins(targets, at[some], table, self.positions, support.reach, scores[some])

        scores = np.empty((len(at), labels))
        by_window = np.concatenate(run(of_windows, _parts(len(codes)), n_jobs))
        scores[order] = np.repeat(by_window, np.diff(begins), axis=0)
        run(of_twins, _parts(len(at)), n_jobs)
        return scores


def has_windows(problem: Problem) -> bool:
    """Return whether there are scores by windows for a problem."""
    is_plain = not (problem.shape or problem.gap or problem.is_chain_prior)
    if not is_plain or problem.mass <= 0 or not problem.codes.is_shared or problem.codes.all_values is None:
        return False
    largest = max(problem.codes.all_values.max(), problem.codes.self_values.max())
    return bool(problem.mixing**2 * problem.mass * largest <= _LARGEST)


def doubtful(scores: Array, at: Array, pruning_margins: Array, offsets: Array) -> Array:
    """Return those of the nodes `at` whose label does not lead by its margin, or next to them."""
    best, lead = leads(scores[at])
    narrow = np.zeros(len(scores) + 2, dtype=bool)
    narrow[at[lead < pruning_margins[best]] + 1] = True
    first, last = np.zeros(len(scores), dtype=bool), np.zeros(len(scores), dtype=bool)
    first[offsets[:-1]] = last[offsets[1:] - 1] = True
    near = narrow[1:-1] | (narrow[:-2] & ~first) | (narrow[2:] & ~last)
    return at[near[at]]


def _parts(count: int) -> list[tuple[int, int]]:
    """Return ranges of so many windows."""
    return blocks(np.arange(count + 1), _BLOCK)


def _merged(positions: Positions, reach: int, count: int) -> Merged:
    """Merge positions with equal codes up to a reach, of `count` codes and one outside."""
    codes = np.ascontiguousarray(positions.codes[:, _REACH - reach : _REACH + reach + 1])
    order, begins = _distinct(codes, count + 1)
    codes, gamma = codes[order[begins[:-1]]], np.add.reduceat(positions.gamma[order], begins[:-1])
    new = np.append(True, (codes[1:, :reach] != codes[:-1, :reach]).any(axis=1))
    rows = _TILE * ((count + 1) * np.arange(2 * reach + 1) + codes)
    empty = np.full((len(codes), (2 - reach) % 4), _TILE * count)
    rights = np.hstack([rows[:, reach + 1 :], empty])
    lefts = np.hstack([rows[:, :reach][:, ::-1], empty])[new]
    groups = np.append(np.flatnonzero(new), len(codes))
    return Merged(reach, lefts, rows[:, reach].copy(), rights, groups, *_terms(gamma))


def _terms(gamma: Array) -> tuple[Array, Array, Array]:
    """Return the bounds of the terms of each batch and label, their rows and amounts."""
    count, labels = gamma.shape
    numbers, of = np.nonzero(gamma)
    keys = numbers // _BATCH * labels + of
    order = np.argsort(keys, kind="stable")
    counts = np.bincount(keys, minlength=-(-count // _BATCH) * labels)
    before, firsts = (np.append(0, np.cumsum(n)) for n in (counts, counts + -counts % _TOGETHER))
    places = np.arange(len(order)) - np.repeat(before[:-1] - firsts[:-1], counts)
    rows, amounts = np.zeros(firsts[-1], dtype=np.int64), np.zeros(firsts[-1], dtype=_NUMBER)
    rows[places] = numbers[order] % _BATCH * _TILE
    amounts[places] = gamma[numbers, of][order]
    return firsts, rows, amounts


def _distinct(codes: Array, count: int) -> tuple[Array, Array]:
    """Return an order of windows by their `count` codes, and where other ones begin in it."""
    order = _sorted(codes, count)
    differ = (codes[order[1:]] != codes[order[:-1]]).any(axis=1)
    return order, np.concatenate([[0], np.flatnonzero(differ) + 1, [len(codes)]])


@compiled
def _sorted(codes: Array, count: int) -> Array:
    """Return the order of windows by their codes."""
    order, other = np.arange(len(codes)), np.empty(len(codes), dtype=np.int64)
    for j in range(codes.shape[1] - 1, -1, -1):
        starts = np.zeros(count + 1, dtype=np.int64)
        for i in range(len(codes)):
            starts[codes[i, j] + 1] += 1
        starts = np.cumsum(starts)
        for window in order:
            other[starts[codes[window, j]]] = window
            starts[codes[window, j]] += 1
        order, other = other, order
    return order


@compiled
def windows_of(offsets: Array, codes: Array, twins: Array, nodes: Array, outside: int) -> tuple[Array, Array]:
    """Return the codes and twin numbers in the windows of nodes, in increasing order."""
    width, structure = 2 * _REACH + 1, 0
    near = np.full((len(nodes), width), outside, codes.dtype)
    equal = np.full((len(nodes), width), -1, twins.dtype)
    for n in range(len(nodes)):
        while offsets[structure + 1] <= nodes[n]:
            structure += 1
        begin = nodes[n] - _REACH
        for at in range(max(begin, offsets[structure]), min(begin + width, offsets[structure + 1])):
            near[n, at - begin], equal[n, at - begin] = codes[at], twins[at]
    return near, equal


@compiled
def _index(twins: Array, count: int) -> tuple[Array, Array]:
    """Index the windows by twin number and place; return first entries of each, and entries."""
    width = twins.shape[1]
    firsts = np.zeros(count * width + 1, dtype=np.int64)
    for p in range(len(twins)):
        for j in range(width):
            if twins[p, j] >= 0:
                firsts[twins[p, j] * width + j + 1] += 1
    firsts = np.cumsum(firsts)
    entries, free = np.empty(firsts[-1], dtype=np.int64), firsts.copy()
    for p in range(len(twins)):
        for j in range(width):
            if twins[p, j] >= 0:
                at = twins[p, j] * width + j
                entries[free[at]] = p
                free[at] += 1
    return firsts, entries


@compiled
def leads(scores: Array) -> tuple[Array, Array]:
    """Return the best label of each node, and its lead in units of the largest |score| there."""
    best, lead = np.zeros(len(scores), dtype=np.int64), np.zeros(len(scores))
    for t in range(len(scores)):
        second, largest = -np.inf, abs(scores[t, 0])
        for label in range(1, scores.shape[1]):
            value = scores[t, label]
            largest = max(largest, abs(value))
            if value > scores[t, best[t]]:
                second, best[t] = scores[t, best[t]], label
            else:
                second = max(second, value)
        if largest > 0:
            lead[t] = min(2.0, (scores[t, best[t]] - second) / largest)
    return best, lead


@compiled
def add_windows(codes: Array, table: Array, support: Merged, labels: int) -> Array:
    """Return what positions add by their codes to the scores (n, L) of windows.

    The last row and the last column of the table are 0.
    """
    _, lefts, middles, rights, groups, firsts, places, amounts = support
    width, count, one = codes.shape[1], len(table), table.dtype.type(1)
    scores, sums = np.empty((len(codes), labels)), np.empty(labels * _TILE, table.dtype)
    rows, kappas = np.zeros(width * count * _TILE, table.dtype), np.zeros(_BATCH * _TILE, table.dtype)
    up, far = np.empty(_TILE, table.dtype), np.ones(_TILE, table.dtype)
    for first in range(0, len(codes), _TILE):
        size = min(_TILE, len(codes) - first)
        for j in range(width):
            for code in range(count):
                at = (j * count + code) * _TILE
                for i in range(size):
                    rows[at + i] = table[code, codes[first + i, j]]
        sums[:] = 0
        g, key = 0, 0
        for begin in range(0, len(middles), _BATCH):
            for p in range(begin, min(begin + _BATCH, len(middles))):
                if p == groups[g]:
                    _beyond(rows, lefts, g, one, far)
                    _up_row(rows, lefts, g, one, far, up)
                    g += 1
                _beyond(rows, rights, p, one, far)
                _kappa_row(rows, middles[p], rights, p, one, far, up, kappas, (p - begin) * _TILE)
            for label in range(labels):
                for n in range(firsts[key], firsts[key + 1], _TOGETHER):
                    _add(amounts, places, n, kappas, sums, label * _TILE)
                key += 1
        for i in range(size):
            for label in range(labels):
                scores[first + i, label] = sums[label * _TILE + i]
    return scores


@compiled(fastmath={"contract"})
def _beyond(rows: Array, places: Array, n: int, one: float, out: Array) -> None:
    """Write u or d of the rows from the third on, four of them at a time."""
    for j in range(places.shape[1] - 4, 1, -4):
        a, b = np.uint64(places[n, j]), np.uint64(places[n, j + 1])
        c, d = np.uint64(places[n, j + 2]), np.uint64(places[n, j + 3])
        if j == places.shape[1] - 4:
            for t in range(np.uint64(_TILE)):
                later = one + rows[c + t] * (one + rows[d + t])
                out[t] = one + rows[a + t] * (one + rows[b + t] * later)
        else:
            for t in range(np.uint64(_TILE)):
                later = one + rows[c + t] * (one + rows[d + t] * out[t])
                out[t] = one + rows[a + t] * (one + rows[b + t] * later)


@compiled(fastmath={"contract"})
def _up_row(rows: Array, places: Array, n: int, one: float, far: Array, out: Array) -> None:
    """Write u of the rows to the left."""
    a, b = np.uint64(places[n, 0]), np.uint64(places[n, 1])
    for t in range(np.uint64(_TILE)):
        out[t] = one + rows[a + t] * (one + rows[b + t] * far[t])


@compiled(fastmath={"contract"})
def _kappa_row(
    rows: Array, middle: int, places: Array, p: int, one: float, far: Array, up: Array, out: Array, at: int
) -> None:
    """Write k u d from element `at` on."""
    z, first = np.uint64(middle), np.uint64(at)
    a, b = np.uint64(places[p, 0]), np.uint64(places[p, 1])
    for t in range(np.uint64(_TILE)):
        out[first + t] = up[t] * rows[z + t] * (one + rows[a + t] * (one + rows[b + t] * far[t]))


@compiled(fastmath={"contract"})
def _add(amounts: Array, places: Array, n: int, kappas: Array, sums: Array, first: int) -> None:
    """Add _TOGETHER terms from n on to a row of sums."""
    v, w, x, y = amounts[n], amounts[n + 1], amounts[n + 2], amounts[n + 3]
    a, b = np.uint64(places[n]), np.uint64(places[n + 1])
    c, d, s = np.uint64(places[n + 2]), np.uint64(places[n + 3]), np.uint64(first)
    for t in range(np.uint64(_TILE)):
        more = v * kappas[a + t] + w * kappas[b + t]
        sums[s + t] += more + x * kappas[c + t] + y * kappas[d + t]


@compiled
def add_twins(
    targets: Windows, at: Array, table: Array, support: Positions, reach: int, scores: Array
) -> None:
    """Add to scores (n, L) of the targets `at` what pairs with equal observations differ by.

    That is from what codes within the reach added. Equal observations farther away change little,
    unless there are some within it.
    """
    codes, twins, self_values, gamma = targets.codes, targets.twins, support.self_values, support.gamma
    our_codes, our_twins, firsts, entries = support.codes, support.twins, support.firsts, support.entries
    width, middle, one = twins.shape[1], twins.shape[1] // 2, np.uint64(1)
    for n in range(len(at)):
        t = np.uint64(at[n])  # unsigned, which avoids tests of the sign
        for j in range(middle - reach, middle + reach + 1):
            twin = twins[t, np.uint64(j)]
            if not 0 <= twin < len(self_values):
                continue
            first = np.uint64(twin * width + j)
            for e in range(firsts[first], firsts[first + one]):
                p, is_new = np.uint64(entries[np.uint64(e)]), True
                for i in range(middle - reach, j):  # a pair is found at its first equal observations
                    before = twins[t, np.uint64(i)]
                    is_new &= before < 0 or before != our_twins[p, np.uint64(i)]
                if is_new:
                    change = _change(codes, twins, t, our_codes, our_twins, p, table, self_values, reach)
                    for label in range(scores.shape[1]):
                        scores[n, label] += gamma[p, label] * change


@compiled(fastmath={"contract"})
def _change(
    codes: Array,
    twins: Array,
    t: np.uint64,
    our_codes: Array,
    our_twins: Array,
    p: np.uint64,
    table: Array,
    self_values: Array,
    reach: int,
) -> float:
    """Return k u d of a pair by its observations, less that by codes within the reach."""
    middle = codes.shape[1] // 2
    up, down, near_up, near_down = 1.0, 1.0, 1.0, 1.0
    for distance in range(middle, 0, -1):
        i, j = np.uint64(middle - distance), np.uint64(middle + distance)
        above, twin = table[np.uint64(our_codes[p, i]), np.uint64(codes[t, i])], twins[t, i]
        below, other = table[np.uint64(our_codes[p, j]), np.uint64(codes[t, j])], twins[t, j]
        if distance <= reach:
            near_up, near_down = 1.0 + above * near_up, 1.0 + below * near_down
        if twin >= 0 and twin == our_twins[p, i]:
            above = self_values[np.uint64(twin)]
        if other >= 0 and other == our_twins[p, j]:
            below = self_values[np.uint64(other)]
        up, down = 1.0 + above * up, 1.0 + below * down
    i = np.uint64(middle)
    k, twin = table[np.uint64(our_codes[p, i]), np.uint64(codes[t, i])], twins[t, i]
    is_twin = twin >= 0 and twin == our_twins[p, i]
    return (self_values[np.uint64(twin)] if is_twin else k) * up * down - k * near_up * near_down
