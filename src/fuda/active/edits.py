"""The changes of present labels that a model would make, and their log-odds.

With F(y) the score of a labeling under a model that has not learned from this structure, the
log-odds of a change of the present labels y to y′ are

    λ(y′) = F(y′) − F(y) − μ (d − 1),    d the number of labels that differ.

Changes of a single label are not enough: a bound of an entity is moved by changing two labels, and
adding an entity of three words changes three labels. With a tag scheme, changes are

- of a single node,
- of an entity of y: removed, of another type, with a start or an end that is moved by one or two,
- to an entity of the model's best labeling, in place of those of y that it overlaps.

It is less likely that several neighbouring labels are wrong than that a single one is: μ is minus
the logarithm of that factor per label. Without it the largest λ would be those of the longest
entities.

The best change comes first and is made, if λ > 0. Other changes are then scored with that label
corrected, so that a wrong label does not make its neighbours doubtful. Each node belongs to one
change at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fuda import inference
from fuda.data.graph import Graph
from fuda.schemes import OUTSIDE, Segment, encode, entities

Array = np.ndarray

# μ, the penalty per additional label of a change.
_FURTHER = 2.0
# The largest number of nodes by which a bound is moved.
_MOST_MOVED = 2


class Field(NamedTuple):
    """The scores of labelings of one structure.

    Attributes
    ----------
    scores : (T, L) array
        Of the labels of nodes.
    heads : (T,) array
        The parent of each node, −1 for none.
    pairs : (T, L, L) or (L, L) array
        Of the labels of a node's parent, by rows, and of the node.
    """

    scores: Array
    heads: Array
    pairs: Array

    def total(self, labels: Array) -> float:
        """F of a labeling."""
        below = np.flatnonzero(self.heads >= 0)
        above = labels[self.heads[below]]
        single = self.scores[np.arange(len(labels)), labels].sum()
        return float(single + self._of_edges(below)[np.arange(len(below)), above, labels[below]].sum())

    def single_changes(self, labels: Array) -> Array:
        """λ (T, L) of all changes of one label; that of the present label is −inf."""
        below = np.flatnonzero(self.heads >= 0)
        above, pairs, rows = self.heads[below], self._of_edges(below), np.arange(len(below))
        log_odds = self.scores.astype(np.float64)
        log_odds[below] += pairs[rows, labels[above]]
        np.add.at(log_odds, above, pairs[rows, :, labels[below]])
        nodes = np.arange(len(labels))
        log_odds -= log_odds[nodes, labels][:, None]
        log_odds[nodes, labels] = -np.inf
        return log_odds

    def best(self) -> Array:
        """The labeling of largest F of a chain."""
        graph = Graph.of_chains(np.array([0, len(self.scores)]))
        return inference.viterbi(graph, self.scores.copy(), self.pairs)[0]

    def _of_edges(self, below: Array) -> Array:
        return (
            self.pairs[below]
            if self.pairs.ndim == 3
            else np.broadcast_to(self.pairs, (len(below), *self.pairs.shape))
        )


class Change(NamedTuple):
    """A change of labels that a model would make.

    Attributes
    ----------
    score : float
        λ.
    nodes : tuple of int
        The nodes whose labels differ.
    labels : (T,) array
        All label numbers after this change and those made before it.
    """

    score: float
    nodes: tuple[int, ...]
    labels: Array


def changes(field: Field, labels: Array, names: list[str], scheme: str | None, known: Array) -> list[Change]:
    """Return the changes of a structure's labels, those of largest λ first, at most one per node.

    Parameters
    ----------
    field : Field
        The scores of a model that has not learned from the structure.
    labels : (T,) array of int
        The present label numbers.
    names : list
        The L labels.
    scheme : str or None
        The scheme of the labels, on a sequence.
    known : (T,) array of bool
        The nodes whose label is known; labels of others are not changed.

    Returns
    -------
    list of Change
        Those with λ > 0 are scored one after another, the others independently.
    """
    best = field.best() if scheme is not None else labels
    labels, done, chosen = labels.copy(), ~known, []
    while True:
        open_ones = [
            c for c in _all_changes(field, labels, best, names, scheme) if not done[list(c.nodes)].any()
        ]
        open_ones.sort(key=lambda change: -change.score)
        for change in open_ones:
            if done[list(change.nodes)].any():
                continue
            chosen.append(change)
            done[list(change.nodes)] = True
            if change.score > 0:
                labels = change.labels
                break
        else:
            return sorted(chosen, key=lambda change: -change.score)


def _all_changes(
    field: Field, labels: Array, best: Array, names: list[str], scheme: str | None
) -> Iterator[Change]:
    single = field.single_changes(labels)
    for node, label in enumerate(single.argmax(axis=1).tolist()):
        changed = labels.copy()
        changed[node] = label
        yield Change(float(single[node, label]), (node,), changed)
    if scheme is None:
        return
    before, seen = field.total(labels), set()
    for changed in _segment_changes(labels, best, names, scheme):
        nodes = tuple(np.flatnonzero(changed != labels).tolist())
        content = changed.tobytes()
        if len(nodes) > 1 and content not in seen:
            seen.add(content)
            yield Change(field.total(changed) - before - _FURTHER * (len(nodes) - 1), nodes, changed)


def segments_of(labels: list[str], scheme: str | None) -> list[Segment]:
    """Return the segments of labels, some of which may break the rules of their scheme.

    >>> segments_of(["U-LOC", "U-LOC", "O"], "BILOU")
    [('LOC', 0, 1), ('LOC', 1, 2)]
    """
    if scheme == "BILOU":  # the lenient interpretation has E and S only
        as_iobes = {"L": "E", "U": "S"}
        labels = [as_iobes.get(label[0], label[0]) + label[1:] for label in labels]
    return entities(labels)


def _segment_changes(labels: Array, best: Array, names: list[str], scheme: str) -> Iterator[Array]:
    """The label numbers after each change of an entity."""
    number = {name: k for k, name in enumerate(names)}
    present = segments_of([names[k] for k in labels], scheme)
    owner = np.full(len(labels), -1)
    for j, (_, start, end) in enumerate(present):
        owner[start:end] = j
    kinds = sorted({kind for kind, _, _ in segments_of(names, scheme)})

    def replaced(removed: list[int], segment: Segment | None) -> Iterator[Array]:
        """The label numbers with entities removed and one added, if labels can express it."""
        changed = labels.copy()
        for j in removed:
            changed[present[j][1] : present[j][2]] = number[OUTSIDE]
        if segment is not None:
            kind, start, end = segment
            new_labels = encode([(kind, 0, end - start)], end - start, scheme)
            if not all(label in number for label in new_labels):
                return  # the data lack one of these labels, such as I where all entities are short
            changed[start:end] = [number[label] for label in new_labels]
        yield changed

    for j, (kind, start, end) in enumerate(present):
        yield from replaced([j], None)
        for other in kinds:
            yield from replaced([j], (other, start, end))
        moves = [(start + by, end) for by in range(-_MOST_MOVED, _MOST_MOVED + 1)]
        moves += [(start, end + by) for by in range(-_MOST_MOVED, _MOST_MOVED + 1)]
        for a, b in moves:
            if 0 <= a < b <= len(labels) and np.isin(owner[a:b], [-1, j]).all():
                yield from replaced([j], (kind, a, b))
    for segment in segments_of([names[k] for k in best], scheme):
        if segment not in present:
            _, start, end = segment
            yield from replaced(sorted(set(owner[start:end].tolist()) - {-1}), segment)
