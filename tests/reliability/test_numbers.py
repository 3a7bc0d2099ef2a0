"""Extreme numbers: nothing that is not finite reaches a user, and what is saved is loaded."""

from __future__ import annotations

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

SIZES = [0.0, 5e-324, 1e-310, 1e-200, 1e-100, 1e-12, 0.5, 1.0, 3.0, 1e6, 1e12, 1e13, 1e100, 1e200, 1.7e308]
sizes = st.sampled_from(SIZES)
kernels = st.one_of(
    st.builds(Polynomial, st.integers(1, 20), sizes, sizes.filter(bool)),
    st.builds(RBF, sizes.filter(bool)),
    st.builds(lambda value: Linear() + Constant(value), sizes),
    st.builds(lambda degree: Polynomial(degree).normalized(), st.integers(1, 20)),
)
NUMBERS = {
    "HMM": {"smoothing": sizes},
    "MEMM": {"l2": sizes, "tol": sizes},
    "CRF": {"l2": sizes, "l1": sizes, "order": sizes, "loss": st.sampled_from(["sequential", "pointwise", "markov"])},
    "HMPerceptron": {"kernel": st.none() | kernels, "average": st.sampled_from([True, False, "voted"])},
    "HMSVM": {"C": sizes, "kernel": st.none() | kernels, "slack": st.sampled_from(["l1", "l2"]), "tol": sizes},
    "MarginalizedPerceptron": {"mixing": st.none() | sizes, "gap": sizes, "kernel": st.none() | kernels},
    "MarginalizedSVM": {"C": sizes, "mixing": st.none() | sizes, "gap": sizes, "kernel": st.none() | kernels},
    "Reranker": {"mixing": st.none() | sizes, "base_weight": sizes, "kernel": st.none() | kernels},
}  # fmt: skip
FEW = {"max_iter": 5, "epochs": 2, "orders": 1, "n": 3, "folds": 2, "n_jobs": 1, "random_state": 0}


def structures(kind: str, size: float, shape: str) -> list:
    """The sentences, with observations of a kind whose numbers are about that size."""
    of_word = {
        "text": lambda word: word,
        "vector": lambda word: np.array([len(word) * size, -size if word[0].isupper() else 1.0, 1.0]),
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
    X = structures(
        draw(st.sampled_from(["text", "vector", "dict"])), draw(sizes), draw(st.sampled_from(["sequence", "tree"]))
    )
    weights = {}
    if draw(st.booleans()):
        weights["sample_weight"] = [draw(sizes) for _ in X]
    if name not in ("Reranker",) and draw(st.booleans()):
        weights["position_weight"] = [[draw(sizes) for _ in x] for x in X]
    return cls(**few | chosen), X, weights


@pytest.mark.parametrize("name", registry.MODELS)
@settings(max_examples=60)
@given(st.data())
def test_answers_are_finite_and_what_is_saved_is_loaded(name, tmp_path_factory, data):
    model, X, weights = data.draw(trainings(name))
    path = Path(tmp_path_factory.getbasetemp()) / f"{name}.fuda"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model.fit(X, LABELS, **weights)
        except DataError as error:
            assert "\n" not in str(error)
            return
    found = answers(model, X)
    assert 0.0 <= model.score(X, LABELS) <= 1.0
    model.save(path)
    assert repr(answers(fuda.load(path), X)) == repr(found)
