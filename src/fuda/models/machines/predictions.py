"""How models with the marginalized kernel predict labels, probabilities and n-best labelings.

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
from fuda.marginalized.calibration import Calibration, Evidence
from fuda.models.base import Labeler
from fuda.models.fitting.labelled_data import Probabilities
from fuda.models.fitting.one_state import of_one_state
from fuda.models.labelings import Ranked, best_labelings, best_of_nodes, check_count, fix_known
from fuda.models.machines.checks import check_decoder
from fuda.schemes import forbid

Array = np.ndarray

DECODERS = ("posterior", "viterbi")
RENAMED = {"pointwise": "posterior"}  # of `decode`, in earlier versions


class MarginalizedPredictions(Probabilities, Labeler):
    """What labelers with the marginalized kernel predict; subclasses define `_evidence`."""

    decode: str | None
    scheme: str | None
    n_jobs: int | None
    margins_: Array | None
    _calibration: Calibration

    @of_one_state
    def predict(self, X: Any, prior: Any = None, known: Any = None) -> Array:
        """Label structures.

        Parameters
        ----------
        X : list of structures
            Of the shape that the model was fitted on.
        prior : list of ndarray, optional
            One (n_nodes, n_labels) array per structure, in place of the model's own prior;
            required where the model was fitted with arrays.
        known : list of lists, optional
            Labels that are given, one list per structure, None where the label is open.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One list of labels per structure.
        """
        return self._by_structure(
            X, lambda encoded: self._named(encoded, self._predicted(encoded, prior, self.margins_, known))
        )

    @of_one_state
    def predict_marginals(self, X: Any, prior: Any = None, known: Any = None) -> Array:
        """Compute P(y_t = label) for every node t, by the calibrated scores.

        They do not depend on the labels of other nodes.

        Parameters
        ----------
        X : list of structures
            Of the shape that the model was fitted on.
        prior : list of ndarray, optional
            One (n_nodes, n_labels) array per structure, in place of the model's own prior.
        known : list of lists, optional
            Labels that are given, one list per structure, None where the label is open.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One array of shape (n_nodes, n_labels) per structure; columns as in `classes_`.
        """
        return self._by_structure(
            X,
            lambda encoded: encoded.corpus.split(self._node_marginals(encoded, known, prior)),
            self._no_rows,
        )

    @of_one_state
    def predict_nbest(self, X: Any, n: int, prior: Any = None, known: Any = None) -> Array:
        """Find the n best labelings of each structure, by the calibrated scores.

        With decode="posterior" the probability of a labeling is the product of those of its nodes.

        Parameters
        ----------
        X : list of structures
            Of the shape that the model was fitted on.
        n : int
            How many labelings to find, at most.
        prior : list of ndarray, optional
            One (n_nodes, n_labels) array per structure, in place of the model's own prior.
        known : list of lists, optional
            Labels that are given, one list per structure, None where the label is open.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            Lists of pairs (labels, log P(y|x)), best first.
        """
        count = check_count(n)
        return self._by_structure(
            X, lambda encoded: self._nbest(encoded, count, known, prior), lambda: [([], 0.0)]
        )

    @of_one_state
    def decision_scores(self, X: Any, prior: Any = None) -> Array:
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
        return self._by_structure(
            X, lambda encoded: encoded.corpus.split(self._evidence(encoded, prior).scores), self._no_rows
        )

    def _predicted_labels(self, encoded: Encoded) -> Array:
        """The label numbers (N,) that are predicted."""
        return self._predicted(encoded, None, self.margins_)

    def _node_marginals(self, encoded: Encoded, known: Any = None, given: Any = None) -> Array:
        """P(y_t = label) of all nodes (N, L); `given` is their prior, or None."""
        marginals = self._marginals(self._evidence(encoded, given))
        if known is not None:
            labels = self._numbers(known, encoded.corpus)
            marginals[labels >= 0] = np.eye(len(self.classes_))[labels[labels >= 0]]
        return marginals

    def _predicted(self, encoded: Encoded, given: Any, margins: Array | None, known: Any = None) -> Array:
        """The predicted label numbers, with scores approximated where there are margins."""
        return self._decided(encoded, self._evidence(encoded, given, margins), known)

    def _decided(self, encoded: Encoded, evidence: Evidence, known: Any = None) -> Array:
        """The label numbers of all nodes."""
        if self._decoding == "viterbi":
            return self._best(encoded, *self._calibration.labelings(evidence), known)
        labels = self._calibration.ranks(evidence).argmax(axis=1)
        if known is None:
            return labels
        given = self._numbers(known, encoded.corpus)
        return np.where(given >= 0, given, labels)

    def _nbest(self, encoded: Encoded, n: int, known: Any = None, given: Any = None) -> list[Ranked]:
        """The n best labelings of each structure; `given` is their prior, or None."""
        corpus, evidence = encoded.corpus, self._evidence(encoded, given)
        if self._decoding == "viterbi":
            allowed = self._allowed(corpus, *self._calibration.labelings(evidence), known)
            return best_labelings(corpus.graph, *allowed, n, self.classes_, self.n_jobs)
        scores = np.log(np.maximum(self._marginals(evidence), np.finfo(float).tiny))
        if known is not None:
            fix_known(scores, self._numbers(known, corpus))
        return best_of_nodes(corpus, scores, n, self.classes_, self.n_jobs)

    def _best(self, encoded: Encoded, scores: Array, pairs: Array, known: Any = None) -> Array:
        """The best labeling as a whole, well-formed where there is a scheme."""
        corpus = encoded.corpus
        allowed = self._allowed(corpus, scores, pairs, known)
        return inference.viterbi(corpus.graph, *allowed, self.n_jobs)[0]

    def _allowed(self, corpus: Corpus, scores: Array, pairs: Array, known: Any) -> tuple[Array, Array]:
        """Scores (changed in place) and pair scores, −inf where scheme or known labels forbid."""
        check_decoder(self, corpus)
        if self.scheme is not None:
            pairs = forbid(scores, pairs, self.classes_, self.scheme, corpus.graph.roots, corpus.graph.leaves)
        if known is not None:
            fix_known(scores, self._numbers(known, corpus))
        return scores, pairs

    def _marginals(self, evidence: Evidence) -> Array:
        """P(y_t = σ) of all nodes, (N, L)."""
        if not self._fitted_params["calibrate"]:
            raise DataError(
                "calibrate=False: the scores are not calibrated to probabilities; fit with calibrate=True"
            )
        return self._calibration.marginals(evidence)

    @property
    def _decoding(self) -> str:
        """The parameter `decode`; if it is None, what the scheme needs or what it was at `fit`."""
        by_scheme = "viterbi" if self.scheme is not None else self._fitted_params["decode"]
        decode = by_scheme if self.decode is None else self.decode
        return RENAMED.get(decode, decode)

    def _evidence(self, encoded: Encoded, given: Any = None, margins: Array | None = None) -> Evidence:
        """What decides about the labels of all nodes; `given` is their prior, or None."""
        raise NotImplementedError
