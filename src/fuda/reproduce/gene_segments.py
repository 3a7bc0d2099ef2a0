"""The best gene structure with exons as segments, whose lengths are scored.

States other than exons are those of `fuda.reproduce.genes`: bases outside of genes, and
introns by how many bases of a codon came before and which of T, TA and TG they were. An exon
from a to b scores

    Σ_{a ≤ t < b} e_t(position of t in its codon) + log P(b − a | kind) + its two signals

with the kinds initial, internal, terminal and single. It ends at the first stop codon in its
frame, so that the number of candidates is small: from each AG and each ATG on, bases up to that
stop codon are read once. The result is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fuda.reproduce.gene_chain import PLAIN
from fuda.reproduce.gene_signals import signals
from fuda.runtime.compiled import compiled

Array = np.ndarray
LONGEST = 20_000
KINDS = ("initial", "internal", "terminal", "single")
# The share, median and spread (of logarithms) of a broad distribution that all kinds share.
_BROAD = 0.1, 150.0, 1.2
# The bandwidth of the estimate over logarithms of lengths.
_BANDWIDTH = 0.3
# The number in place of that of an intron if an exon begins a gene.
_OUTSIDE = -1


class Scores(NamedTuple):
    """The scores of gene structures in n bases; −inf where there is no signal.

    Attributes
    ----------
    bases : (n,) array of int
    outside, intron : (n,) array
        Of bases outside of genes and in introns, steps from base to base included.
    frames : (3, n + 1) array
        Sums of exon scores up to each base, if the first base of codons is at multiples of three,
        one after these, and two after them.
    start, donor, acceptor, stop : (n,) array
        Of signals, with the steps into and out of them: at the first base of a gene, the first and
        the last base of an intron, and the last base of a gene.
    lengths : (4, LONGEST + 1) array
        log P of the length of an exon, by `KINDS`.
    """

    bases: Array
    outside: Array
    intron: Array
    frames: Array
    start: Array
    donor: Array
    acceptor: Array
    stop: Array
    lengths: Array


def log_lengths(exons: Sequence[Sequence[tuple[int, int]]]) -> Array:
    """Estimate log P of lengths by kind, smooth over their logarithms.

    Parameters
    ----------
    exons : list of lists of (start, end)
        The exons of genes.

    Returns
    -------
    (4, LONGEST + 1) array
        By `KINDS`; −inf for the length 0.
    """
    seen: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for gene in exons:
        for k, (start, end) in enumerate(gene):
            first, last = k == 0, k == len(gene) - 1
            kind = "single" if first and last else "initial" if first else "terminal" if last else "internal"
            seen[kind].append(end - start)
    log_p = np.full((len(KINDS), LONGEST + 1), -np.inf)
    lengths = np.log(np.arange(1, LONGEST + 1))
    share, median, spread = _BROAD
    for row, kind in zip(log_p, KINDS, strict=True):
        density = share * _normal(lengths - np.log(median), spread)
        for length in seen[kind]:
            density += (1 - share) / len(seen[kind]) * _normal(lengths - np.log(length), _BANDWIDTH)
        row[1:] = np.log(density) - lengths
    return log_p


def segment_scores(bases: Array, scores: Array, steps: Array, lengths: Array) -> Scores:
    """Return the scores of segments from those of a chain of the states `PLAIN`.

    Parameters
    ----------
    bases : (n,) array of int
    scores : (n, states) array
        The scores of the states of bases.
    steps : (states, states) array
        log P of steps, of which those within introns and outside of genes count.
    lengths : (4, LONGEST + 1) array
        log P of lengths.

    Returns
    -------
    Scores
        The scores. Steps out of exons are scored by the lengths of exons.
    """
    at, number, here = signals(bases), PLAIN.index, np.arange(len(bases))
    coding = scores[:, [number("E0"), number("E1"), number("E2")]]
    frames = np.zeros((3, len(bases) + 1))
    for frame, row in enumerate(frames):
        np.cumsum(coding[here, (here - frame) % 3], out=row[1:])

    def signal(values: Array, *names: str) -> Array:
        at_signals = np.full(len(bases), -np.inf)
        for name in names:
            at_signals[at[name]] = values[at[name]]
        return at_signals

    def step(a: str, b: str) -> float:
        return float(steps[number(a), number(b)])

    # Of exons, before an intron or at the stop.
    ends = np.logaddexp(step("E0", "D1"), step("E2", "D0"))
    stop = step("E1", "T")
    both = np.logaddexp(ends, stop)
    return Scores(
        np.ascontiguousarray(bases),
        scores[:, number("N")] + step("N", "N"),
        scores[:, number("I0")] + step("I0", "I0"),
        frames,
        signal(scores[:, number("S")] - coding[:, 0] + step("N", "S"), "ATG"),
        signal(scores[:, number("D0")] + ends - both, "GT", "GC"),
        signal(scores[:, number("A0")] + step("I0", "A0"), "AG"),
        signal(scores[:, number("T")] - coding[:, 2] + stop - both, "stop"),
        lengths,
    )


def _normal(x: Array, spread: float) -> Array:
    """The density of a normal distribution."""
    return np.exp(-0.5 * (x / spread) ** 2) / (spread * np.sqrt(2 * np.pi))


@compiled
def _is_stop(a: int, b: int, c: int) -> bool:
    """Whether a codon is TAA, TAG or TGA."""
    return a == 3 and ((b == 0 and (c == 0 or c == 2)) or (b == 2 and c == 0))


@compiled
def _remembered(position: int, before: int, last: int) -> int:
    """The number of an intron after a base, by its place in the codon: 0; 1, T; others, TA, TG."""
    if position == 2:
        return 0
    if position == 0:
        return 2 if last == 3 else 1
    if before == 3 and last == 0:
        return 4
    return 5 if before == 3 and last == 2 else 3


@compiled
def _extend(start: int, intron: int, value: float, scores: Scores, best: Array, back: Array) -> None:
    """Enter all exons from a base on into `best` and `back`, after an intron or to begin a gene.

    `best` (n, 7) has the values of introns that begin at a base, and of genes that end at one.
    """
    bases, frames = scores.bases, scores.frames
    position = 0 if intron <= 0 else 1 if intron <= 2 else 2
    frame = (start - position) % 3
    # The bases of the codon so far; where an intron does not remember them, no stop
    # codon can follow.
    first = 3 if intron == 2 or intron >= 4 else 0
    second = 2 if intron == 5 else 0
    opening = 0 if intron == -1 else 1
    for t in range(start, min(len(bases), start + LONGEST)):
        base = bases[t]
        if position == 2:
            if _is_stop(first, second, base):
                if t - start >= 2 and scores.stop[t] > -np.inf:
                    total = value + frames[frame, t + 1] - frames[frame, start] + scores.stop[t]
                    total += scores.lengths[2 if opening else 3, t + 1 - start]
                    if total > best[t, 6]:
                        best[t, 6], back[t, 6, 0], back[t, 6, 1] = total, start, intron
                return
        elif position == 0:
            first = base
        else:
            second = base
        end = t + 1
        may_end = intron >= 0 or end - start >= 3  # no intron interrupts the start codon
        if may_end and end < len(bases) and scores.donor[end] > -np.inf:
            total = value + frames[frame, end] - frames[frame, start] + scores.donor[end]
            total += scores.lengths[opening, end - start]
            following = _remembered(position, first, base)
            if total > best[end, following]:
                best[end, following] = total
                back[end, following, 0], back[end, following, 1] = start, intron
        position = (position + 1) % 3


@compiled
def _forward(scores: Scores) -> tuple[Array, Array, float]:
    """The origins of exons by their ends, the entries of introns and outsides, the best score."""
    size = len(scores.bases)
    best = np.full((size, 7), -np.inf)
    back = np.zeros((size, 7, 2), dtype=np.int32)
    entered = np.zeros((size, 7), dtype=np.bool_)
    outside, introns = scores.outside[0], np.full(6, -np.inf)
    for t in range(1, size):
        if scores.start[t] > -np.inf:
            _extend(t, -1, outside + scores.start[t], scores, best, back)
        for k in range(6):
            if introns[k] > -np.inf and scores.acceptor[t] > -np.inf and t + 1 < size:
                _extend(t + 1, k, introns[k] + scores.acceptor[t], scores, best, back)
            introns[k] += scores.intron[t]
            if best[t, k] > introns[k]:
                introns[k], entered[t, k] = best[t, k], True
        if best[t - 1, 6] > outside:
            outside, entered[t, 6] = best[t - 1, 6], True
        outside += scores.outside[t]
    return back, entered, outside


def best_exons(scores: Scores) -> tuple[list[tuple[int, int]], float]:
    """Find the exons of the best gene structure; the ends are outside of genes.

    Parameters
    ----------
    scores : Scores
        The scores.

    Returns
    -------
    exons : list of (start, end)
        In order, as Python slices.
    score : float
        The score of the structure.
    """
    back, entered, score = _forward(scores)
    exons: list[tuple[int, int]] = []
    t, state = len(scores.bases) - 1, 6
    while t > 0:
        if not entered[t, state]:
            t -= 1
            continue
        end, row = (t, t - 1) if state == 6 else (t, t)
        start, state = back[row, state].tolist()
        exons.append((start, end))
        t = start - 1 if state == _OUTSIDE else start - 2
        state = 6 if state == _OUTSIDE else state
    return exons[::-1], score
