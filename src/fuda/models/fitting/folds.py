"""Folds for out-of-fold predictions, by fixed shuffles of the structures."""

from __future__ import annotations

import numpy as np

from fuda.selection.folds import fold_numbers

FOLDS = 5
# The approximate largest number of nodes that probabilities are calibrated on.
_SAMPLE = 20_000
# The approximate largest number of nodes that values of a parameter are compared on.
TRIED = 6_000


def prior_folds(count: int) -> np.ndarray:
    """Divide structures into five folds, or as many as there are structures.

    Parameters
    ----------
    count : int
        The number of structures.

    Returns
    -------
    ndarray of shape (n_structures,)
        The fold of each structure.
    """
    return fold_numbers(count, FOLDS, seed=0)


def calibration_parts(sizes: np.ndarray) -> list[np.ndarray]:
    """Choose parts of the structures to calibrate on, scored by models trained on the rest.

    A part is a fifth of the structures, or about `_SAMPLE` nodes where that is less, and all parts
    together have about `_SAMPLE` nodes at most. The shuffle differs from that of out-of-fold
    priors: with the same parts, priors would look better on them than they are.

    Parameters
    ----------
    sizes : ndarray of shape (n_structures,)
        The numbers of nodes.

    Returns
    -------
    list of ndarray
        The numbers of the structures of each part.
    """
    total = int(sizes.sum())
    count = min(len(sizes), max(FOLDS, -(-total // _SAMPLE)))
    fold = fold_numbers(len(sizes), count, seed=1)
    used = max(1, min(FOLDS, count * _SAMPLE // total))
    return [np.flatnonzero(fold == number) for number in range(min(used, count))]


def some_structures(sizes: np.ndarray, most: int = TRIED) -> np.ndarray:
    """Choose structures to compare values of a parameter on: about `most` nodes, or all.

    Parameters
    ----------
    sizes : ndarray of shape (n_structures,)
        The numbers of nodes.
    most : int
        The approximate largest number of nodes.

    Returns
    -------
    ndarray
        The numbers of the chosen structures, at least two, in increasing order.
    """
    shuffled = np.random.RandomState(2).permutation(len(sizes))
    count = int(np.searchsorted(np.cumsum(sizes[shuffled]), most, side="right"))
    return np.sort(shuffled[: max(2, count)])
