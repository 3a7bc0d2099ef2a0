"""How several labelers decide together, chosen by what they say of data they did not learn from.

In the notation of `fuda.models.choice.combination`: the powers g make what a labeler says as sure
as it is right. Of marginals that is where their likelihood is largest; of scores, where the
likelihood of the labelings is. b and w maximize the goal, less what makes them unusual: half a
standard error of the score times the squared number of steps from values that are good on most
data. Few structures cannot tell one setting from the next, and an extreme one that is best on them
by chance is far from it on other text. Where labels are rare, likelihood and F1 disagree about how
sure a rare label must be, which is what b corrects.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from fuda.data.corpus import Corpus
from fuda.marginalized.calibration import pair_information
from fuda.models.choice.combination import Decoder
from fuda.models.choice.opinions import Opinion, sharpened
from fuda.models.likeliest import Ray, sampled
from fuda.schemes import OUTSIDE
from fuda.selection.goals import Counts, Goal
from fuda.selection.significance import standard_error

Array = np.ndarray
_POWERS = 2.0 ** np.arange(-3, 3.5, 0.5)  # of marginals
LARGEST_POWER = 64.0  # far above all that are chosen, and no probability vanishes
_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # w to choose from
_BIASES = (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # b to choose from
# Good on four corpora, whoever the members are; b where they have marginals only, or scores.
_USUAL_WEIGHT, _USUAL_BIAS, _USUAL_BIAS_OF_SCORES = 0.25, 0.5, 0.75
_STEP = 0.25, 0.5  # of the grids of w and b
_ROUNDS = 50  # samples of structures by which standard errors are found
_MOST_NODES = 30_000  # that b and w are chosen on
Said = list[Opinion]  # what a labeler, fitted to the rest, says of each part of the structures


class Tuner:
    """Chooses decoders by what labelers say of structures they did not learn from.

    Parameters
    ----------
    parts : list of Corpus
        The structures, in parts that models of their own were fitted for.
    labels : ndarray of shape (N,)
        The label numbers of all parts, −1 where not known.
    classes : list
        The labels.
    goal : Goal
        What is to be large.
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
        self.some = [_first(part, _MOST_NODES * part.size // self.starts[-1]) for part in parts]
        begun = zip(self.starts[:-1], self.some, strict=True)
        self.some_labels = np.concatenate([labels[start : start + part.size] for start, part in begun])

    def counts(self, predicted: Array) -> Array:
        """Count for the goal, structure by structure."""
        return self.count(self.labels, predicted, _offsets(self.parts))

    def power(self, said: Said) -> float:
        """The power with which what is said is likeliest."""
        if said[0].pairs is None:
            p = np.concatenate([one.nodes[: part.size] for one, part in zip(said, self.some, strict=True)])
            known = np.flatnonzero(self.some_labels >= 0)
            true = self.some_labels[known]

            def likelihood(power: float) -> float:
                return float(np.log(sharpened(p[known], power)[np.arange(len(known)), true]).sum())

            return max(_POWERS.tolist(), key=likelihood)
        few = sampled(len(self.parts[0]))
        nodes, sample = self.parts[0].nodes_of(few), self.parts[0].take(few)
        scores = said[0].nodes[nodes], said[0].pairs
        ray = Ray(sample.graph, *scores, self.labels[nodes], np.ones(len(few)), 1.0)
        return min(LARGEST_POWER, ray.likeliest(0.0))

    def untuned(self, count: int) -> Decoder:
        """The decoder of so many members that are as sure as they are right, without b and w."""
        L = len(self.classes)
        return Decoder(np.ones(count), np.zeros(L), np.zeros((L, L)), self.scheme, (True,) * count)

    def tuned(self, members: list[Said], powers: list[float]) -> tuple[Decoder, float, Array]:
        """The best decoder of what members say, its score, and the label numbers it gives.

        Scores are means over neighbours in the grid of b and w, since the largest of many is large
        by chance too. The score returned is without what unusual settings cost.
        """
        by_scores = tuple(said[0].pairs is not None for said in members)
        bias = np.zeros(len(self.classes))
        decoder = Decoder(np.array(powers), bias, self.pairs, self.scheme, by_scores)
        weights = (0.0,) if self.shape == "dag" or any(by_scores) else _WEIGHTS
        biases = (0.0,) if self.goal.name == "token accuracy" else _BIASES

        def with_settings(w: float, b: float) -> Decoder:
            bias = np.zeros(len(self.classes))
            bias[self.common] = b
            return decoder._replace(bias=bias, pairs=w * self.pairs)

        usual = _USUAL_WEIGHT if len(weights) > 1 else 0.0
        biased = _USUAL_BIAS_OF_SCORES if any(by_scores) else _USUAL_BIAS
        away = (np.array(weights) - usual) / _STEP[0], (np.array(biases) - biased) / _STEP[1]
        steps = away[0][:, None] ** 2 + (away[1] ** 2 if len(biases) > 1 else np.zeros(1))
        scores, near = np.empty(steps.shape), {}
        for (i, w), (j, b) in product(enumerate(weights), enumerate(biases)):
            counts = self._counts_of(with_settings(w, b), members)
            scores[i, j] = self.goal.score(counts)
            if steps[i, j] <= 1:  # the usual setting and those beside it; all may not fit into memory
                near[steps[i, j], i, j] = counts
        smooth = _smoothed(scores)
        top = np.unravel_index((smooth - self._error(near) * steps / 2).argmax(), smooth.shape)
        best = with_settings(weights[top[0]], biases[top[1]])
        return best, float(smooth[top]), self._decoded(best, self.parts, members)

    def _counts_of(self, decoder: Decoder, members: list[Said]) -> Array:
        """Counts for the goal on the part that decoders are chosen on."""
        return self.count(self.some_labels, self._decoded(decoder, self.some, members), _offsets(self.some))

    def _decoded(self, decoder: Decoder, parts: list[Corpus], members: list[Said]) -> Array:
        """The label numbers that a decoder gives all parts, or the first structures of each."""
        return np.concatenate(
            [
                decoder.decode(
                    part, [said[k].first(part.size) for said in members], self.classes, n_jobs=self.n_jobs
                )
                for k, part in enumerate(parts)
            ]
        )

    def _error(self, near: dict[tuple[int, int, int], Array]) -> float:
        """The mean standard error of one step in the grid, away from its usual entry."""
        usual, *others = [near[key] for key in sorted(near)]
        errors = [standard_error(self.goal, usual, other, _ROUNDS) for other in others]
        return float(np.mean(errors)) if errors else 0.0


def _smoothed(scores: Array) -> Array:
    """Half of each entry of a grid and an eighth of each neighbour, or of itself at the edge."""
    wide = np.pad(scores, 1, mode="edge")
    around: Array = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    return scores / 2 + around / 8


def _first(corpus: Corpus, nodes: int) -> Corpus:
    """The first structures of a corpus, with so many nodes; at least one."""
    count = max(1, int(np.searchsorted(corpus.offsets, nodes, side="right")) - 1)
    return corpus if count >= len(corpus) else corpus.take(np.arange(count))


def _offsets(parts: list[Corpus]) -> Array:
    """The bounds of the structures of all parts, one after another."""
    sizes = [np.diff(part.offsets) for part in parts]
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
