"""The penalty of the label O: fewer nodes are left outside, and probabilities stay as they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuda
from fuda.errors import DataError
from model_cases import X, Y, make

_fitted = {}


def fitted(name):
    if name not in _fitted:
        _fitted[name] = make(name).fit(X, Y)
    return _fitted[name]


@pytest.mark.parametrize("name", ["CRF", "MEMM", "HMSVM", "HMPerceptron"])
@settings(max_examples=20)
@given(
    st.lists(st.sampled_from(["Ana", "Lima", "in", "sings", "new"]), min_size=1, max_size=4), st.floats(-5, 5)
)
def test_predictions_are_best_with_the_penalty_of_every_outside_label(name, words, penalty):
    model = fitted(name).set_params(outside_penalty=0.0)
    labelings = model.predict_nbest([words], 3 ** len(words))[0]
    model.set_params(outside_penalty=penalty)
    assert model.predict_nbest([words], 3 ** len(words))[0] == labelings
    values = {
        tuple(labels): value - model._scale * penalty * labels.count("O") for labels, value in labelings
    }
    assert len(values) == 3 ** len(words)
    assert values[tuple(model.predict([words])[0])] == pytest.approx(max(values.values()), abs=1e-9)


def test_higher_orders_follow_too():
    model = make("HMPerceptron", order=2).fit(X, Y).set_params(outside_penalty=100.0)
    assert "O" not in {label for labels in model.predict(X) for label in labels}


@pytest.mark.parametrize("name", ["CRF", "MEMM"])
def test_posterior_decoding_follows_and_probabilities_do_not(name):
    model = make(name, decode="posterior").fit(X, Y)
    before = np.concatenate(model.predict_marginals(X))
    model.set_params(outside_penalty=100.0)
    assert "O" not in {label for labels in model.predict(X) for label in labels}
    assert np.array_equal(np.concatenate(model.predict_marginals(X)), before)


def test_without_a_label_o_it_changes_nothing():
    names = {"B": "b", "I": "i", "O": "o"}
    model = make("CRF").fit(X, [[names[label] for label in labels] for labels in Y])
    before = model.predict(X).tolist()
    assert model.set_params(outside_penalty=100.0).predict(X).tolist() == before


def test_it_acts_at_once_and_is_saved(tmp_path):
    model = make("CRF").fit(X, Y).set_params(outside_penalty=100.0)
    model.save(tmp_path / "model.fuda")
    read = fuda.load(tmp_path / "model.fuda")
    assert read.outside_penalty == 100.0
    assert read.predict(X).tolist() == model.predict(X).tolist()
    assert "O" not in read.predict(X)[0]


@pytest.mark.parametrize("value", [None, "1", float("nan"), float("inf"), 1e300])
def test_other_values_are_errors(value):
    with pytest.raises(DataError, match=r"outside_penalty=.*give what is subtracted"):
        make("CRF", outside_penalty=value).fit(X, Y)
