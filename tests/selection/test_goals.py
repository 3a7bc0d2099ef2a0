from __future__ import annotations

import numpy as np
import pytest

from fuda import metrics
from fuda.errors import DataError
from fuda.selection import Goal, goal_for

TAGS = ["O", "B-PER", "I-PER", "B-LOC"]


def random_labels(seed, labels=TAGS, count=30):
    random = np.random.RandomState(seed)
    return [[labels[k] for k in random.randint(0, len(labels), size)] for size in random.randint(1, 9, count)]


@pytest.mark.parametrize(
    ("goal", "score"),
    [
        (Goal("token accuracy"), lambda report: report.accuracy),
        (Goal("label F1"), lambda report: report.label_scores.micro.f1),
        (Goal("entity F1"), lambda report: report.entity_scores.micro.f1),
    ],
)
def test_summed_counts_give_the_scores_of_the_metrics(goal, score):
    true = random_labels(0)
    guess = [[TAGS[(TAGS.index(a) + (i % 3 == 0)) % 4] for i, a in enumerate(labels)] for labels in true]
    assert goal.score(goal.counts(true, guess)) == pytest.approx(score(metrics.evaluate(true, guess)))


def test_bilou_entities_are_read_as_the_metrics_read_them():
    true, guess = [["B-X", "L-X", "U-Y", "O"]], [["B-X", "L-X", "O", "U-Y"]]
    expected = metrics.evaluate(true, guess).entity_scores.micro.f1
    goal = goal_for(true)
    assert goal == Goal("entity F1", "BILOU")
    assert goal.score(goal.counts(true, guess)) == expected == 0.5


def test_entities_of_random_labels_are_those_of_the_lenient_interpretation():
    labels = [f"{prefix}-{kind}" for prefix in "BIES" for kind in "XY"] + ["O"]
    for seed in range(50):
        true, guess = random_labels(seed, labels, 3), random_labels(seed, labels, 3)
        guess = [list(reversed(labels)) for labels in guess]
        scores = metrics.entity_scores(true, guess).micro
        counts = Goal("entity F1").counts(true, guess).sum(axis=(0, 1))
        assert counts.tolist() == [scores.correct, scores.predicted, scores.support]


def test_macro_f1_is_the_mean_over_labels():
    true, guess = [["a", "a", "b"], ["a", "c"]], [["a", "b", "b"], ["a", "a"]]
    goal = Goal("macro F1", labels=("a", "b", "c"))
    assert goal.score(goal.counts(true, guess)) == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)


def test_unknown_labels_do_not_count():
    true, guess = [["B-X", None], ["B-X"]], [["O", "O"], ["B-X"]]
    assert Goal("entity F1").counts(true, guess).tolist() == [[[0, 0, 0]], [[1, 1, 1]]]
    assert Goal("token accuracy").counts(true, guess).tolist() == [[[0, 1, 1]], [[1, 1, 1]]]
    assert Goal("macro F1", labels=("B-X",)).counts([[None]], [["O"]]).tolist() == [[[0, 0, 0]]]


def test_the_goal_follows_from_the_labels():
    assert goal_for([["O", "B-A", "I-A"], [None]]) == Goal("entity F1", "IOB2")
    assert goal_for([["O", "B-A", "I-A"], [None], [None, "O"]]) == Goal("label F1", "IOB2")
    assert goal_for([["I-A", "I-A"]]) == Goal("entity F1", None)  # more than one scheme fits
    assert goal_for([["-"] * 9 + ["+"]]) == Goal("macro F1", None, ("+", "-"))
    assert goal_for([["h", "e", "c"]]).name == "token accuracy"
    assert goal_for([[1, 2, 3]]).name == "token accuracy"
    with pytest.raises(DataError, match="no label is known"):
        goal_for([[None]])
