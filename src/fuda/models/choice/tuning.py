"""Decoders of several labelers, tuned on their opinions about data they did not learn from.

In the notation of `fuda.models.choice.combination`: the powers g calibrate the opinions of a
labeler. They maximize the likelihood of its marginals, or that of labelings under its scores. b
and w maximize the goal minus a penalty: half a standard error of the score times the squared
number of steps from values that are good on most data. A few structures cannot distinguish one
setting from the next, and an extreme setting that is best on them by chance may be far from the
best on other text. Where labels are rare, likelihood and F1 disagree about how probable a rare
label must be to be predicted, which b corrects.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from fuda.data.corpus import Corpus
from fuda.marginalized.calibration import pair_information
from fuda.models.choice.combination import Decoder
from fuda.models.choice.opinions import Opinion, sharpened
from fuda.models.likeliest import ScaledLoss, sampled
from fuda.schemes import OUTSIDE
from fuda.selection.goals import Counts, Goal
from fuda.selection.significance import standard_error

Array = np.ndarray
# The powers g of marginals to choose from.
_POWERS = 2.0 ** np.arange(-3, 3.5, 0.5)
# The largest power: far above all that are chosen, and no probability becomes 0.
LARGEST_POWER = 64.0
# The values of w and b to choose from, and the steps of these grids.
_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_BIASES = (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
_STEP = 0.25, 0.5
# Good on four corpora, whatever the members: w, b if all have marginals only, b if some have
# scores.
_USUAL_WEIGHT, _USUAL_BIAS, _USUAL_BIAS_OF_SCORES = 0.25, 0.5, 0.75
# The number of bootstrap samples of structures from which standard errors are estimated.
_ROUNDS = 50
# b and w are chosen on about this many nodes at most.
_MOST_NODES = 30_000
# The opinions of a labeler about each part of the structures, after learning from the others.
Opinions = list[Opinion]


class Tuner:
    """Chooses decoders by the opinions of labelers about structures they did not learn from.

    Parameters
    ----------
    parts : list of Corpus
        The structures, in parts; the opinions about each part are those of separate models.
    labels : ndarray of shape (N,)
        The label numbers of all parts, −1 where not known.
    classes : list
        The labels.
    goal : Goal
        The objective.
    n_jobs : int or None
        Threads.
    """

    def __init__(
        self, parts: list[Corpus], labels: Array, classes: list[Any], goal: Goal, n_jobs: int | None
    ) -> None:
        self.parts, self.labels, self.classes, self.goal, self.n_jobs = parts, labels, classes, goal, n_jobs
        self.count: Counts = goal.counter(classes)
        self.shape, known = parts[0].shape, labels[labels >= 0]
        self.scheme = goal.scheme if parts[0].is_chain else None
        self.starts = np.cumsum([0, *(part.size for part in parts)])
        edges = [part.graph.edges + start for part, start in zip(parts, self.starts[:-1], strict=True)]
        self.pairs = pair_information(labels, np.concatenate(edges), len(classes))
        most = int(np.bincount(known, minlength=len(classes)).argmax())
        self.common = classes.index(OUTSIDE) if OUTSIDE in classes else most
        self.sample = [_first(part, _MOST_NODES * part.size // self.starts[-1]) for part in parts]
        starts = zip(self.starts[:-1], self.sample, strict=True)
        self.sample_labels = np.concatenate([labels[start : start + part.size] for start, part in starts])

    def counts(self, predicted: Array) -> Array:
        """The counts of the goal, structure by structure."""
        return self.count(self.labels, predicted, _offsets(self.parts))

    def power(self, opinions: Opinions) -> float:
        """The power of largest likelihood."""
        if opinions[0].pairs is None:
            both = zip(opinions, self.sample, strict=True)
            p = np.concatenate([opinion.nodes[: part.size] for opinion, part in both])
            known = np.flatnonzero(self.sample_labels >= 0)
            true = self.sample_labels[known]

            def likelihood(power: float) -> float:
                return float(np.log(sharpened(p[known], power)[np.arange(len(known)), true]).sum())

            return max(_POWERS.tolist(), key=likelihood)
        few = sampled(len(self.parts[0]))
        nodes, sample = self.parts[0].nodes_of(few), self.parts[0].take(few)
        scores = opinions[0].nodes[nodes], opinions[0].pairs
        loss = ScaledLoss(sample.graph, *scores, self.labels[nodes], np.ones(len(few)), 1.0)
        return min(LARGEST_POWER, loss.likeliest(0.0))

    def untuned(self, count: int) -> Decoder:
        """The decoder of `count` members with powers of 1, without b and w."""
        L = len(self.classes)
        return Decoder(np.ones(count), np.zeros(L), np.zeros((L, L)), self.scheme, (True,) * count)

    def tuned(self, members: list[Opinions], powers: list[float]) -> tuple[Decoder, float, Array]:
        """The best decoder of the members' opinions, its score, and the label numbers it predicts.

        Scores are means over neighbours in the grid of b and w, since the largest of many scores
        is partly due to chance. The returned score does not include the penalty.
        """
        by_scores = tuple(opinions[0].pairs is not None for opinions in members)
        bias = np.zeros(len(self.classes))
        decoder = Decoder(np.array(powers), bias, self.pairs, self.scheme, by_scores)
        weights = (0.0,) if self.shape == "dag" or any(by_scores) else _WEIGHTS
        biases = (0.0,) if self.goal.name == "token accuracy" else _BIASES

        def with_settings(w: float, b: float) -> Decoder:
            bias = np.zeros(len(self.classes))
            bias[self.common] = b
            return decoder._replace(bias=bias, pairs=w * self.pairs)

        usual_weight = _USUAL_WEIGHT if len(weights) > 1 else 0.0
        usual_bias = _USUAL_BIAS_OF_SCORES if any(by_scores) else _USUAL_BIAS
        steps_of_w = (np.array(weights) - usual_weight) / _STEP[0]
        steps_of_b = (np.array(biases) - usual_bias) / _STEP[1]
        steps = steps_of_w[:, None] ** 2 + (steps_of_b**2 if len(biases) > 1 else np.zeros(1))
        scores, near_usual = np.empty(steps.shape), {}
        for (i, w), (j, b) in product(enumerate(weights), enumerate(biases)):
            counts = self._sample_counts(with_settings(w, b), members)
            scores[i, j] = self.goal.score(counts)
            if steps[i, j] <= 1:  # the usual setting and its neighbours; all may not fit into memory
                near_usual[steps[i, j], i, j] = counts
        smooth = _smoothed(scores)
        top = np.unravel_index((smooth - self._error(near_usual) * steps / 2).argmax(), smooth.shape)
        best = with_settings(weights[top[0]], biases[top[1]])
        return best, float(smooth[top]), self._decoded(best, self.parts, members)

    def _sample_counts(self, decoder: Decoder, members: list[Opinions]) -> Array:
        """The counts of the goal on the sample that decoders are chosen on."""
        predicted = self._decoded(decoder, self.sample, members)
        return self.count(self.sample_labels, predicted, _offsets(self.sample))

    def _decoded(self, decoder: Decoder, parts: list[Corpus], members: list[Opinions]) -> Array:
        """The label numbers that a decoder predicts for all parts, or for samples of them."""
        predicted = []
        for k, part in enumerate(parts):
            opinions = [of_member[k].first(part.size) for of_member in members]
            predicted.append(decoder.decode(part, opinions, self.classes, n_jobs=self.n_jobs))
        return np.concatenate(predicted)

    def _error(self, near_usual: dict[tuple[int, int, int], Array]) -> float:
        """The mean standard error of the score's change by one step from the usual setting."""
        usual, *others = [near_usual[key] for key in sorted(near_usual)]
        errors = [standard_error(self.goal, usual, other, _ROUNDS) for other in others]
        return float(np.mean(errors)) if errors else 0.0


def _smoothed(scores: Array) -> Array:
    """Half of each entry of a grid and an eighth of each neighbour, or of itself at the edge."""
    wide = np.pad(scores, 1, mode="edge")
    around: Array = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    return scores / 2 + around / 8


def _first(corpus: Corpus, nodes: int) -> Corpus:
    """The first structures of a corpus, with about so many nodes; at least one."""
    count = max(1, int(np.searchsorted(corpus.offsets, nodes, side="right")) - 1)
    return corpus if count >= len(corpus) else corpus.take(np.arange(count))


def _offsets(parts: list[Corpus]) -> Array:
    """The bounds of the structures of all parts, one after another."""
    sizes = [np.diff(part.offsets) for part in parts]
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
