"""The nodes and edges of a corpus: the one form that recursions, windows and kernels share.

The nodes of all structures are numbered through, structure i holding nodes offsets[i] … offsets[i+1]−1.
Edges run from parent to child. In a chain or tree a node has at most one parent, its *head*;
for any graph the parents of node t are ``parents.indices[parents.indptr[t]:parents.indptr[t+1]]``,
and its children likewise.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from fuda.errors import DataError, place
from fuda.parallel import Block

Array = np.ndarray
# What kernels over a block take of the graph: the block's first structure, offsets, heads, order.
Forest = tuple[int, Array, Array, Array]


class Neighbours(NamedTuple):
    """For each node a list of nodes in ascending order, in CSR form (int64, C-contiguous)."""

    indptr: Array
    indices: Array


class Links(NamedTuple):
    """The nodes of a corpus, parents first, and the parents and children of each node."""

    order: Array
    parents: Neighbours
    children: Neighbours


class Span(NamedTuple):
    """One structure: the nodes begin … end−1 of a corpus with these links."""

    links: Links
    begin: int
    end: int


class Graph:
    """The nodes and edges of a corpus of chains or trees; forests are fine.

    Parameters
    ----------
    offsets : (n + 1,) array of int
        The bounds of the structures.
    parents : (N,) array of int, optional
        The parent of each node, as an index into the corpus, −1 at a root. Default: chains.
    order : (N,) array of int, optional
        The nodes, structure by structure, parents before children. Default: as they are numbered.

    Attributes
    ----------
    offsets, order : as given
    heads : (N,) array of int
        The parent of each node of a chain or tree, −1 at a root.
    edges : (E, 2) array of int
        Parents and children, sorted by child.
    parents, children : Neighbours
        The parents and the children of each node.
    roots, leaves : arrays of int
        The nodes without a parent, and those without a child.

    Examples
    --------
    >>> Graph([0, 3, 5]).heads.tolist()
    [-1, 0, 1, -1, 3]
    """

    def __init__(self, offsets: Array, parents: Array | None = None, order: Array | None = None) -> None:
        self.offsets = np.array(offsets, dtype=np.int64)
        if self.offsets.ndim != 1 or len(self.offsets) == 0 or self.offsets[0] != 0:
            raise DataError("offsets are the bounds of the structures: one dimension, the first 0")
        if (np.diff(self.offsets) < 1).any():
            empty = place(int(np.diff(self.offsets).argmin()))
            raise DataError(f"{empty} has no node; drop empty structures")
        self.heads = _chain_heads(self.offsets) if parents is None else np.array(parents, dtype=np.int64)
        self.order = np.arange(self.node_count) if order is None else np.array(order, dtype=np.int64)
        self._check()

    @classmethod
    def of_chains(cls, offsets: Array) -> Self:
        """Chains between bounds that have been checked."""
        graph = cls.__new__(cls)
        graph.offsets, graph.heads = offsets, _chain_heads(offsets)
        graph.order = np.arange(len(graph.heads))
        return graph

    @classmethod
    def of_edges(cls, offsets: Array, edges: Array, order: Array) -> Self:
        """Any acyclic graph, by edges (sorted by child) and an order that have been checked."""
        graph = cls.__new__(cls)
        graph.offsets, graph.edges, graph.order = offsets, edges, order
        return graph

    def _check(self) -> None:
        owner = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        if self.heads.shape != owner.shape or self.order.shape != owner.shape:
            raise DataError(
                f"parents and order need one entry per node, {self.node_count} in all, "
                f"but have {self.heads.size} and {self.order.size}"
            )
        if not np.array_equal(np.sort(self.order), np.arange(self.node_count)):
            raise DataError("order must list every node of the corpus once")
        if not np.array_equal(owner[self.order], owner):
            raise DataError("order must list the nodes structure by structure, as offsets does")
        bad = (self.heads < self.offsets[owner]) | (self.heads >= self.offsets[owner + 1])
        bad &= self.heads != -1
        if bad.any():
            raise DataError(f"{self.place(int(bad.argmax()))}: its parent lies outside its structure")
        rank = np.empty_like(self.order)
        rank[self.order] = np.arange(self.node_count)
        late = (self.heads >= 0) & (rank[self.heads] >= rank)
        if late.any():
            raise DataError(f"{self.place(int(late.argmax()))}: order must list a parent before its children")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def node_count(self) -> int:
        """The number of nodes of all structures."""
        return int(self.offsets[-1])

    @cached_property
    def heads(self) -> Array:
        """The parent of each node of a chain or tree, −1 at a root."""
        heads = np.full(self.node_count, -1, dtype=np.int64)
        heads[self.edges[:, 1]] = self.edges[:, 0]
        return heads

    @property
    def links(self) -> Links:
        """Order, parents and children, as arguments of compiled functions."""
        return Links(self.order, self.parents, self.children)

    @cached_property
    def edges(self) -> Array:
        """(E, 2) parents and children, sorted by child."""
        children = np.flatnonzero(self.heads >= 0)
        return np.column_stack([self.heads[children], children])

    @cached_property
    def parents(self) -> Neighbours:
        """The parents of each node."""
        return self._neighbours(self.edges[:, 1], self.edges[:, 0])

    @cached_property
    def children(self) -> Neighbours:
        """The children of each node."""
        by_parent = np.lexsort((self.edges[:, 1], self.edges[:, 0]))
        return self._neighbours(self.edges[by_parent, 0], self.edges[by_parent, 1])

    @cached_property
    def roots(self) -> Array:
        """The nodes without a parent."""
        return self._not_among(self.edges[:, 1])

    @cached_property
    def leaves(self) -> Array:
        """The nodes without a child."""
        return self._not_among(self.edges[:, 0])

    def take(self, structures: Array) -> Graph:
        """Some of the structures, by their numbers, in that order."""
        sizes = np.diff(self.offsets)[structures]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        nodes = self.nodes_of(structures)
        moved = np.repeat(offsets[:-1] - self.offsets[:-1][structures], sizes)  # of each node
        near = self.parents
        counts = np.diff(near.indptr)[nodes]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        above = near.indices[np.repeat(near.indptr[:-1][nodes], counts) + within]
        edges = np.column_stack([above + np.repeat(moved, counts), np.repeat(np.arange(len(nodes)), counts)])
        return Graph.of_edges(offsets, edges, self.order[nodes] + moved)

    def nodes_of(self, structures: Array) -> Array:
        """The nodes of some structures, one structure after another."""
        starts, sizes = self.offsets[:-1][structures], np.diff(self.offsets)[structures]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(starts, sizes) + within

    def nodes(self, block: Block) -> slice:
        """The nodes of a block of structures."""
        return slice(int(self.offsets[block[0]]), int(self.offsets[block[1]]))

    def forest(self, block: Block) -> Forest:
        """What kernels over a block of chains or trees take."""
        return block[0], self.offsets, self.heads, self.order

    def place(self, node: int) -> str:
        """How messages name a node: its structure and its number there."""
        structure = int(np.searchsorted(self.offsets, node, side="right")) - 1
        return place(structure, int(node - self.offsets[structure]))

    def _neighbours(self, nodes: Array, others: Array) -> Neighbours:
        indptr = np.zeros(self.node_count + 1, dtype=np.int64)
        np.cumsum(np.bincount(nodes, minlength=self.node_count), out=indptr[1:])
        return Neighbours(indptr, np.array(others, dtype=np.int64))

    def _not_among(self, nodes: Array) -> Array:
        others = np.ones(self.node_count, dtype=bool)
        others[nodes] = False
        return np.flatnonzero(others)


def _chain_heads(offsets: Array) -> Array:
    """The node before each node, −1 at the first of each chain."""
    heads = np.arange(-1, offsets[-1] - 1)
    heads[offsets[:-1]] = -1
    return heads
