"""How several labelers decide together, chosen out of fold."""

from __future__ import annotations

import numpy as np
import pytest

from fuda import inference
from fuda.data.corpus import Corpus
from fuda.data.structures import Sequence
from fuda.models.choice.opinions import Opinion
from fuda.models.choice.tuning import Tuner
from fuda.selection import Goal


def test_rare_labels_get_the_bias_that_the_goal_asks_for():
    """Rare labels have probability 0.3 where they are right, and 0.1 elsewhere."""
    corpus = Corpus([Sequence(["x"] * 10) for _ in range(20)])
    labels = np.tile([1, 1, *[0] * 8], 20)
    p = np.where(labels[:, None] == 1, [[0.7, 0.3]], [[0.9, 0.1]])
    tuner = Tuner([corpus], labels, ["-", "+"], Goal("macro F1", None, ("+", "-")), 1)
    decoder, score, predicted = tuner.tuned([[Opinion(p)]], [1.0])
    assert (predicted == labels).all()
    assert decoder.bias[0] > 0
    assert decoder.bias[1] == 0
    assert score > 0.9
    accuracy = Tuner([corpus], labels, ["-", "+"], Goal("token accuracy"), 1).tuned([[Opinion(p)]], [1.0])[0]
    assert not accuracy.bias.any()


def test_settings_stay_usual_where_few_structures_cannot_tell(monkeypatch):
    goal = Goal("macro F1", None, ("+", "-"))

    def bias(structures, seed):
        """Rare labels have probability 0.25 where they are right, 0.05 elsewhere, in the mean."""
        random = np.random.RandomState(seed)
        labels = (random.rand(10 * structures) < 0.2).astype(int)
        right = np.where(labels == 1, random.beta(2, 6, len(labels)), random.beta(1, 19, len(labels)))
        corpus = Corpus([Sequence(["x"] * 10) for _ in range(structures)])
        tuner = Tuner([corpus], labels, ["-", "+"], goal, 1)
        return tuner.tuned([[Opinion(np.column_stack([1 - right, right]))]], [1.0])[0].bias[0]

    few, many = [bias(6, seed) for seed in range(20)], bias(600, 0)
    monkeypatch.setattr(Tuner, "_error", lambda *_: 0.0)
    by_score, by_score_of_many = [bias(6, seed) for seed in range(20)], bias(600, 0)
    assert (np.array(few) <= by_score).all()
    assert np.mean(few) < np.mean(by_score) - 0.3
    assert by_score_of_many - 0.5 <= many <= by_score_of_many


def test_powers_make_probabilities_as_sure_as_they_are_right():
    random = np.random.RandomState(0)
    labels = (random.rand(4000) < 0.8).astype(int)
    corpus = Corpus([Sequence(["x"] * 4000)])
    tuner = Tuner([corpus], labels, ["a", "b"], Goal("token accuracy"), 1)
    assert tuner.power([Opinion(np.full((4000, 2), [0.2, 0.8]))]) == 1.0
    assert tuner.power([Opinion(np.full((4000, 2), [0.4, 0.6]))]) > 2
    assert tuner.power([Opinion(np.full((4000, 2), [0.01, 0.99]))]) < 0.5


def test_powers_of_scores_make_labelings_likeliest():
    """Labels are drawn from scores, of which multiples are given, in two parts."""
    random = np.random.RandomState(1)
    corpora = [Corpus([Sequence(["x"] * 3) for _ in range(count)]) for count in (150, 20)]
    pairs = np.array([[1.0, -1.0], [-0.5, 0.8]])
    parts, labels = [], []
    for corpus in corpora:
        nodes = random.normal(scale=2.0, size=(corpus.size, 2))
        _, p, edges = inference.marginals(corpus.graph, nodes, pairs, edges=True)
        for start in corpus.offsets[:-1]:
            labels.append(int(random.rand() < p[start, 1]))
            for t in (start + 1, start + 2):
                row = edges[t, labels[-1]]
                labels.append(int(random.rand() < row[1] / row.sum()))
        parts.append(Opinion(nodes, pairs))
    tuner = Tuner(corpora, np.array(labels), ["a", "b"], Goal("token accuracy"), 1)
    right = tuner.power(parts)
    assert right == pytest.approx(1.0, rel=0.35)
    assert tuner.power([part.times(4.0) for part in parts]) == pytest.approx(right / 4, rel=0.03)


def test_every_part_is_decoded_by_the_scores_of_its_own_model():
    """The second model likes other pairs of labels than the first."""
    corpora = [Corpus([Sequence(["x"] * 2) for _ in range(5)]) for _ in range(2)]
    nodes = np.tile([[1.0, 0.0], [0.0, 0.0]], (5, 1))
    same, other = np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 2.0], [2.0, 0.0]])
    labels = np.array([0, 0] * 5 + [0, 1] * 5)
    tuner = Tuner(corpora, labels, ["a", "b"], Goal("token accuracy"), 1)
    decoder, score, predicted = tuner.tuned([[Opinion(nodes, same), Opinion(nodes, other)]], [1.0])
    assert predicted.tolist() == labels.tolist()
    assert score == 1.0
    assert decoder.by_scores == (True,)
    assert not decoder.pairs.any()  # what is known of label pairs is in the scores
