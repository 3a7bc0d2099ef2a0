"""Labels that the rest of the data contradict.

Structures are divided into folds, and each is judged by a model that learned from the others. What
the model would change, and how sure it is (`fuda.active.edits`), is what to doubt.
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
from fuda.interrupts import inner_training
from fuda.models.choice.candidates import candidates_for
from fuda.models.crf import CRF
from fuda.models.hmm import HMM
from fuda.models.memm import MEMM
from fuda.render.text import shown
from fuda.schemes import OUTSIDE, SCHEMES, guess_scheme, legal
from fuda.selection.folds import splits

Array = np.ndarray

_TOP = 1_000
_TOLERANCE = 1e-3  # of a CRF: its last digits change no order
_NEVER = 8.0  # by which a label that others do not have is below the worst of theirs
_MOST_ILLEGAL = 0.3  # labels in segments that break the rules of a scheme, which it yet is
_FEATURES = 3  # named in an explanation
_MOST_FOUND = 3  # labels of the same word elsewhere


@dataclass(frozen=True)
class Doubt:
    """Labels that the rest of the data contradict.

    Parameters
    ----------
    structure : int
        The number of the structure.
    start, end : int
        The nodes from `start` to before `end`: one node, or an entity as given and as suggested.
    given, suggested : list of labels
        The labels of these nodes, as they are and as a model of the rest would have them.
    score : float
        The log-odds of the suggestion against what is given.
    nodes : list of int
        The nodes whose labels differ.
    word : str
        The observation of the first of these.
    elsewhere : list of (label, int)
        How often the same word has which labels elsewhere, the most frequent first.
    features : list of (str, float)
        What speaks most for the suggestion at the first of these, where the model has such.

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
        """How the same word is labelled elsewhere, and what speaks most for the suggestion."""
        counts = ", ".join(f"{label} {count}" for label, count in self.elsewhere)
        parts = [f"{self.word} elsewhere: {counts}" if counts else f"{self.word} is nowhere else"]
        if self.features:
            named = ", ".join(f"{text} {value:+.1f}" for text, value in self.features)
            parts.append(f"for {self.suggested[self.nodes[0] - self.start]}: {named}")
        return "; ".join(parts if self.word else parts[1:])

    @property
    def probability(self) -> float:
        """What the model gives the suggestion, if one of the two is right."""
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
    """Find the labels that the rest of the data contradict.

    Parameters
    ----------
    X : list of structures
        Sequences, trees or graphs.
    y : list of lists
        Their labels, None where not known.
    estimator : Labeler, optional
        The model, not fitted, that judges labels; with `predict_marginals`. Default: a CRF with
        the features of `fuda.Auto` for such data, or the marginalized perceptron on graphs. Models
        of labelings (CRF, HMM, MEMM) judge a label together with its neighbours.
    scheme : str, optional
        The scheme of labels that encode segments. Default: by the labels.
    folds : int, default=5
        The number of models, each of which judges the structures that it has not learned from.
    top : int or None, default=1000
        How many doubts to return; None is one per node, or per place.
    progress : callable, optional
        Called with the share that is done, from 0 to 1.

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
    found: list[tuple[float, int, int, Doubt, Any]] = []
    parts = splits(len(structures), min(folds, len(structures)), shuffle=True)
    for number, (train, test) in enumerate(parts):
        with inner_training():
            judge = clone(model).fit([structures[i] for i in train], [y[i] for i in train])
        explainer = _Explainer(judge, structures, elsewhere)
        own = _fold_doubts(judge, [(i, structures[i], y[i]) for i in test.tolist()], scheme)
        found += [(-doubt.score, doubt.structure, doubt.nodes[0], doubt, explainer) for doubt in own]
        found = sorted(found, key=lambda item: item[:3])[:top]
        if progress is not None:
            progress((number + 1) / len(parts))
    return [explainer.explained(doubt) for *_, doubt, explainer in found]


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
    labels = sorted({label for own in y for label in own} - {None})
    inside = sum(label not in (None, OUTSIDE) for own in y for label in own)
    broken = {}
    for scheme in ("IOB2", *SCHEMES):
        try:
            start, follows, end = legal(labels, scheme)
        except DataError:  # labels of another scheme, or of none
            continue
        number = {label: k for k, label in enumerate(labels)}
        broken[scheme] = 0
        for own in y:
            known = [number.get(label, -1) for label in own]
            pairs = [(a, b) for a, b in pairwise(known) if a >= 0 and b >= 0]
            broken[scheme] += sum(not follows[pair] for pair in pairs)
            broken[scheme] += bool(known) and known[0] >= 0 and not start[known[0]]
            broken[scheme] += bool(known) and known[-1] >= 0 and not end[known[-1]]
    if not inside or not broken:
        return None
    best = min(broken, key=lambda scheme: broken[scheme])
    return best if broken[best] <= _MOST_ILLEGAL * inside else None


def _judge_for(corpus: Corpus) -> Any:
    """The model that judges labels where none is given."""
    first = candidates_for(corpus)[0].estimator
    return first.set_params(tol=_TOLERANCE) if isinstance(first, CRF) else first


def _fold_doubts(judge: Any, test: list[tuple[int, Structure, list[Any]]], scheme: str | None) -> list[Doubt]:
    """All doubts about structures that a model has not learned from, without explanations."""
    found: list[Doubt] = []
    labels = {label for *_, own in test for label in own if label is not None}
    names = sorted({*judge.classes_.tolist(), *labels, *([] if scheme is None else [OUTSIDE])})
    number = {name: k for k, name in enumerate(names)}
    fields = _fields(judge, [x for _, x, _ in test], names)
    for (i, _, own), judged in zip(test, fields, strict=True):
        known = np.array([label is not None for label in own])
        given = np.array([number.get(label, -1) for label in own])
        if not known.all():
            filled = given.copy()
            filled[~known] = judged.scores[~known].argmax(axis=1)
            given = filled
        for change in changes(judged, given, names, scheme, known):
            found.append(_doubt(i, own, change, names, scheme))
    return found


def _fields(judge: Any, X: list[Structure], names: list[Any]) -> Iterator[Field]:
    """The scores of labelings of structures; of single labels where a model has no others."""
    columns = [names.index(label) for label in judge.classes_.tolist()]
    size = len(names)

    def widened(values: Array, axes: int) -> Array:
        """With all labels in place of those that the model knows."""
        lowest = values[np.isfinite(values)].min(initial=0.0) - _NEVER
        wide = np.full((*values.shape[: values.ndim - axes], *[size] * axes), lowest)
        places: Any = (..., *np.ix_(*[columns] * axes))
        wide[places] = np.maximum(values, lowest)
        return wide

    if isinstance(judge, CRF | HMM | MEMM):
        encoded: Any = judge._encode(X)
        scores, pairs = judge._scores(encoded)
        scores, pairs = widened(scores, 1), widened(pairs, 2)
        bounds, heads = encoded.corpus.offsets.tolist(), encoded.corpus.graph.heads
        for a, b in pairwise(bounds):
            own = np.where(heads[a:b] < 0, -1, heads[a:b] - a)
            yield Field(scores[a:b], own, pairs[a:b] if pairs.ndim == 3 else pairs)
        return
    for table in judge.predict_marginals(X):
        logs = np.log(np.maximum(table, np.exp(-_NEVER)))
        alone = np.full(len(table), -1)
        yield Field(widened(logs, 1), alone, np.zeros((size, size)))


def _doubt(i: int, own: list[Any], change: Change, names: list[Any], scheme: str | None) -> Doubt:
    """A change as a doubt, over whole entities where there are such."""
    after = [names[k] for k in change.labels]
    start, end = change.nodes[0], change.nodes[-1] + 1
    if scheme is not None:
        for labels in (["O" if label is None else label for label in own], after):
            for _, a, b in segments_of(labels, scheme):
                if any(a <= t < b for t in change.nodes):
                    start, end = min(start, a), max(end, b)
    return Doubt(i, start, end, own[start:end], after[start:end], change.score, list(change.nodes))


def _labels_of_words(structures: list[Structure], y: list[list[Any]]) -> dict[str, Counter[Any]]:
    """How often words, or other observations of which there are few, have which labels."""
    found: dict[str, Counter[Any]] = {}
    for x, labels in zip(structures, y, strict=True):
        for observation, label in zip(x, labels, strict=True):
            if label is not None and isinstance(observation, str | tuple):
                found.setdefault(shown(observation), Counter())[label] += 1
    return found


class _Explainer:
    """Says what speaks for the suggestions of a model."""

    def __init__(self, judge: Any, structures: list[Structure], elsewhere: dict[str, Counter[Any]]) -> None:
        self.judge, self.structures, self.elsewhere = judge, structures, elsewhere
        self.number = {label: k for k, label in enumerate(judge.classes_.tolist())}

    def explained(self, doubt: Doubt) -> Doubt:
        """The doubt with its explanation, at the first node whose label differs."""
        node = doubt.nodes[0]
        given, suggested = (labels[node - doubt.start] for labels in (doubt.given, doubt.suggested))
        word = shown(self.structures[doubt.structure].observations[node])
        others = Counter(self.elsewhere.get(word, {}))
        others[given] -= 1
        found = [(label, count) for label, count in others.most_common(_MOST_FOUND) if count > 0]
        features = self._features(doubt, node, given, suggested)
        known = word if word in self.elsewhere else ""
        return replace(doubt, word=known, elsewhere=found, features=features)

    def _features(self, doubt: Doubt, node: int, given: Any, suggested: Any) -> list[tuple[str, float]]:
        if not isinstance(self.judge, CRF) or given not in self.number or suggested not in self.number:
            return []
        encoded: Any = self.judge._encode([self.structures[doubt.structure]])
        terms = self.judge._node_terms(encoded, node, self.number[suggested], self.number[given], _FEATURES)
        best = sorted((term for term in terms if term.value > 0), key=lambda term: -term.value)
        return [(term.text, term.value) for term in best[:_FEATURES]]
