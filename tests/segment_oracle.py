"""Segmentations one by one, straight from the definitions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from fuda.inference.segments import Limits, Scores

Segment = tuple[int, int, int]  # kind, first node, end


def segmentations(size: int, kinds: int) -> Iterator[list[Segment]]:
    """All divisions of nodes 0 … size − 1 into segments with kinds."""
    if size == 0:
        yield []
        return
    for start in range(size):
        for before in segmentations(start, kinds):
            for kind in range(kinds):
                yield [*before, (kind, start, size)]


def chunks_of(segment: Segment, longest: int) -> list[Segment]:
    """A segment in chunks: as many of the largest length as leave a rest."""
    kind, start, end = segment
    bounds = [*range(start, end, longest), end]
    return [(kind, a, b) for a, b in pairwise(bounds)]


def score(scores: Scores, begin: int, segments: list[Segment]) -> float:
    """F of a segmentation of the sequence with the first node `begin`; −inf if not allowed."""
    total, before = 0.0, None
    for kind, start, end in segments:
        chunks = chunks_of((kind, start, end), int(scores.longest[kind]))
        if end - start == 1 and not scores.singles[kind]:
            return -math.inf
        total += scores.first[begin + start, kind] + scores.last[begin + end - 1, kind]
        total += scores.inside[begin + start : begin + end, kind].sum()
        total += (len(chunks) - 1) * scores.joins[kind] if len(chunks) > 1 else 0.0
        for _, a, b in chunks:
            total += scores.lengths[kind, b - a]
            if 2 <= b - a < scores.rows.shape[1] + 2:
                total += scores.texts[scores.rows[begin + b - 1, b - a - 2], kind].sum()
        if before is not None:
            total += scores.transitions[before, kind]
        before = kind
    return float(total)


def roles(size: int, segments: list[Segment]) -> list[int]:
    """4 · kind of each node, + 2 for the first of a segment, + 1 for the last."""
    out = [0] * size
    for kind, start, end in segments:
        for t in range(start, end):
            out[t] = 4 * kind + 2 * (t == start) + (t == end - 1)
    return out


def all_scored(scores: Scores, sequence: int, allow=lambda roles: True) -> list[tuple[float, list[Segment]]]:
    """The segmentations of a sequence that are possible, with their scores, best first."""
    begin, end = scores.offsets[sequence : sequence + 2].tolist()
    candidates = segmentations(end - begin, scores.inside.shape[1])
    listed = [(score(scores, begin, one), one) for one in candidates if allow(roles(end - begin, one))]
    return sorted((pair for pair in listed if pair[0] > -math.inf), key=lambda pair: -pair[0])


def random_scores(rng: np.random.Generator, sizes: list[int], kinds: int, longest: int, scale=1.0) -> Scores:
    """Scores of all parts, some of whose segmentations are forbidden."""
    total, most = sum(sizes), rng.integers(1, longest + 1, kinds)
    transitions = rng.normal(size=(kinds, kinds)) * scale
    transitions[np.diag(rng.random(kinds) < 0.5)] = -np.inf
    joins = np.where(rng.random(kinds) < 0.3, -np.inf, rng.normal(size=kinds) * scale)
    texts = np.vstack([rng.normal(size=(3, kinds)) * scale, np.zeros(kinds)])
    rows = rng.integers(0, 4, (total, 2, 2)).astype(np.int32)
    lengths = rng.normal(size=(kinds, int(most.max()) + 1)) * scale
    by_node = rng.normal(size=(3, total, kinds)) * scale
    singles = rng.random(kinds) < 0.7
    singles[0], joins[0] = True, 0.5  # something is always possible
    offsets = np.cumsum([0, *sizes])
    return Scores(offsets, *by_node, most.astype(np.int64), lengths, transitions, joins, singles, rows, texts)


def free(scores: Scores) -> Limits:
    """Limits that allow everything, written out."""
    shape = scores.inside.shape
    return Limits(np.full(shape, 1000, dtype=np.int32), np.zeros(shape[0], dtype=np.uint8))
