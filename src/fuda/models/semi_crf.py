"""The semi-Markov conditional random field on sequences.

    P(y|x) = exp F(x, y) / Z(x)
    F(x, y) = Σ_{segments} g(x, segment) + Σ_{neighbouring segments} A(kind, kind′)

with the score g of a segment as in `fuda.inference.segments`, fitted by minimizing
−Σ log P(y|x) + l2 ‖w‖², see `fuda.training.segment_loss`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fuda import inference
from fuda.checks import check_arrays, check_counts, check_numbers, is_number, is_whole
from fuda.data.encoding import Encoded
from fuda.data.segment_texts import SegmentTexts
from fuda.data.segments import NAMES, PREFIXES, SegmentLabels, check_scheme, scheme_of, segment_labels
from fuda.errors import DataError, short
from fuda.explanations.decisions import Decision
from fuda.functions.linear import LinearFunction
from fuda.inference.segment_marginals import likely_segments
from fuda.inference.segment_nbest import nbest
from fuda.inference.segments import FREE, Limits, Scores, expectations, log_partition
from fuda.models.base import Labeler
from fuda.models.explained.named_weights import feature_names, largest
from fuda.models.explained.segments import Segmentations, segment_decision, segmentations
from fuda.models.fitting.one_state import on_snapshot
from fuda.models.fitting.training_data import TrainingData
from fuda.models.markov import MarkovLabeler
from fuda.optimize import Lbfgs
from fuda.optimize.deflation import Deflation, Spectrum
from fuda.optimize.regularized import l2_regularized
from fuda.progress import Callback
from fuda.runtime.estimators import check_is_fitted
from fuda.schemes import forbid
from fuda.training.crf_curvature import features_per_node
from fuda.training.segment_loss import (
    ByKind,
    PossibleSegmentations,
    SegmentLoss,
    SegmentWeights,
    length_names,
)
from fuda.training.spectrum import DEFLATED_POWER, LEAST_NODES, POWER, leading_curvature, sample_of

Array = np.ndarray
MOST_LENGTH = 1000


class SemiCRF(MarkovLabeler):
    """Semi-Markov conditional random field on sequences: labels are learned as whole segments.

    Parameters
    ----------
    l2 : float, default=1.0
        Weight of ‖w‖².
    features : str, Template, callable or None, default=None
        A feature set of `fuda.features`, a template, or a function from an observation to names or
        a dict. None is "protein" or "dna" for residues or bases, "text" for all else.
    window : int or None, default=None
        How many neighbours to each side are seen, with weights of their own. None is 1, with the
        features of residues 7, of bases 6, and 0 for dicts, lists and sets of features.
    max_length : int or None, default=None
        The largest number of nodes of a segment that is scored as one unit, up to 1,000, and for
        each kind of segment no more than the longest one in the data. None is the length that 99 %
        of the segments of a kind do not exceed, up to 30. Longer segments are composed of several
        stretches. The time of training grows with it.
    decode : {"viterbi", "posterior"} or None, default=None
        Predict the best labeling as a whole, or the best label of each node. None is "posterior"
        for residues, whose labels are uncertain and long, and "viterbi" for all else.
        Acts at once.
    scheme : {"IOB2", "IOE2", "IOBES", "BILOU"} or None, default=None
        How labels write segments. None is the one scheme that all labels fit; where there is none,
        every run of a label is a segment.
    outside_penalty : float, default=0.0
        Subtracted from the score of the label O at every node when predicting: with little data
        many entities are missed, and a penalty around 1 finds more of them. Acts at once.
    max_iter : int, default=1000
        The largest number of iterations of L-BFGS.
    tol : float, default=1e-5
        Training ends where the gradient is below this share of max(1, ‖w‖), or where ten
        iterations improve the objective by less than this share of it.
    n_jobs : int or None, default=None
        Threads; None is all cores. Results do not depend on it. Acts at once.
    checkpoint : str, Path or None, default=None
        A file to which the state of training is written every few seconds and at the end. A fit
        of the same data and parameters that finds the file continues from it, to the identical
        result. `fit` leaves it there: remove it when the model is saved. Never stored in model
        files.
    callback : callable or None, default=None
        Called after every iteration with a `fuda.progress.Iteration`. It may raise StopIteration
        to end the training and keep what has been learned; after another exception the model is
        not fitted. Never stored in model files.
    verbose : bool, default=False
        Whether to report iterations on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,), dtype object
        The labels, sorted.
    kinds_ : list
        The kinds of segments: the types of the labels and O, or the labels.
    longest_ : ndarray of shape (n_kinds,)
        For each kind, the largest number of nodes of a segment that is scored as one unit.
    scheme_ : str or None
        The scheme of the labels; None where their runs are segments.
    transitions_ : ndarray of shape (n_kinds, n_kinds)
        The weights of neighbouring segments, the kind before by rows; on the diagonal, of kinds
        that do not follow themselves, the weight of going on.
    weights_ : ndarray
        All weights: of features by channel, of neighbouring kinds, of joined stretches, of lengths
        and of texts.
    result_ : Result
        How the minimizer ended, and what it measured after each iteration. Not in model files.
    n_iter_ : int
        The number of iterations. Not in model files.

    Notes
    -----
    A segment (s, e, a) of the nodes s … e−1 and the kind a scores [1]_

        g = Σ_{t=s}^{e−1} w_a · f_t + u_a · f_s + v_a · f_{e−1}
            + length_a(e − s) + text_a(x_s … x_{e−1})

    with the features f_t of a node and its window; the kind O has segments of one node, and w
    alone. A sequence scores the sum over its segments, and A(a, a′) between neighbours. Minimized
    is −Σ log P(y|x) + l2 ‖w‖². A label None is not known: it is summed over.

    References
    ----------
    .. [1] S. Sarawagi, W. Cohen. Semi-Markov conditional random fields for information extraction.
       NIPS 2004, section 2.

    Examples
    --------
    >>> X = [["Ana", "lives", "in", "New", "York"], ["York", "is", "old"]]
    >>> y = [["B-PER", "O", "O", "B-LOC", "I-LOC"], ["B-LOC", "O", "O"]]
    >>> X, y = [*X, ["New", "York", "is", "big"]], [*y, ["B-LOC", "I-LOC", "O", "O"]]
    >>> model = SemiCRF(l2=0.1).fit(X, y)
    >>> model.predict([["Ana", "is", "in", "New", "York"]])[0]
    ['B-PER', 'O', 'O', 'B-LOC', 'I-LOC']
    >>> model.scheme_, model.kinds_, model.longest_.tolist()
    ('IOB2', ['LOC', 'O', 'PER'], [2, 1, 1])
    """

    _defaults: ClassVar[dict[str, Any]] = {"features": "text", "decode": "viterbi"}
    _shapes = ("sequence",)
    _is_pairwise = False
    _live_params = ("decode", "outside_penalty", "n_jobs", "verbose")
    _free_params = frozenset({"decode", "outside_penalty", "tol", "max_iter"})

    def __init__(
        self,
        l2: float = 1.0,
        *,
        features: Any = None,
        window: int | None = None,
        max_length: int | None = None,
        decode: str | None = None,
        scheme: str | None = None,
        outside_penalty: float = 0.0,
        max_iter: int = 1000,
        tol: float = 1e-5,
        n_jobs: int | None = None,
        checkpoint: str | Path | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.l2, self.features, self.window, self.max_length = l2, features, window, max_length
        self.decode, self.scheme, self.outside_penalty = decode, scheme, outside_penalty
        self.max_iter, self.tol, self.n_jobs = max_iter, tol, n_jobs
        self.checkpoint, self.callback, self.verbose = checkpoint, callback, verbose

    @property
    def kinds_(self) -> list[Any]:
        """The kinds of segments."""
        check_is_fitted(self, "classes_")
        return self._labels.names

    @property
    def transitions_(self) -> Array:
        """The weights of neighbouring segments (K, K), the kind before by rows.

        Where a kind does not follow itself, the diagonal has the weight of going on.
        """
        parts = self._layout.views(self.weights_)
        return np.where(np.diag(~self._labels.twins), np.diag(parts.joins), parts.transitions)

    def objective(self, X: Any, y: Any, *, sample_weight: Any = None) -> float:
        """Compute −Σ log P(y|x) + l2 ‖w‖² at the fitted weights.

        On the data of `fit` it is the value that training ended at.

        Parameters
        ----------
        X : list of sequences
            Sequences to sum over.
        y : list of lists
            Their labels, None where not known.
        sample_weight : array-like of shape (n_structures,), optional
            Weights of sequences.

        Returns
        -------
        float
            The objective.
        """
        data = self._labelled(X, y, sample_weight, None)
        self._labels.check(data.labels, data.encoded.corpus)
        scores, limits = self._segment_scores(data.encoded), self._limits(data.encoded, data.labels)
        lost = log_partition(scores, FREE, self.n_jobs) - log_partition(scores, limits, self.n_jobs)
        weight = 1.0 if data.sample_weight is None else data.sample_weight
        return float((lost * weight).sum()) + self._fitted_params["l2"] * float(self.weights_ @ self.weights_)

    @on_snapshot
    def predict_segments(self, X: Any, *, known: Any = None, least: float = 0.01) -> np.ndarray:
        """Find segments with their probabilities, whether they are in the best labeling or not.

        Parameters
        ----------
        X : list of sequences
            The sequences.
        known : list of lists, optional
            Labels that are known, one list per sequence, None where the label is open.
        least : float, default=0.01
            The least probability of a segment that is listed.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            Lists of (kind, start, end, probability), the nodes start … end − 1, by start and
            probability. Nodes outside of all segments (O) are not listed.

        Examples
        --------
        >>> X = [["in", "New", "York"], ["in", "Lima"]]
        >>> model = SemiCRF(l2=0.01).fit(X, [["O", "B-LOC", "I-LOC"], ["O", "B-LOC"]])
        >>> for kind, start, end, p in model.predict_segments(X, least=0.2)[0]:
        ...     print(kind, start, end, round(p, 1))
        LOC 1 3 1.0
        """
        if not is_number(least, 1e-12, 1.0):
            raise DataError(f"least={short(least)}: give a probability, above 0 and at most 1")

        def segments(encoded: Encoded) -> list[list[tuple[Any, int, int, float]]]:
            scores, limits = self._segment_scores(encoded), self._limits_of_known(encoded, known)
            names, outside = self.kinds_, self._labels.outside
            return [
                [
                    (names[a], s, e, p)
                    for a, s, e, p in sorted(likely, key=lambda x: (x[1], -x[3]))
                    if not outside[a]
                ]
                for likely in likely_segments(scores, float(least), limits, self.n_jobs)
            ]

        return self._for_each_structure(X, segments)

    def top_features(self, n: int = 10) -> dict[Any, list[tuple[str, float]]]:
        """Find the features of largest absolute weight for each kind of segment.

        ``[-1] w=in`` is a feature of the node before any node of the segment, ``first [-1] w=in``
        of the node before the first one, ``last [0] w=York`` of the last one; ``nodes=2`` and
        ``lower=new york`` are features of the whole segment.

        Parameters
        ----------
        n : int, default=10
            How many features to list per kind.

        Returns
        -------
        dict
            For each kind the n features of largest absolute weight, as pairs (name, weight).
        """
        check_is_fitted(self, "weights_")
        return largest(*self._named_weights(), self.kinds_, n)

    def _named_weights(self) -> tuple[list[str], Array]:
        """The weights by kind (rows, K), with the names of the rows."""
        layout, features = self._layout, feature_names(self.encoder_)
        parts, K, wide = layout.views(self.weights_), len(layout.longest), layout.wide
        nodes = np.concatenate(parts.channels)
        tables = [nodes[:, :K]]
        if len(wide):
            for table in [*np.split(nodes[:, K:], 2, axis=1), parts.lengths, parts.texts]:
                tables.append(np.zeros((len(table), K)))
                tables[-1][:, wide] = table
        names = [f"{place}{name}" for place in ("", "first ", "last ") for name in features]
        names += [*length_names(int(self.longest_.max())), *self._texts_.names]
        return names[: sum(map(len, tables))], np.concatenate(tables)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_numbers(self, "l2", "tol")
        check_counts(self, "max_iter")
        if self.max_length is not None and not is_whole(self.max_length, 1, MOST_LENGTH):
            raise DataError(
                f"max_length={short(self.max_length)}: give a whole number of nodes from 1 to "
                f"{MOST_LENGTH:,}, or None"
            )
        check_scheme(self.scheme)

    @property
    def _labels(self) -> SegmentLabels:
        return segment_labels(tuple(self.classes_.tolist()), self.scheme_)

    @property
    def _layout(self) -> SegmentWeights:
        features = [self.encoder_.feature_count(c) for c in range(len(self.encoder_.channel_names()))]
        return SegmentWeights(features, self.longest_, self._texts_.size)

    def _allowed_segments(self) -> PossibleSegmentations:
        labels = self._labels
        return PossibleSegmentations(~np.diag(~labels.twins), labels.joins, labels.singles)

    def _fit(self, data: TrainingData) -> None:
        self._refuse_pair_features(data.encoded)
        if data.position_weight is not None:
            raise DataError(
                "position_weight weighs nodes, and SemiCRF learns segments; give sample_weight, or choose "
                "CRF with loss='pointwise' or 'markov'"
            )
        corpus, numbers = data.encoded.corpus, data.labels.astype(np.int64)
        self.scheme_ = scheme_of(self.scheme, data.classes, numbers, corpus.offsets)
        labels = self._labels
        labels.check(numbers, corpus)
        self.longest_ = labels.longest(numbers, corpus.offsets, self.max_length)
        segments = labels.segments(numbers, corpus.offsets)
        self._texts_ = SegmentTexts.learned(corpus, segments[self.longest_[segments[:, 0]] > 1])
        loss = self._training_loss(data)
        curvature = loss.curvature() + 2 * self.l2
        curvature[curvature == 0] = 1.0
        scale = curvature**POWER
        function = l2_regularized(loss, self.l2, scale, self.n_jobs)

        def measure(z: Array) -> Spectrum:
            sample = data.take(sample_of(corpus))
            problem = self._training_loss(sample), z / scale, curvature, self.l2
            share, overlap = corpus.size / sample.encoded.corpus.size, features_per_node(sample.encoded)
            return leading_curvature(*problem, share, overlap)

        levelled = curvature ** (POWER - DEFLATED_POWER)
        deflation = Deflation(levelled, measure, self.n_jobs) if corpus.size >= LEAST_NODES else None
        minimizer = Lbfgs(function, np.zeros(len(scale)), n_jobs=self.n_jobs, deflation=deflation)
        self.result_ = self._minimized(minimizer, "SemiCRF", data.held, lambda x: x / scale)
        self.result_.x = self.result_.x / scale
        self.n_iter_ = len(self.result_.history)
        self.weights_ = self.result_.solution("SemiCRF")

    def _training_loss(self, data: TrainingData) -> SegmentLoss:
        encoded, labels = data.encoded, data.labels.astype(np.int64)
        rows, limits = self._texts_.rows(encoded.corpus), self._limits(encoded, labels)
        is_known = np.logical_and.reduceat(labels >= 0, encoded.corpus.offsets[:-1])
        settings = self._layout, self._allowed_segments(), data.sample_weight, self.n_jobs
        return SegmentLoss(encoded, rows, limits, is_known, *settings)

    def _limits(self, encoded: Encoded, labels: Array) -> Limits:
        return Limits(*self._labels.limits(labels, encoded.corpus.offsets))

    def _limits_of_known(self, encoded: Encoded, known: Any) -> Limits:
        """The labels and bounds that known labels permit; `known` is as passed to `predict`."""
        return FREE if known is None else self._limits(encoded, self._label_numbers(known, encoded.corpus))

    def _predictor(self) -> tuple[SegmentWeights, LinearFunction, ByKind]:
        """The weights in the form that predictions use."""
        layout = self._layout
        parts = layout.views(self.weights_)
        by_kind = layout.by_kind(parts, self._allowed_segments())
        return layout, LinearFunction(layout.columns, parts.channels), by_kind

    def _segment_scores(self, encoded: Encoded, penalty: float = 0.0) -> Scores:
        """The scores of the segments of sequences, with a penalty of nodes labelled O."""
        layout, function, by_kind = self._cached_for(self.weights_, self._predictor)
        nodes, corpus = function.of(encoded), encoded.corpus
        if penalty:
            nodes[:, : len(layout.longest)] -= penalty * self._labels.outside
        return layout.scores(nodes, by_kind, corpus.offsets, self._texts_.rows(corpus))

    def _best_labels(self, encoded: Encoded, known: Any) -> Array:
        scores = self._segment_scores(encoded, self.outside_penalty)
        limits = self._limits_of_known(encoded, known)
        if self._decoding == "viterbi":
            return self._best_labelings(scores, limits)[1]
        marginals, transitions = self._constrained_marginals(encoded, scores, limits)
        return inference.viterbi(encoded.corpus.graph, marginals, transitions, self.n_jobs)[0]

    def _best_labelings(self, scores: Scores, limits: Limits) -> tuple[float, Array]:
        """The total score of the best labelings of all sequences, and their label numbers."""
        best = [candidates[0] for candidates in nbest(scores, 1, limits, self.n_jobs)]
        labels = self._labels.label_of.ravel()[np.concatenate([roles for roles, _ in best])]
        return sum(score for _, score in best), labels

    def _decision(self, encoded: Encoded, known: Any = None) -> Decision:
        return segment_decision(self, encoded, known)

    def _labeling_decision(self, encoded: Encoded) -> Segmentations:
        return segmentations(self, encoded)

    def _constrained_marginals(self, encoded: Encoded, scores: Scores, limits: Limits) -> tuple[Array, Array]:
        """The probabilities of labels, −inf where impossible; for label pairs, 0 or −inf."""
        graph, table = encoded.corpus.graph, self._label_marginals(scores, limits)
        pairs = np.zeros((len(self.classes_),) * 2)
        if len(limits.boundary_flags):
            table[table == 0] = -np.inf
        if self.scheme_ is not None:
            pairs = forbid(table, pairs, self.classes_, self.scheme_, graph.roots, graph.leaves)
        return table, pairs

    def _marginals(self, encoded: Encoded, known: Any) -> Array:
        return self._label_marginals(self._segment_scores(encoded), self._limits_of_known(encoded, known))

    def _label_marginals(self, scores: Scores, limits: Limits) -> Array:
        """The probabilities (N, L) of labels, from those of roles in segments."""
        expected, labels = expectations(scores, limits, n_jobs=self.n_jobs), self._labels
        first, last = expected.first - expected.single, expected.last - expected.single
        roles = expected.inside - expected.first - last, last, first, expected.single
        table = np.zeros((len(expected.inside), len(self.classes_)))
        for role, values in enumerate(roles):
            for kind, label in enumerate(labels.label_of[:, role].tolist()):
                if label >= 0:
                    table[:, label] += values[:, kind]
        table = np.where(table < 1e-14, 0.0, table)  # rounding errors of differences of equal numbers
        total = table.sum(axis=1)
        # Scores may be so large that sums lose all digits.
        unusable = ~(np.isfinite(total) & (total > 0))
        if unusable.any():
            table[unusable] = np.eye(len(self.classes_))[self._best_labelings(scores, limits)[1][unusable]]
            total[unusable] = 1.0
        return table / total[:, None]

    def _nbest(
        self, encoded: Encoded, n: int, known: Any = None, scale: float = 1.0
    ) -> list[list[tuple[list[Any], float]]]:
        scores, limits = self._segment_scores(encoded), self._limits_of_known(encoded, known)
        log_z, names = log_partition(scores, limits, self.n_jobs), self._labels.label_of.ravel()
        return [
            [([self.classes_[k] for k in names[roles]], min(0.0, score - z)) for roles, score in listed]
            for listed, z in zip(nbest(scores, n, limits, self.n_jobs), log_z.tolist(), strict=True)
        ]

    def _arrays(self) -> dict[str, Array]:
        scheme = np.array([NAMES.index(self.scheme_)], dtype=np.int64)
        return {"weights": self.weights_, "longest": self.longest_, "scheme": scheme}

    def _texts(self) -> list[list[str]]:
        return self._texts_.vocabularies

    def _restore(self, arrays: dict[str, Array], texts: list[list[str]], parts: dict[str, Labeler]) -> None:
        shapes = {"weights": (None,), "longest": (None,), "scheme": (1,)}
        check_arrays(arrays, shapes, {"longest": np.int64, "scheme": np.int64})
        number = int(arrays["scheme"][0])
        if not 0 <= number < len(NAMES) or (number and NAMES[number] not in PREFIXES):
            raise DataError("its scheme is not one of segments")
        self.scheme_, self._texts_ = NAMES[number], SegmentTexts(texts)
        labels, self.longest_ = self._labels, arrays["longest"]
        if (
            len(self.longest_) != len(labels.kinds)
            or not ((self.longest_ >= 1) & (self.longest_ <= MOST_LENGTH)).all()
        ):
            raise DataError(f"its lengths of segments are not from 1 to {MOST_LENGTH:,}, one for each kind")
        missing = labels.label_of < 0
        ends = (labels.joins | (self.longest_ > 1)) & missing[:, 1:3].any(axis=1)
        if (ends | ((self.longest_ > 2) & missing[:, 0])).any():
            raise DataError("its labels lack one for a node of a segment that is as long as it may be")
        check_arrays(
            arrays, shapes | {"weights": (self._layout.size,)}, {"longest": np.int64, "scheme": np.int64}
        )
        self.weights_ = arrays["weights"]
