"""`prune`: faster predictions, as far as held-out data are labelled as well as before."""

from __future__ import annotations

from copy import copy
from pathlib import Path

import numpy as np
import pytest

import fuda
from fuda import DataError, MarginalizedPerceptron
from fuda.marginalized import kernel_classes, problem, support
from fuda.marginalized.engines.cpu.engine import CpuEngine
from fuda.marginalized.pruning_stages import NEVER, REACHES, leads
from fuda.models.machines import pruning
from fuda.selection.goals import goal_for
from usage_cases import usage


@pytest.fixture(scope="module")
def data():
    trees, y = usage()
    X = [[observation[0] for observation in x] for x in trees]
    return (X[:60], y[:60]), (X[60:120], y[60:120])


@pytest.fixture
def model(data):
    return MarginalizedPerceptron(features="spelling", mixing=3.0, epochs=3, orders=2, calibrate=False).fit(
        *data[0]
    )


def quality(true, predicted):
    goal = goal_for(true)
    return goal.score(goal.counts(true, predicted))


def test_coefficients_are_removed_as_far_as_quality_allows(data, model):
    held_out, count = data[1], len(model.support_)
    alpha = {v for p in model.support_ for v in map(abs, p.alpha.values())}
    before = quality(held_out[1], model.predict(held_out[0]))
    assert model.prune(*held_out, loss=0.0) == count - len(model.support_)
    assert quality(held_out[1], model.predict(held_out[0])) >= before
    assert model.margins_ is None  # types are few, so that all scores are exact
    removed = model.prune(*held_out, loss=1.0)
    assert removed > 0
    least = pruning.SHARES[0] * max(alpha)
    assert all(abs(v) >= least for p in model.support_ for v in p.alpha.values())


@pytest.fixture
def shared(monkeypatch):
    """Few types share classes, so that there are scores by windows."""
    monkeypatch.setattr(kernel_classes, "_SMALL_TABLE", 0)
    monkeypatch.setattr(problem, "_FREQUENT_ONE_IN", 20)


def test_margins_are_chosen_by_quality_and_stored(shared, monkeypatch, tmp_path, data, model):
    held_out = data[1]
    exact = model.predict(held_out[0])
    before = quality(held_out[1], exact)
    scores = model.decision_scores(held_out[0])
    monkeypatch.setattr(pruning, "SHARES", ())
    assert model.prune(*held_out, loss=0.005) == 0
    assert model.margins_.shape == (len(REACHES) - 1, len(model.classes_))
    assert (model.margins_ < NEVER).any()
    predicted = model.predict(held_out[0])
    assert quality(held_out[1], predicted) >= before - 0.005
    for a, b in zip(model.decision_scores(held_out[0]), scores, strict=True):
        np.testing.assert_array_equal(a, b)
    model.save(tmp_path / "m.fuda")
    again = fuda.load(tmp_path / "m.fuda")
    np.testing.assert_array_equal(again.margins_, model.margins_)
    assert again.predict(held_out[0]).tolist() == predicted.tolist()
    model.margins_ = np.zeros_like(model.margins_)  # clear cases alone, which is worse
    assert model.predict(held_out[0]).tolist() != exact.tolist()
    model.fit(*data[0])
    assert model.margins_ is None


def test_labels_that_no_stage_predicts_well_enough_are_never_clear(shared, monkeypatch, data, model):
    monkeypatch.setattr(pruning, "SHARES", ())
    monkeypatch.setattr(pruning, "ERRORS", ())
    model.prune(*data[1], loss=1.0)
    assert (model.margins_ == NEVER).all()


def test_new_labels_are_never_clear(shared, data, model):
    X, y = data[1]
    model.prune(X, y, loss=0.5)
    before, classes = model.margins_, model.classes_.tolist()
    assert (before < NEVER).any()
    model.partial_fit(X[:1], [["A new one", *y[0][1:]]])
    added = model.classes_.tolist().index("A new one")
    assert (model.margins_[:, added] == NEVER).all()
    others = [model.classes_.tolist().index(label) for label in classes]
    np.testing.assert_array_equal(model.margins_[:, others], before)
    assert model.predict(X)[0][0] == "A new one"


@pytest.mark.parametrize("decode", ["posterior", "viterbi"])
def test_corrections_of_clear_cases_hold(shared, monkeypatch, data, decode):
    (X, y), held_out = data
    monkeypatch.setattr(pruning, "SHARES", ())
    model = MarginalizedPerceptron(features="spelling", mixing=3.0, epochs=3, orders=2, decode=decode)
    model.fit(X[:40], y[:40]).prune(*held_out, loss=0.05)
    model.margins_ = np.zeros_like(model.margins_)
    labels = model.classes_.tolist()
    for x, right in zip(X[40:60], y[40:60], strict=True):
        wrong = [labels[labels.index(right[0]) - 1], *right[1:]]
        assert copy(model).partial_fit([x], [wrong]).predict([x])[0] == wrong


@pytest.mark.parametrize("recent", [0, 1000])
def test_what_is_learned_later_is_approximated_as_after_load(shared, monkeypatch, tmp_path, data, recent):
    (X, y), held_out = data
    monkeypatch.setattr(support, "_RECENT", recent)
    model = MarginalizedPerceptron(features="spelling", mixing=3.0, epochs=3, orders=2)
    model.fit(X[:30], y[:30]).prune(*held_out, loss=0.05)
    model.partial_fit(X[30:40], y[30:40])
    model.save(tmp_path / "m.fuda")
    again = fuda.load(tmp_path / "m.fuda")
    assert model.predict(X[30:]).tolist() == again.predict(X[30:]).tolist()
    assert model.predict(held_out[0]).tolist() == again.predict(held_out[0]).tolist()


def test_tables_are_as_large_as_after_load(shared, monkeypatch, tmp_path, data, model):
    """Whether scores are approximated depends on the number of types."""
    X, y = data[1]
    model.prune(X, y, loss=0.5)
    model._relabel(X_of := model.support_structures_[10:], [["not learned"] * len(x) for x in X_of])
    model._support = [new for part in model._support for new in support.supports(part.examples, part.alpha)]
    model.save(tmp_path / "m.fuda")
    again = fuda.load(tmp_path / "m.fuda")
    sizes = [len(labeler._support[0].examples.points) for labeler in (model, again)]
    targets = len({word for x in X for word in x})
    monkeypatch.setattr(kernel_classes, "_SMALL_TABLE", sum(sizes) // 2 * targets)
    assert sizes[0] > sizes[1]
    assert model.predict(X).tolist() == again.predict(X).tolist()


def test_coefficients_that_were_all_taken_back_count_nothing(shared, data, model):
    X, y = data[1]
    model.prune(X, y, loss=0.5)
    assert model.margins_ is not None
    structures = model.support_structures_
    model._relabel(structures, [["not learned"] * len(x) for x in structures])
    assert not model.support_
    assert not np.concatenate(model.decision_scores(X[:2])).any()
    assert [*map(len, model.predict(X[:2]))] == [*map(len, X[:2])]


def test_margins_leave_a_share_of_errors():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 3000)
    scores = rng.random((3000, 3)) + np.eye(3)[labels] * rng.random((3000, 1))
    best, lead = leads(scores)
    for share in (0.3, 0.05, 0.001):
        for label, margin in enumerate(pruning.margins_of(scores, labels, share)):
            of_label = best == label

            def errors(least, of_label=of_label, label=label):
                wrong = labels[of_label & (lead >= least)] != label
                return (wrong.sum() + 1) / (len(wrong) + 1)

            assert margin == NEVER or errors(margin) <= share
            assert all(errors(least) > share for least in lead[of_label & (lead < margin)])
    assert pruning.margins_of(scores[:30], labels[:30], 0.01).tolist() == [NEVER] * 3  # too few


def test_found_scores_are_those_of_the_engine(shared, data, model):
    """What the choice of margins supposes is what a prediction does."""
    encoded = model._encode(data[1][0])
    prior = model._prior_of(encoded.corpus, None)
    search = pruning.Pruning(model, encoded, np.zeros(encoded.corpus.size, dtype=int), prior, 0.1)
    staged = pruning.Staged([search._scores(stage) for stage in range(len(REACHES))], encoded.corpus.offsets)
    every = np.arange(encoded.corpus.size)
    margins = staged.margins(every, 0.3)
    assert (margins < NEVER).any()
    chosen = staged.scores_with(margins, every)
    np.testing.assert_array_equal(chosen, model._inputs_of(encoded, prior, margins).scores)
    for part in np.split(every, encoded.corpus.offsets[[5, 20]]):
        np.testing.assert_array_equal(staged.scores_with(margins, part), chosen[part])
    assert all(not np.array_equal(chosen, scores) for scores in staged.scores)


def test_bad_arguments_are_named(data, model):
    with pytest.raises(DataError, match="loss=2: give the loss of quality that is allowed, from 0 to 1"):
        model.prune(*data[1], loss=2)
    with pytest.raises(DataError, match=r"prune\(X, y\)"):
        model.prune(0.01)  # a threshold, which earlier versions took
    with pytest.raises(DataError, match="X is empty: give structures"):
        model.prune([], [])
    with pytest.raises(DataError, match="was never seen in training"):
        model.prune([["a"]], [["nothing"]])


@pytest.mark.parametrize("value", [-0.1, 3.5])
def test_a_file_with_bad_margins_is_refused(tmp_path, model, value):
    model.margins_ = np.full((len(REACHES) - 1, len(model.classes_)), 1.0)
    model.margins_[-1, -1] = value
    model.save(tmp_path / "m.fuda")
    with pytest.raises(fuda.ModelFileError, match="its margins are not from 0 to 3"):
        fuda.load(tmp_path / "m.fuda")


def test_the_one_margin_of_earlier_files_is_that_of_all_labels():
    path = Path(__file__).parents[2] / "fixtures" / "marginalizedperceptron-pruned-2.fuda"
    margins = fuda.load(path).margins_
    assert margins.tolist() == [[0.925] * 3] * (len(REACHES) - 1)  # halfway from 0.85 to 1


def test_engines_that_do_not_approximate_leave_all_scores_exact(shared, monkeypatch, data, model):
    monkeypatch.setattr(CpuEngine, "can_prune", lambda self: False)
    model.prune(*data[1], loss=0.5)
    assert model.margins_ is None
