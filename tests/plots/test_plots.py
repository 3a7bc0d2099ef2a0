"""Plots show the numbers that they are given."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest

from fuda import CRF, HMM, HMSVM, MEMM, HMPerceptron, MarginalizedPerceptron, Reranker, plots
from fuda.errors import DataError
from fuda.kernels import Delta
from fuda.metrics import evaluate

X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Ana", "is", "in", "Rome"]]
Y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"], ["PER", "O", "O", "LOC"]]


@pytest.fixture(autouse=True)
def _no_window():
    from matplotlib import pyplot as plt

    before = mpl.get_backend()
    plt.switch_backend("Agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.fixture(scope="module")
def crf():
    return CRF().fit(X, Y)


def drawn(ax):
    """Render a plot, since errors of layout show only then; the texts in it."""
    ax.figure.canvas.draw()
    return [text.get_text() for text in ax.texts]


def test_learning_curves_have_means_and_bands():
    ax = plots.learning_curves({"CRF": {100: [0.5, 0.7], 10: [0.2, 0.4]}, "HMM": {10: 0.1, 100: 0.2}})
    drawn(ax)
    assert ax.lines[0].get_xdata().tolist() == [10, 100]
    assert ax.lines[0].get_ydata() == pytest.approx([0.3, 0.6])
    assert len(ax.collections) == 1, "only the curve with several scores has a band"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["CRF", "HMM"]


def test_confusion_has_the_counts_of_the_report():
    report = evaluate([["A", "B", "O"]], [["A", "A", "O"]])
    ax = plots.confusion(report)
    assert drawn(ax) == ["1", "", "", "1", "", "", "", "", "1"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["A", "B", "O"]
    ax = plots.confusion(report, outside=False)
    assert drawn(ax) == ["1", "", "1", ""]


def test_calibration_groups_nodes_by_probability():
    class Coin:
        classes_ = np.array(["a", "b"], dtype=object)

        def predict_marginals(self, X):
            return [np.repeat([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.5, 0.5]], 5, axis=0)]

    ax = plots.calibration(Coin(), [["x"] * 20], [["a"] * 5 + ["b"] * 10 + [None] * 5])
    drawn(ax)
    assert ax.lines[1].get_xdata() == pytest.approx([0.6, 0.9])
    assert ax.lines[1].get_ydata() == pytest.approx([1.0, 0.5])
    (text,) = ax.get_legend().get_texts()
    assert text.get_text() == "Coin, error 40.0 %"


def test_models_share_an_axes(crf):
    ax = plots.calibration(crf, X, Y)
    assert plots.calibration(HMM().fit(X, Y), X, Y, name="counting", ax=ax) is ax
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[0].startswith("CRF, error")
    assert texts[1].startswith("counting, error")
    assert ax.lines[1].get_color() != ax.lines[2].get_color()


def test_convergence_of_callbacks_and_of_models(crf):
    iterations: list = []
    CRF(callback=iterations.append).fit(X, Y)
    by_callback = plots.convergence({"a run": iterations}).lines[0].get_ydata()
    of_model = plots.convergence(crf)
    assert by_callback.tolist() == of_model.lines[0].get_ydata().tolist()
    assert of_model.get_ylabel() == "objective"
    assert plots.convergence(crf, by="seconds").get_xlabel() == "seconds"


@pytest.mark.parametrize(
    ("model", "label"),
    [
        (HMPerceptron(), "mistakes per epoch"),
        (HMSVM(), "relative duality gap"),
        (MarginalizedPerceptron(calibrate=False), "mistakes per epoch"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_convergence_of_other_learners(model, label):
    ax = plots.convergence(model.fit(X, Y))
    drawn(ax)
    assert ax.get_ylabel() == label
    assert ax.lines[0].get_ydata()[-1] <= ax.lines[0].get_ydata()[0]


def test_the_heat_map_has_the_values_of_the_kernel():
    ax = plots.kernel_heatmap(["a", "b"], ["a", "b", "c"], kernel=Delta())
    assert drawn(ax) == ["2", "", "", "", "2", ""]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b", "c"]


def test_the_chosen_mixing_is_marked():
    ax = plots.mixing_effect({0.5: [0.1, 0.3], 2.0: [0.4, 0.4]}, chosen=2.0)
    assert drawn(ax) == ["c = 2"]
    assert ax.lines[0].get_ydata() == pytest.approx([0.2, 0.4])


def test_weights_are_those_of_the_model(crf):
    ax = plots.feature_weights(crf, "PER", n=3)
    drawn(ax)
    largest = sorted((w for (_, label), w in crf.state_features_.items() if label == "PER"), key=abs)
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(largest[-3:])
    ax = plots.transition_weights(crf)
    assert drawn(ax) == [
        f"{weight:.1f}" if abs(weight) >= 0.05 else "" for weight in crf.transitions_.ravel()
    ]
    assert plots.transition_weights(MEMM().fit(X, Y)) is not ax


def test_a_new_figure_is_transparent_and_leaves_the_settings_alone(crf):
    before = dict(mpl.rcParams)
    ax = plots.transition_weights(crf)
    assert ax.figure.get_facecolor()[3] == 0.0
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda crf: plots.learning_curves({}), "curves is"),
        (lambda crf: plots.confusion(Y), "give the Report of fuda.metrics.evaluate"),
        (lambda crf: plots.calibration(Reranker(), X, Y), "a Reranker has no marginals"),
        (lambda crf: plots.calibration(crf, X[:1], [[None] * 4]), "no node of X has a label"),
        (lambda crf: plots.convergence(HMM()), "has no history"),
        (lambda crf: plots.convergence(crf, quantity="speed"), "quantity='speed': give one of objective"),
        (lambda crf: plots.convergence(crf, quantity="gap"), "the run has not measured gap"),
        (lambda crf: plots.convergence({"a": crf, "b": [3, 2]}), "nothing in common"),
        (lambda crf: plots.mixing_effect([]), "scores is"),
        (lambda crf: plots.feature_weights(HMM().fit(X, Y), "PER"), "a HMM has no weights"),
        (lambda crf: plots.feature_weights(crf, "B-PER"), "give one of LOC, O, PER"),
    ],
)
def test_what_cannot_be_drawn_is_refused_without_a_figure(crf, draw, message):
    from matplotlib import pyplot as plt

    with pytest.raises(DataError, match=message):
        draw(crf)
    assert plt.get_fignums() == []


def test_without_matplotlib_the_extra_is_named():
    code = """
import sys
sys.modules["matplotlib"] = None
import fuda
try:
    fuda.plots.mixing_effect({1.0: 0.5})
except ImportError as error:
    assert "pip install 'fuda[plots]'" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)
