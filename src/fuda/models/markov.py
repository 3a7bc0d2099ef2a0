"""Labelers whose labelings score as a Markov model on a chain or tree:

    F(x, y) = Σ_t s_t(y_t) + Σ_{edges p→t} A_t(y_p, y_t),   P(y|x) = exp F(x, y) / Z(x).

A model says what s and A are; decoding, marginals and the n best are the same for all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda import inference
from fuda.corpus import Corpus
from fuda.encoding import Encoded
from fuda.errors import DataError
from fuda.models.base import Labeler, as_object_array


class MarkovLabeler(Labeler):
    """A subclass defines `_scores(encoded)` → (N, L) node scores and (L, L) or (N, L, L) transition scores, and has the
    parameter `decode`: "viterbi", the best labeling as a whole, or "posterior", the best label of each node."""

    decode: str

    def predict_marginals(self, X: Any) -> np.ndarray:
        """P(y_t = label | x): a 1-D object array with one (nodes, labels) array a structure; columns as in `classes_`."""
        encoded = self._encode(X)
        if encoded is None:
            return np.empty(0, dtype=object)
        return as_object_array(encoded.corpus.split(self._marginals(encoded)))

    def predict_nbest(self, X: Any, n: int) -> np.ndarray:
        """The n best labelings of each structure, best first, as pairs (labels, log P(y|x)).

        There are fewer than n where a structure has fewer labelings.
        """
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise DataError(f"n={n!r}: ask for at least one labeling")
        encoded = self._encode(X)
        if encoded is None:
            return np.empty(0, dtype=object)
        graph, (scores, transitions) = graph_of(encoded.corpus), self._scores(encoded)
        log_z = inference.log_partition(graph, scores, transitions)
        best = inference.nbest(graph, scores, transitions, n)
        return as_object_array(
            [
                [([self.classes_[k] for k in labels], float(score - z)) for labels, score in candidates]
                for candidates, z in zip(best, log_z, strict=True)
            ]
        )

    def _decode(self, encoded: Encoded) -> np.ndarray:
        if self.decode == "posterior":
            return self._marginals(encoded).argmax(axis=1)
        labels, _ = inference.viterbi(graph_of(encoded.corpus), *self._scores(encoded))
        return labels

    def _marginals(self, encoded: Encoded) -> np.ndarray:
        return inference.marginals(graph_of(encoded.corpus), *self._scores(encoded))[1]

    def _scores(self, encoded: Encoded) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _check_decode(self) -> None:
        if self.decode not in ("viterbi", "posterior"):
            raise DataError(f"decode={self.decode!r}: choose viterbi or posterior")


def graph_of(corpus: Corpus) -> inference.Graph:
    """The chains or trees of a corpus, as inference takes them."""
    if corpus.is_chain:
        return inference.Graph(corpus.offsets)
    return inference.Graph(corpus.offsets, corpus.heads, corpus.order)
