"""Labels by the mean of the marginals of several labelers, decoded together.

With p_m(t,σ) the marginals of labeler m and g_m its power,

    q(t,σ) = mean over m of  p_m(t,σ)^g_m / Σ_ρ p_m(t,ρ)^g_m,
    y = argmax Σ_t [ log q(t,y_t) − b(y_t) ] + w Σ_{edges p→t} m(y_p, y_t),

where m is the information of label pairs along edges (see `fuda.marginalized.calibration`), and b
is not 0 for one label only, the one outside of all segments or the most frequent. Powers maximize
the likelihood of out-of-fold marginals; b and w maximize the goal on them, less what makes them
unusual: half a standard error of the score times the squared number of steps from values that are
good on most data. Few structures cannot tell one setting from the next, and an extreme one that is
best on them by chance is far from it on other text. Where labels are rare, likelihood and F1
disagree about how sure a rare label must be, which is what b corrects.
"""

from __future__ import annotations

import inspect
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from fuda import inference
from fuda.data.corpus import Corpus
from fuda.data.labels import as_object_array
from fuda.data.structures import as_structures, as_structures_or_none
from fuda.explanations.base import Explanation
from fuda.explanations.decisions import check_question, explained
from fuda.marginalized.calibration import pair_information
from fuda.models.base import Labeler
from fuda.models.explained_combination import combined_decision
from fuda.models.labelings import best_labelings, best_of_nodes, check_count, fix_known, label_numbers
from fuda.models.labelled_data import Probabilities, structures_of
from fuda.schemes import OUTSIDE, forbid
from fuda.selection.goals import Counts, Goal
from fuda.selection.search import standard_error

Array = np.ndarray
_LEAST = 1e-6  # probability, below which logarithms are those of this value
_POWERS = 2.0 ** np.arange(-3, 3.5, 0.5)
_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # w to choose from
_BIASES = (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # b to choose from
_USUAL_WEIGHT, _USUAL_BIAS = 0.25, 0.5  # good on four corpora, whoever the members are
_ROUNDS = 50  # samples of structures by which standard errors are found
_MOST_NODES = 30_000  # that b and w are chosen on


class Decoder(NamedTuple):
    """How marginals become labels.

    Attributes
    ----------
    powers : ndarray of shape (n_members,)
        g.
    bias : ndarray of shape (n_labels,)
        b.
    pairs : ndarray of shape (n_labels, n_labels)
        w m.
    scheme : str or None
        The scheme that labels are well-formed in.
    """

    powers: Array
    bias: Array
    pairs: Array
    scheme: str | None

    def sharpened(self, marginals: list[Array]) -> Array:
        """Return the members' marginals (N, L) to their powers, as (members, N, L)."""
        return np.array([sharpened(p, g) for p, g in zip(marginals, self.powers, strict=True)])

    def mean(self, marginals: list[Array]) -> Array:
        """Return q (N, L) of the marginals (N, L) of each member."""
        return self.sharpened(marginals).mean(axis=0)

    def scored(
        self, corpus: Corpus, q: Array, classes: list[Any], known: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the node scores (N, L) and pair scores of labelings, −inf where not allowed.

        Labels must be well-formed, and those that are `known`, numbers with −1 for others.
        """
        scores, pairs = np.log(np.maximum(q, _LEAST)) - self.bias, self.pairs
        if known is not None:
            fix_known(scores, known)
        if self.scheme is not None and corpus.shape != "dag":
            pairs = forbid(scores, pairs, classes, self.scheme, corpus.graph.roots, corpus.graph.leaves)
        return scores, pairs

    def decode(
        self,
        corpus: Corpus,
        q: Array,
        classes: list[Any],
        n_jobs: int | None = None,
        known: Array | None = None,
    ) -> Array:
        """Return the label numbers (N,)."""
        scores, pairs = self.scored(corpus, q, classes, known)
        if corpus.shape == "dag":
            return scores.argmax(axis=1)
        return inference.viterbi(corpus.graph, scores, pairs, n_jobs)[0]


class Combination(Probabilities):
    """Several fitted labelers that decide together.

    Parameters
    ----------
    members : list of Labeler
        Fitted on the same labels.
    decoder : Decoder
        How their marginals become labels.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,), dtype object
        The labels.
    """

    def __init__(self, members: list[Labeler], decoder: Decoder) -> None:
        self.members, self.decoder = members, decoder
        self.classes_ = members[0].classes_

    def __repr__(self) -> str:
        return f"Combination({self.members})"

    def predict(self, X: Any, known: Any = None) -> Array:
        """Label structures.

        Parameters
        ----------
        X : list of structures
            Of the shape that the members were fitted on.
        known : list of lists, optional
            Labels that are given, one list per structure, None where the label is open.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One list of labels per structure.
        """
        structures, corpus, q = self._mean(X, known)
        if corpus is None:
            return as_object_array([[] for _ in structures])
        fixed = None if known is None else label_numbers(known, corpus, self.classes_)
        labels = self.decoder.decode(corpus, q, self.classes_.tolist(), self.members[0].n_jobs, fixed)
        named = [part.tolist() for part in corpus.split(self.classes_[labels])]
        return as_object_array(corpus.for_given(named, list))

    def predict_nbest(self, X: Any, n: int, known: Any = None) -> Array:
        """Find the n best labelings of each structure.

        Parameters
        ----------
        X : list of structures
            Of the shape that the members were fitted on.
        n : int
            How many labelings to find, at most.
        known : list of lists, optional
            Labels that are given, one list per structure, None where the label is open.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            Lists of pairs (labels, log P(y|x)), best first.
        """
        count, (structures, corpus, q) = check_count(n), self._mean(X, known)
        if corpus is None:
            return as_object_array([[([], 0.0)] for _ in structures])
        fixed = None if known is None else label_numbers(known, corpus, self.classes_)
        scores, pairs = self.decoder.scored(corpus, q, self.classes_.tolist(), fixed)
        how = count, self.classes_, self.members[0].n_jobs
        if corpus.shape == "dag":
            found = best_of_nodes(corpus, scores, *how)
        else:
            found = best_labelings(corpus.graph, scores, pairs, *how)
        return as_object_array(corpus.for_given(found, lambda: [([], 0.0)]))

    def predict_marginals(self, X: Any, known: Any = None) -> Array:
        """Compute the mean of the members' P(y_t = label) for every node t.

        Parameters
        ----------
        X : list of structures
            Of the shape that the members were fitted on.
        known : list of lists, optional
            Labels that are given, one list per structure, None where the label is open.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One array of shape (n_nodes, n_labels) per structure; columns as in `classes_`.
        """
        structures, corpus, q = self._mean(X, known)
        if corpus is None:
            return as_object_array([q for _ in structures])
        return as_object_array(corpus.for_given(corpus.split(q), lambda: q[:0]))

    def explain(self, x: Any, node: int, top: int = 5, known: Any = None) -> Explanation:
        """Explain the label that `predict` gives a node, against the best other one.

        What a member itself goes by, its own `explain` tells: ``members[0].explain(x, node)``.

        Parameters
        ----------
        x : structure
            The structure.
        node : int
            The node of x whose label is explained.
        top : int, default=5
            How many contributions of each kind to list; all of them add up to the difference.
        known : list, optional
            Labels of x that are given, None where the label is open.

        Returns
        -------
        Explanation
            Of `fuda.explanations`; ``print`` shows it.
        """
        structures = as_structures([x])
        check_question(structures[0], node, top)
        given = None if known is None else [known]
        return explained(combined_decision(self, Corpus(structures), given), node, top)

    def _mean(self, X: Any, known: Any = None) -> tuple[list[Any], Corpus | None, Array]:
        """The structures, those with nodes as a corpus, and q (N, L) given the known labels."""
        structures = as_structures_or_none(structures_of(X))
        given: list[Any] = [[] if structure is None else structure for structure in structures]
        if not any(map(len, given)):
            return given, None, np.empty((0, len(self.classes_)))
        corpus, q = Corpus(structures), self.decoder.mean(self.marginals(given, known))
        if known is not None:
            labels = label_numbers(known, corpus, self.classes_)
            q[labels >= 0] = np.eye(len(self.classes_))[labels[labels >= 0]]
        return given, corpus, q

    def marginals(self, X: list[Any], known: Any = None) -> list[Array]:
        """Return the marginals (N, L) of each member."""
        return [marginals_over(member, X, self.classes_, known) for member in self.members]


def marginals_over(labeler: Any, X: list[Any], classes: Any, known: Any = None) -> Array:
    """The marginals (N, L) of a labeler over `classes`, 0 for those it does not know.

    Labels that are known are taken into account by labelers that can.
    """
    number = {label: k for k, label in enumerate(classes)}
    takes_known = "known" in inspect.signature(labeler.predict_marginals).parameters
    given = {"known": known} if known is not None and takes_known else {}
    own = np.concatenate(list(labeler.predict_marginals(X, **given)))
    found = np.zeros((len(own), len(number)))
    found[:, [number[label] for label in labeler.classes_]] = own
    return found


def sharpened(p: Array, power: float) -> Array:
    """The distributions with probabilities ∝ p^power."""
    raised = np.maximum(p, _LEAST) ** power
    quotient: Array = raised / raised.sum(axis=1, keepdims=True)
    return quotient


class Tuner:
    """Chooses decoders by out-of-fold marginals of structures.

    Parameters
    ----------
    corpus : Corpus
        The structures.
    labels : ndarray of shape (N,)
        Their label numbers, −1 where not known.
    classes : list
        The labels.
    goal : Goal
        What is to be large.
    """

    def __init__(
        self, corpus: Corpus, labels: Array, classes: list[Any], goal: Goal, n_jobs: int | None
    ) -> None:
        self.corpus, self.labels, self.classes, self.goal, self.n_jobs = corpus, labels, classes, goal, n_jobs
        self.count: Counts = goal.counter(classes)
        self.is_chain, known = corpus.is_chain, labels[labels >= 0]
        self.scheme = goal.scheme if corpus.is_chain else None
        self.pairs = pair_information(labels, corpus.graph.edges, len(classes))
        most = int(np.bincount(known, minlength=len(classes)).argmax())
        self.common = classes.index(OUTSIDE) if OUTSIDE in classes else most
        some = max(1, int(np.searchsorted(corpus.offsets, _MOST_NODES, side="right")) - 1)
        self.part = corpus if some >= len(corpus) else corpus.take(np.arange(some))

    def counts(self, predicted: Array) -> Array:
        """Count for the goal, structure by structure."""
        return self.count(self.labels, predicted, self.corpus.offsets)

    def power(self, p: Array) -> float:
        """The power of marginals (N, L) with the largest likelihood."""
        known = np.flatnonzero(self.labels[: self.part.size] >= 0)
        true = self.labels[known]

        def likelihood(power: float) -> float:
            return float(np.log(sharpened(p[known], power)[np.arange(len(known)), true]).sum())

        return max(_POWERS.tolist(), key=likelihood)

    def tuned(self, marginals: list[Array], powers: list[float]) -> tuple[Decoder, float, Array]:
        """The best decoder of members' marginals, its score, and the label numbers it gives.

        Scores are means over neighbours in the grid of b and w, since the largest of many is large
        by chance too. The score returned is without what unusual settings cost.
        """
        decoder = Decoder(np.array(powers), np.zeros(len(self.classes)), self.pairs, self.scheme)
        q = decoder.mean(marginals)
        weights = (0.0,) if self.corpus.shape == "dag" else _WEIGHTS
        biases = (0.0,) if self.goal.name == "token accuracy" else _BIASES

        def with_settings(w: float, b: float) -> Decoder:
            bias = np.zeros(len(self.classes))
            bias[self.common] = b
            return decoder._replace(bias=bias, pairs=w * self.pairs)

        usual = _nearest(weights, _USUAL_WEIGHT), _nearest(biases, _USUAL_BIAS)
        steps = (np.arange(len(weights))[:, None] - usual[0]) ** 2 + (np.arange(len(biases)) - usual[1]) ** 2
        scores, near = np.empty(steps.shape), {}
        for (i, w), (j, b) in product(enumerate(weights), enumerate(biases)):
            counts = self._counts_of(with_settings(w, b), q)
            scores[i, j] = self.goal.score(counts)
            if steps[i, j] <= 1:  # the usual setting and those beside it; all may not fit into memory
                near[steps[i, j], i, j] = counts
        smooth = _smoothed(scores)
        top = np.unravel_index((smooth - self._error(near) * steps / 2).argmax(), smooth.shape)
        best = with_settings(weights[top[0]], biases[top[1]])
        return best, float(smooth[top]), best.decode(self.corpus, q, self.classes, self.n_jobs)

    def _counts_of(self, decoder: Decoder, q: Array) -> Array:
        """Counts for the goal on the part that decoders are chosen on."""
        size = self.part.size
        predicted = decoder.decode(self.part, q[:size], self.classes, self.n_jobs)
        return self.count(self.labels[:size], predicted, self.part.offsets)

    def _error(self, near: dict[tuple[int, int, int], Array]) -> float:
        """The mean standard error of one step in the grid, away from its usual entry."""
        usual, *others = [near[key] for key in sorted(near)]
        errors = [standard_error(self.goal, usual, other, _ROUNDS) for other in others]
        return float(np.mean(errors)) if errors else 0.0


def _nearest(values: tuple[float, ...], usual: float) -> int:
    """The number of the value that is nearest to the usual one."""
    return int(np.abs(np.array(values) - usual).argmin())


def _smoothed(scores: Array) -> Array:
    """Half of each entry of a grid and an eighth of each neighbour, or of itself at the edge."""
    wide = np.pad(scores, 1, mode="edge")
    around: Array = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    return scores / 2 + around / 8
