"""What parameters that are None stand for, by the observations and the labels.

Residues and bases get the features of their alphabet and a wide window. Residues are labelled one
by one: where labels are uncertain, the best labeling as a whole is that of the longest segments,
whatever the residues.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from fuda.data.corpus import Corpus
from fuda.data.encoders import make_encoder
from fuda.data.template_encoding import TemplateEncoder
from fuda.data.window_encoding import WindowEncoder
from fuda.features.residues import ALPHABETS, alphabet_of


def encoder_for(model: Any, corpus: Corpus) -> WindowEncoder | TemplateEncoder:
    """The encoder by a model's parameters, or by the alphabet of a corpus where they are None."""
    # Such a model is a prior or a base that counts features.
    if not model._takes_vectors and corpus.vectors is not None:
        corpus = copy(corpus)
        corpus.vectors = None
    if model.features is not None or "features" not in model._defaults:
        return make_encoder(model.features, model.window, corpus)
    letters = alphabet_of(corpus.observations)
    window = ALPHABETS[letters] if letters and model.window is None else model.window
    return make_encoder(defaults_for(model, corpus)["features"], window, corpus)


def defaults_for(model: Any, corpus: Corpus | None) -> dict[str, Any]:
    """The values of parameters that are None, for a corpus or, without one, for text."""
    found = dict(model._defaults)
    letters = None if corpus is None else alphabet_of(corpus.observations)
    if letters is not None and "features" in found:
        found["features"] = letters
    if letters == "protein" and "decode" in found:
        found["decode"] = "posterior"
    return found if corpus is None else found | model._defaults_by(corpus, letters)
