"""The voted perceptron: every perceptron that occurred during training votes on each label.

The training is replayed from its corrections, each a structure with its correct and its predicted
labels. After each correction the structures to be labelled are decoded, and the label that a node
gets receives one vote per step until the next correction: one Viterbi per mistake of the training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fuda.data.encoding import Encoded
from fuda.data.graph import Array
from fuda.errors import DataError
from fuda.functions.windows import add_expansion, window_of
from fuda.inference.higher_order import no_grams, shape_of, viterbi
from fuda.kernels import Kernel
from fuda.kernels.points import Numbering
from fuda.runtime.parallel import Block, run
from fuda.training.perceptron import change_features, change_grams, fill_scores, node_change, pack_features

_BLOCK_NODES = 4096


class Correction(NamedTuple):
    """A mistake that was corrected.

    Attributes
    ----------
    structure : int
        The number of the structure.
    step : int
        The step of the training, counted from 1.
    eta : float
        The weight η of the structure.
    target, predicted : (T,) arrays of int32
        The correct and the predicted labels.
    """

    structure: int
    step: int
    eta: float
    target: Array
    predicted: Array


def pack_corrections(corrections: Sequence[Correction]) -> dict[str, Array]:
    """Convert corrections to flat arrays, for model files."""
    structures, steps, etas, targets, predicted = zip(*corrections, strict=True) if corrections else [()] * 5
    return {
        "structures": np.array(structures, dtype=np.int64),
        "steps": np.array(steps, dtype=np.int64),
        "eta": np.array(etas, dtype=np.float64),
        "targets": np.concatenate([np.empty(0, dtype=np.int32), *targets]),
        "predicted": np.concatenate([np.empty(0, dtype=np.int32), *predicted]),
    }


def unpack_corrections(
    arrays: dict[str, Array], sizes: Sequence[int], label_count: int, last: int
) -> list[Correction]:
    """Convert flat arrays back to corrections.

    Parameters
    ----------
    arrays : dict of str to array
        The arrays of a model file, by their names in `pack_corrections`.
    sizes : sequence of int
        The number of nodes of each structure.
    label_count : int
        L, the number of labels.
    last : int
        How many steps the training had.

    Returns
    -------
    list of Correction
        The corrections, by step.

    Raises
    ------
    DataError
        Where the arrays are not those of corrections to such structures.
    """
    expected = {name: (array.dtype, 1) for name, array in pack_corrections([]).items()}
    if {name: (array.dtype, array.ndim) for name, array in arrays.items()} != expected:
        raise DataError("its changes are missing, or not of their kind")
    structures, steps, etas, targets, predicted = (arrays[name] for name in expected)
    if ((structures < 0) | (structures >= len(sizes))).any():
        raise DataError("its changes are to structures that it does not have")
    bounds = np.cumsum([0, *(sizes[i] for i in structures)])
    if not len(structures) == len(steps) == len(etas) or not len(targets) == len(predicted) == bounds[-1]:
        raise DataError("its changes do not fit its structures")
    labels = np.stack([targets, predicted])
    in_range = ((labels >= 0) & (labels < label_count)).all() and np.isfinite(etas).all()
    if not in_range or (np.diff(steps, prepend=0, append=last + 1) <= 0).any():
        raise DataError("its changes are not changes of labels in ascending steps")
    return [
        Correction(int(i), int(step), float(eta), *labels[:, a:b])
        for i, step, eta, a, b in zip(structures, steps, etas, bounds[:-1], bounds[1:], strict=True)
    ]


# Applies a correction to the structure that begins at a node of the support: the new
# scores (N, L).
_Update = Callable[[int, Correction], Array]


def _primal_update(support: Encoded, encoded: Encoded, label_count: int, n_jobs: int | None) -> _Update:
    """Keep weights of features, and score all nodes anew after each correction."""
    sources, targets = pack_features(support), pack_features(encoded)
    count = sum(encoded.tables[channel.table].n_features for channel in encoded.channels)
    weights, scores = np.zeros((count, label_count)), np.empty((encoded.corpus.size, label_count))
    blocks = [(a, min(a + _BLOCK_NODES, len(scores))) for a in range(0, len(scores), _BLOCK_NODES)]

    def fill(block: Block) -> None:
        fill_scores(*block, targets, weights, scores[slice(*block)])

    def update(begin: int, correction: Correction) -> Array:
        change_features(begin, sources, weights, correction.target, correction.predicted, correction.eta)
        run(fill, blocks, n_jobs)
        return scores

    return update


def _dual_update(
    kernel: Kernel, support: Encoded, encoded: Encoded, label_count: int, n_jobs: int | None
) -> _Update:
    """Push each correction to the scores of all nodes by kernel values."""
    numbering = Numbering(support.corpus)
    sources, targets = (window_of(corpus, kernel, numbering) for corpus in (support, encoded))
    scores = np.zeros((encoded.corpus.size, label_count))

    def update(begin: int, correction: Correction) -> Array:
        beta = correction.eta * node_change(correction.target, correction.predicted, label_count)
        changed = np.flatnonzero(beta.any(axis=1))
        add_expansion(kernel, sources.take(begin + changed), beta[changed], targets, scores, n_jobs)
        return scores

    return update


def votes(
    kernel: Kernel | None,
    support: Encoded,
    encoded: Encoded,
    corrections: Sequence[Correction],
    steps: int,
    order: int,
    label_count: int,
    n_jobs: int | None = None,
) -> Array:
    """Count the votes of all perceptrons that occurred during training.

    Parameters
    ----------
    kernel : Kernel or None
        The kernel between nodes; None for weights of features.
    support : Encoded
        The structures that the corrections refer to.
    encoded : Encoded
        The structures to label.
    corrections : sequence of Correction
        The corrections of the training, at least one. Steps before the first do not count.
    steps : int
        How many steps the training had.
    order : int
        How many labels before a label its score depends on.
    label_count : int
        L, the number of labels.
    n_jobs : int, optional
        Threads; None means all cores.

    Returns
    -------
    (N, L) array
        After how many steps each node of `encoded` would have got each label.

    References
    ----------
    Y. Freund and R. E. Schapire, Large margin classification using the perceptron algorithm,
    Machine Learning 37 (1999).
    """
    graph, sources = encoded.corpus.graph, support.corpus.graph
    counts, nodes = np.zeros((graph.node_count, label_count)), np.arange(graph.node_count)
    grams, shape = no_grams(order, label_count), shape_of(sources, order, label_count)
    if kernel is None:
        update = _primal_update(support, encoded, label_count, n_jobs)
    else:
        update = _dual_update(kernel, support, encoded, label_count, n_jobs)
    ends = [*(correction.step for correction in corrections[1:]), steps + 1]
    for correction, end in zip(corrections, ends, strict=True):
        begin = int(sources.offsets[correction.structure])
        change_grams(begin, shape, grams, correction.target, correction.predicted, correction.eta)
        labels, _ = viterbi(graph, update(begin, correction), grams, order, n_jobs)
        counts[nodes, labels] += end - correction.step
    return counts
