"""Which structure comes next: by uncertainty and novelty, by file, by disagreement."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from fuda import CRF, DataError
from fuda.active import Chooser, uncertainties

X = [["Ana", "sings"], ["Ana", "sings"], ["Lima", "is", "big"], ["Ana", "is", "in", "Lima"]]


class Certain:
    """A model that is certain of nothing, or of the label A by the number that a word is."""

    classes_ = np.array(["A", "B"], dtype=object)

    def predict_marginals(self, X: Any) -> list[np.ndarray]:
        return [np.array([[float(w), 1 - float(w)] for w in x]) for x in X]


def test_uncertainty_is_the_entropy_of_a_distribution_with_independent_nodes():
    table = np.random.RandomState(0).dirichlet(np.ones(3), size=4)
    whole = 0.0
    for labels in product(range(3), repeat=4):
        p = math.prod(table[t, k] for t, k in enumerate(labels))
        whole -= p * math.log(p)
    assert uncertainties([table])[0] == pytest.approx(whole)


def test_uncertainty_of_a_certain_structure_is_zero_and_never_negative():
    assert uncertainties([np.array([[1.0, 0.0]]), np.empty((0, 2))]).tolist() == [0.0, 0.0]


def test_the_most_uncertain_comes_first_and_none_is_left_at_the_end():
    pool = [["0.9"], ["0.5"], ["1.0"]]
    chooser = Chooser(pool)
    chooser.scored([0, 1, 2], Certain(), pool)
    asked: list[int] = []
    while (number := chooser.next(asked)) is not None:
        asked.append(number)
    assert asked == [1, 0, 2]


def test_a_copy_comes_after_what_is_new():
    pool = [["0.5", "0.51"], ["0.5", "0.51"], ["0.6", "0.61"]]
    chooser = Chooser(pool)
    chooser.scored([0, 1, 2], Certain(), pool)
    first = chooser.next()
    assert first in (0, 1)
    assert chooser.next([first]) == 2


def test_skipped_structures_do_not_make_others_less_new():
    chooser = Chooser(X)
    new = chooser.novelty([])
    assert new.tolist() == [1.0] * 4
    assert chooser.novelty([0])[1] == pytest.approx(0.5)
    assert chooser.novelty([0])[2] == 1.0
    assert chooser.novelty([0, 1])[1] == pytest.approx(0.25)


def test_what_is_not_scored_comes_last():
    pool = [["0.5"], ["0.99"], ["0.5"]]
    chooser = Chooser(pool)
    chooser.scored([1], Certain(), [pool[1]])
    assert chooser.next() == 1


def test_a_new_score_replaces_the_old_one():
    pool = [["0.9"], ["0.8"]]
    chooser = Chooser(pool)
    chooser.scored([0, 1], Certain(), pool)
    assert chooser.next() == 1
    chooser.scored([1], Certain(), [["0.99"]])
    assert chooser.next() == 0


def test_file_order():
    chooser = Chooser(X, order="file")
    assert [chooser.next(range(k)) for k in range(5)] == [0, 1, 2, 3, None]


def test_disagreement_comes_by_the_probability_that_a_label_is_wrong():
    pool = [["0.9", "0.9"], ["0.9", "0.8"], ["0.5", "0.2"], ["0.5", "0.5"]]
    chooser = Chooser(pool, order="disagreement")
    labels = [["A", "A"], ["B", "A"], [None, "B"], [None, None]]
    chooser.scored(range(4), Certain(), pool, labels)
    asked: list[int] = []
    for _ in range(3):
        asked.append(chooser.next(asked))
    assert asked == [1, 2, 0]


def test_a_label_that_the_model_has_never_seen_is_a_disagreement():
    pool = [["0.9"], ["0.9"]]
    chooser = Chooser(pool, order="disagreement")
    chooser.scored([0, 1], Certain(), pool, [["B"], ["NEW"]])
    assert chooser.next() == 1


def test_orders_are_named():
    with pytest.raises(DataError, match="order='best': choose useful, file, disagreement"):
        Chooser(X, order="best")


def test_with_a_model_of_the_package():
    y = [["PER", "O"], ["PER", "O"], ["LOC", "O", "O"], ["PER", "O", "O", "LOC"]]
    chooser = Chooser(X)
    chooser.scored([2, 3], CRF().fit(X[:2], y[:2]), X[2:])
    assert chooser.next([0, 1]) in (2, 3)
