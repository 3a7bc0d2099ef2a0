"""Scores of sequences by windows: matches reach a few nodes to either side.

With k = c² k_x · mass, and nodes farther away than the reach r left out,

    κ_r(τ,t) = weight(τ,t) · u_r(τ,t) · d_r(τ,t),
    u_r(τ,t) = 1 + k(τ−1,t−1) (1 + k(τ−2,t−2) (1 + … (1 + k(τ−r,t−r)))),

and d_r mirrored. Where k ≤ q < 1, what is left out of u is at most q^(r+1) / (1 − q). What a
support position adds to a score then depends on the window of 2r + 1 nodes around it: on their
classes, but for pairs of equal observations. Positions whose windows have the same classes are
merged, and their coefficients added; those with the same classes to the left share u_r. Targets
whose windows have the same classes are scored once. Pairs of positions and targets with equal
observations in their windows are found by an index, and what they differ by from pairs with the
same classes is added one by one.

Most nodes are clear cases. So all targets are scored with a reach of one node for classes, where
few windows differ. With every longer reach only those are scored whose best label does not lead by
the margin of this label, and the nodes next to them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.marginalized.numbers import Array
from fuda.marginalized.problem import Problem
from fuda.marginalized.pruning_stages import NEVER, REACHES, doubtful
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import blocks, run

# The longest reach, which pairs of nodes with equal observations have in all stages.
_REACH = REACHES[-1]
_TILE = 256  # the number of targets for which rows of k are computed together
_BATCH = 16  # the number of positions whose κ are computed before they are added
_TOGETHER = 4  # the number of positions whose κ are added together
_LARGEST = 2.0  # the largest k, with which κ is far from the largest float32
_NUMBER = np.float32  # the type of rows of k
_BLOCK = 1024  # windows per task of a thread


class Windows(NamedTuple):
    """Windows of nodes: (n, 2r + 1) classes and ids.

    Outside of a structure these are a further class, and −1.
    """

    classes: Array
    ids: Array


class WindowPositions(NamedTuple):
    """Support positions.

    Attributes
    ----------
    classes, ids : arrays (n, 2r + 1)
        Their windows.
    self_values : array
        k of observations with themselves, by id.
    gamma : array (n, L)
        γ / mass.
    firsts, entries : arrays
        The positions with id w at place j of their windows are entries[a:b], with a and b
        the numbers (2r + 1) w + j and the next one of `firsts`.
    """

    classes: Array
    ids: Array
    self_values: Array
    gamma: Array
    firsts: Array
    entries: Array


class Merged(NamedTuple):
    """Support positions, merged by their classes, in groups with equal classes to the left.

    Attributes
    ----------
    reach : int
        The reach of the classes that are compared.
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
        A problem of sequences whose masses are all the same and whose classes are shared.
    alpha : array (N, L)
        The coefficients of the sources.
    """

    def __init__(self, problem: Problem, alpha: Array) -> None:
        side, mass = problem.sources, problem.mass
        self._origin = alpha, mass, side.classes, side.ids
        self._count = int(side.classes.max()) + 1
        nodes = np.flatnonzero(alpha.any(axis=1))
        classes, ids = windows_of(side.offsets, side.classes, side.ids, nodes, self._count)
        self_values = np.zeros(int(side.ids.max(initial=-1)) + 1)
        self_values[side.ids[side.ids >= 0]] = mass * problem.self_values[side.ids >= 0]
        gamma = problem.gamma(alpha[nodes], nodes) / mass
        self.positions = WindowPositions(classes, ids, self_values, gamma, *_index(ids, len(self_values)))
        reaches = REACHES if len(nodes) else ()  # all coefficients are 0 where corrections took them back
        self.stages = [_merged(self.positions, reach, self._count) for reach in reaches]

    def suits(self, problem: Problem, alpha: Array) -> bool:
        """Return whether this is also the support of another problem."""
        known, mass, classes, ids = self._origin
        same = alpha is known and problem.mass == mass
        sources = problem.sources
        return same and np.array_equal(sources.classes, classes) and np.array_equal(sources.ids, ids)

    def scores(self, problem: Problem, pruning_margins: Array, n_jobs: int | None) -> Array:
        """Return S (N, L) of all targets of a problem with the same sources.

        `pruning_margins` (stages − 1, L) are those of the labels for every stage but the last, in
        units of the largest |score| of a node.
        """
        side, outside = problem.targets, problem.kernel_classes.counts[1]
        at, scores = np.arange(side.offsets[-1]), np.zeros(side.prior.shape)
        targets = Windows(*windows_of(side.offsets, side.classes, side.ids, at, outside))
        table = np.zeros((self._count + 1, outside + 1))
        assert problem.kernel_classes.all_values is not None
        factor = problem.mixing**2 * problem.mass
        np.multiply(problem.kernel_classes.all_values[: self._count], factor, out=table[:-1, :-1])
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
        classes = np.ascontiguousarray(targets.classes[at, seen])
        order, begins = _distinct(classes, table.shape[1])
        classes, small = classes[order[begins[:-1]]], table.astype(_NUMBER)
        labels = self.positions.gamma.shape[1]

        def of_windows(block: tuple[int, int]) -> Array:
            return add_windows(classes[slice(*block)], small, support, labels)

        def of_equal(block: tuple[int, int]) -> None:
            some = slice(*block)
            add_equal(targets, at[some], table, self.positions, support.reach, scores[some])

        scores = np.empty((len(at), labels))
        by_window = np.concatenate(run(of_windows, _parts(len(classes)), n_jobs))
        scores[order] = np.repeat(by_window, np.diff(begins), axis=0)
        run(of_equal, _parts(len(at)), n_jobs)
        return scores


def has_windows(problem: Problem) -> bool:
    """Return whether there are scores by windows for a problem."""
    is_plain = not (problem.shape or problem.gap or problem.is_chain_prior)
    classes = problem.kernel_classes
    if not is_plain or problem.mass <= 0 or not classes.is_shared or classes.all_values is None:
        return False
    largest = max(classes.all_values.max(), classes.self_values.max())
    return bool(problem.mixing**2 * problem.mass * largest <= _LARGEST)


def _parts(count: int) -> list[tuple[int, int]]:
    """Return ranges of so many windows."""
    return blocks(np.arange(count + 1), _BLOCK)


def _merged(positions: WindowPositions, reach: int, count: int) -> Merged:
    """Merge positions with equal classes up to a reach, of `count` classes and one outside."""
    classes = np.ascontiguousarray(positions.classes[:, _REACH - reach : _REACH + reach + 1])
    order, begins = _distinct(classes, count + 1)
    classes, gamma = classes[order[begins[:-1]]], np.add.reduceat(positions.gamma[order], begins[:-1])
    new = np.append(True, (classes[1:, :reach] != classes[:-1, :reach]).any(axis=1))
    rows = _TILE * ((count + 1) * np.arange(2 * reach + 1) + classes)
    empty = np.full((len(classes), (2 - reach) % 4), _TILE * count)
    rights = np.hstack([rows[:, reach + 1 :], empty])
    lefts = np.hstack([rows[:, :reach][:, ::-1], empty])[new]
    groups = np.append(np.flatnonzero(new), len(classes))
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


def _distinct(classes: Array, count: int) -> tuple[Array, Array]:
    """Return an order of windows by their `count` classes, and where other ones begin in it."""
    order = _sorted(classes, count)
    differ = (classes[order[1:]] != classes[order[:-1]]).any(axis=1)
    return order, np.concatenate([[0], np.flatnonzero(differ) + 1, [len(classes)]])


@compiled
def _sorted(classes: Array, count: int) -> Array:
    """Return the order of windows by their classes."""
    order, other = np.arange(len(classes)), np.empty(len(classes), dtype=np.int64)
    for j in range(classes.shape[1] - 1, -1, -1):
        starts = np.zeros(count + 1, dtype=np.int64)
        for i in range(len(classes)):
            starts[classes[i, j] + 1] += 1
        starts = np.cumsum(starts)
        for window in order:
            other[starts[classes[window, j]]] = window
            starts[classes[window, j]] += 1
        order, other = other, order
    return order


@compiled
def windows_of(offsets: Array, classes: Array, ids: Array, nodes: Array, outside: int) -> tuple[Array, Array]:
    """Return the classes and ids in the windows of nodes, in increasing order."""
    width, structure = 2 * _REACH + 1, 0
    near = np.full((len(nodes), width), outside, classes.dtype)
    equal = np.full((len(nodes), width), -1, ids.dtype)
    for n in range(len(nodes)):
        while offsets[structure + 1] <= nodes[n]:
            structure += 1
        begin = nodes[n] - _REACH
        for at in range(max(begin, offsets[structure]), min(begin + width, offsets[structure + 1])):
            near[n, at - begin], equal[n, at - begin] = classes[at], ids[at]
    return near, equal


@compiled
def _index(ids: Array, count: int) -> tuple[Array, Array]:
    """Index the windows by id and place; return first entries of each, and entries."""
    width = ids.shape[1]
    firsts = np.zeros(count * width + 1, dtype=np.int64)
    for p in range(len(ids)):
        for j in range(width):
            if ids[p, j] >= 0:
                firsts[ids[p, j] * width + j + 1] += 1
    firsts = np.cumsum(firsts)
    entries, free = np.empty(firsts[-1], dtype=np.int64), firsts.copy()
    for p in range(len(ids)):
        for j in range(width):
            if ids[p, j] >= 0:
                at = ids[p, j] * width + j
                entries[free[at]] = p
                free[at] += 1
    return firsts, entries


@compiled
def add_windows(classes: Array, table: Array, support: Merged, labels: int) -> Array:
    """Return what positions add by their classes to the scores (n, L) of windows.

    The last row and the last column of the table are 0.
    """
    _, lefts, middles, rights, groups, firsts, places, amounts = support
    width, count, one = classes.shape[1], len(table), table.dtype.type(1)
    scores, sums = np.empty((len(classes), labels)), np.empty(labels * _TILE, table.dtype)
    rows, kappas = np.zeros(width * count * _TILE, table.dtype), np.zeros(_BATCH * _TILE, table.dtype)
    up, far = np.empty(_TILE, table.dtype), np.ones(_TILE, table.dtype)
    for first in range(0, len(classes), _TILE):
        size = min(_TILE, len(classes) - first)
        for j in range(width):
            for class_ in range(count):
                at = (j * count + class_) * _TILE
                for i in range(size):
                    rows[at + i] = table[class_, classes[first + i, j]]
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
def add_equal(
    targets: Windows, at: Array, table: Array, support: WindowPositions, reach: int, scores: Array
) -> None:
    """Add to scores (n, L) of the targets `at` what pairs with equal observations differ by.

    That is from what classes within the reach added. Equal observations farther away change
    little, unless there are some within it.
    """
    classes, ids, self_values, gamma = targets.classes, targets.ids, support.self_values, support.gamma
    our_classes, our_ids, firsts, entries = support.classes, support.ids, support.firsts, support.entries
    width, middle, one = ids.shape[1], ids.shape[1] // 2, np.uint64(1)
    for n in range(len(at)):
        t = np.uint64(at[n])  # unsigned, which avoids tests of the sign
        for j in range(middle - reach, middle + reach + 1):
            id_ = ids[t, np.uint64(j)]
            if not 0 <= id_ < len(self_values):
                continue
            first = np.uint64(id_ * width + j)
            for e in range(firsts[first], firsts[first + one]):
                p, is_new = np.uint64(entries[np.uint64(e)]), True
                for i in range(middle - reach, j):  # a pair is found at its first equal observations
                    before = ids[t, np.uint64(i)]
                    is_new &= before < 0 or before != our_ids[p, np.uint64(i)]
                if is_new:
                    change = _change(classes, ids, t, our_classes, our_ids, p, table, self_values, reach)
                    for label in range(scores.shape[1]):
                        scores[n, label] += gamma[p, label] * change


@compiled(fastmath={"contract"})
def _change(
    classes: Array,
    ids: Array,
    t: np.uint64,
    our_classes: Array,
    our_ids: Array,
    p: np.uint64,
    table: Array,
    self_values: Array,
    reach: int,
) -> float:
    """Return k u d of a pair by its observations, less that by classes within the reach."""
    middle = classes.shape[1] // 2
    up, down, near_up, near_down = 1.0, 1.0, 1.0, 1.0
    for distance in range(middle, 0, -1):
        i, j = np.uint64(middle - distance), np.uint64(middle + distance)
        above, id_ = table[np.uint64(our_classes[p, i]), np.uint64(classes[t, i])], ids[t, i]
        below, other = table[np.uint64(our_classes[p, j]), np.uint64(classes[t, j])], ids[t, j]
        if distance <= reach:
            near_up, near_down = 1.0 + above * near_up, 1.0 + below * near_down
        if id_ >= 0 and id_ == our_ids[p, i]:
            above = self_values[np.uint64(id_)]
        if other >= 0 and other == our_ids[p, j]:
            below = self_values[np.uint64(other)]
        up, down = 1.0 + above * up, 1.0 + below * down
    i = np.uint64(middle)
    k, id_ = table[np.uint64(our_classes[p, i]), np.uint64(classes[t, i])], ids[t, i]
    is_equal = id_ >= 0 and id_ == our_ids[p, i]
    return (self_values[np.uint64(id_)] if is_equal else k) * up * down - k * near_up * near_down
