"""CSV, CoNLL-X and CoNLL-U Plus, and libraries that are not installed."""

from __future__ import annotations

import builtins

import pytest
from format_cases import PROPERTY, assert_same, attempt, datasets, plain_tokens, tokens
from hypothesis import given
from hypothesis import strategies as st

from fuda.data.structures import Dag, Sequence, Tree
from fuda.errors import DataError
from fuda.formats import Dataset, Record, conllup, conllx, csv

KAGGLE = 'Sentence #,Word,POS,Tag\nSentence: 1,Ana,NP,B-PER\n,"a, b",VB,\nSentence: 2,Bo,NP,B-PER\n'
LABELS = st.none() | tokens.filter(bool)


@PROPERTY
@given(datasets(tokens | st.tuples(tokens, tokens), LABELS))
def test_csv_comes_back(data):
    text, refused = attempt(csv.write, data.records)
    if text is None:
        assert "write jsonl" in refused
        return
    labelled = data.records[0].labels is not None
    again = csv.read(text, "f", label=-1 if labelled else None)
    assert_same(again, data)
    assert csv.write(again.records) == text


def test_csv_with_values_only_in_the_first_row_of_a_sentence():
    data = csv.read(KAGGLE, "f")
    assert [list(x.observations) for x in data.X] == [[("Ana", "NP"), ("a, b", "VB")], [("Bo", "NP")]]
    assert data.y == [["B-PER", None], ["B-PER"]]
    assert csv.write(data.records) == KAGGLE
    changed = csv.write(data.with_labels([["O", "I-X"], [None]]).records)
    assert changed == KAGGLE.replace("B-PER", "O", 1).replace("VB,", "VB,I-X").replace("B-PER", "")


def test_columns_of_csv():
    data = csv.read(KAGGLE, "f", columns="Word", label="POS")
    assert data.y == [["NP", "VB"], ["NP"]]
    assert list(data.X[0].observations) == ["Ana", "a, b"]
    bare = csv.read(KAGGLE.replace(",", ";"), "f", columns=["Word"], label=None)
    assert bare.y is None
    tagged = csv.write(bare.with_labels([["X", "Y"], ["X"]]).records)
    assert tagged.splitlines()[0] == "Sentence #,Word,POS,Tag,label"
    assert csv.read(KAGGLE.replace("Sentence #", "doc"), "f", sentence="doc").y == [
        ["B-PER", None],
        ["B-PER"],
    ]
    assert [Sequence(["x"])] == csv.read("sent|a|start|b\n1|x|0|Y\n", "f", separator="|").X


def test_structures_that_do_not_fit_into_rows():
    tree = Dataset([Record(Tree(["a"], [-1]))])
    with pytest.raises(DataError, match="structure 0: a tree in rows would lose its edges"):
        csv.write(tree.records)


@pytest.mark.parametrize(
    ("missing", "call"),
    [
        ("pandas", lambda f: f.to_pandas(Dataset([]))),
        ("datasets", lambda f: f.to_datasets(Dataset([]))),
        ("spacy", lambda f: f.to_spacy(Dataset([]))),
    ],
)
def test_without_the_library(monkeypatch, missing, call):
    import fuda.formats

    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == missing:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *args, **kwargs)

    call_with = fuda.formats
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(DataError, match=rf"pip install 'fuda\[{missing}\]'"):
        call(call_with)


# CoNLL-X and CoNLL-U Plus.


@pytest.mark.parametrize("shape", ["sequence", "tree", "dag"])
@pytest.mark.parametrize("module", [conllx, conllup])
def test_relatives_of_conllu_come_back(module, shape):
    @PROPERTY
    @given(datasets(plain_tokens, shape=shape, labelled=True))
    def check(data):
        text = module.write(data.records)
        again = module.read(text, "f", graph=shape)
        assert_same(again, data)
        assert module.write(again.records) == text
        if len(data) > 1:  # in pieces
            first, *rest = data.records
            assert module.write([first]) + module.write(rest, after=first) == text

    check()


SDP = "".join(
    line.replace(" ", "\t") + "\n"
    for line in [
        "1 他 _ r r _ 2 Agt _ _",
        "1 他 _ r r _ 3 Agt _ _",
        "2 去 _ v v _ 0 Root _ _",
        "3 看 _ v v _ 2 e _ _",
    ]
)


def test_a_word_with_several_heads_on_several_lines():
    data = conllx.read(SDP + "\n", "f", graph="dag")
    assert [Dag(["他", "去", "看"], [(1, 0), (2, 0), (1, 2)])] == data.X
    assert conllx.write(data.records) == SDP + "\n"
    tagged = conllx.write(data.with_labels([["X", "v", "v"]]).records)
    assert tagged == SDP.replace("r\tr", "r\tX") + "\n"
    assert [Sequence(["他", "去", "看"])] == conllx.read(SDP, "f", graph="sequence").X


def test_columns_of_conllu_plus():
    text = "# global.columns = ID FORM HEAD PARSEME:MWE\n# id = 1\n1\tAna\t2\t*\n2\tsings\t0\t1:V\n\n"
    data = conllup.read(text, "f", label="PARSEME:MWE")
    assert [Tree(["Ana", "sings"], [1, -1])] == data.X
    assert data.y == [["*", "1:V"]]
    assert conllup.write(data.records) == text
    assert conllup.write(data.records[:1], after=data.records[0]) == text
    other = conllup.read("# global.columns = ID FORM NE\n1\tx\ty\n", "f", label="NE", graph="sequence")
    with pytest.raises(DataError, match="files with different columns; write a file for each"):
        conllup.write(data.records + other.records)
