from __future__ import annotations

import pytest
from format_cases import PROPERTY, assert_same, attempt, datasets
from hypothesis import given
from hypothesis import strategies as st

from fuda.data.structures import Sequence, Tree
from fuda.errors import DataError
from fuda.formats import Record, conll, fasta

residues = st.sampled_from(list("ACDEFGHIKLMNPQRSTVWYacgtX*-."))
MARKED = ">p1 a protein\nMRRS#VA\nS#T\n>p2\nKK\n"
LINED = ">p1\nMKVLA\nCHHHC\n>p2\nMK\nC?\n"


def read(text, **options):
    return fasta.read(text, "f.fasta", **options)


@pytest.mark.parametrize("text", [MARKED, LINED, ">a\nACGT\nACG\n>b\nAC\n", ">\nA\n", ">a\nAC\nAC\nAC\n"])
def test_text_comes_back_byte_for_byte(text):
    assert fasta.write(read(text).records) == text


def test_marks():
    data = read(MARKED)
    assert [Sequence(list("MRRSVAST")), Sequence(list("KK"))] == data.X
    assert data.y == [["O", "O", "O", "site", "O", "O", "site", "O"], ["O", "O"]]
    assert data.records[0].comments == [">p1 a protein"]
    assert read(">p\nAS\n#T\n").y == [["O", "site", "O"]]
    assert read(">p\nAS!T\n", mark="!", labels="marks").y == [["O", "site", "O"]]
    assert fasta.write(read(">p\nAS!T\n", mark="!").records) == ">p\nAS!T\n"
    assert fasta.write(read(">p\nAS!T\n", mark="!").records, mark="#") == ">p\nAS#T\n"


def test_marks_only_on_given_residues():
    data = read(">p\nK#S#T\nY\n", sites="STY")
    assert data.y == [["O", "site", "O", "O"]]
    assert data.notes == ["f.fasta: 1 mark(s) dropped: the residue before is not one of STY"]
    assert fasta.write(data.records) == ">p\nKS#T\nY\n"
    assert read(">p\nKST\n", sites="STY").y == [["O", "O", "O"]]


def test_lines():
    data = read(LINED)
    assert [Sequence(list("MKVLA")), Sequence(list("MK"))] == data.X
    assert data.y == [["C", "H", "H", "H", "C"], ["C", None]]
    assert read(">p\nAC\n01\n", labels="lines").y == [["0", "1"]]


def test_no_labels():
    data = read(">a\nACGT\nACG\n>b\nAC\n")
    assert data.y is None
    assert data.X[0] == Sequence(list("ACGTACG"))
    assert [Sequence(list("ACCC"))] == read(">a\nAC\nCC\n", labels="none").X
    assert read(">a\nACGT\nA\n").y is None


def test_a_broken_label_line_is_never_read_as_residues():
    with pytest.raises(DataError, match=r"f.fasta:6: 1 labels for 2 residues"):
        read(">p1\nMKVLA\nCHHHC\n>p2\nMK\nC\n")
    with pytest.raises(DataError, match=r"f.fasta:3: 3 labels for 2 residues"):
        read(">p1\nMK\nCHH\n")


def test_irregular_ends():
    assert fasta.write(read(MARKED.replace("\n", "\r\n")).records) == MARKED
    assert fasta.write(read("\n" + MARKED.replace("\n>", "\n\n>").rstrip("\n")).records) == MARKED
    assert fasta.write(read(">p\nA \nC\t\n#\n").records) == ">p\nA\nC#\n"


def test_labels_replaced():
    data = read(MARKED).with_labels([["site"] + ["O"] * 7, ["O", "site"]])
    assert fasta.write(data.records) == ">p1 a protein\nM#RRSVA\nST\n>p2\nKK#\n"
    data = read(">p\n" + "A" * 70 + "\nAA\n").with_labels([["O"] * 71 + ["site"]])
    assert fasta.write(data.records) == ">p\n" + "A" * 70 + "\nAA#\n"
    data = read(">p\nAC\nAA\nA\n").with_labels([list("HHHCC")])
    assert fasta.write(data.records) == ";labels=lines\n>p\nACAAA\nHHHCC\n"
    assert fasta.write(data.records, labels="lines") == ">p\nACAAA\nHHHCC\n"
    assert fasta.write(read(LINED).records, labels="none") == ">p1\nMKVLA\n>p2\nMK\n"


def test_structures_of_other_formats():
    data = conll.read("# >p1 x\nA\tO\nC\tsite\n\nG\tO\n\n", "f.conll")
    assert fasta.write(data.records) == ">p1 x\nAC#\n>2\nG\n"
    long = Record(Sequence(["A"] * 130))
    assert fasta.write([long]) == ">1\n" + "A" * 60 + "\n" + "A" * 60 + "\n" + "A" * 10 + "\n"


@PROPERTY
@given(datasets(residues, st.none() | st.sampled_from(list("HEC01_.é😀#")), labelled=True))
def test_random_lines_come_back(data):
    assert_same(read(fasta.write(data.records, labels="lines"), labels="lines"), data)


@PROPERTY
@given(datasets(residues, st.sampled_from(["site", "O"]), labelled=True))
def test_random_marks_come_back(data):
    text = fasta.write(data.records)
    assert_same(read(text, labels="marks"), data)
    assert fasta.write(read(text, labels="marks").records) == text


def test_a_first_line_says_the_form():
    assert read(";labels=marks\n>p\nMKV\n").y == [["O", "O", "O"]]
    assert read(";labels=lines\n>p\nLLV\nOO#\n").y == [["O", "O", "#"]]
    assert read(";labels=none\n>p\nAC\nCC\n").y is None
    assert read(";labels=none\n>p\nAC\nCC\n", labels="lines").y == [["C", "C"]]
    for text in (";labels=marks\n>p\nMKV\n", ";labels=lines\n>p\nLLV\nOO#\n", ";labels=none\n>p\nAC\nCC\n"):
        assert fasta.write(read(text).records) == text
    with pytest.raises(DataError, match=r"f.fasta:2: text before the first header: ';labels=none'"):
        read(";labels=none\n;labels=none\n>p\nA\n")
    with pytest.raises(DataError, match=r"f.fasta:3: column 1: '1'"):
        read(";labels=none\n>p\n1\n")


MARKS = "#!;"
SETS = (
    ["O", "site"],
    ["O"],
    ["O", "#"],
    ["O", "!", "#"],
    ["O", ";", None],
    ["H", "E", None],
    [None],
    ["site", "#"],
)


@PROPERTY
@given(st.data())
def test_whatever_is_written_reads_back(data):
    """With no option but the mark; also after files read in any form, by any mark."""
    labels = st.sampled_from(data.draw(st.sampled_from(SETS)))
    dataset = data.draw(datasets(residues, labels))
    if form := data.draw(st.sampled_from(["", *fasta.MODES[1:]])):  # rows as that form leaves them
        mark = data.draw(st.sampled_from(MARKS))
        plain = [Record(record.structure, ["O"] * len(record.structure)) for record in dataset.records]
        rows = read(fasta.write(plain, labels=form, mark=mark), labels=form, mark=mark).records
        for record, pssm in zip(dataset.records, rows, strict=True):
            record.rows = pssm.rows
    text, words = attempt(fasta.write, dataset.records)
    if text is None:
        assert "neither 'site' nor 'O'" in words or "one character" in words
        return
    mark = next((record.rows.mark for record in dataset.records if record.rows), "#")
    again = read(text, mark=mark)
    assert_same(again, dataset)
    assert fasta.write(again.records) == text


@PROPERTY
@given(datasets(residues, labelled=False))
def test_random_residues_come_back(data):
    assert_same(read(fasta.write(data.records), labels="none"), data)


@pytest.mark.parametrize(
    ("record", "options", "words"),
    [
        (Record(Tree(["A"], [-1])), {}, r"structure 0: FASTA contains sequences"),
        (Record(Sequence(["A", "AB"])), {}, r"structure 0, node 1: .*not a residue"),
        (Record(Sequence(["é"])), {}, r"structure 0, node 0: .*not a residue"),
        (Record(Sequence(["A", 1])), {}, r"structure 0, node 1: .*not a residue"),
        (Record(Sequence(["A"]), ["B-X"]), {}, r"structure 0, node 0: .*one character"),
        (Record(Sequence(["A"]), [">"]), {}, r"structure 0, node 0: .*one character"),
        (Record(Sequence(["A"]), [" "]), {}, r"structure 0, node 0: .*one character"),
        (Record(Sequence(["A"]), ["?"]), {}, r"structure 0, node 0: .*not be read back"),
        (Record(Sequence(["A"]), [1]), {}, r"structure 0, node 0: .*not be read back"),
        (
            Record(Sequence(["A"]), ["H"]),
            {"labels": "marks"},
            r"structure 0, node 0: .*neither 'site' nor 'O'",
        ),
        (
            Record(Sequence(["A"]), [None]),
            {"labels": "marks"},
            r"structure 0, node 0: .*neither 'site' nor 'O'",
        ),
        (Record(Sequence(["A"]), ["H", "H"]), {}, r"structure 0: 2 labels for 1 nodes"),
        (Record(Sequence(["A"]), None, [">a\nb"]), {}, r"structure 0: .*line break"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(record, options, words):
    with pytest.raises(DataError, match=words):
        fasta.write([record], **options)
