"""Observations as kernels see them: features, and numbers that tell which are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda.data.corpus import Corpus, observation_key
from fuda.data.encoding import Encoded

Array = np.ndarray


@dataclass(frozen=True)
class Points:
    """Observations as kernels see them.

    `features` (n, F); `ids` (n,), equal where observations are, negative for the boundary marks of windows;
    `beyond` (n,), the squared norm of the features that the vocabulary does not know.
    """

    features: sp.csr_matrix | Array
    ids: Array
    beyond: Array
    observations: Sequence[Any]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Any) -> Points:
        """Some of the points, by an array of their numbers or a slice."""
        chosen = np.arange(len(self))[rows]
        observations = [self.observations[r] for r in chosen]
        return Points(self.features[chosen], self.ids[chosen], self.beyond[chosen], observations)


class Numbering:
    """Numbers observations, so that equal ones have one number in every corpus.

    Observations that are integers are their own numbers. Others count from 0 in the corpus that the numbering
    was made from; what is new in another corpus counts on from there, for that corpus alone.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._numbers = {observation_key(x): i for i, x in enumerate(corpus.observations)}

    def ids(self, corpus: Corpus) -> Array:
        """The number of each type of a corpus."""
        if corpus.kind.name == "id":
            return np.array(corpus.observations, dtype=np.int64)
        first = len(self._numbers)
        keys = map(observation_key, corpus.observations)
        return np.array([self._numbers.get(key, first + i) for i, key in enumerate(keys)], dtype=np.int64)


def points(encoded: Encoded, numbering: Numbering | None = None, table: int = 0) -> Points:
    """One point for each row of a table: the types of the corpus, then the boundary marks of its window."""
    corpus, rows = encoded.corpus, encoded.tables[table]
    own = (numbering or Numbering(corpus)).ids(corpus)
    marks = rows.matrix.shape[0] - len(own)
    ids = np.concatenate([own, -1 - np.arange(marks)])
    return Points(rows.matrix, ids, rows.beyond, [*corpus.observations, *[None] * marks])
