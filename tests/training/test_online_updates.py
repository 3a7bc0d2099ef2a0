"""Passive-aggressive and AROW updates: against ones in plain Python that try all labelings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fuda
from fuda import DataError, HMPerceptron, Sequence, Tree
from fuda.kernels import Linear
from fuda.training.online_updates import UPDATES

LABELS = ["A", "B", "C"]


class Plain:
    """The updates by the book, over dicts of weights and variances."""

    def __init__(self, order, update, C, rescale):
        self.order, self.update, self.C, self.rescale = order, update, C, rescale
        self.weights, self.total, self.variances = {}, {}, {}
        self.steps = 0

    def phi(self, x, heads, labels):
        """Sums of feature values by label, and counts of labels after those of ancestors."""
        counts = {}
        for t, label in enumerate(labels):
            context, node = [], t
            while heads[node] >= 0 and len(context) < self.order:
                node = heads[node]
                context.append(labels[node])
            features = {("feature", name, label): value for name, value in x[t].items()}
            if self.order:
                features[("gram", *context, label)] = 1.0
            for key, value in features.items():
                counts[key] = counts.get(key, 0.0) + value
        return counts

    def score(self, x, heads, labels):
        return sum(value * self.weights.get(key, 0.0) for key, value in self.phi(x, heads, labels).items())

    def best(self, x, heads, known):
        choices = [LABELS if label is None else [label] for label in known]
        return max(itertools.product(*choices), key=lambda labels: self.score(x, heads, labels))

    def step(self, x, heads, labels, eta):
        self.steps += 1
        predicted = self.best(x, heads, [None] * len(x))
        mistakes = sum(a is not None and a != b for a, b in zip(labels, predicted, strict=True))
        if mistakes:
            target = self.best(x, heads, labels)
            delta = self.phi(x, heads, target)
            for key, value in self.phi(x, heads, predicted).items():
                delta[key] = delta.get(key, 0.0) - value
            margin = mistakes if self.update == "arow" else mistakes**0.5
            cost = (
                self.score(x, heads, predicted)
                - self.score(x, heads, target)
                + (margin if self.rescale else 1)
            )
            square = sum(value**2 * self.variances.get(key, 1.0) for key, value in delta.items())
            amount = {
                "perceptron": 1.0,
                "passive-aggressive": min(self.C, cost / square),
                "passive-aggressive-2": cost / (square + 0.5 / self.C),
                "arow": cost / (square + 1 / self.C),
            }[self.update]
            for key, value in delta.items():
                variance = self.variances.get(key, 1.0)
                self.weights[key] = self.weights.get(key, 0.0) + eta * amount * variance * value
                if self.update == "arow":
                    self.variances[key] = 1 / (1 / variance + eta * self.C * value**2)
        for key, value in self.weights.items():
            self.total[key] = self.total.get(key, 0.0) + value


def random_case(seed, trees, unknown=True):
    rng = np.random.default_rng(seed)
    X, heads, y = [], [], []
    for _ in range(4):
        size = int(rng.integers(1, 5))
        x = [{f"f{k}": float(rng.normal()) for k in rng.integers(5, size=3)} for _ in range(size)]
        heads.append(
            [-1, *(int(rng.integers(-1, t)) for t in range(1, size))] if trees else list(range(-1, size - 1))
        )
        X.append(Tree(x, heads[-1]) if trees else Sequence(x))
        y.append([str(label) for label in rng.choice(LABELS, size=size)])
    y[0] = LABELS[: len(y[0])] + ["A"] * (len(y[0]) - 3)
    if unknown:
        y[1][0] = None
    return X, heads, y, rng.uniform(0.5, 2.0, size=4)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(("order", "trees"), [(0, False), (1, False), (1, True), (2, False), (2, True)])
@pytest.mark.parametrize("rescale", [True, False])
def test_by_the_book(update, order, trees, rescale):
    for seed in range(4):
        X, heads, y, eta = random_case(seed, trees)
        C, average = (0.3, True) if seed % 2 else (5.0, False)
        model = HMPerceptron(
            order=order,
            window=0,
            update=update,
            C=C,
            rescale=rescale,
            average=average,
            epochs=3,
            shuffle=False,
        )
        fitted = model.fit([*X, Sequence([{}] * 3) if not trees else Tree([{}] * 3, [-1, 0, 1])],
                          [*y, LABELS], sample_weight=[*eta, 0.0])  # fmt: skip
        plain = Plain(order, update, C, rescale)
        for _ in range(len(fitted.mistakes_)):
            for case in zip(X, heads, y, eta, strict=True):
                plain.step(list(case[0]), *case[1:])
        expected = (
            {key: value / plain.steps for key, value in plain.total.items()} if average else plain.weights
        )
        names = fitted.encoder_.feature_names(0)
        for (row, name), (column, label) in itertools.product(enumerate(names), enumerate(LABELS)):
            truth = expected.get(("feature", name, label), 0.0)
            assert fitted.weights_[row, column] == pytest.approx(truth, abs=1e-10)
        if order == 1:
            for (a, before), (b, label) in itertools.product(enumerate(LABELS), repeat=2):
                truth = expected.get(("gram", before, label), 0.0)
                assert fitted.transitions_[a, b] == pytest.approx(truth, abs=1e-10)


@pytest.mark.parametrize("update", UPDATES)
def test_learning_goes_on_from_files_and_pieces(tmp_path, update):
    X, _, y, _ = random_case(1, False, unknown=False)
    every = [[{f"f{k}": 0.0 for k in range(5)}] * 3]  # all features and labels, without effect
    parameters = {"window": 0, "update": update, "shuffle": False, "average": False, "epochs": 1, "order": 2}
    reference = HMPerceptron(**parameters).fit([*every, *X], [LABELS, *y])
    path = tmp_path / "model.fuda"
    HMPerceptron(**parameters).fit([*every, *X[:2]], [LABELS, *y[:2]]).save(path)
    parts = fuda.load(path).partial_fit(X[2:], y[2:])
    np.testing.assert_allclose(parts.weights_, reference.weights_, atol=1e-12)
    new = fuda.load(path).partial_fit([[{"new": 1.0}]], [["C"]])
    assert len(new.weights_) == len(reference.weights_) + 1
    assert new.predict([[{"new": 1.0}]])[0] == ["C"]


def test_a_passive_aggressive_step_gives_the_margin():
    X, y = [[{"a": 1.0}, {"b": 2.0}]], [["B", "A"]]
    model = HMPerceptron(window=0, update="passive-aggressive", C=1e6, average=False, epochs=1).fit(X, y)
    (_, best), (_, second), *_ = model.predict_nbest(X, 4)[0]
    assert model.predict(X)[0] == y[0]
    assert best - second > 0


def test_what_other_updates_cannot_do_is_refused(tmp_path):
    X, y = [["a", "b"]], [["A", "B"]]
    for parameters in ({"kernel": Linear()}, {"average": "voted"}):
        with pytest.raises(DataError, match="update='arow' needs kernel=None and average=True or False"):
            HMPerceptron(update="arow", **parameters).fit(X, y)
    with pytest.raises(DataError, match="update='pa': choose one of perceptron, passive-aggressive"):
        HMPerceptron(update="pa").fit(X, y)
    with pytest.raises(DataError, match="C=0"):
        HMPerceptron(C=0).fit(X, y)
