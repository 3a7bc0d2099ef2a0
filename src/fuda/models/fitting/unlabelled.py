"""Word classes and vectors, learned from text without labels before a model is fitted."""

from __future__ import annotations

from typing import Any

from fuda.data.corpus import Corpus
from fuda.errors import DataError, short
from fuda.vectors import Vectors, learn
from fuda.vectors.learning import sentences


def vectors_for(model: Any, corpus: Corpus, unlabelled: Any) -> Vectors:
    """Return classes and vectors of words: learned from all text, or those that were passed.

    Parameters
    ----------
    model : Labeler
        The model that is fitted.
    corpus : Corpus
        The structures with labels.
    unlabelled : list of structures, or Vectors
        Structures without labels, or classes and vectors that were learned before.

    Returns
    -------
    Vectors
        The table.
    """
    if not model._takes_vectors:
        raise DataError(
            f"unlabelled: {type(model).__name__} counts features, and vectors of words cannot be counted; "
            "choose another learner"
        )
    if model.features is not None and not isinstance(model.features, str):
        raise DataError(
            f"unlabelled with features={short(model.features)}: classes and vectors are added to the "
            "features of a set; choose features='text', or give fuda.Vectors as features"
        )
    if corpus.kind.name not in ("text", "columns"):
        raise DataError(
            f"unlabelled: {corpus.place(0)} is {corpus.kind}, but classes and vectors are those of words; "
            "leave unlabelled out"
        )
    if isinstance(unlabelled, Vectors):
        return unlabelled
    try:
        if not any(texts := sentences(unlabelled)):
            raise DataError("there are no words in it; give sentences, or leave unlabelled out")
        return learn(corpus.structures, texts)
    except DataError as error:
        raise DataError(f"unlabelled text: {error}") from None
