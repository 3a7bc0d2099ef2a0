"""The best labeling of a structure other than the correct one.

With v of the max-product recursion, the best labeling ŷ is found; where ŷ is the correct labeling
y itself, the second best is needed. It differs from ŷ at some node t, the first such node in the
order in which labels are chosen, and has best labels after it. So it scores

    r_t = max_b [A(y_p, b) + v_t(b)] − max_{b ≠ y_t} [A(y_p, b) + v_t(b)]

less than the best, at the node where that is smallest. O(T L²), as for the best one. Of equal
labels the correct one is chosen: where all labelings score the same, the result differs from y at
one node.
"""

from __future__ import annotations

import numpy as np

from fuda.data.graph import Array, Forest
from fuda.inference.max_product import pass_up
from fuda.runtime.compiled import compiled


@compiled
def _pick(
    values: Array, transitions: Array, above: int, preferred: int, excluded: int
) -> tuple[int, float, float]:
    """The best label under the parent's label (−1: none), its value, and that of the next best."""
    label, top, second = -1, -np.inf, -np.inf
    for b in range(len(values)):
        x = values[b] + (transitions[above, b] if above >= 0 else 0.0)
        if b != excluded:
            if label < 0 or x > top or (x == top and b == preferred):
                label, top, second = b, x, top
            elif x > second:
                second = x
    return label, top, second


@compiled
def best_others(
    forest: Forest,
    transitions: Array,
    scores: Array,
    correct: Array,
    loss: Array,
    labels: Array,
    excess: Array,
) -> None:
    """Find the best labeling y other than the correct one, for each structure of a block.

    The rows of all arrays but `excess` count from the first node of the block.

    Parameters
    ----------
    forest : Forest
        The structures.
    transitions : (L, L) ndarray
        A.
    scores : (N, L) ndarray
        s, overwritten.
    correct : (N,) ndarray of int
        The correct labels.
    loss : (N,) or (0,) ndarray
        Where it has entries, F(y) + Σ_{t: y_t ≠ correct_t} loss_t is maximized over all y; the
        correct labeling may then be the best, with an excess of 0.
    labels : (N,) ndarray of int
        Receives y.
    excess : (n,) ndarray
        Receives F(y) − F(correct), −inf where there is no other labeling.
    """
    first, offsets, parents, order = forest
    base = offsets[first]
    last = first + len(excess)
    size = scores.shape[1]
    for i in range(len(excess)):
        excess[i] = 0.0
        for t in range(offsets[first + i], offsets[first + i + 1]):
            excess[i] -= scores[t - base, correct[t - base]]
            if parents[t] >= 0:
                excess[i] -= transitions[correct[parents[t] - base], correct[t - base]]
            if len(loss) > 0:
                for b in range(size):
                    if b != correct[t - base]:
                        scores[t - base, b] += loss[t - base]
    transposed = np.ascontiguousarray(transitions.T).reshape(1, size, size)
    pass_up(order[base : offsets[last]], base, parents, transposed, 0, scores)
    for i in range(len(excess)):
        begin, end = offsets[first + i], offsets[first + i + 1]
        least, at = np.inf, end  # the smallest regret, and its place in the order
        same = True
        for j in range(begin, end):
            t = order[j]
            over = labels[parents[t] - base] if parents[t] >= 0 else -1
            label, top, second = _pick(scores[t - base], transitions, over, correct[t - base], -1)
            labels[t - base] = label
            same &= label == correct[t - base]
            if over < 0:
                excess[i] += top
            if top - second < least:
                least, at = top - second, j
        if same and len(loss) == 0:
            excess[i] -= least
            for j in range(at, end):
                t = order[j]
                y = correct[t - base]
                over = labels[parents[t] - base] if parents[t] >= 0 else -1
                labels[t - base] = _pick(scores[t - base], transitions, over, y, y if j == at else -1)[0]
