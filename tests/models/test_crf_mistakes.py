"""What the CRF says of parameters and data that it cannot use."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from fuda import CRF, Dag, DataError, Sequence, Tree

X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
Y = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "O", "O"]]
TREES = [Tree(x, [-1, *np.arange(len(x) - 1) // 2]) for x in X]

BAD = [
    ({"loss": "hinge"}, "loss='hinge': choose sequential, pointwise or markov"),
    ({"order": -1}, "order=-1: give a number from 0 to 1e"),
    ({"l2": float("nan")}, "l2=nan: give a number from 0 to 1e"),
    ({"l1": float("inf")}, "l1=inf: give a number"),
    ({"l2": "1"}, "l2='1': give a number"),
    ({"l2": True}, "l2=True: give a number"),
    ({"l2": None}, "l2=None: give a number"),
    ({"tol": -1e-3}, "tol=-0.001: give a number"),
    ({"solver": "adam"}, "solver='adam': choose lbfgs, cg, sgd"),
    ({"max_iter": 0}, "max_iter=0: give a whole number of at least 1"),
    ({"max_iter": 1.5}, "max_iter=1.5: give a whole number"),
    ({"n_jobs": 0}, "n_jobs=0: give the number of threads"),
    ({"n_jobs": "2"}, "n_jobs='2': give the number of threads"),
    ({"decode": "best"}, "decode='best': choose viterbi or posterior"),
    ({"scheme": "IOB9"}, "IOB9"),
    ({"l1": 1.0, "solver": "cg"}, r"l1=1.0 with solver='cg': an L1 term needs solver='lbfgs'"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD)
def test_bad_parameters(parameters, message):
    with pytest.raises(DataError, match=message):
        CRF(**parameters).fit(X, Y)


def test_bad_data():
    model = CRF().fit(X, Y)
    with pytest.raises(DataError, match="structure 1, node 0: the label 'B-ORG' was never seen in training"):
        model.objective(X, [Y[0], ["B-ORG", "O", "O"]])
    with pytest.raises(DataError, match="X is empty; give at least one structure"):
        model.objective([], [])
    with pytest.raises(DataError, match="there is nothing to learn from: X is empty"):
        CRF().fit([], [])
    with pytest.raises(DataError, match="no node has a label: every label in y is None"):
        CRF().fit(X, [[None] * len(x) for x in X])
    with pytest.raises(DataError, match="structure 0, node 1: feature 'f' has the value nan"):
        CRF().fit([[{"f": 1.0}, {"f": float("nan")}]], [["A", "B"]])
    with pytest.raises(DataError, match="structure 0, node 0: entry 1 of its vector is nan"):
        CRF().fit([[np.array([1.0, np.nan])]], [["A"]])
    with pytest.raises(
        DataError, match="a dag, but CRF labels sequences and trees only; models that take dags"
    ):
        CRF().fit([Dag(["a", "b", "c"], [(0, 2), (1, 2)])], [["A", "B", "A"]])
    with pytest.raises(DataError, match="structure 0 is a tree, but this CRF was fitted on sequences"):
        model.predict(TREES)
    with pytest.raises(DataError, match="structure 0, node 1: the label 'B-ORG' was never seen"):
        model.predict(X[:1], known=[[None, "B-ORG", None, None]])
    with pytest.raises(NotFittedError):
        CRF().predict(X)
    with pytest.raises(NotFittedError):
        CRF().objective(X, Y)
    assert model.predict([Sequence(X[0])]).tolist() == Y[:1]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"l2": 1e308}, "l2=1e+308: give a number from 0 to 1e"),
        ({"pair_features": "no"}, "pair_features='no': give True or False"),
        ({"warm_start": 1}, "warm_start=1: give True or False"),
        ({"verbose": "x"}, "verbose='x': give True or False"),
        ({"solver": "sgd", "random_state": "x"}, "random_state='x': give a whole number"),
        ({"random_state": -1}, "random_state=-1: give a whole number"),
        ({"checkpoint": 5}, "checkpoint=5: give the path of a file"),
    ],
)
def test_parameters_of_the_wrong_kind(parameters, words):
    with pytest.raises(DataError, match=re.escape(words)):
        CRF(**parameters).fit([["a", "b"]], [["A", "B"]])


def test_feature_values_too_large_to_compute_with():
    with pytest.raises(DataError, match=r"value of size 1e\+20; scale features"):
        CRF().fit([[{"f": 1e20}, {"f": 1.0}]], [["A", "B"]])


def test_an_interrupt_before_the_first_iteration_leaves_no_model(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("fuda.optimize.lbfgs.wolfe", interrupted)
    model = CRF()
    with pytest.raises(KeyboardInterrupt):
        model.fit([["a", "b"]], [["A", "B"]])
    assert not hasattr(model, "classes_")
