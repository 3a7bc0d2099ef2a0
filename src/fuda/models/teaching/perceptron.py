"""`partial_fit` of a perceptron: with feature weights and order 0 or 1 as a CRF, else by an epoch.

The mean of the weights over thousands of steps hardly changes by one more step, so that a
correction would not be predicted. But exp F / Z with the weights of the perceptron times a number
s (`fuda.models.likeliest`) is a CRF, which learns as in `fuda.models.teaching.crf`. The change of
its weights is divided by s, and treated as if it had been made in the first step: the mean and the
last weights change by the same amount.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fuda import inference
from fuda.checks import check_arrays
from fuda.data.encoding import Channel, Encoded
from fuda.data.labels import flat_labels, structure_weights
from fuda.data.tables import Table
from fuda.errors import DataError
from fuda.models.crf import CRF
from fuda.models.fitting.training_data import TrainingData
from fuda.models.likeliest import LARGEST_SCALE, ScaledLoss, sampled
from fuda.models.teaching.crf import enlarged, teach
from fuda.models.teaching.label_growth import added_labels, grow_perceptron
from fuda.optimize.vectors import dot
from fuda.progress import Iterations
from fuda.training.crf_curvature import LARGEST_STORED, STORED, diagonal_at, quantized
from fuda.training.crf_loss import Weights, score_structures
from fuda.training.perceptron import Mistakes, State

Array = np.ndarray
Model = Any  # an `HMPerceptron`, which imports this module
_START = Table.of(sp.csr_matrix([[0.0], [1.0]]), np.zeros(2), np.zeros(2))


class Curvature(NamedTuple):
    """The curvature at the weights of a perceptron, which `partial_fit` needs.

    Attributes
    ----------
    scale : float
        s.
    diagonal : ndarray
        The curvature of the CRF at s w, see `fuda.training.crf_curvature`, in the layout of
        its weights.
    """

    scale: float
    diagonal: Array

    def arrays(self) -> dict[str, Array]:
        """The arrays for model files."""
        return {"curvature": self.diagonal, "scale": np.array([self.scale])}


class _EquivalentCRF(CRF):
    """The CRF of a perceptron; the labels of roots have weights too, as if roots had a feature."""

    has_starts: bool

    @classmethod
    def of(cls, model: Model, curvature: Curvature | None) -> _EquivalentCRF:
        """The CRF of s w; without a curvature, s is 1."""
        s = 1.0 if curvature is None else curvature.scale
        penalty = s * model.outside_penalty
        crf = cls(decode="viterbi", scheme=model.scheme, outside_penalty=penalty, n_jobs=model.n_jobs)
        crf._fitted_params = crf.get_params()
        crf.classes_, crf.encoder_, crf.has_pairs_ = model.classes_, model.encoder_, False
        crf.has_starts = model.order_ == 1
        starts = model._grams.short[0] if crf.has_starts else np.zeros(0)
        crf.weights_ = s * np.concatenate([model.weights_.ravel(), starts, model.transitions_.ravel()])
        if curvature is not None:
            crf._curvature = curvature.diagonal.copy()
            if not model.order_:  # label pairs have no weights, and get none
                crf._layout.views(crf._curvature)[1][:] = LARGEST_STORED
        return crf

    @property
    def _layout(self) -> Weights:
        encoder = self.encoder_
        features = [encoder.feature_count(c) for c in range(len(encoder.channel_names()))]
        return Weights([*features, 1] if self.has_starts else features, [], len(self.classes_))

    def with_roots(self, encoded: Encoded) -> Encoded:
        """An encoded corpus with the feature of roots."""
        if not self.has_starts:
            return encoded
        rows = np.zeros(encoded.corpus.size, dtype=np.int32)
        rows[encoded.corpus.graph.roots] = 1
        start = Channel("start", len(encoded.tables), rows)
        return Encoded(encoded.corpus, [*encoded.tables, _START], [*encoded.channels, start], [])


def curvature_of(model: Model, data: TrainingData) -> Curvature | None:
    """Compute the curvature at the weights of a perceptron that was fitted to data.

    Parameters
    ----------
    model : HMPerceptron
        The perceptron.
    data : TrainingData
        The data.

    Returns
    -------
    Curvature or None
        None for perceptrons that continue by epochs: those with kernels, votes or higher orders.
    """
    if model.kernel_ is not None or model._voted or model.order_ > 1:
        return None
    crf, corpus = _EquivalentCRF.of(model, None), data.encoded.corpus
    encoded = crf.with_roots(data.encoded)
    nodes, pairs = score_structures(encoded, crf._layout, crf.weights_)
    weight = np.ones(len(corpus)) if data.sample_weight is None else data.sample_weight
    chosen = sampled(len(corpus))
    at, share = corpus.graph.nodes_of(chosen), len(chosen) / len(corpus)
    loss = ScaledLoss(corpus.graph.take(chosen), nodes[at], pairs, data.labels[at], weight[chosen], share)
    scale = loss.likeliest(dot(crf.weights_, crf.weights_))
    p = inference.marginals(corpus.graph, scale * nodes, scale * pairs, n_jobs=model.n_jobs)[1]
    counted = np.repeat(weight, np.diff(corpus.offsets))
    tables = [table.matrix.T for table in encoded.tables]
    return Curvature(scale, quantized(diagonal_at(encoded, crf._layout, p, counted, tables)))


def grow_labels(model: Model, new: list[Any]) -> None:
    """Add labels to a perceptron; the caller has to prepare its predictions afterwards.

    Parameters
    ----------
    model : HMPerceptron
        A fitted model, whose arrays are replaced and not changed.
    new : list
        The labels.
    """
    if not new or model._curvature is None:
        grow_perceptron(model, new)
        return
    crf = _EquivalentCRF.of(model, model._curvature)
    old, positions = crf._layout, grow_perceptron(model, new)
    crf.classes_ = model.classes_
    grown = enlarged(old, crf._layout, model._curvature.diagonal, positions)
    model._curvature = model._curvature._replace(diagonal=grown)


def learn_more(model: Model, X: Any, y: Any, sample_weight: Any, classes: Any) -> None:
    """Learn from more structures.

    Parameters
    ----------
    model : HMPerceptron
        A fitted model, whose arrays and vocabularies are replaced and not changed.
    X, y, sample_weight, classes : object
        As given to `partial_fit`.
    """
    model._check_parameters()
    new = model._encode(X)
    new_labels = [] if new is None else flat_labels(y, new.corpus)
    grow_labels(model, added_labels(model, new_labels, classes))
    model._prepare_predictions()
    if new is None:
        return
    labels, eta = model._label_numbers(y, new.corpus), structure_weights(sample_weight, new.corpus)
    encoder, encoded = model.encoder_.grown(new.corpus)
    encoded.check_values()
    data = TrainingData(encoder, encoded, model.classes_.tolist(), labels, eta, None)
    if model._curvature is None:
        _one_epoch(model, data)
    else:
        _teach(model, data, (model._best_labels(new, None) != labels) & (labels >= 0))
    model._prepare_predictions()


def _one_epoch(model: Model, data: TrainingData) -> None:
    """Continue training; structures that predictions need come first, with weight 0."""
    encoded, eta = data.encoded, data.sample_weight
    before, model.encoder_ = model._feature_counts(), data.encoder
    linear = model.kernel_ is None
    model._state = model._state.insert(before, model._feature_counts()) if linear else model._state.copy()
    if model._support is not None:
        encoded = data.encoder.widened(model._support).followed_by(encoded)
    labels = np.concatenate([np.full(encoded.corpus.size - len(data.labels), -1), data.labels])
    eta = np.ones(len(data.encoded.corpus)) if eta is None else eta
    known = np.zeros(len(encoded.corpus) - len(eta))
    model._learn(encoded, labels, np.concatenate([known, eta]), epochs=1)


def _teach(model: Model, data: TrainingData, wrong: Array) -> None:
    """Learn as a CRF; `wrong` marks labels that are not predicted yet."""
    crf = _EquivalentCRF.of(model, model._curvature)
    data = data._replace(encoded=crf.with_roots(data.encoded))
    by_structure = np.logical_or.reduceat(wrong, data.encoded.corpus.offsets[:-1])
    mistakes = Mistakes(int(by_structure.sum()), int(wrong.sum()))
    features, old, start = model._feature_counts(), crf._layout, crf.weights_
    teach(crf, data.encoder, data)
    start = enlarged(old, crf._layout, start, np.arange(len(model.classes_)))
    change = (crf.weights_ - start) / model._curvature.scale
    model.encoder_ = data.encoder
    model._state = _changed(model._state.insert(features, model._feature_counts()), crf, change)
    model._curvature = model._curvature._replace(diagonal=crf._curvature)
    model.mistakes_ = [*model.mistakes_, mistakes]
    with Iterations("HM-perceptron", model.verbose, model.callback) as progress:
        progress.report(mistakes=mistakes.nodes)


def _changed(state: State, crf: _EquivalentCRF, change: Array) -> State:
    """The state, overwritten, with a change of the CRF's weights made in its first step."""
    by_channel, transitions, _ = crf._layout.views(change)
    for short in (state.short, state.late_short) if crf.has_starts else ():
        short[0] += by_channel[-1][0]
    for full in (state.full, state.late_full) if crf.has_starts else ():
        full[0] += transitions.T
    by_feature = np.concatenate(by_channel[:-1] if crf.has_starts else by_channel)
    for nodes in (state.nodes, state.late_nodes):
        nodes += by_feature
    state.steps[0] = max(1, state.steps[0])
    return state


def restored(model: Model, arrays: dict[str, Array]) -> Curvature | None:
    """Remove the curvature of a perceptron from the arrays of a file, and return it.

    Older files do not have it.
    """
    names = [name for name in ("curvature", "scale") if name in arrays]
    stored_arrays: dict[str, Array] = {name: arrays.pop(name) for name in names}
    if not stored_arrays:
        return None
    if model.kernel_ is not None or model._voted or model.order_ > 1:
        raise DataError("its array 'curvature' is not needed")
    starts, L = int(model.order_ == 1), len(model.classes_)
    size = (sum(model._feature_counts()) + starts + L) * L
    check_arrays(stored_arrays, {"curvature": (size,), "scale": (1,)}, {"curvature": STORED})
    stored, scale = stored_arrays["curvature"], float(stored_arrays["scale"][0])
    if not ((stored >= 0) & (stored <= LARGEST_STORED)).all() or not 0 < scale <= LARGEST_SCALE:
        raise DataError("its arrays 'curvature' and 'scale' have values that no data give")
    return Curvature(scale, stored)
