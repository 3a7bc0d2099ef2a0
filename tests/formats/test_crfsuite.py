"""CRFsuite's data format: attributes with values, escapes, weights of sequences."""

from __future__ import annotations

import pytest
from format_cases import PROPERTY, datasets, labels, tokens
from hypothesis import given
from hypothesis import strategies as st

from fuda import CRF, DataError, Sequence, read, write
from fuda.formats import Dataset, Record, crfsuite

TEXT = "B\tw=Ana\t__BOS__\nO\tw\\:is\tlength:2.5\n\n\nO\n_\ta\ta:\t__EOS__\n"


def test_items_are_lists_of_names_or_dicts():
    X, y = crfsuite.read(TEXT, "x")
    assert [list(x.observations) for x in X] == [
        [["w=Ana", "__BOS__"], {"w:is": 1.0, "length": 2.5}],
        [[], {"a": 2.0, "__EOS__": 1.0}],
    ]
    assert y == [["B", "O"], ["O", None]]


def test_weights_of_sequences_are_kept():
    data = crfsuite.read("@weight:2.5\nA\tx\n\nB\ty\n", "x")
    assert [record.comments for record in data.records] == [["@weight:2.5"], []]
    assert crfsuite.write(data.records) == "@weight:2.5\nA\tx\n\nB\ty\n\n"


names = tokens.filter(lambda name: name and not set(name) & set("\t\n\r"))
items = st.lists(names, max_size=4) | st.dictionaries(names, st.floats(-1e9, 1e9), min_size=1, max_size=4)


@PROPERTY
@given(datasets(items, labels, labelled=True))
def test_what_is_written_is_read_back(data):
    reread = crfsuite.read(crfsuite.write(data.records), "x")
    assert [x.observations for x in reread.X] == [x.observations for x in data.X]
    assert reread.y == data.y


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A\ta:b:c\n", "x:1: 'a:b:c' has two colons"),
        ("A\tx\nB\ta:many\n", "x:2: the value 'many' is not a finite number"),
        ("A\ta:nan\n", "x:1: the value 'nan' is not a finite number"),
        ("A:1\ta\n", "x:1: the label 'A:1' has a colon"),
        ("@order:2\nA\ta\n", "x:1: the declaration '@order:2' is not known"),
        ("\n\n", "x: no items"),
    ],
)
def test_errors_name_the_line(text, message):
    with pytest.raises(DataError) as caught:
        crfsuite.read(text, "x")
    assert message in str(caught.value)


@pytest.mark.parametrize("item", ["word", ("a", "b"), 3, ["a\tb"], [""], ["a\nb"]])
def test_other_observations_are_refused(item):
    with pytest.raises(DataError, match="structure 0, node 0"):
        crfsuite.write([Record(Sequence([item]), ["A"])])


def test_it_is_a_format_by_name(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(TEXT)
    data = read(path, format="crfsuite")
    model = CRF(window=0).fit(data.X, [["B", "O"], ["O", "O"]])
    write(data.with_labels(model.predict(data.X)), path, format="crfsuite")
    assert read(path, format="crfsuite").y == [["B", "O"], ["O", "O"]]
    assert isinstance(data, Dataset)
