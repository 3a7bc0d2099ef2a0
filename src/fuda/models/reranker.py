"""Re-ranking: the n best labelings of a base labeler, ranked anew by features of any size.

The base labeler lists candidates y with log P(y|x). A kernel perceptron ranks them by

    g(x, y) = v log P(y|x) + Σ_s α_s K((x_s, y_s), (x, y)),

K the kernel between whole labelled structures of `fuda.marginalized.labelled`: no Viterbi search,
so that features may span any number of nodes. Without α the order is that of the base
labeler. Training visits the structures in order: where the best-ranked candidate ŷ has more wrong
labels than the best candidate y*, the one with the fewest (of several the base labeler's first),

    α(y*) += 1,   α(ŷ) −= 1.

The candidates of a structure come from a base labeler that was fitted without it: on its own
training data a labeler makes far fewer mistakes than on new data. The final base labeler is fitted
on all structures.

No re-ranking finds a labeling that is not among the candidates; `oracle_report` measures how
much that matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fuda.checks import check_arrays, check_counts, check_flags, check_numbers
from fuda.data.encoding import Encoded
from fuda.data.graph import ranges
from fuda.data.labels import as_object_array, flat_labels
from fuda.errors import DataError, short
from fuda.explanations.base import Explanation
from fuda.explanations.decisions import Decision, explained
from fuda.functions import CACHE_BYTES
from fuda.kernels import Polynomial, as_kernel, check_kernel
from fuda.kernels.points import Numbering, points
from fuda.marginalized.kernel import check_mixing
from fuda.marginalized.labelled import LABELLED_MIXING, Labelings, Similarity
from fuda.metrics import Report, evaluate
from fuda.models.base import Labeler, check_without_checkpoint
from fuda.models.crf import CRF
from fuda.models.explained.markov import encoded_question
from fuda.models.explained.reranker import RankedCandidates
from fuda.models.fitting.one_state import on_snapshot
from fuda.models.fitting.training_data import TrainingData
from fuda.models.fitting.validation import Validation
from fuda.models.reranker_candidates import Candidates, Distinct, distinct
from fuda.progress import Callback, Iterations
from fuda.runtime.estimators import clone
from fuda.runtime.interrupts import inner_training
from fuda.storage import structures as stored_structures
from fuda.storage.checkpoint import Checkpoint, part
from fuda.training.ranking import Ranking

Array = np.ndarray


@dataclass(frozen=True)
class OracleReport:
    """The quality of three choices among the candidates.

    Parameters
    ----------
    base : Report
        The best labelings of the base labeler.
    reranked : Report
        The re-ranked labelings.
    oracle : Report
        The candidates with the fewest wrong labels.
    """

    base: Report
    reranked: Report
    oracle: Report


class Reranker(Labeler):
    """Re-ranks the n best labelings of a base labeler, on sequences and trees.

    Parameters
    ----------
    base : Labeler or None, default=None
        Any labeler with `predict_nbest`; None is CRF().
    kernel : Kernel, callable or None, default=None
        The kernel k_x on observations; None is Polynomial(2).normalized().
    mixing : float or None, default=None
        c, above 0; features of d nodes weigh c^d. None is the largest c at which K cannot grow
        with the length of what agrees: c² (k_x(x, x) + 1) ≤ 1.
    normalized : bool, default=False
        Whether K of every candidate with itself is 1, whatever its length.
    n : int, default=10
        How many candidates the base labeler lists. Acts at once.
    base_weight : float, default=10.0
        v, the weight of log P(y|x) of the base labeler.
    folds : int, default=5
        Into how many parts the training data are divided for the candidates.
    features : str, Template or callable, default="text"
        The feature set ("word", "spelling", "text", "protein", "dna", "S1", "S2", "S3"), a
        template, or a function from an observation to a list of feature names or a dict. They are
        those of the kernel only, on all kinds of data the same; the base labeler has its own.
    epochs : int, default=10
        How often to go through the structures; training ends sooner after an epoch without a
        mistake.
    average : bool, default=True
        Whether to keep the mean of α over the course of training, or the last α.
    n_jobs : int or None, default=None
        Threads; None is all cores. Results do not depend on it. Acts at once.
    cache_bytes : int, default=1073741824
        How many bytes kernel values between candidates may take in memory. Results do not depend
        on it; time does.
    random_state : int, RandomState or None, default=None
        Seed by which folds are shuffled; None makes folds of consecutive structures. Nothing else
        in the training is random, so that None, too, always gives the same model.
    checkpoint : str, Path or None, default=None
        A file to which the state of training is written every few seconds and at the end. A fit
        of the same data and parameters that finds the file continues from it, to the identical
        result. `fit` leaves it there: remove it when the model is saved. Never stored in model
        files.
    callback : callable or None, default=None
        Called after every epoch with a `fuda.progress.Iteration`. It may raise StopIteration to
        end the training and keep what has been learned; after another exception the model is not
        fitted. Never stored in model files.
    verbose : bool, default=False
        Whether to report epochs on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,), dtype object
        The labels, sorted.
    base_ : Labeler
        The base labeler, fitted on all structures.
    kernel_ : Kernel
        The kernel that the model was fitted with.
    mixing_ : float
        c as chosen or given.
    alpha_ : ndarray of shape (n_support,)
        α of the support candidates.
    support_structures_ : list of structures
        The structures of the support candidates.
    mistakes_ : list of int
        How many structures were labelled wrongly in each epoch. Not in model files.
    n_iter_ : int
        The number of epochs. Not in model files.

    Notes
    -----
    Candidates are ranked by g(x, y) = v log P(y|x) + Σ_s α_s K((x_s, y_s), (x, y)), where
    K = Σ_{t,τ} K_{t,τ} and K_{t,τ} = (K_{t−1,τ−1} + 1) k_y(y_t, y'_τ) (k_x(x_t, x'_τ) + 1) is the
    kernel on labelled structures of [2]_, and re-ranking is that of [1]_. Labels None do not count
    as wrong, whatever a candidate has there. `sample_weight` also weighs updates,
    `position_weight` also weighs wrong labels.

    References
    ----------
    .. [1] M. Collins, N. Duffy. New ranking algorithms for parsing and tagging: kernels over
       discrete structures, and the voted perceptron. ACL 2002, pages 263–270; in dual form
       equation (1) and figure 3 of their Convolution kernels for natural language, NIPS 2001.
    .. [2] H. Kashima, Y. Tsuboi. A kernel-based approach to sequence labeling problems. Slides,
       section "Kernel for Labeled Sequences".

    Examples
    --------
    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> Reranker(folds=2).fit(X, y).predict([["Ana", "is", "in", "Lima"]])[0]
    ['PER', 'O', 'O', 'LOC']
    """

    window = 0  # the kernel itself compares the context of nodes
    _live_params = (*Labeler._live_params, "n")
    _free_params = frozenset({"cache_bytes"})
    _minimum_counts: ClassVar[tuple[int, int]] = (0, 1)  # those of the base labeler come on top
    _defaults: ClassVar[dict[str, Any]] = {"base": CRF(), "kernel": Polynomial(2).normalized()}

    def __init__(
        self,
        base: Any = None,
        *,
        kernel: Any = None,
        mixing: float | None = None,
        normalized: bool = False,
        n: int = 10,
        base_weight: float = 10.0,
        folds: int = 5,
        features: Any = "text",
        epochs: int = 10,
        average: bool = True,
        n_jobs: int | None = None,
        cache_bytes: int = CACHE_BYTES,
        random_state: int | np.random.RandomState | None = None,
        checkpoint: str | Path | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.base, self.kernel, self.mixing, self.normalized = base, kernel, mixing, normalized
        self.n, self.base_weight, self.folds = n, base_weight, folds
        self.features, self.epochs, self.average = features, epochs, average
        self.n_jobs, self.cache_bytes, self.random_state = n_jobs, cache_bytes, random_state
        self.checkpoint, self.callback, self.verbose = checkpoint, callback, verbose

    @on_snapshot
    def predict(self, X: Any) -> Array:
        """Label structures by their best-ranked candidates.

        Parameters
        ----------
        X : list of structures
            Of the shape that the model was fitted on.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One list of labels per structure.
        """
        return self._for_each_structure(X, self._best)

    def _best(self, encoded: Encoded) -> Iterable[list[Any]]:
        """The labels of the best-ranked candidate of each structure."""
        candidates = self._candidates(encoded)
        return candidates.chosen(self._ranking(encoded, candidates))

    def _predicted_labels(self, encoded: Encoded) -> Array:
        """The label numbers (N,) that are predicted."""
        return self._label_numbers(list(self._best(encoded)), encoded.corpus)

    @on_snapshot
    def explain(self, x: Any, node: int, *, top: int = 5) -> Explanation:
        """Explain the label that `predict` gives a node, against that of the best other candidate.

        Parameters
        ----------
        x : structure
            The structure.
        node : int
            The node of x whose label is explained.
        top : int, default=5
            How many contributions of each kind to list; all of them add up to the difference.

        Returns
        -------
        Explanation
            Of `fuda.explanations`; ``print`` shows it.
        """
        encoded = encoded_question(self, x, node, top)
        return explained(self._decision(encoded), node, top)

    def _decision(self, encoded: Encoded) -> Decision:
        """The decision of `predict` about one structure."""
        return RankedCandidates(self, encoded)

    @on_snapshot
    def oracle_report(self, X: Any, y: Any) -> OracleReport:
        """Compare base labeler, re-ranking, and the best that re-ranking could do.

        Parameters
        ----------
        X : list of structures
            Structures to label.
        y : list of lists
            Their true labels, None where not known.

        Returns
        -------
        OracleReport
            The metrics of the best candidates by base labeler, re-ranking, and number of wrong
            labels.
        """
        encoded = self._encode(X)
        if encoded is None:
            raise DataError("there is nothing to report on: X is empty; give at least one structure")
        flat = as_object_array(flat_labels(y, encoded.corpus))
        y, candidates = encoded.corpus.split(flat), self._candidates(encoded)
        rankings = candidates.log_p, self._ranking(encoded, candidates), -candidates.wrong(y)
        return OracleReport(*(evaluate(y, candidates.chosen(ranking)) for ranking in rankings))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        base = self._defaults["base"] if self.base is None else self.base
        if not isinstance(base, Labeler) or not hasattr(base, "predict_nbest"):
            raise DataError(
                f"base={short(base)}: give a labeler that lists its n best labelings, such as CRF(), HMM() "
                "or MEMM()"
            )
        base._check_parameters()
        check_without_checkpoint(base, "base")
        if self.mixing is not None:
            check_mixing(self.mixing, LABELLED_MIXING)
        check_numbers(self, "base_weight")
        check_counts(self, "n", "epochs")
        check_counts(self, "folds", least=2)
        check_counts(self, "cache_bytes", least=0)
        check_flags(self, "average", "normalized")

    def _check_live_params(self) -> None:
        super()._check_live_params()
        check_counts(self, "n")

    def _fit(self, data: TrainingData) -> None:
        encoded, corpus = data.encoded, data.encoded.corpus
        if self.folds > len(corpus):
            raise DataError(
                f"folds={self.folds}: there are only {len(corpus)} structures; give at least one per fold, "
                "or fewer folds"
            )
        self.kernel_, types = as_kernel(self._fitted_params["kernel"]), points(encoded)
        check_kernel(self.kernel_, types, corpus.place_of_type)
        largest = float(self.kernel_.diagonal(types).max())
        self.mixing_ = 1 / math.sqrt(largest + 1) if self.mixing is None else float(self.mixing)
        y = self._labels_of_numbers(encoded, data.labels)
        by_node = None if data.position_weight is None else corpus.split(data.position_weight)

        base = self._fitted_params["base"]
        of_base = base._training_data(corpus, *data[2:6])  # classes, labels and weights
        with inner_training():
            candidates = self._out_of_fold(of_base)
        if data.held is not None:
            self._fit_base(of_base)
        with part("ranking"):
            self._learn(data, candidates, candidates.wrong(y, by_node))
        if data.held is None:
            self._fit_base(of_base)

    def _fit_base(self, data: TrainingData) -> None:
        with inner_training(), part("base"):
            self.base_ = clone(self._fitted_params["base"])._fit_encoded(data)

    def _out_of_fold(self, data: TrainingData) -> Candidates:
        """The candidates of each structure, from a base labeler fitted on the other folds."""
        from sklearn.model_selection import KFold  # slow to import, and only trainings use it

        count = len(data.encoded.corpus)
        all_candidates: list[Any] = [None] * count
        shuffle = self.random_state is not None
        folds = KFold(self.folds, shuffle=shuffle, random_state=self.random_state)
        for number, (others, members) in enumerate(folds.split(np.arange(count)), start=1):
            some, rest = data.split(others, members)
            with part(f"fold {number}"):
                fitted = clone(self._fitted_params["base"])._fit_encoded(some)
            listed = fitted._nbest(rest, self.n)
            for i, candidates in zip(members, listed, strict=True):
                all_candidates[i] = candidates
        return Candidates(all_candidates)

    def _learn(self, data: TrainingData, candidates: Candidates, wrong: Array) -> None:
        """The kernel perceptron. A structure without a mistake costs nothing."""
        encoded, sample_weight = data.encoded, data.sample_weight
        corpus, similarity = encoded.corpus, self._similarity(Numbering(encoded.corpus))
        unique = distinct(corpus, self._flat(candidates.labels), candidates.first)
        labelings = similarity.prepare(encoded.take(unique.structures), unique.labels, unique.first)
        right = candidates.best(-wrong)
        weight = np.ones(len(corpus)) if sample_weight is None else sample_weight
        groups = unique.groups(self._fitted_params["base_weight"] * candidates.log_p)

        @lru_cache(max(2, self.cache_bytes // (8 * len(labelings.owner))))
        def row(number: int) -> Array:
            return similarity.rows(labelings, np.array([number]), labelings)[0]

        training = Ranking(candidates.first, right, wrong, weight, *groups)
        held_candidates = [] if data.held is None else [self._candidates(data.held.encoded)]

        def predict(others: Encoded) -> list[list[Any]]:
            probe = copy(self)
            probe._set_fitted(training, encoded, unique)
            return list(held_candidates[0].chosen(probe._ranking(others, held_candidates[0])))

        validation = Validation(training, data.held, predict)
        checkpoint = Checkpoint(validation)
        progress = Iterations("Reranker", self.verbose, checkpoint, self.callback, validation=validation)
        progress.count, stopped = len(training.mistakes), checkpoint.has_ended or validation.is_over
        while not stopped and len(training.mistakes) < self.epochs and 0 not in training.mistakes[-1:]:
            training.run_epoch(row)
            stopped = progress.report(mistakes=training.mistakes[-1])
        validation.return_to_best()
        checkpoint.finish()
        if data.held is not None:
            self.validation_curve_ = validation.curve
        self._set_fitted(training, encoded, unique)

    def _set_fitted(self, training: Ranking, encoded: Encoded, unique: Distinct) -> None:
        """Set fitted attributes: the distinct candidates with coefficients, and these."""
        self.mistakes_, corpus = training.mistakes, encoded.corpus
        self.n_iter_ = len(self.mistakes_)
        alpha: Array = np.bincount(unique.of, training.alpha)
        lag = np.bincount(unique.of, training.lag)
        if self.average:
            alpha = alpha - lag / (self.n_iter_ * len(corpus))
        support = np.flatnonzero(alpha)
        owner = np.repeat(np.arange(len(unique.structures)), np.diff(unique.first))
        owners, counts = np.unique(owner[support], return_counts=True)
        self.support_structures_ = [corpus.structures[i] for i in unique.structures[owners]]
        sizes = np.diff(corpus.offsets)[unique.structures[owner]]
        ends = np.cumsum(sizes)
        self.support_labels_ = unique.labels[ranges((ends - sizes)[support], sizes[support])]
        self.support_first_ = np.cumsum([0, *counts])
        self.alpha_ = alpha[support]

    def _similarity(self, numbering: Numbering) -> Similarity:
        label_gram = np.eye(len(self.classes_))
        normalized = self._fitted_params["normalized"]
        return Similarity(self.kernel_, label_gram, self.mixing_, normalized, numbering, self.n_jobs)

    def _flat(self, labelings: list[list[Any]]) -> Array:
        """The label numbers of labelings, one after another."""
        number = {label: i for i, label in enumerate(self.classes_)}
        return np.array([number[label] for labels in labelings for label in labels], dtype=np.int64)

    def _candidates(self, encoded: Encoded) -> Candidates:
        known = self.base_._encode_corpus(encoded.corpus)
        return Candidates(list(self.base_._nbest(known, self.n)))

    def _ranking(self, encoded: Encoded, candidates: Candidates) -> Array:
        """g (m,) of all candidates."""
        ranking = self._fitted_params["base_weight"] * candidates.log_p
        if not len(self.alpha_):
            return ranking
        similarity, support = self._cached_for(self.alpha_, self._support)
        unique = distinct(encoded.corpus, self._flat(candidates.labels), candidates.first)
        new = similarity.prepare(encoded.take(unique.structures), unique.labels, unique.first)
        ranking, number, group = unique.groups(ranking)
        bounds = pairwise(self.support_first_.tolist())
        for (a, b), rows in zip(bounds, similarity.all_rows(support, new), strict=True):
            ranking += (self.alpha_[a:b] @ rows)[number]
        return ranking[group]

    def _support(self) -> tuple[Similarity, Labelings]:
        """The kernel and the support candidates, ready to be compared with others."""
        known = self.encoder_.encode(self.support_structures_)
        similarity = self._similarity(Numbering(known.corpus))
        return similarity, similarity.prepare(known, self.support_labels_, self.support_first_)

    def _arrays(self) -> dict[str, Array]:
        _, arrays = stored_structures.pack(self.support_structures_)
        return arrays | {
            "labels": self.support_labels_,
            "first": self.support_first_,
            "alpha": self.alpha_,
            "mixing": np.array([self.mixing_]),
        }

    def _texts(self) -> list[list[str]]:
        return [stored_structures.pack(self.support_structures_)[0]]

    def _parts(self) -> dict[str, Labeler]:
        return {"base": self.base_}

    def _restore(self, arrays: dict[str, Array], texts: list[list[str]], parts: dict[str, Labeler]) -> None:
        names = {"labels", "first", "alpha", "mixing"}
        if set(parts) != {"base"} or len(texts) != 1 or not names <= set(arrays):
            raise DataError("its base labeler or its support candidates are not all there")
        base, self.kernel_ = parts["base"], as_kernel(self._fitted_params["kernel"])
        if type(base) is not type(self._fitted_params["base"]) or not set(base.classes_) <= set(
            self.classes_
        ):
            raise DataError("its base labeler does not fit its parameters and labels")
        structures = stored_structures.unpack(texts[0], arrays, self.shape_)
        if structures:
            known = self.encoder_.encode(structures)
            check_kernel(self.kernel_, points(known), known.corpus.place_of_type)
        labels, first, alpha, mixing = (arrays[name] for name in ("labels", "first", "alpha", "mixing"))
        check_arrays({"alpha": alpha, "mixing": mixing}, {"alpha": (len(alpha),), "mixing": (1,)})
        check_mixing(float(mixing[0]), LABELLED_MIXING)
        if (
            labels.dtype != np.int64
            or first.dtype != np.int64
            or first.shape != (len(structures) + 1,)
            or first[0] != 0
            or first[-1] != len(alpha)
            or (np.diff(first) < 1).any()
            or labels.shape != (int(np.repeat(list(map(len, structures)), np.diff(first)).sum()),)
            or labels.min(initial=0) < 0
            or labels.max(initial=0) >= len(self.classes_)
        ):
            raise DataError("its support candidates do not fit its structures and labels")
        self.base_, self.support_structures_, self.mixing_ = base, structures, float(mixing[0])
        self.support_labels_, self.support_first_, self.alpha_ = labels, first, alpha
        if structures:  # raises DataError now if the kernel cannot compare them
            longest = int(first[np.argmax(list(map(len, structures)))])
            similarity, support = self._support()
            similarity.rows(support, np.array([longest]), support)
