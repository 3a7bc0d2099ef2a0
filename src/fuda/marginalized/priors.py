"""Priors P(y|x) over the labels of structures, for the marginalized kernel.

A *product* prior consists of the node marginals P(y_t = ρ). A *chain* prior (sequences only) also
has the transitions of a Markov chain in both directions:

    before[t, ρ, ρ'] = P(y_{t−1} = ρ' | y_t = ρ),     after[t, ρ, ρ'] = P(y_{t+1} = ρ' | y_t = ρ).

The priors of models are made by `fuda.models.priors`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.labels import per_structure
from fuda.errors import DataError, described, place

Array = np.ndarray
_TOLERANCE = 1e-6  # how far sums of probabilities may be from 1


class Joint(NamedTuple):
    """Scores of whole labelings, P(y) ∝ exp( Σ_t nodes(t, y_t) + Σ_{edges p→t} pairs(y_p, y_t) ).

    Attributes
    ----------
    nodes : array (N, L)
        The scores of labels.
    pairs : array (L, L)
        The scores of label pairs along edges.
    """

    nodes: Array
    pairs: Array

    def take(self, nodes: Array) -> Joint:
        """Return the scores of some nodes, those of whole structures."""
        return Joint(self.nodes[nodes], self.pairs)


class Prior(NamedTuple):
    """A prior over the nodes of a corpus.

    Attributes
    ----------
    nodes : array (N, L)
        The node marginals.
    before, after : arrays (N, L, L) or None
        The transitions of a chain prior, zero at first nodes and at last nodes respectively.
    joint : Joint or None
        The scores of labelings that the marginals are those of, where they are known; the kernel
        does not depend on them.
    """

    nodes: Array
    before: Array | None = None
    after: Array | None = None
    joint: Joint | None = None

    def take(self, nodes: Array) -> Prior:
        """Return the prior of some nodes, those of whole structures."""
        arrays = (None if x is None else x[nodes] for x in self[:3])
        part = Prior(*arrays)  # type: ignore[arg-type]
        return part if self.joint is None else part._replace(joint=self.joint.take(nodes))

    def followed_by(self, other: Prior) -> Prior:
        """Return this prior followed by another of the same form, without scores of labelings."""
        pairs = zip(self[:3], other[:3], strict=True)
        joined = (None if a is None or b is None else np.concatenate([a, b]) for a, b in pairs)
        return Prior(*joined)  # type: ignore[arg-type]

    def check(self) -> None:
        """Raise DataError where these are not probabilities, as may be in a file."""
        distributions(self.nodes, self.nodes.shape, "its prior", "node")
        for steps in (self.before, self.after):
            if steps is not None and ((steps < 0).any() or (steps.sum(axis=2) > 1 + _TOLERANCE).any()):
                raise DataError("its prior has transitions that are not probabilities")


def uniform_prior(corpus: Corpus, label_count: int) -> Prior:
    """Return the prior 1/L of every label at every node."""
    return Prior(np.full((corpus.size, label_count), 1.0 / label_count))


def given_prior(given: Any, corpus: Corpus, label_count: int) -> Prior:
    """Check and concatenate arrays given by the user, one (nodes, labels) array per structure."""
    parts = per_structure(given, "prior", corpus)
    return Prior(
        np.concatenate(
            [distributions(x, (n, label_count), f"{place(i)}: its prior", "node") for i, x, n in parts]
        )
    )


def distributions(values: Any, shape: tuple[int, int | None], where: str, what: str = "row") -> Array:
    """Check rows of probabilities.

    Parameters
    ----------
    values : array-like
        One distribution per row.
    shape : tuple
        The numbers of rows and of columns; None for any number of columns.
    where : str
        The name of the values in messages.
    what : str
        The name of a row in messages.

    Returns
    -------
    array
        The values as float64.
    """
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{where} is {described(values)}; give an array of probabilities") from None
    rows, columns = array.shape if array.ndim == 2 else (0, 0)
    if rows != shape[0] or columns == 0 or shape[1] not in (None, columns):
        expected = f"({shape[0]}, {shape[1] or 'labels'})"
        raise DataError(f"{where} has the shape {array.shape}; give {expected}, labels in sorted order")
    bad = np.argwhere(~(np.isfinite(array) & (array >= 0.0)))
    if len(bad):
        row, label = bad[0].tolist()
        raise DataError(
            f"{where} has {array[row, label]} for label {label} at {what} {row}; probabilities are finite "
            "and not negative"
        )
    sums = array.sum(axis=1)
    row = int(np.abs(sums - 1.0).argmax())
    if abs(sums[row] - 1.0) > _TOLERANCE:
        raise DataError(
            f"{where} sums to {sums[row]:.6g} at {what} {row}; divide each row by its sum, so that it is 1"
        )
    return array
