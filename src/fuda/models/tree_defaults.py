"""What the kernel and the features of marginalized models stand for on trees and DAGs.

Where most pairs of words have nothing in common, a match ends after a node or two, and what is left of
a tree is its words. The constant lets any two nodes match a little, so that the form of a tree counts
too: a verb with something before it and something after it. Labelling dependency trees with
syntactic functions, docs/models/trees.md has what that is worth.
"""

from __future__ import annotations

from typing import Any

from fuda.data.corpus import Corpus
from fuda.kernels import Constant, Linear, Polynomial
from fuda.marginalized.parts import branches

_TEXT = "text"
_ANY_TWO_NODES = 0.5  # what they have in common, where those that are equal have 1 more


def tree_defaults(model: Any, corpus: Corpus | None) -> dict[str, Any]:
    """Return defaults of a marginalized model for trees and DAGs; empty for other models and data."""
    if "parts" not in model._defaults or corpus is None or not branches(corpus):
        return {}
    found: dict[str, Any] = {}
    if model.features is None and model.kernel is None and corpus.kind.name == "text":
        found["features"] = _TEXT
    is_text = _TEXT in (model.features, found.get("features"))
    own = Linear() if is_text else Polynomial(2)
    return found | {"kernel": own.normalized() + Constant(_ANY_TWO_NODES)}
