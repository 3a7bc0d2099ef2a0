"""Decisions of several labelers together, for explanations.

With the members' sharpened marginals p_m(t,σ) and their mean q (see `fuda.models.combination`),
the bracket of the node t in `fuda.explanations.decisions` is, for labels a and b,

    log q(t,a) − log q(t,b) − [b(a) − b(b)].

The mean has parts and its logarithm has none, so each member has the share of the difference of
logarithms that it has of q(t,a) − q(t,b): what it says, divided by the logarithmic mean of both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda import inference
from fuda.data.corpus import Corpus
from fuda.errors import short
from fuda.explanations.base import Contribution
from fuda.explanations.decisions import Decision, Labelings, Pointwise, pairs
from fuda.models.labelings import label_numbers

Array = np.ndarray


def combined_decision(combination: Any, corpus: Corpus, known: Any = None) -> Decision:
    """Return what several labelers decide together about the one structure of a corpus."""
    decoder, classes = combination.decoder, combination.classes_.tolist()
    given = None if known is None else label_numbers(known, corpus, combination.classes_)
    parts = decoder.sharpened(combination.marginals(corpus.structures, known))
    scores, allowed = decoder.scored(corpus, parts.mean(axis=0), classes, given)
    names = [short(member) for member in combination.members]

    def terms(node: int, a: int, b: int, top: int) -> list[Contribution]:
        says = parts[:, node, a] - parts[:, node, b]
        by_bias = float(decoder.bias[b] - decoder.bias[a])
        logs = float(scores[node, a] - scores[node, b]) - by_bias
        factor = logs / says.sum() if says.sum() else 0.0
        found = [
            Contribution("member", f"{name}: {p[a]:.1%}, not {p[b]:.1%}", float(value * factor), node)
            for name, p, value in zip(names, parts[:, node], says, strict=True)
        ]
        if by_bias:
            found.append(Contribution("penalty", "how sure a label must be", by_bias, node))
        return found

    structure, unit = corpus.structures[0], "score of the best labeling"
    if corpus.shape == "dag":
        labels = scores.argmax(axis=1)
        return Pointwise(structure, classes, labels, "score", lambda node: scores[node], terms)

    def best(scores: Array) -> Array:
        return inference.viterbi(corpus.graph, scores, allowed)[0]

    contexts = pairs(corpus.graph.heads, allowed)
    return Labelings(structure, classes, best(scores), unit, scores, contexts, best, terms)
