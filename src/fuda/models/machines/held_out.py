"""Held-out scores of models with the marginalized kernel.

These are the scores of structures that a model has not learned from. They are used to calibrate
probabilities, and to choose c where `mixing` is None and the parts of trees and DAGs where `parts`
is None. A match of d nodes has the weight c^2d: with a small c only the node itself matters, with
a large c long matches outweigh everything else, and the best value depends on the shape of
structures and the number of labels. So models are trained with a few values of c, from the largest
one at which no number grows with the length of a match downwards, and compared by the F1 of
held-out scores over labels other than O. On sequences the largest c is chosen that is not clearly
worse than the best, on trees and DAGs the best. Parts are compared before that, at one c: those
with sides, and then the best of them with the same parts without sides.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fuda.marginalized import calibration
from fuda.marginalized.calibration import Calibration, DecisionInputs
from fuda.marginalized.engines import Engine, make_engine
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.parts import branches, parts_to_choose_from, usual_parts, without_sides
from fuda.marginalized.problem import Examples, Sources
from fuda.marginalized.support import members_of
from fuda.models.fitting.folds import TRIED, calibration_parts, some_structures
from fuda.models.machines.checks import checked_scores
from fuda.progress import without
from fuda.runtime.estimators import ConvergenceWarning
from fuda.schemes import OUTSIDE
from fuda.selection.goals import goal_for
from fuda.storage.checkpoint import part

Array = np.ndarray
Engines = list[list[Engine] | None] | None
Learner = Any  # a `fuda.models.marginalized.MarginalizedLabeler`, which imports this module

# The values of c to choose from, as fractions of the largest; values close to it differ little.
PARTS_OF_LARGEST = (1.0, 0.7, 0.5, 0.35)
# A smaller difference of F1 is noise with a few hundred structures.
_CLEARLY = 0.02
# With fewer structures, c and parts are not chosen by held-out scores.
_FEWEST = 20
# The approximate number of nodes that parts are compared on; they differ more than values of c.
_TRIED_WITH_PARTS = 3_000


def training_parts(examples: Examples) -> list[Array]:
    """Return the structures to learn from for the calibration on each held-out part."""
    return [_rest(examples, part) for part in calibration_parts(examples.sizes)]


def calibrated(
    learner: Learner, sources: Sources, labels: Array, amounts: Array, engines: Engines = None
) -> Calibration:
    """Return the calibration that fits held-out scores best.

    Parameters
    ----------
    learner : MarginalizedLabeler
        A learner, with its kernel and c resolved.
    sources : Sources
        The training structures.
    labels : array (N,)
        Label numbers, −1 where not known.
    amounts : array (N,)
        Weights of nodes.
    engines : list of lists of Engine, optional
        Engines for trainings on the `training_parts`, if these were planned together.

    Returns
    -------
    Calibration
        The coefficients.
    """
    examples, corpus = sources.examples, sources.examples.encoded.corpus
    parts = calibration_parts(examples.sizes)
    inputs = _held_out(learner, sources, labels, amounts, parts, engines)
    members = np.concatenate(parts)
    held_out, held_out_labels = examples.take(members).encoded, labels[corpus.nodes_of(members)]
    graph = None if corpus.shape == "dag" else held_out.corpus.graph
    pairs = calibration.pair_information(labels, corpus.graph.edges, len(learner.classes_))
    data = held_out_labels, graph, pairs, learner.n_jobs
    fitted = calibration.fit(inputs, *data)
    if graph is None:
        return fitted
    # A CRF's scores of labelings are better than its marginals on some data, and worse on others.
    by_marginals = [] if inputs.joint is None else [calibration.fit(inputs._replace(joint=None), *data)]
    true = learner._labels_of_numbers(held_out, held_out_labels)
    goal = goal_for(true)

    def quality(candidate: Calibration) -> float:
        predicted = learner._viterbi_labels(held_out, *candidate.labelings(inputs))
        return goal.score(goal.counts(true, learner._labels_of_numbers(held_out, predicted)))

    calibrations = fitted, *by_marginals
    candidates = [candidate for one in calibrations for candidate in one.candidates()]
    return max(candidates, key=quality)


class Choice(NamedTuple):
    """c, and the parts of trees and DAGs, as set by parameters or chosen."""

    mixing: float
    parts: str


def chosen(learner: Learner, examples: Examples, labels: Array, amounts: Array, largest: float) -> Choice:
    """Return the c and the parts whose held-out scores predict labels best.

    Parameters
    ----------
    learner : MarginalizedLabeler
        A learner, with its kernel resolved.
    examples : Examples
        The training structures.
    labels : array (N,)
        Label numbers, −1 where not known.
    amounts : array (N,)
        Weights of nodes.
    largest : float
        The largest c to choose from; c itself if the parameter `mixing` sets it.

    Returns
    -------
    Choice
        The largest c, and the parts of the papers, where there are too few structures to choose,
        or where c makes no difference.
    """
    corpus = examples.encoded.corpus
    names = [learner.parts] if learner.parts else parts_to_choose_from(corpus)
    values = [share * largest for share in PARTS_OF_LARGEST] if learner.mixing is None else [largest]
    # Where no node has a neighbour, c is a factor of all scores.
    no_choice = learner._is_scale_free and corpus.is_chain and examples.sizes.max() == 1
    if no_choice or len(examples.sizes) < _FEWEST or len(names) * len(values) == 1:
        return Choice(largest, usual_parts(corpus.shape, learner.parts))
    parts = names[0]
    if len(names) > 1:
        rough = _quality(learner, examples, labels, amounts, _TRIED_WITH_PARTS)
        middle = values[len(values) // 3]
        with_sides = [name for name in names if name != without_sides(name)]
        parts = max(with_sides or names, key=lambda name: rough(Choice(middle, name)))
        if with_sides:
            parts = max(parts, without_sides(parts), key=lambda name: rough(Choice(middle, name)))
    if len(values) == 1:
        return Choice(largest, parts)
    quality = _quality(learner, examples, labels, amounts, TRIED)
    qualities = {c: quality(Choice(c, parts)) for c in values}
    least = max(qualities.values()) - (0.0 if branches(corpus) else _CLEARLY)
    return Choice(max(c for c, value in qualities.items() if value >= least), parts)


def _quality(
    learner: Learner, examples: Examples, labels: Array, amounts: Array, most: int
) -> Callable[[Choice], float]:
    """Return a function that measures the F1 of held-out scores of about `most` nodes."""
    members = some_structures(examples.sizes, most)
    nodes = examples.encoded.corpus.nodes_of(members)
    sample, labels, amounts = examples.take(members), labels[nodes], amounts[nodes]
    folds = calibration_parts(sample.sizes)[:3]
    known = labels[sample.encoded.corpus.nodes_of(np.concatenate(folds))]
    previous: list[Sources] = []  # sources of the previous choice, whose arrays can be shared

    @cache
    def quality(choice: Choice) -> float:
        trial = learner._trial_copy(choice)._for_comparison()
        sources = Sources(trial._settings, sample, learner.n_jobs, *previous)
        previous[:] = [sources]
        with part(f"{choice.parts} at {choice.mixing!r}, {most} nodes"), without(ConvergenceWarning):
            inputs = _held_out(trial, sources, labels, amounts, folds)
        return calibration.label_f1(known, inputs.scores.argmax(axis=1), _outside(learner))

    return quality


def _outside(learner: Learner) -> int | None:
    """The number of the label O, if there is one."""
    names = learner.classes_.tolist()
    return names.index(OUTSIDE) if OUTSIDE in names else None


def _rest(examples: Examples, part: Array) -> Array:
    """All structures but those of a part."""
    return np.setdiff1d(np.arange(len(examples.sizes)), part)


def _held_out(
    learner: Learner,
    sources: Sources,
    labels: Array,
    amounts: Array,
    parts: list[Array],
    engines: Engines = None,
) -> DecisionInputs:
    """The scores and priors of the nodes of some parts, each by a model trained on the others."""
    examples, corpus = sources.examples, sources.examples.encoded.corpus
    other_parts = [_rest(examples, part) for part in parts]
    if engines is None:
        engines = copy(learner)._plan_joint_training(sources, other_parts, labels, amounts)
    scores = []
    folds = zip(parts, other_parts, engines, strict=True)
    for number, (members, rest, fold_engines) in enumerate(folds, start=1):
        others, held_out, nodes = sources.take(rest), examples.take(members), corpus.nodes_of(rest)
        alpha, _ = copy(learner)._trained(
            f"fold {number}", others, labels[nodes], amounts[nodes], fold_engines
        )
        by_others = Numbers(np.zeros(held_out.prior.nodes.shape))
        if alpha.any():
            support = members_of(others.examples, alpha)
            problem = others.take(support).problem(held_out)
            engine = make_engine(learner.engine, problem, learner.n_jobs)
            by_others = engine.scores(alpha[others.examples.encoded.corpus.nodes_of(support)])
        scores.append(checked_scores(learner, by_others, held_out.encoded.corpus).doubles())
    prior = examples.take(np.concatenate(parts)).prior
    return DecisionInputs(np.concatenate(scores), prior.nodes, joint=prior.joint)
