"""Words of a text as numbers, and counts of what stands beside them.

Words are numbered by frequency, ties by their texts, so that nothing depends on the order of
sentences. Rare words say little about themselves and much about words that are unknown: the
*shape* of a word stands for all rare words of that shape, as one more word.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fuda.features.sets import character_classes

Array = np.ndarray
# Only so many words, the most frequent ones, are counted; of others only the shapes are.
MOST_WORDS = 1 << 17
RARE = 1  # words that occur at most so often also count for their shape
_SHAPE_LENGTH = 6
_SHAPE_MARK = "\0"  # no word of a text begins with it


def shape_key(word: str) -> str:
    """Return the name under which tables have what is known of rare words like this one.

    >>> shape_key("Lima") == shape_key("Quito"), shape_key("Lima") == shape_key("lima")
    (True, False)
    """
    return _SHAPE_MARK + character_classes(word)[:_SHAPE_LENGTH]


def is_shape(name: str) -> bool:
    """Whether the name of a row is that of a shape."""
    return name.startswith(_SHAPE_MARK)


@dataclass(frozen=True)
class Text:
    """Sentences as numbers of words.

    Attributes
    ----------
    names : list of str
        The words, the most frequent first, and then the shapes of rare words.
    n_words : int
        How many of the names are words.
    shapes : (names,) array
        For each rare word the number of its shape, −1 for others; shapes are their own.
    counts : (names,) array
        How often each word occurs, and how often rare words of each shape do.
    tokens : (N,) array
        The number of each token: a word, or a shape where it is not among the words.
    offsets : (n + 1,) array
        The bounds of the sentences.
    """

    names: list[str]
    n_words: int
    shapes: Array
    counts: Array
    tokens: Array
    offsets: Array

    @classmethod
    def of(cls, sentences: list[list[str]], most_words: int = MOST_WORDS) -> Text:
        """Return the text of these sentences."""
        frequency = Counter(word for sentence in sentences for word in sentence)
        ordered = sorted(frequency, key=lambda word: (-frequency[word], word))
        words = [word for word in ordered if not is_shape(word)][:most_words]
        known = set(words)
        rare = [word for word in ordered if frequency[word] <= RARE or word not in known]
        names = [*words, *sorted({shape_key(word) for word in rare})]
        number = {name: i for i, name in enumerate(names)}
        numbers = {word: number[word] if word in known else number[shape_key(word)] for word in ordered}
        tokens = np.array([numbers[word] for sentence in sentences for word in sentence], dtype=np.int64)
        shapes = np.full(len(names), -1)
        shapes[len(words) :] = np.arange(len(words), len(names))
        counts = np.bincount(tokens, minlength=len(names))
        for word in rare:
            if word in known:
                shapes[number[word]] = number[shape_key(word)]
                counts[number[shape_key(word)]] += frequency[word]
        offsets = np.cumsum([0, *map(len, sentences)])
        return cls(names, len(words), shapes, counts, tokens, offsets)

    def by_shape(self) -> Array:
        """Return the number of each token, a shape in place of every rare word."""
        return np.where(self.shapes >= 0, self.shapes, np.arange(len(self.names)))[self.tokens]

    def neighbours(self, tokens: Array, offset: int) -> Array:
        """Return what stands `offset` tokens further on, −1 where the sentence ends before."""
        at = np.arange(len(tokens)) + offset
        sentence = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        inside = (at >= 0) & (at < len(tokens))
        at = np.clip(at, 0, max(len(tokens) - 1, 0))
        inside &= sentence[at] == sentence
        return np.where(inside, tokens[at], -1)


def bigrams(text: Text) -> sp.csr_matrix:
    """Count pairs of neighbours; rare words are counted as their shape.

    Returns
    -------
    (names + 1, names + 1) sparse matrix of int
        The last row and column are the ends of sentences.
    """
    tokens, size = text.by_shape(), len(text.names)
    before = text.neighbours(tokens, -1)
    last = tokens[text.neighbours(tokens, 1) < 0]
    rows = np.concatenate([np.where(before < 0, size, before), last])
    columns = np.concatenate([tokens, np.full(len(last), size)])
    return _counted(rows, columns, (size + 1, size + 1))


def contexts(text: Text, reach: int, most: int) -> sp.csr_matrix:
    """Count the words around each word, each offset apart.

    Parameters
    ----------
    text : Text
        The sentences.
    reach : int
        How many words to each side are counted.
    most : int
        How many of the most frequent words are counted where they stand beside another.

    Returns
    -------
    (names, columns) sparse matrix of int
        Shapes have the sums over their rare words. A sentence that ends right there is a
        context too.
    """
    size, parts = len(text.names), []
    count = min(most, text.n_words)
    for offset in (d for d in range(-reach, reach + 1) if d):
        beside = text.neighbours(text.tokens, offset)
        if abs(offset) == 1:
            beside[beside >= count] = -2
            beside[beside == -1] = count
        beside[beside > count] = -1
        seen = beside >= 0
        parts.append(_counted(text.tokens[seen], beside[seen], (size, count + 1)))
    table = sp.hstack(parts, format="csr")
    rare = np.flatnonzero((text.shapes >= 0) & (np.arange(size) < text.n_words))
    into_shapes = sp.csr_matrix((np.ones(len(rare), dtype=np.int64), (text.shapes[rare], rare)), (size, size))
    return (table + into_shapes @ table).tocsr()


def _counted(rows: Array, columns: Array, shape: tuple[int, int]) -> sp.csr_matrix:
    """How often each pair occurs."""
    table = sp.csr_matrix((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=shape)
    table.sum_duplicates()
    return table
