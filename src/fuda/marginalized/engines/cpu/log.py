"""All pushes so far, in arrays that grow."""

from __future__ import annotations

from copy import copy

import numpy as np

from fuda.marginalized.engines.cpu.push import Pushes

Array = np.ndarray


class Log:
    """`count` pushes, in the order in which they were added."""

    def __init__(self, label_count: int) -> None:
        self.count = self._rows = 0
        self._spans = np.zeros((64, 3), dtype=np.int64)  # begin, end, and the first marked row
        self._marked = np.zeros(64, dtype=np.int64)
        self._gamma = np.zeros((64, label_count))

    def copy(self) -> Log:
        """Return a copy that can grow: it shares arrays, but has no spare capacity in them."""
        other = copy(self)
        other._spans = self._spans[: self.count + 1]
        other._marked, other._gamma = self._marked[: self._rows], self._gamma[: self._rows]
        return other

    def add(self, offsets: Array, marked: Array, gamma: Array) -> None:
        """Add a push of each structure with marked nodes; `offsets` bound the structures."""
        owners, counts = np.unique(np.searchsorted(offsets, marked, side="right") - 1, return_counts=True)
        count, rows = self.count + len(owners), self._rows + len(marked)
        self._spans = _with_capacity(self._spans, count + 1)
        self._marked, self._gamma = _with_capacity(self._marked, rows), _with_capacity(self._gamma, rows)
        self._spans[self.count : count, :2] = np.column_stack([offsets[owners], offsets[owners + 1]])
        self._spans[self.count : count + 1, 2] = self._rows + np.concatenate([[0], np.cumsum(counts)])
        self._marked[self._rows : rows] = marked
        self._gamma[self._rows : rows] = gamma
        self.count, self._rows = count, rows

    def since(self, first: int) -> tuple[Array, Array, Array]:
        """Return the pushes from a number on, as arguments of `restored`."""
        spans = self._spans[first : self.count + 1].copy()
        rows = slice(int(spans[0, 2]), self._rows)
        spans[:, 2] -= rows.start
        return spans, self._marked[rows], self._gamma[rows]

    @classmethod
    def restored(cls, spans: Array, marked: Array, gamma: Array) -> Log:
        """Return a log of these pushes."""
        log = cls(gamma.shape[1])
        log.count, log._rows = len(spans) - 1, len(marked)
        log._spans, log._marked, log._gamma = spans, marked, gamma
        return log

    def pushes(self) -> Pushes:
        """Return the pushes, as an argument of compiled functions."""
        begins, ends, firsts = np.ascontiguousarray(self._spans[: self.count + 1].T)
        return Pushes(begins[:-1], ends[:-1], firsts, self._marked, self._gamma)


def _with_capacity(array: Array, size: int) -> Array:
    """Return the array, extended if it is shorter than `size`."""
    if size <= len(array):
        return array
    return np.concatenate([array, np.zeros((max(size, len(array)), *array.shape[1:]), dtype=array.dtype)])
