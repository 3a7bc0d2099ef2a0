"""Texts with spans: raw text, inline marks, doccano and Prodigy; offsets survive."""

from __future__ import annotations

import json

import pytest
from format_cases import FEWER, ODD, assert_same, attempt, datasets, tokens
from hypothesis import given
from hypothesis import strategies as st

from fuda.data.structures import Sequence, Tree
from fuda.errors import DataError
from fuda.formats import FORMATS, Dataset, Record, Text, conllu, inline, jsonl, spans, text, write
from fuda.formats.spans import labelled_record

SPAN_FORMATS = ("inline", "doccano", "prodigy")
kinds = st.sampled_from(["PER", "LOC", "a b", "é", "\\", "(x)", "]", "\n", "B-X", "_"])
lines = st.lists(tokens | st.sampled_from(["Ana", "(", "[b]", "\\", "U.S."]), min_size=1, max_size=6).map(
    " ".join
)


@st.composite
def annotated(draw, with_breaks: bool = True) -> Record:
    """A text with spans that begin and end anywhere."""
    content = draw(lines.filter(lambda line: spans.tokenize(line)))
    if not with_breaks:
        content = content.replace("\n", "n").replace("\r", "r")
    edges = sorted(draw(st.sets(st.integers(0, len(content)), max_size=6)))
    ranges = [(a, b, draw(kinds)) for a, b in zip(edges[::2], edges[1::2], strict=False)]
    cut = spans.split_at(spans.tokenize(content), edges)
    ranges = [span for span in ranges if any(span[0] <= a and b <= span[1] for a, b in cut)]
    return labelled_record(content, ranges, "IOB2")


@pytest.mark.parametrize("name", [*SPAN_FORMATS, "jsonl"])
def test_texts_with_spans_come_back(name):
    @FEWER
    @given(st.lists(annotated(), min_size=1, max_size=3), st.dictionaries(tokens, tokens, max_size=2))
    def check(records, more):
        reserved = {"text", "label", "labels", "entities", "tokens", "spans", "answer"}
        if name != "inline":
            records[0].more = {key: value for key, value in more.items() if key not in reserved}
        written = FORMATS[name].write(records)
        again = FORMATS[name].read(written, "f")
        assert_same(again, Dataset(records))
        for old, new in zip(records, again.records, strict=True):
            assert (new.text.content, new.text.offsets) == (old.text.content, old.text.offsets)
            assert new.more == old.more
        assert FORMATS[name].write(again.records) == written

    check()


@FEWER
@given(st.lists(annotated(with_breaks=False), min_size=1, max_size=3), st.integers(0, 2))
def test_raw_text_comes_back(records, blank):
    raw = ("\n" * blank).join(record.text.content + "\n" for record in records) + "\n"
    data = text.read(raw, "f")
    assert [x.text.content for x in data.records] == [x.text.content for x in records]
    for record in data.records:
        start = record.text.start
        assert raw[start : start + len(record.text.content)] == record.text.content
    assert text.write(data.records) == raw.rstrip("\n") + "\n"


@FEWER
@given(annotated(with_breaks=False), st.integers(0, 9))
def test_texts_come_back_from_conllu(record, start):
    record = labelled_record(record.text.content, [], "IOB2", start=start)
    (again,) = conllu.read(conllu.write([record]), "f", graph="sequence").records
    assert (again.structure, again.labels, again.text) == (record.structure, record.labels, record.text)


def test_ranges_of_tokens_that_do_not_fit_the_text():
    line = "1\tAna\t_\tX\t_\t_\t0\t_\t_\tTokenRange={}\n\n"
    for comment, place, content in [
        ("# text = So Ana\n", "13:16", Text("So Ana", [(3, 6)], 10)),
        ("# text = So Ana\n", "2:5", None),
        ("# text = So Ana\n", "13:17", None),
        ("# text = So Ana\n", "x", None),
        ("", "0:3", None),
    ]:
        assert conllu.read(comment + line.format(place), "f").records[0].text == content


@pytest.mark.parametrize("name", SPAN_FORMATS)
def test_words_without_a_text_are_joined_by_spaces(name):
    data = Dataset([Record(Sequence(["Ana", "Díaz", "sings"]), ["B-PER", "I-PER", "O"])])
    again = FORMATS[name].read(FORMATS[name].write(data.records), "f")
    assert_same(again, data)
    assert again.records[0].text == Text("Ana Díaz sings", [(0, 3), (4, 8), (9, 14)])


@FEWER
@given(datasets(tokens, st.sampled_from(["N", "V", "O", "U"]), labelled=True))
def test_labels_without_a_scheme(data):
    """Each node is a span; what cannot be read back is refused or cut otherwise, never lost."""
    written, refused = attempt(FORMATS["prodigy"].write, data.records)
    if written is None:
        assert "empty word" in refused
        return
    again = FORMATS["prodigy"].read(written, "f", scheme=None)
    assert [r.labels for r in again.records] == [r.labels for r in data.records]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["B-PER", "I-PER", "O", "B-PER"], [("PER", 0, 2), ("PER", 3, 4)]),
        (["B-PER", "L-PER", "U-LOC", "O"], [("PER", 0, 2), ("LOC", 2, 3)]),
        (["I-PER", "E-PER", "S-LOC", None], [("PER", 0, 2), ("LOC", 2, 3)]),
        (["B", "I", "O", "B"], [("_", 0, 2), ("_", 3, 4)]),
        (["DET", "NOUN", "O", None], [("DET", 0, 1), ("NOUN", 1, 2)]),
        (["I", "I", "O", "I"], [("I", 0, 1), ("I", 1, 2), ("I", 3, 4)]),
        ([], []),
    ],
)
def test_segments(labels, expected):
    assert spans.segments(labels) == expected


def test_a_token_is_cut_where_a_span_ends():
    record = labelled_record("un-American acts", [(3, 11, "ORG")], "IOB2")
    assert list(record.structure.observations) == ["un-", "American", "acts"]
    assert record.labels == ["O", "B-ORG", "O"]


def test_white_space_at_the_ends_of_a_span_does_not_count():
    line = '{"text": "a  bc  d", "label": [[1, 6, "X"]]}\n'
    data = FORMATS["doccano"].read(line, "f")
    assert data.y == [["O", "B-X", "O"]]
    assert FORMATS["doccano"].write(data.records) == line  # as long as the label is the same
    changed = FORMATS["doccano"].write(data.with_labels([["O", "B-Y", "O"]]).records)
    assert json.loads(changed)["label"] == [[3, 5, "Y"]]


def test_doccano_with_entities():
    entity = {"id": 7, "label": "PER", "start_offset": 0, "end_offset": 3}
    line = {"id": 1, "text": "Ana sees Bo", "entities": [entity], "relations": [], "Comments": []}
    data = FORMATS["doccano"].read(json.dumps(line), "f")
    assert data.y == [["B-PER", "O", "O"]]
    assert json.loads(FORMATS["doccano"].write(data.records)) == line
    changed = json.loads(FORMATS["doccano"].write(data.with_labels([["B-PER", "O", "B-PER"]]).records))
    assert changed["entities"] == [
        entity,
        {"id": 8, "label": "PER", "start_offset": 9, "end_offset": 11},
    ]
    assert FORMATS["doccano"].read('{"text": "a"}', "f").y is None


def test_prodigy_answers_and_tokens():
    tokens = [{"text": "Ana-", "start": 0, "end": 4, "id": 0}, {"text": "x", "start": 4, "end": 5, "id": 1}]
    span = {"start": 0, "end": 4, "label": "PER", "source": "me"}
    line = {"text": "Ana-x", "tokens": tokens, "spans": [span], "answer": "accept", "_hash": 3}
    data = FORMATS["prodigy"].read(json.dumps(line), "f")
    assert list(data.X[0].observations) == ["Ana-", "x"]
    assert data.y == [["B-PER", "O"]]
    assert json.loads(FORMATS["prodigy"].write(data.records)) == line
    rejected = FORMATS["prodigy"].read(json.dumps(line | {"answer": "reject"}), "f")
    assert rejected.y is None
    assert json.loads(FORMATS["prodigy"].write(rejected.records)) == line | {"answer": "reject"}
    new = json.loads(FORMATS["prodigy"].write(data.with_labels([["O", "B-LOC"]]).records))
    assert new["spans"] == [{"start": 4, "end": 5, "label": "LOC", "token_start": 1, "token_end": 1}]


@pytest.mark.parametrize("name", SPAN_FORMATS)
def test_labels_that_spans_cannot_say_are_refused(name):
    with pytest.raises(DataError, match=r"structure 0, node 1: its label is not known, .*write jsonl"):
        FORMATS[name].write([Record(Sequence(["a", "b"]), ["B-X", None])])
    with pytest.raises(DataError, match=r"structure 0, node 0: the label 3 is not a text.*jsonl"):
        FORMATS[name].write([Record(Sequence(["a"]), [3])])
    for word in ("", "\u2028", "\xa0"):  # that no tokenizer would find again
        with pytest.raises(DataError, match="structure 0, node 1: an empty word, or one of blanks"):
            FORMATS[name].write([Record(Sequence(["a", word]), ["O", "O"])])
    with pytest.raises(DataError, match=r"1 offsets for 2 nodes; set text=None"):
        FORMATS[name].write([Record(Sequence(["a", "b"]), ["O", "O"], text=Text("a", [(0, 1)]))])


@pytest.mark.parametrize("name", [*SPAN_FORMATS, "brat"])
def test_edges_that_spans_would_lose_are_refused(name):
    tree = Record(Tree(["Ana", "sings"], [1, -1]), ["N", "V"])
    with pytest.raises(DataError, match=f"structure 0: a tree in {name} would lose its edges; write jsonl"):
        FORMATS[name].write([tree])


def test_a_path_in_place_of_the_data_is_named(tmp_path):
    with pytest.raises(DataError, match=r"write\(dataset, path\): the dataset comes first"):
        write(tmp_path / "x.conll", Dataset([]))


def test_raw_text_has_no_labels():
    with pytest.raises(DataError, match="structure 0: raw text cannot contain labels; write inline"):
        text.write([Record(Sequence(["a"]), ["X"])])


@pytest.mark.parametrize("odd", [word for word in ODD if word.strip() and spans.tokenize(word)])
def test_odd_words_in_marks(odd):
    record = labelled_record(f"a {odd} b", [(2, 2 + len(odd), odd)], None)
    (again,) = inline.read(inline.write([record]), "f", scheme=None).records
    assert (again.labels, again.text.content) == (record.labels, record.text.content)


def test_keys_of_other_json_lines():
    line = '{"tokens": ["a", "b"], "ner_tags": [1, 0], "pos_tags": ["N", "V"], "id": "7", "x": null}\n'
    data = jsonl.read(line, "f")
    assert data.y == [[1, 0]]
    assert data.records[0].more == {"pos_tags": ["N", "V"], "id": "7", "x": None}
    assert json.loads(jsonl.write(data.records)) == json.loads(line)
    again = jsonl.read(line, "f", label="pos_tags")
    assert again.y == [["N", "V"]]
    assert json.loads(jsonl.write(again.with_labels([["X", "Y"]]).records))["pos_tags"] == ["X", "Y"]
    assert jsonl.read(line, "f", label=None).y is None


def test_spans_of_a_text_in_json_lines():
    record = labelled_record("Ana Díaz sings", [(0, 8, "PER")], "IOB2", start=5)
    content = json.loads(jsonl.write([record]))
    assert content["spans"] == [{"start": 0, "end": 8, "label": "PER"}]
    assert (content["text"], content["start"]) == ("Ana Díaz sings", 5)
    assert content["offsets"] == [[0, 3], [4, 8], [9, 14]]
    assert jsonl.read(json.dumps(content), "f").records[0].text == record.text
    del content["labels"]  # then spans are a key like any other
    assert jsonl.read(json.dumps(content), "f").records[0].more == {"spans": content["spans"]}


def test_values_without_a_form_in_json():
    for value in (object(), float("nan"), {1, 2}):
        with pytest.raises(DataError, match="structure 0: a value has no form in JSON"):
            jsonl.write([Record(Sequence(["a"]), more={"x": value})])
