"""The shape of a corpus and the scores laid on it.

A labeling y of a chain or tree scores

    F(y) = Σ_t s_t(y_t) + Σ_{edges p → t} A_t(y_p, y_t).

All structures of a corpus lie one after another in packed arrays over its N nodes: ``scores`` (N, L)
holds s, and ``transitions`` holds A, either one (L, L) matrix for all edges or an (N, L, L) array whose
row t is the edge from t's parent to t (the rows of roots are not read). −inf forbids a label or a pair;
scores of the start and the end, known labels and forbidden transitions all go in this way.
"""

from __future__ import annotations

import numpy as np

from fuda.errors import DataError, place
from fuda.parallel import Block, blocks

Array = np.ndarray
# What kernels over a block take of the graph: the block's first structure, offsets, parents, order.
Forest = tuple[int, Array, Array, Array]
# What kernels over one structure take: its nodes, parents first; the first node; parents, matrices, stride.
Tree = tuple[Array, int, Array, Array, int]


class Graph:
    """The nodes and edges of a corpus of chains or trees; forests are fine.

    ``offsets`` (n+1,): structure i holds the nodes offsets[i] .. offsets[i+1]−1.
    ``parents`` (N,): each node's parent, as an index into the corpus, −1 at a root. Without it: chains.
    ``order`` (N,): the nodes, structure by structure, parents before children; by default as they stand.

    >>> Graph([0, 3, 5]).parents.tolist()
    [-1, 0, 1, -1, 3]
    """

    def __init__(self, offsets: Array, parents: Array | None = None, order: Array | None = None) -> None:
        offsets = np.array(offsets, dtype=np.int64)
        if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0:
            raise DataError("offsets are the bounds of the structures: one dimension, the first 0")
        if (np.diff(offsets) < 1).any():
            raise DataError(f"{place(int(np.diff(offsets).argmin()))} has no node; drop empty structures")
        nodes = np.arange(offsets[-1])
        if parents is None:
            parents = nodes - 1
            parents[offsets[:-1]] = -1
        self.offsets = offsets
        self.parents = np.array(parents, dtype=np.int64)
        self.order = nodes if order is None else np.array(order, dtype=np.int64)
        self._check()

    def _check(self) -> None:
        owner = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        if self.parents.shape != owner.shape or self.order.shape != owner.shape:
            raise DataError(
                f"parents and order need one entry a node, {self.node_count} in all, "
                f"but have {self.parents.size} and {self.order.size}"
            )
        if not np.array_equal(np.sort(self.order), np.arange(self.node_count)):
            raise DataError("order must list every node of the corpus once")
        if not np.array_equal(owner[self.order], owner):
            raise DataError("order must list the nodes structure by structure, as offsets does")
        bad = (self.parents < self.offsets[owner]) | (self.parents >= self.offsets[owner + 1])
        bad &= self.parents != -1
        if bad.any():
            raise DataError(f"{self.place(int(bad.argmax()))}: its parent lies outside its structure")
        rank = np.empty_like(self.order)
        rank[self.order] = np.arange(self.node_count)
        late = (self.parents >= 0) & (rank[self.parents] >= rank)
        if late.any():
            raise DataError(f"{self.place(int(late.argmax()))}: order must list a parent before its children")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def node_count(self) -> int:
        return int(self.offsets[-1])

    def nodes(self, block: Block) -> slice:
        """The nodes of a block of structures."""
        return slice(int(self.offsets[block[0]]), int(self.offsets[block[1]]))

    def forest(self, block: Block) -> Forest:
        return block[0], self.offsets, self.parents, self.order

    def place(self, node: int) -> str:
        """The words that name a node, given by its index in the corpus."""
        structure = int(np.searchsorted(self.offsets, node, side="right")) - 1
        return place(structure, node - int(self.offsets[structure]))


_BLOCK_ENTRIES = 65536  # a block's tables should stay in a core's own cache


class Problem:
    """Scores laid on a graph, their shapes checked: what every recursion starts from.

    ``matrices`` is (1, L, L) or (N, L, L); the edge into node t has the matrix ``matrices[t * stride]``.
    """

    def __init__(self, graph: Graph, scores: Array, transitions: Array) -> None:
        # Writable, since numba would compile everything again for read-only arrays.
        scores = np.require(scores, np.float64, ["C", "A", "W"])
        transitions = np.require(transitions, np.float64, ["C", "A", "W"])
        if scores.ndim != 2 or len(scores) != graph.node_count or scores.shape[1] == 0:
            raise DataError(f"scores need the shape ({graph.node_count}, labels), but have {scores.shape}")
        square = (scores.shape[1], scores.shape[1])
        if transitions.shape not in (square, (graph.node_count, *square)):
            raise DataError(
                f"transitions need the shape {square} or {(graph.node_count, *square)}, "
                f"but have {transitions.shape}"
            )
        self.graph = graph
        self.scores = scores
        self.label_count = scores.shape[1]
        self.shared = transitions.ndim == 2
        self.stride = 0 if self.shared else 1
        self.matrices = transitions[None] if self.shared else transitions
        if self.shared:
            self._check_matrices(slice(0, 1))

    def tree(self, structure: int) -> Tree:
        nodes = self.graph.nodes((structure, structure + 1))
        return self.graph.order[nodes], nodes.start, self.graph.parents, self.matrices, self.stride

    def blocks(self, matrices: bool = False) -> list[Block]:
        """Blocks of structures; smaller ones where a matrix a node is read, or (`matrices`) written."""
        entries = self.label_count**2 if matrices or not self.shared else self.label_count
        return blocks(self.graph.offsets, max(1, _BLOCK_ENTRIES // entries))

    def check(self, block: Block) -> None:
        """Raise at the first NaN or +inf of a block."""
        nodes = self.graph.nodes(block)
        if not self.scores[nodes].max() < np.inf:
            for node in range(nodes.start, nodes.stop):
                self._check_finite(self.scores[node], f"{self.graph.place(node)}: the score of label")
        if not self.shared:
            self._check_matrices(nodes)

    def _check_matrices(self, rows: slice) -> None:
        if self.matrices[rows].max() < np.inf:
            return
        for row in range(rows.start, rows.stop):
            if self.shared or self.graph.parents[row] >= 0:
                where = "" if self.shared else f"{self.graph.place(row)}: "
                self._check_finite(self.matrices[row], f"{where}the transition between labels")

    @staticmethod
    def _check_finite(values: Array, what: str) -> None:
        bad = np.argwhere(~(values < np.inf))
        if len(bad):
            at = tuple(bad[0].tolist())
            raise DataError(
                f"{what} {' and '.join(map(str, at))} is {values[at]}; scores are finite, or -inf to forbid"
            )

    def check_possible(self, block: Block, best: Array) -> None:
        """Raise at the first structure of a block whose best score, or log partition, is −inf."""
        for structure in np.flatnonzero(best == -np.inf)[:1]:
            raise DataError(
                f"{place(block[0] + int(structure))}: every labeling is forbidden by scores of -inf; "
                "check its known labels, and the scheme, against the labels and transitions that are allowed"
            )
