"""The table rows at an offset from each node of a corpus: types or boundary marks."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fuda.data.corpus import Corpus
from fuda.data.graph import ranges

Rows = tuple[np.ndarray, np.ndarray | None]  # rows and indptr, None if each node has one row


def rows_at(corpus: Corpus, offset: int, window: int) -> Rows:
    """Return the table rows at an offset from each node: types, or boundary marks past the end."""
    if offset == 0:
        return corpus.types, None
    first_mark = len(corpus.observations) + (window if offset > 0 else 0)
    if corpus.is_chain:
        return _shifted(corpus, offset, first_mark), None
    return _reached(corpus, offset, first_mark)


def combined(parts: list[Rows], size: int) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Return all combinations of the rows of several parts at each node.

    Parameters
    ----------
    parts : list of (rows, indptr)
    size : int
        The number of nodes.

    Returns
    -------
    rows : list of arrays
        For each part its row in every combination.
    indptr : array or None
        The bounds of the nodes; None if each node has one combination.
    """
    if all(indptr is None for _, indptr in parts):
        return [rows for rows, _ in parts], None
    nodes, combinations = np.arange(size), []
    for rows, indptr in parts:
        if indptr is None:
            combinations.append(rows[nodes])
            continue
        counts = np.diff(indptr)[nodes]
        new = rows[ranges(indptr[nodes], counts)]
        combinations = [*(np.repeat(before, counts) for before in combinations), new]
        nodes = np.repeat(nodes, counts)
    if len(nodes) == size:
        return combinations, None
    return combinations, np.concatenate([[0], np.cumsum(np.bincount(nodes, minlength=size))])


def _shifted(corpus: Corpus, offset: int, first_mark: int) -> np.ndarray:
    """The rows at an offset in sequences."""
    rows = np.empty_like(corpus.types)
    if offset < 0:
        rows[-offset:] = corpus.types[:offset]
    else:
        rows[:-offset] = corpus.types[offset:]
    starts, ends = corpus.offsets[:-1], corpus.offsets[1:]
    for position in range(abs(offset)):  # nodes whose offset is outside of the sequence
        nodes = starts + position if offset < 0 else ends - 1 - position
        if position:  # every sequence has a first and a last node
            nodes = nodes[ends - starts > position]
        rows[nodes] = first_mark + abs(offset) - 1 - position
    return rows


def _reached(corpus: Corpus, offset: int, first_mark: int) -> Rows:
    """The rows at an offset in trees and DAGs."""
    indptr, indices = (corpus.graph.parents if offset < 0 else corpus.graph.children)[:2]
    step = sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(corpus.size, corpus.size))
    reach = sp.identity(corpus.size, format="csr")
    steps_left = np.full(corpus.size, abs(offset))  # steps past the end, for nodes that reach none
    for distance in range(1, abs(offset) + 1):
        reach = reach @ step
        steps_left[np.diff(reach.indptr) > 0] = abs(offset) - distance
    reach.sort_indices()
    counts = np.diff(reach.indptr)
    indptr = np.concatenate([[0], np.cumsum(np.maximum(counts, 1))])
    marks = indptr[:-1][counts == 0]
    rows = np.empty(indptr[-1], dtype=np.int32)
    rows[marks] = first_mark + steps_left[counts == 0] - 1
    rows[np.setdiff1d(np.arange(len(rows)), marks)] = corpus.types[reach.indices]
    return rows, (None if len(rows) == corpus.size else indptr)
