"""Structures packed into arrays and texts come back equal; arrays that do not fit are refused."""

from __future__ import annotations

import numpy as np
import pytest

from fuda import Dag, DataError, Sequence, Tree
from fuda.data.corpus import Corpus
from fuda.storage.structures import pack, unpack

CASES = {
    "text": [Sequence(["a", "b", "a"]), Sequence(["b"])],
    "columns": [Sequence([("a", "N"), ("b", "V")])],
    "ids": [Sequence([3, 1, 3])],
    "features": [Sequence([{"w": "a", "n": 2.0, "cap": True}, {"w": "b", "n": 1.5, "cap": False}])],
    "names": [Sequence([["a", "b"], ["c"], []])],
    "vectors": [Sequence([np.array([0.1, 0.2]), np.array([1.0, 0.0])])],
    "trees": [Tree(["a", "b", "c"], [1, -1, 1]), Tree(["a", "b"], [-1, -1])],
    "dags": [Dag(["a", "b", "c"], [(0, 2), (1, 2)]), Dag(["d"], [])],
    "none": [],
}


@pytest.mark.parametrize("name", CASES)
def test_packed_structures_come_back_equal(name):
    shape = CASES[name][0].shape if CASES[name] else "tree"
    assert unpack(*pack(CASES[name]), shape) == CASES[name]


def changed(name, value):
    texts, arrays = pack(CASES["trees"])
    if name == "texts":
        return value, arrays
    return texts, arrays | {name: value} if value is not None else {
        k: v for k, v in arrays.items() if k != name
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("offsets", None),
        ("offsets", np.array([0, 3, 3, 5])),
        ("offsets", np.array([0, 3, 4])),
        ("offsets", np.zeros(0, dtype=np.int64)),
        ("offsets", np.array([0.0, 3.0, 5.0])),
        ("types", np.array([0, 1, 2, 0, 9])),
        ("types", np.array([0, 1, 2, 0, -1])),
        ("edges", np.array([[1, 0, 2]])),
        ("edges", np.array([[1, 9]])),
        ("edges", np.array([[1, 4]])),
        ("edges", np.array([[0, 1], [1, 0]])),
        ("texts", ['"a"', '"b"']),
        ("texts", ['"a"', '"b"', "{"]),
        ("texts", ['"a"', '"b"', "null"]),
    ],
)
def test_what_does_not_fit_together_is_refused(name, value):
    with pytest.raises(DataError):
        Corpus(unpack(*changed(name, value), "tree"))
