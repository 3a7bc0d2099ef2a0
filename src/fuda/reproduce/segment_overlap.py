"""Segment overlap (SOV) of predicted secondary structure.

After A. Zemla, Č. Venclovas, K. Fidelis, B. Rost, "A modified definition of Sov, a segment-based
measure for protein secondary structure prediction assessment", Proteins 34 (1999) 220. For a state
i let S(i) be all pairs of an observed segment s₁ and a predicted one s₂ of that state that share a
residue, and S′(i) the observed segments that overlap no predicted one. Then

    Sov = 100 / N · Σ_i Σ_{S(i)} (minov + δ) / maxov · |s₁|,
    N = Σ_i (Σ_{S(i)} |s₁| + Σ_{S′(i)} |s₁|),
    δ = min(maxov − minov, minov, ⌊|s₁|/2⌋, ⌊|s₂|/2⌋),

where minov is the number of residues that s₁ and s₂ share, and maxov of those in either.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple


class Segment(NamedTuple):
    """A run of equal labels, from `start` to `end`, which is past it."""

    label: Any
    start: int
    end: int


def segments(labels: Sequence[Any]) -> list[Segment]:
    """Return the runs of equal labels.

    Parameters
    ----------
    labels : sequence
        The labels of a chain.

    Returns
    -------
    list of Segment
        In order.

    Examples
    --------
    >>> [tuple(segment) for segment in segments("HHC")]
    [('H', 0, 2), ('C', 2, 3)]
    """
    runs, start = [], 0
    for label, run in groupby(labels):
        end = start + sum(1 for _ in run)
        runs.append(Segment(label, start, end))
        start = end
    return runs


def segment_overlap(observed: Sequence[Any], predicted: Sequence[Any]) -> float:
    """Compute Sov of a chain, in per cent.

    Parameters
    ----------
    observed, predicted : sequence
        The true and the predicted labels.

    Returns
    -------
    float
        100 if the labels are the same, 0 if no segments overlap.

    Examples
    --------
    >>> round(segment_overlap("CCEEECCCCCCEEEEEECCC", "CCCCCCCEEEEECCCEECCC"), 1)
    39.4
    """
    total, norm = 0.0, 0
    predicted_segments = segments(predicted)
    first = 0
    for s1 in segments(observed):
        while predicted_segments[first].end <= s1.start:
            first += 1
        length, has_overlap = s1.end - s1.start, False
        for s2 in predicted_segments[first:]:
            if s2.start >= s1.end:
                break
            if s2.label != s1.label:
                continue
            has_overlap = True
            minov = min(s1.end, s2.end) - max(s1.start, s2.start)
            maxov = max(s1.end, s2.end) - min(s1.start, s2.start)
            delta = min(maxov - minov, minov, length // 2, (s2.end - s2.start) // 2)
            total += (minov + delta) / maxov * length
            norm += length
        norm += 0 if has_overlap else length
    return 100 * total / norm
