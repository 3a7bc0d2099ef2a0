"""Brute force: every labeling of a small structure, one by one, straight from the definitions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


def labeling_score(parents, scores, transitions, labels) -> float:
    """F(y) = Σ_t s_t(y_t) + Σ_{edges p → t} A_t(y_p, y_t) of one structure with local parents."""
    total = 0.0
    for t, parent in enumerate(parents):
        total += scores[t][labels[t]]
        if parent >= 0:
            matrix = transitions[t] if np.ndim(transitions) == 3 else transitions
            total += matrix[labels[parent]][labels[t]]
    return total


def all_labelings(parents, scores, transitions) -> list[tuple[tuple[int, ...], float]]:
    """Every allowed labeling with its score, best first; equal ones in lexicographic order."""
    size = np.shape(scores)[1]
    every = itertools.product(range(size), repeat=len(parents))
    scored = [(labels, labeling_score(parents, scores, transitions, labels)) for labels in every]
    return sorted((pair for pair in scored if pair[1] > -np.inf), key=lambda pair: -pair[1])


def log_partition(parents, scores, transitions) -> float:
    """log Σ_y exp F(y)."""
    best = all_labelings(parents, scores, transitions)
    return best[0][1] + float(np.log(sum(np.exp(score - best[0][1]) for _, score in best)))


def marginals(parents, scores, transitions) -> tuple[np.ndarray, np.ndarray]:
    """P(y_t = b) (T, L) and P(y_p = a, y_t = b) (T, L, L), zero at roots."""
    count, size = np.shape(scores)
    node = np.zeros((count, size))
    edge = np.zeros((count, size, size))
    log_z = log_partition(parents, scores, transitions)
    for labels, score in all_labelings(parents, scores, transitions):
        probability = np.exp(score - log_z)
        for t, parent in enumerate(parents):
            node[t, labels[t]] += probability
            if parent >= 0:
                edge[t, labels[parent], labels[t]] += probability
    return node, edge


@dataclass
class RandomCorpus:
    """A small random corpus with random scores, packed, and cut into its structures again."""

    offsets: np.ndarray
    parents: np.ndarray
    order: np.ndarray
    scores: np.ndarray
    transitions: np.ndarray

    def structures(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Local parents, scores and transitions of each structure."""
        cut = []
        for first, last in itertools.pairwise(self.offsets.tolist()):
            parents = np.where(self.parents[first:last] < 0, -1, self.parents[first:last] - first)
            matrices = self.transitions[first:last] if self.transitions.ndim == 3 else self.transitions
            cut.append((parents, self.scores[first:last], matrices))
        return cut

    @property
    def possible(self) -> bool:
        return all(all_labelings(*structure) for structure in self.structures())


def random_corpus(
    rng, lengths, size, *, chain=False, matrix_per_edge=False, scale=1.0, forbid=0.0, integers=False
):
    """Chains, or random forests numbered at random. Integer scores make ties."""
    parents, order = [], []
    base = 0
    for length in lengths:
        ranked = np.arange(length) if chain else rng.permutation(length)
        local = np.full(length, -1)
        for rank in range(1, length):
            if chain:
                local[rank] = rank - 1
            elif rng.random() < 0.85:
                local[ranked[rank]] = ranked[rng.integers(rank)]
        parents.extend(np.where(local < 0, -1, local + base))
        order.extend(ranked + base)
        base += length

    def values(*shape):
        drawn = rng.integers(-2, 3, shape).astype(float) if integers else rng.normal(size=shape)
        return np.where(rng.random(shape) < forbid, -np.inf, scale * drawn)

    return RandomCorpus(
        offsets=np.cumsum([0, *lengths]),
        parents=np.array(parents),
        order=np.array(order),
        scores=values(base, size),
        transitions=values(base, size, size) if matrix_per_edge else values(size, size),
    )


@st.composite
def corpora(draw, integers=False) -> RandomCorpus:
    """Random corpora: chains and forests, one or many matrices, any scores, −inf patterns."""
    size = draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(1, 6 if size < 4 else 5), min_size=1, max_size=3))
    return random_corpus(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        lengths,
        size,
        chain=draw(st.booleans()),
        matrix_per_edge=draw(st.booleans()),
        scale=draw(st.sampled_from([1.0, 30.0, 80.0, 1e4])),
        forbid=draw(st.sampled_from([0.0, 0.1, 0.4])),
        integers=integers,
    )
