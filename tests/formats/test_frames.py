"""pandas DataFrames."""

from __future__ import annotations

import pytest
from format_cases import PROPERTY, assert_same, attempt, datasets, tokens
from hypothesis import given
from hypothesis import strategies as st

from fuda.data.structures import Sequence, Tree
from fuda.errors import DataError
from fuda.formats import Dataset, Record, from_pandas, text, to_pandas

pandas = pytest.importorskip("pandas", reason="the extra fuda[pandas] is not installed")


@PROPERTY
@given(datasets(tokens | st.tuples(tokens, tokens), st.none() | tokens.filter(bool)))
def test_frames_come_back(data):
    frame, refused = attempt(to_pandas, data)
    if frame is None:
        assert "other columns" in refused
        return
    labelled = data.records[0].labels is not None
    assert_same(from_pandas(frame, label="label" if labelled else None), data)
    indexed = frame.set_index(["sentence", frame.index])
    assert_same(from_pandas(indexed, label="label" if labelled else None), data)


def test_a_frame_of_a_csv_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        'Sentence #,Word,POS,Tag\nSentence: 1,Ana,NP,B-PER\n,"a, b",VB,\nSentence: 2,Bo,NP,B-PER\n'
    )
    frame = pandas.read_csv(path, keep_default_na=False)
    frame["Sentence #"] = frame["Sentence #"].replace("", None).ffill()
    assert from_pandas(frame, columns="Word", label="POS").y == [["NP", "VB"], ["NP"]]
    numbers = pandas.DataFrame({"sent": [1, 1], "x": [3, 4], "y": [0, 1]})
    assert list(from_pandas(numbers)) == [[Sequence([3, 4])], [[0, 1]]]


def test_offsets_in_a_frame():
    data = text.read("Ana sings.", "f").with_labels([["N", "V", None]])
    frame = to_pandas(data)
    assert list(frame.columns) == ["sentence", "token", "start", "end", "label"]
    assert frame["end"].tolist() == [3, 9, 10]
    assert_same(from_pandas(frame), data)


@pytest.mark.parametrize(
    ("frame", "options", "words"),
    [
        ([1], {}, "DataFrame is expected.*make one"),
        ({"a": [1], "b": [2]}, {}, "no column's name begins with 'sent'.*sentence=NAME"),
        ({"sent": [1, None], "a": ["x", "y"], "b": ["X", "Y"]}, {}, "a row has no sentence; fill it"),
        ({"sent": [1, 1], "a": ["x", None], "b": ["X", "Y"]}, {}, "row 1 has no value in 'a'; fill"),
        ({"sent": [1], "a": ["x"]}, {}, "columns of their own.*name others"),
        ({"sent": [1], "a": ["x"], "b": ["X"]}, {"label": "c"}, "label='c': there is no such column"),
    ],
)
def test_frames_that_cannot_be_read(frame, options, words):
    with pytest.raises(DataError, match=words):
        from_pandas(pandas.DataFrame(frame) if isinstance(frame, dict) else frame, **options)


def test_trees_do_not_fit_into_rows():
    with pytest.raises(DataError, match="structure 0: a tree in rows would lose its edges"):
        to_pandas(Dataset([Record(Tree(["a"], [-1]))]))
