"""What of a problem is in the memory of a card at a time, planned before anything is allocated.

Targets are there as a whole. So are sources and the table of kernel values where they fit; else
the sources of pushes come in *loads* of whole structures, each with the rows of the table that its
nodes need: a push reads no others. In training the sources are targets too, and only the table
comes in loads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.checks import available_memory
from fuda.marginalized.engines.cuda import device
from fuda.marginalized.problem import Problem

Array = np.ndarray
# Where not all rows fit, the rows of a load take about so many bytes; one structure may need more.
_LOAD = 1 << 30
_TOGETHER = 32  # the largest number of perceptrons that are trained together


class Plan(NamedTuple):
    """A plan.

    Attributes
    ----------
    needed : int
        The bytes of what the plan has on the card at a time, with one perceptron in training.
    rows, nodes : int
        How many rows of the table and nodes of sources a load may have.
    has_one_load : bool
        Whether one load has all of them.
    keeps_table : bool
        Whether the table fits into the memory here, so that it is computed once
        for all loads.
    perceptrons : int
        How many perceptrons can be trained at a time.
    """

    needed: int
    rows: int
    nodes: int
    has_one_load: bool
    keeps_table: bool
    perceptrons: int


class Sizes(NamedTuple):
    """Bytes of parts of a problem on the card.

    Attributes
    ----------
    targets : int
        The targets with one array of scores, and work space.
    perceptron : int
        What one more perceptron takes.
    node, row : int
        A node of the sources, and a row of the table.
    """

    targets: int
    perceptron: int
    node: int
    row: int


def is_training(problem: Problem) -> bool:
    """Return whether the targets of a problem are its sources."""
    return problem.sources.offsets is problem.targets.offsets


def sizes_of(problem: Problem, places: int, work: int) -> Sizes:
    """Return bytes on the card for so many places of targets and bytes of work space."""
    labels, longest = problem.label_count, int(problem.sources.sizes.max())
    targets = places * (8 + 16 * labels) + work
    perceptron = places * (12 + 8 * labels) + 8 * longest * (2 * longest + 4 + 3 * labels)
    if is_training(problem):
        targets += perceptron + places * (20 + 8 * labels)
    row = 8 * (len(np.unique(problem.targets.classes)) + 1)
    return Sizes(targets, perceptron, 20 + 8 * labels, row)


def plan_of(problem: Problem, sizes: Sizes, free: int, card: device.Card) -> Plan:
    """Return a plan for so many free bytes; raise Refused where there is none.

    Parameters
    ----------
    problem : Problem
        The problem.
    sizes : Sizes
        Bytes of its parts.
    free : int
        The bytes that are free on the card.
    card : Card
        The card.

    Returns
    -------
    Plan
        With one load where all fits, and with several else.
    """
    source, (fixed, perceptron, node, row) = problem.sources, sizes
    nodes, longest = int(source.offsets[-1]), int(source.sizes.max())
    rows, here = len(np.unique(source.classes)), available_memory()  # where the table is computed
    total_bytes, most = fixed + nodes * node + rows * row, rows * row if here is None else here // 2
    keeps_table = rows * row <= most
    if total_bytes <= free and keeps_table:
        return Plan(
            total_bytes, rows, nodes, True, True, min(_TOGETHER, 1 + (free - total_bytes) // perceptron)
        )
    least_nodes = nodes if is_training(problem) else longest
    least = fixed + least_nodes * node + min(rows, longest) * row
    if least > free:
        raise device.Refused(
            f"engine='cuda': the problem needs {least:,} bytes of memory, and {free:,} are free on {card}; "
            "free some, take fewer structures, or set engine='cpu'"
        )
    spare = free - least
    some_rows = min(rows, min(rows, longest) + min(spare // 2, _LOAD, most) // row)
    some_nodes = nodes if is_training(problem) else min(nodes, longest + spare // 2 // node)
    needed = fixed + some_nodes * node + some_rows * row
    return Plan(needed, some_rows, some_nodes, some_rows == rows and some_nodes == nodes, keeps_table, 1)


def loads(plan: Plan, classes: Array, sizes: Array) -> list[slice]:
    """Divide structures, given the classes of their nodes and sizes, into loads of a plan."""
    ends = np.cumsum(sizes)
    if len(classes) <= plan.nodes and len(np.unique(classes)) <= plan.rows:
        return [slice(0, len(sizes))]
    bounds, node_count, rows = [0], 0, set[int]()
    for i, (end, size) in enumerate(zip(ends.tolist(), sizes.tolist(), strict=True)):
        rows_of_structure = set(classes[end - size : end].tolist())
        if node_count and (node_count + size > plan.nodes or len(rows | rows_of_structure) > plan.rows):
            bounds.append(i)
            node_count, rows = 0, set()
        node_count, rows = node_count + size, rows | rows_of_structure
    return [slice(a, b) for a, b in zip(bounds, [*bounds[1:], len(sizes)], strict=True)]
