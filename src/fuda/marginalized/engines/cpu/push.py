"""Definitions shared by the pushes of all shapes.

A push from a source structure with nodes τ and coefficients γ adds to every target node t

    Q(t,σ) += Σ_τ κ(τ,t) γ_τ(σ),

with κ as in `fuda.marginalized.recursions`; only *marked* τ, those with γ_τ ≠ 0, need κ. A push
is applied to a whole block of target structures: a row κ(τ,·) over the block is computed from
other rows by loops over contiguous memory. This depends on the features: `runs`, `trees`,
`graphs`, `lines`. The remaining cases (sequences with gaps, chain priors, scaled numbers) are
computed by `pairs`, one pair of structures at a time.

Rows of weight = c² k_x come from a table by the classes of observations
(`fuda.marginalized.kernel_classes`). The table has the value of two different observations of
these classes; the value of an observation with itself, found by its id, is in `self_values`.
Where a table would be too large, values follow from the features that two observations have in
common, which are counted for all pushed observations and those of a block before the block is
worked on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.marginalized.engines.log import Pushes
from fuda.marginalized.engines.values import Values
from fuda.marginalized.kernel_classes import APART, NONE
from fuda.marginalized.numbers import Array
from fuda.marginalized.products import common
from fuda.runtime.compiled import compiled
from fuda.runtime.hash_tables import FREE, slot_of

NODES = 4  # masses are computed for so many nodes together,
_LABELS, _TILE = 3, 256  # for so many labels and places


# The places of each id as linked lists: keys and first places by hash, and next places.
Lists = tuple[Array, Array, Array]


class Sources(NamedTuple):
    """The source nodes: classes, ids, self values, and Σ_ρ P(ρ|τ) k_y(ρ,·) (N, L)."""

    classes: Array
    ids: Array
    self_values: Array
    share: Array


class Targets(NamedTuple):
    """The places of target nodes: class and id of each, and (L, places) P(σ|t)."""

    classes: Array
    ids: Array
    share: Array


class TargetColumns(NamedTuple):
    """The columns of places in the table or in counts, and the places of their norms in levels."""

    numbers: Array
    norms: Array


class Task(NamedTuple):
    """Pushes with their targets, sources and kernel values."""

    targets: Targets
    sources: Sources
    values: Values
    pushes: Pushes


@compiled
def counted(task: Task, classes: Array, first: int, last: int) -> Task:
    """Return the task with common features of pushed structures and these target classes counted.

    Rows and columns are in the order in which they are first met, so that what is used together
    is together in memory.
    """
    values, pushes = task.values, task.pushes
    if not len(values.products.levels):
        return task
    row_of, rows, row_count = np.full_like(values.row_of, -1), np.empty_like(values.row_of), 0
    for p in range(first, last):
        for class_ in task.sources.classes[pushes.begins[p] : pushes.ends[p]]:
            if row_of[class_] < 0:
                row_of[class_], rows[row_count] = row_count, class_
                row_count += 1
    column_of, columns, column_count = np.full_like(values.column_of, -1), np.empty_like(values.column_of), 0
    empty = len(column_of) - 1
    column_of[empty] = 0  # any, since its norm makes values 0
    for class_ in classes:
        if column_of[class_] < 0:
            column_of[class_], columns[column_count] = column_count, class_
            column_count += 1
    counts = common(values.products, rows[:row_count], columns[:column_count])
    counted_values = Values(values.table, values.row_of, column_of, values.products, counts, row_of)
    return Task(task.targets, task.sources, counted_values, pushes)


@compiled
def columns_of(classes: Array, count: int, values: Values) -> TargetColumns:
    """Return the columns of target classes; further places, up to a count, are empty."""
    norms, empty = values.products.column_norms, len(values.column_of) - 1
    # Unsigned, which avoids tests of the sign where they are indices.
    columns = TargetColumns(np.empty(count, np.uint32), np.zeros(count, np.uint32))
    columns.numbers[len(classes) :] = values.column_of[empty]
    for t in range(len(classes)):
        columns.numbers[t] = values.column_of[classes[t]]
    if len(norms):
        columns.norms[len(classes) :] = norms[empty]
        for t in range(len(classes)):
            columns.norms[t] = norms[classes[t]]
    return columns


# Loops over nodes and places take arrays out of tuples before they begin: whatever is taken out of
# a tuple has a reference that is counted, which takes as long as a row of a sentence.
@compiled(inline="always")
def look_up(table: Array, row: int, at: Array, factor: float, rows: Array, i: int, edge: int) -> None:
    """Write the values of a source class with columns, times a factor, into rows[i, edge:]."""
    r, n, first = np.uint64(row), np.uint64(i), np.uint64(edge)
    for t in range(np.uint64(len(at))):
        rows[n, first + t] = factor * table[r, at[t]]


@compiled(inline="always")
def look_up_counted(
    levels: Array, norm: int, norms: Array, counts: Array, row: int, at: Array, factor: float,
    rows: Array, i: int, edge: int,
) -> None:  # fmt: skip
    """The same by common features."""
    r, place, n, first = np.uint64(row), np.uint64(norm), np.uint64(i), np.uint64(edge)
    for t in range(np.uint64(len(at))):
        rows[n, first + t] = factor * levels[place, norms[t] + counts[r, at[t]]]


@compiled
def masses(of_sources: Array, of_targets: Array, begin: int, end: int, edge: int, rows: Array) -> None:
    """Write mass(i, t) = Σ_σ of_sources(i, σ) of_targets(σ, begin + t) into rows(i, edge + t).

    The number of rows is a multiple of NODES. Several nodes at a time are combined with a tile of
    targets whose shares fit into the L1 cache.
    """
    count, labels = of_sources.shape
    shares = np.zeros((-(-count // NODES) * NODES, -(-labels // _LABELS) * _LABELS))
    for i in range(count):
        for label in range(labels):
            shares[i, label] = of_sources[i, label]
    flat, width = rows.reshape(-1), rows.shape[1]
    for t in range(begin, end, _TILE):
        size, at = min(_TILE, end - t), edge + t - begin
        for i in range(0, count, NODES):
            for j in range(NODES):
                clear = np.uint64((i + j) * width + at)
                for n in range(np.uint64(size)):
                    flat[clear + n] = 0.0
            for label in range(0, labels, _LABELS):
                _few_masses(shares, i, label, of_targets, t, size, flat, i * width + at, width)


@compiled(fastmath={"contract"})
def _few_masses(
    shares: Array, i: int, label: int, of_targets: Array, t: int, size: int, flat: Array, at: int, width: int
) -> None:
    """Add the terms of _LABELS labels to the masses of NODES nodes."""
    one, k, p = np.uint64(1), np.uint64(i), np.uint64(label)
    q, r = p + one, p + one + one
    a0, a1, a2 = shares[k, p], shares[k, q], shares[k, r]
    b0, b1, b2 = shares[k + one, p], shares[k + one, q], shares[k + one, r]
    k += one + one
    c0, c1, c2 = shares[k, p], shares[k, q], shares[k, r]
    d0, d1, d2 = shares[k + one, p], shares[k + one, q], shares[k + one, r]
    # Beyond the last label the shares are 0, so any row can be used.
    q, r = min(q, np.uint64(len(of_targets) - 1)), min(r, np.uint64(len(of_targets) - 1))
    first, a, w = np.uint64(t), np.uint64(at), np.uint64(width)
    b, c, d = a + w, a + w + w, a + w + w + w
    for n in range(np.uint64(size)):
        x, y, z = of_targets[p, first + n], of_targets[q, first + n], of_targets[r, first + n]
        flat[a + n] += a0 * x + a1 * y + a2 * z
        flat[b + n] += b0 * x + b1 * y + b2 * z
        flat[c + n] += c0 * x + c1 * y + c2 * z
        flat[d + n] += d0 * x + d1 * y + d2 * z


@compiled
def places_by_id(ids: Array) -> Lists:
    """Return the places of each id, by a hash table, since lookups are in the inner loop."""
    capacity = 64
    while capacity < 2 * len(ids):
        capacity *= 2
    keys, heads = np.full(capacity, FREE, dtype=np.int64), np.full(capacity, -1, dtype=np.int64)
    others = np.full(len(ids), -1, dtype=np.int64)
    for t in range(len(ids)):
        if ids[t] != NONE:
            at = slot_of(keys, ids[t])
            keys[at] = ids[t]
            others[t] = heads[at]
            heads[at] = t
    return keys, heads, others


@compiled
def first_place(id_: int, lists: Lists) -> int:
    """Return the first place of an id, −1 if there is none."""
    keys, heads, _ = lists
    return -1 if id_ == APART else heads[slot_of(keys, id_)]


class Block(NamedTuple):
    """Target nodes in any order: places, values, their columns, ids, and P(σ|t) (L, nodes)."""

    places: Array
    values: Values
    columns: TargetColumns
    lists: Lists
    share: Array


@compiled
def block_of(places: Array, task: Task, first: int, last: int) -> Block:
    """Return the block of these places, for pushes first … last−1."""
    targets, classes = task.targets, task.targets.classes[places]
    values = counted(task, classes, first, last).values
    columns = columns_of(classes, len(places), values)
    share = np.empty((len(targets.share), len(places)))
    for label in range(len(share)):
        row = targets.share[label]
        for t in range(len(places)):
            share[label, t] = row[places[t]]
    return Block(places, values, columns, places_by_id(targets.ids[places]), share)


@compiled
def most_nodes(pushes: Pushes, first: int, last: int) -> tuple[int, int]:
    """Return the largest size of a pushed structure, and the most marked nodes in one."""
    longest, most = 0, 0
    for p in range(first, last):
        longest = max(longest, pushes.ends[p] - pushes.begins[p])
        most = max(most, pushes.firsts[p + 1] - pushes.firsts[p])
    return longest, most


@compiled
def fill_rows(
    start: int, stop: int, task: Task, block: Block, mass: float, weight: Array, product: Array
) -> None:
    """Write the rows of weight and of k = weight · mass over a block; `mass` is as in `runs`."""
    sources, values, lists, (at, norms) = task.sources, block.values, block.lists, block.columns
    classes, ids, self_values, others = sources.classes, sources.ids, sources.self_values, lists[2]
    table, row_of, counts, count_of = values.table, values.row_of, values.counts, values.count_of
    levels, row_norms = values.products.levels, values.products.row_norms
    for i in range(stop - start):
        class_ = classes[start + i]
        if len(levels):
            look_up_counted(levels, row_norms[class_], norms, counts, count_of[class_], at, 1.0, weight, i, 0)
        else:
            look_up(table, row_of[class_], at, 1.0, weight, i, 0)
        place = first_place(ids[start + i], lists)
        while place >= 0:
            weight[i, place] = self_values[start + i]
            place = others[place]
    if mass:
        for i in range(stop - start):
            row, k = weight[i], product[i]
            for t in range(len(row)):
                k[t] = mass * row[t]
    else:
        masses(sources.share[start:stop], block.share, 0, len(block.places), 0, product)
        for i in range(stop - start):
            row, k = weight[i], product[i]
            for t in range(len(row)):
                k[t] *= row[t]


@compiled
def add_row(gamma: Array, kappa: Array, block: Block, scores: Array) -> None:
    """Q(t,σ) += κ(t) γ(σ) over a block."""
    for label in range(len(gamma)):
        g = gamma[label]
        if g != 0.0:
            row = scores[label]
            for t in range(len(kappa)):
                row[block.places[t]] += g * kappa[t]
