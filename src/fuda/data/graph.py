"""The nodes and edges of a corpus, in the form that recursions, windows and kernels share.

The nodes of all structures are numbered consecutively: structure i has the nodes offsets[i] …
offsets[i+1]−1. Edges are directed from parent to child. In a chain or tree a node has at most one
parent, its *head*; in any graph the parents of node t are
``parents.indices[parents.indptr[t]:parents.indptr[t+1]]``, and its children likewise.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from fuda.errors import DataError, place
from fuda.runtime.parallel import Block

Array = np.ndarray
# The arguments of compiled functions over a block: its first structure, offsets, heads, order.
Forest = tuple[int, Array, Array, Array]


class Neighbours(NamedTuple):
    """A list of nodes per node, in ascending order, in CSR form (int64, C-contiguous)."""

    indptr: Array
    indices: Array


class Adjacency(NamedTuple):
    """The nodes of a corpus, parents first, and the parents and children of each node."""

    order: Array
    parents: Neighbours
    children: Neighbours


class Span(NamedTuple):
    """One structure: the nodes begin … end−1 of a corpus of this adjacency."""

    adjacency: Adjacency
    begin: int
    end: int


class Graph:
    """The nodes and edges of a corpus of chains or trees; forests are allowed.

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
            raise DataError("offsets are the bounds of the structures: give one dimension, the first 0")
        if (np.diff(self.offsets) < 1).any():
            empty = place(int(np.diff(self.offsets).argmin()))
            raise DataError(f"{empty} has no node; drop empty structures")
        self.heads = _chain_heads(self.offsets) if parents is None else np.array(parents, dtype=np.int64)
        self.order = np.arange(self.node_count) if order is None else np.array(order, dtype=np.int64)
        self._check()

    @classmethod
    def of_chains(cls, offsets: Array) -> Self:
        """Return a graph of chains between bounds that have been checked.

        Parameters
        ----------
        offsets : array of int
            The bounds of the structures: the i-th has the nodes offsets[i] … offsets[i + 1] − 1.

        Returns
        -------
        Graph
            The chains.
        """
        graph = cls.__new__(cls)
        graph.offsets, graph.heads = offsets, _chain_heads(offsets)
        graph.order = np.arange(len(graph.heads))
        graph.roots, graph.leaves = offsets[:-1], offsets[1:] - 1
        return graph

    @classmethod
    def of_edges(cls, offsets: Array, edges: Array, order: Array) -> Self:
        """Return any acyclic graph, from checked edges (sorted by child) and a checked order.

        Parameters
        ----------
        offsets : array of int
            The bounds of the structures: the i-th has the nodes offsets[i] … offsets[i + 1] − 1.
        edges : array of shape (n_edges, 2)
            Pairs (parent, child).
        order : array of int
            The nodes, each after its parents, structure by structure.

        Returns
        -------
        Graph
            The graph.
        """
        graph = cls.__new__(cls)
        graph.offsets, graph.edges, graph.order = offsets, edges, order
        return graph

    def _check(self) -> None:
        """Raise DataError if heads and order do not fit the structures."""
        owner = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        if self.heads.shape != owner.shape or self.order.shape != owner.shape:
            raise DataError(
                f"parents and order have {self.heads.size} and {self.order.size} entries; give one entry "
                f"per node, {self.node_count} in all"
            )
        if not np.array_equal(np.sort(self.order), np.arange(self.node_count)):
            raise DataError("order does not list all nodes; give every node of the corpus once")
        if not np.array_equal(owner[self.order], owner):
            raise DataError("order mixes structures; give the nodes structure by structure, as offsets does")
        bad = (self.heads < self.offsets[owner]) | (self.heads >= self.offsets[owner + 1])
        bad &= self.heads != -1
        if bad.any():
            child = self.place(int(bad.argmax()))
            raise DataError(f"{child}: its parent is outside its structure; give one within it, or -1")
        rank = np.empty_like(self.order)
        rank[self.order] = np.arange(self.node_count)
        late = (self.heads >= 0) & (rank[self.heads] >= rank)
        if late.any():
            child = self.place(int(late.argmax()))
            raise DataError(f"{child}: order lists it before its parent; move it behind that")

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
    def adjacency(self) -> Adjacency:
        """Order, parents and children, as arguments of compiled functions."""
        return Adjacency(self.order, self.parents, self.children)

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
        return self._neighbours(*self.edges[np.lexsort((self.edges[:, 1], self.edges[:, 0]))].T)

    @cached_property
    def roots(self) -> Array:
        """The nodes without a parent."""
        return np.flatnonzero(np.diff(self.parents.indptr) == 0)

    @cached_property
    def leaves(self) -> Array:
        """The nodes without a child."""
        return np.flatnonzero(np.diff(self.children.indptr) == 0)

    def take(self, structures: Array) -> Graph:
        """Return some of the structures, by index, in that order.

        Parameters
        ----------
        structures : array of int
            The numbers of the structures.

        Returns
        -------
        Graph
            The structures as a graph.
        """
        sizes = np.diff(self.offsets)[structures]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        nodes = self.nodes_of(structures)
        moved = np.repeat(offsets[:-1] - self.offsets[:-1][structures], sizes)  # per node
        parents = self.parents
        counts = np.diff(parents.indptr)[nodes]
        above = parents.indices[ranges(parents.indptr[:-1][nodes], counts)]
        edges = np.column_stack([above + np.repeat(moved, counts), np.repeat(np.arange(len(nodes)), counts)])
        return Graph.of_edges(offsets, edges, self.order[nodes] + moved)

    def nodes_of(self, structures: Array) -> Array:
        """Return the nodes of some structures, one structure after another.

        Parameters
        ----------
        structures : array of int
            The numbers of the structures.

        Returns
        -------
        array of int
            The numbers of the nodes.
        """
        return ranges(self.offsets[:-1][structures], np.diff(self.offsets)[structures])

    def nodes(self, block: Block) -> slice:
        """Return the nodes of a block of structures.

        Parameters
        ----------
        block : (int, int)
            The first structure of the block, and the one past its last.

        Returns
        -------
        slice
            The first node, and the one past the last.
        """
        return slice(int(self.offsets[block[0]]), int(self.offsets[block[1]]))

    def forest(self, block: Block) -> Forest:
        """Return the arguments of compiled functions over a block of chains or trees.

        Parameters
        ----------
        block : (int, int)
            The first structure of the block, and the one past its last.

        Returns
        -------
        tuple
            The first structure, and the arrays offsets, heads and order.
        """
        return block[0], self.offsets, self.heads, self.order

    def place(self, node: int) -> str:
        """Return the name of a node in messages: its structure and its index there.

        Parameters
        ----------
        node : int
            The number of the node.

        Returns
        -------
        str
            The name.
        """
        structure = int(np.searchsorted(self.offsets, node, side="right")) - 1
        return place(structure, int(node - self.offsets[structure]))

    def _neighbours(self, nodes: Array, others: Array) -> Neighbours:
        """The neighbours from pairs of nodes, sorted."""
        indptr = np.zeros(self.node_count + 1, dtype=np.int64)
        np.cumsum(np.bincount(nodes, minlength=self.node_count), out=indptr[1:])
        return Neighbours(indptr, np.array(others, dtype=np.int64))


def ranges(starts: Array, counts: Array) -> Array:
    """Return the ranges starts[i] … starts[i] + counts[i] − 1, one after another.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    return np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)


def _chain_heads(offsets: Array) -> Array:
    """The node before each node, −1 at the first of each chain."""
    heads = np.arange(-1, offsets[-1] - 1)
    heads[offsets[:-1]] = -1
    return heads
