"""What the nodes of a corpus see at an offset: the rows of a table, types first and then boundary marks."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fuda.data.corpus import Corpus

Rows = tuple[np.ndarray, np.ndarray | None]  # of each node a row, or with bounds several


def rows_at(corpus: Corpus, offset: int, window: int) -> Rows:
    """The table rows that each node sees at an offset: types, or boundary marks past the end."""
    if offset == 0:
        return corpus.types, None
    first_mark = len(corpus.observations) + (window if offset > 0 else 0)
    if corpus.is_chain:
        return _shifted(corpus, offset, first_mark), None
    return _reached(corpus, offset, first_mark)


def combined(parts: list[Rows], size: int) -> tuple[list[np.ndarray], np.ndarray | None]:
    """All combinations of the rows of several parts at each node.

    A part gives a node one row, or several where it has bounds; each is combined with each row of
    the other parts.

    Returns
    -------
    rows : list of arrays
        For each part its row in every combination.
    indptr : array or None
        The bounds of the nodes; None where each has one combination.
    """
    if all(indptr is None for _, indptr in parts):
        return [rows for rows, _ in parts], None
    nodes, found = np.arange(size), []
    for rows, indptr in parts:
        if indptr is None:
            found.append(rows[nodes])
            continue
        counts = np.diff(indptr)[nodes]
        ends = np.cumsum(counts)
        within = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        found = [np.repeat(before, counts) for before in found]
        nodes = np.repeat(nodes, counts)
        found.append(rows[indptr[nodes] + within])
    if len(nodes) == size:
        return found, None
    return found, np.concatenate([[0], np.cumsum(np.bincount(nodes, minlength=size))])


def _shifted(corpus: Corpus, offset: int, first_mark: int) -> np.ndarray:
    rows = np.empty_like(corpus.types)
    starts, ends = corpus.offsets[:-1], corpus.offsets[1:]
    if offset < 0:
        rows[-offset:] = corpus.types[:offset]
    else:
        rows[:-offset] = corpus.types[offset:]
    for position in range(abs(offset)):  # the nodes from which the offset leads out of the sequence
        nodes = starts + position if offset < 0 else ends - 1 - position
        if position:  # every sequence has a first and a last node
            nodes = nodes[ends - starts > position]
        rows[nodes] = first_mark + abs(offset) - 1 - position
    return rows


def _reached(corpus: Corpus, offset: int, first_mark: int) -> Rows:
    near = corpus.graph.parents if offset < 0 else corpus.graph.children
    step = sp.csr_matrix(
        (np.ones(len(near.indices)), near.indices, near.indptr), shape=(corpus.size, corpus.size)
    )
    reach, inside = step, np.diff(near.indptr) > 0
    steps_left = np.where(inside, abs(offset) - 1, abs(offset))  # steps past the end, where none is reached
    for distance in range(2, abs(offset) + 1):
        reach = reach @ step
        inside = np.diff(reach.indptr) > 0
        steps_left[inside] = abs(offset) - distance
    reach.sort_indices()
    counts = np.diff(reach.indptr)
    indptr = np.concatenate([[0], np.cumsum(np.maximum(counts, 1))])
    rows = np.empty(indptr[-1], dtype=np.int32)
    alone = counts == 0
    rows[indptr[:-1][alone]] = first_mark + steps_left[alone] - 1
    real = np.ones(len(rows), dtype=bool)
    real[indptr[:-1][alone]] = False
    rows[real] = corpus.types[reach.indices]
    return rows, (None if len(rows) == corpus.size else indptr)
