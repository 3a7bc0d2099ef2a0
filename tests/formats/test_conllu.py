from __future__ import annotations

import pytest
from format_cases import PROPERTY, assert_same, attempt, datasets, labels, plain_tokens, tokens
from hypothesis import given
from hypothesis import strategies as st

from fuda.data.structures import Dag, Sequence, Tree
from fuda.errors import DataError
from fuda.formats import Record, conll, conllu


def read(text, **options):
    return conllu.read(text, "f.conllu", **options)


def rows(*lines: str) -> str:
    """A sentence by its lines, cells separated by spaces, cut or filled up with _ to ten."""
    return "\n".join("\t".join([*line.split(" "), *"_" * 10][:10]) for line in lines) + "\n\n"


TEXT = (
    "# sent_id = s1\n# text = Ana sleeps\n"
    "1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
    "1\tvamos\tir\tVERB\tV\tMood=Imp|Number=Plur\t0\troot\t0:root\tNE=B-X|Gloss=go\n"
    "2\tnos\tnosotros\tPRON\tP\tCase=Acc\t1\tobj\t1:obj|2.1:obj\tGloss=us\n"
    "2.1\tvamos\tir\tVERB\t_\t_\t_\t_\t1:conj\tCopyOf=1\n"
    "3\ta\u2028b\t_\tNOUN\t_\t_\t1\tobl\t1:obl|1:dep|2.1:obl\t_\n\n"
    "1\tsí\tsí\t_\t_\t_\t0\troot\t0:root\t_\n\n"
)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"graph": "dag"},
        {"graph": "sequence"},
        {"label": "MISC:NE"},
        {"label": "FEATS:Case"},
        {"label": None},
    ],
)
def test_text_comes_back_byte_for_byte(options):
    assert conllu.write(read(TEXT, **options).records) == TEXT


def test_three_views():
    words = ["vamos", "nos", "a\u2028b"]
    assert [Tree(words, [-1, 0, 0]), Tree(["sí"], [-1])] == read(TEXT).X
    assert read(TEXT, graph="sequence").X[0] == Sequence(words)
    dag = read(TEXT, graph="dag")
    assert dag.X[0] == Dag(["vamos", "nos", "vamos", "a\u2028b"], [(0, 1), (2, 1), (0, 2), (0, 3), (2, 3)])
    assert dag.y == [["VERB", "PRON", "VERB", "NOUN"], [None]]
    assert read(TEXT).records[0].comments == ["# sent_id = s1", "# text = Ana sleeps"]


def test_labels_and_observed_columns():
    assert read(TEXT).y == [["VERB", "PRON", "NOUN"], [None]]
    assert read(TEXT, label="MISC:NE").y == [["B-X", "O", "O"], ["O"]]
    assert read(TEXT, label="MISC:NE", absent=None).y == [["B-X", None, None], [None]]
    assert read(TEXT, label="FEATS:Number", absent="-").y == [["Plur", "-", "-"], ["-"]]
    assert read(TEXT, label=None).y is None
    assert read(TEXT, columns="LEMMA").X[1] == Tree(["sí"], [-1])
    observed = read(TEXT, columns=["FORM", "FEATS:Case", "MISC:Gloss"]).X[0]
    assert observed.observations == (("vamos", "_", "go"), ("nos", "Acc", "us"), ("a\u2028b", "_", "_"))


def test_a_head_named_twice_is_one_edge():
    assert read(rows("1 a _ X _ _ _ _ 0:root", "2 b _ X _ _ _ _ 1:x|1:y|0:root"), graph="dag").X[
        0
    ].edges.tolist() == [[0, 1]]


def test_labels_replaced_in_place():
    data = read(TEXT, label="MISC:NE")
    new = conllu.write(data.with_labels([["O", "U-Y", None], ["L-Z"]]).records)
    misc = [line.split("\t")[9] for line in new.split("\n") if "\t" in line]
    assert misc == ["SpaceAfter=No", "Gloss=go", "Gloss=us|NE=U-Y", "CopyOf=1", "NE=_", "NE=L-Z"]
    assert read(new, label="MISC:NE").y == [["O", "U-Y", None], ["L-Z"]]
    back = conllu.write(read(new, label="MISC:NE").with_labels([["O", "O", "O"], ["O"]]).records)
    assert [line.split("\t")[9] for line in back.split("\n") if "\t" in line][-1] == "_"
    upos = conllu.write(read(TEXT).with_labels([["A", None, "C"], ["D"]]).records)
    assert read(upos).y == [["A", None, "C"], ["D"]]


def test_labels_may_go_elsewhere():
    data = read(TEXT, label=None).with_labels([["X", "O", "Y"], ["O"]])
    with pytest.raises(DataError, match=r"structure 0: .*read without.*label='MISC:NE'"):
        conllu.write(data.records)
    assert read(conllu.write(data.records, label="MISC:T"), label="MISC:T").y == data.y


def test_cycles():
    cycle = "# sent_id = c\n" + rows("1 a _ X _ _ 2 d 2:d", "2 b _ X _ _ 1 d 1:d")
    for graph in ("tree", "dag"):
        with pytest.raises(DataError, match=r"f.conllu:2: sentence c: .*cycle.*cyclic='skip'"):
            read(cycle + TEXT, graph=graph)
        data = read(cycle + TEXT, graph=graph, cyclic="skip")
        assert len(data) == 2
        assert data.notes == ["f.conllu: 1 of 3 sentences left out: their graph has a cycle"]
        with pytest.raises(DataError, match=r"f.conllu: no sentences; every one has a cycle"):
            read(cycle, graph=graph, cyclic="skip")
    assert len(read(cycle + TEXT, graph="sequence")) == 3
    loop = rows("1 a _ X _ _ 1 d 1:d")
    for graph in ("tree", "dag"):
        assert len(read(loop + TEXT, graph=graph, cyclic="skip")) == 2


def test_irregular_blank_lines_and_ends():
    assert conllu.write(read(TEXT.replace("\n", "\r\n")).records) == TEXT
    assert conllu.write(read("\n\n" + TEXT.rstrip("\n").replace("\n\n", "\n\n\n")).records) == TEXT
    assert read(TEXT + "# over\n").notes == [
        "f.conllu: 1 comment line(s) after the last sentence left out: no sentence has them"
    ]


@pytest.mark.parametrize("shape", ["tree", "dag", "sequence"])
@pytest.mark.parametrize("where", ["UPOS", "MISC:NE"])
def test_random_structures_come_back_or_are_refused(shape, where):
    @PROPERTY
    @given(datasets(tokens, shape=shape, labelled=True))
    def check(data):
        text, refusal = attempt(conllu.write, data.records, label=where)
        if text is None:
            assert "structure" in refusal
            assert any(not x or set(x) & set("\t\n") for s in data.X for x in s.observations)
            return
        again = read(text, label=where, graph=shape)
        assert_same(again, data)
        assert conllu.write(again.records) == text

    check()


@PROPERTY
@given(datasets(st.tuples(plain_tokens, tokens, tokens), shape="tree", labelled=True))
def test_random_columns_come_back_or_are_refused(data):
    columns = ["FORM", "XPOS", "MISC:K"]
    text, _ = attempt(conllu.write, data.records, label="FEATS:L", columns=columns)
    if text is None:
        assert any(
            not cell or set(cell) & set("\t\n|\r") for s in data.X for x in s.observations for cell in x
        )
        return
    assert_same(read(text, label="FEATS:L", columns=columns), data)


@PROPERTY
@given(datasets(plain_tokens, shape="dag", labelled=True), st.data())
def test_random_labels_replaced(data, draw):
    data = read(conllu.write(data.records, label="MISC:NE"), label="MISC:NE", graph="dag")
    new = [draw.draw(st.lists(labels, min_size=len(x), max_size=len(x))) for x in data.X]
    again = read(conllu.write(data.with_labels(new).records), label="MISC:NE", graph="dag")
    assert again.X == data.X
    assert again.y == new


def test_unlabelled_structures_come_back():
    data = [Record(Tree(["a", "b"], [1, -1]), None, ["a comment", ""])]
    text = conllu.write(data)
    assert text == "# a comment\n1\ta\t_\t_\t_\t_\t2\t_\t_\t_\n2\tb\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    assert [data[0].structure] == read(text, label=None).X


def test_from_columns_and_back():
    data = conll.read("Ana NP B-PER\nvive VB O\n\n", "f.conll")
    text = conllu.write(data.records, columns=["FORM", "XPOS"], label="MISC:NE")
    assert_same(read(text, columns=["FORM", "XPOS"], label="MISC:NE", graph="sequence"), data)
    with pytest.raises(DataError, match=r"f.conllu:1: HEAD is '_'.*graph='sequence'"):
        read(text)
    with pytest.raises(DataError, match=r"structure 0, node 0: .*2 columns, but 1 .*columns="):
        conllu.write(data.records)


@pytest.mark.parametrize("observation", [{"a": 1.0}, {"a"}, 7, ("a",), "", "a\tb", "a\nb"])
def test_what_does_not_fit_is_refused_with_its_place(observation):
    with pytest.raises(DataError, match=r"structure 0, node 1: .*jsonl"):
        conllu.write([Record(Sequence(["x", observation]))])


@pytest.mark.parametrize("label", ["", "_", 3, "a|b", "a\tb", "a\nb"])
def test_labels_that_would_not_come_back_are_refused(label):
    with pytest.raises(DataError, match=r"structure 0, node 0: .*jsonl"):
        conllu.write([Record(Sequence(["x"]), [label])], label="MISC:NE")
