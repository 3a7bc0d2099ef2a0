from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from fuda import CRF, HMM, DataError
from fuda.kernels import Linear
from fuda.models.hm_perceptron import HMPerceptron
from fuda.selection import Goal, compare, cross_validate, randomization_test, splits

NAMES, PLACES = ["Ana", "Bo", "Eva"], ["Lima", "Oslo"]
X = [[NAMES[i % 3], "saw", PLACES[i % 2]] if i % 4 else ["in", PLACES[i % 2]] for i in range(24)]
Y = [["B-PER", "O", "B-LOC"] if i % 4 else ["O", "B-LOC"] for i in range(24)]
MODELS = {"crf": CRF(features="word", window=0), "hmm": HMM()}


@pytest.fixture(scope="module")
def comparison():
    return compare(MODELS, X, Y, folds=3, sizes=[2, 8, 100])


def test_models_are_tested_on_the_same_folds(comparison):
    assert list(comparison.results) == [(name, size) for size in (2, 8, 16) for name in MODELS]
    whole = cross_validate(MODELS["hmm"], X, Y, splits(24, 3, 0))
    assert comparison.results["hmm", 16].predictions == whole.predictions
    assert comparison.figure("hmm", 16) == pytest.approx(whole.entity_f1)
    assert comparison.results["crf", 2].train_sizes == [2, 2, 2]
    assert comparison.best(16) in MODELS


def test_p_is_that_of_the_randomization_test(comparison):
    truth = [Y[i] for i in range(24)]
    counts = []
    for name in MODELS:
        labels = comparison.results[name, 2].out_of_fold()
        counts.append(Goal("entity F1").counts(truth, [labels[i] for i in range(24)]))
    assert comparison.p_value("crf", "hmm", 2) == randomization_test(*counts)


def test_the_table_has_all_figures(comparison):
    rows = comparison.rows()
    assert len(rows) == 6
    assert all(row["bytes"] > 1000 for row in rows)
    assert [row["p"] is None for row in rows].count(True) == 3
    text = str(comparison)
    assert text.splitlines()[0].split("  ")[0] == "model"
    for column in ("size", "accuracy", "label F1", "entity F1", "p", "fit", "CPU", "label", "bytes"):
        assert column in text
    assert "<table>" in comparison._repr_html_()
    assert json.loads(json.dumps(comparison.to_dict()))["goal"] == "entity F1"


def test_columns_that_say_nothing_are_left_out():
    labels = [["x" if i else "y" for i in range(len(x))] for x in X]
    header = str(compare({"hmm": HMM()}, X, labels, folds=2)).splitlines()[0]
    assert "entity" not in header
    assert "size" not in header


def test_a_model_that_cannot_be_stored_has_no_size():
    model = HMPerceptron(kernel=lambda a, b: float(a == b), epochs=1)
    row = compare({"own": model}, X[:4], Y[:4], folds=2).rows()[0]
    assert row["bytes"] is None
    model = HMPerceptron(kernel=Linear(), epochs=1)
    assert compare({"own": model}, X[:4], Y[:4], folds=2).rows()[0]["bytes"]


def test_an_interrupt_leaves_what_was_found(monkeypatch):
    calls, fit = [], HMM._fit

    def interrupted(self, data):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        fit(self, data)

    monkeypatch.setattr(HMM, "_fit", interrupted)
    with pytest.warns(ConvergenceWarning, match="the comparison was interrupted"):
        comparison = compare(MODELS, X, Y, folds=3)
    assert [row["folds"] for row in comparison.rows()] == [3, 1]
    assert "hmm (1 folds)" in str(comparison)
    calls[:] = [1]
    with pytest.raises(KeyboardInterrupt):  # there is nothing yet
        compare({"hmm": HMM()}, X, Y, folds=3)


def test_curves_and_bars_are_drawn(comparison, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    import matplotlib

    matplotlib.use("agg")
    axes = comparison.plot(tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["crf", "hmm"]
    axes = compare(MODELS, X, Y, folds=2).plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["crf", "hmm"]
    with pytest.raises(DataError, match="cannot be drawn"):
        comparison.plot(tmp_path / "curves.nothing")


def test_without_matplotlib_the_message_says_what_to_install(comparison, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(DataError, match=r"install fuda\[plots\]"):
        comparison.plot()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [({"folds": 25}, "folds=25"), ({"sizes": [0, 3]}, "sizes="), ({"models": {}}, "nothing to compare")],
)
def test_mistakes_are_named(keywords, message):
    with pytest.raises(DataError, match=message):
        compare(keywords.pop("models", MODELS), X, Y, **keywords)


def test_numpy_arrays_of_lists_are_taken():
    made = np.empty(len(X), dtype=object)
    made[:] = X
    assert compare({"hmm": HMM()}, made, np.array(Y, dtype=object), folds=2).results
