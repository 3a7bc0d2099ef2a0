"""Edges that close a cycle, found by a walk through the graph."""

from __future__ import annotations

from collections.abc import Iterable

Edge = tuple[int, int]


def without_cycles(nodes: int, edges: Iterable[Edge], roots: Iterable[int] = ()) -> list[Edge]:
    """Return the edges of a graph without those that close a cycle.

    The graph is walked depth first: from the roots, then from nodes without a parent, then from
    all others, always in index order. An edge back to a node on the way from the start to the
    present node closes a cycle and is left out.

    Parameters
    ----------
    nodes : int
        The number of nodes.
    edges : iterable of (parent, child)
        The edges.
    roots : iterable of int
        Where to begin.

    Returns
    -------
    list of (parent, child)
        The other edges, in order.

    Examples
    --------
    >>> without_cycles(3, [(0, 1), (1, 2), (2, 0), (0, 2)])
    [(0, 1), (0, 2), (1, 2)]
    """
    listed = sorted(set(edges))
    children: list[list[int]] = [[] for _ in range(nodes)]
    parentless = set(range(nodes))
    for parent, child in listed:
        children[parent].append(child)
        parentless.discard(child)
    closing: set[Edge] = set()
    on_path: set[int] = set()
    finished: set[int] = set()
    for start in (*roots, *sorted(parentless), *range(nodes)):
        if start in finished:
            continue
        path = [(start, iter(children[start]))]
        on_path.add(start)
        while path:
            node, ahead = path[-1]
            child = next(ahead, -1)
            if child < 0:
                path.pop()
                on_path.discard(node)
                finished.add(node)
            elif child in on_path:
                closing.add((node, child))
            elif child not in finished:
                on_path.add(child)
                path.append((child, iter(children[child])))
    return [edge for edge in listed if edge not in closing]
