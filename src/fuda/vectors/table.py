"""A table of words with classes and vectors, which is a feature function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from fuda.checks import LARGEST
from fuda.errors import DataError, short
from fuda.features.sets import FEATURE_SETS, extract
from fuda.vectors.counting import is_shape, shape_key
from fuda.vectors.reading import read_table

Array = np.ndarray
PREFIXES = (4, 6, 10)  # the lengths of the prefixes of codes, which are coarser classes
LENGTH = 2.0  # the length that vectors have as features
MEMBERSHIP = 0.7  # the value of the features of classes
_SUFFIXES = (5, 4, 3)  # the lengths of suffixes, longest first
_LEAST_OF_SUFFIX = 5  # a suffix is known where at least so many words have it
_MOST_BITS = 1000


class Vectors:
    """Words with vectors, and with classes where these were learned: a source of features.

    Give it as parameter `features` of a model; its features are those of the set `base` and, for
    every word in the table, the prefixes of its class (``class4=0110``) and its vector, scaled to
    length 2 (``vector0``, ``vector1``, …). They take part in the window, in kernels and in
    explanations like all others. The table is stored in model files.

    A word that is not in the table has the row of its lower-cased form; else that of its shape,
    which stands for rare words in learned tables; else the mean of the words with the same longest
    ending of three to five characters; else no further features.

    Parameters
    ----------
    words : sequence of str
        The words, all different.
    matrix : array-like of shape (n_words, size)
        Their vectors.
    classes : sequence of str, optional
        Their classes as texts of bits, in which prefixes are coarser classes.
    base : {"word", "spelling", "text", "protein", "dna"} or None, default="text"
        The feature set whose features come first; None for none.

    See Also
    --------
    fuda.vectors.learn : Learn classes and vectors from text without labels.

    Examples
    --------
    >>> table = Vectors(["Lima", "Oslo"], [[2.0, 0.0], [0.0, 3.0]], base="word")
    >>> table("Lima")
    {'w=Lima': 1.0, 'vector0': 2.0, 'vector1': 0.0}
    >>> table("Bonn")
    {'w=Bonn': 1.0}
    """

    def __init__(
        self,
        words: Sequence[str],
        matrix: Any,
        classes: Sequence[str] | None = None,
        *,
        base: str | None = "text",
    ) -> None:
        self.words = list(words)
        self.matrix = _checked_matrix(matrix, len(self.words))
        self.classes = None if classes is None else list(classes)
        self.base = _checked_base(base)
        self._row = {word: i for i, word in enumerate(self.words)}
        if len(self._row) < len(self.words) or not all(isinstance(word, str) for word in self.words):
            raise DataError("words: they are not strings that all differ; give each word once")
        if self.classes is not None:
            _check_classes(self.classes, len(self.words))

    @classmethod
    def read(cls, path: str | Path, words: Iterable[str] | None = None, *, base: str | None = "text") -> Self:
        """Read vectors from a file.

        Parameters
        ----------
        path : str or Path
            A file of word2vec (text or binary), GloVe or fastText (text), gzipped or not.
        words : iterable of str, optional
            The words to keep, with their lower-cased forms; by default all, which takes 4 bytes
            for every number in the file.
        base : str or None, default="text"
            The feature set whose features come first; None for none.

        Returns
        -------
        Vectors
            The table; the first row counts where a word has several.
        """
        needed = None if words is None else {form for word in words for form in (word, word.lower())}
        return cls(*read_table(path, needed), base=base)

    def __call__(self, observation: Any) -> dict[str, float]:
        """Return the features of an observation; of a tuple the first column is the word."""
        features = {} if self.base is None else dict.fromkeys(extract(self.base, observation), 1.0)
        word = observation[0] if isinstance(observation, tuple) else observation
        if not isinstance(word, str):
            raise DataError(f"{short(observation)} is not a word; vectors are those of strings")
        bits = self.word_class(word)
        if bits is not None:
            features |= {f"class{size}={bits[:size]}": MEMBERSHIP for size in PREFIXES}
            features[f"class={bits}"] = MEMBERSHIP
        vector = self.vector(word)
        length = float(np.linalg.norm(vector))
        if length:
            values = (LENGTH / length * vector).tolist()
            features |= {f"vector{i}": value for i, value in enumerate(values)}
        return features

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._row

    def __repr__(self) -> str:
        classes = "" if self.classes is None else f", {len(set(self.classes))} classes"
        return f"<Vectors of {len(self):,} words × {self.matrix.shape[1]}{classes}, base={self.base!r}>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # it never changes, and may be large

    def vector(self, word: str) -> Array:
        """Return the vector of a word, of what it backs off to, or zeros.

        Parameters
        ----------
        word : str
            Any word.

        Returns
        -------
        ndarray of shape (size,)
            The vector as it was given, not scaled.
        """
        row = self._row_of(word)
        if row is not None:
            return self.matrix[row].astype(np.float64)
        suffix = next((word[-n:] for n in _SUFFIXES if len(word) > n and word[-n:] in self._suffixes), None)
        if suffix is None:
            return np.zeros(self.matrix.shape[1])
        return self.matrix[self._suffixes[suffix]].mean(axis=0, dtype=np.float64)

    def word_class(self, word: str) -> str | None:
        """Return the class of a word or of its shape; None where it has none.

        Parameters
        ----------
        word : str
            Any word.

        Returns
        -------
        str or None
            The class, a text of bits.
        """
        row = self._row_of(word)
        return None if row is None or self.classes is None else self.classes[row]

    def extending(self, base: str | None) -> Self:
        """Return the same table with another feature set before it.

        Parameters
        ----------
        base : str or None
            The name of the set; None for none.

        Returns
        -------
        Vectors
            The table.
        """
        if base == self.base:
            return self
        other = object.__new__(type(self))
        other.__dict__ |= self.__dict__ | {"base": _checked_base(base)}
        return other

    def _row_of(self, word: str) -> int | None:
        """The row of a word, of its lower-cased form or of its shape."""
        for form in (word, word.lower(), shape_key(word)):
            if form in self._row:
                return self._row[form]
        return None

    @cached_property
    def _suffixes(self) -> dict[str, list[int]]:
        """The rows of the words with each ending that is frequent enough."""
        rows_of_key: dict[str, list[int]] = defaultdict(list)
        for row, word in enumerate(self.words):
            for size in _SUFFIXES:
                if len(word) > size and not is_shape(word):
                    rows_of_key[word[-size:]].append(row)
        return {suffix: rows for suffix, rows in rows_of_key.items() if len(rows) >= _LEAST_OF_SUFFIX}


def _checked_base(base: Any) -> str | None:
    """The name of a feature set, or None."""
    if base is None or (isinstance(base, str) and base in FEATURE_SETS):
        return base
    raise DataError(f"base={short(base)}: no such feature set; give {', '.join(FEATURE_SETS)} or None")


def _checked_matrix(matrix: Any, n_words: int) -> Array:
    """The vectors as 32-bit floats, one row per word."""
    try:
        array = np.asarray(matrix, dtype=np.float32)
    except (TypeError, ValueError):
        raise DataError(f"matrix={short(matrix)}: give an array of one row of numbers per word") from None
    if array.ndim != 2 or array.shape[0] != n_words or not array.size:
        raise DataError(f"matrix has the shape {array.shape} for {n_words:,} words; give one row per word")
    if not np.abs(array).max() <= LARGEST:  # nan included
        raise DataError(f"matrix has numbers that are not finite or beyond ±{LARGEST:g}; correct or scale it")
    return array


def _check_classes(classes: list[str], n_words: int) -> None:
    """Raise DataError where classes are not texts of bits, one per word."""
    if len(classes) != n_words:
        raise DataError(f"classes has {len(classes):,} entries for {n_words:,} words; give one per word")
    for bits in classes:
        if not isinstance(bits, str) or len(bits) > _MOST_BITS or bits.strip("01"):
            raise DataError(f"classes: {short(bits)} is not a text of bits; give texts such as '0110'")
