"""A prediction sees one state of a model, whatever another thread makes of it meanwhile."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from fuda import CRF, HMM, HMSVM, MEMM, HMPerceptron, MarginalizedPerceptron, Reranker, SemiCRF
from fuda.kernels import RBF
from fuda.models.base import Labeler

X = [["a", "b", "c"], ["b", "c"], ["a"], ["c", "a", "b", "a"]]
Y = [["A", "B", "A"], ["B", "A"], ["A"], ["A", "A", "B", "B"]]
MODELS = [
    *(HMM(), CRF(), MEMM(), SemiCRF(), HMSVM(), HMPerceptron(), HMPerceptron(kernel=RBF(0.5))),
    *(MarginalizedPerceptron(orders=1), Reranker(base=HMM(), folds=2)),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("new", MODELS, ids=str)
def test_a_model_that_is_fitted_while_it_predicts(new, monkeypatch):
    model = clone(new).fit(X, Y)
    names = [name for name in ("predict", "predict_marginals", "explain") if hasattr(model, name)]
    expected = {name: asked(model, name) for name in names}
    for name in names:
        model.fit(X, Y)
        with monkeypatch.context() as patch:

            def meanwhile(self, corpus, encode=Labeler._encode_corpus, patch=patch):
                patch.undo()
                model.fit([["x", "y"], ["z"]] * 2, [["C", "D"], ["E"]] * 2)
                return encode(self, corpus)

            patch.setattr(Labeler, "_encode_corpus", meanwhile)
            assert asked(model, name) == expected[name]
        assert list(model.classes_) == ["C", "D", "E"]


def asked(model, name):
    """What a method says, to compare."""
    if name == "explain":
        return repr(model.explain(X[0], 0))
    return [np.asarray(one).tolist() for one in getattr(model, name)(X)]
