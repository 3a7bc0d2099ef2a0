"""Structures as plain arrays and texts, for models that keep the structures they learned from.

Equal observations are stored once, each as a line of JSON, which tells text, columns, features, ids and
vectors apart; the shape is that of the model.

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
    """The distinct observations as texts, and arrays `offsets`, `types` and `edges`."""
    if not structures:
        return [], {"offsets": np.zeros(1, np.int64), "types": np.zeros(0, np.int64), "edges": _NO_EDGES}
    corpus = Corpus(structures)
    edges = _NO_EDGES if corpus.is_chain else corpus.graph.edges.astype(np.int64)
    texts = list(map(to_stored, corpus.observations))
    return texts, {"offsets": corpus.offsets, "types": corpus.types.astype(np.int64), "edges": edges}


def unpack(texts: list[str], arrays: Arrays, shape: str) -> list[Structure]:
    """The structures that were packed; DataError where the arrays do not fit together."""
    offsets, types, edges = (_whole(arrays, name) for name in ("offsets", "types", "edges"))
    if offsets.ndim != 1 or not len(offsets) or types.ndim != 1:
        raise DataError("its structures are no list of nodes")
    if offsets[0] != 0 or offsets[-1] != len(types) or (np.diff(offsets) < 1).any():
        raise DataError("the bounds of its structures do not fit their nodes")
    if types.min(initial=0) < 0 or types.max(initial=-1) >= len(texts):
        raise DataError("its structures have observations that it does not list")
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    if (
        edges.ndim != 2
        or edges.shape[1] != 2
        or edges.min(initial=0) < 0
        or edges.max(initial=-1) >= len(types)
    ):
        raise DataError("its structures have edges between nodes that there are not")
    at = owner[edges[:, 1]]
    if (owner[edges[:, 0]] != at).any() or (np.diff(at) < 0).any():
        raise DataError("its structures have edges that lead from one to another")
    observations = list(map(from_stored, texts))
    cuts = np.searchsorted(at, np.arange(len(offsets)))
    structures: list[Structure] = []
    for i, (a, b) in enumerate(pairwise(offsets.tolist())):
        nodes = [observations[k] for k in types[a:b]]
        own = edges[cuts[i] : cuts[i + 1]] - a
        structures.append(_made(shape, nodes, own))
    return structures


_NO_EDGES = np.zeros((0, 2), dtype=np.int64)


def _made(shape: str, nodes: list[Any], edges: np.ndarray) -> Structure:
    if shape == "sequence":
        return Sequence(nodes)
    if shape == "dag":
        return Dag(nodes, edges)
    heads = np.full(len(nodes), -1)
    heads[edges[:, 1]] = edges[:, 0]
    return Tree(nodes, heads)


def _whole(arrays: Arrays, name: str) -> np.ndarray:
    if name not in arrays or arrays[name].dtype != np.int64:
        raise DataError(f"its array {name!r} is missing or does not hold whole numbers")
    return arrays[name]
