"""Decisions of models with the marginalized kernel, for explanations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from fuda import inference
from fuda.data.encoding import Encoded
from fuda.explanations.base import Contribution
from fuda.explanations.decisions import Decision, Labelings, Pointwise, pairs
from fuda.explanations.positions import Positions
from fuda.marginalized import memory
from fuda.marginalized.calibration import DecisionInputs
from fuda.marginalized.explain import Part, positions_of
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.priors import Prior
from fuda.marginalized.problem import Settings
from fuda.marginalized.support import Support
from fuda.models.labelings import fix_known

Array = np.ndarray


def marginalized_decision(model: Any, encoded: Encoded, prior: Any = None, known: Any = None) -> Decision:
    """Return the decision of a model with the marginalized kernel about one structure."""
    corpus, classes = encoded.corpus, model.classes_.tolist()
    prior_of_x = model._prior_of(corpus, None if prior is None else [prior])
    scores = model._scores_by(model._support, encoded, prior_of_x)
    inputs = model._inputs_with_memory(encoded, prior_of_x, scores)
    about = corpus.structures[0], classes, model._decode(encoded, inputs, known)
    known_numbers = np.full(corpus.size, -1)
    if known is not None:
        known_numbers = model._label_numbers(known, corpus)
    calibration = model._calibration
    if model._decoding == "posterior":
        scale = calibration.point[0] if inputs.memory.any() else None
        positions = _marginalized_positions(model, encoded, prior_of_x, scores, scale)

        def values(node: int) -> Array:
            scores_of_node = positions(node).shares.sum(axis=0)
            fix_known(scores_of_node[None], known_numbers[[node]])
            return scores_of_node

        def terms(node: int, a: int, b: int, top: int) -> list[Contribution]:
            return positions(node).terms(a, b, node, top)

        return Pointwise(*about, "score", values, terms, positions)
    table, transitions = model._constrained(corpus, *calibration.labelings(inputs), known)
    positions = _marginalized_positions(
        model, encoded, prior_of_x, scores, calibration.labeling_coefficients[0]
    )
    log_prior, _ = calibration.labelings(
        DecisionInputs(np.zeros_like(prior_of_x.nodes), prior_of_x.nodes, joint=prior_of_x.joint)
    )

    def best(scores: Array) -> Array:
        return inference.viterbi(corpus.graph, scores, transitions)[0]

    def node_terms(node: int, a: int, b: int, top: int) -> list[Contribution]:
        contributions = positions(node).terms(a, b, node, top)  # the last one is that of the prior
        by_prior = contributions[-1]
        by_prior = replace(by_prior, value=by_prior.value + float(log_prior[node, a] - log_prior[node, b]))
        if (
            calibration.by_labelings and prior_of_x.joint is not None
        ):  # the marginals in the text contain these
            by_prior = replace(by_prior, text=f"{by_prior.text}, apart from its transitions")
        return [*contributions[:-1], by_prior]

    contexts = pairs(corpus.graph.heads, transitions)
    return Labelings(*about, "score of the best labeling", table, contexts, best, node_terms, positions)


def _marginalized_positions(
    model: Any, encoded: Encoded, prior: Prior, scores: Numbers, scale: float | None
) -> Callable[[int], Positions]:
    """The support positions of a node: for S, or for `scale` S / max |S| plus the memory."""
    structure, classes = encoded.corpus.structures[0], model.classes_.tolist()

    def parts(supports: list[Support], settings: Settings, *rest: Any) -> list[Part]:
        engines = (model._support_engine(support, encoded, prior, settings) for support in supports)
        return [
            Part(engine, support.alpha, support.examples.encoded.corpus.structures, *rest)
            for engine, support in zip(engines, supports, strict=True)
        ]

    def positions(node: int) -> Positions:
        node_scores, node_prior = scores[[node]], prior.nodes[node]
        factor, exponent = 1.0, 0
        if scale is not None:
            largest = float(np.abs(node_scores.doubles()).max())
            factor = scale / largest if largest else 1.0
            exponent = 0 if node_scores.exponents is None else int(node_scores.exponents.max())
        all_parts = parts(model._support, model._settings, factor, exponent)
        memory_factor = node_prior / np.maximum(node_prior, memory.LEAST)
        all_parts += parts(model._memory, model._memory_settings, memory_factor, 0, False)
        return positions_of(all_parts, classes, structure, node, node_prior)

    return cache(positions)
