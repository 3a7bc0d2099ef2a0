"""The n best segmentations of each sequence, exactly, by deviations from better ones.

As in `fuda.inference.nbest`, with chunks in place of labels: a choice at a boundary is the kind
and the length of the next chunk, and whether its segment ends with it. The largest scores of all
that may follow (`fuda.inference.segments.after`) give the regret of each choice.

A node of a segmentation is written as a *role*: 4 · kind, + 2 for the first node of a segment, + 1
for the last one.
"""

from __future__ import annotations

import heapq

import numpy as np

from fuda.data.graph import Array
from fuda.inference.nbest import _grown, _next
from fuda.inference.segments import (
    FREE,
    NEW,
    After,
    Limits,
    Scores,
    after,
    check_possible,
    chunk_scores,
    sequence_blocks,
)
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import Block, run

FIRST, LAST, ROLES = 2, 1, 4
_LARGEST_N = 2**60  # the largest n; sums of such numbers fit into 64 bits


@compiled
def _fill_choices(
    scores: Scores,
    limits: Limits,
    begin: int,
    chunks: Array,
    follow: After,
    roles: Array,
    s: int,
    choices: Array,
) -> None:
    """What each choice at the boundary s is worth with all that follows, given the roles before.

    Chunks of d nodes of kind a are numbered 2 (a D + d − 1), + 1 where the next chunk is joined.
    """
    t, end, D = begin + s, begin + len(chunks), scores.lengths.shape[1] - 1
    joined = s > 0 and not roles[s - 1] & LAST
    before = roles[s - 1] // ROLES if s > 0 else -1
    choices[:] = -np.inf
    flags = limits.boundary_flags[t] if len(limits.boundary_flags) > 0 else 0
    for a in range(scores.inside.shape[1]):
        if joined:
            is_possible, value = a == before, 0.0  # C belongs to the choice before
        else:
            is_possible = not flags & NEW
            value = scores.first[t, a] + (scores.transitions[before, a] if s > 0 else 0.0)
        most = min(scores.longest[a], end - t) if is_possible else 0
        if len(limits.boundary_flags) > 0:
            most = min(most, limits.ahead[t, a])
        for d in range(1, most + 1):
            chunk_value = value + chunks[s, d - 1, a]
            choice = 2 * (a * D + d - 1)
            if joined or d > 1 or scores.singles[a]:
                choices[choice] = chunk_value + scores.last[t + d - 1, a] + follow.ended[s + d, a]
            if d == scores.longest[a] and t + d < end:
                choices[choice + 1] = chunk_value + scores.joins[a] + follow.joined[s + d, a]


@compiled
def _write_chunk(scores: Scores, choice: int, s: int, roles: Array) -> int:
    """The boundary after a chosen chunk, whose roles are written."""
    D = scores.lengths.shape[1] - 1
    kind, length = choice // 2 // D, choice // 2 % D + 1
    new = s == 0 or roles[s - 1] & LAST
    roles[s : s + length] = ROLES * kind
    if new:
        roles[s] += FIRST
    if choice % 2 == 0:
        roles[s + length - 1] += LAST
    return s + length


@compiled
def _enumerate(scores: Scores, limits: Limits, begin: int, end: int, n: int) -> tuple[Array, Array]:
    """At most n segmentations of one sequence as roles, and their scores, best first."""
    T, chunks = end - begin, chunk_scores(scores, begin, end)
    follow = after(scores, limits, begin, end, chunks, True)
    listed_roles = np.zeros((1, T), dtype=np.int64)  # grown as segmentations are found
    listed_scores = np.empty(1)
    choices = np.empty(2 * scores.inside.shape[1] * (scores.lengths.shape[1] - 1))
    best = follow.new[0].max()
    if best == -np.inf:
        return listed_roles[:0], listed_scores[:0]
    _fill_choices(scores, limits, begin, chunks, follow, listed_roles[0], 0, choices)
    # A candidate: −score, the segmentation it succeeds, the boundary where it differs, the choice.
    heap = [(-best, 0, 0, _next(choices, -1))]
    bound, count = np.inf, 0
    while count < n and len(heap) > 0:
        cost, source, place, choice = heapq.heappop(heap)
        if count == len(listed_roles):
            listed_roles = _grown(listed_roles, min(2 * count, n))
            listed_scores = _grown(listed_scores, min(2 * count, n))
        listed_scores[count] = -cost
        needed, roles = n - count - 1, listed_roles[count]
        for s in range(T):
            roles[s] = listed_roles[source, s]
        s = place
        while s < T:
            _fill_choices(scores, limits, begin, chunks, follow, roles, s, choices)
            if s > place:
                choice = _next(choices, -1)
            other = _next(choices, choice) if needed > 0 else -1
            if other >= 0 and cost + (choices[choice] - choices[other]) <= bound:
                heapq.heappush(heap, (cost + (choices[choice] - choices[other]), count, s, other))
            s = _write_chunk(scores, choice, s, roles)
        count += 1
        if needed > 0 and len(heap) > 2 * needed + T:
            heap = [heapq.heappop(heap) for _ in range(needed)]
            bound = heap[-1][0]
    return listed_roles[:count], listed_scores[:count]


def nbest(
    scores: Scores, n: int, limits: Limits = FREE, n_jobs: int | None = None
) -> list[list[tuple[Array, float]]]:
    """Find the n best segmentations of each sequence.

    Parameters
    ----------
    scores : Scores
        What segmentations score.
    n : int
        How many to find, at most.
    limits : Limits
        Which of them count.
    n_jobs : int or None
        The number of threads; None is all cores.

    Returns
    -------
    list of lists of (array, float)
        For each sequence its segmentations, as the roles of its nodes, with their scores F, best
        first.
    """
    bounds = scores.offsets.tolist()

    def solve(block: Block) -> list[list[tuple[Array, float]]]:
        listed = []
        for i in range(*block):
            roles, best = _enumerate(scores, limits, bounds[i], bounds[i + 1], min(n, _LARGEST_N))
            listed.append(list(zip(roles, best.tolist(), strict=True)))
        return listed

    blocks = run(solve, sequence_blocks(scores.offsets), n_jobs)
    segmentations = [listed for block in blocks for listed in block]
    best = [listed[0][1] if listed else -np.inf for listed in segmentations]
    check_possible(np.array(best))
    return segmentations
