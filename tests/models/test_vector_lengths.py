"""Vectors of other lengths than in the fit are refused, alone and within dicts of features."""

import numpy as np
import pytest

import fuda
from fuda import CRF, HMM, Auto, DataError, ModelFileError
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


def numbers(word):
    """A feature function whose vectors are as long as the word, up to four numbers."""
    return {"word": word, "of": {"letters": np.array([ord(letter) / 128 for letter in word[:4]])}}


@pytest.mark.parametrize("name", MODELS)
def test_vectors_that_a_function_returns_have_one_length(name, tmp_path):
    where = "structure 1, node 1, by the feature function: the vector 'of:letters' has length 2, but"
    x, y = [["Lima", "Peru"], ["Lima", "is"]], [["A", "B"], ["A", "B"]]
    if name == "Auto":
        model = Auto(candidates={"crf": CRF(features=numbers)})
    else:
        model = make(name, features=numbers)
    if name != "Reranker":  # whose folds would be too few
        with pytest.raises(DataError, match=f"{where} nodes before have vectors of length 4; return"):
            model.fit(x, y)
    good = [[f"{word}...." for word in words] for words in X]
    model.fit(good, Y)
    model.save(tmp_path / "model")
    for fitted in (model, fuda.load(tmp_path / "model", features=numbers)):
        assert len(fitted.predict(good)) == len(X)
        with pytest.raises(DataError, match=f"{where} the model was fitted on vectors of length 4"):
            fitted.predict(x)
        if hasattr(fitted, "partial_fit") and name != "Auto":
            with pytest.raises(DataError, match="has length 2, but nodes before have vectors of length 4"):
                fitted.partial_fit(x, y)
            assert len(fitted.predict(good)) == len(X)


@pytest.mark.parametrize(
    "model",
    [
        make("Reranker", base=CRF(features=numbers)),
        make("MarginalizedPerceptron", prior=HMM(features=numbers)),
    ],
)
def test_a_file_whose_inner_model_has_a_function_is_loaded_with_it(model, tmp_path):
    good = [[f"{word}...." for word in words] for words in X]
    model.fit(good, Y).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="pass it again"):
        fuda.load(tmp_path / "model")
    loaded = fuda.load(tmp_path / "model", features=numbers)
    assert loaded.predict(good).tolist() == model.predict(good).tolist()
    with pytest.raises(DataError, match="the model was fitted on vectors of length 4"):
        loaded.predict([["is"]])


def test_what_is_no_vector_at_all_is_refused():
    for value in (np.array(3.0), np.ones((2, 2)), [1.0, "a"], []):
        with pytest.raises(DataError, match="structure 0, node 0, by the feature function"):
            HMM(features=lambda word, value=value: {"v": value, "w": None}).fit(X, Y)


def test_lengths_of_a_file_without_a_function_are_refused(tmp_path):
    HMM().fit(X, Y).save(tmp_path / "model")

    def add(meta, arrays):
        meta["made_vectors"] = {"v": 3}

    refused(altered(tmp_path / "model", tmp_path / "other", add), "by which there are no vectors")


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
