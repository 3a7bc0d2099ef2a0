"""Model files of hidden Markov perceptrons, and arrays that do not fit together."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import fuda
from fuda import DataError, Tree
from fuda.kernels import RBF, Delta, Polynomial
from fuda.models.hm_perceptron import HMPerceptron
from model_cases import X, Y


@pytest.mark.parametrize("kernel", [None, Polynomial(2), RBF(0.1), Delta()])
@pytest.mark.parametrize("average", [True, False, "voted"])
def test_files(tmp_path, kernel, average):
    model = HMPerceptron(kernel=kernel, average=average, epochs=2, random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    again = fuda.load(tmp_path / "model")
    again.save(tmp_path / "again")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "again").read_bytes()
    assert again.mistakes_ == model.mistakes_
    more = [["Lima", "sings", "in", "Ana"]], [["B", "O", "O", "B"]]
    for _ in range(2):
        for a, b in zip(
            model.predict_nbest(X + more[0], 2), again.predict_nbest(X + more[0], 2), strict=True
        ):
            assert a == b
        model.partial_fit(*more)
        again.partial_fit(*more)


def test_files_of_trees_and_higher_orders(tmp_path):
    trees = [Tree(x, [-1, *[0] * (len(x) - 1)]) for x in X]
    for kernel in (None, Polynomial(3)):
        model = HMPerceptron(kernel=kernel, order=2, random_state=0).fit(trees, Y)
        model.save(tmp_path / "model")
        assert fuda.load(tmp_path / "model").predict(trees).tolist() == model.predict(trees).tolist()
    before = (tmp_path / "model").read_bytes()
    model.set_params(order=1).save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before


@pytest.mark.parametrize("kernel", [None, RBF(0.1)])
def test_files_whose_arrays_do_not_fit(kernel):
    model = HMPerceptron(kernel=kernel, average="voted", epochs=2, random_state=0).fit(X, Y)
    arrays, texts = model._arrays(), model._texts()
    cases = [(name, array[None]) for name, array in arrays.items()]
    cases += [(name, array.astype(np.uint8)) for name, array in arrays.items()]
    cases += [(name, array[:-1]) for name, array in arrays.items() if len(array) and name != "mistakes"]
    whole = ("support_offsets", "support_types", "change_structures", "change_steps", "change_targets")
    cases += [(name, arrays[name] - 1000) for name in whole] + [
        (name, arrays[name] + 1000) for name in whole[:3]
    ]
    cases += [("change_predicted", arrays["change_predicted"] + 3), ("nodes", arrays["nodes"] + np.inf)]
    for name, bad in cases:
        with pytest.raises(DataError):
            clone_of(model)._restore(arrays | {name: bad}, texts, {})
    for name in arrays:
        with pytest.raises(DataError):
            clone_of(model)._restore({k: v for k, v in arrays.items() if k != name}, texts, {})
    with pytest.raises(DataError):
        clone_of(model)._restore(arrays, [], {})
    assert clone_of(model)._restore(arrays, texts, {}) is None


def clone_of(model):
    """A model of the same parameters, ready for `_restore`."""
    fresh = clone(model)
    fresh.classes_, fresh.shape_, fresh.encoder_ = model.classes_, model.shape_, model.encoder_
    return fresh
