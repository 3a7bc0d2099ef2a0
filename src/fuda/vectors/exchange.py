"""Word classes by exchange, and a binary tree over them by merging.

For pairs of neighbours with counts n, classes of words are chosen to make

    F = Σ_{a,b} g(N(a,b)) − Σ_a g(N(a,·)) − Σ_b g(N(·,b)),     g(n) = n log n

large, which is the likelihood of a bigram model of classes up to a constant. Exchange (Martin,
Liermann and Ney, 1998, "Algorithms for bigram and trigram word clustering", Speech Communication
24) moves one word at a time to its best class, so F never decreases. Merging the two classes that
cost least, again and again (Brown et al., 1992, "Class-based n-gram models of natural language",
Computational Linguistics 18), gives each class a code of bits whose prefixes are coarser classes.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fuda.runtime.compiled import compiled

Array = np.ndarray
_LEAST_GAIN = 1e-7  # smaller differences are taken for rounding
_CONVERGED = 1000  # rounds end where fewer than one in so many words moves


def exchanged(pairs: sp.csr_matrix, n_classes: int, rounds: int = 20) -> tuple[Array, Array, list[float]]:
    """Choose classes of words by exchange.

    Parameters
    ----------
    pairs : (V + 1, V + 1) sparse matrix of int
        Counts of neighbours; the last row and column are the ends of sentences, a class
        of their own.
    n_classes : int
        How many classes there are at most.
    rounds : int
        How often each word is visited at most.

    Returns
    -------
    classes : (V + 1,) array
        The class of each word, and that of the ends of sentences, which is the last.
    counts : (K + 1, K + 1) array
        Counts of neighbouring classes.
    objective : list of float
        F at the start and after each round.
    """
    size = pairs.shape[0] - 1
    right, left = pairs, pairs.T.tocsr()
    frequency = np.asarray(pairs.sum(axis=0)).ravel()[:size]
    order = np.argsort(-frequency, kind="stable")
    order = order[frequency[order] > 0]
    n_classes = max(1, min(n_classes, len(order)))
    classes = np.full(size + 1, n_classes, dtype=np.int64)
    classes[:size] = n_classes - 1
    classes[order[:n_classes]] = np.arange(n_classes)
    power = _powers(int(pairs.sum()))
    after = right.indptr.astype(np.int64), right.indices.astype(np.int64), right.data
    before = left.indptr.astype(np.int64), left.indices.astype(np.int64), left.data
    counts = _class_counts(classes, n_classes + 1, *after)
    objective = [_objective(counts, power)]
    for _ in range(rounds):
        moved = _round(classes, counts, order, *after, *before, power)
        objective.append(_objective(counts, power))
        if moved * _CONVERGED < len(order):
            break
    return classes, counts, objective


def bit_codes(counts: Array) -> list[str]:
    """Return a code of bits for each class, from the merges that cost least.

    Parameters
    ----------
    counts : (K + 1, K + 1) array
        Counts of neighbouring classes; the last class, of the ends of sentences, is not merged.
    """
    size = len(counts) - 1
    texts = [""] * size
    members = [[k] for k in range(size)]
    for one, other in _merges(counts, _powers(int(counts.sum()))).tolist():
        for bit, side in (("0", one), ("1", other)):
            for k in members[side]:
                texts[k] = bit + texts[k]
        members[one] = members[one] + members[other]
    return texts


def _powers(largest: int) -> Array:
    """g(n) = n log n for all n up to the largest."""
    n = np.arange(largest + 1, dtype=np.float64)
    n[1:] *= np.log(n[1:])
    return n


def _objective(counts: Array, power: Array) -> float:
    """F of the counts of neighbouring classes."""
    return float(power[counts].sum() - power[counts.sum(axis=0)].sum() - power[counts.sum(axis=1)].sum())


@compiled
def _class_counts(classes: Array, size: int, starts: Array, words: Array, numbers: Array) -> Array:
    """Counts of neighbouring classes."""
    counts = np.zeros((size, size), dtype=np.int64)
    for w in range(len(classes)):
        for j in range(starts[w], starts[w + 1]):
            counts[classes[w], classes[words[j]]] += numbers[j]
    return counts


@compiled
def _beside(w: int, classes: Array, starts: Array, words: Array, numbers: Array, by_class: Array) -> int:
    """Count the classes beside a word other than itself; return how often it is beside itself."""
    by_class[:] = 0
    itself = 0
    for j in range(starts[w], starts[w + 1]):
        if words[j] == w:
            itself = numbers[j]
        else:
            by_class[classes[words[j]]] += numbers[j]
    return itself


@compiled
def _change(
    counts: Array, turned: Array, c: int, after: Array, before: Array, itself: int, sign: int
) -> None:
    """Add a word's counts to those of a class, or take them away."""
    for d in range(len(after)):
        if after[d]:
            counts[c, d] += sign * after[d]
            turned[d, c] += sign * after[d]
        if before[d]:
            counts[d, c] += sign * before[d]
            turned[c, d] += sign * before[d]
    counts[c, c] += sign * itself
    turned[c, c] += sign * itself


@compiled
def _gains(
    counts: Array,
    turned: Array,
    sums: Array,
    after: Array,
    before: Array,
    itself: int,
    power: Array,
    gains: Array,
) -> None:
    """What F gains where a word that is in no class joins each of the classes."""
    size = len(gains)
    right, left = after.sum() + itself, before.sum() + itself
    for c in range(size):
        gains[c] = (
            power[sums[0, c]] - power[sums[0, c] + right] + power[sums[1, c]] - power[sums[1, c] + left]
        )
    for d in range(len(after)):
        if after[d]:
            for c in range(size):
                gains[c] += power[turned[d, c] + after[d]] - power[turned[d, c]]
        if before[d]:
            for c in range(size):
                gains[c] += power[counts[d, c] + before[d]] - power[counts[d, c]]
    for c in range(size):  # within the class itself all of them add up
        n, all_of_them = counts[c, c], after[c] + before[c] + itself
        if all_of_them:
            gains[c] += power[n + all_of_them] + power[n] - power[n + after[c]] - power[n + before[c]]


@compiled
def _round(classes: Array, counts: Array, order: Array, *arrays: Array) -> int:
    """Move each word to its best class, in place; returns how many moved."""
    after_starts, after_words, after_numbers, before_starts, before_words, before_numbers, power = arrays
    size = len(counts) - 1
    turned = counts.T.copy()
    sums = np.stack((counts.sum(axis=1), counts.sum(axis=0)))
    after, before = np.zeros(size + 1, dtype=np.int64), np.zeros(size + 1, dtype=np.int64)
    gains = np.zeros(size)
    members = np.zeros(size + 1, dtype=np.int64)
    for c in classes:
        members[c] += 1
    moved = 0
    for w in order:
        present = classes[w]
        if members[present] == 1:
            continue  # a class is never left empty
        itself = _beside(w, classes, after_starts, after_words, after_numbers, after)
        _beside(w, classes, before_starts, before_words, before_numbers, before)
        right, left = after.sum() + itself, before.sum() + itself
        _change(counts, turned, present, after, before, itself, -1)
        sums[0, present] -= right
        sums[1, present] -= left
        _gains(counts, turned, sums, after, before, itself, power, gains)
        best = present
        for c in range(size):
            if gains[c] > gains[best] + _LEAST_GAIN:
                best = c
        _change(counts, turned, best, after, before, itself, 1)
        sums[0, best] += right
        sums[1, best] += left
        members[present] -= 1
        members[best] += 1
        classes[w] = best
        moved += best != present
    return moved


@compiled
def _loss(counts: Array, sums: Array, alive: Array, i: int, j: int, power: Array) -> float:
    """What F loses where two classes become one."""
    lost = power[sums[0, i] + sums[0, j]] - power[sums[0, i]] - power[sums[0, j]]
    lost += power[sums[1, i] + sums[1, j]] - power[sums[1, i]] - power[sums[1, j]]
    for d in range(len(counts)):
        if alive[d] and d != i and d != j:
            lost -= power[counts[i, d] + counts[j, d]] - power[counts[i, d]] - power[counts[j, d]]
            lost -= power[counts[d, i] + counts[d, j]] - power[counts[d, i]] - power[counts[d, j]]
    within = counts[i, i] + counts[i, j] + counts[j, i] + counts[j, j]
    lost -= power[within] - power[counts[i, i]] - power[counts[i, j]]
    return lost + power[counts[j, i]] + power[counts[j, j]]


@compiled
def _merges(counts: Array, power: Array) -> Array:
    """Pairs of classes in the order in which they are merged; the first has both from then on."""
    size = len(counts) - 1
    counts = counts.copy()
    sums = np.stack((counts.sum(axis=1), counts.sum(axis=0)))
    alive = np.ones(size + 1, dtype=np.bool_)
    merged = np.zeros((max(size - 1, 0), 2), dtype=np.int64)
    for step in range(len(merged)):
        least = np.inf
        for i in range(size):
            for j in range(i + 1, size):
                if alive[i] and alive[j]:
                    lost = _loss(counts, sums, alive, i, j, power)
                    if lost < least - _LEAST_GAIN:
                        least, merged[step, 0], merged[step, 1] = lost, i, j
        one, other = merged[step]
        for d in range(size + 1):
            counts[one, d] += counts[other, d]
            counts[other, d] = 0
        for d in range(size + 1):
            counts[d, one] += counts[d, other]
            counts[d, other] = 0
        for side in range(2):
            sums[side, one] += sums[side, other]
        alive[other] = False
    return merged
