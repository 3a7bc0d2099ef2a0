"""Learning word classes and vectors from text without labels."""

from __future__ import annotations

from collections.abc import Iterable
from math import isqrt
from typing import Any

import numpy as np

from fuda.data.structures import as_structures_or_none
from fuda.errors import DataError, described, place
from fuda.vectors.counting import Text, bigrams, contexts
from fuda.vectors.exchange import bit_codes, exchanged
from fuda.vectors.ppmi import ppmi, truncated_svd
from fuda.vectors.table import Vectors

N_CLASSES = 64
SIZE = 50
REACH = 2
MOST_CONTEXTS = 2000


def learn(*texts: Iterable[Any], base: str | None = "text") -> Vectors:
    """Learn word classes and vectors from sentences, whose labels are not needed.

    Words that stand between the same neighbours become alike: classes by exchange, named by bits
    whose prefixes are coarser classes, and vectors by the singular value decomposition of
    pointwise mutual information. The result does not depend on the order of sentences, on threads
    or on seeds.

    Parameters
    ----------
    *texts : list of structures
        Sentences as for `fit`: lists of words, sequences or trees; of a tuple of columns the first
        is the word. Several lists may differ in shape.
    base : str or None, default="text"
        The feature set that the features of the result include.

    Returns
    -------
    Vectors
        The classes and vectors of the words, and of the shapes of rare ones.

    Examples
    --------
    >>> found = learn([["Ana", "lives", "in", "Lima"], ["Eva", "lives", "in", "Oslo"]])
    >>> found.word_class("Lima") == found.word_class("Oslo")
    True
    """
    text = Text.of([sentence for source in texts for sentence in sentences(source)])
    if not len(text.tokens):
        raise DataError("there are no words to learn classes and vectors from; give sentences")
    n_classes = min(N_CLASSES, 1 + isqrt(text.n_words))  # few words are not each a class
    classes, counts, _ = exchanged(bigrams(text), n_classes)
    of_class = bit_codes(counts)
    bits = [of_class[classes[row if shape < 0 else shape]] for row, shape in enumerate(text.shapes)]
    vectors, values = truncated_svd(ppmi(contexts(text, REACH, MOST_CONTEXTS)), SIZE)
    return Vectors(text.names, vectors * np.sqrt(values), bits, base=base)


def sentences(texts: Iterable[Any]) -> list[list[str]]:
    """Return the words of each structure.

    >>> sentences([["Ana", "lives"], [("in", "ADP"), ("Lima", "PROPN")]])
    [['Ana', 'lives'], ['in', 'Lima']]
    """
    result = []
    for i, structure in enumerate(as_structures_or_none(texts)):
        words = [] if structure is None else [_word(x) for x in structure.observations]
        for node, word in enumerate(words):
            if word is None:
                raise DataError(
                    f"{place(i, node)} is {described(structure.observations[node])}, but classes and vectors "  # type: ignore[union-attr]
                    "are those of words; give strings, or tuples whose first column is a string"
                )
        result.append(words)
    return result  # type: ignore[return-value]


def _word(observation: Any) -> str | None:
    """The word of an observation; None where it has none."""
    first = observation[0] if isinstance(observation, tuple) and observation else observation
    return first if isinstance(first, str) else None
