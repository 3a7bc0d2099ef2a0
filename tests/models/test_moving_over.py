"""Help for users of other programs: hints, the window of dicts, weights by name."""

from __future__ import annotations

import pytest

import fuda
from fuda import CRF, HMM, HMSVM, MEMM, DataError, HMPerceptron
from fuda.models.explained.named_weights import feature_names

X = [[{"w": "Ana", "-1:w": "<s>"}, {"w": "sings", "-1:w": "Ana"}], [{"w": "Lima", "-1:w": "<s>"}]]
Y = [["PER", "O"], ["LOC"]]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("c1", "l1 is"),
        ("c2", "l2 is"),
        ("algorithm", "solver="),
        ("max_iterations", "max_iter"),
        ("delta", "tol"),
    ],
)
def test_parameters_of_crfsuite_are_named(name, hint):
    with pytest.raises(
        TypeError, match=f"CRF has no parameter '{name}': .*{hint}.*fuda.compat.sklearn_crfsuite"
    ):
        CRF(**{name: 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'c3'"):
        CRF(c3=1)


@pytest.mark.parametrize("model", [CRF, MEMM, HMPerceptron, HMSVM])
def test_dicts_have_no_window_by_default(model, tmp_path):
    fitted = model().fit(X, Y)
    assert fitted.encoder_.channel_names() == ["0"]
    assert fitted.get_params()["window"] is None
    assert model(window=1).fit(X, Y).encoder_.channel_names() == ["-1", "0", "+1"]
    assert "-1" in model().fit([["Ana", "sings"], ["Lima"]], Y).encoder_.channel_names()
    fitted.save(tmp_path / "model.fuda")
    loaded = fuda.load(tmp_path / "model.fuda")
    assert loaded.window is None
    assert loaded.encoder_.channel_names() == ["0"]
    assert loaded.predict(X).tolist() == fitted.predict(X).tolist()
    loaded.save(tmp_path / "again.fuda")
    assert (tmp_path / "again.fuda").read_bytes() == (tmp_path / "model.fuda").read_bytes()


def test_a_hmm_needs_no_hint():
    with pytest.raises(TypeError, match="HMM has no parameter 'c2'"):
        HMM(c2=1.0)


@pytest.mark.parametrize(("alias", "scheme"), [("BIO", "IOB2"), ("bioes", "IOBES"), ("BILUO", "BILOU")])
def test_schemes_have_other_names(alias, scheme):
    words, labels = [["Ana", "Lopez", "sings"]], [["B-PER", "I-PER", "O"]]
    if scheme != "IOB2":
        labels = [["B-PER", "E-PER" if scheme == "IOBES" else "L-PER", "O"]]
    assert CRF(scheme=alias).fit(words, labels).predict(words).tolist() == labels
    assert fuda.schemes.scheme_name(alias) == scheme


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (["Ana", "sings"], ["PER", "O"]),
        (X[0], Y[0]),
        ([("Ana", "N"), ("sings", "V")], ["PER", "O"]),
    ],
)
def test_one_sentence_is_to_be_wrapped(x, y):
    with pytest.raises(DataError, match=r"wrap (it in a list|them in lists): \[X\]"):
        CRF().fit(x, y)


@pytest.mark.parametrize("model", [CRF(), CRF(pair_features=True), MEMM(), HMPerceptron()])
def test_weights_by_name(model):
    model.fit(X, Y)
    names, labels = feature_names(model.encoder_), list(model.classes_)
    for (name, label), weight in model.state_features_.items():
        assert weight == model.weights_.ravel()[names.index(name) * len(labels) + labels.index(label)] != 0
    assert ("[0] w=Lima", "LOC") in model.state_features_
    for (before, label), weight in model.transition_features_.items():
        assert weight == model.transitions_[labels.index(before), labels.index(label)] != 0
    assert model.transition_features_["PER", "O"] > 0


def test_weights_by_name_need_a_fit():
    with pytest.raises(AttributeError, match="not fitted"):
        _ = CRF().state_features_
