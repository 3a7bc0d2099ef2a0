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

from fuda.marginalized.engines.cuda.kernels import ROWS, SHARED, Array, Span, Task, product, push_of

# What block 0 tells the others: the first place of a structure or STOP, its size and its number of marks;
# and what stays from launch to launch: how many places were visited, mistakes logged, structures pushed.
BEGIN, SIZE, MARKS, VISITED, LOGGED, PUSHED, CONTROLS = range(7)
STOP = -1
# So few registers that a multiprocessor has room for 1,024 threads; the simulator knows no registers.
_OPTIONS: dict[str, Any] = {"cache": True} | ({} if config.ENABLE_CUDASIM else {"max_registers": 64})


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
def kernels(constant: bool, staged: bool) -> Kernels:
    """Return the kernels, compiled at their first call or read from disk.

    Parameters
    ----------
    constant : bool
        Whether the mass is the same for all pairs of nodes.
    staged : bool
        Whether rows of the table fit into shared memory.

    Returns
    -------
    Kernels
        The kernels.
    """
    push, find, correct = push_of(constant, staged), find_of(), correct_of(constant)

    @cuda.jit(**_OPTIONS)
    def score(task: Task) -> None:
        buffer = cuda.shared.array(SHARED, np.float64)
        twins = cuda.shared.array(ROWS, np.int64)
        shared = buffer, twins
        tiles, pushes = task.targets.tiles, task.pushes
        for tile in range(cuda.blockIdx.x, len(tiles) - 1, cuda.gridDim.x):
            for p in range(len(pushes.begins)):
                begin, size, first, end = pushes.begins[p], pushes.sizes[p], pushes.firsts[p], pushes.firsts[p + 1]
                push(Span(begin, size, first, end, tiles[tile] + 1, tiles[tile + 1]), task, shared)

    @cuda.jit(**_OPTIONS)
    def epoch(task: Task, training: Training, limit: int) -> None:
        buffer = cuda.shared.array(SHARED, np.float64)
        twins = cuda.shared.array(ROWS, np.int64)
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
            for tile in range(cuda.blockIdx.x, len(tiles) - 1, cuda.gridDim.x):
                push(Span(begin, size, 0, end, tiles[tile] + 1, tiles[tile + 1]), task, shared)
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


def find_of() -> Callable[..., Any]:
    """Return the function that finds the next visit with a mistake; −1 if there is none."""

    @cuda.jit(device=True)
    def find(task: Task, training: Training, limit: int, shared: Any) -> int:
        control, labels, none = training.control, training.labels, len(training.visits)
        visit, found = control[VISITED], none
        if control[PUSHED] >= limit:
            visit = none
        while visit < none:
            cuda.syncthreads()
            if cuda.threadIdx.x == 0:
                shared[1][0] = none
            cuda.syncthreads()
            at = visit + cuda.threadIdx.x
            if at < none:
                place = training.visits[at]
                label = labels[place]
                if label >= 0:
                    best, largest = 0, _score(0, place, task, training)
                    for other in range(1, len(task.targets.prior)):
                        score = _score(other, place, task, training)
                        if score > largest:
                            best, largest = other, score
                    if best != label:
                        cuda.atomic.min(shared[1], 0, at)
            cuda.syncthreads()
            found = shared[1][0]
            if found < none:
                break
            visit += cuda.blockDim.x
        if found == none and cuda.threadIdx.x == 0:
            control[BEGIN] = STOP
            if control[PUSHED] < limit:
                control[VISITED] = none
        return found if found < none else -1

    return find


def fill_of(constant: bool) -> Callable[..., Any]:
    """Return the function that computes κ of a structure with itself, from nodes to later ones.

    A square of `area` has weight(τ,t) at row τ < t and κ(τ,t) at row t; if masses differ, they are
    in a second square.
    """

    @cuda.jit(device=True)
    def fill(begin: int, size: int, task: Task, area: Any) -> None:
        nodes, targets, values, square = task.nodes, task.targets, task.values, size * size
        for n in range(cuda.threadIdx.x, square, cuda.blockDim.x):
            i = n // size
            j = n - i * size
            if j > i:
                word = targets.words[begin + j]
                column = word & ((1 << values.shift) - 1)
                area[n] = values.table[np.int64(nodes.rows[begin + i]) * values.width + column]
                if (word >> values.shift) == nodes.twins[begin + i]:
                    area[n] = nodes.own[begin + i]
                if not constant:
                    mass = 0.0
                    for label in range(len(targets.prior)):
                        mass += product(nodes.share[label, begin + i], targets.prior[label, begin + j])
                    area[square + n] = mass
        cuda.syncthreads()
        for apart in range(1 + cuda.threadIdx.x, size, cuda.blockDim.x):
            before = 0.0
            for i in range(size - apart):
                at, factor = i * size + i + apart, 1.0 + before
                mass = values.pair_mass if constant else area[square + at]
                area[(i + apart) * size + i] = product(area[at], factor)
                before = product(area[at], product(mass, factor))
            before = 0.0
            for i in range(size - apart - 1, -1, -1):
                at, there, factor = i * size + i + apart, (i + apart) * size + i, 1.0 + before
                mass = values.pair_mass if constant else area[square + at]
                area[there] = product(area[there], factor)
                before = product(area[at], product(mass, factor))

    return fill


def correct_of(constant: bool) -> Callable[..., Any]:
    """Return the function that corrects a structure and prepares its push."""
    fill = fill_of(constant)

    @cuda.jit(device=True)
    def correct(visit: int, task: Task, training: Training, shared: Any) -> None:
        targets, control, place = task.targets, training.control, training.visits[visit]
        begin, size, labels = training.begins[place], training.sizes[place], len(task.targets.prior)
        rows = size * size if constant else 2 * size * size
        area = shared[0] if rows + size * labels <= SHARED else training.area
        fill(begin, size, task, area)
        for n in range(cuda.threadIdx.x, size * labels, cuda.blockDim.x):
            t = n // labels
            area[rows + n] = _score(n - t * labels, begin + t, task, training)
        start, marks, logged = 0, 0, control[LOGGED]
        while True:
            cuda.syncthreads()
            if cuda.threadIdx.x == 0:
                shared[1][0] = size
            cuda.syncthreads()
            for t in range(start + cuda.threadIdx.x, size, cuda.blockDim.x):
                if training.labels[begin + t] >= 0 and _best(area, rows + t * labels, labels) != training.labels[begin + t]:
                    cuda.atomic.min(shared[1], 0, t)
            cuda.syncthreads()
            t = shared[1][0]
            if t >= size:
                break
            best = _best(area, rows + t * labels, labels)
            _change(t, best, marks, begin, task, training)
            if cuda.threadIdx.x == 0:
                task.pushes.marked[marks] = t
                training.places[logged + marks] = begin + t
                training.rivals[logged + marks] = best
            cuda.syncthreads()
            for n in range(cuda.threadIdx.x, (size - t - 1) * labels, cuda.blockDim.x):
                later = n // labels
                label, later = n - later * labels, t + 1 + later
                gamma = product(task.pushes.gamma[marks, label], targets.prior[label, begin + later])
                area[rows + later * labels + label] += product(area[later * size + t], gamma)
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
    for other in range(cuda.threadIdx.x, len(prior), cuda.blockDim.x):
        if len(gram) > 1:
            gamma = product(right, gram[label, other]) - product(wrong, gram[best, other])
        elif other == label:
            gamma = right
        elif other == best:
            gamma = -wrong
        else:
            gamma = 0.0
        task.pushes.gamma[mark, other] = gamma
