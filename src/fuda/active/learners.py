"""Which learner to teach sentence by sentence, by what the data are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuda.data.corpus import Corpus
from fuda.data.structures import as_structures
from fuda.kernels import Polynomial
from fuda.models.candidates import kind_of
from fuda.models.marginalized_perceptron import MarginalizedPerceptron

_SAMPLE = 1_000  # structures by which the kind of the data is told
_FEATURES = {"text": "text", "protein": "protein", "dna": "dna"}


def learner_for(structures: Sequence[Any], scheme: str | None = None) -> MarginalizedPerceptron:
    """Return the learner for data that a person labels, one structure after another.

    It learns by `partial_fit` within milliseconds, takes labels that it has not seen before, and
    can tell which structures spoke for a label.

    Parameters
    ----------
    structures : list of structures
        What is to be labelled.
    scheme : str, optional
        The scheme of the labels, where they encode segments.

    Returns
    -------
    MarginalizedPerceptron
        Not fitted.

    Examples
    --------
    >>> learner_for([["Ana", "lives", "in", "Lima"]], scheme="IOB2").features
    'text'
    >>> learner_for([list("MKTAYIAKQR")]).features
    'protein'
    """
    corpus = Corpus(as_structures(structures[:_SAMPLE]))
    kind = kind_of(corpus)
    parameters: dict[str, Any] = {"features": _FEATURES[kind]} if kind in _FEATURES else {}
    parameters["kernel"] = Polynomial(1 if kind in ("text", "features") else 2).normalized()
    if scheme is not None and corpus.is_chain:
        parameters |= {"decode": "viterbi", "scheme": scheme}
    return MarginalizedPerceptron(**parameters)
