"""The kernels of the CUDA engine: pushes of sequences.

As in `fuda.marginalized.engines.cpu.runs`, nodes are at *places*, with an empty place before each
structure and at the end, where k is 0, and a push goes up to its last marked node and down to its
first:

    K_U(τ,t) = k(τ,t) (1 + K_U(τ−1,t−1)),    K_D(τ,t) = k(τ,t) (1 + K_D(τ+1,t+1)).

A block of threads has a *tile* of whole target structures. Its threads walk along the diagonals
t − τ, each along three at a time, all at the same τ: k(τ,t) is found in shared memory, in the row
of the table for τ, at the class of t. A diagonal may begin in another tile, or before all places:
it comes by an empty place before it enters its own. The products k u d of marked nodes are kept
per diagonal, and added to the scores of each place after all, in the order of the CPU engine. No
product is fused with an addition, so that with a constant mass all numbers are those of the CPU
engine to the last bit.

Long structures go through shared memory in *stages* of some nodes, and many marks in *chunks*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import config, cuda

from fuda.marginalized.engines.cuda.layout import WARP

Array = Any  # on the device
SHARED = 5888  # doubles of shared memory; with ids less than the 48 KiB that every card has
ROWS = 96  # most nodes whose rows are in shared memory at a time
STORED_MARKS = 16  # marked nodes whose products are stored at a time
DIAGONALS = 3  # diagonals that a thread walks along at a time

if config.ENABLE_CUDASIM:

    def product(a: float, b: float) -> float:
        """Return a b, rounded."""
        return a * b
else:
    from numba.cuda import libdevice

    product = libdevice.dmul_rn  # not fused with an addition


class Nodes(NamedTuple):
    """The source nodes by place: table row, id as in words, self value, (L, ·) share."""

    rows: Array
    ids: Array
    self_values: Array
    share: Array


class Targets(NamedTuple):
    """The targets by place.

    Attributes
    ----------
    words : array
        The id and, in the last bits, the column of the table.
    prior, scores : arrays (L, places)
        P(σ|t) and Q.
    flat_prior : array
        `prior` in one row.
    tiles : array
        The bounds of tiles, empty places.
    belts, strips : int
        How many there are, see `layout.Strips`; 0 where there are tiles.
    """

    words: Array
    prior: Array
    flat_prior: Array
    scores: Array
    tiles: Array
    belts: int
    strips: int


class Values(NamedTuple):
    """The table of c² k_x, flat, with a last column of zeros, and how it is used.

    Attributes
    ----------
    table : array
        Rows of `width` values.
    width, staged, mask : int
        The length of a row, how many are staged at a time, and the bits of a column in a word.
    mass, pair_mass : float
        The mass of all pairs of nodes, as pushes and as corrections use it; 0 if it differs.
    """

    table: Array
    width: int
    staged: int
    mask: Any
    mass: float
    pair_mass: float


class Pushes(NamedTuple):
    """Pushes, their marks, and the entries of marks.

    Of each push the first place, size and first mark; of each mark the node and first entry; of
    each entry the label and γ.
    """

    begins: Array
    sizes: Array
    firsts: Array
    marked: Array
    heads: Array
    labels: Array
    gamma: Array


class Task(NamedTuple):
    """What a push needs.

    `states` (blocks, 2, diagonals) are K_U and K_D between stages and chunks; `stored`,
    (blocks, 1, STORED_MARKS, diagonals) or (blocks, warps, STORED_MARKS, STRIP), are products of
    marked nodes.
    """

    nodes: Nodes
    targets: Targets
    values: Values
    pushes: Pushes
    states: Array
    stored: Array


class Span(NamedTuple):
    """A push to a tile: its first place, size and marks, and the places of the tile."""

    begin: int
    size: int
    first_mark: int
    end_mark: int
    low: int
    high: int


def cells_of(constant: bool, staged: bool) -> Callable[..., Any]:
    """Return the function for weights and k of a node, in row `at` of the stage, and 3 places."""

    @cuda.jit(device=True)
    def weight_of(row: int, id_: int, node: int, place: int, task: Task, shared: Any) -> float:
        nodes, values = task.nodes, task.values
        word = task.targets.words[np.uint64(place)]  # unsigned, which avoids tests of the sign
        column = word & values.mask
        column = np.uint64(values.width) if (word ^ column) == id_ else np.uint64(column)
        if staged:
            return shared[0][np.uint64(row) + column]
        if column == np.uint64(values.width):
            weight = nodes.self_values[node]
        else:
            weight = values.table[np.uint64(nodes.rows[node] * values.width) + column]
        return product(values.mass, weight) if constant else weight

    @cuda.jit(device=True)
    def cells(at: int, node: int, lines: Any, task: Task, shared: Any) -> Any:
        nodes, values, prior, (a, b, c) = task.nodes, task.values, task.targets.prior, lines
        row = at * stride_of(constant, task)
        id_ = shared[1][np.uint64(at)] if staged else nodes.ids[node]
        u = weight_of(row, id_, node, a, task, shared)
        v = weight_of(row, id_, node, b, task, shared)
        w = weight_of(row, id_, node, c, task, shared)
        if constant:
            return (u, v, w), (u, v, w)
        x, y, z, count, size = 0.0, 0.0, 0.0, len(prior), prior.shape[1]
        flat = task.targets.flat_prior
        for label in range(count):
            if staged:
                share = shared[0][np.uint64(row + values.width + 1 + label)]
            else:
                share = nodes.share[label, node]
            x += share * flat[np.uint64(a)]
            y += share * flat[np.uint64(b)]
            z += share * flat[np.uint64(c)]
            a, b, c = a + size, b + size, c + size
        return (u, v, w), (product(u, x), product(v, y), product(w, z))

    return cells


@cuda.jit(device=True)
def stride_of(constant: bool, task: Task) -> int:
    """Return the length of a stage's row: values, the self value, and shares if masses differ."""
    return task.values.width + 1 if constant else task.values.width + 1 + len(task.nodes.share)


def stage_of(constant: bool) -> Callable[..., Any]:
    """Return the function that copies what some nodes of a push need into shared memory."""

    @cuda.jit(device=True)
    def stage(first: int, last: int, begin: int, task: Task, shared: Any) -> None:
        nodes, values = task.nodes, task.values
        buffer, ids, _ = shared
        stride, width, lane = stride_of(constant, task), values.width, cuda.threadIdx.x & ((1 << WARP) - 1)
        cuda.syncthreads()
        at = cuda.threadIdx.x >> WARP
        while at < last - first:
            node, here, column = begin + first + at, at * stride, lane
            row = np.int64(nodes.rows[node]) * width
            while column < width:
                value = values.table[row + column]
                buffer[here + column] = product(values.mass, value) if constant else value
                column += 1 << WARP
            if lane == 0:
                value, ids[at] = nodes.self_values[node], nodes.ids[node]
                buffer[here + width] = product(values.mass, value) if constant else value
            if not constant:
                label = lane
                while label < len(nodes.share):
                    buffer[here + width + 1 + label] = nodes.share[label, node]
                    label += 1 << WARP
            at += cuda.blockDim.x >> WARP
        cuda.syncthreads()

    return stage


def walk_of(constant: bool, staged: bool) -> Callable[..., Any]:
    """Return the function that walks `count` nodes along three diagonals, up (1) or down (−1)."""
    cells = cells_of(constant, staged)

    @cuda.jit(device=True)
    def walk(now: Any, i: int, count: int, way: int, span: Any, lines: Any, task: Task, shared: Any) -> Any:
        (u, v, w), (first, begin), (a, b, c) = now, span, lines
        for _ in range(count):
            _, k = cells(i - first, begin + i, (a + i, b + i, c + i), task, shared)
            u, v, w = product(k[0], 1.0 + u), product(k[1], 1.0 + v), product(k[2], 1.0 + w)
            i += way
        return u, v, w

    return walk


@cuda.jit(device=True)
def diagonals_of(span: Span) -> tuple[int, int]:
    """Return the number of diagonals of a tile, and the target that the first has at node 0."""
    return span.high - span.low + span.size - 1, span.low - span.size + 1


@cuda.jit(device=True)
def step_of(width: int) -> int:
    """Return how many threads share so many diagonals, or the first of them if there are more."""
    return min(np.int64(width * (1.0 / DIAGONALS)) + 1, cuda.blockDim.x)


@cuda.jit(device=True)
def lines_of(d: int, step: int, width: int) -> Any:
    """Return the diagonals that a thread walks along from d on; d again for missing ones."""
    e, f = d + step, d + 2 * step
    return d, e if e < width else d, f if f < width else d


def go_up_of(constant: bool, staged: bool) -> Callable[..., Any]:
    """Return the function that goes up a stage on all diagonals, and keeps products of marks."""
    walk, cells = walk_of(constant, staged), cells_of(constant, staged)

    @cuda.jit(device=True)
    def go_up(first: int, last: int, marks: Any, span: Span, task: Task, shared: Any) -> None:
        states, stored, marked = (
            task.states[cuda.blockIdx.x, 0],
            task.stored[cuda.blockIdx.x, 0],
            task.pushes.marked,
        )
        width, origin = diagonals_of(span)
        ends = first, span.begin
        base = 0
        while base < width:
            step = step_of(width - base)
            if cuda.threadIdx.x >= step or base + cuda.threadIdx.x >= width:
                break
            d, e, f = lines_of(base + cuda.threadIdx.x, step, width)
            lines = origin + d, origin + e, origin + f
            now = (states[d], states[e], states[f]) if first else (0.0, 0.0, 0.0)
            i = first
            for m in range(marks[0], marks[1]):
                stop = marked[m]
                if stop >= first and stop < last:
                    now = walk(now, i, stop - i, 1, ends, lines, task, shared)
                    here = lines[0] + stop, lines[1] + stop, lines[2] + stop
                    weights, k = cells(stop - first, span.begin + stop, here, task, shared)
                    u, v, w = 1.0 + now[0], 1.0 + now[1], 1.0 + now[2]
                    row, i = stored[m - marks[0]], stop + 1
                    row[d], row[e] = product(weights[0], u), product(weights[1], v)
                    row[f] = product(weights[2], w)
                    now = product(k[0], u), product(k[1], v), product(k[2], w)
            if marked[marks[1] - 1] >= last:
                states[d], states[e], states[f] = walk(now, i, last - i, 1, ends, lines, task, shared)
            base += DIAGONALS * step

    return go_up


def go_down_of(constant: bool, staged: bool) -> Callable[..., Any]:
    """Return the function that goes down a stage from below node `top`, and completes products."""
    walk = walk_of(constant, staged)

    @cuda.jit(device=True)
    def go_down(first: int, last: int, top: int, marks: Any, span: Span, task: Task, shared: Any) -> None:
        states, stored, marked = (
            task.states[cuda.blockIdx.x, 1],
            task.stored[cuda.blockIdx.x, 0],
            task.pushes.marked,
        )
        begins, goes_on = last == span.size and top == span.size, marked[marks[0]] < first
        width, origin = diagonals_of(span)
        ends = first, span.begin
        base = 0
        while base < width:
            step = step_of(width - base)
            if cuda.threadIdx.x >= step or base + cuda.threadIdx.x >= width:
                break
            d, e, f = lines_of(base + cuda.threadIdx.x, step, width)
            lines = origin + d, origin + e, origin + f
            now = (0.0, 0.0, 0.0) if begins else (states[d], states[e], states[f])
            i = min(last, top) - 1
            for m in range(marks[1] - 1, marks[0] - 1, -1):
                stop = marked[m]
                if stop >= first and stop < last:
                    now = walk(now, i, i - stop, -1, ends, lines, task, shared)
                    row, i = stored[m - marks[0]], stop
                    x, y, z = row[d], row[e], row[f]
                    row[d], row[e] = product(x, 1.0 + now[0]), product(y, 1.0 + now[1])
                    row[f] = product(z, 1.0 + now[2])
            if goes_on:
                now = walk(now, i, i - first + 1, -1, ends, lines, task, shared)
            if goes_on or marks[0] > span.first_mark:
                states[d], states[e], states[f] = now
            base += DIAGONALS * step

    return go_down


def add_of(constant: bool) -> Callable[..., Any]:
    """Return the function that adds products times γ to the scores of a tile, last marks first."""

    @cuda.jit(device=True)
    def add(marks: Any, span: Span, task: Task) -> None:
        scores, stored, pushes = task.targets.scores, task.stored[cuda.blockIdx.x, 0], task.pushes
        width, factor = span.high - span.low, 1.0 / task.values.mass if constant else 1.0
        base = 0
        while base < width:
            step = step_of(width - base)
            if cuda.threadIdx.x >= step or base + cuda.threadIdx.x >= width:
                break
            d, e, f = lines_of(base + cuda.threadIdx.x, step, width)
            for m in range(marks[1] - 1, marks[0] - 1, -1):
                of_mark, back = stored[m - marks[0]], span.size - 1 - pushes.marked[m]
                u, v, w = of_mark[d + back], of_mark[e + back], of_mark[f + back]
                for entry in range(pushes.heads[m], pushes.heads[m + 1]):
                    row, gamma = scores[pushes.labels[entry]], product(factor, pushes.gamma[entry])
                    x, y, z = row[span.low + d], row[span.low + e], row[span.low + f]
                    row[span.low + d], row[span.low + e] = x + product(gamma, u), y + product(gamma, v)
                    row[span.low + f] = z + product(gamma, w)
            base += DIAGONALS * step

    return add


def push_of(constant: bool, staged: bool) -> Callable[..., Any]:
    """Return the function by which a block of threads adds a push to a tile.

    Parameters
    ----------
    constant : bool
        Whether the mass is the same for all pairs of nodes.
    staged : bool
        Whether rows of the table fit into shared memory.

    Returns
    -------
    callable
        A function of a span, a task and shared memory.
    """
    stage, add = stage_of(constant), add_of(constant)
    go_up, go_down = go_up_of(constant, staged), go_down_of(constant, staged)

    @cuda.jit(device=True)
    def push(span: Span, task: Task, shared: Any) -> None:
        size, marked = span.size, task.pushes.marked
        rows = task.values.staged if staged else size
        after, top = span.end_mark, size
        while after > span.first_mark:
            marks = max(span.first_mark, after - STORED_MARKS), after
            first, highest, lowest = 0, marked[after - 1], marked[marks[0]]
            while first <= highest:
                last = min(first + rows, size)
                if staged:
                    stage(first, last, span.begin, task, shared)
                go_up(first, last, marks, span, task, shared)
                first = last
            first = 0
            while first + rows < top:
                first += rows
            while first >= 0 and first + rows > lowest:
                last = min(first + rows, size)
                if staged and size > rows:
                    stage(first, last, span.begin, task, shared)
                go_down(first, last, top, marks, span, task, shared)
                first -= rows
            cuda.syncthreads()
            add(marks, span, task)
            after, top = marks[0], lowest + 1
            cuda.syncthreads()

    return push
