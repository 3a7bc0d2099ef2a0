"""Decisions of Markov models for explanations, and contributions to their node scores.

`fuda.explanations.decisions` has the mathematics. The functions at the end are methods of models:
`_node_terms` decomposes the difference of a node's scores of two labels, and `_node_positions`
returns the training positions that such scores are sums over.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda import inference
from fuda.data.encoding import Channel, Encoded
from fuda.errors import DataError
from fuda.explanations.base import Contribution, Voice
from fuda.explanations.decisions import (
    Context,
    Contexts,
    Decision,
    Labelings,
    NodeTerms,
    Pointwise,
    check_question,
    pairs,
)
from fuda.explanations.messages import Message, messages_to
from fuda.explanations.positions import Positions
from fuda.functions.windows import kernel_values, window_of
from fuda.inference import higher_order
from fuda.kernels.points import Numbering
from fuda.render.text import shown
from fuda.schemes import OUTSIDE

Array = np.ndarray


def encoded_question(model: Any, x: Any, node: Any, top: Any) -> Encoded:
    """Check the parameters of `explain`, and encode the structure to be explained."""
    encoded: Encoded | None = model._encode([x])
    if encoded is None:
        raise DataError("structure 0 is empty: it has no node to explain; give one with nodes")
    check_question(encoded.corpus.structures[0], node, top)
    return encoded


def markov_decision(model: Any, encoded: Encoded, known: Any = None) -> Decision:
    """Return the decision of a Markov model about one structure."""
    model._check_live_params()
    voted = getattr(model, "_voted", False)
    if model._decoding != "posterior" and not (voted and model.scheme is None):
        return markov_labelings(model, encoded, known)
    corpus, heads = encoded.corpus, encoded.corpus.graph.heads
    scores, transitions = model._constrained(corpus, *_maximized_scores(model, encoded), known)
    labels = scores.argmax(axis=1) if voted else model._best_labels(encoded, known)
    about = corpus.structures[0], model.classes_.tolist(), labels
    if voted:
        terms = _with_score(model, encoded, scores)
        return Pointwise(*about, "share of votes", lambda node: scores[node], terms)
    odds = _Odds(model, encoded, heads, scores, transitions)
    if model.scheme is None:
        return Pointwise(*about, "log-probability", odds.log_p, odds.terms)
    marginals = inference.marginals(corpus.graph, scores, transitions)[1]
    no_scores = np.zeros((marginals.shape[1],) * 2)
    table, rules = model._constrained(corpus, marginals.copy(), no_scores, known)  # rules: 0 or −inf

    def best(scores: Array) -> Array:
        return inference.viterbi(corpus.graph, scores, rules)[0]

    def scaled(node: int, a: int, b: int, top: int) -> list[Contribution]:
        return odds.scaled_terms(node, a, b, top, marginals[node])

    return Labelings(*about, "expected number of right labels", table, pairs(heads, rules), best, scaled)


def markov_labelings(model: Any, encoded: Encoded, known: Any = None) -> Labelings:
    """Return the decision of a Markov model between labelings as a whole, however it decodes."""
    corpus, graph, size = encoded.corpus, encoded.corpus.graph, len(model.classes_)
    unit = "score of the best labeling"
    if getattr(model, "order_", 1) > 1 and not model._voted:
        scores = model._penalized(model._node_scores(encoded))
        scores, transitions = model._constrained(corpus, scores, np.zeros((size, size)), known)
        grams = higher_order.with_pairs(model._grams, model.order_, transitions)
        contexts = _gram_contexts(graph.heads, grams, model.order_)

        def best(scores: Array) -> Array:
            return higher_order.viterbi(graph, scores, grams, model.order_)[0]

    else:
        scores, transitions = model._constrained(corpus, *_maximized_scores(model, encoded), known)
        contexts = pairs(graph.heads, transitions)
        if getattr(model, "_voted", False):
            unit = "shares of votes"

        def best(scores: Array) -> Array:
            return inference.viterbi(graph, scores, transitions)[0]

    about = corpus.structures[0], model.classes_.tolist(), best(scores), unit
    return Labelings(
        *about,
        scores,
        contexts,
        best,
        _with_score(model, encoded, scores),
        cache(lambda node: model._node_positions(encoded, node)),
        partial(model._edge_terms, encoded),
    )


def _maximized_scores(model: Any, encoded: Encoded) -> tuple[Array, Array]:
    """The node and pair scores that `predict` maximizes."""
    scores, transitions = model._scores(encoded)
    return model._penalized(scores), transitions


def _gram_contexts(heads: Array, grams: higher_order.Grams, order: int) -> Contexts:
    """The contexts of several labels, numbered as in `higher_order`."""
    tables = higher_order.by_context(grams, order)

    def value(node: int, above: tuple[int, ...], label: int) -> float:
        table, number = tables[len(above)], 0
        for nearer in above:
            number = number * table.shape[1] + nearer
        return float(table[number, label])

    return Contexts(heads, order, value)


def _with_score(model: Any, encoded: Encoded, scores: Array) -> NodeTerms:
    """The terms of node scores: votes, those that a model names, or the two scores."""

    def votes(node: int, a: int, b: int, top: int) -> list[Contribution]:
        both = ((a, float(scores[node, a])), (b, -float(scores[node, b])))
        name = "{:.1%} of the perceptrons choose {}".format
        return [Contribution("votes", name(abs(x), model.classes_[k]), x, node) for k, x in both]

    def terms(node: int, a: int, b: int, top: int) -> list[Contribution]:
        contributions = model._node_terms(encoded, node, a, b, top)
        if not contributions:
            names, both = model.classes_[[a, b]], scores[node, [a, b]].tolist()
            contributions = [Contribution("score", f"score of {names[0]}", both[0], node)]
            return [*contributions, Contribution("score", f"score of {names[1]}", -both[1], node)]
        if model.outside_penalty and OUTSIDE in model.classes_[[a, b]]:
            value = model._penalized(np.zeros((1, len(model.classes_))))[0]
            contributions.append(Contribution("penalty", "penalty of O", float(value[a] - value[b]), node))
        return contributions

    return votes if getattr(model, "_voted", False) else terms


class _Odds:
    """log P(y_t = b) of single nodes, decomposed."""

    def __init__(self, model: Any, encoded: Encoded, heads: Array, scores: Array, transitions: Array) -> None:
        self.classes, self.structure = model.classes_, encoded.corpus.structures[0]
        self.scores, self.node_terms = scores, _with_score(model, encoded, scores)
        self.messages = cache(lambda node: messages_to(node, heads, scores, transitions))

    def log_p(self, node: int) -> Array:
        """The log-probabilities (L,)."""
        sums = self.scores[node] + sum(message.values for message in self.messages(node).values())
        top = sums.max()
        return sums - (top + np.log(np.exp(sums - top).sum()))

    def terms(self, node: int, a: int, b: int, top: int) -> list[Contribution]:
        """The contributions to the log-odds of two labels."""
        contributions = self.node_terms(node, a, b, top)
        for u, message in self.messages(node).items():
            value = float(message.values[a] - message.values[b])
            contributions.append(Contribution("neighbour", self._neighbour(u, message), value, u))
        return contributions

    def _neighbour(self, u: int, message: Message) -> str:
        """A neighbour in words: its observation, and its likeliest label without the node."""
        weights = np.exp(message.log_weights - message.log_weights.max())
        likeliest = int(weights.argmax())
        share = weights[likeliest] / weights.sum()
        return f"{shown(self.structure.observations[u])}, by itself {self.classes[likeliest]} {share:.0%}"

    def scaled_terms(self, node: int, a: int, b: int, top: int, right: Array) -> list[Contribution]:
        """The contributions to the difference of two probabilities."""
        log_p, difference = self.log_p(node), float(right[a] - right[b])
        if not np.isfinite(log_p[[a, b]]).all():
            text = f"probability {right[a]:.3g}, not {right[b]:.3g}"
            return [Contribution("probability", text, difference, node)]
        odds = float(log_p[a] - log_p[b])
        factor = difference / odds if odds else float(right[a])
        return [replace(t, value=t.value * factor) for t in self.terms(node, a, b, top)]


def _features_of(encoded: Encoded, channel: Channel, node: int) -> tuple[sp.csr_matrix, float]:
    """The features of a node in a channel as a row, and how much is not in the vocabulary."""
    of_node, table = channel.take(np.array([node])), encoded.tables[channel.table]
    row = sp.csr_matrix(of_node.incidence(table.matrix.shape[0]) @ table.matrix)
    return row, float(table.unknown[of_node.rows].sum())


def _feature_terms(
    model: Any, encoded: Encoded, weights: list[Array], node: int, a: int, b: int, unknown: Any = None
) -> list[Contribution]:
    """The contributions of the features of a node and its window.

    `unknown` has the weights of features that were not seen in training, by channel.
    """
    contributions = []
    for c, channel in enumerate(encoded.channels):
        row, unknown_amount = _features_of(encoded, channel, node)
        names = model.encoder_.feature_names(c) if row.nnz else []
        for k, amount in zip(row.indices.tolist(), row.data.tolist(), strict=True):
            value = float(amount * (weights[c][k, a] - weights[c][k, b]))
            contributions.append(Contribution("feature", f"[{channel.name}] {names[k]}", value, node))
        if unknown is not None:
            value = unknown_amount * float(unknown[c][a] - unknown[c][b])
            text = f"[{channel.name}] unseen in training"
            contributions.append(Contribution("feature", text, value, node))
    return contributions


def pair_terms(model: Any, encoded: Encoded, node: int, ours: Context, theirs: Context) -> list[Contribution]:
    """The contributions of features that a CRF has weights of for label pairs."""
    with_pairs, contributions = model._with_pairs(encoded), []
    names = [model.encoder_.edge_feature_names(k) for k in range(len(encoded.edge_channels))]
    if model.has_pairs_:
        names.append(model.encoder_.feature_names(model.encoder_.own_channel()))
    weights = model._layout.views(model.weights_)[2]
    (above, label), (other_above, other) = ours, theirs
    if not above:  # a root
        return []
    for channel, features, part in zip(with_pairs.edge_channels, names, weights, strict=True):
        row, _ = _features_of(with_pairs, channel, node)
        for k, amount in zip(row.indices.tolist(), row.data.tolist(), strict=True):
            value = float(amount * (part[k, above[0], label] - part[k, other_above[0], other]))
            text = f"[{channel.name}] {features[k]} after {model.classes_[above[0]]}"
            contributions.append(Contribution("feature", text, value, node))
    return contributions


def _transition(model: Any, text: str, values: Array, node: int, a: int, b: int) -> Contribution:
    """The contribution of the start or the end; `text` has a {} for the label."""
    both = ", not ".join(text.format(model.classes_[k]) for k in (a, b))
    return Contribution("transition", both, float(values[a] - values[b]), node)


def crf_terms(model: Any, encoded: Encoded, node: int, a: int, b: int, top: int) -> list[Contribution]:
    return _feature_terms(model, encoded, model._layout.views(model.weights_)[0], node, a, b)


def hmm_terms(model: Any, encoded: Encoded, node: int, a: int, b: int, top: int) -> list[Contribution]:
    contributions = _feature_terms(model, encoded, model.emissions_, node, a, b, model.unknown_)
    graph = encoded.corpus.graph
    if node in graph.roots:
        contributions.append(_transition(model, "<start> → {}", model.start_, node, a, b))
    if node in graph.leaves:
        contributions.append(_transition(model, "{} → <end>", model.end_, node, a, b))
    return contributions


def memm_terms(model: Any, encoded: Encoded, node: int, a: int, b: int, top: int) -> list[Contribution]:
    counts = [model.encoder_.feature_count(c) for c in range(len(encoded.channels))]
    contributions = _feature_terms(model, encoded, np.split(model.weights_, np.cumsum(counts)), node, a, b)
    heads = encoded.corpus.graph.heads
    if heads[node] < 0:
        contributions.append(_transition(model, "<start> → {}", model.start_, node, a, b))
    plain = model._function().of(encoded)
    for child in np.flatnonzero(heads == node):
        sums = np.logaddexp.reduce(plain[child] + model.transitions_[[a, b]], axis=1)
        text = f"all labels of {shown(encoded.corpus.structures[0].observations[child])}"
        contributions.append(Contribution("normalization", text, float(sums[1] - sums[0]), int(child)))
    return contributions


def perceptron_terms(model: Any, encoded: Encoded, node: int, a: int, b: int, top: int) -> list[Contribution]:
    if model.kernel_ is None:
        weights = np.split(model._nodes / model._divisor, np.cumsum(model._feature_counts()))[:-1]
        contributions = _feature_terms(model, encoded, weights, node, a, b)
    else:
        contributions = position_terms(model, encoded, node, a, b, top)
    if model.order_ == 1 and encoded.corpus.graph.heads[node] < 0:
        contributions.append(_transition(model, "<start> → {}", model._grams.short[0], node, a, b))
    return contributions


def position_terms(model: Any, encoded: Encoded, node: int, a: int, b: int, top: int) -> list[Contribution]:
    """The contributions of the training positions; none if the model has no support."""
    positions = model._node_positions(encoded, node)
    return [] if positions is None else positions.terms(a, b, node, top)


def svm_positions(model: Any, encoded: Encoded, node: int) -> Positions | None:
    if model._support is None:
        return None
    beta, _ = model._coefficients()
    return _kernel_positions(model, model._support, beta, model._structures, encoded, node)


def perceptron_positions(model: Any, encoded: Encoded, node: int) -> Positions | None:
    if model._support is None or model.kernel_ is None or model._voted:
        return None
    beta, numbers = model._nodes / model._divisor, np.arange(len(model._support.corpus))
    return _kernel_positions(model, model._support, beta, numbers, encoded, node)


def _kernel_positions(
    model: Any, support: Encoded, beta: Array, numbers: Array, encoded: Encoded, node: int
) -> Positions:
    """The positions of s_t(σ) = Σ_τ β_τ(σ) k(x_τ, x_t); `numbers` are those of the structures."""
    assert model.kernel_ is not None
    corpus, numbering = support.corpus, Numbering(support.corpus)
    active = np.flatnonzero(beta.any(axis=1))
    sources = window_of(support, model.kernel_, numbering).take(active)
    targets = window_of(encoded, model.kernel_, numbering).take(np.array([node]))
    values = kernel_values(model.kernel_, sources, targets)
    here, reach = len(encoded.corpus.structures[0]), getattr(model.encoder_, "window", 0)

    def voice(k: int, label: int, share: float) -> Voice:
        owner = int(np.searchsorted(corpus.offsets, active[k], side="right")) - 1
        at = int(active[k] - corpus.offsets[owner])
        words = corpus.structures[owner].observations
        steps = range(-reach, reach + 1) if corpus.is_chain else [0]
        match = [(at + d, node + d) for d in steps if 0 <= at + d < len(words) and 0 <= node + d < here]
        favourite = model.classes_[int(beta[active[k]].argmax())]
        matched = [words[i] for i, _ in match]
        return Voice(int(numbers[owner]), at, words[at], favourite, share, match, matched)

    ones = np.ones(beta.shape[1])
    return Positions(values * beta[active], ones, np.ones(len(active), dtype=bool), voice)
