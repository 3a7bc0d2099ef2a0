"""c where `mixing` is None: by held-out scores."""

import numpy as np
import pytest

from fuda import MarginalizedPerceptron, MarginalizedSVM, Tree
from fuda.metrics import token_accuracy
from fuda.models.machines.held_out import PARTS_OF_LARGEST

LABELS = 12


def trees(seed, count, nodes=10):
    """Trees in which a word determines its label, while its mark and surroundings mean nothing."""
    random = np.random.RandomState(seed)
    X, y = [], []
    for _ in range(count):
        words = [f"{'XY'[random.randint(2)]}{random.randint(3 * LABELS)}" for _ in range(nodes)]
        X.append(Tree(words, [-1, *(random.randint(t) for t in range(1, nodes))]))
        y.append([f"label {int(word[1:]) % LABELS}" for word in words])
    return X, y


def word_and_mark(token):
    return [f"word={token[1:]}", f"mark={token[0]}"]


def fitted(mixing=None, count=40):
    X, y = trees(0, count)
    settings = {"features": word_and_mark, "epochs": 4, "orders": 1, "calibrate": False}
    return MarginalizedPerceptron(mixing=mixing, **settings).fit(X, y)


def test_c_is_smaller_where_long_matches_drown_everything():
    new, gold = trees(1, 40)
    chosen, largest = fitted(), fitted(mixing=LABELS**0.5)
    assert chosen.mixing_ < largest.mixing_
    assert token_accuracy(gold, chosen.predict(new)) > token_accuracy(gold, largest.predict(new)) + 0.02


def test_with_few_structures_c_is_the_largest():
    assert fitted(count=19).mixing_ == pytest.approx((LABELS / 1.5) ** 0.5)  # k(x,x) is 1.5


def test_nothing_is_tried_where_c_is_a_factor_of_all_scores(monkeypatch):
    X, y = [[f"w{k % 7}"] for k in range(30)], [[f"label {k % 3}"] for k in range(30)]
    monkeypatch.setattr("fuda.models.machines.held_out._quality", None)
    model = MarginalizedPerceptron(features="word", epochs=2, calibrate=False).fit(X, y)
    assert model.mixing_ == pytest.approx(3**0.5)


def test_the_choice_leaves_no_trace():
    model = fitted()
    again = fitted(mixing=model.mixing_)
    X, _ = trees(1, 5)
    assert [s.tolist() for s in model.decision_scores(X)] == [s.tolist() for s in again.decision_scores(X)]
    assert (model.mistakes_, model.n_iter_, model.orders_) == (again.mistakes_, again.n_iter_, again.orders_)


def test_the_svm_chooses_too():
    X, y = trees(0, 24, nodes=4)
    model = MarginalizedSVM(features="word", calibrate=False, epochs=20).fit(X, y)
    assert any(model.mixing_ == pytest.approx(part * (LABELS / 3) ** 0.5) for part in PARTS_OF_LARGEST)
    assert model.parts_ in ("lines", "paths", "subtrees")
