"""PSI-BLAST's matrices: reading, writing, round trips, damaged files."""

from __future__ import annotations

import numpy as np
import pytest
from format_cases import FEWER, PROPERTY
from hypothesis import given
from hypothesis import strategies as st

import fuda
from fuda import CRF, DataError, Sequence
from fuda.features.substitution import AMINO_ACIDS, scores
from fuda.formats import Dataset, Record, pssm, read, write

LETTERS = "  ".join(AMINO_ACIDS)


def row(position: int, residue: str, percentages: bool = True) -> str:
    values = scores("BLOSUM62")[AMINO_ACIDS.index(residue)].astype(int)
    text = f"{position:5d} {residue}   " + "".join(f"{value:4d}" for value in values)
    if not percentages:
        return text
    return text + " " + "".join(f"{100 * (a == residue):4d}" for a in AMINO_ACIDS) + "  0.55 0.14"


def matrix(residues: str, percentages: bool = True) -> str:
    both = f"           {LETTERS}" + (f"   {LETTERS}" if percentages else "")
    rows = [row(i, residue, percentages) for i, residue in enumerate(residues, 1)]
    title = "Last position-specific scoring matrix computed, weighted observed percentages rounded down"
    ends = ["", "                      K         Lambda", "Standard Ungapped    0.1334     0.3157"]
    return "\n".join(["", title, both, *rows, *ends]) + "\n"


@pytest.mark.parametrize("percentages", [True, False])
def test_a_matrix_is_read_and_written_unchanged(percentages):
    text = matrix("MKVW", percentages)
    data = pssm.read(text, "example")
    (structure,) = data.X
    assert data.y is None
    assert data[0].more == {"residues": "MKVW"}
    for vector, residue in zip(structure.observations, "MKVW", strict=True):
        np.testing.assert_array_equal(vector, scores("BLOSUM62")[AMINO_ACIDS.index(residue)])
    assert pssm.write(data.records) == text


def test_labels_follow_after_a_tab_and_come_back():
    data = pssm.read(matrix("MKVW") + matrix("GG"), "example")
    assert [len(x) for x in data.X] == [4, 2]
    labelled = data.with_labels([["H", "H", None, "C"], ["C", "E"]])
    text = pssm.write(labelled.records)
    again = pssm.read(text, "example")
    assert again.y == [["H", "H", None, "C"], ["C", "E"]]
    assert pssm.write(again.records) == text
    assert pssm.write([*data.with_labels(again.y).records]) == text


def test_columns_in_another_order_and_scores_that_touch():
    values = dict(zip(AMINO_ACIDS, range(-19, 1), strict=True))
    order = sorted(AMINO_ACIDS)
    line = "    1 M  " + "".join(f"{values[a]:3d}" for a in order)
    assert "-19-15" in line
    data = pssm.read(f"{'  '.join(order)}\n{line}\n", "example")
    assert data.X[0].observations[0].tolist() == list(range(-19, 1))


def printed(residues: str, computed: bool, statistics: int, impossible: str = "") -> str:
    """A matrix as NCBI's programs print it: scores of three characters, -I where `impossible`."""
    text = "\nLast position-specific scoring matrix computed\n         "
    text += "".join(f"  {a}" for a in AMINO_ACIDS) + "".join(f"   {a}" for a in AMINO_ACIDS) * computed
    for i, residue in enumerate(residues, 1):
        values = 3 * scores("BLOSUM62")[AMINO_ACIDS.index(residue)].astype(int)
        pairs = list(zip(AMINO_ACIDS, values, strict=True))
        text += f"\n{i:5d} {residue}  "
        text += "".join("-I " if a in impossible else f"{value:3d}" for a, value in pairs) + " "
        if computed:
            text += "".join(f"{100 * (a == residue):4d}" for a in AMINO_ACIDS if a not in impossible)
            text += "  -0.05     0.00" if residue == "X" else "  1.27 inf"
    rows = ["Standard Ungapped    0.1334     0.3157", "Standard Gapped      0.0410     0.2670",
            "PSI Ungapped         0.1500     0.3170", "PSI Gapped           0.0410     0.2670"]  # fmt: skip
    return (
        text + "\n\n                      K         Lambda\n" + "".join(f"{r}\n" for r in rows[:statistics])
    )


@pytest.mark.parametrize("statistics", [4, 2, 0])
@pytest.mark.parametrize("computed", [True, False])
@pytest.mark.parametrize("impossible", ["", "W", "AV"])
def test_what_programs_print_is_read_and_written_unchanged(computed, statistics, impossible):
    text = printed("MKWC", computed, statistics, impossible)
    assert "-12-12" in text or impossible
    data = pssm.read(text + text, "example")
    assert [record.more["residues"] for record in data.records] == ["MKWC", "MKWC"]
    for vector, residue in zip(data.X[1].observations, "MKWC", strict=True):
        expected = 3 * scores("BLOSUM62")[AMINO_ACIDS.index(residue)]
        expected[[AMINO_ACIDS.index(a) for a in impossible]] = pssm.NEVER
        np.testing.assert_array_equal(vector, expected)
    assert pssm.write(data.records) == text + text


def test_a_long_row_that_is_damaged_is_refused_at_once():
    with pytest.raises(DataError, match="is not a row"):  # in time that is linear in its length
        pssm.read(f"{LETTERS}\n    1 M  {'1' * 5000}x\n", "example")


vectors = st.lists(st.lists(st.integers(-99, 99), min_size=20, max_size=20), min_size=1, max_size=3)
labels = st.one_of(st.none(), st.text("HEC01 é", min_size=1).filter(lambda t: t == t.strip()))


@FEWER
@given(st.lists(vectors, min_size=1, max_size=2), st.data())
def test_vectors_of_other_formats_survive(matrices, drawn):
    X = [Sequence([np.array(v, dtype=float) for v in one]) for one in matrices]
    y = [drawn.draw(st.lists(labels, min_size=len(x), max_size=len(x))) for x in X]
    records = [Record(x, list(row)) for x, row in zip(X, y, strict=True)]
    again = pssm.read(pssm.write(records), "again")
    assert [[v.tolist() for v in x.observations] for x in again.X] == [
        [[float(value) for value in v] for v in one] for one in matrices
    ]
    assert again.y == y


GOOD = matrix("MKVW")
LINES = GOOD.split("\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no line of the twenty amino acids"),
        (">p\nMKV\n", "no line of the twenty amino acids"),
        ("\n".join(LINES[:3]) + "\n", "no rows"),
        ("\n".join([*LINES[:4], LINES[5]]), "example:5: position 3 where 2 follows"),
        (GOOD.replace(LINES[4], LINES[4][:40]), "example:5: 7 scores and percentages"),
        (GOOD.replace(LINES[4], "damaged"), "example:5: 'damaged' is not a row"),
        (GOOD.replace(LINES[4], LINES[4] + "\t"), "example:5: no label after the tab"),
        (GOOD.replace("  11", " 9999"), "example:7: a score of size 9999"),
        ("\n".join([LINES[2], LINES[2], *LINES[3:]]), "example:2: a second line of amino acids"),
    ],
)
def test_damaged_files_are_named_by_line(text, message):
    with pytest.raises(DataError, match="example") as caught:
        pssm.read(text, "example")
    assert message in str(caught.value)


@PROPERTY
@given(st.integers(0, len(GOOD)), st.text("0 -\n\tAé", max_size=3))
def test_any_damage_is_read_or_refused(at, inserted):
    try:
        data = pssm.read(GOOD[:at] + inserted + GOOD[at + 1 :], "example")
    except DataError:
        return
    assert all(len(v) == 20 for x in data.X for v in x.observations)


@pytest.mark.parametrize(
    ("observations", "message"),
    [(["M"], "whole numbers"), ([np.zeros(3)], "twenty"), ([np.full(20, 0.5)], "whole numbers")],
)
def test_other_observations_are_refused(observations, message):
    with pytest.raises(DataError, match=message):
        pssm.write([Record(Sequence(observations))])


def test_a_model_is_trained_on_profiles_and_labels_files(tmp_path):
    data = pssm.read(matrix("MKVWMKVW") + matrix("GGMKGG"), "example")
    data = data.with_labels([list("HHHHHHHH"), list("CCHHCC")])
    write(data, tmp_path / "train.pssm")
    X, y = read(tmp_path / "train.pssm")
    model = CRF(window=2, l2=0.01).fit(X, y)
    model.save(tmp_path / "m.fuda")
    predicted = fuda.load(tmp_path / "m.fuda").predict(X)
    assert [list(one) for one in predicted] == y
    write(Dataset(read(tmp_path / "train.pssm").with_labels(predicted).records), tmp_path / "out.jsonl")
    assert read(tmp_path / "out.jsonl")[0].more["residues"] == "MKVWMKVW"
