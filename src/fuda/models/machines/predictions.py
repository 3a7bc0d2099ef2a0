"""Predictions with the marginalized kernel: labels, probabilities and n-best labelings.

With decode="posterior" every node gets the label of largest score by itself, and the probability
of a labeling is the product of those of its nodes; with decode="viterbi" a labeling is scored as a
whole (`fuda.marginalized.calibration`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda import inference
from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded
from fuda.errors import DataError
from fuda.marginalized.calibration import Calibration, DecisionInputs
from fuda.models.base import Labeler
from fuda.models.fitting.labelled_data import Probabilities
from fuda.models.fitting.one_state import on_snapshot
from fuda.models.labelings import Ranked, best_labelings, best_of_nodes, check_count, fix_known
from fuda.models.machines.checks import check_decoder
from fuda.schemes import forbid

Array = np.ndarray

DECODERS = ("posterior", "viterbi")
# Values of `decode` in earlier versions, and their present names.
RENAMED = {"pointwise": "posterior"}


class MarginalizedPredictions(Probabilities, Labeler):
    """The predictions of labelers with the marginalized kernel; subclasses define `_inputs_of`."""

    decode: str | None
    scheme: str | None
    n_jobs: int | None
    margins_: Array | None
    _calibration: Calibration

    @on_snapshot
    def predict(self, X: Any, *, known: Any = None, prior: Any = None) -> Array:
        """Label structures.

        Parameters
        ----------
        X : list of structures
            Of the shape that the model was fitted on.
        known : list of lists, optional
            Labels that are known, one list per structure, None where the label is open.
        prior : list of ndarray, optional
            One (n_nodes, n_labels) array per structure, in place of the model's own prior;
            required where the model was fitted with arrays.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One list of labels per structure.
        """
        return self._for_each_structure(
            X,
            lambda encoded: self._labels_of_numbers(
                encoded, self._predict_numbers(encoded, prior, self.margins_, known)
            ),
        )

    @on_snapshot
    def predict_marginals(self, X: Any, *, known: Any = None, prior: Any = None) -> Array:
        """Compute P(y_t = label) for every node t, by the calibrated scores.

        They do not depend on the labels of other nodes.

        Parameters
        ----------
        X : list of structures
            Of the shape that the model was fitted on.
        known : list of lists, optional
            Labels that are known, one list per structure, None where the label is open.
        prior : list of ndarray, optional
            One (n_nodes, n_labels) array per structure, in place of the model's own prior.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One array of shape (n_nodes, n_labels) per structure; columns as in `classes_`.
        """
        return self._for_each_structure(
            X,
            lambda encoded: encoded.corpus.split(self._node_marginals(encoded, known, prior)),
            self._empty_marginals,
        )

    @on_snapshot
    def predict_nbest(self, X: Any, n: int, *, known: Any = None, prior: Any = None) -> Array:
        """Find the n best labelings of each structure, by the calibrated scores.

        With decode="posterior" the probability of a labeling is the product of those of its nodes.

        Parameters
        ----------
        X : list of structures
            Of the shape that the model was fitted on.
        n : int
            How many labelings to find, at most.
        known : list of lists, optional
            Labels that are known, one list per structure, None where the label is open.
        prior : list of ndarray, optional
            One (n_nodes, n_labels) array per structure, in place of the model's own prior.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            Lists of pairs (labels, log P(y|x)), best first.
        """
        count = check_count(n)
        return self._for_each_structure(
            X, lambda encoded: self._nbest(encoded, count, known, prior), lambda: [([], 0.0)]
        )

    @on_snapshot
    def decision_scores(self, X: Any, *, prior: Any = None) -> Array:
        """Compute the scores S(t,σ).

        Where numbers may exceed the range of doubles, the scores of each node are divided by a
        power of 2, which differs between nodes.

        Parameters
        ----------
        X : list of structures
            Of the shape that the model was fitted on.
        prior : list of ndarray, optional
            One (n_nodes, n_labels) array per structure, in place of the model's own prior.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One array of shape (n_nodes, n_labels) per structure; columns as in `classes_`.
        """
        return self._for_each_structure(
            X,
            lambda encoded: encoded.corpus.split(self._inputs_of(encoded, prior).scores),
            self._empty_marginals,
        )

    def _predicted_labels(self, encoded: Encoded) -> Array:
        """The label numbers (N,) that are predicted."""
        return self._predict_numbers(encoded, None, self.margins_)

    def _node_marginals(self, encoded: Encoded, known: Any = None, prior: Any = None) -> Array:
        """P(y_t = label) of all nodes (N, L); `prior` as it was passed to predict, or None."""
        probabilities = self._marginals(self._inputs_of(encoded, prior))
        if known is not None:
            labels = self._label_numbers(known, encoded.corpus)
            probabilities[labels >= 0] = np.eye(len(self.classes_))[labels[labels >= 0]]
        return probabilities

    def _predict_numbers(
        self, encoded: Encoded, prior: Any, margins: Array | None, known: Any = None
    ) -> Array:
        """The predicted label numbers (N,); with margins, scores may be approximated."""
        return self._decode(encoded, self._inputs_of(encoded, prior, margins), known)

    def _decode(self, encoded: Encoded, inputs: DecisionInputs, known: Any = None) -> Array:
        """The label numbers (N,) that these inputs lead to."""
        if self._decoding == "viterbi":
            return self._viterbi_labels(encoded, *self._calibration.labelings(inputs), known)
        labels = self._calibration.ranks(inputs).argmax(axis=1)
        if known is None:
            return labels
        known_numbers = self._label_numbers(known, encoded.corpus)
        return np.where(known_numbers >= 0, known_numbers, labels)

    def _nbest(self, encoded: Encoded, n: int, known: Any = None, prior: Any = None) -> list[Ranked]:
        """The n best labelings of each structure; `prior` is their prior or None."""
        corpus, inputs = encoded.corpus, self._inputs_of(encoded, prior)
        if self._decoding == "viterbi":
            constrained = self._constrained(corpus, *self._calibration.labelings(inputs), known)
            return best_labelings(corpus.graph, *constrained, n, self.classes_, self.n_jobs)
        scores = np.log(np.maximum(self._marginals(inputs), np.finfo(float).tiny))
        if known is not None:
            fix_known(scores, self._label_numbers(known, corpus))
        return best_of_nodes(corpus, scores, n, self.classes_, self.n_jobs)

    def _viterbi_labels(self, encoded: Encoded, scores: Array, pairs: Array, known: Any = None) -> Array:
        """The labeling of largest score, well-formed where there is a scheme."""
        corpus = encoded.corpus
        constrained = self._constrained(corpus, scores, pairs, known)
        return inference.viterbi(corpus.graph, *constrained, self.n_jobs)[0]

    def _constrained(self, corpus: Corpus, scores: Array, pairs: Array, known: Any) -> tuple[Array, Array]:
        """Scores (changed in place) and pair scores, −inf where scheme or known labels forbid."""
        check_decoder(self, corpus)
        if self.scheme is not None:
            pairs = forbid(scores, pairs, self.classes_, self.scheme, corpus.graph.roots, corpus.graph.leaves)
        if known is not None:
            fix_known(scores, self._label_numbers(known, corpus))
        return scores, pairs

    def _marginals(self, inputs: DecisionInputs) -> Array:
        """P(y_t = σ) of all nodes, (N, L)."""
        if not self._fitted_params["calibrate"]:
            raise DataError(
                "calibrate=False: the scores are not calibrated to probabilities; fit with calibrate=True"
            )
        return self._calibration.marginals(inputs)

    @property
    def _decoding(self) -> str:
        """The parameter `decode`; if it is None, what the scheme needs, or its value at `fit`."""
        by_scheme = "viterbi" if self.scheme is not None else self._fitted_params["decode"]
        decode = by_scheme if self.decode is None else self.decode
        return RENAMED.get(decode, decode)

    def _inputs_of(self, encoded: Encoded, prior: Any = None, margins: Array | None = None) -> DecisionInputs:
        """The scores and priors that decide about all nodes; `prior` is theirs or None."""
        raise NotImplementedError
