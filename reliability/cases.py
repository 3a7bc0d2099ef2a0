"""Small data and learners that the campaigns share: every class, shape and kind of observation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

import fuda
from fuda.kernels import RBF, Delta, Linear, Polynomial, Precomputed
from fuda.models.choice.combination import Combination, Decoder

WORDS = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Bo", "and", "Ana", "sing"]]
LABELS = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"], ["PER", "O", "PER", "O"]]
CHUNKS = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "O", "O"], ["B-PER", "I-PER", "O", "O"]]
NEW = ["Ana", "and", "Mexico", "", "in", "sing", "Zoë"]  # some words that no model has seen

TEMPLATE = fuda.Template('U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nU2:%t[0,0,"^\\u"]\nB1:%x[0,0]\nB', "words")
NO_PAIRS = fuda.Template("U0:%x[0,0]\nU1:%x[-1,0]/%x[1,0]\nB", "words")


VECTORS = fuda.Vectors(
    ["Ana", "Bo", "Lima", "in", "sing"],
    [[1.0, 0.5], [1.0, 0.4], [-1.0, 0.0], [0.0, -1.0], [0.1, -0.9]],
    ["0010", "0011", "01", "10", "11"],
    base="word",
)


class Case(NamedTuple):
    """A model to fit, its training data, structures to label with it, and what follows."""

    model: Any
    structures: list[Any]
    labels: list[Any]
    questions: list[Any]
    then: Callable[[Case, Any], Any] = lambda case, model: model

    def fitted(self) -> Any:
        """A fitted model."""
        return self.then(self, clone(self.model).fit(self.structures, self.labels))


def trees(sentences: list[list[Any]]) -> list[fuda.Tree]:
    """A tree over each sentence: the first node is the root, and others hang two by two."""
    return [fuda.Tree(words, [(i - 1) // 2 if i else -1 for i in range(len(words))]) for words in sentences]


def dags(sentences: list[list[Any]]) -> list[fuda.Dag]:
    """A graph over each sentence: every node has the two nodes before it as parents."""
    return [
        fuda.Dag(words, [(j, i) for i in range(len(words)) for j in range(max(0, i - 2), i)])
        for words in sentences
    ]


def _vector(word: str) -> np.ndarray:
    return np.array([float(len(word)), float(word[:1].isupper()), 1.0])


def _features(word: str) -> dict[str, Any]:
    return {"word": word, "length": float(len(word)), "capital": word[:1].isupper(), "of": _vector(word)}


def _number(word: str) -> int:
    return sum(map(ord, word)) % 7


def _case(model: Any, of_word: Any = None, shape: Any = None, labels: list[Any] = LABELS) -> Case:
    """A case over the words, each converted by `of_word`, in structures of a shape."""
    sentences = [*WORDS, NEW, [NEW[2]]]
    if of_word is not None:
        sentences = [[of_word(word) for word in words] for words in sentences]
    structures = sentences if shape is None else shape(sentences)
    return Case(model, structures[: len(WORDS)], labels, structures)


def cases() -> dict[str, Case]:
    """All cases by name; a name begins with the class of its model."""
    return _label_pair_cases() | _marginalized_cases()


def _label_pair_cases() -> dict[str, Case]:
    """Models that score pairs of labels or segments, and those that combine them."""
    gram = Precomputed(np.eye(7) + 0.1)
    short_hm = {"epochs": 3, "random_state": 0}
    return {
        "HMM": _case(fuda.HMM(window=1)),
        "HMM-tree": _case(fuda.HMM(), shape=trees),
        "HMM-template": _case(fuda.HMM(features=NO_PAIRS)),
        "HMM-dict": _case(fuda.HMM(smoothing=1e-3), _features),
        "CRF": _case(fuda.CRF()),
        "CRF-scheme": _case(fuda.CRF(scheme="IOB2", pair_features=True), labels=CHUNKS),
        "CRF-tree": _case(fuda.CRF(decode="posterior"), shape=trees),
        "CRF-template": _case(fuda.CRF(features=TEMPLATE)),
        "CRF-vector": _case(fuda.CRF(), _vector),
        "CRF-dict": _case(fuda.CRF(), _features),
        "CRF-few": _case(fuda.CRF(l1=0.02, l2=0.02)),
        "CRF-classes": _case(fuda.CRF(features=VECTORS)),
        "MEMM": _case(fuda.MEMM(l2=0.01)),
        "MEMM-tree": _case(fuda.MEMM(l2=0.01), shape=trees),
        "MEMM-columns": _case(fuda.MEMM(l2=0.01), lambda word: (word, word[:1])),
        "SemiCRF": _case(fuda.SemiCRF()),
        "SemiCRF-scheme": _case(fuda.SemiCRF(l2=0.1), labels=CHUNKS),
        "SemiCRF-vector": _case(fuda.SemiCRF(max_length=1), _vector),
        "HMPerceptron": _case(fuda.HMPerceptron(**short_hm)),
        "HMPerceptron-order-2": _case(fuda.HMPerceptron(order=2, **short_hm), shape=trees),
        "HMPerceptron-dual": _case(
            fuda.HMPerceptron(kernel=Polynomial(2) + Delta(), **short_hm), shape=trees
        ),
        "HMPerceptron-voted": _case(fuda.HMPerceptron(average="voted", **short_hm)),
        "HMPerceptron-voted-dual": _case(fuda.HMPerceptron(kernel=RBF(0.1), average="voted", **short_hm)),
        "HMSVM": _case(fuda.HMSVM()),
        "HMSVM-push": _case(fuda.HMSVM(kernel=RBF(0.1), C=100.0), shape=trees),
        "HMSVM-vector": _case(fuda.HMSVM(kernel=Linear()), _vector),
        "HMSVM-ids": _case(fuda.HMSVM(kernel=gram, window=0), _number),
        "Reranker": _case(fuda.Reranker(base=fuda.CRF(l2=0.1), n=3, folds=3)),
        "Reranker-tree": _case(fuda.Reranker(base=fuda.HMM(), n=3, folds=3), shape=trees),
        "Auto": _case(fuda.Auto(candidates={"hmm": fuda.HMM(), "crf": fuda.CRF()})),
        "Auto-scheme": _case(fuda.Auto(candidates={"crf": fuda.CRF(l2=0.1)}), labels=CHUNKS),
    }


def _marginalized_cases() -> dict[str, Case]:
    """Models with the marginalized kernel."""
    chain: dict[str, Any] = {"prior": fuda.HMM(), "prior_form": "chain", "orders": 1}
    scheme: dict[str, Any] = {"decode": "viterbi", "scheme": "IOB2"}
    return {
        "MarginalizedPerceptron": _case(fuda.MarginalizedPerceptron(orders=2)),
        "MarginalizedPerceptron-scheme": _case(
            fuda.MarginalizedPerceptron(orders=2, **scheme), labels=CHUNKS
        ),
        "MarginalizedPerceptron-prior": _case(
            fuda.MarginalizedPerceptron(prior=fuda.HMM(), orders=2), shape=trees
        ),
        "MarginalizedPerceptron-chain": _case(fuda.MarginalizedPerceptron(**chain)),
        "MarginalizedPerceptron-gap": _case(fuda.MarginalizedPerceptron(gap=0.5, orders=1)),
        "MarginalizedPerceptron-dag": _case(fuda.MarginalizedPerceptron(orders=1), shape=dags),
        "MarginalizedPerceptron-joint": _case(fuda.MarginalizedPerceptron(prior=fuda.CRF(l2=0.1), orders=1)),
        "MarginalizedPerceptron-paths": _case(
            fuda.MarginalizedPerceptron(parts="sided-paths", orders=1), shape=trees
        ),
        "MarginalizedPerceptron-lines": _case(
            fuda.MarginalizedPerceptron(parts="lines", orders=1), shape=trees
        ),
        "MarginalizedPerceptron-dag-paths": _case(
            fuda.MarginalizedPerceptron(parts="paths", orders=1), shape=dags
        ),
        "MarginalizedPerceptron-classes": _case(fuda.MarginalizedPerceptron(features=VECTORS, orders=1)),
        "MarginalizedSVM": _case(fuda.MarginalizedSVM(C=100.0)),
        "MarginalizedSVM-tree": _case(fuda.MarginalizedSVM(C=100.0), shape=trees),
        "MarginalizedSVM-dag": _case(fuda.MarginalizedSVM(C=100.0), shape=dags),
        "MarginalizedSVM-kernel": _case(fuda.MarginalizedSVM(C=10.0, kernel=RBF(0.5)), _vector),
    }


def further_states() -> dict[str, Case]:
    """Models with what only further steps after `fit` bring about, by name."""
    every = cases()
    taught = {
        f"{name}-taught": every[name]._replace(then=_taught)
        for name in ("CRF", "CRF-few", "HMPerceptron", "HMSVM", "MarginalizedPerceptron", "MarginalizedSVM")
        if hasattr(every[name].model, "partial_fit")
    }
    pruned = {
        f"{name}-pruned": every[name]._replace(then=_pruned)
        for name in ("MarginalizedPerceptron", "MarginalizedSVM", "MarginalizedPerceptron-paths")
    }
    return taught | pruned | {"Auto-combination": every["Auto"]._replace(then=_combined)}


def _taught(case: Case, model: Any) -> Any:
    """The model after more data, with a new label."""
    more = case.structures[::-1]
    return model.partial_fit(more, [["new", *labels[1:]] for labels in case.labels[::-1]])


def _pruned(case: Case, model: Any) -> Any:
    model.prune(case.structures, case.labels, loss=0.5)
    return model


def _combined(case: Case, model: Any) -> Any:
    """A model that decides by the scores of one and the marginals of another."""
    members = [clone(member).fit(case.structures, case.labels) for member in (fuda.CRF(), fuda.HMM())]
    count = len(members[0].classes_)
    bias, pairs = np.zeros(count), np.zeros((count, count))
    model.best_ = Combination(members, Decoder(np.array([1.0, 0.5]), bias, pairs, None, (True, False)))
    return model
