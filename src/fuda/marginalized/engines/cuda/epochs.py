"""Whole epochs of the perceptron, and scores of a corpus, in one launch each.

In an epoch all blocks of threads wait for each other twice per push. Block 0 looks for the next
structure with a mistake in the order of visits, and corrects it node by node as
`fuda.marginalized.engines.online` does; all blocks push it to their tiles. A structure without
mistakes costs a look at its scores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import config, cuda

from fuda.marginalized.engines.cuda.kernels import ROWS, SHARED, WARP, Array, Span, Task, product, push_of

# What block 0 tells the others: the first place of a structure or STOP, its size and its number of marks;
# and what stays from launch to launch: how many places were visited, mistakes logged, structures pushed.
BEGIN, SIZE, MARKS, VISITED, LOGGED, PUSHED, CONTROLS = range(7)
STOP = -1
# So few registers that a multiprocessor has room for 768 threads where the mass is constant, and for
# 512 where it is computed; the simulator knows no registers.
_REGISTERS = {True: 80, False: 128}


class Training(NamedTuple):
    """An epoch.

    Attributes
    ----------
    visits : array
        The places in the order of visits.
    begins, sizes : arrays
        By place: the first place and the size of its structure.
    labels, amounts : arrays
        By place.
    base : array (L, places), or (1, 1)
        Scores from outside.
    gram : array (L, L), or (1, 1)
        k_y, if it is not the identity.
    control : array
        See above.
    places, rivals : arrays
        The log of mistakes: places, and what was predicted.
    area : array
        For the kernel of a structure with itself, if shared memory is too small for it.
    """

    visits: Array
    begins: Array
    sizes: Array
    labels: Array
    amounts: Array
    base: Array
    gram: Array
    control: Array
    places: Array
    rivals: Array
    area: Array


class Kernels(NamedTuple):
    """`score(task)` adds all pushes; `epoch(task, training, limit)` makes up to `limit` pushes."""

    score: Any
    epoch: Any


@cache
def kernels(constant: bool, staged: bool, wide: bool) -> Kernels:
    """Return the kernels, compiled at their first call or read from disk.

    Parameters
    ----------
    constant : bool
        Whether the mass is the same for all pairs of nodes.
    staged : bool
        Whether rows of the table fit into shared memory.
    wide : bool
        Whether words need 64 bits.

    Returns
    -------
    Kernels
        The kernels.
    """
    options: dict[str, Any] = {"cache": True}
    if not config.ENABLE_CUDASIM:
        options["max_registers"] = _REGISTERS[constant]
    push, correct, number = push_of(constant, staged), correct_of(constant), np.uint64 if wide else np.uint32

    @cuda.jit(**options)
    def score(task: Task) -> None:
        buffer = cuda.shared.array(SHARED, np.float64)
        twins = cuda.shared.array(ROWS, number)
        shared = buffer, twins
        tiles, pushes = task.targets.tiles, task.pushes
        tile = cuda.blockIdx.x
        while tile < len(tiles) - 1:
            for p in range(len(pushes.begins)):
                begin, size, first, end = (
                    pushes.begins[p],
                    pushes.sizes[p],
                    pushes.firsts[p],
                    pushes.firsts[p + 1],
                )
                push(Span(begin, size, first, end, tiles[tile] + 1, tiles[tile + 1]), task, shared)
            tile += cuda.gridDim.x

    @cuda.jit(**options)
    def epoch(task: Task, training: Training, limit: int) -> None:
        buffer = cuda.shared.array(SHARED, np.float64)
        twins = cuda.shared.array(ROWS, number)
        shared = buffer, twins
        tiles, control, grid = task.targets.tiles, training.control, cuda.cg.this_grid()
        while True:
            if cuda.blockIdx.x == 0:
                visit = find(task, training, limit, shared)
                if visit >= 0:
                    correct(visit, task, training, shared)
            grid.sync()
            begin, size, end = control[BEGIN], control[SIZE], control[MARKS]
            if begin == STOP:
                break
            tile = cuda.blockIdx.x
            while tile < len(tiles) - 1:
                push(Span(begin, size, 0, end, tiles[tile] + 1, tiles[tile + 1]), task, shared)
                tile += cuda.gridDim.x
            grid.sync()

    return Kernels(score, epoch)


@cuda.jit(cache=True)
def clear(scores: Array) -> None:
    """Set scores (L, places) to 0."""
    for t in range(cuda.grid(1), scores.shape[1], cuda.gridsize(1)):
        for label in range(len(scores)):
            scores[label, t] = 0.0


@cuda.jit(device=True)
def _score(label: int, place: int, task: Task, training: Training) -> float:
    """Return S of a label at a place."""
    score = product(task.targets.scores[label, place], task.targets.prior[label, place])
    if len(training.base) > 1:
        score += training.base[label, place]
    return score


@cuda.jit(device=True)
def _found(place: int, task: Task, training: Training) -> int:
    """Return the first label with the largest score at a place."""
    best, largest, count = 0, _score(0, place, task, training), len(task.targets.prior)
    for label in range(1, count, 2):  # two at a time, which wait for memory together
        other = min(label + 1, count - 1)
        x, y = _score(label, place, task, training), _score(other, place, task, training)
        if x > largest:
            best, largest = label, x
        if y > largest:
            best, largest = other, y
    return best


@cuda.jit(device=True)
def find(task: Task, training: Training, limit: int, shared: Any) -> int:
    """Return the next visit with a mistake; −1 if there is none."""
    control, none, found = training.control, len(training.visits), len(training.visits)
    visit = control[VISITED] if control[PUSHED] < limit else none
    while visit < none:
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            shared[1][0] = none
        cuda.syncthreads()
        at = visit + cuda.threadIdx.x
        if at < none:
            place = training.visits[at]
            if training.labels[place] >= 0 and _found(place, task, training) != training.labels[place]:
                cuda.atomic.min(shared[1], 0, at)
        cuda.syncthreads()
        found = np.int64(shared[1][0])
        if found < none:
            break
        visit += cuda.blockDim.x
    if found == none and cuda.threadIdx.x == 0:
        control[BEGIN] = STOP
        if control[PUSHED] < limit:
            control[VISITED] = none
    return found if found < none else -1


def fill_of(constant: bool) -> Callable[..., Any]:
    """Return the function that computes κ of a structure with itself, from nodes to later ones.

    A square of `area` has weight(τ,t) at row τ < t and κ(τ,t) at row t; if masses differ, they are
    in a second square.
    """

    @cuda.jit(device=True)
    def fill(begin: int, size: int, task: Task, area: Any) -> None:
        nodes, targets, values, square = task.nodes, task.targets, task.values, size * size
        i, apart = cuda.threadIdx.x >> WARP, 1 + cuda.threadIdx.x
        while i < size:
            row, twin = np.int64(nodes.rows[begin + i]) * values.width, nodes.twins[begin + i]
            j = i + 1 + (cuda.threadIdx.x & ((1 << WARP) - 1))
            while j < size:
                word = targets.words[begin + j]
                column = word & values.mask
                weight = values.table[np.uint64(row) + np.uint64(column)]
                area[i * size + j] = nodes.own[begin + i] if (word ^ column) == twin else weight
                if not constant:
                    mass = 0.0
                    for label in range(len(targets.prior)):
                        mass += product(nodes.share[label, begin + i], targets.prior[label, begin + j])
                    area[square + i * size + j] = mass
                j += 1 << WARP
            i += cuda.blockDim.x >> WARP
        cuda.syncthreads()
        while apart < size:
            before, at, there = 0.0, apart, apart * size
            for _ in range(size - apart):
                weight, factor = area[at], 1.0 + before
                mass = values.pair_mass if constant else area[square + at]
                area[there] = product(weight, factor)
                before = product(weight, product(mass, factor))
                at, there = at + size + 1, there + size + 1
            before = 0.0
            for _ in range(size - apart):
                at, there = at - size - 1, there - size - 1
                weight, factor = area[at], 1.0 + before
                mass = values.pair_mass if constant else area[square + at]
                area[there] = product(area[there], factor)
                before = product(weight, product(mass, factor))
            apart += cuda.blockDim.x

    return fill


def correct_of(constant: bool) -> Callable[..., Any]:
    """Return the function that corrects a structure and prepares its push."""
    fill = fill_of(constant)

    @cuda.jit(device=True)
    def correct(visit: int, task: Task, training: Training, shared: Any) -> None:
        control, place, labels = training.control, training.visits[visit], len(task.targets.prior)
        begin, size = training.begins[place], training.sizes[place]
        scores = size * size if constant else 2 * size * size
        area = shared[0] if scores + size * labels <= SHARED else training.area
        fill(begin, size, task, area)
        t = cuda.threadIdx.x
        while t < size:
            for label in range(labels):
                area[scores + t * labels + label] = _score(label, begin + t, task, training)
            t += cuda.blockDim.x
        start, marks, logged = 0, 0, control[LOGGED]
        while True:
            cuda.syncthreads()
            if cuda.threadIdx.x == 0:
                shared[1][0] = size
            cuda.syncthreads()
            t = start + cuda.threadIdx.x
            while t < size:
                label = training.labels[begin + t]
                if label >= 0 and _best(area, scores + t * labels, labels) != label:
                    cuda.atomic.min(shared[1], 0, t)
                t += cuda.blockDim.x
            cuda.syncthreads()
            t = np.int64(shared[1][0])
            if t >= size:
                break
            best = _best(area, scores + t * labels, labels)
            _change(t, best, marks, begin, task, training)
            if cuda.threadIdx.x == 0:
                task.pushes.marked[marks] = t
                training.places[logged + marks] = begin + t
                training.rivals[logged + marks] = best
            cuda.syncthreads()
            later = t + 1 + cuda.threadIdx.x
            while later < size:
                for label in range(labels):
                    gamma = task.pushes.gamma[marks, label]
                    if gamma != 0.0:
                        gamma = product(gamma, task.targets.prior[label, begin + later])
                        area[scores + later * labels + label] += product(area[later * size + t], gamma)
                later += cuda.blockDim.x
            start, marks = t + 1, marks + 1
        if cuda.threadIdx.x == 0:
            control[BEGIN], control[SIZE], control[MARKS] = begin, size, marks
            control[VISITED] = visit - (place - begin) + size
            control[LOGGED], control[PUSHED] = logged + marks, control[PUSHED] + 1

    return correct


@cuda.jit(device=True)
def _best(area: Any, first: int, count: int) -> int:
    """Return the first label with the largest score."""
    best, largest = 0, area[first]
    for label in range(1, count):
        if area[first + label] > largest:
            best, largest = label, area[first + label]
    return best


@cuda.jit(device=True)
def _change(t: int, best: int, mark: int, begin: int, task: Task, training: Training) -> None:
    """Write γ of a mistake at node t."""
    place, prior, gram = begin + t, task.targets.prior, training.gram
    label, amount = training.labels[place], training.amounts[place]
    right, wrong = product(amount, prior[label, place]), product(amount, prior[best, place])
    other = cuda.threadIdx.x
    while other < len(prior):
        if len(gram) > 1:
            gamma = product(right, gram[label, other]) - product(wrong, gram[best, other])
        elif other == label:
            gamma = right
        elif other == best:
            gamma = -wrong
        else:
            gamma = 0.0
        task.pushes.gamma[mark, other] = gamma
        other += cuda.blockDim.x
