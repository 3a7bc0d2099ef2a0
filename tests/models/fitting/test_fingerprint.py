"""Data and parameters are distinguished, the same way in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from fuda import (
    CRF,
    HMM,
    HMSVM,
    DataError,
    HMPerceptron,
    MarginalizedPerceptron,
    MarginalizedSVM,
    Sequence,
    Tree,
)
from fuda.features.templates import Template
from fuda.kernels import RBF, Delta
from fuda.models.fitting import fingerprint

X, Y = [Sequence(["x", "y"]), Sequence(["x", "y"])], [["a", "b"], ["a", "b"]]


@pytest.fixture
def identity(monkeypatch):
    """What identifies a fit."""

    class Enough(Exception):
        pass

    def of(model, X=X, Y=Y, **weights):
        def keep(path, fingerprint):
            fingerprints.append(json.dumps(fingerprint()))
            raise Enough

        fingerprints = []
        monkeypatch.setattr("fuda.models.base.checkpointed", keep)
        with pytest.raises(Enough):
            model.fit(X, Y, **weights)
        return fingerprints[0]

    return of


def test_data(identity):
    mixed = [Sequence(["x", "y"]), Sequence(["y", "x"])]
    identities = [
        identity(CRF("markov")),
        identity(CRF("markov"), mixed),
        identity(CRF("markov"), [Sequence(["x", "y", "x"]), Sequence(["y"])], [["a", "b", "a"], ["b"]]),
        identity(CRF("markov"), [Tree(["x", "y", "x", "y"], [-1, 0, 0, 0])], [["a", "b", "a", "b"]]),
        identity(CRF("markov"), [Tree(["x", "y", "x", "y"], [-1, 0, 1, 1])], [["a", "b", "a", "b"]]),
        identity(CRF("markov"), Y=[["a", "b"], ["a", None]]),
        identity(CRF("markov"), Y=[["a", "b"], ["a", "c"]]),
        identity(CRF("markov"), sample_weight=[1.0, 2.0]),
        identity(CRF("markov"), position_weight=[[1.0, 2.0], [1.0, 1.0]]),
        identity(CRF("markov"), [Sequence([{"x": 1.0}, {"y": 1.0}]), Sequence([{"x": 1.0}, {"y": 2.0}])]),
        identity(HMSVM(kernel=Delta(), features=constant)),
        identity(HMSVM(kernel=Delta(), features=constant), [Sequence(["x", "z"]), Sequence(["x", "z"])]),
    ]
    assert len(set(identities)) == len(identities)
    assert identity(CRF("markov")) == identities[0]


def constant(word):
    return ["same"]


def other(word):
    return ["same"]


MODELS = [
    CRF(),
    CRF(l2=2.0),
    CRF(solver="cg"),
    CRF(features=Template("U:%x[1,0]\nB")),
    CRF(features=Template("U:%x[0,0]\nB")),
    CRF(features=constant),
    CRF(features=other),
    HMPerceptron(),
    HMPerceptron(random_state=np.random.RandomState(1)),
    HMPerceptron(random_state=np.random.RandomState(2)),
    HMPerceptron(kernel=RBF(0.1)),
    HMPerceptron(kernel=RBF(0.2)),
    HMPerceptron(kernel=RBF(0.2) + Delta()),
    HMPerceptron(epochs=3),
    MarginalizedPerceptron(),
    MarginalizedPerceptron(decode="viterbi"),
    MarginalizedPerceptron(prior=HMM()),
    MarginalizedPerceptron(prior=HMM(smoothing=1.0)),
    MarginalizedPerceptron(prior=HMM().fit(X, Y)),
    MarginalizedPerceptron(prior=HMM().fit(X, [["a", "b"], ["b", "a"]])),
    MarginalizedPerceptron(prior=[np.full((2, 2), 0.5)] * 2),
    MarginalizedPerceptron(prior=[np.array([[0.4, 0.6], [0.5, 0.5]])] * 2),
    MarginalizedSVM(),
]


def test_parameters(identity):
    identities = [identity(model) for model in MODELS]
    assert len(set(identities)) == len(identities)
    assert [identity(model) for model in MODELS] == identities


def test_what_no_result_depends_on(identity):
    model = CRF(tol=1e-3, max_iter=7, n_jobs=1, verbose=True, decode="posterior", checkpoint="x")
    assert identity(model) == identity(CRF())
    model = HMPerceptron(random_state=np.random.RandomState(1))
    assert identity(model) == identity(HMPerceptron(random_state=np.random.RandomState(1)))


def test_other_processes_agree(identity):
    """Whatever the seed of hashes and the addresses of functions."""
    script = "import sys; sys.path.insert(0, sys.argv[1]); import test_fingerprint as t; t.show()"
    shown = {
        subprocess.run(
            [sys.executable, "-c", script, os.path.dirname(__file__)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert shown == {"".join(f"{fingerprint.parameters(model)}\n" for model in MODELS).encode()}


def show():
    for model in MODELS:
        print(fingerprint.parameters(model))


def test_a_generator_whose_state_cannot_be_stored(tmp_path):
    strange = np.random.RandomState(np.random.PCG64(3))
    model = HMPerceptron(shuffle=True, random_state=strange, checkpoint=tmp_path / "state")
    with pytest.raises(DataError, match="its state cannot be stored; give RandomState"):
        model.fit(X, Y)
