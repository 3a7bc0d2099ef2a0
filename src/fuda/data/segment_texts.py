"""The texts of runs of nodes: lower-cased words, and the classes of their characters.

A vocabulary has the texts of training segments of 2 … `MOST_WORDS` nodes, by both keys, that occur
at least twice in the training data, with any label. Texts are words with spaces in between; words
that contain spaces are in none. Looking all runs of a corpus up is a walk along prefixes from
every node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuda.data.corpus import Corpus
from fuda.errors import DataError
from fuda.features.sets import JOINT_KEYS as KEYS
from fuda.runtime.compiled import compiled

Array = np.ndarray
MOST_WORDS = 6
_LEAST = 2  # texts that occur less often have no row


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
        vocabularies: list[list[str]] = []
        for number, key in enumerate(KEYS.values()):
            keyed = [key(word) for word in words]
            spans = (tuple(corpus.types[a:b].tolist()) for _, a, b in short.tolist())
            distinct = dict.fromkeys(tuple(keyed[k] for k in types) for types in spans)
            texts = [" ".join(parts) for parts in distinct if not any(" " in part for part in parts)]
            probe = cls([texts if k == number else [] for k in range(len(KEYS))])
            counts = np.bincount(probe.rows(corpus)[..., number].ravel(), minlength=len(texts) + 1)
            vocabularies.append(
                [text for text, count in zip(texts, counts[:-1].tolist(), strict=True) if count >= _LEAST]
            )
        return cls(vocabularies)

    @property
    def names(self) -> list[str]:
        """The names of all rows but the last."""
        return [f"{key}={text}" for key, texts in zip(KEYS, self.vocabularies, strict=True) for text in texts]

    @property
    def size(self) -> int:
        """The number of texts; the row of this number stands for all others."""
        return sum(map(len, self.vocabularies))

    def rows(self, corpus: Corpus) -> Array:
        """Look up all runs of 2 … `MOST_WORDS` nodes.

        Parameters
        ----------
        corpus : Corpus
            Sequences.

        Returns
        -------
        (N, M, keys) array of int32
            The rows of the runs that end at each node, by length from 2; M is 0 where there
            are no texts.
        """
        words = _words(corpus) if self.size else None
        if words is None:
            return np.zeros((corpus.size, 0, len(KEYS)), dtype=np.int32)
        rows = np.full((corpus.size, MOST_WORDS - 1, len(KEYS)), self.size, dtype=np.int32)
        start = 0
        for number, (key, trie) in enumerate(zip(KEYS.values(), self._tries, strict=True)):
            get = trie.words.get
            keyed = np.array([get(key(word), -1) for word in words])
            _walk(keyed[corpus.types], corpus.offsets, trie.steps, len(trie.words), start, rows[..., number])
            start += len(self.vocabularies[number])
        return rows


class Steps(NamedTuple):
    """Steps from a prefix to a longer one.

    Attributes
    ----------
    sorted : array
        (prefix + 1) · the number of words + word, in increasing order; −1 is the empty prefix.
    prefixes : array
        The prefixes that they lead to.
    text_of : array
        The text that each prefix is, or −1.
    """

    sorted: Array
    prefixes: Array
    text_of: Array


class _Trie:
    """Texts by their prefixes, each of which is a number.

    Attributes
    ----------
    words : dict of str to int
        The number of each word.
    steps : Steps
        The steps from a prefix, −1 for none, by a word to another prefix.
    """

    def __init__(self, texts: list[list[str]]) -> None:
        self.words = {word: k for k, word in enumerate(dict.fromkeys(w for text in texts for w in text))}
        numbers: dict[tuple[int, int], int] = {}
        text_of: list[int] = []
        for number, text in enumerate(texts):
            prefix = -1
            for word in text:
                prefix = numbers.setdefault((prefix, self.words[word]), len(text_of))
                if prefix == len(text_of):
                    text_of.append(-1)
            text_of[prefix] = number
        steps = np.array([(p + 1) * len(self.words) + word for p, word in numbers], dtype=np.int64)
        order = np.argsort(steps, kind="stable")
        self.steps = Steps(steps[order], order, np.array(text_of, dtype=np.int64))


@compiled
def _walk(words: Array, offsets: Array, steps: Steps, word_count: int, start: int, rows: Array) -> None:
    """Write the rows, from `start` on, of the texts that end at node t to rows(t, length − 2)."""
    for i in range(len(offsets) - 1):
        for first in range(offsets[i], offsets[i + 1]):
            prefix = -1
            for t in range(first, min(first + MOST_WORDS, offsets[i + 1])):
                step = (prefix + 1) * word_count + words[t]
                at = np.searchsorted(steps.sorted, step)
                if words[t] < 0 or at == len(steps.sorted) or steps.sorted[at] != step:
                    break
                prefix = steps.prefixes[at]
                if t > first and steps.text_of[prefix] >= 0:
                    rows[t, t - first - 1] = start + steps.text_of[prefix]


def _words(corpus: Corpus) -> list[str] | None:
    """The word of each type, or None where observations have none."""
    if corpus.kind.name == "text":
        return corpus.observations
    return [str(x[0]) for x in corpus.observations] if corpus.kind.name == "columns" else None
