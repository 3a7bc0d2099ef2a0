"""Features and vectors of residues: substitution matrices, properties, k-mers."""

from __future__ import annotations

import numpy as np
import pytest

from fuda import CRF, HMM, DataError
from fuda.features import (
    FEATURE_SETS,
    blosum62,
    extract,
    kmers,
    pairs_template,
    physicochemical,
    structure_columns,
    structure_template,
)
from fuda.features.residues import alphabet_of
from fuda.features.substitution import AMINO_ACIDS, MATRICES, residue_vectors, scores

BETAS = (0.0, 0.05, 0.3466, 1.0)


def test_scores_of_well_known_pairs():
    at = {a: i for i, a in enumerate(AMINO_ACIDS)}
    known = {
        "BLOSUM62": {"WW": 11, "CC": 9, "IV": 3, "DE": 2, "GI": -4, "ST": 1, "FY": 3},
        "BLOSUM45": {"WW": 15, "CC": 12, "IV": 3, "DE": 2},
        "BLOSUM80": {"WW": 16, "IV": 4, "KR": 3},
        "PAM250": {"WW": 17, "CC": 12, "FY": 7, "IV": 4, "DE": 3, "WC": -8},
        "PAM70": {"WW": 13, "IV": 3, "DE": 3, "WC": -11},
    }
    assert set(known) == set(MATRICES)
    for name, pairs in known.items():
        matrix = scores(name)
        assert (matrix == matrix.T).all()
        assert {pair: matrix[at[pair[0]], at[pair[1]]] for pair in pairs} == pairs


@pytest.mark.parametrize("name", MATRICES)
def test_scores_are_those_of_biopython(name):
    pytest.importorskip("Bio", reason="biopython is not installed")
    from Bio.Align import substitution_matrices

    theirs = substitution_matrices.load(name)
    expected = [[theirs[a, b] for b in AMINO_ACIDS] for a in AMINO_ACIDS]
    np.testing.assert_array_equal(scores(name), expected)


def test_hydropathies_are_those_of_biopython():
    pytest.importorskip("Bio", reason="biopython is not installed")
    from Bio.SeqUtils.ProtParamData import kd

    values = np.array([kd[a] for a in AMINO_ACIDS])
    expected = (values - values.mean()) / values.std()
    np.testing.assert_allclose([physicochemical(a)["hydropathy"] for a in AMINO_ACIDS], expected)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", MATRICES)
def test_vectors_have_the_geometry_of_the_scores(name, beta):
    vectors = residue_vectors(name, beta)
    table = np.array([vectors[a] for a in AMINO_ACIDS])
    gram = table @ table.T
    assert np.diag(gram).mean() == pytest.approx(1.0)
    values = np.exp(beta * scores(name)) if beta else scores(name)
    apart = np.diag(values)[:, None] + np.diag(values) - 2 * values
    distances = np.diag(gram)[:, None] + np.diag(gram) - 2 * gram
    # all pairs are apart by the distance of the scores, or by that and one number more
    off = ~np.eye(20, dtype=bool)
    slope, constant = np.polyfit(apart[off], distances[off], 1)
    np.testing.assert_allclose(distances[off], slope * apart[off] + constant, atol=1e-9)
    assert constant == pytest.approx(0, abs=1e-9) or name.startswith("PAM")
    np.testing.assert_allclose(vectors["B"], (vectors["N"] + vectors["D"]) / 2)
    np.testing.assert_allclose(vectors["X"], table.mean(axis=0), atol=1e-12)
    assert not vectors["-"].any()
    if not beta:  # an unknown residue is as near to all
        np.testing.assert_allclose(vectors["X"], 0, atol=1e-12)


def test_properties_are_standardized():
    table = np.array([list(physicochemical(a).values()) for a in AMINO_ACIDS])
    np.testing.assert_allclose(table.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(table.std(axis=0), 1)
    assert physicochemical("k") == physicochemical("K")
    assert physicochemical("7") == blosum62("7") == {}
    assert physicochemical("D")["charge"] < 0 < physicochemical("R")["charge"]
    assert max(AMINO_ACIDS, key=lambda a: physicochemical(a)["hydropathy"]) == "I"


def test_columns_follow_features_with_values():
    features = extract("blosum62", ("K", "buried"))
    assert features["column1=buried"] == 1.0
    assert features["like=K"] == blosum62("K")["like=K"]


@pytest.mark.parametrize("features", ["physicochemical", "blosum62"])
def test_numeric_sets_train_and_the_hmm_refuses_them(features):
    X, y = [list("MKVLAS"), list("GGSDE")], [list("HHHHCC"), list("CCCHH")]
    model = CRF(features=features, window=2, l2=0.01).fit(X, y)
    assert [list(labels) for labels in model.predict(X)] == y
    with pytest.raises(DataError, match="count"):
        HMM(features=features).fit(X, y)
    assert features in FEATURE_SETS


def test_kmers_by_counting():
    sequence = "MKKLMKV"
    expected = kmers(sequence, k=3, mismatches=1)
    assert len(expected) == len(sequence)
    for i, features in enumerate(expected):
        word = "".join(sequence[j] if 0 <= j < len(sequence) else "_" for j in range(i - 1, i + 2))
        assert features == [word, "?" + word[1:], word[0] + "?" + word[2], word[:2] + "?"]
    # the inner product counts how alike two words are: equal, or equal up to a mismatch
    shared = [len(set(expected[1]) & set(other)) for other in expected]
    assert (shared[1], shared[5]) == (4, 1)  # MKK with itself, and with MKV
    with pytest.raises(DataError, match="mismatches"):
        kmers("MK", k=2, mismatches=2)


def test_moments_by_their_definition():
    from fuda.features.structure import _moment

    values = np.random.RandomState(0).normal(size=12)
    for side, angle in ((3, 100), (5, 170)):
        moments = _moment(values, side, angle)
        for t in range(12):
            near = range(max(0, t - side), min(12, t + side + 1))
            mean = np.mean(values[list(near)])
            total = sum((values[j] - mean) * np.exp(1j * np.deg2rad(angle) * (j - t)) for j in near)
            assert moments[t] == pytest.approx(abs(total) / len(near))


def test_an_amphipathic_helix_has_a_large_moment():
    helix = [int(columns[1]) for columns in structure_columns("LKKLLKLLKKLLKLLKKL")]
    strand = [int(columns[2]) for columns in structure_columns("VKVKVKVKVKVK")]
    assert min(helix[5:-5]) >= 5
    assert min(strand[4:-4]) >= 5
    assert len(structure_columns("MKXU-")) == 5


def test_the_template_learns_structure():
    chains = ["MLKKLLKLLKKLGGSGDPNGVKVTVEVKVG", "GSPNGDVTVKVEVTVGNGLLKELAKKLLEEG"]
    y = [["H"] * 12 + ["C"] * 8 + ["E"] * 9 + ["C"], ["C"] * 6 + ["E"] * 9 + ["C"] * 3 + ["H"] * 12 + ["C"]]
    X = [structure_columns(chain) for chain in chains]
    model = CRF(features=structure_template(window=4, pairs=2, distance=2), l2=0.1).fit(X, y)
    assert [list(labels) for labels in model.predict(X)] == y


def test_pairs_are_what_the_structure_template_sees_of_residues():
    lines = pairs_template().text.splitlines()
    assert lines[:-1] == structure_template().text.splitlines()[: len(lines) - 1]
    assert "U017:%x[-5,0]/%x[-4,0]" in lines
    X, y = [list("MKVLASWYFPTC"), list("GGSDEGGSDE")], [list("HHHHCCHHHHCC"), list("CCCHHCCCHH")]
    model = CRF(features=pairs_template(2, 2, 1), l2=0.01).fit(X, y)
    assert model.decode is None
    assert model._decoding == "posterior", "residues are labelled one by one, whatever the features"
    assert model.predict(X).tolist() == y


def test_rare_codes_and_gaps_do_not_make_proteins_text():
    assert alphabet_of("ACDEFGHIKLMNPQRSTVWY" + "BJOUXZ*-.") == "protein"
