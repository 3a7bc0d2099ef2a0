"""Tables of words: features, what unknown words back off to, checks."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from fuda import DataError, Vectors
from fuda.vectors import learn
from fuda.vectors.counting import shape_key
from fuda.vectors.table import LENGTH, MEMBERSHIP


def test_features_are_those_of_the_set_of_classes_and_of_the_vector():
    table = Vectors(["Lima"], [[3.0, 4.0]], ["0110101"], base="word")
    values = dict.fromkeys(["class4=0110", "class6=011010", "class10=0110101", "class=0110101"], MEMBERSHIP)
    expected = {"w=Lima": 1.0, **values, "vector0": LENGTH * 0.6, "vector1": LENGTH * 0.8}
    assert table("Lima") == pytest.approx(expected)
    assert table(("Lima", "NP")) == pytest.approx(expected | {"column1=NP": 1.0})
    assert table.extending(None)("Oslo") == {}
    assert table.extending(None).words is table.words
    assert table.extending("word") is table


def test_unknown_words_back_off():
    endings = [f"{start}ción" for start in ("na", "ac", "fun", "can", "ra")]
    words = ["casa", *endings, shape_key("Xx")]
    matrix = np.arange(14.0).reshape(7, 2) + 1
    table = Vectors(words, matrix)
    np.testing.assert_array_equal(table.vector("Casa"), matrix[0])  # lower-cased
    np.testing.assert_array_equal(table.vector("Lima"), matrix[6])  # by its shape
    np.testing.assert_allclose(table.vector("perro"), [0.0, 0.0])  # no ending that is known
    np.testing.assert_allclose(table.vector("emoción"), matrix[1:6].mean(axis=0))  # by its ending
    assert table.word_class("casa") is None
    assert "casa" in table
    assert "Casa" not in table
    assert len(table) == 7


def test_a_word_without_a_direction_has_no_vector():
    assert Vectors(["a"], [[0.0]], base=None)("a") == {}


def test_tables_are_shared_not_copied():
    table = learn([["a", "b", "a"], ["b", "b"]])
    assert copy.deepcopy(table) is copy.copy(table) is table
    again = pickle.loads(pickle.dumps(table))
    assert again("b") == table("b")
    assert "2 classes" in repr(learn([["a", "a", "b", "b"]]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a", "a"], [[1.0], [2.0]]), "not strings that all differ"),
        ((["a"], [[1.0], [2.0]]), "one row per word"),
        ((["a"], [1.0]), "one row per word"),
        ((["a"], [["x"]]), "give an array"),
        ((["a"], [[np.nan]]), "not finite"),
        ((["a"], [[1e30]]), "not finite or beyond"),
        ((["a"], [[1.0]], []), "give one per word"),
        ((["a"], [[1.0]], ["012"]), "not a text of bits"),
    ],
)
def test_bad_tables_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        Vectors(*arguments)


def test_bad_sets_and_observations_are_refused():
    with pytest.raises(DataError, match="no such feature set"):
        Vectors(["a"], [[1.0]], base="S3")
    with pytest.raises(DataError, match="not a word"):
        Vectors(["a"], [[1.0]], base=None)(3)


def test_learning_from_nothing_is_refused():
    with pytest.raises(DataError, match="no words to learn"):
        learn([])
    with pytest.raises(DataError, match="structure 1, node 0 is 3"):
        learn([["a"], [3]])


def test_words_in_the_same_places_are_alike():
    towns, names = ["Lima", "Oslo", "Bonn", "Rome"], ["Ana", "Eva", "Bo", "Tim"]
    vectors = learn([[name, "lives", "in", town] for name in names for town in towns])
    assert len({vectors.word_class(town) for town in towns}) == 1
    assert vectors.word_class("Lima") != vectors.word_class("Ana")
    assert vectors.word_class("Lima") != vectors.word_class("in")
    alike, other = (vectors.vector("Lima") @ vectors.vector(word) for word in ("Oslo", "Ana"))
    assert alike > other
