"""The best labeling of a structure other than a given one.

With v of the max-product recursion the best labeling ŷ is found; where ŷ is the given y itself, the second
best is wanted. It has another label than ŷ at some node t, first so in the order in which labels are chosen,
and best labels after it. So it costs

    r_t = max_b [A(y_p, b) + v_t(b)] − max_{b ≠ y_t} [A(y_p, b) + v_t(b)]

less than the best, at the node where that is smallest. O(T L²), as for the best one. Of equal labels the
given one is taken: where all score alike, the labeling found differs from the given one at one node.
"""

from __future__ import annotations

import numpy as np

from fuda.compiled import compiled
from fuda.data.graph import Array, Forest
from fuda.inference.max_product import maximize


@compiled
def _pick(
    values: Array, transitions: Array, above: int, preferred: int, barred: int
) -> tuple[int, float, float]:
    """The best label under the label above (−1: none), its value, and the value of the next best."""
    label, top, second = -1, -np.inf, -np.inf
    for b in range(len(values)):
        x = values[b] + (transitions[above, b] if above >= 0 else 0.0)
        if b != barred:
            if label < 0 or x > top or (x == top and b == preferred):
                label, top, second = b, x, top
            elif x > second:
                second = x
    return label, top, second


@compiled
def best_others(
    forest: Forest, transitions: Array, scores: Array, given: Array, loss: Array, labels: Array, excess: Array
) -> None:
    """Of each structure of a block the best labeling y ≠ given, in `labels`, and F(y) − F(given), in `excess`
    (−inf where there is no other labeling).

    Rows of `scores`, which is overwritten, and of `given`, `loss` and `labels` count from the first node of
    the block. Where `loss` has entries, F(y) + Σ_{t: y_t ≠ given_t} loss_t is maximized over all y; the given
    labeling may then be the best, at an excess of 0.
    """
    first, offsets, parents, order = forest
    base = offsets[first]
    size = scores.shape[1]
    transposed = np.ascontiguousarray(transitions.T)
    message = np.empty(size)
    for i in range(len(excess)):
        begin, end = offsets[first + i], offsets[first + i + 1]
        excess[i] = 0.0
        for t in range(begin, end):
            excess[i] -= scores[t - base, given[t - base]]
            if parents[t] >= 0:
                excess[i] -= transitions[given[parents[t] - base], given[t - base]]
            if len(loss) > 0:
                for b in range(size):
                    if b != given[t - base]:
                        scores[t - base, b] += loss[t - base]
        for j in range(end - 1, begin - 1, -1):
            t = order[j]
            if parents[t] >= 0:
                maximize(transposed, scores[t - base], message)
                above = scores[parents[t] - base]
                for a in range(size):
                    above[a] += message[a]
        least, at = np.inf, end  # the smallest regret, and its place in the order
        same = True
        for j in range(begin, end):
            t = order[j]
            own = given[t - base]
            over = labels[parents[t] - base] if parents[t] >= 0 else -1
            label, top, second = _pick(scores[t - base], transitions, over, own, -1)
            labels[t - base] = label
            same &= label == own
            if over < 0:
                excess[i] += top
            if top - second < least:
                least, at = top - second, j
        if same and len(loss) == 0:
            excess[i] -= least
            for j in range(at, end):
                t = order[j]
                own = given[t - base]
                over = labels[parents[t] - base] if parents[t] >= 0 else -1
                labels[t - base] = _pick(scores[t - base], transitions, over, own, own if j == at else -1)[0]
