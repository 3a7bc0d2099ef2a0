"""Small data, and a training of every kind, that the campaigns of kills and interrupts stop."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda import (
    CRF,
    HMM,
    HMSVM,
    MEMM,
    Auto,
    HMPerceptron,
    MarginalizedPerceptron,
    MarginalizedSVM,
    Reranker,
    SemiCRF,
    Tree,
)
from fuda.kernels import RBF, Linear

WORDS = ["Ana", "lives", "in", "Lima", "and", "Bo", "left", "New", "York", "now"]


def sentences(count: int, seed: int = 0) -> tuple[list[Any], list[list[str]]]:
    """Sentences of known words, with labels that follow from them but for some noise."""
    random = np.random.default_rng(seed)
    X = [[str(word) for word in random.choice(WORDS, size=random.integers(2, 8))] for _ in range(count)]
    Y = [["AB"[word[0].isupper()] if random.random() < 0.8 else "C" for word in x] for x in X]
    return X, Y


def trees(count: int, seed: int = 0) -> tuple[list[Any], list[list[str]]]:
    """The same as trees in which a node has up to two children."""
    X, Y = sentences(count, seed)
    return [Tree(x, [-1, *np.arange(len(x) - 1) // 2]) for x in X], Y


def vectors(count: int, seed: int = 0) -> tuple[list[Any], list[list[str]]]:
    """Sequences of vectors, whose kernel values are rounded differently in different matrices."""
    random = np.random.default_rng(seed)
    X = [list(random.normal(size=(random.integers(2, 8), 37))) for _ in range(count)]
    return X, [["ABC"[int(abs(2 * v[0])) % 3] for v in x] for x in X]


_WORD: dict[str, Any] = {"features": "word"}
_SHORT: dict[str, Any] = {**_WORD, "epochs": 4}
LEARNERS: dict[str, Any] = {
    "crf": CRF(**_WORD, tol=1e-7),
    "crf, l1": CRF(**_WORD, tol=1e-7, l1=0.2),
    "crf, cg": CRF("markov", **_WORD, solver="cg", max_iter=30),
    "crf, sgd": CRF(**_WORD, solver="sgd", max_iter=20),
    "hmm": HMM(),
    "memm": MEMM(**_WORD, tol=1e-7),
    "semi-crf": SemiCRF(**_WORD, tol=1e-7),
    "hm-perceptron": HMPerceptron(**_WORD, shuffle=True, random_state=3),
    "hm-perceptron, voted": HMPerceptron(**_WORD, average="voted", order=2),
    "hm-perceptron, arow": HMPerceptron(**_WORD, update="arow"),
    "hm-perceptron, explicit": HMPerceptron(kernel=Linear(), **_WORD, shuffle=True),
    "hm-perceptron, pushed": HMPerceptron(kernel=RBF(0.1), **_WORD, average="voted"),
    "hm-svm": HMSVM(kernel=Linear(), **_WORD, C=0.3),
    "hm-svm, pushed": HMSVM(kernel=RBF(0.2), **_WORD, rescale=True, slack="l2"),
    "marginalized": MarginalizedPerceptron(**_SHORT, orders=3),
    "marginalized, prior": MarginalizedPerceptron(
        **_SHORT, orders=2, decode="viterbi", prior=CRF(**_WORD, max_iter=8), prior_form="chain"
    ),
    "marginalized, gap": MarginalizedPerceptron(**_SHORT, orders=2, gap=0.3, calibrate=False),
    "marginalized-svm": MarginalizedSVM(**_WORD, epochs=8, C=1.0),
    "marginalized-svm, prior": MarginalizedSVM(**_WORD, epochs=3, calibrate=False, prior=HMM()),
    "reranker": Reranker(CRF(**_WORD, max_iter=8), **_WORD, folds=3, n=4),
    "reranker, svm": Reranker(HMSVM(kernel=Linear(), **_WORD, C=0.3), **_WORD, folds=2, n=3, random_state=1),
    "auto": Auto(candidates={"crf": CRF(**_WORD, max_iter=20), "hmm": HMM()}, n_jobs=1),
    "trees": MarginalizedPerceptron(**_SHORT, orders=2),
    "vectors": HMSVM(kernel=RBF(0.05), C=3.0, max_iter=12),
}

# Those that can be stopped and go on: the others have no iterations, or go by the clock.
RESUMABLE = [name for name, model in LEARNERS.items() if "checkpoint" in model.get_params()]


def data_for(name: str, count: int, seed: int = 0) -> tuple[list[Any], list[list[str]]]:
    """Data that a learner takes."""
    if name == "vectors":
        return vectors(count, seed)
    return trees(count, seed) if name == "trees" else sentences(count, seed)
