"""The explicit features of a polynomial kernel: monomials of the features of a node.

For vectors a, b with m = ⟨a, b⟩ the kernel (s m + o)^d is itself an inner product, of monomials:

    (s m + o)^d = Σ_{k ≤ d} C(d, k) s^k o^{d−k} m^k,
    m^k = Σ over multisets of k features of (k! / Π multiplicity!) Π a_j Π b_j.

Where all values are 0 or 1, sets replace multisets, since C(m, k) is the number of common sets
of k features: (s m + o)^d = Σ_{k ≤ d} Δ^k f(0) C(m, k), with the differences of
f(m) = (s m + o)^d at 0.
"""

from __future__ import annotations

import math
from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fuda.data.encoding import Channel, Encoded
from fuda.data.tables import Csr
from fuda.functions.windows import norms_of, views_of
from fuda.kernels import Kernel, Polynomial
from fuda.kernels.points import Numbering
from fuda.runtime.compiled import compiled
from fuda.runtime.hash_tables import FREE, slot_of

Array = np.ndarray
_NO_KEYS = np.empty(0, dtype=np.int64)


class MonomialVectors:
    """The feature vectors of all nodes, and a polynomial kernel.

    Parameters
    ----------
    kernel : Kernel
        A kernel with a `polynomial`.
    encoded : Encoded
        The corpus.

    Attributes
    ----------
    indptr, indices, values : arrays
        The feature vectors in CSR form, channel after channel.
    base : int
        The base of the keys of monomials, larger than the number of any feature plus one.
    degree, offset, scale : int, float, float
        d, o and s of the polynomial.
    factors : (N,) array
        The root of the kernel's factor, divided by √k(x_t, x_t) where the kernel is normalized.
    binary : bool
        Whether all values are 0 or 1.
    """

    def __init__(self, kernel: Kernel, encoded: Encoded) -> None:
        assert kernel.polynomial is not None
        self.kernel = kernel
        parts = [_rows(encoded, channel) for channel in encoded.channels]
        self.indptr, self.indices, self.values = _side_by_side(parts, encoded.corpus.size)
        self.base = sum(matrix.shape[1] for matrix, _ in parts) + 1
        self.degree, self.offset, self.scale, normalized, factor = kernel.polynomial
        self.factors = np.full(len(self), math.sqrt(factor))
        if normalized:
            square = Polynomial(self.degree, self.offset, self.scale).evaluate_self(_norms(encoded, kernel))
            self.factors *= np.where(square > 0, 1 / np.sqrt(np.where(square > 0, square, 1.0)), 0.0)
        self.binary = bool((self.values == 1).all())

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def by_multiset(self) -> Array:
        """(d + 1,) the coefficient of a multiset of k features, divided by k! / Π mult!."""
        return _by_multiset(self.degree, self.offset, self.scale)

    @property
    def by_set(self) -> Array:
        """(d + 1,) the coefficient of a set of k features with values 0 and 1."""
        return _by_set(self.degree, self.offset, self.scale)

    @property
    def numerable(self) -> bool:
        """Whether the keys of monomials fit into 63 bits."""
        return self.base**self.degree < 2**63

    def cut(self, first: int, last: int) -> MonomialVectors:
        """The vectors of some nodes."""
        if (first, last) == (0, len(self)):
            return self
        part = copy(self)
        begin, end = self.indptr[first], self.indptr[last]
        part.indptr, part.factors = self.indptr[first : last + 1] - begin, self.factors[first:last]
        part.indices, part.values = self.indices[begin:end], self.values[begin:end]
        return part

    def repeats(self, binary_training: bool) -> bool:
        """Whether monomials contain a feature several times; not where sets suffice."""
        return not (binary_training and self.binary)

    def counts(self, binary_training: bool) -> Array:
        """(N,) the number of monomials of each node."""
        features = self.indptr[1:] - self.indptr[:-1]
        if self.degree == 1:
            return features + 1
        total, term = np.ones(len(self)), np.ones(len(self))
        for k in range(1, self.degree + 1):
            choices = features + k - 1.0 if self.repeats(binary_training) else (features - k + 1.0).clip(0)
            term = term * choices / k
            total += term
        return np.rint(total).astype(np.int64)

    def sizes(self, binary_training: bool) -> Array:
        """(N,) the bytes that the monomials of each node take."""
        return self.counts(binary_training) * (4 if self.binary else 12)


def _rows(encoded: Encoded, channel: Channel) -> tuple[Csr, Array]:
    """The rows of a channel's table, and each node's row; several rows are summed."""
    table = encoded.tables[channel.table]
    if channel.indptr is None:
        return table.csr, channel.rows
    matrix: Any = table.matrix if sp.issparse(table.matrix) else sp.csr_matrix(table.matrix)
    summed = channel.incidence(matrix.shape[0]) @ matrix
    return Csr.of(summed), np.arange(summed.shape[0])


def _norms(encoded: Encoded, kernel: Kernel) -> list[Array]:
    """The inner product of each node with itself."""
    channels, totals = encoded.channels, np.zeros(encoded.corpus.size)
    if any(channel.indptr is not None for channel in channels):
        return norms_of(views_of(encoded, kernel, Numbering(encoded.corpus)), kernel)
    has_observations = any(channel.shows_types for channel in channels)
    squares = [table.squares for table in encoded.tables]
    for channel in channels:
        norms = squares[channel.table][channel.rows]
        if channel.shows_types or not has_observations:
            norms += encoded.tables[channel.table].beyond[channel.rows]
        totals += norms
    return [totals]


def _side_by_side(parts: list[tuple[Csr, Array]], size: int) -> tuple[Array, Array, Array]:
    """Rows of several tables side by side, in CSR form without entries of 0."""
    indptr = np.zeros(size + 1, dtype=np.int64)
    for csr, rows in parts:
        _count_entries(csr.indptr, rows, indptr[1:])
    np.cumsum(indptr, out=indptr)
    indices, values = np.empty(indptr[-1], dtype=np.int64), np.empty(indptr[-1])
    ends, first = indptr[:-1].copy(), 0
    for csr, rows in parts:
        _append_rows(csr.indptr, csr.indices, csr.data, rows, first, ends, indices, values)
        first += csr.shape[1]
    nonzero = values != 0
    if nonzero.all():
        return indptr, indices, values
    return np.append(0, np.cumsum(nonzero))[indptr], indices[nonzero], values[nonzero]


@compiled
def _count_entries(indptr: Array, rows: Array, counts: Array) -> None:
    """counts(t) += the number of entries of row rows(t)."""
    for t in range(len(rows)):
        counts[t] += indptr[rows[t] + 1] - indptr[rows[t]]


@compiled
def _append_rows(
    indptr: Array, columns: Array, data: Array, rows: Array, first: int, ends: Array, indices: Array,
    values: Array,
) -> None:  # fmt: skip
    """Append row rows(t) of a matrix, its columns from `first` on, to row t, ending at ends(t)."""
    for t in range(len(rows)):
        for e in range(indptr[rows[t]], indptr[rows[t] + 1]):
            indices[ends[t]], values[ends[t]] = first + columns[e], data[e]
            ends[t] += 1


@lru_cache
def _by_multiset(degree: int, offset: float, scale: float) -> Array:
    """The coefficients of multisets, by their size."""
    return np.array([math.comb(degree, k) * scale**k * offset ** (degree - k) for k in range(degree + 1)])


@lru_cache
def _by_set(degree: int, offset: float, scale: float) -> Array:
    """The coefficients of sets, by their size."""
    values = (scale * np.arange(degree + 1) + offset) ** degree
    return np.array([np.diff(values, k)[0] for k in range(degree + 1)])


class _Kind(NamedTuple):
    """Which monomials to list, and whether new ones are numbered."""

    base: int
    degree: int
    repeats: bool
    binary_training: bool
    learn: bool


class _Scratch(NamedTuple):
    """Memory for the monomials of a node, as `_monomials` fills it."""

    monomial_keys: Array
    marks: Array
    reals: Array


class Monomials:
    """Numbers monomials in order of first occurrence, by their keys in a hash table.

    The key of a monomial has the numbers of its features, each plus one, as digits to the base of
    `MonomialVectors`. Sorted arrays (`numpy.unique`, `numpy.searchsorted`) would do without a hash
    table but take six times as long to number monomials (0.95 s instead of 0.15 s for the 3.8
    million monomials of degree 2 of 257,000 nodes with spelling features), and five times as long
    to look them up.

    Parameters
    ----------
    monomial_keys : (F,) array of int, optional
        The keys of the first monomials, by number. Default: none.

    Attributes
    ----------
    count : int
        F, the number of monomials.
    """

    def __init__(self, monomial_keys: Array = _NO_KEYS) -> None:
        self.count = len(monomial_keys)
        capacity = 1 << max(12, (2 * self.count).bit_length())
        self._slot_keys, self._numbers = _hash_table(
            capacity, monomial_keys, np.arange(self.count, dtype=np.int32)
        )

    def keys(self) -> Array:
        """(F,) the keys by number."""
        used = self._slot_keys >= 0
        monomial_keys = np.empty(self.count, dtype=np.int64)
        monomial_keys[self._numbers[used]] = self._slot_keys[used]
        return monomial_keys

    def expand(
        self, vectors: MonomialVectors, binary_training: bool, learn: bool
    ) -> tuple[Array, Array, Array]:
        """List the monomials of all nodes.

        Parameters
        ----------
        vectors : MonomialVectors
            The feature vectors of the nodes.
        binary_training : bool
            Whether a monomial is identified by its set of features alone, as where all values in
            training are 0 or 1.
        learn : bool
            Whether new monomials get numbers.

        Returns
        -------
        indptr : (N + 1,) array of int
            The bounds of the nodes.
        ids : array of uint32
            The numbers of their monomials; `count` where unknown.
        values : array
            The values of the monomials; empty where all are 1.
        """
        indptr = np.zeros(len(vectors) + 1, dtype=np.int64)
        np.cumsum(vectors.counts(binary_training), out=indptr[1:])
        ids = np.empty(indptr[-1], dtype=np.uint32)  # unsigned look-ups need no test of the sign
        values = np.empty(0 if vectors.binary else len(ids))
        kind = _Kind(vectors.base, vectors.degree, vectors.repeats(binary_training), binary_training, learn)
        rows, factors = (
            (vectors.indptr, vectors.indices, vectors.values),
            (vectors.by_multiset, vectors.by_set),
        )
        table = self._slot_keys, self._numbers, self.count
        self._slot_keys, self._numbers, self.count = _expand(rows, kind, factors, table, indptr, ids, values)
        return indptr, ids, values


@compiled
def _hash_table(capacity: int, monomial_keys: Array, numbers: Array) -> tuple[Array, Array]:
    """A hash table from keys to numbers."""
    slot_keys, values = np.full(capacity, FREE, dtype=np.int64), np.empty(capacity, dtype=np.int32)
    for i in range(len(monomial_keys)):
        slot = slot_of(slot_keys, monomial_keys[i])
        slot_keys[slot], values[slot] = monomial_keys[i], numbers[i]
    return slot_keys, values


@compiled
def _monomials(indices: Array, entries: Array, begin: int, end: int, kind: _Kind, scratch: _Scratch) -> int:
    """List all monomials of the features begin … end − 1, and return their number.

    Each extends a monomial of one degree less by a feature not before its last. `monomial_keys`
    has its key; `marks` the position of its last feature, how often that occurs, the number of
    distinct features, and the degree; `reals` its value, and k! / Π mult!.
    """
    monomial_keys, marks, reals = scratch
    repeats = kind.repeats
    monomial_keys[0] = 0
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
                monomial_keys[count] = monomial_keys[e]
                if not (again and kind.binary_training):
                    monomial_keys[count] = monomial_keys[e] * kind.base + indices[p] + 1
                reals[count, 0] = reals[e, 0] * entries[p]
                reals[count, 1] = reals[e, 1] * k / marks[count, 1]
                count += 1
        first, last = last, count
    return last


@compiled
def _number(
    monomial_keys: Array, slot_keys: Array, numbers: Array, count: int, learn: bool, ids: Array
) -> int:
    """Look up the numbers of keys, `count` where unknown; or number these from `count` on."""
    for e in range(len(monomial_keys)):
        slot = slot_of(slot_keys, monomial_keys[e])
        if slot_keys[slot] < 0 and learn:
            slot_keys[slot] = monomial_keys[e]
            numbers[slot] = count
            count += 1
        ids[e] = numbers[slot] if slot_keys[slot] >= 0 else count
    return count


@compiled
def _expand(
    rows: Any, kind: _Kind, factors: Any, table: Any, indptr: Array, ids: Array, values: Array
) -> tuple[Array, Array, int]:
    """Number the monomials of all nodes; the hash table, which grows where it is half full."""
    starts, indices, entries = rows
    by_multiset, by_set = factors
    slot_keys, numbers, count = table
    most = max(1, np.diff(indptr).max()) if len(indptr) > 1 else 1
    monomial_keys, marks = np.empty(most, dtype=np.int64), np.empty((most, 4), dtype=np.int64)
    scratch = _Scratch(monomial_keys, marks, np.empty((most, 2)))
    for t in range(len(starts) - 1):
        while kind.learn and 2 * (count + indptr[t + 1] - indptr[t]) > len(slot_keys):
            slot_keys, numbers = _hash_table(
                4 * len(slot_keys), slot_keys[slot_keys >= 0], numbers[slot_keys >= 0]
            )
        size = _monomials(indices, entries, starts[t], starts[t + 1], kind, scratch)
        count = _number(
            monomial_keys[:size], slot_keys, numbers, count, kind.learn, ids[indptr[t] : indptr[t + 1]]
        )
        if len(values) > 0:
            for e in range(size):
                x = scratch.reals[e, 0]
                if kind.binary_training and marks[e, 3] > 0:  # a multiset in the place of its set
                    x *= scratch.reals[e, 1] * by_multiset[marks[e, 3]] / by_set[marks[e, 2]]
                values[indptr[t] + e] = x
    return slot_keys, numbers, count


def coefficients(monomial_keys: Array, vectors: MonomialVectors) -> Array:
    """(F,) the coefficient c_f of each monomial, from the digits of its key."""
    sizes = np.zeros(len(monomial_keys), dtype=np.int64)
    ways, run, before = np.ones(len(sizes)), np.ones(len(sizes)), np.zeros(len(sizes), dtype=np.int64)
    while monomial_keys.any():
        monomial_keys, digit = np.divmod(monomial_keys, vectors.base)
        sizes += digit > 0
        run = np.where(digit == before, run + 1, 1.0)
        ways = np.where(digit > 0, ways * sizes / run, ways)
        before = digit
    return vectors.by_set[sizes] if vectors.binary else vectors.by_multiset[sizes] * ways


@compiled
def inner_products(
    indptr: Array, indices: Array, values: Array, nodes: Array, others: Array, out: Array
) -> None:
    """Compute inner products between the CSR rows `nodes` and `others` into out (n, m)."""
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
