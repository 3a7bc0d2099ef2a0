"""Vectors of other lengths than in the fit are refused, alone and within dicts of features."""

import numpy as np
import pytest

import fuda
from fuda import CRF, HMM, DataError
from fuda.kernels import RBF
from fuda.registry import MODELS
from model_cases import X, Y, make
from model_file_cases import altered, refused

WITH_KERNELS = ("HMPerceptron", "HMSVM", "MarginalizedPerceptron", "MarginalizedSVM")
SETTINGS = [(name, {}) for name in MODELS] + [(name, {"kernel": RBF(0.1)}) for name in WITH_KERNELS]


def vectors(length):
    return [[np.cos(np.arange(length) + len(word)) ** 2 for word in words] for words in X]


def dicts(length, name="vector"):
    pairs = [zip(words, of, strict=True) for words, of in zip(X, vectors(length), strict=True)]
    return [[{"word": word, name: vector} for word, vector in nodes] for nodes in pairs]


@pytest.mark.parametrize(("name", "parameters"), SETTINGS)
def test_other_lengths_in_dicts_are_refused_by_every_model_also_from_its_file(name, parameters, tmp_path):
    model = make(name, **parameters).fit(dicts(3), Y)
    model.save(tmp_path / "model")
    for fitted in (model, fuda.load(tmp_path / "model")):
        assert len(fitted.predict(dicts(3))) == len(X)
        for length in (2, 4):
            message = f"structure 1, node 0: the vector 'vector' has length {length}, .*of length 3"
            with pytest.raises(DataError, match=message):
                fitted.predict([[{"word": "no vector"}], *dicts(length)])
            if hasattr(fitted, "partial_fit"):
                with pytest.raises(DataError, match=message):
                    fitted.partial_fit([[{"word": "no vector"}], *dicts(length)], [["O"], *Y])


@pytest.mark.parametrize("name", ["CRF", "HMSVM", "MarginalizedPerceptron"])
def test_other_lengths_of_plain_vectors_are_refused(name):
    model = make(name).fit(vectors(3), Y)
    for length in (2, 4):
        with pytest.raises(DataError, match=f"node 0 is a vector of {length} .*vector of 3 numbers"):
            model.predict(vectors(length))


def test_more_data_may_bring_vectors_that_are_held_to_their_length_too(tmp_path):
    model = CRF().fit(dicts(3), Y).partial_fit(dicts(2, name="other"), Y)
    model.save(tmp_path / "model")
    for fitted in (model, fuda.load(tmp_path / "model")):
        for name, length in (("vector", 2), ("other", 3)):
            with pytest.raises(DataError, match=f"the vector '{name}' has length {length}"):
                fitted.predict(dicts(length, name))


def test_lengths_of_a_validation_set_are_those_of_the_training_set():
    with pytest.raises(DataError, match="the vector 'vector' has length 2"):
        CRF().fit(dicts(3), Y, X_val=dicts(2), y_val=Y)


@pytest.mark.parametrize("lengths", [[], 3, None, {"v": 0}, {"v": -1}, {"v": 1.5}, {"v": True}, {"v": [3]}])
def test_lengths_of_a_file_that_are_none(lengths, tmp_path):
    HMM().fit(dicts(3), Y).save(tmp_path / "model")

    def change(meta, arrays):
        meta["observations"]["vectors"] = lengths

    refused(altered(tmp_path / "model", tmp_path / "other", change), "lengths of its vectors")


def test_lengths_without_dicts_are_refused_and_files_without_lengths_load(tmp_path):
    HMM().fit(X, Y).save(tmp_path / "model")

    def add(meta, arrays):
        meta["observations"]["vectors"] = {"v": 3}

    refused(altered(tmp_path / "model", tmp_path / "other", add), "'text' and have no vectors")
    HMM().fit(dicts(3), Y).save(tmp_path / "model")

    def remove(meta, arrays):  # as files were before
        del meta["observations"]["vectors"]

    assert len(fuda.load(altered(tmp_path / "model", tmp_path / "other", remove)).predict(dicts(3))) == len(X)
