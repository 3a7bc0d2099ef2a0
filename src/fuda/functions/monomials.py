"""The features of a polynomial kernel, written out: monomials of the features of a node.

For vectors a, b with m = ⟨a, b⟩ the kernel (s m + o)^d is itself an inner product, of monomials:

    (s m + o)^d = Σ_{k ≤ d} C(d, k) s^k o^{d−k} m^k,
    m^k = Σ over multisets of k features of (k! / Π multiplicity!) Π a_j Π b_j.

Where all values are 0 or 1, sets take the place of multisets, since C(m, k) counts the common sets of k
features: (s m + o)^d = Σ_{k ≤ d} Δ^k f(0) C(m, k), with the differences of f(m) = (s m + o)^d at 0.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fuda.compiled import compiled
from fuda.data.encoding import Encoded
from fuda.functions.windows import ChannelView, window_of
from fuda.kernels import Kernel, Polynomial
from fuda.kernels.points import Numbering

Array = np.ndarray


class Vectors:
    """The stacked feature vectors of all nodes in CSR form, and the polynomial that the kernel is."""

    def __init__(self, kernel: Kernel, encoded: Encoded) -> None:
        assert kernel.polynomial is not None
        window = window_of(encoded, kernel, Numbering(encoded.corpus))
        matrix = sp.hstack([_summed(view) for view in window.channels], format="csr")
        matrix.eliminate_zeros()
        matrix.sort_indices()
        self.kernel = kernel
        self.indptr, self.indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
        self.values = matrix.data.astype(np.float64)
        self.base = matrix.shape[1] + 1
        self.degree, self.offset, self.scale, normalized = kernel.polynomial
        self.factors = np.ones(len(self))
        if normalized:
            own = Polynomial(self.degree, self.offset, self.scale).evaluate_self(window.norms)
            self.factors = np.where(own > 0, 1 / np.sqrt(np.where(own > 0, own, 1.0)), 0.0)
        self.binary = bool((self.values == 1).all())

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def by_multiset(self) -> Array:
        """(d + 1,) the coefficient of a multiset of k features, over k! / Π mult!."""
        d = self.degree
        return np.array([math.comb(d, k) * self.scale**k * self.offset ** (d - k) for k in range(d + 1)])

    @property
    def by_set(self) -> Array:
        """(d + 1,) the coefficient of a set of k features of values 0 and 1."""
        values = (self.scale * np.arange(self.degree + 1) + self.offset) ** self.degree
        return np.array([np.diff(values, k)[0] for k in range(self.degree + 1)])

    @property
    def numerable(self) -> bool:
        """Whether the codes of monomials fit into 63 bits."""
        return self.base**self.degree < 2**63

    def cut(self, first: int, last: int) -> Vectors:
        """The vectors of some nodes."""
        part = copy(self)
        begin, end = self.indptr[first], self.indptr[last]
        part.indptr, part.factors = self.indptr[first : last + 1] - begin, self.factors[first:last]
        part.indices, part.values = self.indices[begin:end], self.values[begin:end]
        return part

    def repeats(self, sets: bool) -> bool:
        """Whether monomials have a feature more than once; not where sets suffice."""
        return not (sets and self.binary)

    def counts(self, sets: bool) -> Array:
        """(N,) how many monomials each node has."""
        found = np.diff(self.indptr).astype(np.float64)
        total, term = np.ones(len(self)), np.ones(len(self))
        for k in range(1, self.degree + 1):
            term = term * (found + k - 1 if self.repeats(sets) else (found - k + 1).clip(0)) / k
            total += term
        return np.rint(total).astype(np.int64)

    def sizes(self, sets: bool) -> Array:
        """(N,) how many bytes the monomials of each node take."""
        return self.counts(sets) * (4 if self.binary else 12)


def _summed(view: ChannelView) -> sp.csr_matrix:
    """The vector that a channel shows of each node; several are added."""
    matrix = sp.csr_matrix(view.points.features)
    if view.indptr is None:
        return matrix[view.rows]
    shape = (len(view.indptr) - 1, matrix.shape[0])
    return sp.csr_matrix((np.ones(len(view.rows)), view.rows, view.indptr), shape=shape) @ matrix


class _Kind(NamedTuple):
    """Which monomials to list, and whether new ones get numbers."""

    base: int
    degree: int
    repeats: bool
    sets: bool
    learn: bool


class _Scratch(NamedTuple):
    """Memory for the monomials of a node, as `_monomials` fills it."""

    codes: Array
    marks: Array
    reals: Array


class Monomials:
    """Numbers monomials in order of first occurrence, by their codes in a hash table.

    The code of a monomial has the numbers of its features, each plus one, as digits to the base of `Vectors`.
    """

    def __init__(self, codes: Array | None = None) -> None:
        size = 0 if codes is None else len(codes)
        capacity = 1 << max(12, (2 * size).bit_length())
        self.count = size
        self._keys, self._numbers = _empty_table(capacity)
        if codes is not None:
            _insert(codes, np.arange(size, dtype=np.int32), self._keys, self._numbers)

    def codes(self) -> Array:
        """(F,) the codes by number."""
        used = self._keys >= 0
        codes = np.empty(self.count, dtype=np.int64)
        codes[self._numbers[used]] = self._keys[used]
        return codes

    def expand(self, vectors: Vectors, sets: bool, learn: bool) -> tuple[Array, Array, Array]:
        """The monomials of all nodes in CSR form: bounds, numbers (one past the last where unknown), and
        values (empty where all are 1).

        With `sets` a monomial is named by its set of features alone, as where training values were 0 and 1.
        """
        counts = vectors.counts(sets)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        ids = np.empty(indptr[-1], dtype=np.uint32)  # look-ups by unsigned numbers test no sign
        values = np.empty(0 if vectors.binary else len(ids))
        most = int(counts.max(initial=1))
        scratch = _Scratch(
            np.empty(most, dtype=np.int64), np.empty((most, 4), dtype=np.int64), np.empty((most, 2))
        )
        kind = _Kind(vectors.base, vectors.degree, vectors.repeats(sets), sets, learn)
        rows = vectors.indptr, vectors.indices, vectors.values
        node = 0
        while True:
            table = self._keys, self._numbers, self.count
            node, self.count = _expand(
                rows, node, kind, vectors.by_multiset, vectors.by_set, scratch, table, indptr, ids, values
            )
            if node == len(vectors):
                return indptr, ids, values
            keys, numbers = self._keys, self._numbers
            self._keys, self._numbers = _empty_table(4 * len(keys))
            _insert(keys[keys >= 0], numbers[keys >= 0], self._keys, self._numbers)


def _empty_table(capacity: int) -> tuple[Array, Array]:
    return np.full(capacity, -1, dtype=np.int64), np.empty(capacity, dtype=np.int32)


@compiled
def _slot(keys: Array, code: int) -> int:
    """Where a code is, or would go; the capacity is a power of two, and the table never full."""
    mask = len(keys) - 1
    slot: Any = np.int64((np.uint64(code) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
    while keys[slot] >= 0 and keys[slot] != code:
        slot = (slot + 1) & mask
    return slot


@compiled
def _insert(codes: Array, ids: Array, keys: Array, numbers: Array) -> None:
    for i in range(len(codes)):
        slot = _slot(keys, codes[i])
        keys[slot] = codes[i]
        numbers[slot] = ids[i]


@compiled
def _monomials(indices: Array, entries: Array, begin: int, end: int, kind: _Kind, scratch: _Scratch) -> int:
    """All monomials of the features begin..end, each from one of a degree less and a feature not before its
    last: how many they are.

    Of each: its code; position of the last feature, how often that occurs, how many different features there
    are, the degree; its value, and k! / Π mult!.
    """
    codes, marks, reals = scratch
    repeats = kind.repeats
    codes[0] = 0
    marks[0, 0], marks[0, 1], marks[0, 2], marks[0, 3] = begin - 1, 0, 0, 0
    reals[0, 0], reals[0, 1] = 1.0, 1.0
    first, last = 0, 1
    for k in range(1, kind.degree + 1):
        count = last
        for e in range(first, last):
            before = marks[e, 0]
            for p in range(before if repeats and k > 1 else before + 1, end):
                again = k > 1 and p == before
                marks[count, 0] = p
                marks[count, 1] = marks[e, 1] + 1 if again else 1
                marks[count, 2] = marks[e, 2] if again else marks[e, 2] + 1
                marks[count, 3] = k
                codes[count] = codes[e] if again and kind.sets else codes[e] * kind.base + indices[p] + 1
                reals[count, 0] = reals[e, 0] * entries[p]
                reals[count, 1] = reals[e, 1] * k / marks[count, 1]
                count += 1
        first, last = last, count
    return last


@compiled
def _expand(
    rows: Any,
    node: int,
    kind: _Kind,
    by_multiset: Array,
    by_set: Array,
    scratch: _Scratch,
    table: Any,
    indptr: Array,
    ids: Array,
    values: Array,
) -> tuple[int, int]:
    """The monomials of the nodes from `node` on, until all are done or the table is half full: the next node,
    and how many monomials are known."""
    starts, indices, entries = rows
    codes, marks, reals = scratch
    learn = kind.learn
    keys, numbers, count = table
    for t in range(node, len(starts) - 1):
        if learn and 2 * (count + indptr[t + 1] - indptr[t]) > len(keys):
            return t, count
        size = _monomials(indices, entries, starts[t], starts[t + 1], kind, scratch)
        for e in range(size):
            at = indptr[t] + e
            slot = _slot(keys, codes[e])
            if keys[slot] < 0 and learn:
                keys[slot] = codes[e]
                numbers[slot] = count
                count += 1
            ids[at] = numbers[slot] if keys[slot] >= 0 else count
            if len(values) > 0:
                values[at] = reals[e, 0]
                if kind.sets and marks[e, 3] > 0:  # a multiset in the place of its set
                    values[at] *= reals[e, 1] * by_multiset[marks[e, 3]] / by_set[marks[e, 2]]
    return len(starts) - 1, count


def coefficients(codes: Array, vectors: Vectors) -> Array:
    """(F,) c_f of each monomial, from the digits of its code."""
    sizes = np.zeros(len(codes), dtype=np.int64)
    ways, run, before = np.ones(len(codes)), np.ones(len(codes)), np.zeros(len(codes), dtype=np.int64)
    while codes.any():
        codes, digit = np.divmod(codes, vectors.base)
        sizes += digit > 0
        run = np.where(digit == before, run + 1, 1.0)
        ways = np.where(digit > 0, ways * sizes / run, ways)
        before = digit
    return vectors.by_set[sizes] if vectors.binary else vectors.by_multiset[sizes] * ways


@compiled
def inner_products(
    indptr: Array, indices: Array, values: Array, nodes: Array, others: Array, out: Array
) -> None:
    for n in range(len(nodes)):
        for m in range(len(others)):
            i, j = indptr[nodes[n]], indptr[others[m]]
            i_end, j_end = indptr[nodes[n] + 1], indptr[others[m] + 1]
            total = 0.0
            while i < i_end and j < j_end:
                if indices[i] == indices[j]:
                    total += values[i] * values[j]
                    i += 1
                    j += 1
                elif indices[i] < indices[j]:
                    i += 1
                else:
                    j += 1
            out[n, m] = total
