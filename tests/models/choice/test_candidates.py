from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import fuda
from fuda import CRF, HMM, Dag, Sequence, Tree
from fuda.data.corpus import Corpus
from fuda.models.choice import candidates
from fuda.models.choice.candidate_fits import Fits
from fuda.models.choice.candidates import TABLE, candidates_for, kind_of
from model_cases import training_data

X = [["Ana", "Cruz", "went", "to", "Lima", "."], ["Bo", "Cruz", "went", "to", "Oslo", "."]] * 3
Y = [["B-PER", "I-PER", "O", "O", "B-LOC", "O"]] * 6


def test_the_table_says_who_joins_on_proof():
    names = {c.name: c.joins for c in candidates_for(Corpus([Sequence(["a", "word"])]))}
    assert names["crf l2=0.3"]
    assert names["semi-crf"]
    assert names["marginalized text"]
    assert not names["hm-perceptron"]
    assert not names["marginalized spelling"]


def test_classes_of_words_are_learned_from_the_text_itself():
    corpus = Corpus([Sequence(x) for x in X])
    candidate = next(c for c in candidates_for(corpus) if c.learns_words)
    assert candidate.name == candidates.WITH_CLASSES
    fits = Fits(training_data(X, Y), "IOB2")
    model = fits.fitted(candidate, np.arange(6), True, 1)
    assert "class4" in str(model.top_features(1000))
    taught = CRF(l2=0.3, scheme="IOB2", n_jobs=1).fit(X[:6], Y[:6], unlabelled=fuda.vectors.learn(X[:6]))
    # Every word is counted once. Features are in another order.
    np.testing.assert_allclose(np.sort(model.weights_), np.sort(taught.weights_), atol=1e-4)
    corpus.vectors = fuda.vectors.learn([["other", "text"]])  # what is known of words already
    assert candidates.WITH_CLASSES not in {c.name for c in candidates_for(corpus)}
    data = training_data(X, Y)
    data.encoded.corpus.vectors = corpus.vectors
    by_given_vectors = Fits(data, "IOB2").fitted(candidate, np.arange(6), True, 1)
    assert by_given_vectors.encoder_.features.words == corpus.vectors.words


@pytest.mark.parametrize(
    ("observations", "kind"),
    [
        (["Ana", "a"], "text"),
        (["a", "ñ"], "text"),
        ([("Ana", "NP"), ("b", "X")], "text"),
        (["A", "c", "n"], "dna"),
        (["A", "K", "S"], "protein"),
        ([{"w": 1.0}, {"v": 1.0}], "features"),
        ([1, 2], "features"),
        ([np.ones(3), np.zeros(3)], "vector"),
    ],
)
def test_the_kind_of_observations_is_recognized(observations, kind):
    assert kind_of(Corpus([Sequence(observations)])) == kind


def test_only_learners_that_take_the_shape_are_tried():
    words = ["a", "bc"]
    for structure in (Sequence(words), Tree(words, [-1, 0]), Dag(words, [(0, 1)])):
        tried = candidates_for(Corpus([structure]))
        assert tried
        assert all(structure.shape in each.estimator._shapes for each in tried)
    assert type(candidates_for(Corpus([Sequence(words)]))[0].estimator) is CRF


@pytest.mark.parametrize("kind", TABLE)
def test_every_row_of_the_table_can_be_fitted(kind):
    """With few iterations, on observations of that kind."""
    make = {
        "text": lambda k: ["Ana", "is", "here"][k],
        "protein": lambda k: "AKS"[k],
        "dna": lambda k: "ACG"[k],
        "features": lambda k: {f"f{k}": 1.0},
        "vector": lambda k: np.eye(3)[k],
    }[kind]
    data = [[make(k % 3) for k in range(i, i + 5)] for i in range(6)]
    labels = [["abc"[k % 3] for k in range(i, i + 5)] for i in range(6)]
    corpus = Corpus([Sequence(x) for x in data])
    assert kind_of(corpus) == kind
    tried = candidates_for(corpus)
    assert len(tried) == len(TABLE[kind]) == len({each.name for each in tried})
    for each in tried:
        names = each.estimator.get_params(deep=False)
        few = {"max_iter": 3, "epochs": 1, "orders": 1, "prior": HMM()}
        few = {k: v for k, v in few.items() if k in names and (k != "prior" or hasattr(names[k], "fit"))}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            each.estimator.set_params(**few).fit(data, labels)
        assert set(each.quick) <= set(names)
