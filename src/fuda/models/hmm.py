"""The hidden Markov model, counted from labelled data.

On a chain, with start and end included,

    P(x, y) = P(y_1) Π_t P(x_t | y_t) Π_t P(y_{t+1} | y_t) P(end | y_T)

by relative frequencies with additive smoothing s:

    P(a at the start) = (c(start, a) + s) / (Σ_b c(start, b) + s L),
    P(b | a) = (c(a, b) + s) / (Σ_b' c(a, b') + s (L + 1)),   where the end counts as one more b,
    P(x | y) = (c(x, y) + s) / (c(y) + s (V + 1)),            where all unseen x count as one more.

On a tree y_t depends on the label of its parent, roots start and leaves end; on a chain that is
the same model. With several features per node P(x_t | y_t) is the product of theirs (the papers'
"overlapping features"), each to the power of its value; c(x, y) sums the values of x over the
nodes labelled y, and c(y) counts nodes.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from fuda.checks import check_arrays, check_numbers
from fuda.data.encoding import Encoded
from fuda.errors import DataError
from fuda.functions.linear import LinearFunction
from fuda.models.base import Labeler
from fuda.models.explained import markov as explained_markov
from fuda.models.fitting.training_data import TrainingData
from fuda.models.markov import MarkovLabeler


class HMM(MarkovLabeler):
    """Supervised hidden Markov model on sequences and trees.

    Parameters
    ----------
    smoothing : float, default=0.1
        What is added to every count, above 0.
    class_weight : dict, "balanced" or None, default=None
        Weights of nodes by their labels, for labels that are rare or matter more; "balanced" gives
        all labels the same weight in total. It acts on emissions, not on transitions.
    features : str, Template or callable, default="word"
        The feature set ("word", "spelling", "text", "protein", "dna", "S1", "S2", "S3"), a
        template, or a function from an observation to a list of feature names or a dict. Each of
        them is a factor of P(x | y), as if independent of the others; hence one per node by
        default, where other models, which weigh features together, have many.
    window : int, default=0
        How many neighbours to each side are seen, by factors of their own; 0 for the same reason.
    decode : {"viterbi", "posterior"} or None, default=None
        Predict the best labeling as a whole, or the best label of each node. None is "posterior"
        for residues, whose labels are uncertain and long, and "viterbi" for all else.
        Acts at once.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,), dtype object
        The labels, sorted.
    start_ : ndarray of shape (n_labels,)
        log P(y) of nodes without a parent.
    transitions_ : ndarray of shape (n_labels, n_labels)
        log P(y_t | y_p), the label of the parent by rows.
    end_ : ndarray of shape (n_labels,)
        log P(end | y).
    emissions_ : list of ndarray of shape (n_features, n_labels)
        log P(x | y), one array per channel of the window.
    unknown_ : list of ndarray of shape (n_labels,)
        log P(x | y) of features that were never seen, one array per channel.

    Notes
    -----
    P(x, y) = P(y_1) Π_t P(x_t | y_t) Π_t P(y_{t+1} | y_t) P(end | y_T), by relative frequencies
    with additive smoothing. With overlapping features, as in [1]_, P(x_t | y_t) is the product
    over the features of a node. Nodes whose label is None add nothing to the counts.
    `sample_weight` weighs all counts of a structure, `position_weight` the emissions of a node.

    References
    ----------
    .. [1] Y. Altun, I. Tsochantaridis, T. Hofmann. Hidden Markov support vector machines.
       ICML 2003, section 8.1.

    Examples
    --------
    >>> hmm = HMM().fit([["Ana", "sleeps"], ["Bo", "runs"]], [["N", "V"], ["N", "V"]])
    >>> hmm.predict([["Ana", "runs"]])[0]
    ['N', 'V']
    """

    _defaults: ClassVar[dict[str, Any]] = {"decode": "viterbi"}
    _takes_vectors = False

    def __init__(
        self,
        smoothing: float = 0.1,
        *,
        class_weight: Any = None,
        features: Any = "word",
        window: int = 0,
        decode: str | None = None,
    ) -> None:
        self.smoothing, self.class_weight = smoothing, class_weight
        self.features, self.window, self.decode = features, window, decode

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_numbers(self, "smoothing", positive=True)

    def _fit(self, data: TrainingData) -> None:
        encoded, labels = data.encoded, data.labels
        self._refuse_pair_features(encoded)
        _check_counts(encoded)
        corpus, L, s = encoded.corpus, len(self.classes_), float(self.smoothing)
        structure_weight = np.ones(len(corpus)) if data.sample_weight is None else data.sample_weight
        weight = np.repeat(structure_weight, np.diff(corpus.offsets))
        known = labels >= 0

        def count(nodes: np.ndarray) -> np.ndarray:
            nodes = nodes[known[nodes]]
            return np.bincount(labels[nodes], weights=weight[nodes], minlength=L)

        parent, child = corpus.graph.edges[known[corpus.graph.edges].all(axis=1)].T
        pairs = np.bincount(
            labels[parent].astype(np.int64) * L + labels[child], weights=weight[child], minlength=L * L
        )
        transitions = np.column_stack([pairs.reshape(L, L), count(corpus.graph.leaves)]) + s
        transitions = np.log(transitions / transitions.sum(axis=1, keepdims=True))
        start = count(corpus.graph.roots) + s
        self.start_ = np.log(start / start.sum())
        self.transitions_, self.end_ = np.ascontiguousarray(transitions[:, :-1]), transitions[:, -1].copy()

        node_weight = np.zeros((corpus.size, L))
        at = np.flatnonzero(known)
        node_weight[at, labels[at]] = weight[at]
        if data.position_weight is not None:
            node_weight *= data.position_weight[:, None]
        totals = node_weight.sum(axis=0)
        self.emissions_, self.unknown_ = [], []
        for channel in encoded.channels:
            table = encoded.tables[channel.table]
            rows = channel.scatter(node_weight, table.matrix.shape[0])
            counts = np.asarray(table.matrix.T @ rows)
            log_total = np.log(totals + s * (table.n_features + 1))
            self.emissions_.append(np.log(counts + s) - log_total)
            self.unknown_.append(np.log(s) - log_total)

    def _scores(self, encoded: Encoded) -> tuple[np.ndarray, np.ndarray]:
        _check_counts(encoded)
        scores = self._cached_for(self.emissions_, self._function).of(encoded)
        scores[encoded.corpus.graph.roots] += self.start_
        scores[encoded.corpus.graph.leaves] += self.end_
        return scores, self.transitions_

    def _function(self) -> LinearFunction:
        """The emissions as a function of encoded nodes."""
        return LinearFunction(len(self.classes_), self.emissions_, self.unknown_)

    _node_terms = explained_markov.hmm_terms

    def _arrays(self) -> dict[str, np.ndarray]:
        emissions = {f"emission_{i}": emission for i, emission in enumerate(self.emissions_)}
        return {
            "start": self.start_,
            "transitions": self.transitions_,
            "end": self.end_,
            "unknown": np.array(self.unknown_),
            **emissions,
        }

    def _restore(
        self, arrays: dict[str, np.ndarray], texts: list[list[str]], parts: dict[str, Labeler]
    ) -> None:
        L, channels = len(self.classes_), len(self.encoder_.channel_names())
        shapes = {"start": (L,), "transitions": (L, L), "end": (L,), "unknown": (channels, L)}
        shapes |= {f"emission_{i}": (self.encoder_.feature_count(i), L) for i in range(channels)}
        check_arrays(arrays, shapes)
        self.start_, self.transitions_, self.end_ = arrays["start"], arrays["transitions"], arrays["end"]
        self.unknown_ = list(arrays["unknown"])
        self.emissions_ = [arrays[f"emission_{i}"] for i in range(channels)]


def _check_counts(encoded: Encoded) -> None:
    """An HMM counts features, so none has a negative value."""
    for table in encoded.tables:
        if table.has_counts:
            continue
        negative = (table.matrix < 0).nonzero()[0]
        if len(negative):
            where = encoded.corpus.place_of_type(int(negative.min()))
            raise DataError(
                f"{where}: a feature has a negative value; an HMM counts features, so give 0 or more"
            )
