"""Re-ranking: what is learned, by definition; candidates, oracle, files, and error messages."""

from __future__ import annotations

import itertools
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict

import fuda
from fuda import CRF, HMM, HMSVM, Dag, DataError, Tree
from fuda.kernels import Delta, Polynomial
from fuda.marginalized.labelled import Similarity, labelled_kernel
from fuda.metrics import evaluate
from fuda.models.memm import MEMM
from fuda.models.reranker import Reranker
from fuda.training import ranking

# The last label depends on the first word, too far away for a model of label pairs.
LABELS = {"p": "A", "q": "B"}
X = [[key, *middle, "z"] for middle in itertools.product("uvw", repeat=2) for key in LABELS]
Y = [["O", "O", "O", LABELS[x[0]]] for x in X]
TREES = [Tree([*x[::-1], "side"], [1, 2, 3, -1, 2]) for x in X]
TREES_Y = [[*y[::-1], "O"] for y in Y]
BOTH = [(X, Y), (TREES, TREES_Y)]
BASE = HMM(smoothing=1.0)


def small(**parameters: Any) -> Reranker:
    return Reranker(**{"base": BASE, "n": 5, "folds": 3, "base_weight": 1.0, "kernel": Delta(), **parameters})


def by_definition(model: Reranker, structures, y):
    """α of every (structure, candidate), straight from the definition; one kernel at a time."""
    candidate_lists: list = [None] * len(structures)
    for rest, held_out in KFold(model.folds).split(structures):
        base = clone(model.base).fit([structures[i] for i in rest], [y[i] for i in rest])
        for i in held_out:
            candidate_lists[i] = base.predict_nbest([structures[i]], model.n)[0]
    alpha: dict[tuple[int, int], float] = {}
    mean: dict[tuple[int, int], float] = {}
    steps = 0

    def k(i, a, j, b):
        return labelled_kernel(
            structures[i],
            structures[j],
            candidate_lists[i][a][0],
            candidate_lists[j][b][0],
            kernel=model.kernel,
            mixing=model.mixing,
        )

    for _ in range(model.epochs):
        mistakes = 0
        for i, candidates in enumerate(candidate_lists):
            ranking = [
                model.base_weight * log_p + sum(w * k(j, b, i, c) for (j, b), w in alpha.items())
                for c, (_, log_p) in enumerate(candidates)
            ]
            wrong = [sum(u != v for u, v in zip(labels, y[i], strict=True)) for labels, _ in candidates]
            best, right = int(np.argmax(ranking)), int(np.argmin(wrong))
            if wrong[best] > wrong[right]:
                mistakes += 1
                alpha[i, right] = alpha.get((i, right), 0.0) + 1
                alpha[i, best] = alpha.get((i, best), 0.0) - 1
            steps += 1
            for key, w in alpha.items():
                mean[key] = mean.get(key, 0.0) + w
        if not mistakes:
            break
    return {key: w / steps for key, w in mean.items()} if model.average else alpha, candidate_lists


@pytest.mark.parametrize(("structures", "y"), BOTH)
@pytest.mark.parametrize("average", [True, False])
def test_learns_by_the_definition(structures, y, average):
    structures, y = structures[4:12], y[4:12]
    model = small(mixing=0.6, average=average, epochs=2, cache_bytes=0).fit(structures, y)
    expected, lists = by_definition(model, structures, y)
    nonzero = {key: w for key, w in sorted(expected.items()) if w}
    assert nonzero, "the case has mistakes to learn from"
    np.testing.assert_allclose(model.alpha_, list(nonzero.values()))
    labels = [lists[i][c][0] for i, c in nonzero]
    assert model.support_labels_.tolist() == [model.classes_.tolist().index(b) for row in labels for b in row]
    assert [list(s) for s in model.support_structures_] == [
        list(structures[i]) for i in sorted({i for i, _ in nonzero})
    ]
    new = structures[0]
    candidates = model.base_.predict_nbest([new], model.n)[0]
    ranking = [
        log_p
        + sum(
            w * labelled_kernel(structures[i], new, lists[i][c][0], row, kernel=Delta(), mixing=0.6)
            for (i, c), w in nonzero.items()
        )
        for row, log_p in candidates
    ]
    assert model.predict([new])[0] == candidates[int(np.argmax(ranking))][0]


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize(("structures", "y"), BOTH)
def test_equal_structures_share_rows_and_coefficients(structures, y, average, monkeypatch):
    """Also where they have other labels, and where their candidates come from other folds."""
    structures, y = [structures[i] for i in (4, 5, 4, 7, 5, 4, 6)], [y[i] for i in (4, 5, 5, 7, 4, 5, 6)]
    model = small(mixing=0.6, average=average, epochs=2, n=3)
    seen, rows = [], Similarity.rows

    def counted(self, a, chosen, b):
        seen.append(len(b.owner))
        return rows(self, a, chosen, b)

    monkeypatch.setattr(Similarity, "rows", counted)
    model.fit(structures, y)
    assert max(seen) < 3 * len(structures)
    expected, candidates = by_definition(model, structures, y)
    merged = {}
    for (i, c), w in sorted(expected.items()):
        key = tuple(structures[i]), tuple(candidates[i][c][0])
        merged[key] = merged.get(key, 0.0) + w
    owners = np.repeat(np.arange(len(model.support_structures_)), np.diff(model.support_first_))
    labels = np.split(model.classes_[model.support_labels_], len(model.alpha_))
    learned = {
        (tuple(model.support_structures_[i]), tuple(row)): w
        for i, row, w in zip(owners, labels, model.alpha_, strict=True)
    }
    assert len(learned) == len(model.alpha_)
    assert learned == pytest.approx({key: w for key, w in merged.items() if w})
    assert len({tuple(x) for x in model.support_structures_}) == len(model.support_structures_)
    alone = [model.predict([x])[0] for x in structures]
    assert model.predict(structures).tolist() == alone


def test_the_time_of_an_epoch_is_announced_where_it_is_long(monkeypatch):
    """By a clock in which a second has passed each time that one looks."""
    model, clock = small(epochs=2), itertools.count()
    monkeypatch.setattr(ranking, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    model.fit(X, Y)  # of 18 structures
    monkeypatch.setattr(ranking, "_LONG_SECONDS", 7.0)
    message = r"will take about \d minutes: .* \d\d distinct candidates of 18 structures; give fewer"
    with pytest.warns(RuntimeWarning, match=message) as caught:
        model.fit(X, Y)
    assert len(caught) == 1


@pytest.mark.parametrize(("structures", "y"), BOTH)
def test_sees_what_is_far_apart(structures, y, tmp_path):
    model = small().fit(structures, y)
    assert model.mixing_ == pytest.approx(np.sqrt(0.5))
    report = model.oracle_report(structures, y)
    assert report.base.accuracy == evaluate(y, model.base_.predict(structures)).accuracy < 0.95
    assert report.reranked.accuracy == model.score(structures, y) > 0.98
    assert report.oracle.accuracy == 1.0
    few = model.set_params(n=1).oracle_report(structures, y)  # nothing to choose from
    assert few.base.accuracy == few.reranked.accuracy == few.oracle.accuracy < 0.95
    model.save(tmp_path / "model.fuda")
    for other in (fuda.load(tmp_path / "model.fuda"), pickle.loads(pickle.dumps(model))):
        assert other.predict(structures).tolist() == model.predict(structures).tolist()
        np.testing.assert_array_equal(other.alpha_, model.alpha_)
        assert other.mixing_ == model.mixing_


@pytest.mark.parametrize("base", [None, CRF(features="word", window=0), MEMM(features="word", window=0)])
def test_any_base(base, tmp_path):
    model = Reranker(base, n=3, folds=2, base_weight=0.1).fit(X, Y)
    assert model.predict(X).tolist() == Y
    assert model.predict([]).shape == (0,)
    model.save(tmp_path / "model.fuda")
    assert fuda.load(tmp_path / "model.fuda").predict(X).tolist() == Y


def test_without_mistakes_the_base_stands():
    model = Reranker(HMM(), folds=2, n=1).fit(X, Y)
    assert model.mistakes_ == [0]
    assert len(model.alpha_) == 0
    assert model.predict(X).tolist() == model.base_.predict(X).tolist()


def test_labels_not_known_weights_and_threads():
    y = [[None if t == 1 else label for t, label in enumerate(labels)] for labels in Y]
    model = small().fit(X, y)
    report = model.oracle_report(X, y)
    assert report.oracle.tokens == sum(len(labels) - 1 for labels in Y)
    assert small().fit(X, Y, sample_weight=[0.0] * len(X)).alpha_.size == 0
    twice = small(average=False, epochs=1).fit(X, Y, sample_weight=[2.0] * len(X))
    assert set(np.abs(twice.alpha_)) <= {2.0, 4.0, 6.0}
    but_last = [[1.0, 1.0, 1.0, 0.0] for _ in Y]
    assert small().fit(X, Y, position_weight=but_last).mistakes_ == [0]
    one, other = small(n_jobs=1).fit(X, Y), small(n_jobs=3).fit(X, Y)
    np.testing.assert_array_equal(one.alpha_, other.alpha_)


def test_folds():
    shuffled = small(random_state=3).fit(X, Y)
    np.testing.assert_array_equal(shuffled.alpha_, small(random_state=3).fit(X, Y).alpha_)
    assert (
        shuffled.oracle_report(X, Y).oracle.accuracy == small().fit(X, Y).oracle_report(X, Y).oracle.accuracy
    )


def test_scikit_learn():
    model = small(kernel=Polynomial(2))
    assert cross_val_predict(model, X, Y, cv=2).shape == (len(X),)
    grid = {"base__smoothing": [0.1, 5.0], "kernel__degree": [1, 2], "normalized": [True]}
    search = GridSearchCV(model, grid, cv=2).fit(X, Y)
    assert set(search.best_params_) == set(grid)


def test_long_structures_do_not_overflow():
    long = [[key, *["u"] * 400, "z"] for key in "pqpq"]
    y = [["O"] * 401 + [LABELS[x[0]]] for x in long]
    model = small(n=4, folds=2, mixing=2.0, normalized=True, epochs=1).fit(long, y)
    assert len(model.alpha_)
    assert [len(labels) for labels in model.predict(long)] == [402] * 4
    with pytest.raises(
        DataError, match=r"mixing=2 with the kernel Delta.*passes 1e308; take normalized=True"
    ):
        small(n=4, folds=2, mixing=2.0).fit(long, y)


class NoList(fuda.models.base.Labeler):
    features, window = "word", 0


BAD = [
    ({"base": NoList()}, "base=NoList.*: give a labeler that lists its n best"),
    ({"base": "CRF"}, "base='CRF': give a labeler that lists its n best"),
    ({"base": Reranker()}, "base=Reranker.*: give a labeler that lists its n best"),
    ({"base": HMM(smoothing=0)}, "smoothing=0: give a number above 0"),
    ({"kernel": "poly"}, "kernel='poly': give a kernel"),
    ({"mixing": 0}, "mixing=0: give c, a number above 0"),
    ({"n": 0}, "n=0: give a whole number of at least 1"),
    ({"folds": 1}, "folds=1: give a whole number of at least 2"),
    ({"folds": 99}, "folds=99: there are only 18 structures"),
    ({"epochs": 0}, "epochs=0: give a whole number of at least 1"),
    ({"base_weight": -1}, "base_weight=-1: give a number from 0"),
    ({"average": 1}, "average=1: give True or False"),
    ({"normalized": "yes"}, "normalized='yes': give True or False"),
    ({"random_state": "x"}, "random_state='x': give a whole number"),
    ({"n_jobs": 0}, "n_jobs=0: give the number of threads"),
    ({"features": "nothing"}, "features='nothing': no such feature set"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD)
def test_bad_parameters(parameters, message):
    with pytest.raises(DataError, match=message):
        small(**parameters).fit(X, Y)


def test_bad_data():
    with pytest.raises(DataError, match="a dag, but Reranker labels sequences and trees only"):
        small().fit([Dag(x, [(0, 1)]) for x in X], Y)
    model = small().fit(X, Y)
    with pytest.raises(DataError, match="there is nothing to report on: X is empty"):
        model.oracle_report([], [])
    with pytest.raises(DataError, match="structure 0 has 4 nodes but 1 labels"):
        model.oracle_report(X[:1], [["O"]])
    report = model.oracle_report(X[:1], [["never seen"] * 4])
    assert report.oracle.accuracy == 0.0


def test_bad_files():
    model = small().fit(X, Y)
    arrays, texts, parts = model._arrays(), model._texts(), model._parts()
    model._restore(arrays, texts, parts)
    for changed, message in (
        ({"labels": arrays["labels"] + 99}, "do not fit its structures and labels"),
        ({"first": arrays["first"] + 1}, "do not fit its structures and labels"),
        ({"labels": arrays["labels"][1:]}, "do not fit its structures and labels"),
        ({"alpha": arrays["alpha"] * np.inf}, "'alpha' is not finite"),
        ({"mixing": np.zeros(1)}, "mixing=0.0: give c"),
    ):
        with pytest.raises(DataError, match=message):
            model._restore(arrays | changed, texts, parts)
    with pytest.raises(DataError, match="are not all there"):
        model._restore(arrays, texts, {})
    with pytest.raises(DataError, match="its base labeler does not fit"):
        model._restore(arrays, texts, {"base": CRF().fit(X, Y)})


def test_the_base_may_be_a_machine_when_labels_are_explained():
    X, y = [["a", "b", "a"], ["b", "a"]] * 4, [["A", "B", "A"], ["B", "A"]] * 4
    model = Reranker(HMSVM(features="word"), folds=2, n=3, epochs=1).fit(X, y)
    explanation = model.explain(["a", "b"], 1)
    assert explanation.chosen.label == model.predict([["a", "b"]])[0][1]
    assert sum(part.value for part in explanation.contributions) == pytest.approx(
        explanation.difference, abs=1e-9
    )
