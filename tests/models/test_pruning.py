"""`prune`: faster predictions, as far as held-out data are labelled as well as before."""

from __future__ import annotations

import numpy as np
import pytest

import fuda
from fuda import DataError, MarginalizedPerceptron
from fuda.marginalized import codes, problem
from fuda.models import pruning
from fuda.selection.goals import goal_for
from usage_cases import usage


@pytest.fixture(scope="module")
def data():
    trees, y = usage()
    X = [[observation[0] for observation in x] for x in trees]
    return (X[:60], y[:60]), (X[60:120], y[60:120])


@pytest.fixture
def model(data):
    return MarginalizedPerceptron(features="spelling", mixing=3.0, epochs=3, orders=2, calibrate=False).fit(
        *data[0]
    )


def quality(true, predicted):
    goal = goal_for(true)
    return goal.score(goal.counts(true, predicted))


def test_coefficients_are_removed_as_far_as_quality_allows(data, model):
    held_out, count = data[1], len(model.support_)
    alpha = {v for p in model.support_ for v in map(abs, p.alpha.values())}
    before = quality(held_out[1], model.predict(held_out[0]))
    assert model.prune(*held_out, loss=0.0) == count - len(model.support_)
    assert quality(held_out[1], model.predict(held_out[0])) >= before
    assert model.margin_ is None  # types are few, so that all scores are exact
    removed = model.prune(*held_out, loss=1.0)
    assert removed > 0
    least = pruning.SHARES[0] * max(alpha)
    assert all(abs(v) >= least for p in model.support_ for v in p.alpha.values())


def test_margins_are_chosen_by_quality_and_stored(monkeypatch, tmp_path, data, model):
    monkeypatch.setattr(codes, "_SMALL", 0)
    monkeypatch.setattr(problem, "_OFTEN", 20)
    held_out = data[1]
    exact = model.predict(held_out[0])
    before = quality(held_out[1], exact)
    scores = model.decision_scores(held_out[0])
    monkeypatch.setattr(pruning, "SHARES", ())
    assert model.prune(*held_out, loss=0.005) == 0
    assert model.margin_ in pruning.MARGINS
    predicted = model.predict(held_out[0])
    assert quality(held_out[1], predicted) >= before - 0.005
    for a, b in zip(model.decision_scores(held_out[0]), scores, strict=True):
        np.testing.assert_array_equal(a, b)
    model.save(tmp_path / "m.fuda")
    again = fuda.load(tmp_path / "m.fuda")
    assert again.margin_ == model.margin_
    assert again.predict(held_out[0]).tolist() == predicted.tolist()
    model.margin_ = 0.0  # clear cases alone, which is worse
    assert model.predict(held_out[0]).tolist() != exact.tolist()
    model.fit(*data[0])
    assert model.margin_ is None


def test_bad_arguments_are_named(data, model):
    with pytest.raises(DataError, match="loss=2: give the loss of quality that is allowed, from 0 to 1"):
        model.prune(*data[1], loss=2)
    with pytest.raises(DataError, match=r"prune\(X, y\)"):
        model.prune(0.01)  # a threshold, which earlier versions took
    with pytest.raises(DataError, match="X is empty: give structures"):
        model.prune([], [])
    with pytest.raises(DataError, match="was never seen in training"):
        model.prune([["a"]], [["nothing"]])


def test_a_file_with_a_bad_margin_is_refused(tmp_path, model):
    model.margin_ = 7.0
    model.save(tmp_path / "m.fuda")
    with pytest.raises(fuda.ModelFileError, match=r"its margin is 7\.0, not from 0 to 2"):
        fuda.load(tmp_path / "m.fuda")
