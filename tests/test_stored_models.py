"""Model files of earlier versions keep loading, and say what they said when they were written.

A file is added for every version of a class's state; none is ever replaced. This is how they were made::

    fitted("HMM").save("tests/fixtures/hmm-1.fuda")
"""

from __future__ import annotations

from pathlib import Path

import pytest

import fuda

FIXTURES = Path(__file__).parent / "fixtures"
X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Bo", "and", "Ana", "sing"]]
Y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"], ["PER", "O", "PER", "O"]]
TREES = [fuda.Tree(words, [-1, *range(len(words) - 1)]) for words in X]
MODELS = {"hmm-1.fuda": (fuda.HMM, X), "crf-1.fuda": (fuda.CRF, X), "crf-tree-1.fuda": (fuda.CRF, TREES)}


@pytest.mark.parametrize("name", MODELS)
def test_stored_models_load_and_label_as_they_did(name):
    cls, structures = MODELS[name]
    model = fuda.load(FIXTURES / name)
    assert type(model) is cls
    assert [list(labels) for labels in model.predict(structures)] == Y
    for old, new in zip(
        model.predict_marginals(structures),
        cls().fit(structures, Y).predict_marginals(structures),
        strict=True,
    ):
        assert old == pytest.approx(new, abs=1e-3)


def test_every_class_and_version_has_a_stored_file():
    from fuda.model_file import REGISTRY

    stored = {tuple(name.removesuffix(".fuda").rsplit("-", 1)) for name in MODELS}
    assert {
        (name.lower(), str(v)) for name, (_, top) in REGISTRY.items() for v in range(1, top + 1)
    } <= stored
