"""Epochs of engines that visit structures one at a time.

**Perceptron** (figure 3 of Kashima and Tsuboi, ICML 2004). The nodes t of a structure are
visited in order, with

    ŷ_t = argmax_σ S(t,σ), the first label of equal scores;
    ŷ_t ≠ y_t:   α_t(y_t) += a_t,   α_t(ŷ_t) −= a_t,   before the next node is scored.

For a structure with mistakes, the kernel with itself is computed if later nodes need it, and
its coefficients are pushed to all others afterwards; one without mistakes needs no further work.

**Large margin.** As in `fuda.training.crammer_singer`, structure by structure.
"""

from __future__ import annotations

import numpy as np

from fuda.marginalized.engines.base import Engine, Margins, PerceptronState, PlannedTraining
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.problem import Problem
from fuda.training.crammer_singer import ascend, duality_gaps

Array = np.ndarray


class OnlineEngine:
    """Base class of engines that define `push`, `structure_scores`, `all_scores` and `kappa`."""

    problem: Problem

    def prepare_visits(self, visits: Array) -> None:
        """Prepare for calls of `structure_scores` in the order of these structures."""

    def push(self, structure: int, change: Array) -> None:
        """Add `change` (nodes, L) to the coefficients of a source structure."""
        raise NotImplementedError

    def structure_scores(self, structure: int) -> Numbers:
        """Return S (nodes, L) of a target structure after all pushes so far, as a copy."""
        raise NotImplementedError

    def all_scores(self) -> Numbers:
        """Return S (N, L) of all target nodes after all pushes so far."""
        raise NotImplementedError

    def kappa(self, source: int, target: int, apart: tuple[int, int] | None = None) -> Numbers:
        """See `Engine`."""
        raise NotImplementedError

    def can_prune(self) -> bool:
        """See `Engine`; engines that approximate scores override it."""
        return False

    def plan_joint_training(
        self, planned: list[PlannedTraining], problems: list[Problem], labels: Array, amounts: Array
    ) -> list[Engine] | None:
        """See `Engine`; nothing is gained where one perceptron keeps all threads busy."""
        return None

    def perceptron_epoch(self, visits: Array, labels: Array, amounts: Array, state: PerceptronState) -> int:
        """See `Engine`."""
        self.prepare_visits(visits)
        total = 0
        for i in visits.tolist():
            nodes = self.problem.targets.nodes(i)
            scores = self.structure_scores(i)
            if state.base is not None:
                scores = scores + state.base[nodes]
            change, mistakes = self._correct(i, scores, labels[nodes], amounts[nodes])
            if mistakes:
                state.sums[:, nodes] += np.multiply.outer([1.0, state.steps], change)
                self.push(i, change)
                total += mistakes
            state.steps += 1
        return total

    def margin_epoch(
        self, visits: Array, margins: Margins, alpha: Array, random: np.random.RandomState
    ) -> Array:
        """See `Engine`."""
        self.prepare_visits(visits)
        for i in visits.tolist():
            nodes = self.problem.targets.nodes(i)
            part_margins = Margins(margins.labels[nodes], margins.bounds[nodes], margins.tolerance)
            scores, old = np.ascontiguousarray(self.structure_scores(i).doubles()), alpha[nodes].copy()
            if (
                duality_gaps(scores, old, part_margins.labels, part_margins.bounds).max()
                > part_margins.tolerance
            ):
                prior, order = self.problem.targets.prior[nodes], random.permutation(len(scores))
                kappa = self.kappa(i, i).doubles()
                ascend(kappa, prior, self.problem.label_gram, *part_margins, order, scores, alpha[nodes])
                self.push(i, alpha[nodes] - old)
        return np.ascontiguousarray(self.all_scores().doubles())

    def _correct(self, structure: int, scores: Numbers, labels: Array, amounts: Array) -> tuple[Array, int]:
        """Return the change of α (nodes, L) by the mistakes in a structure, and their number.

        `scores` (nodes, L) are overwritten.
        """
        best, mistakes = scores.doubles().argmax(axis=1), 0
        wrong = np.flatnonzero((best != labels) & (labels >= 0))
        change = np.zeros((len(labels), self.problem.label_count))
        if not len(wrong):
            return change, mistakes
        nodes, kappa = self.problem.sources.nodes(structure), None
        prior = self.problem.targets.prior[nodes]
        while len(wrong):
            t = int(wrong[0])
            change[t, labels[t]] += amounts[t]
            change[t, best[t]] -= amounts[t]
            mistakes += 1
            if t == len(labels) - 1:
                break
            kappa = self.kappa(structure, structure) if kappa is None else kappa
            later, at = slice(t + 1, None), slice(nodes.start + t, nodes.start + t + 1)
            gamma = self.problem.gamma(change[t : t + 1], at)
            scores[later] = scores[later] + kappa[t, later] * (gamma * prior[later])
            best[later] = scores[later].doubles().argmax(axis=1)
            wrong = t + 1 + np.flatnonzero((best[later] != labels[later]) & (labels[later] >= 0))
        return change, mistakes
