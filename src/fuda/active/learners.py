"""The learner for data that are labelled structure by structure, chosen by the kind of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuda.data.corpus import Corpus
from fuda.data.structures import as_structures
from fuda.kernels import Polynomial
from fuda.models.choice.candidates import kind_of
from fuda.models.crf import CRF
from fuda.models.marginalized_perceptron import MarginalizedPerceptron

# The kind of the data is determined from this many structures.
_SAMPLE = 1_000
# The windows of a CRF, as in the first candidates of `fuda.Auto`.
_WINDOWS = {"protein": 7, "dna": 6}
# With at least this many labelled structures, the model is set to predict more entities than the
# likeliest labeling has. With fewer it has learned which words begin an entity, but not which do
# not. Sentences chosen as most useful contain more entities than others, so that it expects many.
_SEARCHING = 25


def learner_for(
    structures: Sequence[Any],
    scheme: str | None = None,
    *,
    kernel: bool = False,
    labelled: int = 0,
    features: str | None = None,
) -> CRF | MarginalizedPerceptron:
    """Return the learner for data that a person labels, one structure after another.

    It learns by `partial_fit` within milliseconds and takes labels that it has not seen before.

    Parameters
    ----------
    structures : list of structures
        What is to be labelled.
    scheme : str, optional
        The scheme of the labels, where they encode segments.
    kernel : bool, default=False
        Whether to use a learner that can show which structures favoured a label: the
        marginalized perceptron, which is less accurate on text. Graphs always use it.
    labelled : int, default=0
        How many structures it will be fitted to; with more than a few, a CRF is set to find more
        entities.
    features : str, optional
        The name of a feature set, in place of the default for such data.

    Returns
    -------
    CRF or MarginalizedPerceptron
        Not fitted.

    Examples
    --------
    >>> learner_for([["Ana", "lives", "in", "Lima"]], scheme="IOB2", labelled=100)
    CRF(features='text', l2=0.1, outside_penalty=0.5, scheme='IOB2', tol=0.001, warm_start=True)
    >>> learner_for([list("MKTAYIAKQR")], kernel=True).features
    'protein'
    """
    corpus = Corpus(as_structures(structures[:_SAMPLE]))
    kind = kind_of(corpus)
    parameters: dict[str, Any] = {"features": kind} if kind in ("text", "protein", "dna") else {}
    if features is not None:
        parameters["features"] = features
    if scheme is not None and corpus.is_chain:
        parameters["scheme"] = scheme
    if kernel or corpus.shape not in CRF._shapes:
        parameters["kernel"] = Polynomial(1 if kind in ("text", "features") else 2).normalized()
        decode = "viterbi" if "scheme" in parameters else "posterior"
        return MarginalizedPerceptron(decode=decode, **parameters)
    if kind in _WINDOWS:
        parameters["window"] = _WINDOWS[kind]
    if scheme is not None and labelled >= _SEARCHING:
        parameters["outside_penalty"] = 0.5
    return CRF(l2=0.1, tol=1e-3, warm_start=True, **parameters)
