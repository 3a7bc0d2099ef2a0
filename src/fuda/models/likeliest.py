"""Probabilities for scores that have no unit: exp(s F) / Z with the s that is likeliest.

A perceptron or a margin machine only learns which labeling has the largest score F. Times a number
s > 0 its scores are those of a CRF with the same labels; s is chosen where the loss of that CRF,
with its penalty, is smallest:

    min_s  −Σ_i log P_s(y_i | x_i) + s² ‖w‖².

The loss is convex in s, and a sample of the structures is enough to find a single number.
"""

from __future__ import annotations

import numpy as np

from fuda import inference
from fuda.data.graph import Graph

Array = np.ndarray
LARGEST_SCALE = 1e9  # no score times it passes all numbers
_SAMPLE, _HALVINGS = 200, 8  # structures that s is chosen by; s is found within 2 %


def sampled(count: int) -> Array:
    """The numbers of the structures that s is chosen by, spread over all of them.

    >>> sampled(3).tolist(), len(sampled(5000))
    ([0, 1, 2], 200)
    """
    return np.unique(np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int64))


class Ray:
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
        The share that they are of all structures.
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
            s, above 0; 1 where the scores tell labels apart nowhere.
        """
        spread = float(np.std(self.nodes - self.nodes.mean(axis=1, keepdims=True)))
        if not 0 < spread < np.inf:
            return 1.0
        least, most = np.log(np.minimum([1e-2 / spread, 1e2 / spread], LARGEST_SCALE))
        given = self._mean(self.fits, 1.0)  # F of the labels, whatever s, where all are known
        for _ in range(_HALVINGS):  # what is minimized is convex in s: its slope tells where to go
            middle = (least + most) / 2
            s = float(np.exp(middle))
            given = given if self.all_known else self._mean(self.fits, s)
            slope = (self._mean(self.nodes, s) - given) / self.share + 2 * s * square
            least, most = (least, middle) if slope > 0 else (middle, most)
        return float(np.exp((least + most) / 2))

    def _mean(self, allowed: Array, s: float) -> float:
        """Σ weight · E[F(y)] over the labelings that are allowed, at s w."""
        _, p, edges = inference.expectations(self.graph, s * allowed, s * self.pairs, self.weight, n_jobs=1)
        return float((self.by_node * p * self.nodes).sum() + (edges * self.pairs).sum())
