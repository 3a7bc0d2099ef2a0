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
LANES = (1 << WARP) - 1
_ROW = min(3, WARP)  # the logarithm of the threads that share a row of a square

if config.ENABLE_CUDASIM:  # whose blocks have one warp

    @cuda.jit(device=True)
    def together() -> None:
        """Wait for the other threads of a warp."""
        cuda.syncthreads()
else:

    @cuda.jit(device=True)
    def together() -> None:
        """Wait for the other threads of a warp."""
        cuda.syncwarp()


# The threads of a block, of which a multiprocessor has one, and registers that leave room for so many:
# for scores where the mass is constant, and for all else.
SCORING, THREADS = (768, 80), (512, 128)


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
    push, correct, number = push_of(constant, staged), correct_of(constant), np.uint64 if wide else np.uint32

    @cuda.jit(**_options(*scoring(constant)))
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

    @cuda.jit(**_options(*THREADS))
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


def scoring(constant: bool) -> tuple[int, int]:
    """Return threads and registers of the kernel `score`."""
    return SCORING if constant else THREADS


def _options(threads: int, registers: int) -> dict[str, Any]:
    """Return the options of a kernel; the simulator knows no registers."""
    return {"cache": True} if config.ENABLE_CUDASIM else {"cache": True, "max_registers": registers}


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


@cuda.jit(device=True)
def pitch_of(size: int) -> int:
    """Return the length of rows of a square: odd, so that its columns are in different banks."""
    return size | 1


@cuda.jit(device=True)
def _weight(row: int, twin: int, own: float, place: int, task: Task) -> float:
    """Return the weight of a node, by its row of the table, and a place."""
    word = task.targets.words[place]
    column = word & task.values.mask
    weight = task.values.table[np.uint64(row) + np.uint64(column)]
    return own if (word ^ column) == twin else weight


@cuda.jit(device=True)
def _masses(node: int, begin: int, js: Any, task: Task) -> Any:
    """Return the masses of a node and four places."""
    a, b, c, d, prior = 0.0, 0.0, 0.0, 0.0, task.targets.prior
    for label in range(len(prior)):
        share, row = task.nodes.share[label, node], prior[label]
        a += product(share, row[begin + js[0]])
        b += product(share, row[begin + js[1]])
        c += product(share, row[begin + js[2]])
        d += product(share, row[begin + js[3]])
    return a, b, c, d


def climb_of(constant: bool) -> Callable[..., Any]:
    """Return the function that multiplies κ along a diagonal by u, from one end, or d, from the other."""

    @cuda.jit(device=True)
    def climb(area: Any, at: int, there: int, step: int, count: int, square: int, mass: float) -> None:
        before, m, n, o, p = 0.0, mass, mass, mass, mass
        while count > 0:  # four at a time, which wait for memory together; beyond the last, the last again
            b, c, d = min(1, count - 1) * step, min(2, count - 1) * step, min(3, count - 1) * step
            w, x, y, z = area[at], area[at + b], area[at + c], area[at + d]
            if not constant:
                m, n = area[square + at], area[square + at + b]
                o, p = area[square + at + c], area[square + at + d]
            e, f, g, h = area[there], area[there + b], area[there + c], area[there + d]
            one = 1.0 + before
            two = 1.0 + product(w, product(m, one))
            three = 1.0 + product(x, product(n, two))
            four = 1.0 + product(y, product(o, three))
            before = product(z, product(p, four))
            area[there] = product(e, one)
            if count > 1:
                area[there + b] = product(f, two)
            if count > 2:
                area[there + c] = product(g, three)
            if count > 3:
                area[there + d] = product(h, four)
            at, there, count = at + 4 * step, there + 4 * step, count - 4

    return climb


def fill_of(constant: bool) -> Callable[..., Any]:
    """Return the function that computes κ of a structure with itself, from nodes to later ones.

    A square of `area` has weight(τ,t) at row τ < t and κ(τ,t) at row t; if masses differ, they are
    in a second square.
    """
    climb = climb_of(constant)

    @cuda.jit(device=True)
    def fill(begin: int, size: int, task: Task, area: Any) -> None:
        nodes, values, pitch, square = task.nodes, task.values, pitch_of(size), size * pitch_of(size)
        lanes, last, i = 1 << _ROW, size - 1, cuda.threadIdx.x >> _ROW
        while i < size:
            row, twin = np.int64(nodes.rows[begin + i]) * values.width, nodes.twins[begin + i]
            own, j = nodes.own[begin + i], i + 1 + (cuda.threadIdx.x & (lanes - 1))
            while j < size:  # four at a time, which wait for memory together; beyond the last, the last again
                js = j, min(j + lanes, last), min(j + 2 * lanes, last), min(j + 3 * lanes, last)
                a = _weight(row, twin, own, begin + js[0], task)
                b = _weight(row, twin, own, begin + js[1], task)
                c = _weight(row, twin, own, begin + js[2], task)
                d = _weight(row, twin, own, begin + js[3], task)
                area[i * pitch + js[0]], area[js[0] * pitch + i] = a, a
                area[i * pitch + js[1]], area[js[1] * pitch + i] = b, b
                area[i * pitch + js[2]], area[js[2] * pitch + i] = c, c
                area[i * pitch + js[3]], area[js[3] * pitch + i] = d, d
                if not constant:
                    masses = _masses(begin + i, begin, js, task)
                    for n in range(4):
                        area[square + i * pitch + js[n]] = masses[n]
                j += 4 * lanes
            i += cuda.blockDim.x >> _ROW
        cuda.syncthreads()
        apart = 1 + cuda.threadIdx.x
        while apart < size:
            count, end, mass = size - apart, (size - apart - 1) * (pitch + 1), values.pair_mass
            climb(area, apart, apart * pitch, pitch + 1, count, square, mass)
            climb(area, apart + end, apart * pitch + end, -pitch - 1, count, square, mass)
            apart += cuda.blockDim.x
        cuda.syncthreads()

    return fill


def correct_of(constant: bool) -> Callable[..., Any]:
    """Return the function that corrects a structure and prepares its push."""
    fill = fill_of(constant)

    @cuda.jit(device=True)
    def correct(visit: int, task: Task, training: Training, shared: Any) -> None:
        control, place, labels = training.control, training.visits[visit], len(task.targets.prior)
        begin, size = training.begins[place], training.sizes[place]
        scores = size * pitch_of(size) * (1 if constant else 2)
        area = shared[0] if scores + size * labels <= SHARED else training.area
        label = cuda.threadIdx.x >> WARP
        while label < labels:
            t = cuda.threadIdx.x & LANES
            while t < size:
                area[scores + t * labels + label] = _score(label, begin + t, task, training)
                t += 1 << WARP
            label += cuda.blockDim.x >> WARP
        fill(begin, size, task, area)
        if cuda.threadIdx.x <= LANES:  # one warp, which need not wait for the others
            marks = mend(begin, size, scores, area, task, training, shared[1])
            if cuda.threadIdx.x == 0:
                control[BEGIN], control[SIZE], control[MARKS] = begin, size, marks
                control[VISITED] = visit - (place - begin) + size
                control[LOGGED], control[PUSHED] = control[LOGGED] + marks, control[PUSHED] + 1

    return correct


@cuda.jit(device=True)
def mend(begin: int, size: int, scores: int, area: Any, task: Task, training: Training, first: Any) -> int:
    """Correct the nodes of a structure one after another, by one warp; return how many."""
    lane, prior, gram = cuda.threadIdx.x, task.targets.prior, training.gram
    labels, pitch = len(prior), pitch_of(size)
    start, marks, logged = 0, 0, training.control[LOGGED]
    while True:
        together()
        if lane == 0:
            first[0] = size
        together()
        t, wrong = start + lane, False
        while t < size and not wrong:
            label = training.labels[begin + t]
            wrong = label >= 0 and _best(area, scores + t * labels, labels) != label
            if wrong:
                cuda.atomic.min(first, 0, t)
            t += 1 << WARP
        together()
        t = np.int64(first[0])
        if t >= size:
            return marks
        best = _best(area, scores + t * labels, labels)
        _log(t, best, marks, logged, begin, task, training)
        label, amount, is_identity = training.labels[begin + t], training.amounts[begin + t], len(gram) <= 1
        right, wrong = product(amount, prior[label, begin + t]), product(amount, prior[best, begin + t])
        later = t + 1 + lane
        while later < size:
            kappa, row, place = area[later * pitch + t], scores + later * labels, begin + later
            if is_identity:  # only two labels
                area[row + label] += product(kappa, product(right, prior[label, place]))
                area[row + best] -= product(kappa, product(wrong, prior[best, place]))
            else:
                for other in range(labels):
                    gamma = product(right, gram[label, other]) - product(wrong, gram[best, other])
                    area[row + other] += product(kappa, product(gamma, prior[other, place]))
            later += 1 << WARP
        start, marks = t + 1, marks + 1


@cuda.jit(device=True)
def _best(area: Any, first: int, count: int) -> int:
    """Return the first label with the largest score."""
    best, largest = 0, area[first]
    for label in range(1, count, 4):  # four at a time, which wait for memory together
        b, c, d = min(label + 1, count - 1), min(label + 2, count - 1), min(label + 3, count - 1)
        w, x, y, z = area[first + label], area[first + b], area[first + c], area[first + d]
        if w > largest:
            best, largest = label, w
        if x > largest:
            best, largest = b, x
        if y > largest:
            best, largest = c, y
        if z > largest:
            best, largest = d, z
    return best


@cuda.jit(device=True)
def _log(t: int, best: int, mark: int, logged: int, begin: int, task: Task, training: Training) -> None:
    """Log a mistake at node t, with γ of its two labels, or of all if k_y is not the identity."""
    place, prior, gram, entry = begin + t, task.targets.prior, training.gram, cuda.threadIdx.x
    label, amount, first = training.labels[place], training.amounts[place], task.pushes.heads[mark]
    right, wrong = product(amount, prior[label, place]), product(amount, prior[best, place])
    while entry < task.pushes.heads[mark + 1] - first:
        if len(gram) > 1:
            other = entry
            gamma = product(right, gram[label, other]) - product(wrong, gram[best, other])
        else:
            other, gamma = (label, right) if entry == 0 else (best, -wrong)
        task.pushes.labels[first + entry], task.pushes.gamma[first + entry] = other, gamma
        entry += 1 << WARP
    if cuda.threadIdx.x == 0:
        task.pushes.marked[mark] = t
        training.places[logged + mark], training.rivals[logged + mark] = place, best
