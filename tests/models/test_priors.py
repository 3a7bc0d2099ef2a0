"""Priors: what labelers and arrays say, exactly, and what is refused."""

from __future__ import annotations

import threading
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import oracles
from fuda import CRF, HMM, Dag, DataError, Sequence, Tree
from fuda.data.corpus import Corpus
from fuda.models import priors
from fuda.models.base import number_labels
from fuda.models.fitting.folds import FOLDS
from fuda.models.priors import SHARE, check_prior, for_training

X = [list("abc"), list("bca"), list("cc"), list("abca"), list("b"), list("acb"), list("ca")]
Y = [list("NVN"), list("VNN"), list("NN"), list("NVNN"), list("V"), list("NNV"), list("NN")]


def encoded(structures, y=None):
    corpus = Corpus([s if not isinstance(s, list) else Sequence(s) for s in structures])
    classes, labels = number_labels(y if y is not None else [["N"] * len(s) for s in structures], corpus)
    return corpus, labels, classes


def test_the_uniform_prior_is_uniform_in_either_form() -> None:
    corpus, labels, classes = encoded(X, Y)
    for form in ("marginals", "chain"):
        prior, source = for_training("uniform", form, corpus, labels, classes)
        assert (prior.nodes == 0.5).all()
        assert prior.before is None  # a chain of independent labels is a product
        assert (source.prior_of(Corpus([Sequence(["z"])])).nodes == [[0.5, 0.5]]).all()


def test_arrays_are_taken_as_they_are_and_needed_again() -> None:
    corpus, labels, classes = encoded(X[:2], Y[:2])
    arrays = [np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]]), [[0.1, 0.9]] * 3]
    prior, source = for_training(arrays, "marginals", corpus, labels, classes)
    assert prior.nodes.tolist() == [*arrays[0].tolist(), *arrays[1]]
    other = Corpus([Sequence(["z"])])
    assert source.prior_of(other, [[[0.2, 0.8]]]).nodes.tolist() == [[0.2, 0.8]]
    with pytest.raises(DataError, match=r"fitted with priors given as arrays.*one \(nodes, 2\) array"):
        source.prior_of(other)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([[[0.5, 0.5]]], "X has 2 structures but prior has 1"),
        ([[[0.5, 0.5]], [[0.5, 0.5]] * 2], r"structure 1: its prior has the shape \(2, 2\); give \(1, 2\)"),
        ([[[0.5, 0.5]], [[1.0]]], r"structure 1: its prior has the shape \(1, 1\)"),
        ([[[0.5, 0.5]], [["x", "y"]]], "structure 1: its prior is"),
        ([[[0.5, 0.5]], None], r"structure 1: its prior has the shape \(\)"),
        ([[[0.5, 0.5]], [[0.5, 0.6]]], "structure 1: its prior sums to 1.1 at node 0; divide each row"),
        ([[[0.5, 0.5]], [[-0.5, 1.5]]], "structure 1: its prior has -0.5 for label 0 at node 0"),
        ([[[np.nan, 0.5]], [[0.5, 0.5]]], "structure 0: its prior has nan for label 0 at node 0"),
        ([[[np.inf, 0.5]], [[0.5, 0.5]]], "structure 0: its prior has inf for label 0 at node 0"),
    ],
)
def test_bad_arrays_are_refused(arrays, message) -> None:
    corpus, labels, classes = encoded([["a"], ["b"]], [["N"], ["V"]])
    with pytest.raises(DataError, match=message):
        for_training(arrays, "marginals", corpus, labels, classes)


@pytest.mark.parametrize(
    ("prior", "form", "message"),
    [
        ("uniform", "tree", "prior_form='tree': choose marginals or chain"),
        ("flat", "marginals", "prior='flat': give 'uniform', an HMM"),
        (3, "marginals", "prior=3: give 'uniform', an HMM"),
        (HMM, "marginals", r"give a labeler, not its class: prior=HMM\(\)"),
        ([[[0.5, 0.5]]], "chain", "prior_form='chain' with arrays of node marginals"),
    ],
)
def test_bad_parameters_are_refused(prior, form, message) -> None:
    with pytest.raises(DataError, match=message):
        check_prior(prior, form)


def labelings(labeler, x, classes):
    """Every labeling over `classes` with its probability, by a chain labeler's own scores."""
    encoded = labeler._encode([x])
    scores, transitions = labeler._scores(encoded)
    parents = list(range(-1, len(x) - 1))
    numbers = [labeler.classes_.tolist().index(c) for c in classes if c in labeler.classes_]
    possible = [
        (y, s) for y, s in oracles.all_labelings(parents, scores, transitions) if set(y) <= set(numbers)
    ]
    total = sum(np.exp(s) for _, s in possible)
    return [([labeler.classes_[k] for k in y], np.exp(s) / total) for y, s in possible]


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4), st.sampled_from(["hmm", "crf"]))
def test_a_fitted_labeler_is_its_posterior_mixed_with_uniform(x, name) -> None:
    labeler = fitted(name)
    classes = ["N", "V", "X"]  # X was never seen by the labeler
    corpus = Corpus([Sequence(x)])
    prior, _ = for_training(labeler, "chain", corpus, np.zeros(len(x), int), classes)
    nodes, pairs = np.zeros((len(x), 3)), np.zeros((len(x), 3, 3))
    for names, p in labelings(labeler, x, classes):
        y = [classes.index(c) for c in names]
        nodes[np.arange(len(x)), y] += p
        for t in range(1, len(x)):
            pairs[t, y[t - 1], y[t]] += p
    nodes, pairs = (1 - SHARE) * nodes + SHARE / 3, (1 - SHARE) * pairs + SHARE / 9
    np.testing.assert_allclose(prior.nodes, nodes, atol=1e-12)
    for t in range(1, len(x)):
        np.testing.assert_allclose(prior.before[t], (pairs[t] / nodes[t]).T, atol=1e-12)
        np.testing.assert_allclose(prior.after[t - 1], pairs[t] / nodes[t - 1][:, None], atol=1e-12)
    assert not prior.before[0].any()
    assert not prior.after[-1].any()
    product, _ = for_training(labeler, "marginals", corpus, np.zeros(len(x), int), classes)
    np.testing.assert_allclose(product.nodes, nodes, atol=1e-12)
    assert product.before is None


@cache
def fitted(name):
    return {"hmm": HMM(), "crf": CRF(features="word")}[name].fit(X, Y)


def test_labels_that_only_the_labeler_knows_are_conditioned_away() -> None:
    labeler = HMM().fit([*X, ["z"]], [*Y, ["Z"]])
    corpus, labels, classes = encoded(X, Y)
    prior, _ = for_training(labeler, "marginals", corpus, labels, classes)
    expected = np.zeros((3, 2))
    for names, p in labelings(labeler, X[0], classes):
        expected[np.arange(3), [classes.index(c) for c in names]] += p
    np.testing.assert_allclose(prior.nodes[:3], (1 - SHARE) * expected + SHARE / 2, atol=1e-12)


def test_a_labeler_of_other_labels_is_refused() -> None:
    corpus, labels, _ = encoded(X, Y)
    with pytest.raises(DataError, match="the HMM knows none of the labels"):
        for_training(fitted("hmm"), "marginals", corpus, labels, ["P", "Q"])


@pytest.mark.parametrize("form", ["marginals", "chain"])
@pytest.mark.parametrize("weight", [None, np.arange(1.0, 8.0)])
def test_an_unfitted_labeler_is_trained_out_of_fold(form, weight) -> None:
    corpus, labels, classes = encoded(X, Y)
    hmm = HMM(smoothing=0.5)
    prior, source = for_training(hmm, form, corpus, labels, classes, weight)
    assert not hasattr(hmm, "classes_")  # the user's object stays as it is
    folds = np.random.RandomState(0).permutation(len(X)) % FOLDS
    for fold in range(FOLDS):
        others, held_out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        part = [None if weight is None else weight[others]]
        fitted = clone(hmm).fit([X[i] for i in others], [Y[i] for i in others], sample_weight=part[0])
        for i in held_out:
            alone = Corpus([Sequence(X[i])])
            expected, _ = for_training(fitted, form, alone, labels, classes)
            nodes = slice(*corpus.offsets[i : i + 2])
            for ours, theirs in zip(prior[:3], expected[:3], strict=True):
                if theirs is not None:
                    np.testing.assert_allclose(ours[nodes], theirs, atol=1e-12)
            np.testing.assert_allclose(prior.joint.nodes[nodes], expected.joint.nodes, atol=1e-12)
    everything = clone(hmm).fit(X, Y, sample_weight=weight)
    expected, _ = for_training(everything, form, corpus, labels, classes)
    np.testing.assert_allclose(source.prior_of(corpus).nodes, expected.nodes, atol=1e-12)


def test_trainings_at_the_same_time_give_the_same_prior(monkeypatch) -> None:
    corpus, labels, classes = encoded(X, Y)
    expected, alone = for_training(CRF(n_jobs=3), "marginals", corpus, labels, classes)
    threads = set[int]()
    fit = CRF._fit_encoded

    def noted(self, data):
        threads.add(self.n_jobs)
        return fit(self, data)

    monkeypatch.setattr(CRF, "_fit_encoded", noted)
    monkeypatch.setattr(priors, "thread_count", lambda _: 14)
    actual, source = for_training(CRF(n_jobs=3), "marginals", corpus, labels, classes)
    assert threads == {3}  # 14 cores for six trainings
    assert (actual.nodes == expected.nodes).all()
    assert (source.source.weights_ == alone.source.weights_).all()
    assert (source.source.n_jobs, source.source.callback) == (3, None)


def test_an_interrupt_ends_all_trainings_at_the_same_time(monkeypatch) -> None:
    def endless(self, data):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        while True:
            self.callback(None)

    corpus, labels, classes = encoded(X, Y)
    monkeypatch.setattr(CRF, "_fit_encoded", endless)
    monkeypatch.setattr(priors, "thread_count", lambda _: 12)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        for_training(CRF(), "marginals", corpus, labels, classes)
    assert threading.active_count() <= before + 5  # helpers, which wait for other work


def test_labels_not_known_stay_so_for_the_labeler() -> None:
    y = [[None, *labels[1:]] for labels in Y]
    corpus, labels, classes = encoded(X, y)
    prior, _ = for_training(HMM(), "marginals", corpus, labels, classes)
    np.testing.assert_allclose(prior.nodes.sum(axis=1), 1.0)


def test_one_structure_leaves_nothing_to_train_on() -> None:
    corpus, labels, classes = encoded(X[:1], Y[:1])
    with pytest.raises(DataError, match="there is only one structure; give a fitted labeler"):
        for_training(HMM(), "marginals", corpus, labels, classes)


def test_trees_have_node_marginals_but_no_chain() -> None:
    trees = [Tree(x, [i - 1 if i < 2 else 0 for i in range(len(x))]) for x in X]
    corpus, labels, classes = encoded(trees, Y)
    prior, source = for_training(HMM(), "marginals", corpus, labels, classes)
    np.testing.assert_allclose(prior.nodes.sum(axis=1), 1.0)
    np.testing.assert_allclose(source.prior_of(corpus).nodes.sum(axis=1), 1.0)
    with pytest.raises(DataError, match="a chain prior is over sequences, but structure 0 is a tree"):
        for_training(HMM(), "chain", corpus, labels, classes)
    with pytest.raises(DataError, match="fitted on sequences"):
        for_training(fitted("crf"), "marginals", corpus, labels, classes)


def test_dags_take_no_labeler() -> None:
    corpus, labels, classes = encoded([Dag(["a", "b"], [(0, 1)])] * 2, [["N", "V"]] * 2)
    with pytest.raises(
        DataError, match="a CRF labels sequences and trees, but structure 0 is a dag; give arr"
    ):
        for_training(CRF(), "marginals", corpus, labels, classes)
