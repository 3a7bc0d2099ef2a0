"""Defaults by the alphabet of observations: features, window, decoding of residues and bases."""

from __future__ import annotations

import numpy as np
import pytest

import fuda
from fuda import CRF, HMM, HMSVM, MEMM, HMPerceptron, MarginalizedPerceptron, MarginalizedSVM, SemiCRF
from fuda.features.substitution import AMINO_ACIDS

RANDOM = np.random.RandomState(0)


def sequences(letters, count=4, length=20):
    return [RANDOM.choice(list(letters), length).tolist() for _ in range(count)]


PROTEINS = sequences(AMINO_ACIDS)
GENES = sequences("ACGT")
WORDS = [[f"{letter}{letter}" for letter in x] for x in PROTEINS]
# An alphabet of four letters.
FEW = [[letter if letter in "AKSD" else "A" for letter in x] for x in PROTEINS]


def labels(X, of="KRAS"):
    return [["H" if x[0] in of else "C" for x in sequence] for sequence in X]


MODELS = [CRF, MEMM, SemiCRF, HMPerceptron, HMSVM, MarginalizedPerceptron, MarginalizedSVM]


@pytest.mark.parametrize("cls", MODELS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize(
    ("X", "features", "window"),
    [(PROTEINS, "protein", 7), (GENES, "dna", 6), (FEW, None, 1), (WORDS, None, 1)],
)
def test_features_and_window_follow_the_alphabet(cls, X, features, window, tmp_path):
    model = cls().fit(X, labels(X))
    named = cls(features=features or "text")
    if "window" in model.get_params():
        named.set_params(window=window)
    named.fit(X, labels(X))
    assert model.features is None
    assert model.encoder_.settings == named.encoder_.settings
    assert [list(p) for p in model.predict(X)] == [list(p) for p in named.predict(X)]
    model.save(tmp_path / "m.fuda")
    loaded = fuda.load(tmp_path / "m.fuda")
    assert loaded.features is None
    assert loaded.encoder_.settings == model.encoder_.settings
    assert [list(p) for p in loaded.predict(X)] == [list(p) for p in model.predict(X)]


@pytest.mark.parametrize("cls", [CRF, MEMM, HMM, SemiCRF], ids=lambda cls: cls.__name__)
def test_residues_are_decoded_one_by_one(cls, tmp_path):
    random = np.random.RandomState(1)
    # helices that residues tell little of: the most probable labeling is one helix
    y = [random.choice(["C", "H"], 20, p=[0.4, 0.6]).tolist() for _ in PROTEINS]
    for X, decode in ((PROTEINS, "posterior"), (GENES, "viterbi"), (WORDS, "viterbi")):
        model = cls().fit(X, y)
        predicted = [list(p) for p in model.predict(X)]
        assert predicted == [list(p) for p in cls(decode=decode).fit(X, y).predict(X)]
        assert model.decode is None
        model.save(tmp_path / "m.fuda")
        loaded = fuda.load(tmp_path / "m.fuda")
        assert loaded.decode is None
        assert [list(p) for p in loaded.predict(X)] == predicted
        loaded.set_params(decode="viterbi")
        assert [list(p) for p in loaded.predict(X)] == [
            list(p) for p in model.set_params(decode="viterbi").predict(X)
        ]


def test_what_is_named_is_kept():
    model = CRF(features="word", window=2, decode="viterbi").fit(PROTEINS, labels(PROTEINS))
    assert model.encoder_.settings == ("word", 2)
    assert model._decoding == "viterbi"
    assert CRF(window=3).fit(PROTEINS, labels(PROTEINS)).encoder_.settings == ("protein", 3)


def test_explanations_are_of_the_labels_that_are_predicted():
    random = np.random.RandomState(2)
    y = [random.choice(["C", "H"], 20, p=[0.4, 0.6]).tolist() for _ in PROTEINS]
    model = CRF().fit(PROTEINS, y)
    predicted = model.predict(PROTEINS[:1])[0]
    assert [model.explain(PROTEINS[0], node).chosen.label for node in range(0, 20, 6)] == predicted[::6]
