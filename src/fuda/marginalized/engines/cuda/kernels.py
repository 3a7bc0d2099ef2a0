"""The kernels of the CUDA engine: pushes of sequences.

As in `fuda.marginalized.engines.cpu.runs`, nodes are at *places*, with an empty place before each
structure and at the end, where k is 0, and a push goes up to its last marked node and down to its
first:

    K_U(τ,t) = k(τ,t) (1 + K_U(τ−1,t−1)),    K_D(τ,t) = k(τ,t) (1 + K_D(τ+1,t+1)).

A block of threads has a *tile* of whole target structures, and a thread a diagonal t − τ of it, along
which it walks: k(τ,t) is found in shared memory, in the row of the table for τ, at the code of t. The
products k u d of marked nodes are kept per diagonal, and added to the scores of each place after all,
in the order of the CPU engine. No product is fused with an addition, so that with a constant mass all
numbers are those of the CPU engine to the last bit.

Long structures go through shared memory in *stages* of some nodes, and many marks in *chunks*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import config, cuda

Array = Any  # on the device
SHARED = 5888  # doubles of shared memory; with ROWS less than the 48 KiB that every card has
ROWS = 96  # most nodes whose rows are in shared memory at a time
KEPT = 16  # marked nodes whose products are kept at a time

if config.ENABLE_CUDASIM:

    def product(a: float, b: float) -> float:
        """Return a b, rounded."""
        return a * b
else:
    from numba.cuda import libdevice

    product = libdevice.dmul_rn  # not fused with an addition


class Nodes(NamedTuple):
    """The source nodes by place: row of the table, twin number, own value, and share (L, places)."""

    rows: Array
    twins: Array
    own: Array
    share: Array


class Targets(NamedTuple):
    """The targets by place.

    Attributes
    ----------
    words : array
        The twin number and, in the last `shift` bits, the column of the table.
    prior, scores : arrays (L, places)
        P(σ|t) and Q.
    tiles : array
        The bounds of tiles, empty places.
    """

    words: Array
    prior: Array
    scores: Array
    tiles: Array


class Values(NamedTuple):
    """The table of c² k_x, flat, with a last column of zeros, and how it is used.

    Attributes
    ----------
    table : array
        Rows of `width` values.
    width, shift : int
        The length of a row, and the bits of a column in a word.
    mass, pair_mass : float
        The mass of all pairs of nodes, as pushes and as corrections use it; 0 if it differs.
    """

    table: Array
    width: int
    shift: int
    mass: float
    pair_mass: float


class Pushes(NamedTuple):
    """Pushes: first place, size and first mark of each; the node and γ (L) of each mark."""

    begins: Array
    sizes: Array
    firsts: Array
    marked: Array
    gamma: Array


class Task(NamedTuple):
    """What a push needs.

    `states` (blocks, 2, diagonals) are K_U and K_D between stages and chunks; `kept`
    (blocks, KEPT, diagonals) are products of marked nodes.
    """

    nodes: Nodes
    targets: Targets
    values: Values
    pushes: Pushes
    states: Array
    kept: Array


class Span(NamedTuple):
    """A push to a tile: its first place, size and marks, and the places of the tile."""

    begin: int
    size: int
    first_mark: int
    end_mark: int
    low: int
    high: int


def cell_of(constant: bool, staged: bool) -> Callable[..., Any]:
    """Return the function that finds weight and k of a node, in row `at` of the stage, and a place."""

    @cuda.jit(device=True)
    def cell(at: int, node: int, place: int, task: Task, shared: Any) -> Any:
        nodes, targets, values = task.nodes, task.targets, task.values
        word, row = targets.words[np.uint64(place)], at * stride_of(constant, task)
        column, twin = word & ((1 << values.shift) - 1), word >> values.shift
        if staged:
            weight = shared[0][np.uint64(row + column)]  # unsigned, which avoids tests of the sign
            if twin == shared[1][np.uint64(at)]:
                weight = shared[0][np.uint64(row + values.width)]
        else:
            weight = values.table[np.int64(nodes.rows[node]) * values.width + column]
            if twin == nodes.twins[node]:
                weight = nodes.own[node]
            if constant:
                weight = product(values.mass, weight)
        if constant:
            return weight, weight
        mass = 0.0
        for label in range(len(targets.prior)):
            if staged:
                share = shared[0][np.uint64(row + values.width + 1 + label)]
            else:
                share = nodes.share[label, node]
            mass += share * targets.prior[np.uint64(label), np.uint64(place)]
        return weight, product(weight, mass)

    return cell


@cuda.jit(device=True)
def stride_of(constant: bool, task: Task) -> int:
    """Return the length of a row of a stage: values, the own value, and shares if masses differ."""
    return task.values.width + 1 if constant else task.values.width + 1 + len(task.nodes.share)


def stage_of(constant: bool) -> Callable[..., Any]:
    """Return the function that copies what some nodes of a push need into shared memory."""

    @cuda.jit(device=True)
    def stage(first: int, last: int, begin: int, task: Task, shared: Any) -> None:
        nodes, values = task.nodes, task.values
        buffer, twins = shared
        stride = stride_of(constant, task)
        cuda.syncthreads()
        for n in range(cuda.threadIdx.x, (last - first) * stride, cuda.blockDim.x):
            at = n // stride
            node, column = begin + first + at, n - at * stride
            if column < values.width:
                value = values.table[np.int64(nodes.rows[node]) * values.width + column]
            elif column == values.width:
                value = nodes.own[node]
                twins[at] = nodes.twins[node]
            else:
                value = nodes.share[column - values.width - 1, node]
            buffer[n] = product(values.mass, value) if constant else value
        cuda.syncthreads()

    return stage


def walk_of(constant: bool, staged: bool) -> Callable[..., Any]:
    """Return the function that walks `count` nodes along a diagonal, up (way 1) or down (way −1)."""
    cell = cell_of(constant, staged)

    @cuda.jit(device=True)
    def walk(value: float, i: int, count: int, way: int, first: int, ends: Any, task: Task, shared: Any) -> Any:
        begin, diagonal = ends
        while count >= 4:  # values of k are found together, and do not wait for each other
            _, a = cell(i - first, begin + i, diagonal + i, task, shared)
            j = i + way
            _, b = cell(j - first, begin + j, diagonal + j, task, shared)
            j = i + 2 * way
            _, c = cell(j - first, begin + j, diagonal + j, task, shared)
            j = i + 3 * way
            _, e = cell(j - first, begin + j, diagonal + j, task, shared)
            value = product(b, 1.0 + product(a, 1.0 + value))
            value = product(e, 1.0 + product(c, 1.0 + value))
            i, count = i + 4 * way, count - 4
        while count > 0:
            _, a = cell(i - first, begin + i, diagonal + i, task, shared)
            value = product(a, 1.0 + value)
            i, count = i + way, count - 1
        return value

    return walk


def go_up_of(constant: bool, staged: bool) -> Callable[..., Any]:
    """Return the function that goes up a stage on all diagonals, and keeps products of marks."""
    walk, cell = walk_of(constant, staged), cell_of(constant, staged)

    @cuda.jit(device=True)
    def go_up(first: int, last: int, marks: Any, span: Span, task: Task, shared: Any) -> None:
        states, kept, marked = task.states[cuda.blockIdx.x, 0], task.kept[cuda.blockIdx.x], task.pushes.marked
        goes_on = marked[marks[1] - 1] >= last
        for d in range(cuda.threadIdx.x, span.high - span.low + span.size - 1, cuda.blockDim.x):
            diagonal = span.low - span.size + 1 + d
            ends = span.begin, diagonal
            value = states[d] if first else 0.0
            i, end = max(first, span.low - diagonal), min(last, span.high - diagonal)
            for m in range(marks[0], marks[1]):
                stop = marked[m]
                if stop >= i and stop < end:
                    value = walk(value, i, stop - i, 1, first, ends, task, shared)
                    weight, k = cell(stop - first, span.begin + stop, diagonal + stop, task, shared)
                    kept[m - marks[0], d] = product(weight, 1.0 + value)
                    value, i = product(k, 1.0 + value), stop + 1
            if goes_on:
                states[d] = walk(value, i, end - i, 1, first, ends, task, shared)

    return go_up


def go_down_of(constant: bool, staged: bool) -> Callable[..., Any]:
    """Return the function that goes down a stage from below node `top`, and completes products."""
    walk = walk_of(constant, staged)

    @cuda.jit(device=True)
    def go_down(first: int, last: int, top: int, marks: Any, span: Span, task: Task, shared: Any) -> None:
        states, kept, marked = task.states[cuda.blockIdx.x, 1], task.kept[cuda.blockIdx.x], task.pushes.marked
        begins, goes_on = last == span.size and top == span.size, marked[marks[0]] < first
        for d in range(cuda.threadIdx.x, span.high - span.low + span.size - 1, cuda.blockDim.x):
            diagonal = span.low - span.size + 1 + d
            ends = span.begin, diagonal
            value = 0.0 if begins else states[d]
            i, end = min(min(last, top), span.high - diagonal) - 1, max(first, span.low - diagonal)
            for m in range(marks[1] - 1, marks[0] - 1, -1):
                stop = marked[m]
                if stop <= i and stop >= end:
                    value = walk(value, i, i - stop, -1, first, ends, task, shared)
                    kept[m - marks[0], d] = product(kept[m - marks[0], d], 1.0 + value)
                    i = stop
            if goes_on:
                value = walk(value, i, i - end + 1, -1, first, ends, task, shared)
            if goes_on or marks[0] > span.first_mark:
                states[d] = value

    return go_down


def add_of(constant: bool) -> Callable[..., Any]:
    """Return the function that adds products times γ to the scores of a tile, last marks first."""

    @cuda.jit(device=True)
    def add(marks: Any, span: Span, task: Task) -> None:
        scores, kept, pushes = task.targets.scores, task.kept[cuda.blockIdx.x], task.pushes
        origin = span.low - span.size + 1
        factor = 1.0 / task.values.mass if constant else 1.0
        for t in range(span.low + cuda.threadIdx.x, span.high, cuda.blockDim.x):
            for label in range(len(scores)):
                total, changed = 0.0, False
                for m in range(marks[1] - 1, marks[0] - 1, -1):
                    gamma = pushes.gamma[m, label]
                    if gamma != 0.0:
                        if not changed:
                            total, changed = scores[label, t], True
                        kappa = kept[m - marks[0], t - pushes.marked[m] - origin]
                        total += product(product(factor, gamma), kappa)
                if changed:
                    scores[label, t] = total

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
        rows = min(ROWS, SHARED // stride_of(constant, task)) if staged else size
        after, top = span.end_mark, size
        while after > span.first_mark:
            marks = max(span.first_mark, after - KEPT), after
            first, highest, lowest = 0, marked[after - 1], marked[marks[0]]
            while first <= highest:
                last = min(first + rows, size)
                if staged:
                    stage(first, last, span.begin, task, shared)
                go_up(first, last, marks, span, task, shared)
                first = last
            first = (top - 1) // rows * rows
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
