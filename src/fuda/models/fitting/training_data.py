"""What a labeler is fitted on: encoded structures, labels and weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fuda.checks import LARGEST, SMALLEST, check_memory, is_number
from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded
from fuda.data.labels import node_weights, renumbered, structure_weights
from fuda.data.template_encoding import TemplateEncoder
from fuda.data.window_encoding import WindowEncoder
from fuda.errors import DataError, short
from fuda.models.fitting.validation import Held


class TrainingData(NamedTuple):
    """Training data of a labeler: encoded structures, labels and weights.

    Attributes
    ----------
    encoder : WindowEncoder or TemplateEncoder
        The encoder, fitted on exactly these structures.
    encoded : Encoded
        The structures.
    classes : list
        The distinct labels, in order.
    labels : (N,) array
        The label number of each node, −1 where it is not known.
    sample_weight, position_weight : (n,) and (N,) arrays, or None
        The weights of structures and of nodes; None is 1 for all.
    held : Held or None
        Data to validate on; parts of the data have none.
    """

    encoder: WindowEncoder | TemplateEncoder
    encoded: Encoded
    classes: list[Any]
    labels: np.ndarray
    sample_weight: np.ndarray | None
    position_weight: np.ndarray | None
    held: Held | None = None

    def take(self, members: np.ndarray) -> TrainingData:
        """Some of the structures, under the same encoder and classes."""
        nodes = self.encoded.corpus.nodes_of(members)
        return self._replace(
            encoded=self.encoded.take(members),
            labels=self.labels[nodes],
            sample_weight=None if self.sample_weight is None else self.sample_weight[members],
            position_weight=None if self.position_weight is None else self.position_weight[nodes],
            held=None,
        )

    def check_memory(self, per_weight: int, per_score: int) -> None:
        """Refuse data whose weights and scores do not fit into memory, before these are allocated.

        Parameters
        ----------
        per_weight : int
            How many numbers learning takes at least for each feature and label.
        per_score : int
            How many it takes for each node and label.
        """
        features = sum(map(self.encoder.feature_count, range(len(self.encoder.channel_names()))))
        labels, nodes = len(self.classes), self.encoded.corpus.size
        check_memory(
            8.0 * labels * (per_weight * features + per_score * nodes),
            f"learning {features:,} features and {labels:,} labels from {nodes:,} nodes",
            "give fewer labels, features or structures",
        )

    def weighted(self, class_weight: Any) -> TrainingData:
        """The data with nodes weighted by their labels too, according to `class_weight`."""
        if class_weight is None:
            return self
        by_label = np.array([*_class_weights(class_weight, self.classes, self.labels), 1.0])
        weights = by_label[self.labels]  # the last is that of nodes without a label, −1
        given = 1.0 if self.position_weight is None else self.position_weight
        return self._replace(position_weight=weights * given)

    def split(self, members: np.ndarray, others: np.ndarray) -> tuple[TrainingData, Encoded]:
        """Some structures as training data, and others encoded by the vocabulary of the former.

        Both are equal to a new encoding of the structures, up to the order of features, but
        nothing is encoded again.
        """
        part = self.take(members)
        encoder, columns = self.encoder.refitted(part.encoded)
        kept, (classes, labels) = self.encoded.keep(columns), renumbered(self.classes, part.labels)
        part = part._replace(encoder=encoder, encoded=kept.take(members), classes=classes, labels=labels)
        return part, kept.take(others)


def data_weights(
    corpus: Corpus, sample_weight: Any, position_weight: Any
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The weights of structures and of nodes as arrays, or None."""
    return structure_weights(sample_weight, corpus), node_weights(position_weight, corpus)


def check_class_weight(class_weight: Any) -> None:
    """Raise DataError where a parameter `class_weight` has a bad value, whatever the labels."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, dict):
        raise DataError(
            f"class_weight={short(class_weight)}: give a dict from labels to weights, 'balanced' or None"
        )
    for label, weight in class_weight.items():
        if not is_number(weight, 0, LARGEST) or 0 < weight < SMALLEST:
            raise DataError(
                f"class_weight: that of the label {label!r} is {short(weight)}; give a number of at least 0"
            )


def _class_weights(class_weight: Any, classes: list[Any], labels: np.ndarray) -> list[float]:
    """The weight of each label; balanced ones give all labels the same weight in total."""
    if isinstance(class_weight, str):
        counts = np.bincount(labels[labels >= 0], minlength=len(classes))
        return (counts.sum() / (len(classes) * np.maximum(counts, 1))).tolist()
    unknown = [label for label in class_weight if label not in classes]
    if unknown:
        known = ", ".join(map(repr, classes[:20]))
        raise DataError(
            f"class_weight: the label {unknown[0]!r} is not in the data; known are {known}; remove it"
        )
    return [float(class_weight.get(label, 1.0)) for label in classes]
