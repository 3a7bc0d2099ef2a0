"""Probabilities for scores without a unit: exp(s F) / Z with the s of largest likelihood.

A perceptron or a margin machine only learns which labeling has the largest score F. Multiplied by
a number s > 0, its scores are those of a CRF with the same labels; s minimizes the penalized loss
of that CRF:

    min_s  −Σ_i log P_s(y_i | x_i) + s² ‖w‖².

The loss is convex in s, and a sample of the structures is enough to find a single number.
"""

from __future__ import annotations

import numpy as np

from fuda import inference
from fuda.data.graph import Graph

Array = np.ndarray
LARGEST_SCALE = 1e9  # scores times this number do not overflow
# The number of structures that s is computed from, and the number of halvings of the interval of
# log s, which determine s within 2 %.
_SAMPLE, _HALVINGS = 200, 8


def sampled(count: int) -> Array:
    """The numbers of the structures that s is computed from, spread over all of them.

    >>> sampled(3).tolist(), len(sampled(5000))
    ([0, 1, 2], 200)
    """
    return np.unique(np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int64))


class ScaledLoss:
    """The loss of the weights s w as a function of s.

    Parameters
    ----------
    graph : Graph
        The sampled structures.
    nodes, pairs : ndarray
        Their scores F at w.
    labels : ndarray of shape (N,)
        The label numbers, −1 where not known.
    weight : ndarray of shape (n_structures,)
        The weights of the structures.
    share : float
        Their number as a share of all structures.
    """

    def __init__(
        self, graph: Graph, nodes: Array, pairs: Array, labels: Array, weight: Array, share: float
    ) -> None:
        self.graph, self.nodes, self.pairs, self.weight, self.share = graph, nodes, pairs, weight, share
        self.by_node = np.repeat(weight, np.diff(graph.offsets))[:, None]
        known = np.flatnonzero(labels >= 0)
        self.all_known, self.fits = len(known) == len(nodes), nodes.copy()
        self.fits[known] = -np.inf
        self.fits[known, labels[known]] = nodes[known, labels[known]]

    def likeliest(self, square: float) -> float:
        """The s for which the loss of s w is smallest.

        Parameters
        ----------
        square : float
            ‖w‖².

        Returns
        -------
        float
            s, above 0; 1 if all labels have the same scores everywhere.
        """
        spread = float(np.std(self.nodes - self.nodes.mean(axis=1, keepdims=True)))
        if not 0 < spread < np.inf:
            return 1.0
        least, most = np.log(np.minimum([1e-2 / spread, 1e2 / spread], LARGEST_SCALE))
        known_mean = self._mean(self.fits, 1.0)  # does not depend on s if all labels are known
        for _ in range(_HALVINGS):  # the loss is convex in s: the sign of its slope is enough
            middle = (least + most) / 2
            s = float(np.exp(middle))
            known_mean = known_mean if self.all_known else self._mean(self.fits, s)
            slope = (self._mean(self.nodes, s) - known_mean) / self.share + 2 * s * square
            least, most = (least, middle) if slope > 0 else (middle, most)
        return float(np.exp((least + most) / 2))

    def _mean(self, scores: Array, s: float) -> float:
        """Σ weight · E[F(y)] at s w, by node scores that are −inf for labels to exclude."""
        _, p, edges = inference.expectations(self.graph, s * scores, s * self.pairs, self.weight, n_jobs=1)
        return float((self.by_node * p * self.nodes).sum() + (edges * self.pairs).sum())
