"""Changes of labels, against plain sums over nodes and edges."""

from __future__ import annotations

import numpy as np
import pytest

from fuda.active.edits import Field, changes
from fuda.schemes import entities

NAMES = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]


def random_field(seed, heads, by_edge=False):
    random, size = np.random.RandomState(seed), len(heads)
    pairs = random.normal(size=(size, 5, 5) if by_edge else (5, 5))
    return Field(random.normal(size=(size, 5)), np.array(heads), pairs)


def plain_total(field, labels):
    total = sum(field.scores[t, k] for t, k in enumerate(labels))
    for t, head in enumerate(field.heads):
        pairs = field.pairs[t] if field.pairs.ndim == 3 else field.pairs
        total += 0.0 if head < 0 else pairs[labels[head], labels[t]]
    return total


@pytest.mark.parametrize("heads", [[-1, 0, 1, 2], [-1, 0, 0, 2], [1, -1, -1, 2], [-1]])
@pytest.mark.parametrize("by_edge", [False, True])
def test_totals_and_single_changes(heads, by_edge):
    field = random_field(len(heads), heads, by_edge)
    labels = np.random.RandomState(7).randint(5, size=len(heads))
    before = plain_total(field, labels)
    assert field.total(labels) == pytest.approx(before)
    totals = field.single_changes(labels)
    for t in range(len(heads)):
        for k in range(5):
            changed = labels.copy()
            changed[t] = k
            wanted = -np.inf if k == labels[t] else plain_total(field, changed) - before
            assert totals[t, k] == pytest.approx(wanted)


@pytest.mark.parametrize("seed", range(20))
def test_each_node_is_named_once_and_changes_that_are_made_improve(seed):
    field = random_field(seed, [-1, 0, 1, 2, 3, 4, 5])
    labels = np.random.RandomState(seed).randint(5, size=7)
    known = np.random.RandomState(seed + 1).rand(7) < 0.8
    proposed = changes(field, labels, NAMES, "IOB2", known)
    named = [node for change in proposed for node in change.nodes]
    assert len(named) == len(set(named))
    assert set(named) == set(np.flatnonzero(known).tolist())
    assert [c.score for c in proposed] == sorted((c.score for c in proposed), reverse=True)


def test_without_a_scheme_every_change_is_of_one_node():
    field = random_field(3, [-1, 0, 0, 1, 1])
    proposed = changes(field, np.zeros(5, dtype=int), NAMES, None, np.ones(5, dtype=bool))
    assert sorted(change.nodes for change in proposed) == [(0,), (1,), (2,), (3,), (4,)]


def certain(right):
    """Scores that prefer given labels by 5, and well-formed sequences."""
    scores = np.zeros((len(right), 5))
    scores[np.arange(len(right)), [NAMES.index(label) for label in right]] = 5.0
    pairs = np.zeros((5, 5))
    pairs[4, 2:4] = pairs[0, 3] = pairs[1, 2] = pairs[2, 3] = pairs[3, 2] = -5.0
    return Field(scores, np.arange(len(right)) - 1, pairs)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (["O", "B-PER", "I-PER", "O"], ["B-PER", "I-PER", "I-PER", "O"]),  # the start was moved
        (["O", "B-PER", "I-PER", "O"], ["O", "B-PER", "I-PER", "I-PER"]),  # the end
        (["O", "B-PER", "I-PER", "O"], ["O", "B-LOC", "I-LOC", "O"]),  # another type
        (["O", "B-PER", "I-PER", "O"], ["O", "O", "O", "O"]),  # missed
        (["O", "O", "O", "O"], ["O", "B-PER", "I-PER", "O"]),  # invented
        (["B-PER", "I-PER", "I-PER", "O"], ["B-PER", "B-PER", "I-PER", "O"]),  # cut in two
    ],
)
def test_the_first_change_is_to_the_entities_that_the_model_is_sure_of(right, wrong):
    numbers = np.array([NAMES.index(label) for label in wrong])
    first = changes(certain(right), numbers, NAMES, "IOB2", np.ones(4, dtype=bool))[0]
    assert entities([NAMES[k] for k in first.labels]) == entities(right)
    assert first.score > 0
    assert set(first.nodes) == {t for t in range(4) if right[t] != wrong[t]}


def test_a_wrong_label_does_not_make_its_neighbours_doubtful():
    right = ["B-PER", "I-PER", "I-PER", "O"]
    wrong = np.array([NAMES.index(label) for label in ["B-PER", "I-LOC", "I-PER", "O"]])
    proposed = changes(certain(right), wrong, NAMES, "IOB2", np.ones(4, dtype=bool))
    assert [change.nodes for change in proposed if change.score > 0] == [(1,)]
