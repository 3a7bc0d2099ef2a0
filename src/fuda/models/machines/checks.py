"""Checks of models with the marginalized kernel: parameters against data, and scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.window_encoding import WindowEncoder
from fuda.errors import DataError, place, short
from fuda.marginalized.kernel import check_gap
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.parts import usual_parts
from fuda.models.labelings import check_sequences


def check_fits(model: Any, corpus: Corpus) -> None:
    """Raise DataError where parameters do not fit the encoder or the shape of the structures."""
    if not isinstance(model.encoder_, WindowEncoder) or model.encoder_.window:
        raise DataError(
            f"features={short(model.features)}: the marginalized kernel compares the neighbours of nodes "
            "itself, from single observations; give a feature set without a window, or a "
            "function of one observation"
        )
    check_gap(model.gap, corpus.shape)
    usual_parts(corpus.shape, model.parts)
    check_decoder(model, corpus)


def check_decoder(model: Any, corpus: Corpus) -> None:
    """Raise DataError where the structures cannot be decoded as the parameters say."""
    if model._decoding == "viterbi" and corpus.shape == "dag":
        raise DataError(
            "decode='viterbi' finds the best labeling of a sequence or tree, but structure 0 is a dag; "
            "choose decode='posterior'"
        )
    if model.scheme is not None:
        check_sequences(model.scheme, corpus)


def checked_scores(model: Any, scores: Numbers, corpus: Corpus) -> Numbers:
    """Return scores after checking that all of them are finite."""
    rows = scores.doubles()
    if np.isfinite(rows).all():
        return scores
    if np.isnan(rows).any():
        node = int(np.isnan(rows).any(axis=1).argmax())
        structure = int(np.searchsorted(corpus.offsets, node, side="right")) - 1
        raise DataError(
            f"{place(structure)}: the kernel {short(model.kernel_)} is nan for an observation in it and "
            "one of the training data; correct the kernel, or the observation"
        )
    raise DataError(
        f"scores exceed the range of doubles with mixing={model.mixing_:g} and {short(model.kernel_)}, "
        "which is larger for two observations than for each with itself; correct the kernel, or "
        "choose a smaller mixing"
    )
