r"""Votes: what a first model says of the other occurrences of a word in a text.

A text is a list of sentences that belong together, such as the news of some days, in their order.
Let x_t be the word of node t, s(t) the number of its sentence, and P(σ|u) the first model's
marginal of label σ at node u. Of the label σ only its type T(σ) counts: PER for B-PER and I-PER,
O for O, and the label itself where labels encode no segments. The others of t are

    R_t = { u : x_u = x_t, s(u) ≠ s(t) }                        in the whole text,
    N_t = { u : x_u = x_t, 0 < |s(u) − s(t)| ≤ window }         nearby,

and each of the two sets votes by

    p(k) = 1/n Σ_u Σ_{σ: T(σ)=k} P(σ|u),   n the number of its nodes.

The names that t gets of R_t begin with ``text``, those of N_t with ``near``. With k the type of
the largest p (the first in the order of labels among equals) these are

======================  ==================================================================
name                    where
======================  ==================================================================
``text=none``           there are no others; then this is the only name
``text=k``              always otherwise
``text=k:share``        share is ``>.97``, ``>.85``, ``>.6`` or ``<=.6``, by p(k)
``text=k:share:count``  count is ``1``, ``2-3``, ``4-9`` or ``10+``, by n
``text+j``              for each type j ≠ k with p(j) > 0.15
======================  ==================================================================

Marginals are rounded to multiples of 2⁻³⁰ before they are added, so that sums are exact: equal
words of a sentence have the same names, whatever else is in the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from fuda.checks import is_whole
from fuda.errors import DataError, described, place, short
from fuda.features.sets import extract
from fuda.schemes import OUTSIDE, is_segment_label, split_label

Array = np.ndarray
_ONE = 1 << 30  # a probability of 1, where they are whole numbers
_SHARES, _SHARE_NAMES = (0.6, 0.85, 0.97), ("<=.6", ">.6", ">.85", ">.97")
_COUNTS, _COUNT_NAMES = (1, 3, 9), ("1", "2-3", "4-9", "10+")
_MINOR = 0.15  # types with a larger share are named beside the first
_CLOSE = 1e-3  # marginals of a node add up to 1 ± this


def text_votes(X: Any, marginals: Any, classes: Iterable[Any], window: int = 10) -> list[list[str]]:
    """Return what a model says of the other occurrences of each word in a text.

    The names are described in `fuda.features.votes`; `text_and_votes` makes features of them. Give
    a text as a whole: of a few sentences there is little to be counted. What a second model learns
    from must be judged out of fold, by first models that have not seen the text.

    Parameters
    ----------
    X : list of structures
        The sentences of the text in their order: words, or tuples whose first column is the word.
    marginals : list of array of shape (n_nodes, n_labels)
        What ``predict_marginals(X)`` of the first model returns.
    classes : iterable of str or int
        The labels, ``classes_`` of the first model.
    window : int, default=10
        How many sentences before and after are nearby.

    Returns
    -------
    list of list of str
        For each node the names, separated by spaces.

    Examples
    --------
    >>> X = [["Lima", "won"], ["in", "Lima"], ["again"]]
    >>> marginals = [[[0.2, 0.8], [1, 0]], [[1, 0], [0, 1]], [[1, 0]]]
    >>> votes = text_votes(X, marginals, ["O", "LOC"])
    >>> votes[0][0]
    'text=LOC text=LOC:>.97 text=LOC:>.97:1 near=LOC near=LOC:>.97 near=LOC:>.97:1'
    >>> votes[0][1]
    'text=none near=none'
    >>> votes[1][1]
    'text=LOC text=LOC:>.6 text=LOC:>.6:1 text+O near=LOC near=LOC:>.6 near=LOC:>.6:1 near+O'
    """
    if not is_whole(window, 0):
        raise DataError(f"window={short(window)}: give the number of sentences on each side, 0 or more")
    sentences = _sentences(X)
    names = list(classes)
    probabilities = _whole_marginals(marginals, list(map(len, sentences)), len(names))
    if not len(probabilities):
        return [[] for _ in sentences]
    types, type_of = _types(names)
    by_type = probabilities @ (type_of[:, None] == np.arange(len(types))).astype(np.int64)
    occurrences = _Occurrences(sentences, by_type)
    end = len(sentences)  # past the last sentence
    return occurrences.texts(types, {"text": end, "near": min(int(window), end)})


def text_and_votes(observation: Any) -> list[str]:
    """Return the features `text` of a word, and the votes on it.

    Models that have it as their parameter `features` learn from tuples of the word and what
    `text_votes` returns of it, and are saved and loaded like those with a named set.

    Parameters
    ----------
    observation : tuple
        The word and its votes, or columns, of which the first is the word and the last its votes.

    Returns
    -------
    list of str
        The features.

    Examples
    --------
    >>> text_and_votes(("a", "text=none near=none"))
    ['w=a', 'l=a', 'shape=x', 'classes=x', 'length=1', 'text=none', 'near=none']
    """
    if not isinstance(observation, tuple) or len(observation) < 2 or not isinstance(observation[-1], str):
        raise DataError(
            f"{described(observation)} is not a word with its votes; give tuples of both, such as "
            "('Lima', 'text=none near=none'), with what text_votes returns"
        )
    *columns, votes = observation
    return [*extract("text", tuple(columns)), *votes.split()]


# Pairs of neighbouring words are features as with the set "text" (see `fuda.features.sets`).
vars(text_and_votes)["base"] = "text"


class _Occurrences:
    """The occurrences of words in a text, as groups of equal words of one sentence.

    The groups are sorted by words and then by sentences, so that those of a word in neighbouring
    sentences are a range, and their sum is a difference of two cumulated ones.
    """

    def __init__(self, sentences: list[list[str]], by_type: Array) -> None:
        self.bounds = np.cumsum([0, *map(len, sentences)])
        self.n_sentences = len(sentences)
        number: dict[str, int] = {}
        words = [number.setdefault(word, len(number)) for word in chain.from_iterable(sentences)]
        sentence = np.repeat(np.arange(self.n_sentences), np.diff(self.bounds))
        # The number of a place is that of its word times the number of sentences, plus its
        # sentence's.
        nodes = np.array(words, dtype=np.int64) * self.n_sentences + sentence
        order = np.argsort(nodes, kind="stable")
        self.places, starts, counts = np.unique(nodes[order], return_index=True, return_counts=True)
        self.group = np.empty(len(nodes), dtype=np.int64)
        self.group[order] = np.repeat(np.arange(len(self.places)), counts)
        sums = np.add.reduceat(by_type[order], starts, axis=0)
        self.own = np.column_stack([counts, sums])
        self.before = np.concatenate([np.zeros((1, self.own.shape[1]), np.int64), self.own.cumsum(axis=0)])

    def others(self, reach: int) -> Array:
        """How many others each group has within `reach` sentences, and their sums by type."""
        sentence = self.places % self.n_sentences
        word = self.places - sentence
        first = np.searchsorted(self.places, word + np.maximum(sentence - reach, 0))
        last = word + np.minimum(sentence + reach, self.n_sentences - 1)
        votes: Array = self.before[np.searchsorted(self.places, last, "right")] - self.before[first]
        return votes - self.own

    def texts(self, types: list[str], reaches: dict[str, int]) -> list[list[str]]:
        """The names of each node, by prefixes and how many sentences these reach."""
        texts, row = [""], np.zeros(len(self.places), dtype=np.int64)
        for prefix, reach in reaches.items():
            names, name = _named(prefix, self.others(reach), types)
            pairs, row = np.unique(row * len(names) + name, return_inverse=True)
            texts = [f"{texts[a]} {names[b]}".lstrip() for a, b in (divmod(k, len(names)) for k in pairs)]
        flat = np.array(texts, dtype=object)[row[self.group]].tolist()
        return [flat[a:b] for a, b in zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True)]


def _named(prefix: str, votes: Array, types: list[str]) -> tuple[list[str], Array]:
    """The distinct texts of names for numbers and sums by type, and which of them each row has."""
    n, sums = votes[:, 0], votes[:, 1:]
    p = sums / (np.maximum(n, 1) * _ONE)[:, None]
    top = sums.argmax(axis=1)
    largest = p[np.arange(len(p)), top]
    share = np.searchsorted(_SHARES, largest)
    count = np.searchsorted(_COUNTS, n)
    minor = p > _MINOR
    minor[np.arange(len(p)), top] = False
    code = np.where(n > 0, (top * len(_SHARE_NAMES) + share) * len(_COUNT_NAMES) + count, -1)
    for first in range(0, len(types), 32):  # as many as there are bits to spare
        bits = minor[:, first : first + 32]
        packed = bits @ (1 << np.arange(bits.shape[1], dtype=np.int64))
        code = np.unique((code << 32) + packed, return_inverse=True)[1]
    _, example, row = np.unique(code, return_index=True, return_inverse=True)
    texts = []
    for i in example.tolist():
        name = f"{prefix}={types[top[i]]}"
        shared = f"{name}:{_SHARE_NAMES[share[i]]}"
        others = [f"{prefix}+{types[j]}" for j in np.flatnonzero(minor[i])]
        names = [name, shared, f"{shared}:{_COUNT_NAMES[count[i]]}", *others]
        texts.append(" ".join(names) if n[i] else f"{prefix}=none")
    return texts, row


def _types(classes: list[Any]) -> tuple[list[str], Array]:
    """The types of labels, without blanks, and the number of each label's type."""
    inner = {label for label in classes if label != OUTSIDE}
    bare = {"B", "I"} <= inner <= set("BIESLU")
    segments = bare or all(map(is_segment_label, inner))
    named = []
    for label in classes:
        kind = split_label(label)[1] if segments and label != OUTSIDE else str(label)
        kind = "_".join(kind.split()) or "_"
        # A type that is called O is not what is outside of all segments.
        named.append(f"-{OUTSIDE}" if segments and label != OUTSIDE and kind == OUTSIDE else kind)
    number = {kind: i for i, kind in enumerate(dict.fromkeys(named))}
    return list(number), np.array([number[kind] for kind in named])


def _sentences(X: Any) -> list[list[str]]:
    """The words of each sentence, checked."""
    if isinstance(X, str | bytes) or not isinstance(X, Iterable):
        raise DataError(f"X is a list of sentences, but {described(X)} was given; give a list of lists")
    sentences = []
    for i, x in enumerate(X):
        if isinstance(x, str | bytes) or not isinstance(x, Iterable):
            raise DataError(
                f"{place(i)}: a sentence is a list of words, but {described(x)} was given; "
                "split it into words, or wrap X in a list if it is one sentence: [X]"
            )
        words = [word[0] if isinstance(word, tuple) and word else word for word in x]
        for t, word in enumerate(words):
            if not isinstance(word, str):
                raise DataError(
                    f"{place(i, t)}: {described(word)} is not a word; give strings, or tuples whose first "
                    "column is the word"
                )
        sentences.append(words)
    return sentences


def _whole_marginals(marginals: Any, lengths: list[int], n_labels: int) -> Array:
    """The marginals of all nodes as whole numbers of 2⁻³⁰, checked."""
    if not isinstance(marginals, Iterable):
        raise DataError(f"marginals are a list of arrays, but {described(marginals)} was given; {_REMEDY}")
    parts = list(marginals)
    if len(parts) != len(lengths):
        raise DataError(f"there are {len(lengths)} sentences but marginals of {len(parts)}; {_REMEDY}")
    arrays = []
    for i, (part, length) in enumerate(zip(parts, lengths, strict=True)):
        try:
            array = np.asarray(part, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"{place(i)}: its marginals are {described(part)}; {_REMEDY}") from None
        if array.shape != (length, n_labels) and length + array.size:
            raise DataError(
                f"{place(i)}: its marginals have the shape {array.shape}, and {length} nodes with {n_labels} "
                f"labels need {(length, n_labels)}; {_REMEDY}"
            )
        arrays.append(array.reshape(length, n_labels))
    p = np.concatenate([np.zeros((0, n_labels)), *arrays])
    bad = ~((p >= -_CLOSE).all(axis=1) & (np.abs(p.sum(axis=1) - 1) <= _CLOSE))  # NaN is bad
    if bad.any():
        node, starts = int(bad.argmax()), np.cumsum([0, *lengths])
        i = int(np.searchsorted(starts, node, "right")) - 1
        raise DataError(
            f"{place(i, node - int(starts[i]))}: its marginals {short(p[node].tolist())} are no "
            f"probabilities that add up to 1; {_REMEDY}"
        )
    return np.rint(p * _ONE).astype(np.int64)


_REMEDY = "give what predict_marginals(X) of the first model returns, and its classes_"
