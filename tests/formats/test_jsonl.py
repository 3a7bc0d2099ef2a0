from __future__ import annotations

import json
import time

import numpy as np
import pytest
from format_cases import PROPERTY, assert_same, datasets, tokens
from hypothesis import given
from hypothesis import strategies as st

from fuda.data.structures import Dag, Sequence, Tree
from fuda.errors import DataError
from fuda.formats import Record, conllu, jsonl

numbers = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
observations = (
    tokens
    | st.integers(-(10**20), 10**20)
    | st.lists(tokens, max_size=3)
    | st.lists(tokens, max_size=3).map(tuple)
    | st.sets(tokens, max_size=3)
    | st.dictionaries(tokens, numbers | tokens | st.booleans(), max_size=3)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=3).map(np.array)
)
any_labels = st.none() | tokens | st.integers(-(10**20), 10**20)


def read(text):
    return jsonl.read(text, "f.jsonl")


@pytest.mark.parametrize("shape", ["sequence", "tree", "dag"])
def test_every_structure_and_observation_comes_back(shape):
    @PROPERTY
    @given(datasets(observations, any_labels, shape=shape), st.lists(tokens, max_size=2))
    def check(data, comments):
        data.records[0].comments = comments
        text = jsonl.write(data.records)
        assert len(text.splitlines()) == len(data)  # no tool breaks a line inside a record
        again = read(text)
        assert_same(again, data)
        assert again.records[0].comments == comments
        assert jsonl.write(again.records) == text

    check()


def test_the_form_of_each_observation():
    vector = np.array([0.5, 1.0])
    record = Record(Sequence(["w", 7, ["f"], ("w", "NP"), {"b", "a"}, {"f": 0.5, "g": True}, vector]))
    (line,) = jsonl.write([record]).split("\n")[:-1]
    assert json.loads(line) == {
        "observations": [
            *("w", 7, ["f"], {"columns": ["w", "NP"]}, {"set": ["a", "b"]}),
            *({"features": {"f": 0.5, "g": True}}, [0.5, 1.0]),
        ]
    }


def test_shapes_and_optional_keys():
    text = (
        '{"observations": ["a", "b"], "heads": [1, -1], "labels": ["X", null]}\n\n'
        '{"observations": ["a", "b"], "edges": [[1, 0]], "labels": [0, 1], "comments": ["x"]}\r\n'
        '{"observations": ["a"]}'
    )
    data = read(text)
    assert [Tree(["a", "b"], [1, -1]), Dag(["a", "b"], [(1, 0)]), Sequence(["a"])] == data.X
    assert [record.labels for record in data.records] == [["X", None], [0, 1], None]
    assert [record.comments for record in data.records] == [[], ["x"], []]


def test_numpy_scalars_are_plain_values():
    record = Record(
        Sequence([np.int64(3), np.str_("a"), {"f": np.float32(0.5)}]), [np.int64(1), np.str_("X"), None]
    )
    again = read(jsonl.write([record])).records[0]
    assert again.structure == Sequence([3, "a", {"f": 0.5}])
    assert again.labels == [1, "X", None]
    assert [Sequence([np.array([1.0, 2.0])])] == read(
        jsonl.write([Record(Sequence([np.array([1, 2], dtype=np.int8)]))])
    ).X


def test_text_outside_ascii_stays_readable():
    assert "é😀" in jsonl.write([Record(Sequence(["é😀"]))])
    assert "a\\u2028b\\u0085" in jsonl.write([Record(Sequence(["a\u2028b\x85"]))])


def test_rows_of_other_formats_are_passed_over():
    data = conllu.read("1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n", "f.conllu")
    assert jsonl.write(data.records) == '{"observations": ["a"], "labels": ["X"], "heads": [-1]}\n'


@pytest.mark.parametrize(
    ("observation", "words"),
    [
        (1.5, "is not an observation"),
        (None, "is not an observation"),
        (True, "is not an observation"),
        (b"a", "is not an observation"),
        ([1, 2], "string is expected"),
        (("a", 1), "string is expected"),
        ({1: 2.0}, "string is expected"),
        ({"f": float("nan")}, "finite number"),
        ({"f": None}, "finite number"),
        (np.array([np.inf]), "finite numbers"),
        (np.zeros((2, 2)), "numeric vector"),
        (np.array([]), "numeric vector"),
        (np.array(["a"]), "numeric vector"),
    ],
)
def test_what_has_no_json_form_is_refused_with_its_place(observation, words):
    with pytest.raises(DataError, match=rf"structure 0, node 1: .*{words}"):
        jsonl.write([Record(Sequence(["x", observation]))])


@pytest.mark.parametrize("label", [1.5, True, ("a",), np.float64(0.5)])
def test_labels_that_would_not_come_back_are_refused(label):
    with pytest.raises(DataError, match=r"structure 0, node 0: the label .* is neither a string"):
        jsonl.write([Record(Sequence(["x"]), [label])])


def test_a_key_given_twice_among_many_is_found_at_once():
    keys = ", ".join(f'"k{i}": 1' for i in range(30_000))
    began = time.perf_counter()
    with pytest.raises(DataError, match="the key 'k29999' is given twice; keep it once"):
        jsonl.read(f'{{"observations": [{{"features": {{{keys}, "k29999": 2}}}}]}}', "x")
    assert time.perf_counter() - began < 2.0
