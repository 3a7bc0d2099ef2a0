"""The parts of trees and DAGs that features are: what may match around two nodes.

=========  ============================================================================
subtrees   connected subtrees that keep the order of siblings and may skip some
paths      directed paths, from a node down to another
lines      paths between any two nodes: up to a common ancestor, and down
=========  ============================================================================

Each of them also exists in a *sided* form, such as ``"sided-lines"``: a child before its parent
then matches a child before its parent only, in the order in which nodes are numbered (see
`fuda.marginalized.recursions.sides`). The parts of a sequence are runs. On a chain all
are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.data.corpus import Corpus
from fuda.errors import DataError, short
from fuda.marginalized.recursions.shapes import DAG, LINES, SHAPES, SIDED, TREE

RUNS = "runs"
_SIDED = "sided-"
_PLAIN = {"lines": LINES, "paths": DAG, "subtrees": TREE}
PARTS = {_SIDED + name: shape + SIDED for name, shape in _PLAIN.items()} | _PLAIN
_OF_DAGS = ("sided-paths", "paths")
_USUAL = {"sequence": RUNS, "tree": "subtrees", "dag": "paths"}


def check_parts(parts: Any) -> None:
    """Raise DataError where a parameter is not the name of parts, or None."""
    if parts is not None and (not isinstance(parts, str) or parts not in PARTS):
        raise DataError(f"parts={short(parts)}: choose {', '.join(PARTS)}, or None")


def usual_parts(shape: str, parts: str | None = None) -> str:
    """Return parts as given, or those of the papers for a shape of structures.

    Raises DataError where structures of that shape do not have such parts.
    """
    if parts is None or (shape == "sequence" and parts == RUNS):
        return _USUAL[shape]
    check_parts(parts)
    if shape == "sequence":
        raise DataError(f"parts={parts!r}: sequences have runs only, but structure 0 is one; leave parts out")
    if shape == "dag" and parts not in _OF_DAGS:
        raise DataError(f"parts={parts!r}: structure 0 is a dag, which has {' or '.join(_OF_DAGS)}")
    return parts


def shape_of_features(shape: str, parts: str | None) -> int:
    """Return the number by which recursions know the parts of structures of a shape."""
    return PARTS.get(usual_parts(shape, parts), SHAPES["sequence"])


def branches(corpus: Corpus) -> bool:
    """Return whether a node has several children or parents; otherwise all parts are runs."""
    if corpus.is_chain:
        return False
    ends = corpus.graph.edges.T
    return max(np.bincount(nodes).max(initial=0) for nodes in ends) > 1


def parts_to_choose_from(corpus: Corpus) -> list[str]:
    """Return the parts to compare, those with sides first; one where all are the same."""
    if not branches(corpus):
        return [_USUAL[corpus.shape]]
    names = list(PARTS if corpus.shape == "tree" else _OF_DAGS)
    edges = corpus.graph.edges
    if len(np.unique(edges[:, 0] < edges[:, 1])) < 2:  # all edges are on one side
        names = [name for name in names if not name.startswith(_SIDED)]
    return names


def without_sides(parts: str) -> str:
    """Return the same parts without sides."""
    return parts.removeprefix(_SIDED)
