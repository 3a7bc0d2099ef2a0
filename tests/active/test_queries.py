"""Which structure comes next: by uncertainty and novelty, by file, by disagreement."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from fuda import CRF, DataError, Tree
from fuda.active import Chooser, entropies
from fuda.active.queries import _FADING as FADING

X = [["Ana", "sings"], ["Ana", "sings"], ["Lima", "is", "big"], ["Ana", "is", "in", "Lima"]]


class Certain:
    """A model that is certain of nothing, or of the label A by the number that a word is."""

    classes_ = np.array(["A", "B"], dtype=object)

    def predict_marginals(self, X: Any) -> list[np.ndarray]:
        return [np.array([[float(w), 1 - float(w)] for w in x]) for x in X]


def test_entropies_add_up_to_that_of_a_distribution_with_independent_nodes():
    table = np.random.RandomState(0).dirichlet(np.ones(3), size=4)
    whole = 0.0
    for labels in product(range(3), repeat=4):
        p = math.prod(table[t, k] for t, k in enumerate(labels))
        whole -= p * math.log(p)
    assert entropies([table])[0].sum() == pytest.approx(whole)


def test_the_entropy_of_what_is_certain_is_zero():
    uncertain = entropies([np.array([[1.0, 0.0]]), np.empty((0, 2))])
    assert [row.tolist() for row in uncertain] == [[0.0], []]


def plain_uses(pool, labelled, values):
    """The uses by their definition, with values of nodes."""

    def parts(x):
        return {(w,) for w in x} | set(pairwise(x))

    unknown = {part: 0.0 for x in pool for part in parts(x)}
    for x, values_of_x in zip(pool, values, strict=True):
        for t, w in enumerate(x):
            unknown[w,] += values_of_x[t]
        for t, pair in enumerate(pairwise(x)):
            unknown[pair] += values_of_x[t] + values_of_x[t + 1]
    uses = []
    for x in pool:
        seen = {part: sum(part in parts(pool[i]) for i in labelled) for part in parts(x)}
        use = sum(math.sqrt(unknown[part]) * FADING ** seen[part] for part in parts(x))
        uses.append(use / len(x) ** 0.25)
    return uses


def test_uses_are_those_of_the_definition_whatever_the_order_of_scores():
    pool = [["0.5", "0.9", "0.5"], ["0.9"], ["0.6", "0.5", "0.9"], ["1.0", "0.7"], ["0.5", "0.9", "0.5"]]
    chooser = Chooser(pool)
    alike = [[1.0] * len(x) for x in pool]
    assert chooser.uses([0]) == pytest.approx(plain_uses(pool, [0], alike), rel=1e-6)
    chooser.scored([2, 0], Certain(), [["0.99", "0.98", "0.97"], pool[0]])
    chooser.scored([1, 2, 4, 3], Certain(), [pool[i] for i in (1, 2, 4, 3)])
    chooser.scored([], Certain(), [])
    values = [[-sum(q * math.log(q) for q in (p, 1 - p) if q) for p in map(float, x)] for x in pool]
    for labelled in ([], [1], [0, 2]):
        assert chooser.uses(labelled) == pytest.approx(plain_uses(pool, labelled, values), abs=1e-6)


def test_neighbours_in_trees_and_graphs_are_those_of_their_edges():
    pool = [
        Tree(["a", "b", "c"], [-1, 0, 0]),
        Tree(["a", "b", "c"], [-1, 0, 1]),
        Tree(["a", "b", "c"], [-1, 0, 0]),
    ]
    near, same = Chooser(pool).uses([0])[1:]
    assert near > same  # has an edge that the first has not


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


def test_only_labelled_structures_make_others_less_useful():
    chooser = Chooser([["a", "b"], ["a", "b"], ["c", "d"]])
    assert chooser.next(exclude=[0]) == 2
    assert chooser.next(exclude=[0], labelled=[]) == 1


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
