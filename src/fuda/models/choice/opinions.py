"""The opinions of labelers about labels, in two forms: scores of labelings, or marginals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fuda.data.encoding import Encoded
from fuda.models.base import Labeler
from fuda.models.markov import MarkovLabeler

Array = np.ndarray
LEAST = 1e-6  # smaller probabilities are replaced by this one before taking logarithms


class Opinion(NamedTuple):
    """The opinion of a labeler about the nodes of a corpus.

    Attributes
    ----------
    nodes : ndarray of shape (N, L)
        Scores of labels, whose sums are logarithms of probabilities up to a constant; marginals
        where there are no pairs.
    pairs : ndarray of shape (L, L) or None
        Scores of label pairs along edges.
    """

    nodes: Array
    pairs: Array | None = None

    def first(self, count: int) -> Opinion:
        """Return the opinion about the first nodes."""
        return self._replace(nodes=self.nodes[:count])

    def times(self, factor: float) -> Opinion:
        """Return the scores times a number."""
        return Opinion(factor * self.nodes, None if self.pairs is None else factor * self.pairs)


def has_scores(labeler: Any) -> bool:
    """Whether a labeler scores labelings by finite scores of nodes and of label pairs.

    Parameters
    ----------
    labeler : Labeler
        A fitted labeler.

    Returns
    -------
    bool
        Whether `scores_over` can return them.
    """
    return isinstance(labeler, MarkovLabeler) and labeler._has_pair_scores


def scores_over(labeler: Any, encoded: Encoded, classes: Any) -> Opinion:
    """Return the scores by which a labeler decides, over all of `classes`.

    A label that the labeler does not know gets the probability `LEAST`.

    Parameters
    ----------
    labeler : MarkovLabeler
        A labeler with scores of label pairs.
    encoded : Encoded
        The structures, encoded by the labeler.
    classes : list
        The labels.

    Returns
    -------
    Opinion
        With pairs.
    """
    scores, pairs = labeler._log_scores(encoded)
    columns = _columns(labeler, classes)
    nodes = np.repeat(scores.max(axis=1, keepdims=True) + np.log(LEAST), len(classes), axis=1)
    nodes[:, columns] = scores
    all_pairs = np.zeros((len(classes),) * 2)
    all_pairs[np.ix_(columns, columns)] = pairs
    return Opinion(nodes, all_pairs)


def marginals_over(labeler: Any, encoded: Encoded, classes: Any, known: Any = None) -> Opinion:
    """Return the marginals of a labeler over all of `classes`, 0 for those it does not know.

    Parameters
    ----------
    labeler : Labeler
        A labeler with marginals.
    encoded : Encoded
        The structures, encoded by the labeler.
    classes : list
        The labels.
    known : list of lists, optional
        Labels that are known, None where the label is open.

    Returns
    -------
    Opinion
        Without pairs.
    """
    marginals = labeler._node_marginals(encoded, known)
    over_classes = np.zeros((len(marginals), len(classes)))
    over_classes[:, _columns(labeler, classes)] = marginals
    return Opinion(over_classes)


def _columns(labeler: Labeler, classes: Any) -> list[int]:
    """The numbers of the labels of a labeler among `classes`."""
    number = {label: k for k, label in enumerate(classes)}
    return [number[label] for label in labeler.classes_]


def sharpened(p: Array, power: float) -> Array:
    """The distributions with probabilities ∝ p^power.

    Parameters
    ----------
    p : ndarray of shape (N, L)
        Distributions.
    power : float
        The power.

    Returns
    -------
    ndarray of shape (N, L)
        The distributions.
    """
    raised = np.maximum(p, LEAST) ** power
    quotient: Array = raised / raised.sum(axis=1, keepdims=True)
    return quotient
