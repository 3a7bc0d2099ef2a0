"""Structures of one node with equal scores share a place, which changes no score."""

import numpy as np
import pytest
from sklearn.base import clone

import fuda
from fuda.marginalized.engines.cpu import layout

WORDS = [f"w{i % 7}" for i in range(60)]
LABELS = [[f"L{i * i % 5 % 3}"] for i in range(60)]
LONGER, OF_LONGER = [["w1", "w2", "w1"], ["w8", "w3"]], [["L0", "L1", "L2"], ["L1", "L0"]]
SINGLE = [[word] for word in WORDS]
CASES = {
    "same prior": (fuda.MarginalizedPerceptron(orders=2, epochs=2), SINGLE, LABELS),
    "priors": (fuda.MarginalizedPerceptron(prior=fuda.HMM(), orders=2, epochs=2), SINGLE, LABELS),
    "chain": (
        fuda.MarginalizedPerceptron(prior=fuda.HMM(), prior_form="chain", orders=1, epochs=2),
        SINGLE + LONGER,
        LABELS + OF_LONGER,
    ),
    "longer": (fuda.MarginalizedPerceptron(orders=1, epochs=2), LONGER + SINGLE, OF_LONGER + LABELS),
    "gap": (
        fuda.MarginalizedPerceptron(gap=0.5, orders=1, epochs=2),
        SINGLE + LONGER,
        LABELS + OF_LONGER,
    ),
    "trees": (
        fuda.MarginalizedPerceptron(orders=1, epochs=2),
        [fuda.Tree(words, range(-1, len(words) - 1)) for words in SINGLE + LONGER],
        LABELS + OF_LONGER,
    ),
    "margins": (fuda.MarginalizedSVM(epochs=5, calibrate=False), SINGLE, LABELS),
}


def fit_and_predict(model, X, y):
    fitted = clone(model).fit(X, y)
    return [repr(fitted.support_), *(scores.tobytes() for scores in fitted.decision_scores(X))]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_places_of_their_own(case, monkeypatch):
    sizes = []

    def noted(side, order, alike=layout._alike):
        shared = alike(side, order)
        sizes.append(len(order) if shared is None else len(np.unique(shared)))
        return shared

    monkeypatch.setattr(layout, "_alike", noted)
    shared = fit_and_predict(*CASES[case])
    assert min(sizes) < 30
    monkeypatch.setattr(layout, "_alike", lambda side, order: None)
    assert fit_and_predict(*CASES[case]) == shared
