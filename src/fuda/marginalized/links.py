"""The edges of a packed corpus, as compiled code takes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.graph import Neighbours


class Links(NamedTuple):
    """The nodes of a corpus, parents first, and the parents and children of each, siblings in order."""

    order: np.ndarray
    parents: Neighbours
    children: Neighbours


class Span(NamedTuple):
    """One structure: the nodes begin..end of a corpus with these links."""

    links: Links
    begin: int
    end: int


def links(corpus: Corpus) -> Links:
    """The links of a corpus; none for sequences, where neighbours have neighbouring numbers."""
    if corpus.is_chain:
        nothing = np.empty(0, dtype=np.int64)
        return Links(nothing, Neighbours(nothing, nothing), Neighbours(nothing, nothing))
    parents, children = (
        Neighbours(_indices(near.indptr), _indices(near.indices))
        for near in (corpus.graph.parents, corpus.graph.children)
    )
    return Links(_indices(corpus.graph.order), parents, children)


def _indices(values: np.ndarray) -> np.ndarray:
    # All of one type and layout, so that nothing is compiled twice.
    return np.require(values, np.int64, ["C", "A", "W"])
