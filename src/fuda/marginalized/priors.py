"""Priors P(y|x) over the labels of a structure, as the marginalized kernel takes them.

A *product* prior is the node marginals P(y_t = ρ). A *chain* prior (sequences only) has with them the
transitions both ways, which hold all of a Markov chain:

    before[t, ρ, ρ'] = P(y_{t−1} = ρ' | y_t = ρ),     after[t, ρ, ρ'] = P(y_{t+1} = ρ' | y_t = ρ).

Where the priors of a model come from is in `fuda.models.priors`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.labels import per_structure
from fuda.errors import DataError, described, place

_TOLERANCE = 1e-6  # of a sum of probabilities


@dataclass(frozen=True)
class Prior:
    """A prior over packed nodes: `nodes` (N, L), and of a chain prior `before` and `after` (N, L, L).

    The rows of `before` at first nodes and of `after` at last nodes are zero.
    """

    nodes: np.ndarray
    before: np.ndarray | None = None
    after: np.ndarray | None = None

    def take(self, nodes: np.ndarray) -> Prior:
        """The prior of some nodes, whole structures."""
        arrays = (self.nodes, self.before, self.after)
        return Prior(*(x if x is None else x[nodes] for x in arrays))  # type: ignore[arg-type]

    def followed_by(self, other: Prior) -> Prior:
        """This prior, and then another of the same form."""
        ours, theirs = (self.nodes, self.before, self.after), (other.nodes, other.before, other.after)
        joined = (
            None if a is None or b is None else np.concatenate([a, b])
            for a, b in zip(ours, theirs, strict=True)
        )
        return Prior(*joined)  # type: ignore[arg-type]


def uniform_prior(corpus: Corpus, label_count: int) -> Prior:
    return Prior(np.full((corpus.size, label_count), 1.0 / label_count))


def given_prior(given: Any, corpus: Corpus, label_count: int) -> Prior:
    """Arrays of the user's, checked and packed."""
    arrays = per_structure(given, "prior", corpus)
    packed = np.empty((corpus.size, label_count))
    for i, (rows, size) in enumerate(zip(corpus.split(packed), np.diff(corpus.offsets), strict=True)):
        try:
            array = np.asarray(arrays[i], dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"{place(i)}: its prior is {described(arrays[i])}; give an array") from None
        if array.shape != rows.shape:
            raise DataError(
                f"{place(i)}: its prior has the shape {array.shape}; give ({size}, {label_count}), one row a "
                "node and one column a label, labels in sorted order"
            )
        rows[:] = array
    _check_rows(packed, corpus)
    return Prior(packed)


def _check_rows(nodes: np.ndarray, corpus: Corpus) -> None:
    """Every row is a distribution."""
    bad = ~(np.isfinite(nodes) & (nodes >= 0))
    if bad.any():
        node, label = np.argwhere(bad)[0].tolist()
        raise DataError(
            f"{corpus.place(node)}: the prior of label {label} is {nodes[node, label]}; probabilities are "
            "finite and not negative"
        )
    sums = nodes.sum(axis=1)
    off = np.abs(sums - 1.0) > _TOLERANCE
    if off.any():
        node = int(off.argmax())
        raise DataError(
            f"{corpus.place(node)}: its prior sums to {sums[node]:.6g}; divide it by its sum, so that it is 1"
        )
