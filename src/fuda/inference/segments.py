"""Exact sums over the segmentations of sequences: forward, backward, expectations.

A *segmentation* divides the nodes 0 … T−1 into *chunks* (s, e, a): the nodes s … e−1 have the kind
a, and e − s ≤ D_a. A chunk *begins* something new, or is *joined* to a chunk before it of the same
kind that has the full length D_a. Chunks that are joined are one segment, so that segments may be
of any length, and each has exactly one division into chunks: D_a, D_a, …, and a rest of at
least 1. A segmentation scores

    F = Σ_{nodes t} s_t(a_t) + Σ_{segments} first_s(a) + last_{e−1}(a)
        + Σ_{chunks} length(a, e − s) + text(s, e, a)
        + Σ_{neighbouring segments} A(a, a′) + Σ_{joined chunks} C(a),

and A is −inf between kinds that must not follow each other: a kind whose runs are its segments
does not follow itself. With D = 1 for all kinds this is a chain with the transitions A, and C on
the diagonal.

Let β(e, a) sum over all that may follow a segment of kind a that ends before e, N(s, a) over all
that may begin with a segment at s, and J(s, a) over all that may follow from a joined chunk at s:

    J(s, a) = log Σ_d exp[chunk(s, s+d, a) + last + β(s+d, a)]
                      + [d = D_a] exp[chunk + C(a) + J(s+d, a)]
    N(s, a) = first_s(a) + J(s, a)
    β(e, a) = log Σ_b exp[A(a, b) + N(e, b)],   β(T, a) = 0,   log Z = log Σ_a exp N(0, a).

The sums over kinds are apart from those over lengths, so that all is O(T K (D + K)). Everything is
in logarithms, which do for any scores; terms below e⁻⁴⁵ of the largest are left out, which is less
than rounding changes.

*Limits* restrict segmentations: ``ahead`` (N, K) is the length of the longest chunk of a kind that
may start at a node, and ``boundary_flags`` (N,) forbids at the boundary before a node `NEW`
segments, `JOINED` nodes, or both. Empty arrays allow everything.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fuda.data.graph import Array
from fuda.data.segments import JOINED, NEW
from fuda.errors import DataError, place
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import Block, blocks, run

_NEGLIGIBLE = -45.0
# Sums of products above it have lost nothing relevant to underflow.
_NO_UNDERFLOW = 1e-200
# There are about 16 blocks of at least 1,024 nodes, since each block has its own totals.
_FEW_BLOCKS, _LEAST_NODES = 16, 1024


class Scores(NamedTuple):
    """What segmentations of a corpus score.

    Attributes
    ----------
    offsets : (n + 1,) array of int
        The bounds of the sequences.
    inside, first, last : (N, K) arrays
        The scores of nodes: of all, and of the first and last of segments.
    longest : (K,) array of int
        D.
    lengths : (K, max D + 1) array
        The scores of lengths of chunks.
    transitions : (K, K) array
        A, the kind before by rows; −inf where it is not allowed.
    joins : (K,) array
        C; −inf where chunks are not joined.
    singles : (K,) array of bool
        Whether a segment may be a single node.
    rows : (N, M, c) array of int
        The rows of `texts` for the chunks of 2 … M + 1 nodes that end at each node.
    texts : (V, K) array
        The scores of texts; the last row is that of all other texts, 0.
    """

    offsets: Array
    inside: Array
    first: Array
    last: Array
    longest: Array
    lengths: Array
    transitions: Array
    joins: Array
    singles: Array
    rows: Array
    texts: Array


class Limits(NamedTuple):
    """Which segmentations count.

    Attributes
    ----------
    ahead : (N, K) array of int32, or (0, 0)
        The longest chunk of each kind that may start at a node.
    boundary_flags : (N,) array of uint8, or (0,)
        What the boundary before each node must not be.
    """

    ahead: Array
    boundary_flags: Array


FREE = Limits(np.zeros((0, 0), dtype=np.int32), np.zeros(0, dtype=np.uint8))


class Expected(NamedTuple):
    """Expectations, by node and in total.

    Attributes
    ----------
    log_z : (n,) array
        log Z of each sequence.
    inside, first, last, single : (N, K) arrays
        The probabilities that a node is of a kind, the first of a segment, the last, both.
    lengths, transitions, joins, texts : arrays
        The expected numbers of chunks by length, of neighbouring segments, of joined chunks and of
        chunks by text, weighted by sequence and summed.
    """

    log_z: Array
    inside: Array
    first: Array
    last: Array
    single: Array
    lengths: Array
    transitions: Array
    joins: Array
    texts: Array


class After(NamedTuple):
    """N (T, K), J (T, K) and β (T + 1, K) of a sequence."""

    new: Array
    joined: Array
    ended: Array


class Before(NamedTuple):
    """Sums over all that may come before (T, K): before a new segment, a joined chunk, either.

    `first` is in the last one only.
    """

    begun: Array
    opened: Array
    entered: Array


@compiled
def _sum(terms: Array, first: int, count: int, best: bool) -> float:
    """The logarithm of the sum of the exponentials of terms, or the largest."""
    top = -np.inf
    for k in range(first, count):
        top = max(top, terms[k])
    if best or top == -np.inf:
        return top
    total = 0.0
    for k in range(first, count):
        if terms[k] - top > _NEGLIGIBLE:
            total += math.exp(terms[k] - top)
    return top + math.log(total)


@compiled
def _shares(terms: Array, count: int, shares: Array) -> tuple[float, float]:
    """The largest term; the sum of the exponentials of differences from it, which `shares` are."""
    top, total = -np.inf, 0.0
    for k in range(count):
        top = max(top, terms[k])
    for k in range(count):
        shares[k] = math.exp(terms[k] - top) if terms[k] - top > _NEGLIGIBLE else 0.0
        total += shares[k]
    return top, total


@compiled
def chunk_scores(scores: Scores, begin: int, end: int) -> Array:
    """(T, D, K) what chunks score without `first` and `last`: by first node, by length from 1."""
    T, K, D = end - begin, scores.inside.shape[1], scores.lengths.shape[1] - 1
    chunks, inside = np.empty((T, D, K)), np.empty(K)
    for s in range(T):
        inside[:] = 0.0
        for d in range(1, min(D, T - s) + 1):
            t = begin + s + d - 1
            for a in range(K):
                inside[a] += scores.inside[t, a]
                chunks[s, d - 1, a] = inside[a] + scores.lengths[a, d]
            if 2 <= d < scores.rows.shape[1] + 2:
                for c in range(scores.rows.shape[2]):
                    row = scores.rows[t, d - 2, c]
                    if row < len(scores.texts) - 1:
                        for a in range(K):
                            chunks[s, d - 1, a] += scores.texts[row, a]
    return chunks


@compiled
def _mixed(matrix: Array, factors: Array, top: float, values: Array, terms: Array, out: Array) -> None:
    """out(a) = log Σ_b exp[matrix(a, b) + values(b)], with factors = exp(matrix − top)."""
    size = len(values)
    largest = values.max()
    if largest == -np.inf:
        out[:] = -np.inf
        return
    for b in range(size):
        terms[b] = math.exp(values[b] - largest)
    for a in range(size):
        total = 0.0
        for b in range(size):
            total += factors[a, b] * terms[b]
        out[a] = largest + top + math.log(total) if total > _NO_UNDERFLOW else -np.inf
    for a in range(size):
        if out[a] == -np.inf:
            for b in range(size):
                terms[b] = matrix[a, b] + values[b]
            out[a] = _sum(terms, 0, size, False)


@compiled
def after(scores: Scores, limits: Limits, begin: int, end: int, chunks: Array, best: bool) -> After:
    """N, J and β of the sequence of nodes begin … end − 1; with `best`, maxima instead of sums."""
    T, K = end - begin, scores.inside.shape[1]
    new, joined, ended = np.empty((T, K)), np.empty((T, K)), np.zeros((T + 1, K))
    terms = np.empty(max(2 * scores.lengths.shape[1], K))
    top = scores.transitions.max()
    top = 0.0 if top == -np.inf else top
    factors = np.exp(scores.transitions - top)
    limited = len(limits.boundary_flags) > 0
    for s in range(T - 1, -1, -1):
        t = begin + s
        for a in range(K):
            most = min(scores.longest[a], T - s)
            if limited:
                most = min(most, limits.ahead[t, a])
            count = 0
            for d in range(1, most + 1):
                value = chunks[s, d - 1, a]
                terms[count] = value + scores.last[t + d - 1, a] + ended[s + d, a]
                count += 1
                if d == scores.longest[a] and s + d < T:
                    terms[count] = value + scores.joins[a] + joined[s + d, a]
                    count += 1
            joined[s, a] = _sum(terms, 0, count, best)
            # the first term is that of a single node that ends what it began
            begun = joined[s, a] if scores.singles[a] else _sum(terms, 1, count, best)
            new[s, a] = scores.first[t, a] + begun
        flags = limits.boundary_flags[t] if limited else 0
        if flags & JOINED or s == 0:
            joined[s] = -np.inf
        if flags & NEW:
            new[s] = -np.inf
        if best:
            for a in range(K):
                for b in range(K):
                    terms[b] = scores.transitions[a, b] + new[s, b]
                ended[s, a] = _sum(terms, 0, K, True)
        else:
            _mixed(scores.transitions, factors, top, new[s], terms, ended[s])
    return After(new, joined, ended)


@compiled
def _add_pairs(
    scores: Scores,
    factors: Array,
    top: float,
    ended: Array,
    new: Array,
    log_z: float,
    weight: float,
    into: Array,
) -> None:
    """Add the probabilities of segment pairs at a boundary; factors = exp(transitions − top)."""
    high, low = ended.max(), new.max()
    shift = high + low + top - log_z
    if shift == -np.inf:
        return
    if shift > 600.0:  # products would overflow
        for a in range(len(ended)):
            for b in range(len(ended)):
                into[a, b] += weight * math.exp(ended[a] + scores.transitions[a, b] + new[b] - log_z)
        return
    scale, following = weight * math.exp(shift), np.exp(new - low)
    for a in range(len(ended)):
        before = scale * math.exp(ended[a] - high)
        for b in range(len(ended) if before else 0):
            into[a, b] += before * factors[a, b] * following[b]


@compiled
def _chunks_to(
    scores: Scores, limits: Limits, t: int, e: int, a: int, chunks: Array, before: Before, terms: Array
) -> tuple[int, float]:
    """Fill in the terms, by length, of all chunks of a kind that end before e.

    Returns their number, and the term of a chunk of full length.
    """
    count = 0
    for d in range(1, min(scores.longest[a], e) + 1):
        if len(limits.boundary_flags) > 0 and limits.ahead[t - d, a] < d:
            break
        terms[count] = before.entered[e - d, a] + chunks[e - d, d - 1, a]
        count += 1
    full = terms[count - 1] if count == scores.longest[a] else -np.inf
    if count and not scores.singles[a]:
        terms[0] = before.opened[e - 1, a] + chunks[e - 1, 0, a]
    return count, full


@compiled
def _visit(
    scores: Scores,
    limits: Limits,
    begin: int,
    chunks: Array,
    follow: After,
    weight: float,
    into: Expected,
) -> None:
    """The forward pass over a sequence, which adds all expectations."""
    T, K = len(chunks), scores.inside.shape[1]
    log_z = _sum(follow.new[0], 0, K, False)
    top = scores.transitions.max()
    top = 0.0 if top == -np.inf else top
    back = scores.transitions.T.copy()
    factors = np.exp(scores.transitions - top)
    back_factors = factors.T.copy()
    before = Before(np.zeros((T, K)), np.full((T, K), -np.inf), np.empty((T, K)))
    ended, changes, both = np.empty(K), np.zeros((T + 1, K)), np.empty(2)
    terms, shares = np.empty(max(K, scores.lengths.shape[1])), np.empty(scores.lengths.shape[1])
    for e in range(T + 1):
        t = begin + e
        for a in range(K if e else 0):
            count, full = _chunks_to(scores, limits, t, e, a, chunks, before, terms)
            high, total = _shares(terms, count, shares)
            ended[a] = high + math.log(total) + scores.last[t - 1, a] if total else -np.inf
            rest = scores.last[t - 1, a] + follow.ended[e, a] - log_z
            into.last[t - 1, a] = math.exp(min(0.0, ended[a] + follow.ended[e, a] - log_z))
            single = before.begun[e - 1, a] + scores.first[t - 1, a] + chunks[e - 1, 0, a] + rest
            into.single[t - 1, a] = math.exp(min(0.0, single)) if count and scores.singles[a] else 0.0
            shares[:count] *= math.exp(high + rest)
            if e < T:
                before.opened[e, a] = full + scores.joins[a]
                share = before.opened[e, a] + follow.joined[e, a] - log_z
                if share > _NEGLIGIBLE:
                    into.joins[a] += weight * math.exp(share)
                    shares[count - 1] += math.exp(share)
            _add_chunks(
                shares[:count], e, a, weight, changes, into.lengths[a], scores.rows[t - 1], into.texts
            )
        if e < T:
            flags = limits.boundary_flags[t] if len(limits.boundary_flags) > 0 else 0
            if flags & JOINED:
                before.opened[e] = -np.inf
            if e:
                _add_pairs(scores, factors, top, ended, follow.new[e], log_z, weight, into.transitions)
                _mixed(back, back_factors, top, ended, terms, before.begun[e])
            if flags & NEW:
                before.begun[e] = -np.inf
            for a in range(K):
                into.first[t, a] = math.exp(min(0.0, before.begun[e, a] + follow.new[e, a] - log_z))
                both[0], both[1] = before.begun[e, a] + scores.first[t, a], before.opened[e, a]
                before.entered[e, a] = _sum(both, 0, 2, False)
    for s in range(T):
        for a in range(K):
            changes[s + 1, a] += changes[s, a]
            into.inside[begin + s, a] = min(1.0, max(0.0, changes[s, a]))


@compiled
def _add_chunks(
    shares: Array, e: int, a: int, weight: float, changes: Array, lengths: Array, rows: Array, texts: Array
) -> None:
    """Add the probabilities of the chunks of a kind that end before e, by length."""
    for k in range(len(shares)):
        changes[e - k - 1, a] += shares[k]
        changes[e, a] -= shares[k]
        lengths[k + 1] += weight * shares[k]
    for k in range(1, min(len(shares), len(rows) + 1)):
        for c in range(rows.shape[1]):
            texts[rows[k - 1, c], a] += weight * shares[k]


@compiled
def _expect(first: int, last: int, scores: Scores, limits: Limits, weights: Array, into: Expected) -> None:
    """Expectations of the sequences first … last − 1."""
    for i in range(first, last):
        if weights[i] == 0.0:
            continue
        begin, end = scores.offsets[i], scores.offsets[i + 1]
        chunks = chunk_scores(scores, begin, end)
        follow = after(scores, limits, begin, end, chunks, False)
        into.log_z[i] = _sum(follow.new[0], 0, scores.inside.shape[1], False)
        if into.log_z[i] > -np.inf:
            _visit(scores, limits, begin, chunks, follow, weights[i], into)


@compiled
def _partition(first: int, last: int, scores: Scores, limits: Limits, log_z: Array) -> None:
    """log Z of the sequences first … last − 1."""
    for i in range(first, last):
        begin, end = scores.offsets[i], scores.offsets[i + 1]
        follow = after(scores, limits, begin, end, chunk_scores(scores, begin, end), False)
        log_z[i] = _sum(follow.new[0], 0, scores.inside.shape[1], False)


def sequence_blocks(offsets: Array) -> list[Block]:
    """Blocks of sequences, which depend on their lengths alone."""
    return blocks(offsets, max(_LEAST_NODES, int(offsets[-1]) // _FEW_BLOCKS))


def check_possible(log_z: Array) -> None:
    """Raise DataError at the first sequence none of whose segmentations is allowed."""
    for i in np.flatnonzero(log_z == -np.inf)[:1]:
        raise DataError(
            f"{place(int(i))}: no segmentation agrees with its known labels; check them against the scheme "
            "and the labels of the model"
        )


def log_partition(scores: Scores, limits: Limits = FREE, n_jobs: int | None = None) -> Array:
    """Compute log Z of each sequence.

    Parameters
    ----------
    scores : Scores
        What segmentations score.
    limits : Limits
        Which of them count.
    n_jobs : int or None
        The number of threads; None is all cores.

    Returns
    -------
    (n,) array
        log Z.
    """
    log_z = np.empty(len(scores.offsets) - 1)
    run(lambda block: _partition(*block, scores, limits, log_z), sequence_blocks(scores.offsets), n_jobs)
    check_possible(log_z)
    return log_z


def expectations(
    scores: Scores, limits: Limits = FREE, weights: Array | None = None, n_jobs: int | None = None
) -> Expected:
    """Compute log Z and its derivatives, which are expectations.

    Parameters
    ----------
    scores : Scores
        What segmentations score.
    limits : Limits
        Which of them count.
    weights : (n,) array, optional
        Weights of sequences in what is summed over them; those of 0 are left out. Default: 1.
    n_jobs : int or None
        The number of threads; None is all cores.

    Returns
    -------
    Expected
        log Z, probabilities and expected numbers.
    """
    count, shape = len(scores.offsets) - 1, scores.inside.shape
    weights = np.ones(count) if weights is None else weights
    log_z, by_node = np.zeros(count), [np.zeros(shape) for _ in range(4)]

    def solve(block: Block) -> list[Array]:
        totals = [np.zeros_like(part) for part in (scores.lengths, scores.transitions, scores.joins)]
        totals.append(np.zeros_like(scores.texts))
        _expect(*block, scores, limits, weights, Expected(log_z, *by_node, *totals))
        return totals

    solved = run(solve, sequence_blocks(scores.offsets), n_jobs)
    check_possible(log_z)
    summed = (sum(parts[1:], parts[0]) for parts in zip(*solved, strict=True))
    return Expected(log_z, *by_node, *summed)
