"""Extreme numbers: nothing that is not finite reaches a user, and what is saved is loaded."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import fuda
from fuda import DataError, registry
from fuda.kernels import RBF, Constant, Linear, Polynomial
from reliability.cases import LABELS, WORDS
from reliability.hostile import answers

ALLOWED = [0.0, 1e-100, 1e-50, 1e-12, 0.5, 1.0, 3.0, 1e3, 1e6, 1e12]
sizes = st.sampled_from(ALLOWED * 5 + [5e-324, 1e-310, 1e-200, 1e13, 1e100, 1e200, 1.7e308])
kernels = st.one_of(
    st.builds(Polynomial, st.integers(1, 20), sizes, sizes.filter(bool)),
    st.builds(RBF, sizes.filter(bool)),
    st.builds(lambda value: Linear() + Constant(value), sizes),
    st.builds(lambda degree: Polynomial(degree).normalized(), st.integers(1, 20)),
)
NUMBERS = {
    "HMM": {"smoothing": sizes},
    "MEMM": {"l2": sizes, "tol": sizes},
    "SemiCRF": {"l2": sizes, "tol": sizes},
    "CRF": {"l2": sizes, "l1": sizes, "order": sizes, "loss": st.sampled_from(["pointwise", "markov"])},
    "HMPerceptron": {"kernel": st.none() | kernels, "average": st.sampled_from([True, False, "voted"])},
    "HMSVM": {"C": sizes, "kernel": st.none() | kernels, "slack": st.sampled_from(["l1", "l2"])},
    "MarginalizedPerceptron": {"mixing": st.none() | sizes, "gap": sizes, "kernel": st.none() | kernels},
    "MarginalizedSVM": {"C": sizes, "mixing": st.none() | sizes, "gap": sizes, "kernel": st.none() | kernels},
    "Auto": {"budget": sizes, "combine": st.booleans()},
    "Reranker": {"mixing": st.none() | sizes, "base_weight": sizes, "kernel": st.none() | kernels},
}  # fmt: skip
FEW = {"max_iter": 5, "epochs": 2, "orders": 1, "n": 3, "folds": 2, "n_jobs": 1, "random_state": 0}


def structures(kind: str, size: float, shape: str) -> list:
    """The sentences, with observations of a kind whose numbers are about that size."""
    of_word = {
        "text": lambda word: word,
        "vector": lambda word: np.array([len(word) * size, 0.0 - size * word[0].isupper(), 1.0]),
        "dict": lambda word: {"word": word, "size": size * len(word)},
    }[kind]
    nodes = [[of_word(word) for word in words] for words in WORDS]
    return nodes if shape == "sequence" else [fuda.Tree(x, [-1, *[0] * (len(x) - 1)]) for x in nodes]


@st.composite
def trainings(draw, name: str):
    """A model with extreme parameters, and data with extreme numbers and weights."""
    chosen = {key: draw(values) for key, values in NUMBERS[name].items() if draw(st.booleans())}
    cls = getattr(fuda, name)
    few = {key: value for key, value in FEW.items() if key in cls._get_param_names()}
    kind, shape = (
        draw(st.sampled_from(["text", "vector", "dict"])),
        draw(st.sampled_from(["sequence", "tree"])),
    )
    weights = {}
    if draw(st.booleans()):
        weights["sample_weight"] = [draw(sizes) for _ in WORDS]
    if name not in ("Reranker", "HMPerceptron") and draw(st.booleans()):
        weights["position_weight"] = [[draw(sizes) for _ in words] for words in WORDS]
    if name == "Auto":
        few["candidates"] = {"crf": fuda.CRF(max_iter=5), "hmm": fuda.HMM()}
    if name == "Reranker":
        few["base"] = fuda.CRF(max_iter=5, n_jobs=1)
    return cls(**few | chosen), (kind, draw(sizes), shape), weights


@pytest.mark.parametrize("name", registry.MODELS)
@settings(max_examples=15)
@given(st.data())
def test_answers_are_finite_and_what_is_saved_is_loaded(name, tmp_path_factory, data):
    model, shape_of_data, weights = data.draw(trainings(name))
    X, path = structures(*shape_of_data), Path(tmp_path_factory.getbasetemp()) / f"{name}.fuda"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model.fit(X, LABELS, **weights)
        except DataError:
            return
    expected = answers(model, X)
    assert 0.0 <= model.score(X, LABELS) <= 1.0
    model.save(path)
    assert repr(answers(fuda.load(path), X)) == repr(expected)
    kind, _, shape = shape_of_data
    with contextlib.suppress(DataError):  # other numbers may be refused
        answers(model, structures(kind, data.draw(sizes), shape))


@pytest.mark.parametrize("weight", [-1.0, np.inf, np.nan, 1e-101, 1.1e12])
def test_weights_that_lose_all_digits_are_refused(weight):
    with pytest.raises(DataError, match="weights are finite and not negative: 0, or from 1e-100"):
        fuda.HMM().fit(WORDS, LABELS, sample_weight=[1.0, weight, 0.0])
    with pytest.raises(DataError, match="structure 1: position_weight of node 2 is"):
        fuda.HMM().fit(WORDS, LABELS, position_weight=[[1.0] * 4, [0.0, 1e12, weight], [1e-100] * 4])


@pytest.mark.parametrize(
    "kernel", [RBF(1e13), RBF(1e-101), Constant(1e13), Polynomial(2, 1e-101), Polynomial(2, 0, 1e13)]
)
def test_kernels_of_extreme_parameters_are_refused(kernel):
    with pytest.raises(DataError, match=r"give a number .*at most 1e"):
        fuda.HMSVM(kernel=kernel).fit(WORDS, LABELS)


def test_new_observations_of_extreme_size_are_refused():
    model = fuda.HMM().fit(structures("dict", 1.0, "sequence"), LABELS)
    with pytest.raises(DataError, match=r"a feature has a value of size 5e\+13"):
        model.predict(structures("dict", 1e13, "sequence"))


def test_a_model_of_numbers_that_no_file_may_hold_is_not_saved(tmp_path):
    model = fuda.HMM().fit(WORDS, LABELS)
    model.start_[0] = -1e101
    with pytest.raises(DataError, match="cannot be written: the array 'start' has numbers beyond"):
        model.save(tmp_path / "m.fuda")
    assert not list(tmp_path.iterdir())
