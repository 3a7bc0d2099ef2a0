"""Structures as plain arrays and texts, for models that keep their training data.

Equal observations are stored once, each as a line of JSON, which distinguishes text, columns,
features, ids and vectors; the shape is that of the model.

>>> from fuda import Tree
>>> texts, arrays = pack([Tree(["lives", "Ana"], [-1, 0])])
>>> texts, arrays["edges"].tolist()
(['"lives"', '"Ana"'], [[0, 1]])
>>> unpack(texts, arrays, "tree")
[Tree(['lives', 'Ana'], 2 nodes)]
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.observations import from_stored, to_stored
from fuda.data.structures import Dag, Sequence, Structure, Tree
from fuda.errors import DataError

Arrays = dict[str, np.ndarray]


def pack(structures: list[Structure]) -> tuple[list[str], Arrays]:
    """Convert structures to texts and arrays.

    Parameters
    ----------
    structures : list of Structure
        All of the same shape.

    Returns
    -------
    texts : list of str
        The distinct observations, as JSON.
    arrays : dict of ndarray
        `offsets` of the structures, `types` (the index of each node's observation) and `edges`.
    """
    if not structures:
        return [], {"offsets": np.zeros(1, np.int64), "types": np.zeros(0, np.int64), "edges": _NO_EDGES}
    corpus = Corpus(structures)
    edges = _NO_EDGES if corpus.is_chain else corpus.graph.edges.astype(np.int64)
    texts = list(map(to_stored, corpus.observations))
    return texts, {"offsets": corpus.offsets, "types": corpus.types.astype(np.int64), "edges": edges}


def unpack(texts: list[str], arrays: Arrays, shape: str) -> list[Structure]:
    """Convert the texts and arrays of `pack` back to structures.

    Parameters
    ----------
    texts : list of str
        The distinct observations.
    arrays : dict of ndarray
        The arrays `offsets`, `types` and `edges`.
    shape : {"sequence", "tree", "dag"}
        The shape of the structures.

    Returns
    -------
    list of Structure
        The structures that were packed.

    Raises
    ------
    DataError
        If the arrays are not consistent.
    """
    offsets, types, edges = (_integers(arrays, name) for name in ("offsets", "types", "edges"))
    if offsets.ndim != 1 or not len(offsets) or types.ndim != 1:
        raise DataError("its structures are not lists of nodes")
    if offsets[0] != 0 or offsets[-1] != len(types) or (np.diff(offsets) < 1).any():
        raise DataError("the bounds of its structures do not fit their nodes")
    if types.min(initial=0) < 0 or types.max(initial=-1) >= len(texts):
        raise DataError("its structures have observations that it does not list")
    pairs = edges.ndim == 2 and edges.shape[1] == 2
    if not pairs or edges.min(initial=0) < 0 or edges.max(initial=-1) >= len(types):
        raise DataError("its structures have edges between nodes that do not exist")
    structure_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    parents, children = structure_of[edges].T
    if (parents != children).any() or (np.diff(children) < 0).any():
        raise DataError("its structures have edges that lead from one to another")
    observations = list(map(from_stored, texts))
    cuts = np.searchsorted(children, np.arange(len(offsets)))
    return [
        _structure(shape, [observations[k] for k in types[a:b]], edges[cuts[i] : cuts[i + 1]] - a)
        for i, (a, b) in enumerate(pairwise(offsets.tolist()))
    ]


_NO_EDGES = np.zeros((0, 2), dtype=np.int64)


def _structure(shape: str, nodes: list[Any], edges: np.ndarray) -> Structure:
    """The structure of that shape."""
    if shape == "sequence":
        return Sequence(nodes)
    if shape == "dag":
        return Dag(nodes, edges)
    heads = np.full(len(nodes), -1)
    heads[edges[:, 1]] = edges[:, 0]
    return Tree(nodes, heads)


def _integers(arrays: Arrays, name: str) -> np.ndarray:
    """The array of that name."""
    if name not in arrays or arrays[name].dtype != np.int64:
        raise DataError(f"its array {name!r} is missing or does not contain integers")
    return arrays[name]
