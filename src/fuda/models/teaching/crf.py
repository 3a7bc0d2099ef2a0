"""A CRF that learns from more structures, without those that it was fitted on.

The past data are represented by the weights w₀ that were learned from them and by a curvature for
each of these, h = 2 l2 + m^⅓ d, where d is the diagonal of the Hessian of the loss of all
structures so far, and m the number of features of a node. The new weights minimize

    Σ_i a_i loss_i(w) + ½ Σ_k h_k (w_k − w₀_k)²

over the new structures i. (The weights of features of the same node change together, so that d
alone is too small: up to m d is needed to bound the Hessian. Of four powers of m this one was best
on two corpora.) Only weights of features of the new structures change. a_i is 1, or the weight of
the structure, and is doubled until its labels are predicted: so the change is as small as
possible, and is largest in weights with a small curvature.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.data.encoding import Channel, Encoded
from fuda.models.fitting.training_data import TrainingData
from fuda.models.teaching.label_growth import enlarge_classes
from fuda.optimize import Lbfgs
from fuda.training.crf_curvature import curvature, dequantized, features_per_node, quantized
from fuda.training.crf_loss import Weights

Array = np.ndarray
Model = Any  # a `CRF`, which imports this module
# How often the weights of structures are doubled at most.
_DOUBLINGS = 6
# The smallest h, for new features where l2 is 0.
_LEAST = 0.01
# The tolerance and the largest number of iterations of each minimization.
_TOL, _MAX_ITER = 1e-4, 60


def grow_labels(model: Model, new: list[Any]) -> None:
    """Add labels to a CRF; their weights are the smallest of all labels until they are learned.

    Parameters
    ----------
    model : CRF
        A fitted model, whose arrays are replaced and not changed.
    new : list
        The labels.
    """
    if not new:
        return
    old, labels = model._layout, enlarge_classes(model, new)
    model.weights_ = enlarged(old, model._layout, model.weights_, labels, unlikeliest=True)
    model._curvature = enlarged(old, model._layout, model._curvature, labels, unlikeliest=False)


def teach(model: Model, encoder: Any, data: TrainingData) -> None:
    """Learn from more structures.

    Parameters
    ----------
    model : CRF
        A fitted model, whose arrays are replaced and not changed.
    encoder : WindowEncoder or TemplateEncoder
        The encoder of the model, extended by the features of the structures.
    data : TrainingData
        The structures, encoded by that encoder.
    """
    old, labels = model._layout, np.arange(len(model.classes_))
    model.encoder_ = encoder
    weights, stored = (
        enlarged(old, model._layout, array, labels) for array in (model.weights_, model._curvature)
    )
    step = _Step(model, data, weights, stored)
    if model._fitted_params["l1"]:  # weights that the L1 term has set to 0 stay 0
        known = enlarged(old, model._layout, np.ones(old.size, dtype=bool), labels)
        step.freeze(known & (weights == 0))
    a = np.ones(len(data.encoded.corpus)) if data.sample_weight is None else data.sample_weight
    first = model.weights_ = step.minimum(a)
    wrong = step.wrong_structures()
    for _ in range(_DOUBLINGS):
        if not wrong.any():
            break
        a = np.where(wrong, 2 * a, a)
        model.weights_ = step.minimum(a)
        wrong = step.wrong_structures()
    if wrong.any():  # the labels contradict each other, such as different ones of the same words
        model.weights_ = first
    model._curvature = step.curvature_with(stored)


class _Step:
    """The objective as a function of the weights of the features of the new structures."""

    def __init__(self, model: Model, data: TrainingData, weights: Array, stored: Array) -> None:
        self.model, self.weights = model, weights
        self.encoded, self.labels = data.encoded, data.labels
        encoded = model._with_pairs(data.encoded)
        columns = [_used(encoded, number) for number in range(len(encoded.tables))]
        self.data = data._replace(encoded=data.encoded.keep(columns))
        self.loss = model._training_loss(self.data)
        self.indices = _indices(model._layout, encoded, columns)
        factor = max(1.0, features_per_node(encoded)) ** (1 / 3)
        h = 2 * model._fitted_params["l2"] + factor * dequantized(stored[self.indices])
        self.root = np.sqrt(np.maximum(h, _LEAST))

    def freeze(self, is_frozen: Array) -> None:
        """Exclude some of all weights from changes."""
        self.root[is_frozen[self.indices]] = np.inf

    def minimum(self, a: Array) -> Array:
        """The weights that minimize the objective with weights `a` of structures."""
        loss = self.model._training_loss(self.data._replace(sample_weight=a))
        start = self.weights[self.indices]

        def function(z: Array) -> tuple[float, Array]:
            value, gradient = loss(start + z / self.root)
            return value + 0.5 * float(z @ z), gradient / self.root + z

        minimizer = Lbfgs(function, np.zeros(len(start)), n_jobs=1)
        weights = self.weights.copy()
        weights[self.indices] += minimizer.minimize(_TOL, _MAX_ITER).x / self.root
        return weights

    def wrong_structures(self) -> Array:
        """Whether a structure has a known label that is not the one predicted."""
        wrong = (self.model._best_labels(self.encoded, None) != self.labels) & (self.labels >= 0)
        return np.logical_or.reduceat(wrong, self.encoded.corpus.offsets[:-1])

    def curvature_with(self, stored: Array) -> Array:
        """The stored curvature, with that of the structures added."""
        total = stored.copy()
        added = curvature(self.loss, self.model.weights_[self.indices])
        total[self.indices] = quantized(dequantized(stored[self.indices]) + added)
        return total


def _used(encoded: Encoded, number: int) -> Array | None:
    """The features of a table that nodes have; None for vectors, which have all."""
    matrix: Any = encoded.tables[number].matrix
    if isinstance(matrix, np.ndarray):
        return None
    channels = [c for c in [*encoded.channels, *encoded.edge_channels] if c.table == number]
    rows = np.unique(np.concatenate([channel.rows for channel in channels]))
    return np.unique(matrix[rows].indices)


def _indices(layout: Weights, encoded: Encoded, columns: list[Array | None]) -> Array:
    """The indices in the weight vector of the weights of some features and of all transitions."""
    by_channel, transitions, by_edge = layout.views(np.arange(layout.size))

    def part(channel: Channel, of_features: Array) -> Array:
        used = columns[channel.table]
        return (of_features if used is None else of_features[used]).ravel()

    of_nodes = map(part, encoded.channels, by_channel)
    return np.concatenate([*of_nodes, transitions.ravel(), *map(part, encoded.edge_channels, by_edge)])


def enlarged(old: Weights, new: Weights, array: Array, labels: Array, unlikeliest: bool = False) -> Array:
    """An array enlarged for new features, which come last, and new labels.

    `labels` has the numbers of the old labels. New entries are 0, or if `unlikeliest` is true, the
    smallest value of the other labels there.
    """
    grown = np.zeros(new.size, dtype=array.dtype)
    for part, known in zip(_parts(new, grown), _parts(old, array), strict=True):
        rows, of_labels = np.arange(len(known)), tuple(range(1, known.ndim))
        if unlikeliest:
            part[rows] = known.min(axis=of_labels, keepdims=True)
        part[np.ix_(rows, *[labels] * len(of_labels))] = known
    return grown


def _parts(layout: Weights, array: Array) -> list[Array]:
    """All parts of an array of weights, features along axis 0 and labels along the others."""
    by_channel, transitions, by_edge = layout.views(array)
    return [*by_channel, transitions[None], *by_edge]
