"""Pushes by pairs of structures, for every shape, prior and kind of numbers."""

from __future__ import annotations

from typing import NamedTuple

from fuda.data.graph import Adjacency, Span
from fuda.marginalized.engines.cpu.push import Task, counted
from fuda.marginalized.numbers import Array, Cells, plus, read, times, write
from fuda.marginalized.recursions import chain_prior, shapes
from fuda.marginalized.recursions.chain_prior import Steps
from fuda.runtime.compiled import compiled


class Block(NamedTuple):
    """Target structures: the first place, the first node and the last node + 1 of each."""

    places: Array
    begins: Array
    ends: Array


class Workspace(NamedTuple):
    """Arrays for weight, mass and κ of two structures, and the work arrays of the recursion."""

    weight: Array
    mass: Array
    kappa: Cells
    work: Cells


@compiled
def pairs(
    shape: int,
    gap: float,
    block: Block,
    adjacency: tuple[Adjacency, Adjacency],
    task: Task,
    first: int,
    last: int,
    workspace: Workspace,
    scores: Cells,
) -> None:
    """Add pushes first … last−1 to the scores of a block; `adjacency` is that of both sides."""
    weight, mass, kappa, work = workspace
    task, pushes = counted(task, classes_of(block, task), first, last), task.pushes
    for p in range(first, last):
        start, stop = pushes.begins[p], pushes.ends[p]
        for j in range(len(block.places)):
            place, begin, end = block.places[j], block.begins[j], block.ends[j]
            fill_weight(start, stop, place, end - begin, task, weight)
            fill_mass(start, stop, place, end - begin, task, mass)
            a, b = Span(adjacency[0], start, stop), Span(adjacency[1], begin, end)
            shapes.fill(shape, a, b, weight, mass, gap, kappa, work)
            for m in range(pushes.firsts[p], pushes.firsts[p + 1]):
                i = pushes.marked[m] - start
                for label in range(pushes.gamma.shape[1]):
                    g = pushes.gamma[m, label]
                    if g != 0.0:
                        for t in range(end - begin):
                            more = times(g, read(kappa, (i, t)))
                            at = (label, place + t)
                            write(scores, at, plus(read(scores, at), more))


@compiled
def chains(
    block: Block,
    transitions: tuple[tuple[Array, Array], tuple[Array, Array]],
    task: Task,
    first: int,
    last: int,
    workspace: Workspace,
    scores: Cells,
) -> None:
    """As `pairs`, for runs under a chain prior, where κ depends on the label.

    `transitions` are those of sources and of targets, before and after.
    """
    weight, _, kappa, work = workspace
    task = counted(task, classes_of(block, task), first, last)
    (before_a, after_a), (before_b, after_b) = transitions
    pushes, labels = task.pushes, before_a.shape[1]
    for p in range(first, last):
        start, stop = pushes.begins[p], pushes.ends[p]
        for j in range(len(block.places)):
            place, begin, end = block.places[j], block.begins[j], block.ends[j]
            fill_weight(start, stop, place, end - begin, task, weight)
            a, b = Steps(before_a, after_a, start, stop), Steps(before_b, after_b, begin, end)
            chain_prior.fill_diagonal(a, b, weight, kappa, work)
            for m in range(pushes.firsts[p], pushes.firsts[p + 1]):
                i = pushes.marked[m] - start
                for label in range(pushes.gamma.shape[1]):
                    g = pushes.gamma[m, label]
                    if g != 0.0:
                        for t in range(end - begin):
                            more = times(g, read(kappa, (i, t, label % labels)))
                            at = (label, place + t)
                            write(scores, at, plus(read(scores, at), more))


@compiled
def classes_of(block: Block, task: Task) -> Array:
    """Return the classes of the places of a block."""
    last = len(block.places) - 1
    end = block.places[last] + block.ends[last] - block.begins[last]
    return task.targets.classes[block.places[0] : end]


@compiled
def fill_weight(start: int, stop: int, place: int, size: int, task: Task, weight: Array) -> None:
    """Write weight(τ,t) of source nodes start … stop−1 and `size` places from `place` on."""
    targets, sources, values, _ = task
    classes, ids = targets.classes[place : place + size], targets.ids[place : place + size]
    source_classes, source_ids, self_values = sources.classes, sources.ids, sources.self_values
    table, row_of, column_of, products, counts, count_of = values
    levels, row_norms, norms = products.levels, products.row_norms, products.column_norms
    for i in range(stop - start):
        class_, id_, self_value = source_classes[start + i], source_ids[start + i], self_values[start + i]
        if len(levels):
            row, norm = count_of[class_], row_norms[class_]
            for t in range(size):
                level = norms[classes[t]] + counts[row, column_of[classes[t]]]
                weight[i, t] = self_value if ids[t] == id_ else levels[norm, level]
        else:
            row = row_of[class_]
            for t in range(size):
                weight[i, t] = self_value if ids[t] == id_ else table[row, column_of[classes[t]]]


@compiled
def fill_mass(start: int, stop: int, place: int, size: int, task: Task, mass: Array) -> None:
    """Write mass(τ,t) of the same nodes."""
    for i in range(stop - start):
        for t in range(size):
            mass[i, t] = 0.0
        for label in range(task.sources.share.shape[1]):
            x = task.sources.share[start + i, label]
            for t in range(size):
                mass[i, t] += x * task.targets.share[label, place + t]
