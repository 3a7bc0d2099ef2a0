"""Logos of motifs: what is planted is found, by linear models and kernel machines."""

from __future__ import annotations

from functools import cache

import pytest

from fuda import CRF, DataError, HMPerceptron
from fuda.formats import fasta
from fuda.kernels import RBF
from fuda.plots import motif
from fuda.plots.motifs import motif_effects
from planted import proteins_with_sites

DATA = fasta.read(proteins_with_sites(25, seed=0), "planted")


@cache
def crf():
    return CRF(window=4, tol=1e-3).fit(DATA.X, DATA.y)


@pytest.mark.parametrize("kind", ["CRF", "kernel machine"])
def test_the_planted_motif_is_found(kind):
    model = crf()
    if kind == "kernel machine":
        model = HMPerceptron(RBF(0.1), features="blosum62", window=4, epochs=3).fit(DATA.X, DATA.y)
    effects, letters, centres = motif_effects(model, DATA.X, DATA.y, "site", window=4, most=10)
    assert centres == {"S": 50}
    assert effects.shape == (9, 20)
    largest = [letters[k] for k in effects.argmax(axis=1)]
    assert largest[1] == largest[2] == "R", "three and two residues before the site"
    assert largest[4] == "S"
    assert abs(effects.mean(axis=1)).max() < 1e-9
    if kind == "CRF":
        motifs = effects.max(axis=1)
        assert min(motifs[1], motifs[2]) > max(motifs[0], *motifs[5:])


def test_a_logo_is_drawn():
    ax = motif(crf(), DATA.X, DATA.y, "site", window=2, most=2)
    assert len(ax.patches) > 60
    assert ax.get_xlabel() == "offset"
    low, high = ax.get_ylim()
    assert low < 0 < high
    ax.figure.clf()


def test_mistakes_are_named():
    with pytest.raises(DataError, match="label is 'sites'"):
        motif(crf(), DATA.X, DATA.y, "sites")
    with pytest.raises(DataError, match="window=0"):
        motif(crf(), DATA.X, DATA.y, "site", window=0)
    with pytest.raises(DataError, match="no node has the label"):
        motif(crf(), DATA.X, [["O"] * len(x) for x in DATA.X], "site")
    words = [["Ana", "sings"]]
    with pytest.raises(DataError, match="letters"):
        motif(CRF().fit(words, [["N", "V"]]), words, [["N", "V"]], "N")
