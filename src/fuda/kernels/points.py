"""Observations as kernels see them: features, and numbers that tell which are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded

Array = np.ndarray


@dataclass(frozen=True)
class Points:
    """Observations as kernels see them.

    Attributes
    ----------
    features : (n, F) array or sparse matrix
    ids : (n,) array
        Equal where observations are, negative for the boundary marks of windows.
    beyond : (n,) array
        The squared norm of the features that the vocabulary does not know.
    observations : sequence
        The observations themselves, None for boundary marks.
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
    """Numbers observations from 0, so that equal ones have one number in every corpus.

    What is new in a corpus other than the one that the numbering was made from counts on from
    there, for that corpus alone.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._numbers = {key: i for i, key in enumerate(corpus.keys())}

    def ids(self, corpus: Corpus) -> Array:
        """The number of each type of a corpus."""
        first = len(self._numbers)
        numbers = [self._numbers.get(key, first + i) for i, key in enumerate(corpus.keys())]
        return np.array(numbers, dtype=np.int64)


def points(encoded: Encoded, numbering: Numbering | None = None, table: int = 0) -> Points:
    """One point for each row of a table: the types of the corpus, then the boundary marks of its window."""
    corpus, rows = encoded.corpus, encoded.tables[table]
    own = (numbering or Numbering(corpus)).ids(corpus)
    marks = rows.matrix.shape[0] - len(own)
    ids = np.concatenate([own, -1 - np.arange(marks)])
    return Points(rows.matrix, ids, rows.beyond, [*corpus.observations, *[None] * marks])
