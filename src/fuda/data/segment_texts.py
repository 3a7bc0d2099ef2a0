"""The texts of stretches of nodes: lower-cased words, and the classes of their characters.

A vocabulary has the texts of training segments of 2 … `MOST_WORDS` nodes, by both keys, that occur
at least twice in the training data, with any label. Texts are words with spaces in between; words
that contain spaces are in none. Looking all stretches of a corpus up is a walk along prefixes, one
array operation for each length.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fuda.data.corpus import Corpus
from fuda.errors import DataError
from fuda.features.sets import JOINT_KEYS as KEYS

Array = np.ndarray
MOST_WORDS = 6
_LEAST = 2  # how often a text occurs at least


class SegmentTexts:
    """Vocabularies of texts, one for each of `KEYS`, and the look-up in them.

    Parameters
    ----------
    vocabularies : list of lists of str
        The texts of each key.
    """

    def __init__(self, vocabularies: list[list[str]]) -> None:
        self.vocabularies = vocabularies
        split = [[text.split(" ") for text in texts] for texts in vocabularies]
        if len(split) != len(KEYS) or not all(2 <= len(w) <= MOST_WORDS for texts in split for w in texts):
            raise DataError(
                f"its texts of segments are not {len(KEYS)} lists of 2 to {MOST_WORDS} words each"
            )
        self._tries = [_Trie(texts) for texts in split]

    @classmethod
    def learned(cls, corpus: Corpus, segments: Array) -> SegmentTexts:
        """Learn the texts of segments, rows of (kind, first node, end), of a corpus."""
        words, lengths = _words(corpus), segments[:, 2] - segments[:, 1]
        short = segments[(lengths >= 2) & (lengths <= MOST_WORDS)]
        if words is None or not len(short):
            return cls([[] for _ in KEYS])
        kept: list[list[str]] = []
        for number, key in enumerate(KEYS.values()):
            keyed = [key(word) for word in words]
            spans = (tuple(corpus.types[a:b].tolist()) for _, a, b in short.tolist())
            found = dict.fromkeys(tuple(keyed[k] for k in types) for types in spans)
            texts = [" ".join(own) for own in found if not any(" " in word for word in own)]
            probe = cls([texts if k == number else [] for k in range(len(KEYS))])
            counts = np.bincount(probe.rows(corpus)[..., number].ravel(), minlength=len(texts) + 1)
            kept.append(
                [text for text, count in zip(texts, counts[:-1].tolist(), strict=True) if count >= _LEAST]
            )
        return cls(kept)

    @property
    def names(self) -> list[str]:
        """The names of all rows but the last."""
        return [f"{key}={text}" for key, own in zip(KEYS, self.vocabularies, strict=True) for text in own]

    @property
    def size(self) -> int:
        """The number of texts; the row of this number stands for all others."""
        return sum(map(len, self.vocabularies))

    def rows(self, corpus: Corpus) -> Array:
        """Look up all stretches of 2 … `MOST_WORDS` nodes.

        Parameters
        ----------
        corpus : Corpus
            Sequences.

        Returns
        -------
        (N, M, keys) array of int32
            The rows of the stretches that end at each node, by length from 2; M is 0 where there
            are no texts.
        """
        words = _words(corpus) if self.size else None
        if words is None:
            return np.zeros((corpus.size, 0, len(KEYS)), dtype=np.int32)
        found = np.full((corpus.size, MOST_WORDS - 1, len(KEYS)), self.size, dtype=np.int32)
        place = np.arange(corpus.size) - np.repeat(corpus.offsets[:-1], np.diff(corpus.offsets))
        start = 0
        for number, (key, trie) in enumerate(zip(KEYS.values(), self._tries, strict=True)):
            for length, rows in trie.walk([key(word) for word in words], corpus.types, place):
                at = np.flatnonzero(rows >= 0)
                found[at, length - 2, number] = start + rows[at]
            start += len(self.vocabularies[number])
        return found


class _Trie:
    """Texts by their prefixes, each of which is a number."""

    def __init__(self, texts: list[list[str]]) -> None:
        self.words = {word: k for k, word in enumerate(dict.fromkeys(w for text in texts for w in text))}
        numbers: dict[tuple[int, int], int] = {}
        self.text_of: list[int] = []  # the text that a prefix is, or −1
        for number, text in enumerate(texts):
            prefix = -1
            for word in text:
                prefix = numbers.setdefault((prefix, self.words[word]), len(self.text_of))
                if prefix == len(self.text_of):
                    self.text_of.append(-1)
            self.text_of[prefix] = number
        steps = [(before + 1) * len(self.words) + word for before, word in numbers]
        order = np.argsort(np.array(steps, dtype=np.int64), kind="stable")
        self.steps, self.prefixes = np.array(steps, dtype=np.int64)[order], order
        self.longest = max(map(len, texts), default=0)

    def walk(self, keyed: list[str], types: Array, place: Array) -> Iterator[tuple[int, Array]]:
        """Yield lengths from 2, with the text that ends at each node, −1 where it is none.

        `keyed` are the words of the types, `types` those of the nodes and `place` the places of
        the nodes in their sequences.
        """
        if not self.longest:
            return
        words = np.array([self.words.get(word, -1) for word in keyed], dtype=np.int64)[types]
        text_of = np.array([*self.text_of, -1])
        prefix = np.full(len(types), -1, dtype=np.int64)
        for length in range(1, self.longest + 1):
            step = (prefix + 1) * len(self.words) + words
            at = np.minimum(np.searchsorted(self.steps, step), len(self.steps) - 1)
            known = (words >= 0) & (place >= length - 1) & (self.steps[at] == step)
            if length > 1:
                known &= prefix >= 0
            reached = np.where(known, self.prefixes[at], -1)
            if length > 1:
                yield length, text_of[reached]
            prefix = np.append(-1, reached[:-1])


def _words(corpus: Corpus) -> list[str] | None:
    """The word of each type, or None where observations have none."""
    if corpus.kind.name == "text":
        return corpus.observations
    return [str(x[0]) for x in corpus.observations] if corpus.kind.name == "columns" else None
