"""Linear functions of features, with a cache of the scores of observations.

    s_t(y) = Σ_c Σ_{r ∈ rows_c(t)} (X_c W_c)[r, y]

A row of X_c W_c depends only on an observation (or a joint text) and the weights, so it is
computed when an observation first occurs and looked up afterwards.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from fuda.data.encoding import Encoded
from fuda.data.tables import Row, TextTable, stacked_rows
from fuda.data.window_encoding import TypeTable
from fuda.functions.windows import add_rows
from fuda.runtime.compiled import compiled

Array = np.ndarray
# Bytes of the cached scores of observations: some 100,000 words. It is not a parameter, since
# rarer ones recur seldom, and to score one again takes microseconds.
TYPE_CACHE_BYTES = 1 << 26


class LinearFunction:
    """A function from nodes to R^L by weights of features: a `fuda.functions.base.LabelFunction`.

    Parameters
    ----------
    label_count : int
        L, the number of labels.
    weights : list of (features, L) arrays
        The weights of each channel.
    unknown : list of (L,) arrays, optional
        What a feature outside the vocabulary adds, per channel. Default: nothing.
    """

    def __init__(
        self, label_count: int, weights: Sequence[Array], unknown: Sequence[Array] | None = None
    ) -> None:
        self._label_count = label_count
        self._weights = [np.ascontiguousarray(part, dtype=np.float64) for part in weights]
        none = np.zeros((len(weights), label_count))
        self._unknown = none if unknown is None else np.array(unknown, dtype=np.float64)
        self._counts_unknown = [bool(part.any()) for part in self._unknown]
        self._texts: dict[int, Array] = {}  # by channel: the scores of its texts
        self._types: dict[Hashable, Array] = {}  # by key: scores in all channels that show types
        self._marks: Array | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_texts": {}, "_types": {}, "_marks": None}

    def of(self, encoded: Encoded, n_jobs: int | None = None) -> Array:
        """Score the nodes of a corpus.

        Parameters
        ----------
        encoded : Encoded
            The corpus.
        n_jobs : int, optional
            Not used.

        Returns
        -------
        (N, L) array
            The scores.
        """
        scores = np.zeros((encoded.corpus.size, self._label_count))
        by_type = None
        for c, channel in enumerate(encoded.channels):
            table = encoded.tables[channel.table]
            if isinstance(table, TextTable):
                values = self._texts.get(c)
                if values is None:
                    values = self._texts[c] = np.vstack([self._weights[c], self._unknown[c]])
            elif isinstance(table, TypeTable):
                if by_type is None:
                    by_type = self._of_types(table, sum(channel.shows_types for channel in encoded.channels))
                values = by_type[c]
            else:
                values = np.asarray(table.matrix @ self._weights[c])
                values += np.outer(table.unknown, self._unknown[c])
            add_rows(values, channel, scores)
        return scores

    def _of_types(self, table: TypeTable, count: int) -> Array:
        """(channels, rows, L) scores of all types and marks in the channels that show types."""
        if self._marks is None:
            self._marks = self._products(table.encoder.mark_rows(), count)
        keys = list(table.corpus.keys())
        scores_of_types: list[Any] = list(map(self._types.get, keys))
        new = [i for i, scores in enumerate(scores_of_types) if scores is None]
        if new:
            products = self._products(table.encoder.rows(table.corpus, new), count)
            recurs, entry_bytes = table.corpus.kind.ops.recurs, 8 * count * self._label_count + 256
            most = TYPE_CACHE_BYTES // entry_bytes if recurs else 0
            for i, scores in zip(new, products, strict=True):
                scores_of_types[i] = scores
                if len(self._types) < most:
                    self._types[keys[i]] = scores
        stacked = np.concatenate([*scores_of_types, *self._marks]).reshape(-1, count, self._label_count)
        return stacked.transpose(1, 0, 2)

    def _products(self, rows: list[Row], count: int) -> Array:
        """(rows, channels · L) the rows times the weights of the first channels."""
        scores = np.zeros((len(rows), count, self._label_count))
        if rows:
            features, unknown, _ = stacked_rows(rows, len(self._weights[0]))
            for c in range(count):
                _multiply(*features[:3], self._weights[c], scores[:, c])
                if self._counts_unknown[c]:
                    scores[:, c] += np.outer(unknown, self._unknown[c])
        return scores.reshape(len(rows), count * self._label_count)


@compiled
def _multiply(indptr: Array, ids: Array, values: Array, weights: Array, scores: Array) -> None:
    """scores(r) += Σ_f x_rf weights(f)."""
    for r in range(len(indptr) - 1):
        for e in range(indptr[r], indptr[r + 1]):
            x = values[e]
            feature_weights = weights[ids[e]]
            for y in range(scores.shape[1]):
                scores[r, y] += x * feature_weights[y]
