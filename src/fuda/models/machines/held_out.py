"""What machines with the marginalized kernel score on structures that they have not learned from.

Such *held-out* scores fit the calibration of probabilities, and choose c where `mixing` is None
and the parts of trees and DAGs where `parts` is None. A match of d nodes counts c^2d: with a small
c only the node itself counts, with a large one long matches drown everything else, and which is
best depends on the shape of structures and the number of labels. So machines are trained with a
few values of c, from the largest at which no number grows with the length of a match downwards,
and held-out scores tell how well each predicts, by F1 over labels other than O. On sequences the
largest c is chosen that is not clearly worse than the best, on trees and DAGs the best. Parts are
compared before, at one c: those with sides, and then the best of them without.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fuda.estimators import ConvergenceWarning
from fuda.marginalized import calibration
from fuda.marginalized.calibration import Calibration, Evidence
from fuda.marginalized.engines import make_engine
from fuda.marginalized.engines.base import Engine
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.parts import branches, parts_to_choose_from, usual_parts, without_sides
from fuda.marginalized.problem import Examples, Sources
from fuda.marginalized.support import members_of
from fuda.models.fitting.folds import TRIED, calibration_parts, some_structures
from fuda.models.machines.checks import checked_scores
from fuda.progress import without
from fuda.schemes import OUTSIDE
from fuda.selection.goals import goal_for
from fuda.storage.checkpoint import part

Array = np.ndarray
Engines = list[list[Engine] | None] | None
Learner = Any  # a `fuda.models.marginalized.MarginalizedLabeler`, which imports this module

# The values of c to choose from, as parts of the largest; close to it nothing changes much.
PARTS_OF_LARGEST = (1.0, 0.7, 0.5, 0.35)
_CLEARLY = 0.02  # worse in F1; smaller differences are noise with a few hundred structures
_FEWEST = 20  # structures from which c and parts are chosen by held-out scores
_TRIED_WITH_PARTS = 3_000  # nodes that parts are compared on; they differ by more than values of c


def rests(examples: Examples) -> list[Array]:
    """Return the structures that a calibration learns from, for each part that it holds out."""
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
        Engines for trainings on the `rests`, where these were foreseen.

    Returns
    -------
    Calibration
        The coefficients.
    """
    examples, corpus = sources.examples, sources.examples.encoded.corpus
    parts = calibration_parts(examples.sizes)
    evidence = _held_out(learner, sources, labels, amounts, parts, engines)
    members = np.concatenate(parts)
    held_out, of_members = examples.take(members).encoded, labels[corpus.nodes_of(members)]
    graph = None if corpus.shape == "dag" else held_out.corpus.graph
    pairs = calibration.pair_information(labels, corpus.graph.edges, len(learner.classes_))
    data = of_members, graph, pairs, learner.n_jobs
    fitted = calibration.fit(evidence, *data)
    if graph is None:
        return fitted
    # A CRF's scores of labelings are better than its marginals on some data, and worse on others.
    by_marginals = [] if evidence.joint is None else [calibration.fit(evidence._replace(joint=None), *data)]
    true = learner._labels_of_numbers(held_out, of_members)
    goal = goal_for(true)

    def quality(candidate: Calibration) -> float:
        predicted = learner._viterbi_labels(held_out, *candidate.labelings(evidence))
        return goal.score(goal.counts(true, learner._labels_of_numbers(held_out, predicted)))

    candidates = [candidate for one in (fitted, *by_marginals) for candidate in one.candidates()]
    return max(candidates, key=quality)


class Choice(NamedTuple):
    """c, and the parts of trees and DAGs, as given or chosen."""

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
        The largest c to choose from, or c where it is given.

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
        rough, middle = (
            _quality(learner, examples, labels, amounts, _TRIED_WITH_PARTS),
            values[len(values) // 3],
        )
        with_sides = [name for name in names if name != without_sides(name)]
        parts = max(with_sides or names, key=lambda name: rough(Choice(middle, name)))
        if with_sides:
            parts = max(parts, without_sides(parts), key=lambda name: rough(Choice(middle, name)))
    if len(values) == 1:
        return Choice(largest, parts)
    quality = _quality(learner, examples, labels, amounts, TRIED)
    found = {c: quality(Choice(c, parts)) for c in values}
    least = max(found.values()) - (0.0 if branches(corpus) else _CLEARLY)
    return Choice(max(c for c, reached in found.items() if reached >= least), parts)


def _quality(
    learner: Learner, examples: Examples, labels: Array, amounts: Array, most: int
) -> Callable[[Choice], float]:
    """Return a function that tells how well held-out scores predict the labels of `most` nodes."""
    members = some_structures(examples.sizes, most)
    nodes = examples.encoded.corpus.nodes_of(members)
    some, labels, amounts = examples.take(members), labels[nodes], amounts[nodes]
    folds = calibration_parts(some.sizes)[:3]
    known = labels[some.encoded.corpus.nodes_of(np.concatenate(folds))]
    whole: list[Sources] = []  # what was prepared for the first choice, which serves for all

    @cache
    def quality(choice: Choice) -> float:
        trial = learner._trial_copy(choice)._for_comparison()
        sources = Sources(trial._settings, some, learner.n_jobs, *whole)
        whole[:] = [sources]
        with part(f"{choice.parts} at {choice.mixing!r}, {most} nodes"), without(ConvergenceWarning):
            evidence = _held_out(trial, sources, labels, amounts, folds)
        return calibration.label_f1(known, evidence.scores.argmax(axis=1), _outside(learner))

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
) -> Evidence:
    """The scores and priors of the nodes of some parts, each by a machine trained on the rest."""
    examples, corpus = sources.examples, sources.examples.encoded.corpus
    others_of = [_rest(examples, part) for part in parts]
    if engines is None:
        engines = copy(learner)._plan_joint_training(sources, others_of, labels, amounts)
    found = []
    for number, (members, rest, own) in enumerate(zip(parts, others_of, engines, strict=True), start=1):
        others, held_out, nodes = sources.take(rest), examples.take(members), corpus.nodes_of(rest)
        alpha, _ = copy(learner)._trained(f"fold {number}", others, labels[nodes], amounts[nodes], own)
        by_others = Numbers(np.zeros(held_out.prior.nodes.shape))
        if alpha.any():
            support = members_of(others.examples, alpha)
            problem = others.take(support).problem(held_out)
            engine = make_engine(learner.engine, problem, learner.n_jobs)
            by_others = engine.scores(alpha[others.examples.encoded.corpus.nodes_of(support)])
        found.append(checked_scores(learner, by_others, held_out.encoded.corpus).doubles())
    prior = examples.take(np.concatenate(parts)).prior
    return Evidence(np.concatenate(found), prior.nodes, joint=prior.joint)
