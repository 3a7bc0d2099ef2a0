"""Scores of labelings on the chains and trees of a `fuda.data.graph.Graph`.

A labeling y of a chain or tree scores

    F(y) = Σ_t s_t(y_t) + Σ_{edges p → t} A_t(y_p, y_t).

The structures of a corpus are stored one after another in arrays over its N nodes: ``scores``,
(N, L), contains s, and ``transitions`` contains A, either one (L, L) matrix for all edges or an
array (N, L, L) whose row t is the edge from t's parent to t (the rows of roots are not read). −inf
forbids a label or a pair; scores of the start and the end, known labels and forbidden transitions
are all expressed in this way.
"""

from __future__ import annotations

import numpy as np

from fuda.data.graph import Array, Graph
from fuda.errors import DataError, place
from fuda.runtime.parallel import Block, blocks

# A structure for compiled code: its nodes, parents first; the first node; heads, matrices, stride.
TreeTask = tuple[Array, int, Array, Array, int]
_BLOCK_ENTRIES = 65536  # a block's arrays should fit into the cache of one core


def as_doubles(values: Array) -> Array:
    """Return an array for compiled code: float64, contiguous, and writable.

    For read-only arrays numba would compile everything again.
    """
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and values.flags.carray:
        return values  # np.require would take longer than a short recursion
    return np.require(values, np.float64, ["C", "A", "W"])


class ScoredGraph:
    """A graph with scores of checked shapes, which every recursion starts from.

    Parameters
    ----------
    graph : Graph
        The structures.
    scores, transitions : array
        s and A, as described above.

    Attributes
    ----------
    shared : bool
        Whether there is one matrix for all edges.
    matrices : (1, L, L) or (N, L, L) array
        A; the edge into node t has ``matrices[t * stride]``.
    stride : int
        0 where the matrix is shared, else 1.
    label_count : int
        L.
    """

    def __init__(self, graph: Graph, scores: Array, transitions: Array) -> None:
        scores, transitions = as_doubles(scores), as_doubles(transitions)
        if scores.ndim != 2 or len(scores) != graph.node_count or scores.shape[1] == 0:
            raise DataError(f"scores have the shape {scores.shape}; give ({graph.node_count}, labels)")
        square = (scores.shape[1], scores.shape[1])
        if transitions.shape not in (square, (graph.node_count, *square)):
            raise DataError(
                f"transitions have the shape {transitions.shape}; give {square} or "
                f"{(graph.node_count, *square)}"
            )
        self.graph, self.scores, self.label_count = graph, scores, scores.shape[1]
        self.shared = transitions.ndim == 2
        self.stride = 0 if self.shared else 1
        self.matrices = transitions[None] if self.shared else transitions
        if self.shared:
            self._check_matrices(slice(0, 1))

    def tree(self, structure: int) -> TreeTask:
        """Return one structure for compiled code."""
        nodes = self.graph.nodes((structure, structure + 1))
        return self.graph.order[nodes], nodes.start, self.graph.heads, self.matrices, self.stride

    def blocks(self, matrices: bool = False) -> list[Block]:
        """Return blocks of structures, smaller where matrices per node are read or written."""
        entries = self.label_count**2 if matrices or not self.shared else self.label_count
        return blocks(self.graph.offsets, max(1, _BLOCK_ENTRIES // entries))

    def check(self, block: Block) -> None:
        """Raise DataError at the first NaN or +inf of a block."""
        nodes = self.graph.nodes(block)
        if not self.scores[nodes].max() < np.inf:
            for node in range(nodes.start, nodes.stop):
                self._check_finite(self.scores[node], f"{self.graph.place(node)}: the score of label")
        if not self.shared:
            self._check_matrices(nodes)

    def _check_matrices(self, rows: slice) -> None:
        """Raise DataError at the first NaN or +inf of some matrices that are read."""
        if self.matrices[rows].max() < np.inf:
            return
        for row in range(rows.start, rows.stop):
            if self.shared or self.graph.heads[row] >= 0:
                where = "" if self.shared else f"{self.graph.place(row)}: "
                self._check_finite(self.matrices[row], f"{where}the transition between labels")

    @staticmethod
    def _check_finite(values: Array, what: str) -> None:
        """Raise DataError at the first NaN or +inf of an array."""
        bad = np.argwhere(~(values < np.inf))
        if len(bad):
            at = tuple(bad[0].tolist())
            labels = " and ".join(map(str, at))
            raise DataError(f"{what} {labels} is {values[at]}; scores are finite, or -inf to forbid")

    def check_possible(self, block: Block, best: Array) -> None:
        """Raise DataError at the first structure whose best score, or log partition, is −inf."""
        for structure in np.flatnonzero(best == -np.inf)[:1]:
            raise DataError(
                f"{place(block[0] + int(structure))}: every labeling is forbidden by scores of -inf; "
                "check its known labels, and the scheme, against the labels and transitions that are allowed"
            )
