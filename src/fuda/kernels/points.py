"""Observations as kernels compare them: features, and numbers that are equal for equal ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded
from fuda.data.graph import Array
from fuda.data.tables import joined_rows, stacked_rows
from fuda.data.window_encoding import TypeTable


class ByFeature(NamedTuple):
    """Sparse feature vectors by feature: for each one its rows and their values.

    Inner products with a few other vectors, in a `Csr`, are fast.
    """

    indptr: Array
    rows: Array
    values: Array


@dataclass(frozen=True)
class Points:
    """Observations as kernels compare them.

    Parameters
    ----------
    features : (n, F) array or sparse matrix
        Their feature vectors. Kernels of features also take a few vectors in a `Csr` with others
        in a `ByFeature`.
    ids : (n,) array
        Equal where observations are, negative for the boundary marks of windows.
    beyond : (n,) array
        The squared norm of the features that are not in the vocabulary.
    observations : sequence
        The observations themselves, None for boundary marks.
    """

    features: Any
    ids: Array
    beyond: Array
    observations: Sequence[Any]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Any) -> Points:
        """Return some of the points, by an array of their numbers or a slice."""
        chosen = np.arange(len(self))[rows]
        observations = [self.observations[r] for r in chosen]
        return Points(self.features[chosen], self.ids[chosen], self.beyond[chosen], observations)


class Numbering:
    """A numbering of observations from 0: equal ones have the same number in every corpus.

    Observations that are new in another corpus get higher numbers, valid for that corpus alone.

    Parameters
    ----------
    corpus : Corpus
        The observations to number.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._numbers = {key: i for i, key in enumerate(dict.fromkeys(corpus.keys()))}

    def ids(self, corpus: Corpus) -> Array:
        """Return the number of each type of a corpus."""
        first = len(self._numbers)
        numbers = [self._numbers.get(key, first + i) for i, key in enumerate(corpus.keys())]
        return np.array(numbers, dtype=np.int64)


def points(encoded: Encoded, numbering: Numbering | None = None, table: int = 0) -> Points:
    """Return the points of the rows of a table: the types of the corpus, then boundary marks.

    Parameters
    ----------
    encoded : Encoded
        An encoded corpus.
    numbering : Numbering, optional
        By default that of this corpus.
    table : int
        The number of the table.

    Returns
    -------
    Points
        One per row.
    """
    corpus, rows = encoded.corpus, encoded.tables[table]
    ids = (numbering or Numbering(corpus)).ids(corpus)
    marks = rows.matrix.shape[0] - len(ids)
    ids = np.concatenate([ids, -1 - np.arange(marks)])
    return Points(rows.matrix, ids, rows.beyond, [*corpus.observations, *[None] * marks])


class Observed:
    """The observations of a corpus, as points when they are asked for.

    Parameters
    ----------
    encoded : Encoded
        An encoded corpus.
    numbering : Numbering
        The numbers of observations.
    """

    def __init__(self, encoded: Encoded, numbering: Numbering) -> None:
        self._encoded, self._numbering = encoded, numbering

    @cached_property
    def points(self) -> Points:
        """One point per row of the first table."""
        return points(self._encoded, self._numbering)

    def some(self, types: list[int], few: bool) -> Points:
        """Return the points of some types, without making others; in a `Csr` if they are few."""
        corpus, table = self._encoded.corpus, self._encoded.tables[0]
        if "points" in vars(self) or not isinstance(table, TypeTable):
            return self.points[np.array(types)]
        rows, width = table.encoder.rows(corpus, types), len(table.encoder.vocabulary)
        features, _, beyond = stacked_rows(rows, width) if few else joined_rows(rows, width)
        ids = self._numbering.ids(corpus)[types]
        return Points(features, ids, beyond, [corpus.observations[k] for k in types])

    def __getstate__(self) -> dict[str, Any]:
        return {"points": self.points}  # not the corpus
