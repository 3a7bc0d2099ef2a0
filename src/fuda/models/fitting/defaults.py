"""What parameters that are None stand for, by the observations and the labels.

Residues and bases get the features of their alphabet and a wide window. Residues are decoded one
by one: where labels are uncertain, the most probable labeling of the whole sequence consists of
the longest segments, whatever the residues.
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
    # A model that counts features cannot use vectors: it is the prior or the base of another one.
    if not model._takes_vectors and corpus.vectors is not None:
        corpus = copy(corpus)
        corpus.vectors = None
    if model.features is not None or "features" not in model._defaults:
        return make_encoder(model.features, model.window, corpus)
    letters = alphabet_of(corpus.observations)
    window = ALPHABETS[letters] if letters and model.window is None else model.window
    return make_encoder(defaults_for(model, corpus)["features"], window, corpus)


def defaults_for(model: Any, corpus: Corpus | None) -> dict[str, Any]:
    """What parameters stand for where they are None, for a corpus or, without one, for text."""
    defaults = dict(model._defaults)
    letters = None if corpus is None else alphabet_of(corpus.observations)
    if letters is not None and "features" in defaults:
        defaults["features"] = letters
    if letters == "protein" and "decode" in defaults:
        defaults["decode"] = "posterior"
    return defaults if corpus is None else defaults | model._defaults_by(corpus, letters)
