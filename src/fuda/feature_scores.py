"""Scores of nodes under a polynomial kernel, by its features written out.

For vectors a, b with m = ⟨a, b⟩ the kernel (s m + o)^d is itself an inner product, of monomials:

    (s m + o)^d = Σ_{k ≤ d} C(d, k) s^k o^{d−k} m^k,
    m^k = Σ over multisets of k features of (k! / Π multiplicity!) Π a_j Π b_j.

Where all values are 0 or 1, sets take the place of multisets, since C(m, k) counts the common sets of k
features: (s m + o)^d = Σ_{k ≤ d} Δ^k f(0) C(m, k), with the differences of f(m) = (s m + o)^d at 0. A node
with four features has eleven monomials of degree two or less, so that its score is eleven look-ups in a table
of weights, however large the training corpus is:

    s_t(σ) = ν_t Σ_{f ∈ t} x_tf W(f, σ),      β(t, σ) += δ  means  W(f, σ) += c_f ν_t x_tf δ  for all f ∈ t,

where x_tf is the monomial's value at t and c_f its coefficient; ν_t is 1, or 1/√k(x_t, x_t) where the kernel
is normalized. Monomials that no training node has weigh 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from fuda.encoding import Encoded
from fuda.kernel_scores import Expansion, KernelScores, Shown, window_of
from fuda.kernels import Kernel, Linear, Normalized, Polynomial
from fuda.parallel import run
from fuda.points import Numbering

Array = np.ndarray
Features = tuple[Array, Array, Array, Array, Array]
MOST_ENTRIES = 400_000_000  # monomials of all nodes together, four bytes each
_BLOCK_NODES = 1024


def scores_for(
    kernel: Kernel, encoded: Encoded, label_count: int, n_jobs: int | None = None
) -> KernelScores | FeatureScores:
    """Scores by written-out features where the kernel has few enough of them, else by pushing."""
    if is_polynomial(kernel):
        vectors = Vectors(kernel, encoded)
        if vectors.base**vectors.degree < 2**63 and vectors.counts(not vectors.binary).sum() <= MOST_ENTRIES:
            return FeatureScores(vectors, label_count, n_jobs)
    return KernelScores(encoded, kernel, label_count, n_jobs)


def function_for(
    kernel: Kernel, encoded: Encoded, beta: Array, n_jobs: int | None = None
) -> Expansion | MonomialWeights:
    """The function Σ_τ β(τ) k(x_τ, ·) over the nodes τ of a corpus; β is (N, L)."""
    held = scores_for(kernel, encoded, beta.shape[1], n_jobs)
    if isinstance(held, KernelScores):
        held.beta += beta  # the scores of the corpus itself are not wanted: no push
    else:
        held.add(0, len(beta), beta)
    return held.function()


def is_polynomial(kernel: Kernel) -> bool:
    """Whether a kernel is linear or polynomial, normalized or not."""
    return isinstance(_plain(kernel), Linear | Polynomial)


def _plain(kernel: Kernel) -> Kernel:
    return kernel.kernel if isinstance(kernel, Normalized) else kernel


class Vectors:
    """The stacked feature vectors of all nodes in CSR form, and the polynomial that the kernel is."""

    def __init__(self, kernel: Kernel, encoded: Encoded) -> None:
        plain = _plain(kernel)
        window = window_of(encoded, kernel, Numbering(encoded.corpus))
        matrix = sp.hstack([_summed(shown) for shown in window.channels], format="csr")
        matrix.eliminate_zeros()
        matrix.sort_indices()
        self.kernel = kernel
        self.indptr, self.indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
        self.values = matrix.data.astype(np.float64)
        self.base = matrix.shape[1] + 1
        self.degree, self.offset, self.scale = 1, 0.0, 1.0
        if isinstance(plain, Polynomial):
            self.degree, self.offset, self.scale = int(plain.degree), float(plain.offset), float(plain.scale)
        self.factors = np.ones(len(self))
        if isinstance(kernel, Normalized):
            own = np.asarray(plain.evaluate(window.norms, window.norms, window.norms))
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

    def counts(self, repeats: bool) -> Array:
        """(N,) how many monomials each node has, with or without features that repeat."""
        sizes = np.diff(self.indptr).astype(np.float64)
        total, term = np.ones(len(self)), np.ones(len(self))
        for k in range(1, self.degree + 1):
            term = term * (sizes + k - 1 if repeats else (sizes - k + 1).clip(0)) / k
            total += term
        return np.rint(total).astype(np.int64)


def _summed(shown: Shown) -> sp.csr_matrix:
    """What a channel shows of each node, several vectors added."""
    matrix = sp.csr_matrix(shown.points.features)
    if shown.indptr is None:
        return matrix[shown.rows]
    shape = (len(shown.indptr) - 1, matrix.shape[0])
    return sp.csr_matrix((np.ones(len(shown.rows)), shown.rows, shown.indptr), shape=shape) @ matrix


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
        """The monomials of all nodes in CSR form: bounds, numbers (unknown: one past the last) and values (none:
        all 1).

        With `sets` a monomial is named by its set of features alone, as where training values were 0 and 1.
        """
        repeats = not (sets and vectors.binary)
        counts = vectors.counts(repeats)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        ids = np.empty(indptr[-1], dtype=np.uint32)  # unsigned, so that look-ups need no test of the sign
        values = np.empty(0 if vectors.binary else len(ids))
        most = int(counts.max(initial=1))
        scratch = np.empty(most, dtype=np.int64), np.empty((most, 4), dtype=np.int64), np.empty((most, 2))
        kind = vectors.base, vectors.degree, repeats, sets, learn
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


@njit(cache=True, nogil=True)
def _slot(keys: Array, code: int) -> int:
    """Where a code is, or would go; the capacity is a power of two, and the table never full."""
    mask = len(keys) - 1
    slot: Any = np.int64((np.uint64(code) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
    while keys[slot] >= 0 and keys[slot] != code:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True, nogil=True)
def _insert(codes: Array, ids: Array, keys: Array, numbers: Array) -> None:
    for i in range(len(codes)):
        slot = _slot(keys, codes[i])
        keys[slot] = codes[i]
        numbers[slot] = ids[i]


@njit(cache=True, nogil=True)
def _monomials(
    indices: Array,
    entries: Array,
    begin: int,
    end: int,
    base: int,
    degree: int,
    repeats: bool,
    sets: bool,
    codes: Array,
    marks: Array,
    reals: Array,
) -> int:
    """All monomials of the features begin..end, each from one of a degree less and a feature not before its
    last: how many they are.

    Of each: its code; position of the last feature, how often that occurs, how many different features there
    are, the degree; its value, and k! / Π mult!.
    """
    codes[0] = 0
    marks[0, 0], marks[0, 1], marks[0, 2], marks[0, 3] = begin - 1, 0, 0, 0
    reals[0, 0], reals[0, 1] = 1.0, 1.0
    first, last = 0, 1
    for k in range(1, degree + 1):
        count = last
        for e in range(first, last):
            before = marks[e, 0]
            for p in range(before if repeats and k > 1 else before + 1, end):
                again = k > 1 and p == before
                marks[count, 0] = p
                marks[count, 1] = marks[e, 1] + 1 if again else 1
                marks[count, 2] = marks[e, 2] if again else marks[e, 2] + 1
                marks[count, 3] = k
                codes[count] = codes[e] if again and sets else codes[e] * base + indices[p] + 1
                reals[count, 0] = reals[e, 0] * entries[p]
                reals[count, 1] = reals[e, 1] * k / marks[count, 1]
                count += 1
        first, last = last, count
    return last


@njit(cache=True, nogil=True)
def _expand(
    rows: Any,
    node: int,
    kind: Any,
    by_multiset: Array,
    by_set: Array,
    scratch: Any,
    table: Any,
    indptr: Array,
    ids: Array,
    values: Array,
) -> tuple[int, int]:
    """The monomials of the nodes from `node` on, until all are done or the table is half full: the next node,
    and how many monomials are known."""
    starts, indices, entries = rows
    base, degree, repeats, sets, learn = kind
    codes, marks, reals = scratch
    keys, numbers, count = table
    for t in range(node, len(starts) - 1):
        if learn and 2 * (count + indptr[t + 1] - indptr[t]) > len(keys):
            return t, count
        size = _monomials(
            indices, entries, starts[t], starts[t + 1], base, degree, repeats, sets, codes, marks, reals
        )
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
                if sets and marks[e, 3] > 0:  # a multiset in the place of its set
                    values[at] *= reals[e, 1] * by_multiset[marks[e, 3]] / by_set[marks[e, 2]]
    return len(starts) - 1, count


class MonomialWeights:
    """A function from nodes to R^L by weights (L, F) of monomials, and a last column of zeros."""

    def __init__(self, kernel: Kernel, monomials: Monomials, sets: bool, weights: Array) -> None:
        self.kernel, self.monomials, self.sets, self.weights = kernel, monomials, sets, weights

    def of(self, encoded: Encoded, n_jobs: int | None = None) -> Array:
        """(M, L) the scores of the nodes of a corpus."""
        vectors = Vectors(self.kernel, encoded)
        rows = self.monomials.expand(vectors, self.sets, learn=False)
        return _score((*rows, vectors.factors, np.empty(0)), self.weights, n_jobs)


class FeatureScores:
    """Scores of all nodes of a training corpus under a polynomial kernel; used like `KernelScores`.

    `features` are what `score_label` and `update_label` take: monomials in CSR form (bounds, numbers,
    values), ν of each node, and c of each monomial.
    """

    def __init__(self, vectors: Vectors, label_count: int, n_jobs: int | None = None) -> None:
        self.vectors, self.label_count, self.n_jobs = vectors, label_count, n_jobs
        self._monomials = Monomials()
        rows = self._monomials.expand(vectors, vectors.binary, learn=True)
        coefficients = _coefficients(self._monomials.codes(), vectors)
        self.features: Features = (*rows, vectors.factors, coefficients)
        self.weights = np.zeros((label_count, self._monomials.count))
        self.beta = np.zeros((len(vectors), label_count))

    @property
    def scores(self) -> Array:
        """(N, L) the scores of all nodes, computed now."""
        return _score(self.features, self.weights, self.n_jobs)

    def local(self, begin: int, end: int) -> Array:
        """(end − begin, L) the scores of some nodes."""
        scores = np.empty((end - begin, self.label_count))
        _score_nodes(self.features, self.weights, begin, scores)
        return scores

    def add(self, begin: int, end: int, delta: Array) -> None:
        """β of nodes begin..end grows by delta (end − begin, L); only rows that are not 0 cost anything."""
        delta = np.ascontiguousarray(delta, dtype=np.float64)
        self.beta[begin:end] += delta
        _update_nodes(self.features, self.weights, begin, delta)

    def scale(self, factor: float) -> None:
        """Multiply the function by a number."""
        self.weights *= factor
        self.beta *= factor

    def gram(self, nodes: Array, others: Array) -> Array:
        """(n, m) kernel values between some nodes and others."""
        v = self.vectors
        values = np.empty((len(nodes), len(others)))
        _inner_products(v.indptr, v.indices, v.values, nodes, others, values)
        values *= v.scale
        values += v.offset
        return values**v.degree * v.factors[nodes, None] * v.factors[others]

    def function(self) -> MonomialWeights:
        """What was learned, without the training corpus and without weights of 0."""
        used = self.weights.any(axis=0)
        monomials = Monomials(self._monomials.codes()[used])
        weights = np.pad(self.weights[:, used], ((0, 0), (0, 1)))  # the last for monomials unknown
        return MonomialWeights(self.vectors.kernel, monomials, self.vectors.binary, weights)

    def of(self, encoded: Encoded) -> Array:
        """(M, L) the scores of the nodes of another corpus."""
        return self.function().of(encoded, self.n_jobs)


def _coefficients(codes: Array, vectors: Vectors) -> Array:
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


def _score(features: Features, weights: Array, n_jobs: int | None) -> Array:
    scores = np.empty((len(features[0]) - 1, len(weights)))

    def fill(begin: int) -> None:
        _score_nodes(features, weights, begin, scores[begin : begin + _BLOCK_NODES])

    run(fill, range(0, len(scores), _BLOCK_NODES), n_jobs)
    return scores


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def score_label(features: Features, weights: Array, t: int, label: int) -> float:
    """The score of one label at node t."""
    indptr, ids, values, factors, _ = features
    own = weights[label]
    total = 0.0
    if len(values) > 0:
        for e in range(indptr[t], indptr[t + 1]):
            total += values[e] * own[ids[e]]
    else:
        for e in range(indptr[t], indptr[t + 1]):
            total += own[ids[e]]
    return factors[t] * total


@njit(cache=True, nogil=True)
def update_label(features: Features, weights: Array, t: int, label: int, delta: float) -> None:
    """Bring the weights up to date when β of node t grows by `delta` at one label."""
    indptr, ids, values, factors, coefficients = features
    own = weights[label]
    change = factors[t] * delta
    if len(values) > 0:
        for e in range(indptr[t], indptr[t + 1]):
            own[ids[e]] += coefficients[ids[e]] * change * values[e]
    else:
        for e in range(indptr[t], indptr[t + 1]):
            own[ids[e]] += coefficients[ids[e]] * change


# Label by label, so that the weights of one label stay in the cache.
@njit(cache=True, nogil=True)
def _score_nodes(features: Features, weights: Array, begin: int, scores: Array) -> None:
    for b in range(scores.shape[1]):
        for n in range(scores.shape[0]):
            scores[n, b] = score_label(features, weights, begin + n, b)


@njit(cache=True, nogil=True)
def _update_nodes(features: Features, weights: Array, begin: int, delta: Array) -> None:
    for b in range(delta.shape[1]):
        for n in range(delta.shape[0]):
            if delta[n, b] != 0.0:
                update_label(features, weights, begin + n, b, delta[n, b])


@njit(cache=True, nogil=True)
def _inner_products(
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
