"""All pushes so far, in arrays that grow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.marginalized.problem import Problem

Array = np.ndarray


class Pushes(NamedTuple):
    """Logged pushes.

    Push p is of the structure with source nodes begins[p] … ends[p]−1, in which the nodes
    marked[firsts[p]:firsts[p+1]] have the same rows of `gamma`.
    """

    begins: Array
    ends: Array
    firsts: Array
    marked: Array
    gamma: Array


class Log:
    """`count` pushes, in the order in which they were added."""

    def __init__(self, label_count: int) -> None:
        self.count = self._rows = 0
        # Begins, ends, and first marked rows: one array each, since compiled functions
        # take them so.
        self._spans = [np.zeros(64, dtype=np.int64) for _ in range(3)]
        self._marked = np.zeros(64, dtype=np.int64)
        self._gamma = np.zeros((64, label_count))

    @classmethod
    def of(cls, problem: Problem, alpha: Array) -> Log:
        """Return a log with a push of every source structure with coefficients α (N, L)."""
        at, log = np.flatnonzero(alpha.any(axis=1)), cls(problem.label_count)
        log.add(problem.sources.offsets, at, problem.gamma(alpha[at], at))
        return log

    def copy(self) -> Log:
        """Return a copy that can grow: it shares arrays, but has no spare capacity in them."""
        other = Log.__new__(Log)
        other.count, other._rows = self.count, self._rows
        other._spans = [column[: self.count + 1] for column in self._spans]
        other._marked, other._gamma = self._marked[: self._rows], self._gamma[: self._rows]
        return other

    def add(self, offsets: Array, marked: Array, gamma: Array) -> None:
        """Add a push of each structure with marked nodes; `offsets` bound the structures."""
        owners, counts = np.unique(np.searchsorted(offsets, marked, side="right") - 1, return_counts=True)
        self._grow(len(owners), marked, gamma)
        begins, ends, firsts = self._spans
        new = slice(self.count - len(owners), self.count)
        begins[new], ends[new] = offsets[owners], offsets[owners + 1]
        firsts[new.start + 1 : self.count + 1] = firsts[new.start] + np.cumsum(counts)

    def add_one(self, begin: int, end: int, marked: Array, gamma: Array) -> None:
        """Add a push of the structure of nodes `begin` to `end`, like `add`, if one is marked."""
        if len(marked):
            self._grow(1, marked, gamma)
            begins, ends, firsts = self._spans
            begins[self.count - 1], ends[self.count - 1], firsts[self.count] = begin, end, self._rows

    def _grow(self, pushes: int, marked: Array, gamma: Array) -> None:
        """Count more pushes, and take over their marked nodes."""
        count, rows = self.count + pushes, self._rows + len(marked)
        self._spans = [_with_capacity(column, count + 1) for column in self._spans]
        self._marked, self._gamma = _with_capacity(self._marked, rows), _with_capacity(self._gamma, rows)
        self._marked[self._rows : rows] = marked
        self._gamma[self._rows : rows] = gamma
        self.count, self._rows = count, rows

    def since(self, first: int) -> tuple[Array, Array, Array]:
        """Return the pushes from a number on, as arguments of `restored`."""
        spans = np.column_stack([column[first : self.count + 1] for column in self._spans])
        rows = slice(int(spans[0, 2]), self._rows)
        spans[:, 2] -= rows.start
        return spans, self._marked[rows], self._gamma[rows]

    @classmethod
    def restored(cls, spans: Array, marked: Array, gamma: Array) -> Log:
        """Return a log of these pushes."""
        log = cls(gamma.shape[1])
        log.count, log._rows = len(spans) - 1, len(marked)
        log._spans, log._marked, log._gamma = [column.copy() for column in spans.T], marked, gamma
        return log

    def pushes(self) -> Pushes:
        """Return the pushes, as an argument of compiled functions."""
        begins, ends, firsts = (column[: self.count + 1] for column in self._spans)
        return Pushes(begins[:-1], ends[:-1], firsts, self._marked, self._gamma)


def _with_capacity(array: Array, size: int) -> Array:
    """Return the array, extended if it is shorter than `size`."""
    if size <= len(array):
        return array
    return np.concatenate([array, np.zeros((max(size, len(array)), *array.shape[1:]), dtype=array.dtype)])
