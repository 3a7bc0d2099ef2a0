"""Labelers that score labelings as a Markov model on a chain or tree:

    F(x, y) = Σ_t s_t(y_t) + Σ_{edges p→t} A_t(y_p, y_t),   P(y|x) = exp F(x, y) / Z(x).

A model defines s and A; decoding, marginals and the n best labelings are the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from fuda import inference
from fuda.checks import LARGEST, is_choice, is_number
from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded
from fuda.errors import DataError, short
from fuda.explanations.base import Contribution, Explanation
from fuda.explanations.decisions import Context, Decision, explained
from fuda.explanations.positions import Positions
from fuda.models.base import Labeler
from fuda.models.explained.markov import encoded_question, markov_decision, markov_labelings
from fuda.models.fitting.labelled_data import Probabilities
from fuda.models.fitting.one_state import on_snapshot
from fuda.models.fitting.training_data import TrainingData, data_weights
from fuda.models.fitting.validation import Held, Validation
from fuda.models.labelings import best_labelings, check_count, check_sequences, fix_known
from fuda.optimize.result import INTERRUPTED, Minimizer, Result
from fuda.progress import Iterations
from fuda.schemes import OUTSIDE, forbid, legal, scheme_name
from fuda.storage.checkpoint import Checkpoint

Array = np.ndarray


class MarkovLabeler(Probabilities, Labeler):
    """Base of the labelers that are Markov models of labels.

    A subclass defines `_scores(encoded)`, which returns node scores (N, L) and transition scores
    (L, L) or (N, L, L). It may have the parameters `decode`, `scheme` and `n_jobs`.

    - decode="viterbi" finds the best labeling as a whole, "posterior" the best label of each node.
    - A `scheme` allows well-formed label sequences only; posterior decoding then finds the one
      with the largest expected number of right labels.
    - `outside_penalty` is subtracted from s_t(O) at every node t when labels are predicted.
      Probabilities and the n best labelings do not depend on it.
    """

    _free_params = frozenset({"decode", "scheme", "outside_penalty"})
    # Whether labelings are scored by nodes and label pairs; else labels depend on whole segments.
    _is_pairwise: ClassVar[bool] = True
    decode: str | None
    scheme: str | None = None
    outside_penalty: float = 0.0
    n_jobs: int | None = None
    _scale: float = 1.0  # the factor that turns scores into log-probabilities
    tol: float
    max_iter: int
    verbose: bool

    @on_snapshot
    def predict(self, X: Any, *, known: Any = None) -> np.ndarray:
        """Label structures.

        Parameters
        ----------
        X : list of structures
            Of the shape that the model was fitted on.
        known : list of lists, optional
            Labels that are known, one list per structure, None where the label is open. Only
            labelings that agree with them are considered.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One list of labels per structure.
        """
        return self._for_each_structure(
            X, lambda encoded: self._labels_of_numbers(encoded, self._best_labels(encoded, known))
        )

    @on_snapshot
    def predict_marginals(self, X: Any, *, known: Any = None) -> np.ndarray:
        """Compute P(y_t = label | x) for every node t.

        Parameters
        ----------
        X : list of structures
            Of the shape that the model was fitted on.
        known : list of lists, optional
            Labels that are known, one list per structure, None where the label is open.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One array of shape (n_nodes, n_labels) per structure; columns as in `classes_`.
        """
        return self._for_each_structure(
            X, lambda encoded: encoded.corpus.split(self._marginals(encoded, known)), self._empty_marginals
        )

    @on_snapshot
    def predict_nbest(self, X: Any, n: int, *, known: Any = None) -> np.ndarray:
        """Find the n best labelings of each structure.

        Parameters
        ----------
        X : list of structures
            Of the shape that the model was fitted on.
        n : int
            How many labelings to find, at most.
        known : list of lists, optional
            Labels that are known, one list per structure, None where the label is open.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            Lists of pairs (labels, log P(y|x)), best first.
        """
        count, scale = check_count(n), self._scale
        return self._for_each_structure(
            X, lambda encoded: self._nbest(encoded, count, known, scale), lambda: [([], 0.0)]
        )

    @on_snapshot
    def explain(self, x: Any, node: int, *, known: Any = None, top: int = 5) -> Explanation:
        """Explain the label that `predict` gives a node, against the best other one.

        Parameters
        ----------
        x : structure
            The structure.
        node : int
            The node of x whose label is explained.
        known : list, optional
            Labels of x that are known, None where the label is open.
        top : int, default=5
            How many contributions of each kind to list; all of them add up to the difference.

        Returns
        -------
        Explanation
            Of `fuda.explanations`; ``print`` shows it.
        """
        encoded = encoded_question(self, x, node, top)
        return explained(self._decision(encoded, None if known is None else [known]), node, top)

    def _decision(self, encoded: Encoded, known: Any = None) -> Decision:
        """The decision of `predict` about one structure."""
        return markov_decision(self, encoded, known)

    def _labeling_decision(self, encoded: Encoded) -> Any:
        """The decision between labelings of the whole structure, however the model decodes."""
        return markov_labelings(self, encoded)

    def _node_terms(self, encoded: Encoded, node: int, a: int, b: int, top: int) -> list[Contribution]:
        """The parts of the difference of a node's scores of two labels; [] if it has no parts."""
        return []

    def _edge_terms(self, encoded: Encoded, node: int, ours: Context, theirs: Context) -> list[Contribution]:
        """The contributions of features with label pairs to the difference of two contexts."""
        return []

    def _node_positions(self, encoded: Encoded, node: int) -> Positions | None:
        """The training positions that the scores of a node are sums over; None if they are not."""
        return None

    def _nbest(
        self, encoded: Encoded, n: int, known: Any = None, scale: float = 1.0
    ) -> list[list[tuple[list[Any], float]]]:
        """The n best labelings by scores times `scale`; re-rankers use scores without a factor."""
        scores, pairs = self._scores(encoded)
        constrained = self._constrained(encoded.corpus, scale * scores, scale * pairs, known)
        return best_labelings(encoded.corpus.graph, *constrained, n, self.classes_, self.n_jobs)

    def _predicted_labels(self, encoded: Encoded) -> np.ndarray:
        """The label numbers (N,) that are predicted."""
        return self._best_labels(encoded, None)

    def _best_labels(self, encoded: Encoded, known: Any) -> np.ndarray:
        """The label numbers (N,) of the best labeling that agrees with what is known."""
        corpus, (scores, transitions) = encoded.corpus, self._scores(encoded)
        constrained = self._constrained(corpus, self._penalized(scores), transitions, known)
        if self._decoding == "posterior":
            scores = inference.marginals(corpus.graph, *constrained, n_jobs=self.n_jobs)[1]
            constrained = self._constrained(corpus, scores, np.zeros((len(self.classes_),) * 2), known)
        return inference.viterbi(corpus.graph, *constrained, self.n_jobs)[0]

    @property
    def _decoding(self) -> str:
        """The parameter `decode`; where it is None, its value at the last fit."""
        return self._fitted_params["decode"] if self.decode is None else self.decode

    def _penalized(self, scores: np.ndarray) -> np.ndarray:
        """Node scores (changed in place) with the penalty of the label O."""
        if self.outside_penalty:
            scores[:, self.classes_ == OUTSIDE] -= self.outside_penalty
        return scores

    def _node_marginals(self, encoded: Encoded, known: Any = None) -> np.ndarray:
        """P(y_t = label) of all nodes (N, L)."""
        return self._marginals(encoded, known)

    def _marginals(self, encoded: Encoded, known: Any) -> np.ndarray:
        constrained = self._constrained(encoded.corpus, *self._log_scores(encoded), known)
        return inference.marginals(encoded.corpus.graph, *constrained, n_jobs=self.n_jobs)[1]

    def _constrained(
        self, corpus: Corpus, scores: np.ndarray, transitions: np.ndarray, known: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores (changed in place) and transitions, −inf where scheme or known labels forbid."""
        if self.scheme is not None:
            check_sequences(self.scheme, corpus)
            transitions = forbid(
                scores, transitions, self.classes_, self.scheme, corpus.graph.roots, corpus.graph.leaves
            )
        if known is not None:
            fix_known(scores, self._label_numbers(known, corpus))
        return scores, transitions

    def _fit_encoded(self, data: TrainingData) -> Self:
        if self.scheme is not None and "scheme" in self._live_params:
            # Otherwise every prediction would fail, which users would notice after training.
            check_sequences(self.scheme, data.encoded.corpus)
            legal(data.classes, self.scheme)
        return super()._fit_encoded(data)

    def _labelled(self, X: Any, y: Any, sample_weight: Any, position_weight: Any) -> TrainingData:
        """Labelled structures to sum an objective over."""
        encoded = self._encode(X)
        if encoded is None:
            raise DataError(
                "there is nothing to sum the objective over: X is empty; give at least one structure"
            )
        labels = self._label_numbers(y, encoded.corpus)
        weights = data_weights(encoded.corpus, sample_weight, position_weight)
        return TrainingData(self.encoder_, encoded, self.classes_.tolist(), labels, *weights)

    @property
    def _has_pair_scores(self) -> bool:
        """Whether finite node scores and one finite matrix of pair scores score labelings."""
        return False

    def _scores(self, encoded: Encoded) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _log_scores(self, encoded: Encoded) -> tuple[np.ndarray, np.ndarray]:
        """Node and pair scores that are logarithms of probabilities, up to a constant."""
        scores, pairs = self._scores(encoded)
        return (scores, pairs) if self._scale == 1.0 else (self._scale * scores, self._scale * pairs)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_live_params()

    def _check_live_params(self) -> None:
        super()._check_live_params()
        if not is_choice(self.decode, ("viterbi", "posterior", None)):
            raise DataError(f"decode={short(self.decode)}: choose viterbi or posterior")
        if self.scheme is not None and "scheme" in self._live_params:
            scheme_name(self.scheme)
        if not is_number(self.outside_penalty, -LARGEST, LARGEST):
            raise DataError(
                f"outside_penalty={short(self.outside_penalty)}: give what is subtracted from the score of "
                f"the label {OUTSIDE} when predicting, a number; 0 changes nothing"
            )

    def _minimized(
        self, minimizer: Minimizer, title: str, held: Held | None, weights: Callable[[Array], Array]
    ) -> Result:
        """Run a minimizer with `tol` and `max_iter`, from its checkpoint if there is one.

        `weights` converts a point of the minimizer into the attribute `weights_`.
        """

        def predict(encoded: Encoded) -> list[list[Any]]:
            probe: Any = copy(self)
            probe.weights_ = weights(minimizer.x)
            return self._labels_of_numbers(encoded, probe._best_labels(encoded, None))

        validation = Validation(minimizer, held, predict)
        checkpoint = Checkpoint(validation)
        reason = "the score on validation data was best"
        stopped_by_validation = Result(minimizer.x, True, reason, minimizer.history)
        with Iterations(title, self.verbose, checkpoint, self.callback, validation=validation) as progress:
            result = stopped_by_validation
            if not (validation.curve and (checkpoint.has_ended or validation.is_over)):
                result = minimizer.minimize(self.tol, self.max_iter, progress)
        interrupted = result.reason == INTERRUPTED
        if validation.return_to_best():
            result = replace(stopped_by_validation, x=minimizer.x, history=minimizer.history)
        if not interrupted:
            checkpoint.finish()
        if held is not None:
            self.validation_curve_ = validation.curve
        return result
