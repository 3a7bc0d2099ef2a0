from __future__ import annotations

import pytest

from fuda import HMM
from fuda.metrics import evaluate
from fuda.selection import cross_validate, splits

X = [["a", "b"], ["b"], ["b", "a"], ["a"], ["c", "a"], ["b", "c"]]
Y = [["B-A", "O"], ["O"], ["O", "B-A"], ["B-A"], ["B-C", "B-A"], ["O", "B-C"]]


def test_predictions_are_those_of_models_that_have_not_seen_the_structures():
    model, folds = HMM(), splits(6, 3, seed=1)
    result = cross_validate(model, X, Y, folds)
    assert not hasattr(model, "classes_")
    by_number = result.out_of_fold()
    for train, test in folds:
        fitted = HMM().fit([X[i] for i in train], [Y[i] for i in train])
        for i in test:
            assert by_number[i] == fitted.predict([X[i]])[0]
    report = evaluate([Y[i] for i in folds[0].test], result.predictions[0])
    assert result.reports[0].to_dict() == report.to_dict()
    assert result.accuracy.mean == pytest.approx(sum(100 * r.accuracy for r in result.reports) / 3)
    assert result.train_sizes == [4, 4, 4]
    assert all(times.wall > 0 and times.cpu >= 0 for times in [*result.fits, *result.predicts])


def test_entity_f1_is_over_the_folds_that_have_entities():
    labels = [["O", "O"], ["O"], ["O", "O"], ["O"], ["O", "O"], ["O", "B-C"]]
    result = cross_validate(HMM(), X, labels, splits(6, 3, seed=None))
    assert result.entity_f1 is not None
    assert cross_validate(HMM(), X, [["x"] * len(x) for x in X], splits(6, 3)).entity_f1 is None


def test_after_each_fold_the_results_so_far_and_the_model_are_reported():
    calls = []
    cross_validate(
        HMM(), X, Y, splits(6, 2), lambda result, fitted: calls.append((len(result.tests), fitted))
    )
    assert [count for count, _ in calls] == [1, 2]
    assert all(hasattr(fitted, "classes_") for _, fitted in calls)


def test_an_interrupt_ends_the_work_as_a_whole():
    class Interrupted(HMM):
        def _fit(self, data):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cross_validate(Interrupted(), X, Y, splits(6, 2))
