"""The probabilities of whole segments.

With N and β of `fuda.inference.segments` and the probability P(s, a) that a segment of kind a
begins at s,

    P(segment) = P(s, a) exp[first + chunks + last + β(e, a) − N(s, a)].
"""

from __future__ import annotations

import numpy as np

from fuda.data.graph import Array
from fuda.inference.segments import FREE, Limits, Scores, after, chunk_scores, expectations, sequence_blocks
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import Block, run

LikelySegment = tuple[int, int, int, float]  # kind, first node, end, probability


@compiled
def _likely(
    scores: Scores, limits: Limits, begin: int, end: int, first: Array, least: float
) -> list[LikelySegment]:
    """The segments of a sequence that have at least that probability."""
    chunks = chunk_scores(scores, begin, end)
    follow = after(scores, limits, begin, end, chunks, False)
    segments = [(0, 0, 0, 0.0)]
    for s in range(end - begin):
        for a in range(scores.inside.shape[1]):
            left, D = first[begin + s, a], scores.longest[a]
            if left < least:
                continue
            most = end - begin - s
            if len(limits.boundary_flags) > 0:
                most = min(most, limits.ahead[begin + s, a])
            before_chunk = scores.first[begin + s, a] - follow.new[s, a]  # of all chunks before the last
            for d in range(1, most + 1):
                start = s + (d - 1) // D * D
                value = before_chunk + chunks[start, s + d - 1 - start, a]
                if d > 1 or scores.singles[a]:
                    ends = scores.last[begin + s + d - 1, a] + follow.ended[s + d, a]
                    p = first[begin + s, a] * np.exp(value + ends)
                    left -= p
                    if p >= least:
                        segments.append((a, s, s + d, min(1.0, p)))
                if left < least:  # all that is longer, together
                    break
                if d % D == 0:
                    before_chunk = value + scores.joins[a]
    return segments[1:]


def likely_segments(
    scores: Scores, least: float, limits: Limits = FREE, n_jobs: int | None = None
) -> list[list[LikelySegment]]:
    """Find the segments that are at least so likely.

    Parameters
    ----------
    scores : Scores
        What segmentations score.
    least : float
        The least probability of a segment, above 0.
    limits : Limits
        Which segmentations count.
    n_jobs : int or None
        The number of threads; None is all cores.

    Returns
    -------
    list of lists of (kind, first node, end, probability)
        For each sequence its segments, by first node, kind and end.
    """
    first, bounds = expectations(scores, limits, n_jobs=n_jobs).first, scores.offsets.tolist()

    def solve(block: Block) -> list[list[LikelySegment]]:
        return [_likely(scores, limits, bounds[i], bounds[i + 1], first, least) for i in range(*block)]

    return [segments for part in run(solve, sequence_blocks(scores.offsets), n_jobs) for segments in part]
