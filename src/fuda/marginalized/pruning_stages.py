"""The stages of approximate scores, and the nodes that go on from one to the next.

An engine that approximates scores does so in stages, from matches that reach a few nodes to either
side to longer ones. A node whose best label leads by the margin of this label is a clear case; all
others, and the nodes next to them, are scored again by the next stage.
"""

from __future__ import annotations

import numpy as np

from fuda.marginalized.numbers import Array
from fuda.runtime.compiled import compiled

REACHES = (1, 2, 6)  # the reach of each stage, in nodes
NEVER = 3.0  # a margin by which no label leads: leads are at most 2


def doubtful(scores: Array, at: Array, pruning_margins: Array, offsets: Array) -> Array:
    """Return those of the nodes `at` whose label does not lead by its margin, or next to them."""
    best, lead = leads(scores[at])
    narrow = np.zeros(len(scores) + 2, dtype=bool)
    narrow[at[lead < pruning_margins[best]] + 1] = True
    first, last = np.zeros(len(scores), dtype=bool), np.zeros(len(scores), dtype=bool)
    first[offsets[:-1]] = last[offsets[1:] - 1] = True
    near = narrow[1:-1] | (narrow[:-2] & ~first) | (narrow[2:] & ~last)
    return at[near[at]]


@compiled
def leads(scores: Array) -> tuple[Array, Array]:
    """Return the best label of each node, and its lead in units of the largest |score| there."""
    best, lead = np.zeros(len(scores), dtype=np.int64), np.zeros(len(scores))
    for t in range(len(scores)):
        second, largest = -np.inf, abs(scores[t, 0])
        for label in range(1, scores.shape[1]):
            value = scores[t, label]
            largest = max(largest, abs(value))
            if value > scores[t, best[t]]:
                second, best[t] = scores[t, best[t]], label
            else:
                second = max(second, value)
        if largest > 0:
            lead[t] = min(2.0, (scores[t, best[t]] - second) / largest)
    return best, lead
