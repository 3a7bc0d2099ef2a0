"""Labelings of structures by scores of nodes and pairs: labels that are known, and the n best."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda import inference
from fuda.checks import is_whole
from fuda.data.corpus import Corpus
from fuda.data.graph import Graph
from fuda.data.labels import flat_labels
from fuda.errors import DataError, short

Array = np.ndarray
Ranked = list[tuple[list[Any], float]]


def label_numbers(y: Any, corpus: Corpus, classes: Array) -> Array:
    """Label numbers of all nodes, −1 for None; labels never seen in training are an error.

    Parameters
    ----------
    y : list of lists
        Labels, None where not known.
    corpus : Corpus
        The structures.
    classes : array
        The labels of the model.

    Returns
    -------
    array (N,)
        The numbers.
    """
    number = {label: i for i, label in enumerate(classes)} | {None: -1}
    labels = flat_labels(y, corpus)
    for node, label in enumerate(labels):
        if label not in number:
            raise DataError(
                f"{corpus.place(node)}: the label {label!r} was never seen in training; known are "
                f"{', '.join(map(repr, classes[:20]))}. Use None for a label not known"
            )
    return np.array([number[label] for label in labels], dtype=np.int64)


def fix_known(scores: Array, labels: Array) -> None:
    """Set the scores (N, L) of nodes with a known label (not −1) to −inf for all other labels."""
    fixed = np.flatnonzero(labels >= 0)
    scores_of_known = scores[fixed, labels[fixed]]
    scores[fixed] = -np.inf
    scores[fixed, labels[fixed]] = scores_of_known


def check_sequences(scheme: str, corpus: Corpus) -> None:
    """Raise DataError if structures are not sequences: other shapes have no tag scheme."""
    if not corpus.is_chain:
        raise DataError(
            f"scheme={scheme!r}: a tag scheme defines which labels follow each other in a sequence, but "
            f"structure 0 is a {corpus.shape}; set scheme=None"
        )


def check_count(n: Any) -> int:
    """Return how many labelings to find; DataError if it is not a whole number of at least 1."""
    if not is_whole(n, 1):
        raise DataError(f"n={short(n)}: give a whole number of at least 1")
    return int(n)


def best_labelings(
    graph: Graph, scores: Array, pairs: Array, n: int, classes: Array, n_jobs: int | None
) -> list[Ranked]:
    """The n best labelings of each structure, each with log P(y|x) = score − log Σ exp score.

    Parameters
    ----------
    graph : Graph
        Sequences or trees.
    scores, pairs : arrays (N, L), (L, L)
        The scores of nodes and of label pairs along edges.
    n : int
        How many labelings to find, at most.
    classes : array
        The labels.
    n_jobs : int or None
        Threads.

    Returns
    -------
    list of list of (labels, float)
        By structure, best first.
    """
    log_z = inference.log_partition(graph, scores, pairs, n_jobs)
    best = inference.nbest(graph, scores, pairs, n, n_jobs)
    return [
        [([classes[k] for k in labels], min(0.0, float(score - z))) for labels, score in candidates]
        for candidates, z in zip(best, log_z, strict=True)
    ]


def best_of_nodes(corpus: Corpus, scores: Array, n: int, classes: Array, n_jobs: int | None) -> list[Ranked]:
    """The n best labelings of each structure, of any shape, if nodes are independent.

    See `best_labelings`; scores that do not depend on pairs are the same along any edges.
    """
    pairs = np.zeros((len(classes), len(classes)))
    return best_labelings(Graph.of_chains(corpus.offsets), scores, pairs, n, classes, n_jobs)
