"""The encoder for the parameters `features` and `window` of a model."""

from __future__ import annotations

from typing import Any

from fuda.data.corpus import Corpus
from fuda.data.template_encoding import TemplateEncoder
from fuda.data.window_encoding import WindowEncoder
from fuda.features.sets import resolve
from fuda.features.templates import Template


def make_encoder(
    features: Any, window: int | None, corpus: Corpus | None = None
) -> WindowEncoder | TemplateEncoder:
    """Return an encoder for a template, or for a feature set or function and a window.

    A window of None is 1, or 0 for observations that are collections of features: these commonly
    show the neighbours that their maker wanted to be seen. Features of None, of a model that
    chooses them itself, are the words. Where something is known of the words of the corpus, it is
    added to the features of a set.
    """
    features = "word" if features is None else features
    if window is None:
        window = 0 if corpus is not None and corpus.kind.name == "features" else 1
    if isinstance(features, str) and corpus is not None and corpus.vectors is not None:
        features, window = resolve(features, window)
        features = corpus.vectors.extending(features)
    return TemplateEncoder(features) if isinstance(features, Template) else WindowEncoder(features, window)
