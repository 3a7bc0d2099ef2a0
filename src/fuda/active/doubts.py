"""Labels that contradict the rest of the data.

Structures are divided into folds, and each fold is checked by a model that learned from the rest.
The changes that the model would make, and their log-odds (`fuda.active.edits`), are the doubts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from fuda.active.edits import Change, Field, changes, segments_of
from fuda.data.corpus import Corpus
from fuda.data.labels import flat_labels
from fuda.data.structures import Structure, as_structures
from fuda.errors import DataError
from fuda.models.choice.candidates import candidates_for
from fuda.models.crf import CRF
from fuda.models.markov import MarkovLabeler
from fuda.render.text import shown
from fuda.runtime.interrupts import inner_training
from fuda.schemes import OUTSIDE, SCHEMES, guess_scheme, legal
from fuda.selection.folds import splits

Array = np.ndarray

# The default number of doubts.
_TOP = 1_000
# The tolerance of a CRF: smaller ones do not change the order of doubts.
_TOLERANCE = 1e-3
# The score of a label that the model has not seen is this much below the lowest score of others.
_NEVER = 8.0
# Labels follow a scheme if at most this share of the labels in segments breaks its rules.
_MOST_ILLEGAL = 0.3
# The number of features in an explanation.
_FEATURES = 3
# The number of labels of the same word elsewhere in an explanation.
_MOST_FOUND = 3


@dataclass(frozen=True)
class Doubt:
    """Labels that contradict the rest of the data.

    Parameters
    ----------
    structure : int
        The number of the structure.
    start, end : int
        The nodes from `start` to before `end`: one node, or a present and a suggested entity.
    given, suggested : list of labels
        The labels of these nodes, as they are and as a model of the rest predicts them.
    score : float
        The log-odds of the suggestion against the present labels.
    nodes : list of int
        The nodes whose labels differ.
    word : str
        The observation of the first of these.
    elsewhere : list of (label, int)
        Labels of the same word elsewhere with their frequencies, the most frequent first.
    features : list of (str, float)
        The features that favour the suggestion most at the first of these, if the model has any.

    Examples
    --------
    >>> doubt = Doubt(0, 1, 2, ["O"], ["B-LOC"], 2.0, [1], "Lima", elsewhere=[("B-LOC", 3)])
    >>> doubt.explanation, round(doubt.probability, 2)
    ('Lima elsewhere: B-LOC 3', 0.88)
    """

    structure: int
    start: int
    end: int
    given: list[Any]
    suggested: list[Any]
    score: float
    nodes: list[int]
    word: str = ""
    elsewhere: list[tuple[Any, int]] = field(default_factory=list)
    features: list[tuple[str, float]] = field(default_factory=list)

    @property
    def explanation(self) -> str:
        """The labels of the same word elsewhere, and features that favour the suggestion most."""
        counts = ", ".join(f"{label} {count}" for label, count in self.elsewhere)
        parts = [f"{self.word} elsewhere: {counts}" if counts else f"{self.word} is nowhere else"]
        if self.features:
            named = ", ".join(f"{text} {value:+.1f}" for text, value in self.features)
            parts.append(f"for {self.suggested[self.nodes[0] - self.start]}: {named}")
        return "; ".join(parts if self.word else parts[1:])

    @property
    def probability(self) -> float:
        """The probability of the suggestion by the model, if one of the two is right."""
        return 1 / (1 + math.exp(-self.score)) if self.score > -700 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the doubt as a dict of JSON types.

        Returns
        -------
        dict
            With the probability and the explanation.
        """
        return {**vars(self), "probability": self.probability, "explanation": self.explanation}


def doubts(
    X: Any,
    y: Any,
    *,
    estimator: Any = None,
    scheme: str | None = None,
    folds: int = 5,
    top: int | None = _TOP,
    progress: Callable[[float], object] | None = None,
) -> list[Doubt]:
    """Find the labels that contradict the rest of the data.

    Parameters
    ----------
    X : list of structures
        Sequences, trees or graphs.
    y : list of lists
        Their labels, None where not known.
    estimator : Labeler, optional
        The model, not fitted, that checks labels; with `predict_marginals`. Default: a CRF with
        the features of `fuda.Auto` for such data, or the marginalized perceptron on graphs. Models
        of labelings (CRF, HMM, MEMM) check a label together with its neighbours.
    scheme : str, optional
        The scheme of labels that encode segments. Default: by the labels.
    folds : int, default=5
        The number of models, each of which checks the structures that it has not learned from.
    top : int or None, default=1000
        How many doubts to return; None returns all, one per node or group of nodes.
    progress : callable, optional
        Called with the completed share, from 0 to 1.

    Returns
    -------
    list of Doubt
        The most doubtful first; each node is named once at most.

    Examples
    --------
    >>> X = [["in", "Lima"], ["in", "Cusco"], ["to", "Lima"], ["to", "Cusco"]] * 5
    >>> y = [["O", "B-LOC"]] * 19 + [["O", "O"]]
    >>> first = doubts(X, y, folds=4)[0]
    >>> first.structure, first.given, first.suggested
    (19, ['O'], ['B-LOC'])
    """
    structures = as_structures(X)
    corpus = Corpus(structures)
    flat_labels(y, corpus)
    y = [list(labels) for labels in y]
    scheme = scheme if scheme is not None else likely_scheme(y) if corpus.is_chain else None
    model = clone(estimator) if estimator is not None else _judge_for(corpus)
    if not hasattr(model, "predict_marginals"):
        raise DataError(
            f"{type(model).__name__} has no probabilities to judge labels by; choose another model"
        )
    elsewhere = _labels_of_words(structures, y)
    ranked: list[tuple[float, int, int, Doubt, Any]] = []
    parts = splits(len(structures), min(folds, len(structures)), shuffle=True)
    for number, (train, test) in enumerate(parts):
        with inner_training():
            judge = clone(model).fit([structures[i] for i in train], [y[i] for i in train])
        explainer = _Explainer(judge, structures, elsewhere)
        of_fold = _fold_doubts(judge, [(i, structures[i], y[i]) for i in test.tolist()], scheme)
        ranked += [(-doubt.score, doubt.structure, doubt.nodes[0], doubt, explainer) for doubt in of_fold]
        ranked = sorted(ranked, key=lambda item: item[:3])[:top]
        if progress is not None:
            progress((number + 1) / len(parts))
    return [explainer.explained(doubt) for *_, doubt, explainer in ranked]


def likely_scheme(y: list[list[Any]]) -> str | None:
    """Return the scheme that most labels follow; a few may break its rules.

    Parameters
    ----------
    y : list of lists
        Labels, None where not known.

    Returns
    -------
    str or None
        None where the labels encode no segments.

    Examples
    --------
    >>> likely_scheme([["B-PER", "I-PER", "O"], ["O", "I-PER", "O"], ["B-LOC"], ["O", "B-LOC"]])
    'IOB2'
    >>> likely_scheme([["NOUN", "VERB"]]) is None
    True
    """
    exact = guess_scheme(y)
    if exact is not None:
        return exact
    labels = sorted({label for labels_of_x in y for label in labels_of_x} - {None})
    inside = sum(label not in (None, OUTSIDE) for labels_of_x in y for label in labels_of_x)
    broken = {}
    for scheme in ("IOB2", *SCHEMES):
        try:
            start, follows, end = legal(labels, scheme)
        except DataError:  # labels of another scheme, or without one
            continue
        number = {label: k for k, label in enumerate(labels)}
        broken[scheme] = 0
        for labels_of_x in y:
            known = [number.get(label, -1) for label in labels_of_x]
            pairs = [(a, b) for a, b in pairwise(known) if a >= 0 and b >= 0]
            broken[scheme] += sum(not follows[pair] for pair in pairs)
            broken[scheme] += bool(known) and known[0] >= 0 and not start[known[0]]
            broken[scheme] += bool(known) and known[-1] >= 0 and not end[known[-1]]
    if not inside or not broken:
        return None
    best = min(broken, key=lambda scheme: broken[scheme])
    return best if broken[best] <= _MOST_ILLEGAL * inside else None


def _judge_for(corpus: Corpus) -> Any:
    """The default model that checks labels."""
    first = candidates_for(corpus)[0].estimator
    return first.set_params(tol=_TOLERANCE) if isinstance(first, CRF) else first


def _fold_doubts(judge: Any, test: list[tuple[int, Structure, list[Any]]], scheme: str | None) -> list[Doubt]:
    """All doubts about structures that a model has not learned from, without explanations."""
    all_doubts: list[Doubt] = []
    labels = {label for *_, labels_of_x in test for label in labels_of_x if label is not None}
    names = sorted({*judge.classes_.tolist(), *labels, *([] if scheme is None else [OUTSIDE])})
    number = {name: k for k, name in enumerate(names)}
    fields = _fields(judge, [x for _, x, _ in test], names)
    for (i, _, present), scores in zip(test, fields, strict=True):
        known = np.array([label is not None for label in present])
        numbers = np.array([number.get(label, -1) for label in present])
        if not known.all():
            filled = numbers.copy()
            filled[~known] = scores.scores[~known].argmax(axis=1)
            numbers = filled
        for change in changes(scores, numbers, names, scheme, known):
            all_doubts.append(_doubt(i, present, change, names, scheme))
    return all_doubts


def _fields(judge: Any, X: list[Structure], names: list[Any]) -> Iterator[Field]:
    """The scores of labelings of structures; of single labels if a model has no others."""
    columns = [names.index(label) for label in judge.classes_.tolist()]
    size = len(names)

    def over_all_labels(values: Array, axes: int) -> Array:
        """Values for all labels, from those for the labels of the model."""
        lowest = values[np.isfinite(values)].min(initial=0.0) - _NEVER
        enlarged = np.full((*values.shape[: values.ndim - axes], *[size] * axes), lowest)
        positions: Any = (..., *np.ix_(*[columns] * axes))
        enlarged[positions] = np.maximum(values, lowest)
        return enlarged

    if isinstance(judge, MarkovLabeler) and judge._is_pairwise and judge._estimates_probabilities:
        encoded: Any = judge._encode(X)
        scores, pairs = judge._scores(encoded)
        scores, pairs = over_all_labels(scores, 1), over_all_labels(pairs, 2)
        bounds, heads = encoded.corpus.offsets.tolist(), encoded.corpus.graph.heads
        for a, b in pairwise(bounds):
            heads_of_x = np.where(heads[a:b] < 0, -1, heads[a:b] - a)
            yield Field(scores[a:b], heads_of_x, pairs[a:b] if pairs.ndim == 3 else pairs)
        return
    for table in judge.predict_marginals(X):
        logs = np.log(np.maximum(table, np.exp(-_NEVER)))
        no_heads = np.full(len(table), -1)
        yield Field(over_all_labels(logs, 1), no_heads, np.zeros((size, size)))


def _doubt(i: int, present: list[Any], change: Change, names: list[Any], scheme: str | None) -> Doubt:
    """A change as a doubt, extended to complete entities if labels encode these."""
    after = [names[k] for k in change.labels]
    start, end = change.nodes[0], change.nodes[-1] + 1
    if scheme is not None:
        for labels in (["O" if label is None else label for label in present], after):
            for _, a, b in segments_of(labels, scheme):
                if any(a <= t < b for t in change.nodes):
                    start, end = min(start, a), max(end, b)
    return Doubt(i, start, end, present[start:end], after[start:end], change.score, list(change.nodes))


def _labels_of_words(structures: list[Structure], y: list[list[Any]]) -> dict[str, Counter[Any]]:
    """The frequencies of labels of words, or of other observations that may be repeated."""
    counts: dict[str, Counter[Any]] = {}
    for x, labels in zip(structures, y, strict=True):
        for observation, label in zip(x, labels, strict=True):
            if label is not None and isinstance(observation, str | tuple):
                counts.setdefault(shown(observation), Counter())[label] += 1
    return counts


class _Explainer:
    """Explains the suggestions of a model."""

    def __init__(self, judge: Any, structures: list[Structure], elsewhere: dict[str, Counter[Any]]) -> None:
        self.judge, self.structures, self.elsewhere = judge, structures, elsewhere
        self.number = {label: k for k, label in enumerate(judge.classes_.tolist())}

    def explained(self, doubt: Doubt) -> Doubt:
        """The doubt with its explanation, at the first node whose label differs."""
        node = doubt.nodes[0]
        given, suggested = doubt.given[node - doubt.start], doubt.suggested[node - doubt.start]
        word = shown(self.structures[doubt.structure].observations[node])
        others = Counter(self.elsewhere.get(word, {}))
        others[given] -= 1
        frequent = [(label, count) for label, count in others.most_common(_MOST_FOUND) if count > 0]
        features = self._features(doubt, node, given, suggested)
        known = word if word in self.elsewhere else ""
        return replace(doubt, word=known, elsewhere=frequent, features=features)

    def _features(self, doubt: Doubt, node: int, given: Any, suggested: Any) -> list[tuple[str, float]]:
        if not isinstance(self.judge, CRF) or given not in self.number or suggested not in self.number:
            return []
        encoded: Any = self.judge._encode([self.structures[doubt.structure]])
        terms = self.judge._node_terms(encoded, node, self.number[suggested], self.number[given], _FEATURES)
        best = sorted((term for term in terms if term.value > 0), key=lambda term: -term.value)
        return [(term.text, term.value) for term in best[:_FEATURES]]
