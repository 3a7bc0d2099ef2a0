"""Model files of earlier versions keep loading, and predict what they predicted then.

A file is added for every version of a class's state; none is ever replaced. This is how they were
made::

    model, structures = MODELS["hmm-1.fuda"]
    clone(model).fit(structures, Y).save("tests/fixtures/hmm-1.fuda")
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.base import clone

import fuda
from fuda import registry
from fuda.kernels import RBF, Delta, Polynomial

FIXTURES = Path(__file__).parents[1] / "fixtures"
X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Bo", "and", "Ana", "sing"]]
Y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"], ["PER", "O", "PER", "O"]]
TREES = [fuda.Tree(words, [-1, *range(len(words) - 1)]) for words in X]
DAGS = [fuda.Dag(words, [(i, i + 1) for i in range(len(words) - 1)]) for words in X]
# Files of versions whose probabilities were those of the scores as they are.
WITHOUT_SCALE = ("hmsvm-1.fuda", "hmsvm-push-1.fuda")
MODELS = {
    "hmm-1.fuda": (fuda.HMM(), X),
    "crf-1.fuda": (fuda.CRF(), X),
    "crf-2.fuda": (fuda.CRF(l1=0.02, l2=0.02), X),
    "crf-3.fuda": (fuda.CRF(l2=0.1), X),
    "crf-tree-1.fuda": (fuda.CRF(), TREES),
    "memm-1.fuda": (fuda.MEMM(l2=0.01), X),
    "semicrf-1.fuda": (fuda.SemiCRF(l2=0.1), X),
    "hmperceptron-1.fuda": (fuda.HMPerceptron(), X),
    "hmperceptron-2.fuda": (fuda.HMPerceptron(), X),
    "hmperceptron-dual-1.fuda": (fuda.HMPerceptron(kernel=Polynomial(2) + Delta()), TREES),
    "hmsvm-1.fuda": (fuda.HMSVM(Polynomial(2), tol=1e-6), X),
    "hmsvm-2.fuda": (fuda.HMSVM(tol=1e-6), X),
    "hmsvm-push-1.fuda": (fuda.HMSVM(kernel=RBF(0.1), C=100.0, tol=1e-6), TREES),
    "reranker-1.fuda": (fuda.Reranker(base=fuda.CRF(l2=0.1), n=3, folds=3), X),
    "reranker-2.fuda": (fuda.Reranker(base=fuda.CRF(l2=0.1), n=3, folds=3, cache_bytes=1 << 20), X),
    "marginalizedperceptron-1.fuda": (fuda.MarginalizedPerceptron(features="spelling", orders=3), X),
    "marginalizedperceptron-prior-1.fuda": (
        fuda.MarginalizedPerceptron(features="spelling", prior=fuda.HMM(), orders=3),
        TREES,
    ),
    "marginalizedperceptron-2.fuda": (
        fuda.MarginalizedPerceptron(features="spelling", prior=fuda.CRF(l2=0.1), orders=3),
        X,
    ),
    # No margin would be chosen by so few words: they were set by hand.
    "marginalizedperceptron-pruned-2.fuda": (fuda.MarginalizedPerceptron(features="spelling", orders=3), X),
    "marginalizedperceptron-3.fuda": (fuda.MarginalizedPerceptron(features="spelling", orders=3), X),
    "marginalizedsvm-3.fuda": (fuda.MarginalizedSVM(features="spelling", C=100.0), X),
    "marginalizedsvm-2.fuda": (fuda.MarginalizedSVM(features="spelling", C=100.0, prior=fuda.CRF(l2=0.1)), X),
    "marginalizedsvm-1.fuda": (fuda.MarginalizedSVM(features="spelling", C=100.0), DAGS),
    "auto-1.fuda": (fuda.Auto(candidates={"crf": fuda.CRF(), "hmm": fuda.HMM()}), X),
    # Three structures are too few to choose by: its two members were put together by hand.
    "auto-2.fuda": (fuda.Auto(candidates={"crf": fuda.CRF(l2=0.1), "svm": fuda.HMSVM()}), X),
}


@pytest.mark.parametrize("name", MODELS)
def test_stored_models_load_and_label_as_they_did(name):
    model, structures = MODELS[name]
    stored = fuda.load(FIXTURES / name)
    assert type(stored) is type(model)
    assert [list(labels) for labels in stored.predict(structures)] == Y
    if not hasattr(model, "predict_marginals"):
        return
    again = clone(model).fit(structures, Y)
    if name in WITHOUT_SCALE:
        again._scale = 1.0
    both = stored.predict_marginals(structures), again.predict_marginals(structures)
    for old, new in zip(*both, strict=True):
        assert old == pytest.approx(new, abs=1e-3)


def test_all_of_them_label_without_scikit_learn():
    """As in `fuda tag`; with the estimators of a process that only applies models."""
    code = f"""
import sys, fuda
from fuda.runtime import light_estimators
light_estimators.in_use = True
def chain(shape, words):
    if shape == "tree":
        return fuda.Tree(words, [-1, *range(len(words) - 1)])
    if shape == "dag":
        return fuda.Dag(words, [(i, i + 1) for i in range(len(words) - 1)])
    return fuda.Sequence(words)
for name in {list(MODELS)}:
    model = fuda.load("{FIXTURES}/" + name)
    X = [chain(model.shape_, words) for words in {X}]
    assert [list(labels) for labels in model.predict(X)] == {Y}, name
    if hasattr(model, "predict_marginals"):
        assert [len(table) for table in model.predict_marginals(X)] == [4, 3, 4]
assert "sklearn" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_class_and_version_has_a_stored_file():
    parts = [name.removesuffix(".fuda").split("-") for name in MODELS]
    stored = {(part[0], part[-1]) for part in parts}
    assert {
        (name.lower(), str(v)) for name, model in registry.MODELS.items() for v in range(1, model.version + 1)
    } <= stored
