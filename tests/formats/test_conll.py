from __future__ import annotations

import pytest
from format_cases import PROPERTY, assert_same, attempt, datasets, labels, plain_tokens, tokens
from hypothesis import given
from hypothesis import strategies as st

from fuda.data.structures import Dag, Sequence, Tree
from fuda.errors import DataError
from fuda.formats import Dataset, Record, conll


def read(text, **options):
    return conll.read(text, "f.conll", **options)


def fits(cell: str, separator: str) -> bool:
    forbidden = " \t\n" if separator == " " else separator + "\n"
    return bool(cell.strip(" \t")) and not set(cell) & set(forbidden)


WELL_FORMED = {
    "spaces": "Ana NP B-PER\nvive VB O\n\nEn P O\nLima NP B-LOC\n\n",
    "aligned": "Ana    NP  B-PER\n  vive VB\tO\n\n",
    "tabs": "New York\tB-LOC\nis\tO\n\nbig\tO\n\n",
    "comments": "# sent_id = 1\n# a comment of many words\nAna\tB-PER\n\n# sent_id = 2\nvive\tO\n\n",
    "document marks": "-DOCSTART- -X- -X- O\n\nEU NNP I-NP B-ORG\n\n-DOCSTART-\nPeter NNP I-NP B-PER\n\n",
    "blank lines": "\n\na O\n\n\n \t\nb O\n\n",
    "tokens with #": "# O\nis O\n\n#1 O\n# O\n\n# three columns here\n# O\n\n",
    "named value": "# sent_id = 3\n# NN I O\nx NN I O\n\n",
    "only #": "#\tO\n#a\tO\n\n",
    "odd characters": "a\u2028b\tO\n\x85\tO\n\x0b\x0c\x1c\tO\n\x00\tO\na\rb\tO\n\u00a0\tO\n\n",
    "unknown": "a _\n_ O\n\n",
}


@pytest.mark.parametrize("text", WELL_FORMED.values(), ids=WELL_FORMED)
def test_text_comes_back_byte_for_byte(text):
    assert conll.write(read(text).records) == text


def test_columns_and_labels():
    data = read(WELL_FORMED["spaces"])
    assert [Sequence([("Ana", "NP"), ("vive", "VB")]), Sequence([("En", "P"), ("Lima", "NP")])] == data.X
    assert data.y == [["B-PER", "O"], ["O", "B-LOC"]]
    assert read(WELL_FORMED["spaces"], columns=1).X[0] == Sequence(["Ana", "vive"])
    assert read(WELL_FORMED["spaces"], columns=[2, 1]).X[0] == Sequence([("NP", "Ana"), ("VB", "vive")])
    assert read(WELL_FORMED["spaces"], label=2, columns=[3]).y == [["NP", "VB"], ["P", "NP"]]
    unlabelled = read(WELL_FORMED["spaces"], label=None)
    assert unlabelled.y is None
    assert unlabelled.X[1] == Sequence([("En", "P", "O"), ("Lima", "NP", "B-LOC")])


def test_no_character_but_the_line_feed_splits():
    tokens = ["a\u2028b", "\x85", "\x0b\x0c\x1c", "\x00", "a\rb", "\u00a0"]
    assert [Sequence(tokens)] == read(WELL_FORMED["odd characters"]).X


def test_document_marks_and_comments_are_no_tokens():
    data = read(WELL_FORMED["document marks"])
    assert [len(x) for x in data.X] == [1, 1]
    assert [record.comments for record in data.records] == [["-DOCSTART- -X- -X- O", ""], ["-DOCSTART-"]]
    inside = read("a O\n-DOCSTART- O\nb O\n")
    assert [Sequence(["a"]), Sequence(["b"])] == inside.X
    data = read(WELL_FORMED["tokens with #"])
    assert [Sequence(["#", "is"]), Sequence(["#1", "#"]), Sequence(["#"])] == data.X
    data = read(WELL_FORMED["named value"])
    assert [Sequence([("#", "NN", "I"), ("x", "NN", "I")])] == data.X
    assert data.records[0].comments == ["# sent_id = 3"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a O\r\nb O\r\n\r\nc O\r\n", "a O\nb O\n\nc O\n\n"),
        ("a O", "a O\n\n"),
        ("a O\n", "a O\n\n"),
        ("a O\n\n\n\n", "a O\n\n"),
    ],
    ids=["CRLF", "no final line end", "no final blank line", "many final blank lines"],
)
def test_irregular_ends_come_back_regular(text, written):
    assert conll.write(read(text).records) == written


def test_comments_after_the_last_sentence_are_noted():
    data = read("a O\n\n# the end of all\n")
    assert data.notes == ["f.conll: 1 comment line(s) after the last sentence left out: no sentence has them"]
    assert read("a O\n\n\n").notes == []


def test_labels_are_replaced_and_all_columns_kept():
    data = read("Ana  NP  O  x\nvive VB  O\ty\n\n", label=3, columns=1)
    assert conll.write(data.with_labels([["B-PER", None]]).records) == "Ana  NP  B-PER  x\nvive VB  _\ty\n\n"
    bare = read("Ana NP\nvive VB\n\n", label=None)
    assert conll.write(bare.with_labels([["B-PER", "O"]]).records) == "Ana NP B-PER\nvive VB O\n\n"
    tabs = read("New York\tO\n\n")
    assert conll.write(tabs.with_labels([["B LOC"]]).records) == "New York\tB LOC\n\n"


def test_another_separator():
    data = read("Ana,NP,O\n-DOCSTART- O\nb c,X,O\n", separator=",")
    assert [Sequence([("Ana", "NP")]), Sequence([("b c", "X")])] == data.X
    assert conll.write(data.records, separator="\t") == "Ana\tNP\tO\n\n-DOCSTART- O\nb c\tX\tO\n\n"
    with pytest.raises(DataError, match=r"structure 1, node 0.*separator"):
        conll.write(data.records, separator=" ")


def test_rows_that_no_longer_come_first_keep_their_columns():
    data = read("a NN O\n\nb\tNN O\n\n")
    assert data.X[1:] == read(conll.write(data.records[1:])).X


def test_a_tree_is_flattened_only_on_request():
    for structure in (Tree(["a", "b"], [1, -1]), Dag(["a", "b"], [(1, 0)])):
        records = [Record(structure, ["X", "Y"])]
        with pytest.raises(DataError, match=r"structure 0: a (tree|dag) .*flatten=True"):
            conll.write(records)
        assert conll.write(records, flatten=True) == "a\tX\nb\tY\n\n"


def test_headers_of_other_formats_become_comments():
    assert (
        conll.write([Record(Sequence(["a"]), ["X"], [">sp|P1 x", "", "# b"])])
        == "# >sp|P1 x\n\n# b\na\tX\n\n"
    )


@PROPERTY
@given(datasets(tokens, labelled=True))
def test_random_tokens_come_back_or_are_refused(data):
    text, refusal = attempt(conll.write, data.records)
    if text is None:
        assert "structure" in refusal
        cells = [cell for x in data.X for cell in x.observations]
        assert not all(fits(cell, "\t") and not cell.startswith("-DOCSTART-") for cell in cells)
        return
    assert_same(read(text), data)


@PROPERTY
@given(datasets(st.tuples(plain_tokens, tokens), labelled=True), st.sampled_from([" ", ",", "\t"]))
def test_random_columns_come_back_or_are_refused(data, separator):
    text, refusal = attempt(conll.write, data.records, separator=separator)
    if text is None:
        cells = [cell for x in data.X for pair in x.observations for cell in pair]
        named_value = "read as a comment" in refusal
        assert named_value or not all(fits(cell, separator) for cell in cells)
        return
    assert_same(read(text, separator="," if separator == "," else None), data)


@PROPERTY
@given(datasets(tokens, labelled=False))
def test_random_tokens_without_labels_come_back_or_are_refused(data):
    text, _ = attempt(conll.write, data.records)
    if text is not None:
        assert_same(read(text, label=None), data)


@PROPERTY
@given(datasets(plain_tokens, labelled=True), st.lists(tokens, max_size=3))
def test_random_comments_come_back_or_are_refused(data, comments):
    data.records[-1].comments = comments
    text, refusal = attempt(conll.write, data.records)
    if text is None:
        assert "comment" in refusal or "line break" in refusal
        return
    again = read(text)
    assert_same(again, data)
    assert conll.write(again.records) == text


@PROPERTY
@given(st.data())
def test_any_text_is_read_and_written_to_a_fixed_point_or_refused(data):
    line = st.lists(tokens, max_size=3).map(
        lambda cells: data.draw(st.sampled_from([" ", "\t", "  "])).join(cells)
    )
    text = "\n".join(data.draw(st.lists(line, max_size=6)))
    try:
        first = read(text, label=None)
        written = conll.write(first.records)
    except DataError:
        return
    again = read(written, label=None)
    assert_same(again, first)
    assert conll.write(again.records) == written


@PROPERTY
@given(datasets(plain_tokens, labelled=True), st.data())
def test_random_labels_replaced(data, draw):
    data = read(conll.write(data.records))
    new = [draw.draw(st.lists(labels, min_size=len(x), max_size=len(x))) for x in data.X]
    again = read(conll.write(data.with_labels(new).records))
    assert again.X == data.X
    assert again.y == new


@pytest.mark.parametrize(
    ("observation", "words"),
    [
        ({"a": 1.0}, "dict"),
        ({"a"}, "set"),
        (["a", "b"], "list"),
        (7, "int"),
        (("a",), "tuple"),
        (("a", 1), "tuple"),
        ("", "empty"),
        ("a\tb", "separator"),
        ("a\nb", "line break"),
        ("-DOCSTART-", "document mark"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(observation, words):
    with pytest.raises(DataError, match=rf"structure 1, node 1: .*{words}.*jsonl"):
        conll.write([Record(Sequence(["x"]), ["O"]), Record(Sequence(["y", observation]), ["O", "O"])])


@pytest.mark.parametrize("label", ["", "_", 1, 1.5, "a\tb", "a\nb", "a\r"])
def test_labels_that_would_not_come_back_are_refused(label):
    with pytest.raises(DataError, match=r"structure 0, node 0"):
        conll.write([Record(Sequence(["x"]), [label])])


def test_records_that_follow_others_are_written_like_the_first():
    first, odd = Record(Sequence(["x"]), ["O"]), Record(Sequence([("a", "b")]), ["O"])
    with pytest.raises(DataError, match=r"structure 0: 3 columns where the first structure has 2"):
        conll.write([odd], after=first)
    assert conll.write([Record(Sequence(["y"]))], after=first) == "y\t_\n\n"
    # Only in the first line of a file would a tab become the separator.
    text = "# x\ty\nz w\n\n# x\ty\n\n"
    records = conll.read(text, "f").records
    pieces = [conll.write([record], after=records[0] if i else None) for i, record in enumerate(records)]
    assert "".join(pieces) == conll.write(records)


def test_records_that_do_not_belong_together_are_refused():
    with pytest.raises(DataError, match=r"structure 0: 2 labels for 1 nodes"):
        conll.write([Record(Sequence(["x"]), ["O", "O"])])
    with pytest.raises(DataError, match=r"structure 1: 3 columns where the first structure has 2"):
        conll.write([Record(Sequence(["x"]), ["O"]), Record(Sequence([("x", "y")]), ["O"])])
    with pytest.raises(DataError, match=r"structure 0, node 1: 3 columns where the first node has 2"):
        conll.write([Record(Sequence(["x", ("x", "y")]), ["O", "O"])])
    record = read("a O\n").records[0]
    record.structure = Sequence(["a", "b"])
    record.labels = ["O", "O"]
    with pytest.raises(DataError, match=r"structure 0: 2 nodes, but the rows kept .*rows=None"):
        conll.write([record])
    with pytest.raises(DataError, match=r"1 structures need as many lists"):
        Dataset([record]).with_labels([])


def test_tokens_with_different_numbers_of_columns():
    text = "# 1 note\na\tO\n# x\tO\tmore\n\n#\tB\tx\ty\n\n"
    data = conll.read(text, "f", columns=1, label=2, ragged=True)
    assert [list(x.observations) for x in data.X] == [["a", "# x"], ["#"]]
    assert data.y == [["O", "O"], ["B"]]
    assert conll.write(data.records) == text
    changed = conll.write(data.with_labels([["X", "Y"], ["Z"]]).records)
    assert changed == "# 1 note\na\tX\n# x\tY\tmore\n\n#\tZ\tx\ty\n\n"
    assert conll.options_to_store(data) == {}
