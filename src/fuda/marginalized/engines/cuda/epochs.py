"""Whole epochs of perceptrons, and scores of a corpus, in one launch each.

Several perceptrons on the same structures, with different orders of visits, make an epoch at the
same time. Each has a block of threads that looks for its next structure with a mistake, and
corrects it node by node as `fuda.marginalized.engines.online` does; then all blocks push what was
corrected to their tiles, one perceptron after another. They wait for each other twice in such a
round, however many perceptrons there are. A structure without mistakes costs a look at its scores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from fuda.marginalized.engines.cuda.kernels import (
    ROWS,
    SHARED,
    Array,
    Pushes,
    Span,
    Targets,
    Task,
    product,
)
from fuda.marginalized.engines.cuda.layout import LANES, MAIL, WARP
from fuda.marginalized.engines.cuda.positions import place_of, position_of
from fuda.marginalized.engines.cuda.scores import Variant, options, pushes_of, threads
from fuda.marginalized.engines.cuda.strips import together

# The entries of `control`. By the first three the block of a perceptron informs the others: the
# first place of a structure or STOP, its size and its number of marks. The next three stay from
# launch to launch: how many places were visited, mistakes logged, and structures pushed. The last
# is the number of places to visit.
BEGIN, SIZE, MARKS, VISITED, LOGGED, PUSHED, VISITS, CONTROLS = range(8)
STOP = -1
_ROW = min(3, WARP)  # the logarithm of the threads that share a row of a square


class TrainingData(NamedTuple):
    """What all perceptrons learn from.

    Attributes
    ----------
    sources, begins, sizes : arrays
        By place: of its structure the first place among sources, the first position among targets,
        and the size.
    labels, amounts : arrays
        By place.
    base : array (L, places), or (1, 1)
        Scores from outside.
    gram : array (L, L), or (1, 1)
        k_y, if it is not the identity.
    """

    sources: Array
    begins: Array
    sizes: Array
    labels: Array
    amounts: Array
    base: Array
    gram: Array


class PerceptronArrays(NamedTuple):
    """The arrays that are not shared by perceptrons: one row for each in every array.

    Attributes
    ----------
    scores : array (perceptrons, L, places)
        Q.
    visits : array
        The places in the order of visits.
    control : array
        See above.
    places, rivals : arrays
        The log of mistakes: places, and what was predicted.
    area : array
        For the kernel of a structure with itself, if shared memory is too small for it.
    marked, labels, gamma : arrays
        The push that it makes again and again, as in `Pushes`.
    """

    scores: Array
    visits: Array
    control: Array
    places: Array
    rivals: Array
    area: Array
    marked: Array
    labels: Array
    gamma: Array


class Training(NamedTuple):
    """An epoch of one perceptron: the shared examples, and its rows of `PerceptronArrays`."""

    examples: TrainingData
    visits: Array
    control: Array
    places: Array
    rivals: Array
    area: Array


@cache
def epoch_kernel(variant: Variant) -> Any:
    """Return the kernel, compiled at its first call or read from disk.

    Parameters
    ----------
    variant : Variant
        What it is compiled for.

    Returns
    -------
    callable
        A kernel of a task, of the examples, of the arrays of each perceptron, and of the most
        pushes of each.
    """
    push, correct = pushes_of(variant), correct_of(variant.constant)
    number = np.uint64 if variant.wide else np.uint32

    @cuda.jit(**options(*threads(variant)))
    def epoch(task: Task, examples: TrainingData, arrays: PerceptronArrays, limit: int) -> None:
        buffer = cuda.shared.array(SHARED, np.float64)
        ids = cuda.shared.array(ROWS, number)
        shared = buffer, ids, cuda.shared.array(MAIL, np.float64)
        grid, goes_on = cuda.cg.this_grid(), True
        while goes_on:
            one = cuda.blockIdx.x
            while one < len(arrays.control):
                training, its = training_of(one, examples, arrays), task_of(one, task, arrays)
                visit = find(its, training, limit, shared)
                if visit >= 0:
                    correct(visit, its, training, shared)
                one += cuda.gridDim.x
            grid.sync()
            goes_on = False
            for one in range(len(arrays.control)):
                begin, size, end = (
                    arrays.control[one, BEGIN],
                    arrays.control[one, SIZE],
                    arrays.control[one, MARKS],
                )
                if begin != STOP:
                    goes_on = True
                    push(Span(begin, size, 0, end, 0, 0), task_of(one, task, arrays), shared)
            grid.sync()

    return epoch


@cuda.jit(device=True)
def task_of(one: int, task: Task, arrays: PerceptronArrays) -> Task:
    """Return the task of one perceptron: its scores, and its push."""
    every, pushes = task.targets, task.pushes
    words, prior, flat, _, tiles, belts, strips = every
    targets = Targets(words, prior, flat, arrays.scores[one], tiles, belts, strips)
    marks = arrays.marked[one], pushes.heads, arrays.labels[one], arrays.gamma[one]
    its = Pushes(pushes.begins, pushes.sizes, pushes.firsts, marks[0], marks[1], marks[2], marks[3])
    return Task(task.nodes, targets, task.values, its, task.states, task.stored)


@cuda.jit(device=True)
def training_of(one: int, examples: TrainingData, arrays: PerceptronArrays) -> Training:
    """Return the epoch of one perceptron."""
    log = arrays.places[one], arrays.rivals[one]
    return Training(examples, arrays.visits[one], arrays.control[one], log[0], log[1], arrays.area[one])


@cuda.jit(device=True)
def _score(label: int, place: int, task: Task, training: Training) -> float:
    """Return S of a label at a place."""
    score = product(task.targets.scores[label, place], task.targets.prior[label, place])
    if len(training.examples.base) > 1:
        score += training.examples.base[label, place]
    return score


@cuda.jit(device=True)
def _best_label(place: int, task: Task, training: Training) -> int:
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
    control = training.control
    none = first_mistake = control[VISITS]
    visit = control[VISITED] if control[PUSHED] < limit else none
    while visit < none:
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            shared[1][0] = none
        cuda.syncthreads()
        at = visit + cuda.threadIdx.x
        if at < none:
            place = training.visits[at]
            if (
                training.examples.labels[place] >= 0
                and _best_label(place, task, training) != training.examples.labels[place]
            ):
                cuda.atomic.min(shared[1], 0, at)
        cuda.syncthreads()
        first_mistake = np.int64(shared[1][0])
        if first_mistake < none:
            break
        visit += cuda.blockDim.x
    if first_mistake == none and cuda.threadIdx.x == 0:
        control[BEGIN] = STOP
        if control[PUSHED] < limit:
            control[VISITED] = none
    return first_mistake if first_mistake < none else -1


@cuda.jit(device=True)
def pitch_of(size: int) -> int:
    """Return the length of rows of a square: odd, so that its columns are in different banks."""
    return size | 1


@cuda.jit(device=True)
def _weight(row: int, id_: int, self_value: float, place: int, task: Task) -> float:
    """Return the weight of a node, by its row of the table, and a place."""
    word = task.targets.words[place]
    column = word & task.values.mask
    weight = task.values.table[np.uint64(row) + np.uint64(column)]
    return self_value if (word ^ column) == id_ else weight


@cuda.jit(device=True)
def _masses(node: int, places: Any, task: Task) -> Any:
    """Return the masses of a node and four places."""
    a, b, c, d, prior = 0.0, 0.0, 0.0, 0.0, task.targets.prior
    for label in range(len(prior)):
        share, row = task.nodes.share[label, node], prior[label]
        a += product(share, row[places[0]])
        b += product(share, row[places[1]])
        c += product(share, row[places[2]])
        d += product(share, row[places[3]])
    return a, b, c, d


def climb_of(constant: bool) -> Callable[..., Any]:
    """Return the function that multiplies κ along a diagonal by u, or from its other end by d."""

    @cuda.jit(device=True)
    def climb(area: Any, at: int, there: int, step: int, count: int, square: int, mass: float) -> None:
        before, m, n, o, p = 0.0, mass, mass, mass, mass
        # Four at a time, which wait for memory together; beyond the last, the last again.
        while count > 0:
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
    def fill(source: int, begin: int, size: int, task: Task, area: Any) -> None:
        nodes, values, pitch, square = task.nodes, task.values, pitch_of(size), size * pitch_of(size)
        lanes, last, i = 1 << _ROW, size - 1, cuda.threadIdx.x >> _ROW
        while i < size:
            row, id_ = np.int64(nodes.rows[source + i]) * values.width, nodes.ids[source + i]
            self_value, j = nodes.self_values[source + i], i + 1 + (cuda.threadIdx.x & (lanes - 1))
            # Four at a time, which wait for memory together; beyond the last, the last again.
            while j < size:
                js = j, min(j + lanes, last), min(j + 2 * lanes, last), min(j + 3 * lanes, last)
                places = (
                    place_of(begin + js[0], task),
                    place_of(begin + js[1], task),
                    place_of(begin + js[2], task),
                    place_of(begin + js[3], task),
                )
                a = _weight(row, id_, self_value, places[0], task)
                b = _weight(row, id_, self_value, places[1], task)
                c = _weight(row, id_, self_value, places[2], task)
                d = _weight(row, id_, self_value, places[3], task)
                area[i * pitch + js[0]], area[js[0] * pitch + i] = a, a
                area[i * pitch + js[1]], area[js[1] * pitch + i] = b, b
                area[i * pitch + js[2]], area[js[2] * pitch + i] = c, c
                area[i * pitch + js[3]], area[js[3] * pitch + i] = d, d
                if not constant:
                    masses = _masses(source + i, places, task)
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
        begin, size = training.examples.begins[place], training.examples.sizes[place]
        source, node = training.examples.sources[place], position_of(place, task) - begin
        scores = size * pitch_of(size) * (1 if constant else 2)
        area = shared[0] if scores + size * labels <= SHARED else training.area
        label = cuda.threadIdx.x >> WARP
        while label < labels:
            t = cuda.threadIdx.x & (LANES - 1)
            while t < size:
                area[scores + t * labels + label] = _score(label, place_of(begin + t, task), task, training)
                t += 1 << WARP
            label += cuda.blockDim.x >> WARP
        fill(source, begin, size, task, area)
        if cuda.threadIdx.x < LANES:  # one warp, which need not wait for the others
            marks = mend(begin, size, scores, area, task, training, shared[1])
            if cuda.threadIdx.x == 0:
                control[BEGIN], control[SIZE], control[MARKS] = source, size, marks
                control[VISITED] = visit - node + size
                control[LOGGED], control[PUSHED] = control[LOGGED] + marks, control[PUSHED] + 1

    return correct


@cuda.jit(device=True)
def mend(begin: int, size: int, scores: int, area: Any, task: Task, training: Training, first: Any) -> int:
    """Correct the nodes of a structure one after another, by one warp; return how many."""
    lane, prior, gram = cuda.threadIdx.x, task.targets.prior, training.examples.gram
    labels, pitch = len(prior), pitch_of(size)
    start, marks, logged = 0, 0, training.control[LOGGED]
    while True:
        together()
        if lane == 0:
            first[0] = size
        together()
        t, wrong = start + lane, False
        while t < size and not wrong:
            label = training.examples.labels[place_of(begin + t, task)]
            wrong = label >= 0 and _best(area, scores + t * labels, labels) != label
            if wrong:
                cuda.atomic.min(first, 0, t)
            t += 1 << WARP
        together()
        t = np.int64(first[0])
        if t >= size:
            return marks
        best = _best(area, scores + t * labels, labels)
        here = place_of(begin + t, task)
        _log(t, best, marks, logged, here, task, training)
        label, amount = training.examples.labels[here], training.examples.amounts[here]
        is_identity = len(gram) <= 1
        right, wrong = product(amount, prior[label, here]), product(amount, prior[best, here])
        later = t + 1 + lane
        while later < size:
            kappa, row = area[later * pitch + t], scores + later * labels
            place = place_of(begin + later, task)
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
def _log(t: int, best: int, mark: int, logged: int, place: int, task: Task, training: Training) -> None:
    """Log a mistake at node t, with γ of its two labels, or of all if k_y is not the identity."""
    prior, gram, entry = task.targets.prior, training.examples.gram, cuda.threadIdx.x
    label, amount, first = (
        training.examples.labels[place],
        training.examples.amounts[place],
        task.pushes.heads[mark],
    )
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
