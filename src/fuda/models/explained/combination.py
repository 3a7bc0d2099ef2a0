"""Decisions of several labelers together, for explanations.

In the notation of `fuda.models.choice.combination`, the bracket of the node t in
`fuda.explanations.decisions` is, for labels a and b,

    1/M Σ_m g_m [s_m(t,a) − s_m(t,b)] + R/M [log q(t,a) − log q(t,b)] − [b(a) − b(b)].

The first term is a sum over the members with scores. q is a sum over the others, but its logarithm
is not. So the difference of logarithms is divided among them in proportion to their contributions
to q(t,a) − q(t,b): each contribution is divided by the logarithmic mean of both.
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
    """Return the decision of a combination of labelers about the one structure of a corpus."""
    decoder, classes = combination.decoder, combination.classes_.tolist()
    known_numbers = None if known is None else label_numbers(known, corpus, combination.classes_)
    opinions = combination.opinions(corpus, known)
    scores, transitions = decoder.scored(corpus, opinions, classes, known_numbers)
    parts = decoder.weighted(opinions)
    names = [short(member) for member in combination.members]
    R = sum(part.pairs is None for part in parts)

    def terms(node: int, a: int, b: int, top: int) -> list[Contribution]:
        differences = [float(part.nodes[node, a] - part.nodes[node, b]) for part in parts]
        by_bias = float(decoder.bias[b] - decoder.bias[a])
        both = zip(parts, differences, strict=True)
        by_scores = sum(value for part, value in both if part.pairs is not None)
        shared = sum(differences) - by_scores
        logs = float(scores[node, a] - scores[node, b]) - by_bias - by_scores
        factor = logs / shared if shared else 0.0
        contributions = []
        for name, part, value in zip(names, parts, differences, strict=True):
            ours, theirs = part.nodes[node, [a, b]].tolist()
            text = f"{ours:.2f}, not {theirs:.2f}"
            if part.pairs is None:
                text, value = f"{R * ours:.1%}, not {R * theirs:.1%}", value * factor
            contributions.append(Contribution("member", f"{name}: {text}", value, node))
        if by_bias:
            contributions.append(Contribution("penalty", "how sure a label must be", by_bias, node))
        return contributions

    structure, unit = corpus.structures[0], "score of the best labeling"
    if corpus.shape == "dag":
        labels = scores.argmax(axis=1)
        return Pointwise(structure, classes, labels, "score", lambda node: scores[node], terms)

    def best(scores: Array) -> Array:
        return inference.viterbi(corpus.graph, scores, transitions)[0]

    contexts = pairs(corpus.graph.heads, transitions)
    return Labelings(structure, classes, best(scores), unit, scores, contexts, best, terms)
