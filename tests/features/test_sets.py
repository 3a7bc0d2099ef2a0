from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuda import DataError, Template
from fuda.features import FEATURE_SETS, PAPER_SETS, dna, extract, protein, spelling, text, word
from fuda.features.sets import resolve


@pytest.mark.parametrize(
    ("token", "flags"),
    [
        ("lima", []),
        ("Lima", ["capitalized"]),
        ("EFE", ["capitalized", "all-capitals"]),
        ("A", ["capitalized", "all-capitals", "single-capital"]),
        ("J.", ["capitalized", "all-capitals", "initial", "period", "ends-period"]),
        ("XIV", ["capitalized", "all-capitals", "roman"]),
        ("U.S.", ["capitalized", "all-capitals", "period", "ends-period"]),
        ("iPhone", ["mixed-case"]),
        ("McDonald", ["capitalized", "mixed-case"]),
        ("1999", ["digits", "year"]),
        ("1", ["digits", "all-digits"]),
        ("12345", ["digits", "all-digits"]),
        ("3.5%", ["digits", "number", "period"]),
        ("10:30", ["digits", "number"]),
        ("-2,5", ["digits", "number", "hyphen"]),
        ("B52", ["capitalized", "all-capitals", "digits"]),
        ("ex-rey", ["hyphen"]),
        ("etc.", ["period", "ends-period"]),
        ("l'an", ["apostrophe"]),
        ("l’an", ["apostrophe"]),
        (",", ["punctuation"]),
        ("...", ["period", "ends-period", "punctuation"]),
        ("", []),
        ("É", ["capitalized", "all-capitals", "single-capital"]),
        ("東京", []),
    ],
)
def test_spelling(token, flags):
    assert spelling(token) == [f"w={token}", *flags]
    assert word(token) == [f"w={token}"]


@pytest.mark.parametrize(
    ("token", "shape", "classes", "length"),
    [
        ("Lima", "Xxxx", "Xx", "4-5"),
        ("Guadalajara", "Xxxxx", "Xx", "9-12"),
        ("CO2", "XX0", "X0", "3"),
        ("25/12/1999", "00/00/0000", "0/0/0", "9-12"),
        ("-----", "----", "-", "4-5"),
        ("東京タワーへ", "cckkkh", "ckh", "6-8"),
        ("", "", "", "0"),
        ("x", "x", "x", "1"),
        ("x" * 13, "xxxx", "x", "13+"),
    ],
)
def test_shapes(token, shape, classes, length):
    assert text(token)[-3:] == [f"shape={shape}", f"classes={classes}", f"length={length}"]


def test_affixes_are_shorter_than_the_token():
    assert [f for f in text("casa") if f[0] in "ps" and f[1].isdigit()] == [
        *("p1=c", "s1=a", "p2=ca", "s2=sa", "p3=cas", "s3=asa"),
    ]
    assert not any(f.startswith(("p1=", "s1=")) for f in text("y"))


@given(st.text(max_size=12))
def test_sets_take_any_text_and_name_each_feature_once(token):
    for features in FEATURE_SETS.values():
        names = features(token)
        assert all(isinstance(name, str) for name in names)
        assert len(set(names)) == len(names)
    assert set(word(token)) <= set(spelling(token)) <= set(text(token))


def test_residues_and_bases():
    assert protein("k") == protein("K") == ["residue=K", "hydrophobic", "polar", "positive", "charged"]
    assert protein("P") == ["residue=P", "small", "proline"]
    assert protein("X") == ["residue=X"]
    assert dna("t") == ["base=T", "pyrimidine", "weak", "keto"]
    assert dna("N") == ["base=N"]
    assert dna("") == ["base="]
    assert dna("AG") == ["base=AG"]  # two letters are not a base, though "AG" are the purines
    assert protein("VIL") == ["residue=VIL"]


def test_every_standard_residue_and_base_has_classes():
    for residue in "ACDEFGHIKLMNPQRSTVWY":
        assert len(protein(residue)) > 1
    for base in "ACGTU":
        assert len(dna(base)) == 4


def test_paper_sets():
    assert PAPER_SETS == {"S1": ("word", 0), "S2": ("spelling", 0), "S3": ("spelling", 1)}
    for name, expected in PAPER_SETS.items():
        assert resolve(name, 5) == expected


def test_resolve_takes_names_and_functions():
    assert resolve("text", 2) == ("text", 2)
    assert resolve(str.split, np.int64(3)) == (str.split, 3)
    assert type(resolve("word", np.int8(1))[1]) is int


@pytest.mark.parametrize("window", [-1, 101, 1.5, True, "1", None, np.float64(1.0), [1], 10**30])
def test_bad_windows(window):
    with pytest.raises(DataError, match=r"window=.*give the number of neighbours on each side, from 0 to"):
        resolve("word", window)


@pytest.mark.parametrize("features", ["words", "", "s3", None, 5, ["word"], {"f": 1}])
def test_bad_features(features):
    with pytest.raises(DataError) as caught:
        resolve(features, 1)
    assert str(caught.value).startswith(f"features={features!r}")
    assert "word, spelling, text, protein, dna" in str(caught.value)
    assert "function" in str(caught.value)


def test_extract():
    assert extract("word", "Lima") == ["w=Lima"]
    assert extract("word", ("Lima", "NP", 3)) == ["w=Lima", "column1=NP", "column2=3"]
    assert extract("spelling", (7, "x")) == ["w=7", "digits", "all-digits", "column1=x"]
    assert extract("text", 12) == ["id=12"]
    assert extract("text", {"f": 1.0}) == {"f": 1.0}
    assert extract("text", ["f"]) == ["f"]
    assert extract(lambda x: [x[1]], ("Lima", "NP")) == ["NP"]


def test_a_template_is_no_function():
    assert not callable(Template("U00:%x[0,0]\nB"))
