"""The candidates of a Reranker, and which of them are equal.

Candidates with equal labels of equal structures have equal kernel values, which are computed only
once: single words that occur many times have few *distinct* candidates, however many structures
there are.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.labels import as_object_array

Array = np.ndarray


class Candidates:
    """The candidates that the base labeler lists: pairs (labels, log P(y|x)), best first.

    Structure i has the candidates numbered first[i] .. first[i+1] − 1; `log_p` (m,) is that of
    all.
    """

    def __init__(self, listed: list[list[tuple[list[Any], float]]]) -> None:
        self.first = np.cumsum([0, *map(len, listed)])
        self.labels = [labels for candidates in listed for labels, _ in candidates]
        self.log_p = np.array([log_p for candidates in listed for _, log_p in candidates])

    def best(self, ranking: Array) -> Array:
        """The highest-ranked candidate (n,) of each structure, of several the first."""
        return np.array([a + int(ranking[a:b].argmax()) for a, b in pairwise(self.first.tolist())])

    def chosen(self, ranking: Array) -> Array:
        """The labels of the highest-ranked candidates."""
        return as_object_array([self.labels[c] for c in self.best(ranking)])

    def wrong(self, y: Any, weight: list[Array] | None = None) -> Array:
        """The number (m,) of wrong labels of each candidate, or the sum of their weights."""
        counts = np.zeros(len(self.labels))
        for i, (a, b) in enumerate(pairwise(self.first.tolist())):
            known = [(t, label) for t, label in enumerate(y[i]) if label is not None]
            for c in range(a, b):
                missed = [t for t, label in known if self.labels[c][t] != label]
                counts[c] = len(missed) if weight is None else weight[i][missed].sum()
        return counts


class Distinct(NamedTuple):
    """The distinct ones among candidates.

    Attributes
    ----------
    structures : array of int
        The first one of each group of equal structures.
    labels : array of int
        The labels of the distinct candidates, one of these structures after the other.
    first : array of int
        Where those of each of these structures begin, and the end.
    of : (m,) array of int
        The number of each candidate among the distinct ones.
    """

    structures: Array
    labels: Array
    first: Array
    of: Array

    def groups(self, values: Array) -> tuple[Array, Array, Array]:
        """Group candidates that are equal and have equal values.

        Returns
        -------
        group_values : array
            The value of each group.
        of_group : array of int
            The number of each group among the distinct candidates.
        group : (m,) array of int
            The group of each candidate.
        """
        if self.first[-1] == len(values):
            return values.copy(), self.of, np.arange(len(values))
        keys = np.empty(len(values), dtype=[("of", np.int64), ("value", np.float64)])
        keys["of"], keys["value"] = self.of, values
        groups, group = np.unique(keys, return_inverse=True)
        return groups["value"].copy(), groups["of"].copy(), group


def distinct(corpus: Corpus, labels: Array, first: Array) -> Distinct:
    """Find the distinct candidates of the structures of a corpus.

    Parameters
    ----------
    corpus : Corpus
        The structures.
    labels : array of int
        The labels of all candidates, one after the other.
    first : array of int
        The number of the first candidate of each structure, and the end.

    Returns
    -------
    Distinct
        The distinct candidates, in the order of their first occurrence.
    """
    numbers: dict[tuple[bytes, bytes], int] = {}
    structures: list[int] = []
    known: list[dict[bytes, int]] = []  # the labels of each distinct structure
    owner, place = np.empty((2, first[-1]), dtype=np.int64)
    bounds, at = corpus.offsets.tolist(), 0
    for i, (a, b) in enumerate(pairwise(first.tolist())):
        edges = b"" if corpus.is_chain else corpus.structures[i].edges.tobytes()
        types, size = corpus.types[bounds[i] : bounds[i + 1]], bounds[i + 1] - bounds[i]
        number = numbers.setdefault((types.tobytes(), edges), len(numbers))
        if number == len(structures):
            structures.append(i)
            known.append({})
        for c in range(a, b):
            key = labels[at : at + size].tobytes()
            owner[c], place[c] = number, known[number].setdefault(key, len(known[number]))
            at += size
    starts = np.cumsum([0, *map(len, known)])
    distinct_labels = np.frombuffer(b"".join(key for keys in known for key in keys), dtype=np.int64)
    return Distinct(np.array(structures), distinct_labels.copy(), starts, starts[owner] + place)
