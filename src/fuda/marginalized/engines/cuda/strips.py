"""Pushes to strips: structures side by side, each thread with a few places of its own.

A *strip* is what the threads of a warp hold at a time: each has `PLACES_PER_LANE` consecutive
places, with the column of the table, and the prior where masses differ, in registers. A push goes
node by node through its source, and in each step

    K_U(τ,t) = k(τ,t) (1 + K_U(τ−1,t−1)),    K_D(τ,t) = k(τ,t) (1 + K_D(τ+1,t+1))

move on by one place: within a thread by name, to the next thread by a shuffle. So only the weight
of each pair is read, from the row of the table in shared memory, and what a marked node adds to
the scores is added by the thread that has the place, in the order of the CPU engine.

A strip has whole structures. Those that are too long for one are in a *belt*, the strips of all
warps of a block, which go from step to step together and hand on numbers by shared memory.
Numbers are those of `kernels` to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config, cuda

from fuda.marginalized.engines.cuda import kernels
from fuda.marginalized.engines.cuda.kernels import Span, Task, product, stage_of, stride_of
from fuda.marginalized.engines.cuda.layout import LANES, PLACES_PER_LANE, STRIP, WARP, WARPS

MAX_REGISTER_LABELS = 10  # most labels whose priors are in registers
_ALL = 0xFFFFFFFF

if config.ENABLE_CUDASIM:  # whose warps have one thread

    @cuda.jit(device=True)
    def together() -> None:
        """Wait for the other threads of a warp."""

    @cuda.jit(device=True)
    def neighbour(value: float, way: int) -> float:
        """Return the value of the thread before (1) or after (−1)."""
        return value
else:

    @cuda.jit(device=True)
    def together() -> None:
        """Wait for the other threads of a warp."""
        cuda.syncwarp()

    @cuda.jit(device=True)
    def neighbour(value: float, way: int) -> float:
        """Return the value of the thread before (1) or after (−1)."""
        if way > 0:
            return cuda.shfl_up_sync(_ALL, value, 1)
        return cuda.shfl_down_sync(_ALL, value, 1)


def cells_of(constant: bool, staged: bool, labels: int) -> Callable[..., Any]:
    """Return the function for weights and k of a node and the places of a thread.

    `labels` is the number of labels whose priors are in `priors`, or 0.
    """

    @cuda.jit(device=True)
    def weight_of(row: int, column: int, mark: int, id_: int, node: int, task: Task, shared: Any) -> float:
        values = task.values
        if staged:
            at = np.uint32(values.width) if mark == id_ else np.uint32(column)
            return shared[0][np.uint32(row) + at]
        weight = values.table[np.int64(row) + np.int64(column)]
        if mark == id_:
            weight = task.nodes.self_values[node]
        return product(values.mass, weight) if constant else weight

    @cuda.jit(device=True)
    def cells(i: int, span: Span, mine: Any, priors: Any, task: Task, shared: Any) -> Any:
        columns, marks, base = mine
        nodes, values, node = task.nodes, task.values, span.begin + i
        if staged:
            row, id_ = np.int32(i) * np.int32(stride_of(constant, task)), shared[1][np.uint32(i)]
        else:
            row, id_ = np.int64(nodes.rows[node]) * values.width, nodes.ids[node]
        a = weight_of(row, columns[0], marks[0], id_, node, task, shared)
        b = weight_of(row, columns[1], marks[1], id_, node, task, shared)
        c = weight_of(row, columns[2], marks[2], id_, node, task, shared)
        d = weight_of(row, columns[3], marks[3], id_, node, task, shared)
        if constant:
            return (a, b, c, d), (a, b, c, d)
        w, x, y, z = 0.0, 0.0, 0.0, 0.0
        if labels:
            for label in range(labels):
                if staged:
                    share = shared[0][np.uint32(row) + np.uint32(values.width + 1) + np.uint32(label)]
                else:
                    share = nodes.share[label, node]
                w += share * priors[PLACES_PER_LANE * label]
                x += share * priors[PLACES_PER_LANE * label + 1]
                y += share * priors[PLACES_PER_LANE * label + 2]
                z += share * priors[PLACES_PER_LANE * label + 3]
        else:
            prior = task.targets.prior
            for label in range(len(prior)):
                share = nodes.share[label, node]
                w += share * prior[label, base]
                x += share * prior[label, base + LANES]
                y += share * prior[label, base + 2 * LANES]
                z += share * prior[label, base + 3 * LANES]
        return (a, b, c, d), (product(a, w), product(b, x), product(c, y), product(d, z))

    return cells


def passed_of(is_belt: bool) -> Callable[..., Any]:
    """Return the function for 1 + K, in the step before step i, of the neighbours of places.

    At the ends of strips and belts places are empty, and whatever comes in is multiplied by 0.
    """

    @cuda.jit(device=True)
    def passed(now: Any, way: int, i: int, shared: Any) -> Any:
        carry = neighbour(now[3] if way > 0 else now[0], way)
        if is_belt:
            lane, mail = cuda.threadIdx.x & (LANES - 1), shared[2]
            warp, last = cuda.threadIdx.x >> WARP, LANES - 1 if way > 0 else 0
            row = (i & 1) * WARPS
            if lane == last:
                mail[row + warp] = now[3] if way > 0 else now[0]
            cuda.syncthreads()
            if lane == LANES - 1 - last:
                carry = mail[row + min(max(warp - way, 0), WARPS - 1)]
        if way > 0:
            return 1.0 + carry, 1.0 + now[0], 1.0 + now[1], 1.0 + now[2]
        return 1.0 + now[1], 1.0 + now[2], 1.0 + now[3], 1.0 + carry

    return passed


@cuda.jit(device=True)
def times(a: Any, b: Any) -> Any:
    """Return products, number by number."""
    return product(a[0], b[0]), product(a[1], b[1]), product(a[2], b[2]), product(a[3], b[3])


@cuda.jit(device=True)
def loaded(number: int, priors: Any, labels: int, task: Task) -> Any:
    """Return columns and ids of a thread's places, and the first place; fill in priors."""
    targets, mask = task.targets, task.values.mask
    words, base = targets.words, number * STRIP + (cuda.threadIdx.x & (LANES - 1))
    a, b, c, d = words[base], words[base + LANES], words[base + 2 * LANES], words[base + 3 * LANES]
    columns = a & mask, b & mask, c & mask, d & mask
    for label in range(labels):
        row = targets.prior[label]
        priors[PLACES_PER_LANE * label], priors[PLACES_PER_LANE * label + 1] = row[base], row[base + LANES]
        priors[PLACES_PER_LANE * label + 2], priors[PLACES_PER_LANE * label + 3] = (
            row[base + 2 * LANES],
            row[base + 3 * LANES],
        )
    return columns, (a ^ columns[0], b ^ columns[1], c ^ columns[2], d ^ columns[3]), base


def add_of(constant: bool) -> Callable[..., None]:
    """Return the function by which a thread adds products of a mark times γ to its scores."""

    @cuda.jit(device=True)
    def add(m: int, row: Any, one: Any, base: int, task: Task) -> None:
        pushes, scores, lane = task.pushes, task.targets.scores, base & (LANES - 1)
        stored = row[lane], row[lane + LANES], row[lane + 2 * LANES], row[lane + 3 * LANES]
        products, factor = times(stored, one), 1.0 / task.values.mass if constant else 1.0
        for entry in range(pushes.heads[m], pushes.heads[m + 1]):
            of_label, gamma = scores[pushes.labels[entry]], product(factor, pushes.gamma[entry])
            a, b = of_label[base], of_label[base + LANES]
            c, d = of_label[base + 2 * LANES], of_label[base + 3 * LANES]
            of_label[base] = a + product(gamma, products[0])
            of_label[base + LANES] = b + product(gamma, products[1])
            of_label[base + 2 * LANES] = c + product(gamma, products[2])
            of_label[base + 3 * LANES] = d + product(gamma, products[3])

    return add


def strip_of(constant: bool, staged: bool, is_belt: bool, labels: int) -> Callable[..., None]:
    """Return the function by which a warp adds a push to a strip, alone or as part of a belt."""
    cells, passed, add = cells_of(constant, staged, labels), passed_of(is_belt), add_of(constant)
    prior_count, most = PLACES_PER_LANE * (labels or 1), kernels.STORED_MARKS

    @cuda.jit(device=True)
    def strip_up(
        marks: Any, span: Span, mine: Any, priors: Any, stored: Any, task: Task, shared: Any
    ) -> None:
        marked, now, i, lane = task.pushes.marked, (0.0, 0.0, 0.0, 0.0), 0, mine[2] & (LANES - 1)
        for m in range(marks[0], marks[1]):
            stop = marked[m]
            _, k = cells(i, span, mine, priors, task, shared)
            while i < stop:  # k of the next step is under way during this one
                now, i = times(k, passed(now, 1, i, shared)), i + 1
                _, k = cells(i, span, mine, priors, task, shared)
            weights, k = cells(i, span, mine, priors, task, shared)
            one, row = passed(now, 1, i, shared), stored[m - marks[0]]
            products, now, i = times(weights, one), times(k, one), i + 1
            row[lane], row[lane + LANES] = products[0], products[1]
            row[lane + 2 * LANES], row[lane + 3 * LANES] = products[2], products[3]

    @cuda.jit(device=True)
    def strip(number: int, span: Span, task: Task, shared: Any) -> None:
        marked, priors = task.pushes.marked, cuda.local.array(prior_count, np.float64)
        mine = loaded(number, priors, labels, task)
        stored = task.stored[cuda.blockIdx.x, cuda.threadIdx.x >> WARP]
        now, i, last = (0.0, 0.0, 0.0, 0.0), span.size - 1, span.end_mark
        while last > span.first_mark:
            marks = max(span.first_mark, last - most), last
            if is_belt:  # what comes next may be written where others still read
                cuda.syncthreads()
            strip_up(marks, span, mine, priors, stored, task, shared)
            if is_belt:
                cuda.syncthreads()
            for m in range(last - 1, marks[0] - 1, -1):
                stop = marked[m]
                _, k = cells(i, span, mine, priors, task, shared)
                while i > stop:
                    now, i = times(k, passed(now, -1, i, shared)), i - 1
                    _, k = cells(i, span, mine, priors, task, shared)
                add(m, stored[m - marks[0]], passed(now, -1, i, shared), mine[2], task)
            last = marks[0]

    return strip


def strips_of(constant: bool, staged: bool, labels: int) -> Callable[..., None]:
    """Return the function by which a block of threads adds a push to its strips.

    Parameters
    ----------
    constant : bool
        Whether the mass is the same for all pairs of nodes.
    staged : bool
        Whether rows of the table fit into shared memory.
    labels : int
        The number of labels.

    Returns
    -------
    callable
        A function of a span, a task and shared memory.
    """
    register_labels = 0 if constant or labels > MAX_REGISTER_LABELS else labels
    stage, direct = stage_of(constant), strip_of(constant, False, False, register_labels)
    plain = strip_of(constant, True, False, register_labels) if staged else direct
    of_belt = strip_of(constant, False, True, register_labels)

    @cuda.jit(device=True)
    def push(span: Span, task: Task, shared: Any) -> None:
        block, blocks, warp = cuda.blockIdx.x, cuda.gridDim.x, cuda.threadIdx.x >> WARP
        warps, belts, strips = cuda.blockDim.x >> WARP, task.targets.belts, task.targets.strips
        belt = block
        while belt < belts:
            of_belt(belt * warps + warp, span, task, shared)
            belt += blocks
        # The strips of the first round are for the blocks that have no belt.
        free = belts if belts < blocks else 0
        number = belts * warps + warp * (blocks - free) + block - free
        later = belts * warps + warps * (blocks - free) + warp * blocks + block
        if block < free:
            number, later = later, later + blocks * warps
        if staged and span.size <= task.values.staged:
            stage(0, span.size, span.begin, task, shared)
            while number < strips:
                plain(number, span, task, shared)
                number, later = later, later + blocks * warps
        else:
            while number < strips:
                direct(number, span, task, shared)
                number, later = later, later + blocks * warps
        cuda.syncthreads()

    return push
