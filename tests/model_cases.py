"""Small data, every model on them, and what a fitted model says and stores."""

from __future__ import annotations

from fuda import CRF, HMM
from fuda.data.corpus import Corpus
from fuda.data.labels import number_labels
from fuda.data.structures import as_structures
from fuda.registry import MODELS, model_class

X = [["Ana", "Paz", "sings"], ["in", "Lima"], ["Bo", "and", "Ana", "eat"], ["x"], ["Paz", "in", "Lima"]]
Y = [["B", "I", "O"], ["O", "B"], ["B", "O", "B", "O"], ["O"], ["B", "O", "B"]]
SMALL = {
    "CRF": {"features": "word"},
    "HMM": {},
    "MEMM": {"features": "word"},
    "SemiCRF": {"features": "word"},
    "HMPerceptron": {"epochs": 4},
    "HMSVM": {"features": "word", "tol": 1e-6},
    "MarginalizedPerceptron": {"epochs": 3},
    "MarginalizedSVM": {"epochs": 50},
    "Reranker": {"base": CRF(features="word"), "n": 4, "folds": 2, "base_weight": 0.01},
    "Auto": {"candidates": {"crf": CRF(features="word"), "hmm": HMM()}},
}
ITERATIVE = [name for name in MODELS if name not in ("HMM", "Auto")]


def make(name, **parameters):
    return model_class(name)(**SMALL[name] | parameters)


def training_data(X, y):
    """Structures and labels as `fit` hands them to a model, here a CRF of words."""
    corpus = Corpus(as_structures(X))
    return CRF(features="word")._training_data(corpus, *number_labels(y, corpus))


def behaviour(model):
    """All that a fitted model says of data."""
    answers = {"predict": model.predict(X).tolist(), "score": model.score(X, Y)}
    for method in ("predict_marginals", "decision_scores"):
        if hasattr(model, method):
            answers[method] = [part.tolist() for part in getattr(model, method)(X)]
    if hasattr(model, "predict_nbest"):
        answers["predict_nbest"] = model.predict_nbest(X, 3).tolist()
    if hasattr(model, "objective"):
        answers["objective"] = model.objective(X, Y)
    if hasattr(model, "oracle_report"):
        answers["oracle_report"] = repr(model.oracle_report(X, Y))
    return answers


def saved(model, path):
    model.save(path / "saved.fuda")
    return (path / "saved.fuda").read_bytes()
