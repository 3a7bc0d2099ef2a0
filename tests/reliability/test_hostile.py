"""Sealed model files with changes: each is refused, or its model answers like any other."""

from __future__ import annotations

import warnings
from random import Random

import pytest

from fuda import registry
from reliability import hostile
from reliability.hostile import all_cases
from reliability.mutations import mutated, put_together, take_apart


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """The content of a file of every case."""
    path, parts = tmp_path_factory.mktemp("hostile") / "model.fuda", {}
    for name, case in all_cases().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case.fitted().save(path)
        parts[name] = take_apart(path.read_bytes())
    return parts


def test_every_model_has_a_case(contents):
    assert {name.split("-")[0] for name in contents} == set(registry.MODELS)


def test_a_file_put_together_again_is_the_same_model(contents, tmp_path):
    case, path = all_cases()["HMM"], tmp_path / "model.fuda"
    path.write_bytes(put_together(contents["HMM"]))
    expected = hostile.answers(hostile.fuda.load(path), case.questions)
    assert hostile.outcome(path, case.questions, expected, 0) == ("same", "")


@pytest.mark.parametrize("name", all_cases())
@pytest.mark.filterwarnings("ignore")  # numbers that overflow on the way to a refusal
def test_changed_files(name, contents, tmp_path):
    path, questions = tmp_path / "model.fuda", all_cases()[name].questions
    for number in range(8):
        data, changes = mutated(Random(f"test/{name}/{number}"), contents[name], list(contents.values()))
        path.write_bytes(data)
        word, why = hostile.outcome(path, questions, None, 0)  # no alarm: the first may compile
        assert not word.startswith("broken"), (changes, word, why)
