"""One fit encodes its data once, and parts of encoded data equal what encoding them would give."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from itertools import product

import numpy as np
import pytest

from fuda import (
    CRF,
    HMM,
    HMSVM,
    MEMM,
    Auto,
    HMPerceptron,
    MarginalizedPerceptron,
    Reranker,
    SemiCRF,
    Sequence,
    Template,
    Tree,
)
from fuda.data.corpus import Corpus
from fuda.data.encoders import make_encoder
from fuda.data.labels import number_labels
from fuda.kernels import Polynomial
from fuda.models.fitting.training_data import TrainingData

WORDS = [
    ["Ana", "lives", "in", "Lima"],
    ["Lima", "is", "big"],
    ["Bo", "lives", "here"],
    ["Ana", "is", "in"],
] * 2
WORDS += [["Cy", "sleeps", "in", "Rome", "again"], ["Rome", "is", "far"]]
Y = [["A" if word[0].isupper() else "B" if len(word) > 2 else "C" for word in words] for words in WORDS]
TREES = [Tree(words, [-1, *[(t - 1) // 2 for t in range(1, len(words))]]) for words in WORDS]


class Counting:
    """A feature function that counts how often it is asked about each observation."""

    def __init__(self):
        self.asked = Counter()

    def __call__(self, word):
        self.asked[word] += 1
        return [word, word[0], f"length={len(word)}"]


MAKERS = [
    lambda f: HMM(features=f),
    lambda f: MEMM(features=f),
    lambda f: CRF(features=f),
    lambda f: CRF(features=f, solver="cg", max_iter=5),
    lambda f: CRF(features=f, solver="sgd", max_iter=3),
    lambda f: HMPerceptron(features=f),
    lambda f: HMPerceptron(features=f, average="voted"),
    lambda f: HMPerceptron(features=f, kernel=Polynomial(2)),
    lambda f: HMSVM(features=f),
    lambda f: Auto(candidates={"crf": CRF(features=f), "svm": HMSVM(features=f)}, n_jobs=1),
    lambda f: Reranker(features=f, base=CRF(features=f), folds=2),
    lambda f: MarginalizedPerceptron(features=f, prior=CRF(features=f), epochs=1),
]


@pytest.mark.parametrize(
    ("make", "X"), [*product(MAKERS, [WORDS, TREES]), (lambda f: SemiCRF(features=f), WORDS)]
)
def test_a_fit_asks_about_each_observation_once(make, X, monkeypatch):
    monkeypatch.setattr("fuda.models.crf._BATCH_NODES", 10)
    features = Counting()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations
        model = make(features).fit(X, Y)
    assert features.asked == Counter({word for words in WORDS for word in words})
    model.predict(X)
    assert max(features.asked.values()) == 1
    new = Sequence(["Zoe", "is", "Zoe"]) if X is WORDS else Tree(["Zoe", "is", "Zoe"], [-1, 0, 0])
    model.predict([new])
    # There, both host and labeler ask once.
    if not isinstance(model, Reranker | MarginalizedPerceptron | Auto):
        model.predict([new])
        assert max(features.asked.values()) == 1


TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB")


FEATURES = ["text", "word", lambda x: {x: 2.0, x[0]: -0.5, "same": 1.0}]
SEQUENCES = [Sequence(words) for words in WORDS]


@pytest.mark.parametrize(
    ("X", "features"),
    [*((X, features) for X in (SEQUENCES, TREES) for features in FEATURES), (SEQUENCES, TEMPLATE)],
)
def test_a_refitted_part_is_what_fitting_the_part_gives(X, features):
    members, others = np.array([8, 1, 2, 5]), np.array([0, 9])
    encoder = make_encoder(features, 1)
    encoded = encoder.fit(X)
    data = TrainingData(encoder, encoded, *number_labels(Y, encoded.corpus), None, None)
    part, asked = data.split(members, others)
    alone = make_encoder(features, 1)
    expected = alone.fit([X[i] for i in members]), alone.encode([X[i] for i in others])
    assert list(map(set, part.encoder.vocabularies())) == list(map(set, alone.vocabularies()))
    assert part.classes == sorted({label for i in members for label in Y[i]})
    for ours, theirs in zip((part.encoded, asked), expected, strict=True):
        for c, (a, b) in enumerate(zip(ours.channels, theirs.channels, strict=True)):
            mine, other = ours.tables[a.table], theirs.tables[b.table]
            names = {name: k for k, name in enumerate(part.encoder.feature_names(c))}
            order = [names[name] for name in alone.feature_names(c)]
            np.testing.assert_array_equal(
                a.gather(mine.matrix.toarray()[:, order]), b.gather(other.matrix.toarray())
            )
            for name in ("unknown", "beyond"):
                one, two = getattr(mine, name)[:, None], getattr(other, name)[:, None]
                np.testing.assert_allclose(a.gather(one), b.gather(two), atol=1e-12)


@pytest.mark.parametrize("make", [HMM, lambda: MEMM(tol=1e-9), lambda: CRF(tol=1e-9)])
def test_a_model_of_a_part_is_the_model_of_its_structures(make):
    corpus = Corpus([Sequence(words) for words in WORDS])
    members, others = np.arange(2, 10), np.array([0, 1])
    data = make()._training_data(corpus, *number_labels(Y, corpus))
    part, asked = data.split(members, others)
    ours = make()._fit_encoded(part)
    theirs = make().fit([WORDS[i] for i in members], [Y[i] for i in members])
    for a, b in zip(
        ours._marginals(asked, None), np.concatenate(theirs.predict_marginals(WORDS[:2])), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("X", [WORDS, TREES], ids=["sequences", "trees"])
def test_a_grown_vocabulary_encodes_nothing_again(X):
    features = Counting()
    model = HMPerceptron(features=features, kernel=Polynomial(2), epochs=2).fit(X[:4], Y[:4])
    names = model.encoder_.feature_names(0)
    before = model.encoder_
    model.partial_fit(X[8:], Y[8:])
    assert (
        max(features.asked[word] for words in WORDS[:4] for word in words if word not in WORDS[8] + WORDS[9])
        == 1
    )
    assert model.encoder_.feature_names(0)[: len(names)] == names
    assert before.feature_names(0) == names  # the vocabulary that grew is a copy
    assert len(model.predict(X)) == len(X)


def test_joined_encodings_are_the_encoding_of_both():
    for structures in ([Sequence(words) for words in WORDS], TREES):
        encoder = make_encoder("text", 1)
        encoder.fit(structures)
        both = encoder.encode(structures[:3]).followed_by(encoder.encode(structures[3:]))
        whole = encoder.encode(structures)
        assert both.corpus.graph.edges.tolist() == whole.corpus.graph.edges.tolist()
        for a, b in zip(both.channels, whole.channels, strict=True):
            tables = both.tables[a.table].matrix.toarray(), whole.tables[b.table].matrix.toarray()
            np.testing.assert_array_equal(a.gather(tables[0]), b.gather(tables[1]))


@pytest.mark.parametrize("make", [HMM, MEMM, CRF, HMPerceptron], ids=["HMM", "MEMM", "CRF", "HMPerceptron"])
def test_what_is_kept_for_predictions_changes_none(make):
    model = make().fit(WORDS[:8], Y[:8])
    expected = model.predict_marginals(WORDS)
    size = len(pickle.dumps(make().fit(WORDS[:8], Y[:8])))
    assert len(pickle.dumps(model)) <= size + 64  # it is in no pickle
    for again in (model, pickle.loads(pickle.dumps(model))):
        for words, marginals in zip(WORDS, expected, strict=True):
            np.testing.assert_allclose(again.predict_marginals([words])[0], marginals, atol=1e-12)
