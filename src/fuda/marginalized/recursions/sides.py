"""Sides: whether a child stands before or after its parent, in the order of node numbers.

In a dependency tree that is the order of the words. Parts with sides match edges of the same side
only. Where parents are numbered before all of their children, as in sequences, there is one side.
"""

from __future__ import annotations

from fuda.data.graph import Adjacency, Span
from fuda.runtime.compiled import compiled


@compiled
def side(adjacency: Adjacency, node: int) -> int:
    """Return 1 if a node of a tree stands after its parent, else 0; 1 at a root."""
    first = adjacency.parents.indptr[node]
    if first == adjacency.parents.indptr[node + 1]:
        return 1
    return 1 if node > adjacency.parents.indices[first] else 0


@compiled
def meet(a: Span, i: int, b: Span, j: int, sided: bool) -> bool:
    """Return whether the edges above two nodes of trees match, by index in their structures."""
    return not sided or side(a.adjacency, a.begin + i) == side(b.adjacency, b.begin + j)
