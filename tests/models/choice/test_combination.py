"""Several labelers that decide together."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuda
from fuda import CRF, HMM, HMSVM, MEMM, Auto, HMPerceptron, SemiCRF, Sequence, Tree
from fuda.data.corpus import Corpus
from fuda.kernels import Linear
from fuda.models.choice import opinions
from fuda.models.choice.combination import Combination, Decoder
from fuda.models.choice.opinions import LEAST, marginals_over, scores_over, sharpened
from fuda.schemes import guess_scheme
from oracles import all_labelings

FIXTURES = Path(__file__).parents[2] / "fixtures"
X = [
    ["Ana", "Cruz", "went", "to", "Lima"],
    ["Bo", "Cruz", "likes", "Oslo", "."],
    ["Lima", "is", "big"],
    ["Eva", "Paz", "sees", "Bo", "Cruz"],
]
Y = [
    ["B-PER", "I-PER", "O", "O", "B-LOC"],
    ["B-PER", "I-PER", "O", "B-LOC", "O"],
    ["B-LOC", "O", "O"],
    ["B-PER", "I-PER", "O", "B-PER", "I-PER"],
]
WORDS = sorted({word for words in X for word in words} | {"new"})


def shaped(shape, words):
    return Sequence(words) if shape == "sequence" else Tree(words, [-1, 0, 0, 1, 1][: len(words)])


@cache
def three(shape):
    """Two that decide by their scores, and one by its marginals."""
    structures = [shaped(shape, words) for words in X]
    members = [model.fit(structures, Y) for model in (CRF(), HMSVM(), HMM())]
    scheme = "IOB2" if shape == "sequence" else None
    pairs = np.random.RandomState(0).normal(size=(4, 4))
    bias = np.array([0.0, 0.0, 0.0, 0.7])
    return Combination(members, Decoder(np.array([1.5, 0.5, 2.0]), bias, pairs, scheme, (True, True, False)))


@pytest.mark.parametrize("shape", ["sequence", "tree"])
@settings(max_examples=25)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))
def test_labelings_are_ranked_by_the_sum_of_scores_and_logarithms_of_marginals(shape, words):
    """The formula of the module, by enumeration."""
    model, x = three(shape), shaped(shape, words)
    crf, svm, hmm = model.members
    nodes, pairs = -np.tile(model.decoder.bias, (len(words), 1)), model.decoder.pairs.copy()
    for member, power in ((crf, 1.5), (svm, 0.5)):
        scores = member._log_scores(member._encode([x]))
        nodes += power * scores[0] / 3
        pairs += power * scores[1] / 3
    p = hmm.predict_marginals([x])[0] ** 2
    nodes += np.log(np.maximum(p / p.sum(axis=1, keepdims=True), LEAST)) / 3
    values = {
        tuple(model.classes_[list(y)]): value
        for y, value in all_labelings(Corpus([x]).graph.heads, nodes, pairs)
        if shape == "tree" or _is_well_formed(model.classes_[list(y)])
    }
    best = model.predict([x])[0]
    assert values[tuple(best)] == pytest.approx(max(values.values()), abs=1e-4)
    ranked = model.predict_nbest([x], 3)[0]
    log_z = np.logaddexp.reduce(list(values.values()))
    for labels, log_p in ranked:
        assert log_p == pytest.approx(values[tuple(labels)] - log_z, abs=1e-4)
    explanation = [model.explain(x, node) for node in range(len(words))]
    assert [one.chosen.label for one in explanation] == list(best)
    for one in explanation:
        total = sum(part.value for part in one.contributions)
        assert one.rival is None or total == pytest.approx(one.difference, abs=1e-9)


def _is_well_formed(labels):
    before = ["O", *labels]
    return all(
        label[0] != "I" or previous[2:] == label[2:] for previous, label in zip(before, labels, strict=False)
    )


@pytest.mark.parametrize("shape", ["sequence", "tree"])
def test_marginals_are_the_mean_of_all_members_each_to_its_power(shape):
    model, x = three(shape), shaped(shape, ["Ana", "Cruz", "sees", "new"])
    only = Combination([model.members[0]], model.decoder._replace(powers=np.ones(1), by_scores=(True,)))
    alone = model.members[0].set_params(scheme=model.decoder.scheme)
    assert only.predict_marginals([x])[0] == pytest.approx(alone.predict_marginals([x])[0], abs=1e-9)
    known = [None, "I-PER", None, "O"]
    marginals = model.predict_marginals([x], known=[known])[0]
    assert marginals.sum(axis=1) == pytest.approx(1.0)
    assert marginals[1, model.classes_.tolist().index("I-PER")] == 1
    assert marginals[3, model.classes_.tolist().index("O")] == 1
    assert [model.predict([x], known=[known])[0][k] for k in (1, 3)] == ["I-PER", "O"]


def test_labels_that_a_member_does_not_know_are_nearly_impossible():
    classes = [*Y[0][:2], "B-NEW", "B-LOC", "O"]
    corpus = Corpus([Sequence(X[0])])
    crf = CRF().fit(X, Y)
    opinion = scores_over(crf, crf._encode_corpus(corpus), classes)
    own_scores = crf._log_scores(crf._encode_corpus(corpus))
    order = [crf.classes_.tolist().index(label) for label in classes if label != "B-NEW"]
    assert opinion.nodes[:, [0, 1, 3, 4]] == pytest.approx(own_scores[0][:, order])
    assert opinion.pairs[np.ix_([0, 1, 3, 4], [0, 1, 3, 4])] == pytest.approx(
        own_scores[1][np.ix_(order, order)]
    )
    assert opinion.nodes[:, 2] == pytest.approx(own_scores[0].max(axis=1) + np.log(LEAST))
    assert not opinion.pairs[2].any()
    assert not marginals_over(crf, crf._encode_corpus(Corpus([Sequence(X[0])])), classes).nodes[:, 2].any()


@pytest.mark.parametrize(
    ("model", "has_scores"),
    [
        (CRF(), True),
        (CRF(pair_features=True), False),
        (HMSVM(), True),
        (HMPerceptron(), True),
        (HMPerceptron(order=2), False),
        (HMPerceptron(average="voted", kernel=Linear()), False),
        (SemiCRF(), False),
        (MEMM(), False),
        (HMM(), False),
    ],
    ids=str,
)
def test_whose_scores_can_be_added(model, has_scores):
    fitted = model.fit(X, Y)
    assert opinions.has_scores(fitted) is has_scores
    if has_scores:
        scores, pairs = fitted._log_scores(fitted._encode(X))
        assert np.isfinite(scores).all()
        assert np.isfinite(pairs).all()
        assert pairs.shape == (4, 4)


def test_a_file_says_whose_scores_count(tmp_path):
    model, both = Auto(candidates={"hmm": HMM()}).fit(X, Y), three("sequence")
    model.best_ = both
    model.save(tmp_path / "auto.fuda")
    loaded = fuda.load(tmp_path / "auto.fuda")
    assert loaded.best_.decoder.by_scores == (True, True, False)
    assert loaded.predict(X).tolist() == both.predict(X).tolist()
    model.best_ = Combination(both.members, both.decoder._replace(by_scores=(True, True, True)))
    model.save(tmp_path / "auto.fuda")
    with pytest.raises(fuda.ModelFileError, match="has no scores of label pairs to decide by"):
        fuda.load(tmp_path / "auto.fuda")


def test_a_combination_decides_by_the_mean_and_is_stored(tmp_path):
    members = [CRF(features="word").fit(X, Y), HMM().fit(X, Y)]
    classes = list(members[0].classes_)
    decoder = Decoder(np.array([1.0, 0.5]), np.zeros(4), np.zeros((4, 4)), "IOB2")
    both = Combination(members, decoder)
    first, second = (np.concatenate(list(member.predict_marginals(X))) for member in members)
    mean = (first + sharpened(second, 0.5)) / 2
    assert np.concatenate(list(both.predict_marginals(X))) == pytest.approx(mean, abs=1e-5)
    labels = both.predict(X)
    assert guess_scheme(labels) == "IOB2"
    assert list(both.predict([])) == list(both.predict_marginals([])) == []
    model = Auto(candidates={"hmm": HMM()}).fit(X, Y)
    model.best_ = both
    model.save(tmp_path / "auto.fuda")
    loaded = fuda.load(tmp_path / "auto.fuda")
    assert isinstance(loaded.best_, Combination)
    assert loaded.predict(X).tolist() == labels.tolist()
    assert loaded.report_ == model.report_
    assert list(loaded.classes_) == classes
    known = [[labels[0][0], *[None] * (len(X[0]) - 1)]]
    assert loaded.predict_nbest(X[:1], 2, known=known)[0][0][0] == labels[0]
    assert list(loaded.predict(X[:1], known=known)[0]) == labels[0]


@pytest.mark.parametrize("power", [-1.0, 1e3, 1e90])
def test_powers_that_no_search_tries_are_refused(power, tmp_path):
    members = [HMM().fit(X, Y), HMM(smoothing=0.5).fit(X, Y)]
    model = Auto(candidates={"hmm": HMM()}, combine=False).fit(X, Y)
    model.best_ = Combination(members, Decoder(np.array([1.0, power]), np.zeros(4), np.zeros((4, 4)), None))
    model.save(tmp_path / "auto.fuda")
    with pytest.raises(fuda.ModelFileError, match="the powers of its members are not from 0 to 64"):
        fuda.load(tmp_path / "auto.fuda")
