"""Combinations: several labelers that predict labels together.

A labeler with scores of nodes and of label pairs contributes its score of a labeling, F_m(y) =
Σ_t s_m(t,y_t) + Σ_{edges p→t} A_m(y_p,y_t); any other one contributes its marginals p_m(t,σ). With
M labelers, R of them of the second kind, and g_m the power of labeler m,

    q(t,σ) = mean over the R of  p_m(t,σ)^g_m / Σ_ρ p_m(t,ρ)^g_m,
    y = argmax  1/M Σ_m g_m F_m(y) + R/M Σ_t log q(t,y_t)
                − Σ_t b(y_t) + w Σ_{edges p→t} m(y_p, y_t),

where m is the information of label pairs along edges (see `fuda.marginalized.calibration`), which
is needed only if there is no F_m, and b is not 0 for a single label, the one outside of all
segments or the most frequent. `fuda.models.choice.tuning` chooses g, b and w.

Scores of labelings are added rather than marginals, since neighbouring labels depend on each
other: decoded from its marginals, even a single model is one to two points of entity F1 behind its
own Viterbi labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fuda import inference
from fuda.data.corpus import Corpus
from fuda.data.labels import as_object_array
from fuda.data.structures import as_structures, as_structures_or_none
from fuda.explanations.base import Explanation
from fuda.explanations.decisions import check_question, explained
from fuda.models.base import Labeler
from fuda.models.choice.opinions import LEAST, Opinion, marginals_over, scores_over, sharpened
from fuda.models.explained.combination import combined_decision
from fuda.models.fitting.labelled_data import Probabilities, structures_of
from fuda.models.labelings import best_labelings, best_of_nodes, check_count, fix_known, label_numbers
from fuda.schemes import forbid

__all__ = ["Combination"]

Array = np.ndarray


class Decoder(NamedTuple):
    """How the opinions of several labelers are combined into labels.

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
    by_scores : tuple of bool
        For each member whether F_m is used, not its marginals; () if all use marginals.
    """

    powers: Array
    bias: Array
    pairs: Array
    scheme: str | None
    by_scores: tuple[bool, ...] = ()

    def weighted(self, opinions: list[Opinion]) -> list[Opinion]:
        """Return what each member adds to scores of labelings or, without pairs, to q."""
        M, R = len(opinions), sum(opinion.pairs is None for opinion in opinions)
        return [
            Opinion(sharpened(opinion.nodes, g) / R) if opinion.pairs is None else opinion.times(g / M)
            for opinion, g in zip(opinions, self.powers, strict=True)
        ]

    def scored(
        self, corpus: Corpus, opinions: list[Opinion], classes: list[Any], known: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the node scores (N, L) and pair scores of labelings, −inf where not allowed.

        Labels must be well-formed, and those that are `known`, numbers with −1 for others.
        """
        weighted = self.weighted(opinions)
        shares = [opinion.nodes for opinion in weighted if opinion.pairs is None]
        scores = -np.tile(self.bias, (corpus.size, 1))
        if shares:
            scores += len(shares) / len(weighted) * np.log(np.maximum(sum(shares), LEAST))
        pairs = self.pairs
        for opinion in weighted:
            if opinion.pairs is not None:
                scores += opinion.nodes
                pairs = pairs + opinion.pairs
        return self._constrained(corpus, scores, pairs, classes, known)

    def _constrained(
        self, corpus: Corpus, scores: Array, pairs: Array, classes: list[Any], known: Array | None
    ) -> tuple[Array, Array]:
        """Scores (changed in place) and pairs, −inf where scheme or known labels forbid."""
        if known is not None:
            fix_known(scores, known)
        if self.scheme is not None and corpus.shape != "dag":
            pairs = forbid(scores, pairs, classes, self.scheme, corpus.graph.roots, corpus.graph.leaves)
        return scores, pairs

    def decode(
        self,
        corpus: Corpus,
        opinions: list[Opinion],
        classes: list[Any],
        known: Array | None = None,
        n_jobs: int | None = None,
    ) -> Array:
        """Return the label numbers (N,)."""
        scores, pairs = self.scored(corpus, opinions, classes, known)
        if corpus.shape == "dag":
            return scores.argmax(axis=1)
        return inference.viterbi(corpus.graph, scores, pairs, n_jobs)[0]

    def marginals(
        self,
        corpus: Corpus,
        opinions: list[Opinion],
        classes: list[Any],
        known: Array | None = None,
        n_jobs: int | None = None,
    ) -> Array:
        """Return the mean of the marginals of all members (N, L), each to its power."""
        total = np.zeros((corpus.size, len(classes)))
        for opinion, power in zip(opinions, self.powers, strict=True):
            if opinion.pairs is None:
                total += sharpened(opinion.nodes, power)
            else:
                nodes, pairs = opinion.times(power)
                assert pairs is not None
                constrained = self._constrained(corpus, nodes, pairs, classes, known)
                total += inference.marginals(corpus.graph, *constrained, n_jobs=n_jobs)[1]
        return total / len(opinions)


class Combination(Probabilities):
    """Several fitted labelers that decide together.

    Parameters
    ----------
    members : list of Labeler
        Fitted on the same labels.
    decoder : Decoder
        How their opinions are combined.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,), dtype object
        The labels.

    Examples
    --------
    >>> from fuda import CRF, MEMM
    >>> X, y = [["a", "b"], ["b"], ["b", "a"]], [["A", "B"], ["B"], ["B", "A"]]
    >>> members = [CRF().fit(X, y), MEMM().fit(X, y)]
    >>> decoder = Decoder(np.ones(2), np.zeros(2), np.zeros((2, 2)), None)
    >>> Combination(members, decoder).predict([["a", "b"]])[0]
    ['A', 'B']
    """

    def __init__(self, members: list[Labeler], decoder: Decoder) -> None:
        self.members, self.decoder = members, decoder
        self.classes_ = members[0].classes_

    def __repr__(self) -> str:
        return f"Combination({self.members})"

    def predict(self, X: Any, *, known: Any = None) -> Array:
        """Label structures.

        Parameters
        ----------
        X : list of structures
            Of the shape that the members were fitted on.
        known : list of lists, optional
            Labels that are known, one list per structure, None where the label is open.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One list of labels per structure.
        """
        structures, corpus = self._corpus(X)
        if corpus is None:
            return as_object_array([[] for _ in structures])
        labels = self.decoder.decode(*self._decoder_arguments(corpus, known), self.members[0].n_jobs)
        named = [part.tolist() for part in corpus.split(self.classes_[labels])]
        return as_object_array(corpus.with_empty(named, list))

    def predict_nbest(self, X: Any, n: int, *, known: Any = None) -> Array:
        """Find the n best labelings of each structure.

        Parameters
        ----------
        X : list of structures
            Of the shape that the members were fitted on.
        n : int
            How many labelings to find, at most.
        known : list of lists, optional
            Labels that are known, one list per structure, None where the label is open.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            Lists of pairs (labels, log P(y|x)), best first.
        """
        count, (structures, corpus) = check_count(n), self._corpus(X)
        if corpus is None:
            return as_object_array([[([], 0.0)] for _ in structures])
        scores, pairs = self.decoder.scored(*self._decoder_arguments(corpus, known))
        settings = count, self.classes_, self.members[0].n_jobs
        if corpus.shape == "dag":
            best = best_of_nodes(corpus, scores, *settings)
        else:
            best = best_labelings(corpus.graph, scores, pairs, *settings)
        return as_object_array(corpus.with_empty(best, lambda: [([], 0.0)]))

    def predict_marginals(self, X: Any, *, known: Any = None) -> Array:
        """Compute the mean of the members' P(y_t = label) for every node t.

        Parameters
        ----------
        X : list of structures
            Of the shape that the members were fitted on.
        known : list of lists, optional
            Labels that are known, one list per structure, None where the label is open.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One array of shape (n_nodes, n_labels) per structure; columns as in `classes_`.
        """
        structures, corpus = self._corpus(X)
        none = np.empty((0, len(self.classes_)))
        if corpus is None:
            return as_object_array([none for _ in structures])
        arguments = self._decoder_arguments(corpus, known)
        q, known_numbers = self.decoder.marginals(*arguments, self.members[0].n_jobs), arguments[-1]
        if known_numbers is not None:
            is_known = known_numbers >= 0
            q[is_known] = np.eye(len(self.classes_))[known_numbers[is_known]]
        return as_object_array(corpus.with_empty(corpus.split(q), lambda: none))

    def explain(self, x: Any, node: int, *, known: Any = None, top: int = 5) -> Explanation:
        """Explain the label that `predict` gives a node, against the best other one.

        The decision of a single member is explained by ``members[0].explain(x, node)``.

        Parameters
        ----------
        x : structure
            The structure.
        node : int
            The node of x whose label is explained.
        known : list, optional
            Labels of x that are known, None where the label is open.
        top : int, default=5
            How many contributions of each kind to list; all of them add up to the difference.

        Returns
        -------
        Explanation
            Of `fuda.explanations`; ``print`` shows it.
        """
        structures = as_structures([x])
        check_question(structures[0], node, top)
        known_labels = None if known is None else [known]
        return explained(combined_decision(self, Corpus(structures), known_labels), node, top)

    def _corpus(self, X: Any) -> tuple[list[Any], Corpus | None]:
        """The structures, and those with nodes as a corpus."""
        structures = as_structures_or_none(structures_of(X))
        all_structures: list[Any] = [[] if structure is None else structure for structure in structures]
        return all_structures, Corpus(structures) if any(map(len, all_structures)) else None

    def _decoder_arguments(
        self, corpus: Corpus, known: Any
    ) -> tuple[Corpus, list[Opinion], list[Any], Array | None]:
        """The corpus, the members' opinions about it, the labels, and known label numbers."""
        known_numbers = None if known is None else label_numbers(known, corpus, self.classes_)
        if known is not None:  # the corpus has the structures with nodes only
            names = np.array([*self.classes_, None], dtype=object)
            known = [part.tolist() for part in corpus.split(names[known_numbers])]
        opinions = self.opinions(corpus, known)
        return corpus, opinions, self.classes_.tolist(), known_numbers

    def opinions(self, corpus: Corpus, known: Any = None) -> list[Opinion]:
        """Return the opinion of each member about a corpus.

        Parameters
        ----------
        corpus : Corpus
            The structures.
        known : list of lists, optional
            Labels that are given, one list per structure, None where the label is open.

        Returns
        -------
        list of Opinion
            One per member.
        """
        by_scores = self.decoder.by_scores or (False,) * len(self.members)
        encoded = [member._encode_corpus(corpus) for member in self.members]
        return [
            scores_over(member, own, self.classes_)
            if scores
            else marginals_over(member, own, self.classes_, known)
            for member, own, scores in zip(self.members, encoded, by_scores, strict=True)
        ]
