"""Defaults of features, kernel and decoding of the marginalized models.

Words in sequences have so many features "text" in common that products of two of them only add
noise. Kernel values of these features are different for all words, so that with many words pushes
take up to four times as long as with "spelling", which has few different values.

In trees and DAGs, where most pairs of words have nothing in common, a match ends after a node or
two, so that only words matter. The constant lets any two nodes match a little, so that the form of
a tree matters too: a verb with something before it and something after it. docs/models/trees.md
has measurements of its effect on labelling dependency trees with syntactic functions.
"""

from __future__ import annotations

from typing import Any

from fuda.data.corpus import Corpus
from fuda.data.labels import encode_segments
from fuda.kernels import Constant, Kernel, Linear, Polynomial
from fuda.marginalized.parts import branches

# With more distinct observations, the default features are "spelling", to save time.
_MANY = 1 << 12
# The kernel of any two nodes; that of equal nodes is larger by 1.
_ANY_TWO_NODES = 0.5


def marginalized_defaults(model: Any, corpus: Corpus, letters: str | None) -> dict[str, Any]:
    """Return defaults of a marginalized model.

    Parameters
    ----------
    model : MarginalizedLabeler
        The model, with its parameters and, when it is fitted, its labels.
    corpus : Corpus
        The structures to learn from.
    letters : str or None
        The alphabet of residues or bases.

    Returns
    -------
    dict
        The values of features, kernel and decode.
    """
    features, kernel = (_of_branches if branches(corpus) else _of_chains)(model, corpus, letters)
    labels = getattr(model, "classes_", ())
    in_segments = corpus.is_chain and model.calibrate and encode_segments(labels)
    return {"features": features, "kernel": kernel, "decode": "viterbi" if in_segments else "posterior"}


def _of_chains(model: Any, corpus: Corpus, letters: str | None) -> tuple[str, Kernel]:
    """Features and kernel of sequences, and of other structures that do not branch."""
    is_text = corpus.kind.name in ("text", "columns")
    features = letters or ("text" if is_text and len(corpus.observations) <= _MANY else "spelling")
    chosen = features if model.features is None else model.features
    return features, Polynomial(1 if is_text and chosen == "text" else 2).normalized()


def _of_branches(model: Any, corpus: Corpus, letters: str | None) -> tuple[str, Kernel]:
    """Features and kernel of trees and DAGs."""
    is_text = model.kernel is None and corpus.kind.name == "text"
    features = letters or ("text" if is_text else "spelling")
    chosen = features if model.features is None else model.features
    kernel = Linear() if chosen == "text" else Polynomial(2)
    return features, kernel.normalized() + Constant(_ANY_TWO_NODES)
