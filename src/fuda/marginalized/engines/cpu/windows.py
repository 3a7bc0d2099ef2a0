"""Scores of sequences by windows: matches reach a few nodes to either side.

With k = c² k_x · mass, and nodes farther away than the reach r left out,

    κ_r(τ,t) = weight(τ,t) · u_r(τ,t) · d_r(τ,t),
    u_r(τ,t) = 1 + k(τ−1,t−1) (1 + k(τ−2,t−2) (1 + … (1 + k(τ−r,t−r)))),

and d_r mirrored. Where k ≤ q < 1, what is left out of u is at most q^(r+1) / (1 − q). What a
support position adds to a score then depends on the window of 2r + 1 nodes around it: on their
codes, but for pairs of equal observations. Positions whose windows have the same codes are merged,
and their coefficients added; those with the same codes to the left share u_r. Rows of k are
gathered once per tile of targets. Pairs of positions and targets with equal observations in their
windows (*twins*) are found by an index, and what they differ by from pairs with the same codes is
added one by one.

Most nodes are clear cases. So all targets are scored with a reach of one node for codes, where few
windows differ; and those with a narrow margin, and the nodes near them, again with the
whole reach.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.compiled import compiled
from fuda.marginalized.numbers import Array
from fuda.marginalized.problem import Problem, Side
from fuda.parallel import blocks, run

_REACH = 6  # r, for which `_up` and `_kappa_row` are written
_TILE = 128  # targets for which rows of k are computed at a time
_LARGEST = 2.0  # k, so that κ is far from the largest of these numbers
_NUMBER = np.float32  # of rows of k
_BLOCK = 4096  # nodes per task of a thread
_NEAR = 1  # the reach for codes that clear cases are decided by, see `_near_up`
_SEEN = 4  # how far equal observations are looked for
_SPREAD = 2  # how far from a narrow margin nodes are scored with the whole reach


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
    own : array
        k of observations with themselves, by twin number.
    gamma : array (n, L)
        γ / mass.
    firsts, entries : arrays
        The positions with twin number w at place j of their windows are entries[a:b], with a and b
        the numbers (2r + 1) w + j and the next one of `firsts`.
    """

    codes: Array
    twins: Array
    own: Array
    gamma: Array
    firsts: Array
    entries: Array


class Merged(NamedTuple):
    """Support positions, those with equal codes merged, in groups with equal codes to the left.

    Attributes
    ----------
    near : int
        The reach of the codes that are compared; those farther away count as outside.
    lefts : array (groups, r)
        The rows of k to the left of each group, by their first elements, the farthest first.
    groups : array
        Group g has the positions groups[g] … groups[g+1]−1.
    rights : array (n, r + 1)
        The row of each position, and those to its right.
    terms : array
        Position p has the terms terms[p] … terms[p+1]−1.
    sums, amounts : arrays
        The rows of sums of the labels with γ ≠ 0, by their first elements, and γ / mass.
    """

    near: int
    lefts: Array
    groups: Array
    rights: Array
    terms: Array
    sums: Array
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
        nodes = np.flatnonzero(alpha.any(axis=1))
        codes, twins = _windows(side, nodes, problem.codes.counts[0])
        own = np.zeros(int(side.twins.max(initial=-1)) + 1)
        own[side.twins[side.twins >= 0]] = mass * problem.own[side.twins >= 0]
        gamma = problem.gamma(alpha[nodes], nodes) / mass
        self.positions = Positions(codes, twins, own, gamma, *_index(twins, len(own)))
        self.table = np.zeros([count + 1 for count in problem.codes.counts])
        assert problem.codes.whole is not None
        np.multiply(problem.codes.whole, problem.mixing**2 * mass, out=self.table[:-1, :-1])
        self._small = self.table.astype(_NUMBER)
        self._near, self._whole = (_merged(self.positions, near, self._small) for near in (_NEAR, _REACH))

    def scores(self, problem: Problem, margin: float, n_jobs: int | None) -> Array:
        """Return S (N, L) of all targets of a problem with the same sources.

        Where the best label leads by more than `margin`, in units of the largest |score| of the
        node, at a node and all near it, the score is that of short windows.
        """
        side, outside = problem.targets, problem.codes.counts[1]

        def of_block(block: tuple[int, int]) -> Array:
            nodes = np.arange(side.offsets[block[0]], side.offsets[block[1]])
            targets = Windows(*_windows(side, nodes, outside))
            scores, every = np.zeros((len(nodes), problem.label_count)), np.arange(len(nodes))
            self._add(targets, every, self._near, scores)
            narrow = _margins(scores * side.prior[nodes]) < margin
            doubtful = np.zeros(len(nodes), dtype=bool)
            for j in range(-_SPREAD, _SPREAD + 1):
                at = np.flatnonzero(targets.codes[:, _REACH + j] != outside)
                doubtful[at] |= narrow[at + j]
            again = np.flatnonzero(doubtful)
            scores[again] = 0.0
            self._add(targets, again, self._whole, scores)
            return scores * side.prior[nodes]

        return np.concatenate(run(of_block, blocks(side.offsets, _BLOCK), n_jobs))

    def _add(self, targets: Windows, at: Array, support: Merged, scores: Array) -> None:
        """Add all positions to the scores of the targets `at`."""
        add_windows(targets, at, self._small, support, scores)
        add_twins(targets, at, self.table, self.positions, support.near, scores)


def has_windows(problem: Problem) -> bool:
    """Return whether there are scores by windows for a problem."""
    is_plain = not (problem.shape or problem.gap or problem.is_chain_prior)
    if not is_plain or problem.mass <= 0 or not problem.codes.is_shared or problem.codes.whole is None:
        return False
    largest = max(problem.codes.whole.max(), problem.codes.own.max())
    return bool(problem.mixing**2 * problem.mass * largest <= _LARGEST)


def _margins(scores: Array) -> Array:
    """Return by how much the best label leads, in units of the largest |score| of each node."""
    best = np.partition(scores, -2, axis=1)[:, -2:] if scores.shape[1] > 1 else scores
    largest = np.abs(scores).max(axis=1)
    return (best[:, -1] - best[:, 0]) / np.where(largest > 0, largest, 1.0)


def _windows(side: Side, nodes: Array, outside: int) -> tuple[Array, Array]:
    """Return the codes and twin numbers in the windows of nodes."""
    owners = np.searchsorted(side.offsets, nodes, side="right") - 1
    at = nodes[:, None] + np.arange(-_REACH, _REACH + 1)
    inside = (at >= side.offsets[owners][:, None]) & (at < side.offsets[owners + 1][:, None])
    at = np.where(inside, at, 0)
    twins = np.where(inside, side.twins[at], -1)
    return np.where(inside, side.codes[at], outside).astype(np.int32), twins.astype(np.int32)


def _merged(positions: Positions, near: int, table: Array) -> Merged:
    """Merge positions with equal codes up to a distance."""
    count, width = len(table), positions.codes.shape[1]
    reach, offsets = width // 2, np.arange(width) - width // 2
    codes = np.where(np.abs(offsets) <= near, positions.codes, np.int32(count - 1))
    order = _sorted(codes, count)
    codes = codes[order]
    differ = codes[1:] != codes[:-1]
    at = np.flatnonzero(np.append(True, differ.any(axis=1)))
    gamma = np.add.reduceat(positions.gamma[order], at)
    begins = np.append(True, differ[:, :reach].any(axis=1))[at]
    rows = _TILE * (count * np.arange(width) + codes[at])
    numbers, labels = np.nonzero(gamma)
    terms = np.searchsorted(numbers, np.arange(len(at) + 1))
    lefts, rights = np.ascontiguousarray(rows[begins, :reach]), np.ascontiguousarray(rows[:, reach:])
    groups, amounts = np.append(np.flatnonzero(begins), len(at)), gamma[numbers, labels].astype(table.dtype)
    return Merged(near, lefts, groups, rights, terms, _TILE * labels, amounts)


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
def add_windows(targets: Windows, at: Array, table: Array, support: Merged, scores: Array) -> None:
    """Add to scores (n, L) of the targets `at` what positions add by their codes.

    The last row and the last column of the table are 0.
    """
    width, count, labels = targets.codes.shape[1], len(table), scores.shape[1]
    reach = width // 2
    rows, sums = np.zeros(width * count * _TILE, table.dtype), np.zeros(labels * _TILE, table.dtype)
    up, kappa, one = np.empty(_TILE, table.dtype), np.empty(_TILE, table.dtype), table.dtype.type(1)
    for first in range(0, len(at), _TILE):
        some = at[first : first + _TILE]
        for j in range(reach - support.near, reach + support.near + 1):
            for code in range(count):
                row = rows[(j * count + code) * _TILE :]
                for i in range(len(some)):
                    row[i] = table[code, targets.codes[some[i], j]]
        sums[:] = 0
        for g in range(len(support.lefts)):
            if support.near == _NEAR:
                _near_up(rows, support.lefts[g, -1], one, up)
            else:
                _up(rows, support.lefts[g], one, up)
            for p in range(support.groups[g], support.groups[g + 1]):
                if support.near == _NEAR:
                    _near_kappa_row(rows, support.rights[p, 0], support.rights[p, 1], one, up, kappa)
                else:
                    _kappa_row(rows, support.rights[p], one, up, kappa)
                n, end = support.terms[p], support.terms[p + 1]
                while n + 1 < end:
                    places = support.sums[n], support.sums[n + 1]
                    _add_two(support.amounts[n], support.amounts[n + 1], kappa, *places, sums)
                    n += 2
                if n < end:
                    _add_one(support.amounts[n], kappa, support.sums[n], sums)
        for i in range(len(some)):
            for label in range(labels):
                scores[some[i], label] += sums[label * _TILE + i]


@compiled(fastmath={"contract"})
def _up(rows: Array, left: Array, one: float, out: Array) -> None:
    """Write u of the rows to the left, the farthest first."""
    a, b, c = np.uint64(left[0]), np.uint64(left[1]), np.uint64(left[2])
    d, e, f = np.uint64(left[3]), np.uint64(left[4]), np.uint64(left[5])
    for t in range(np.uint64(_TILE)):
        far = one + rows[c + t] * (one + rows[b + t] * (one + rows[a + t]))
        out[t] = one + rows[f + t] * (one + rows[e + t] * (one + rows[d + t] * far))


@compiled(fastmath={"contract"})
def _kappa_row(rows: Array, right: Array, one: float, up: Array, out: Array) -> None:
    """Write k u d, from the row of a position and those to the right."""
    z, a, b, c = np.uint64(right[0]), np.uint64(right[1]), np.uint64(right[2]), np.uint64(right[3])
    d, e, f = np.uint64(right[4]), np.uint64(right[5]), np.uint64(right[6])
    for t in range(np.uint64(_TILE)):
        far = one + rows[d + t] * (one + rows[e + t] * (one + rows[f + t]))
        out[t] = up[t] * rows[z + t] * (one + rows[a + t] * (one + rows[b + t] * (one + rows[c + t] * far)))


@compiled
def _near_up(rows: Array, left: int, one: float, out: Array) -> None:
    """Write u of one row to the left."""
    a = np.uint64(left)
    for t in range(np.uint64(_TILE)):
        out[t] = one + rows[a + t]


@compiled
def _near_kappa_row(rows: Array, middle: int, right: int, one: float, up: Array, out: Array) -> None:
    """Write k u d, from the row of a position and one to the right."""
    z, a = np.uint64(middle), np.uint64(right)
    for t in range(np.uint64(_TILE)):
        out[t] = up[t] * rows[z + t] * (one + rows[a + t])


@compiled(fastmath={"contract"})
def _add_two(x: float, y: float, kappa: Array, at: int, other: int, sums: Array) -> None:
    """Add κ times two amounts to two rows of sums."""
    a, b = np.uint64(at), np.uint64(other)
    for t in range(np.uint64(_TILE)):
        sums[a + t] += x * kappa[t]
        sums[b + t] += y * kappa[t]


@compiled(fastmath={"contract"})
def _add_one(x: float, kappa: Array, at: int, sums: Array) -> None:
    """Add κ times an amount to a row of sums."""
    a = np.uint64(at)
    for t in range(np.uint64(_TILE)):
        sums[a + t] += x * kappa[t]


@compiled
def add_twins(
    targets: Windows, at: Array, table: Array, support: Positions, near: int, scores: Array
) -> None:
    """Add to scores what pairs with equal observations differ by from what their codes added.

    Equal observations farther than _SEEN nodes from both change little, unless there are
    nearer ones.
    """
    width, count = targets.twins.shape[1], len(support.own)
    reach, k, by_code = width // 2, np.empty(width), np.zeros(width)
    begin, end = reach - min(near + 1, _SEEN), reach + min(near + 1, _SEEN) + 1
    for t in at:
        twins, codes = targets.twins[t], targets.codes[t]
        for j in range(begin, end):
            if not 0 <= twins[j] < count:
                continue
            first = twins[j] * width + j
            for p in support.entries[support.firsts[first] : support.firsts[first + 1]]:
                is_new = True  # a pair is found at the first place where it has equal observations
                for i in range(begin, j):
                    is_new &= twins[i] < 0 or twins[i] != support.twins[p, i]
                if not is_new:
                    continue
                for i in range(width):
                    k[i] = table[support.codes[p, i], codes[i]]
                    if abs(i - reach) <= near:
                        by_code[i] = k[i]
                    if twins[i] >= 0 and twins[i] == support.twins[p, i]:
                        k[i] = support.own[twins[i]]
                change = _kappa(k) - _kappa(by_code)
                for label in range(scores.shape[1]):
                    scores[t, label] += support.gamma[p, label] * change


@compiled
def _kappa(k: Array) -> float:
    """Return k u d of the node in the middle of a window."""
    reach, up, down = len(k) // 2, 1.0, 1.0
    for i in range(reach):
        up = 1.0 + k[i] * up
        down = 1.0 + k[len(k) - 1 - i] * down
    return k[reach] * up * down
