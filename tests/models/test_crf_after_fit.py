"""What holds of a fitted CRF: its objective, its shape, and parameters changed afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from fuda import CRF, DataError, Tree

X = [["Ana", "Paz", "sings"], ["in", "Lima"], ["Bo", "and", "Ana", "Paz", "eat"], ["x"]]
Y = [["B-PER", "I-PER", "O"], ["O", "B-LOC"], ["B-PER", "O", "B-PER", "I-PER", "O"], ["O"]]


def test_weighted_objective_is_where_training_ended():
    weights = [2.0, *[0.5] * (len(X) - 1)]
    model = CRF(features="word", loss="markov", order=2).fit(
        X, Y, sample_weight=weights, position_weight=[[3.0] * len(x) for x in X]
    )
    value = model.objective(X, Y, sample_weight=weights, position_weight=[[3.0] * len(x) for x in X])
    assert value == pytest.approx(model.result_.value, rel=1e-9)


def test_scheme_on_trees_is_refused():
    trees = [Tree(x, [-1, *[0] * (len(x) - 1)]) for x in X]
    model = CRF(features="word").fit(trees, Y).set_params(scheme="IOB2")
    with pytest.raises(DataError, match="structure 0 is a tree; set scheme=None"):
        model.predict(trees)


def test_changed_pair_features_do_not_change_a_fitted_model(tmp_path):
    model = CRF(features="word", pair_features=True).fit(X, Y)
    before = model.predict(X).tolist()
    model.set_params(pair_features=False)
    assert model.predict(X).tolist() == before


def test_on_a_chain_sequence_and_tree_agree_with_the_default_features():
    trees = [Tree(x, range(-1, len(x) - 1)) for x in X]
    for loss in ("sequential", "pointwise"):
        chains = CRF(loss=loss, tol=1e-9).fit(X, Y).predict_marginals(X)
        for a, b in zip(chains, CRF(loss=loss, tol=1e-9).fit(trees, Y).predict_marginals(trees), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-4)
