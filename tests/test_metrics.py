"""Metrics against seqeval, scikit-learn and counts by hand."""

from __future__ import annotations

import json
import pickle
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import seqeval.metrics
import seqeval.scheme
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support as default_figures
from seqeval.metrics.v1 import precision_recall_fscore_support as strict_figures
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score

from fuda.errors import DataError
from fuda.metrics import (
    confusion,
    entity_f1_scorer,
    entity_scores,
    evaluate,
    label_f1_scorer,
    label_scores,
    token_accuracy,
    token_accuracy_scorer,
)
from fuda.schemes import SCHEMES

CONLL = Path(__file__).parents[2] / "shared" / "data" / "conll2002"
PREFIXES = {"IOB1": "IB", "IOB2": "IB", "IOE1": "IE", "IOE2": "IE", "IOBES": "BIES", "BILOU": "BILU"}
AVERAGES = ("micro", "macro", "weighted")

typed = [f"{prefix}-{kind}" for prefix in "BIESLU" for kind in ("PER", "LOC", "A-B")]
odd = ["B", "I", "E", "S", "L", "U", "O-PER", "NOUN", ".", "B-", "B--LOC", "I-PER-", "BPER"]


@st.composite
def label_pairs(draw, labels):
    """Label lists and predictions of the same lengths that often agree."""
    label = st.one_of(st.just("O"), st.sampled_from(labels))
    y_true = draw(st.lists(st.lists(label, max_size=7), min_size=1, max_size=4))
    y_pred = [[draw(st.one_of(st.just(gold), label)) for gold in labels] for labels in y_true]
    return y_true, y_pred


def assert_equals_seqeval(y_true, y_pred, scheme):
    """Every figure is the same float, except that seqeval's macro average over no types is NaN."""
    figures, options = default_figures, {}
    if scheme is not None:
        figures = partial(strict_figures, scheme=getattr(seqeval.scheme, scheme))
        options = {"mode": "strict", "scheme": getattr(seqeval.scheme, scheme)}
    scores = entity_scores(y_true, y_pred, scheme)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_type = figures(y_true, y_pred, average=None)
        averages = {name: figures(y_true, y_pred, average=name) for name in AVERAGES}
        f1 = {name: seqeval.metrics.f1_score(y_true, y_pred, average=name, **options) for name in AVERAGES}
        report = seqeval.metrics.classification_report(y_true, y_pred, output_dict=True, **options)
    for column, name in enumerate(("precision", "recall", "f1", "support")):
        assert [getattr(score, name) for score in scores.each.values()] == list(by_type[column])
        for average in AVERAGES:
            assert getattr(getattr(scores, average), name) == np.nan_to_num(averages[average][column])
    for average in AVERAGES:
        assert getattr(scores, average).f1 == np.nan_to_num(f1[average])
    assert {name: (s.precision, s.recall, s.f1, s.support) for name, s in scores.each.items()} == {
        name: tuple(row.values()) for name, row in report.items() if not name.endswith(" avg")
    }


@settings(max_examples=80, deadline=None, derandomize=True)
@given(label_pairs([*typed, *odd]))
def test_entity_scores_equal_seqeval_by_default(pair):
    assert_equals_seqeval(*pair, scheme=None)


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.data())
def test_entity_scores_equal_seqeval_in_strict_mode(scheme, data):
    labels = [label for label in [*typed, *odd] if label[0] in PREFIXES[scheme]]
    assert_equals_seqeval(*data.draw(label_pairs([*labels, "O-PER"])), scheme=scheme)


def test_entity_scores_over_many_types_equal_seqeval():
    """Enough types for the order of summation to matter in the last bit."""
    rng = np.random.default_rng(0)
    labels = ["O", *(f"{prefix}-{kind:02d}" for prefix in "BI" for kind in range(40))]
    y_true = [rng.choice(labels, size=20).tolist() for _ in range(100)]
    y_pred = [[gold if rng.random() < 0.7 else str(rng.choice(labels)) for gold in row] for row in y_true]
    for scheme in (None, "IOB1", "IOB2"):
        assert_equals_seqeval(y_true, y_pred, scheme)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(label_pairs(["N", "V", "A"]))
def test_token_and_label_figures_equal_sklearn(pair):
    y_true, y_pred = pair
    flat_true, flat_pred = ([label for labels in y for label in labels] for y in pair)
    labels, counts = confusion(y_true, y_pred)
    assert labels == sorted({*flat_true, *flat_pred})
    if not labels:
        assert counts.shape == (0, 0)
        assert token_accuracy(y_true, y_pred) == 0.0
        return
    assert counts.sum() == len(flat_true)
    if len(labels) > 1:  # scikit-learn warns of one label
        assert np.array_equal(counts, sklearn.metrics.confusion_matrix(flat_true, flat_pred, labels=labels))
    assert token_accuracy(y_true, y_pred) == pytest.approx(
        sklearn.metrics.accuracy_score(flat_true, flat_pred)
    )
    scores = label_scores(y_true, y_pred)
    inner = [label for label in labels if label != "O"]
    assert list(scores.each) == inner
    for average in AVERAGES if inner else ():
        figures = sklearn.metrics.precision_recall_fscore_support(
            flat_true, flat_pred, labels=inner, average=average, zero_division=0
        )
        score = getattr(scores, average)
        assert (score.precision, score.recall, score.f1) == pytest.approx(figures[:3])


def test_label_scores_by_hand():
    y_true = [["O", "B-PER", "I-PER", "O"], ["B-LOC"]]
    y_pred = [["B-PER", "B-PER", "B-PER", "O"], ["O"]]
    scores = label_scores(y_true, y_pred)
    assert (scores.micro.correct, scores.micro.predicted, scores.micro.support) == (1, 3, 3)
    assert scores.micro.f1 == pytest.approx(1 / 3)
    assert scores.each["B-PER"].precision == pytest.approx(1 / 3)
    assert scores.each["B-PER"].recall == 1.0
    assert list(label_scores(y_true, y_pred, outside="I-PER").each) == ["B-LOC", "B-PER", "O"]
    assert label_scores(y_true, y_pred, outside=None).micro.precision == token_accuracy(y_true, y_pred) == 0.4


def test_labels_not_known_are_left_out():
    y_true = [["B-PER", None, "O"], ["B-PER", "O", "O"]]
    y_pred = [["B-PER", "I-PER", "B-LOC"], ["B-PER", "B-XXX", "O"]]
    assert token_accuracy(y_true, y_pred) == 3 / 5
    assert confusion(y_true, y_pred)[0] == ["B-LOC", "B-PER", "B-XXX", "O"]
    assert list(entity_scores(y_true, y_pred).each) == ["PER", "XXX"]
    report = evaluate(y_true, y_pred)
    assert (report.structures, report.entity_structures, report.tokens) == (2, 1, 5)
    assert str(report).endswith(
        "phrases are those of 1 of 2 structures; the others have nodes whose label is not known"
    )


def test_arrays_and_integer_labels():
    y_true = np.array([[1, 2], [2, 2]])
    y_pred = np.empty(2, dtype=object)
    y_pred[:] = [[np.int64(1), 1], [2, 3]]
    report = evaluate(y_true, y_pred, outside=1)
    assert report.entity_scores is None
    assert report.labels == [1, 2, 3]
    assert report.accuracy == token_accuracy(y_true, y_pred) == 0.5
    assert list(json.loads(json.dumps(report.to_dict()))["label_scores"]["each"]) == ["2", "3"]
    words = np.array([["B-X", "O"]])
    assert entity_scores(words, words.astype(object), "IOB2").micro.f1 == 1.0


def test_nothing_to_measure_is_zero():
    for y in ([], [[]], [[None]], [["O"]]):
        y_pred = [["O" for _ in labels] for labels in y]
        report = evaluate(y, y_pred)
        assert report.entity_scores is None
        for scores in (
            report.label_scores,
            entity_scores(y, y_pred),
            evaluate(y, y_pred, "IOB2").entity_scores,
        ):
            for average in AVERAGES:
                assert getattr(scores, average).f1 == 0.0
        assert "nan" not in str(report).lower()


# --- the
# report ------------------------------------------------------------------------------------


def test_text_is_laid_out_as_conlleval():
    y_true = [["B-PER", "I-PER", "O", "B-LOC", "O"], ["B-MISC", "O"]]
    y_pred = [["B-PER", "I-PER", "O", "B-PER", "O"], ["B-MISC", "B-MISC"]]
    report = evaluate(y_true, y_pred)
    assert str(report) == report.text()
    assert report.text().splitlines() == [
        "processed 7 tokens with 3 phrases; found: 4 phrases; correct: 2.",
        "accuracy:  71.43%; precision:  50.00%; recall:  66.67%; FB1:  57.14",
        "              LOC: precision:   0.00%; recall:   0.00%; FB1:   0.00  0",
        "             MISC: precision:  50.00%; recall: 100.00%; FB1:  66.67  2",
        "              PER: precision:  50.00%; recall: 100.00%; FB1:  66.67  2",
    ]


def test_text_of_labels_that_say_no_segments():
    assert str(evaluate([["N", "V", "N"]], [["N", "N", "N"]])).splitlines() == [
        "processed 3 tokens with 3 labels; found: 3 labels; correct: 2.",
        "accuracy:  66.67%; precision:  66.67%; recall:  66.67%; FB1:  66.67",
        "                N: precision:  66.67%; recall: 100.00%; FB1:  80.00  3",
        "                V: precision:   0.00%; recall:   0.00%; FB1:   0.00  0",
    ]


def test_report_agrees_with_the_single_functions():
    y_true = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "I-LOC"]]
    y_pred = [["B-PER", "O", "I-PER", "B-LOC"], ["O", "I-LOC"]]
    for scheme in (None, "IOB2"):
        report = evaluate(y_true, y_pred, scheme)
        assert report.scheme == scheme
        assert report.entity_scores == entity_scores(y_true, y_pred, scheme)
        assert report.label_scores == label_scores(y_true, y_pred)
        assert report.accuracy == token_accuracy(y_true, y_pred)
        labels, counts = confusion(y_true, y_pred)
        assert report.labels == labels
        assert np.array_equal(report.counts, counts)
        plain = report.to_dict()
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain
        assert plain["entity_scores"]["each"]["PER"]["support"] == 1
        assert plain["confusion"]["counts"] == counts.tolist()


@pytest.mark.parametrize(
    ("labels", "scheme", "support"),
    [
        (["U-X", "U-X", "B-X", "L-X"], "BILOU", 3),
        (["U-X", "B-X", "I-X"], "BILOU", 1),  # malformed, and still plainly BILOU
        (["B-X", "I-X", "O"], None, 1),
        (["U-X", "E-X"], None, 1),
        (["U-X", "NOUN"], None, 2),
        (["NOUN", "VERB"], None, None),
        (["H", "E", "C", "B", "S"], None, None),
        (["B", "I", "B", "O"], None, 2),
        (["B", "I", "L", "U", "O"], "BILOU", 2),
        (["I", "O"], None, None),  # two classes, as far as one can tell
        ([1, 2], None, None),
    ],
)
def test_evaluate_chooses_the_reading(labels, scheme, support):
    report = evaluate([labels], [labels])
    assert report.scheme == scheme
    assert (report.entity_scores.micro.support if report.entity_scores else None) == support


def test_a_scheme_asked_for_always_gives_entities():
    assert evaluate([["B", "I"]], [["B", "I"]], scheme="IOB2").entity_scores.each["_"].f1 == 1.0
    assert evaluate([["U-X"]], [["U-X"]], scheme="biluo").scheme == "BILOU"


# ---
# mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        ([["O"]], [["O"], ["O"]], "y_true has labels for 1 structures but y_pred for 2"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], "structure 1 has 2 labels in y_true but 1 in y_pred"),
        ([["O", "O"]], [["O", None]], "structure 0, node 1: its label in y_pred is None"),
        ([["O", 1.5]], [["O", "O"]], r"structure 0, node 1 of y_true: its label is 1.5 \(float\)"),
        ([["O", "O"]], [["O", ["O"]]], r"structure 0, node 1 of y_pred: its label is \['O'\] \(list\)"),
        ([["O", ""]], [["O", "O"]], "structure 0, node 1 of y_true: its label is ''"),
        ([["O", True]], [["O", "O"]], r"of y_true: its label is True \(bool\)"),
        ([["1"]], [[1]], "give labels of one type"),
        (["O"], [["O"]], "structure 0: its labels in y_true are 'O' .*give a list"),
        ([["O"]], [3], "structure 0: its labels in y_pred are 3 .*give a list"),
        ("O", [["O"]], "y_true is 'O' .*give one list"),
        ([["O"]], None, "y_pred is None .*give one list"),
    ],
)
def test_mistakes_are_named(y_true, y_pred, message):
    for function in (token_accuracy, confusion, label_scores, entity_scores, evaluate):
        with pytest.raises(DataError, match=message):
            function(y_true, y_pred)


def test_labels_that_entities_cannot_be_read_from_are_named():
    with pytest.raises(DataError, match=r"structure 1, node 0: the label 1 \(int\) encodes no segment"):
        entity_scores([[], [1]], [[], [1]])
    with pytest.raises(DataError, match="structure 1, node 1: the label 'E-X' is not of the scheme IOB2"):
        evaluate([["O"], ["O", "O"]], [["O"], ["O", "E-X"]], scheme="IOB2")
    with pytest.raises(DataError, match="there is no tagging scheme 'IOB9'"):
        evaluate([["O"]], [["O"]], scheme="IOB9")


# ---
# scikit-learn ----------------------------------------------------------------------------------


class Copycat(BaseEstimator):
    """Predicts its observations, with `wrong` in place of "O"."""

    def __init__(self, wrong="O"):
        self.wrong = wrong

    def fit(self, X, y):
        return self

    def predict(self, X):
        predictions = np.empty(len(X), dtype=object)
        predictions[:] = [[self.wrong if label == "O" else label for label in x] for x in X]
        return predictions


@pytest.mark.parametrize("scorer", [token_accuracy_scorer, label_f1_scorer, entity_f1_scorer])
def test_scorers_serve_scikit_learn(scorer):
    y = [["B-PER", "O"], ["O", "B-LOC"], ["B-LOC", "O"], ["O", "B-PER"]]
    assert pickle.loads(pickle.dumps(scorer)) is scorer
    assert scorer(Copycat(), y, y) == 1.0
    assert scorer(Copycat("B-PER"), y, y) < 1.0
    assert cross_val_score(Copycat(), y, y, scoring=scorer, cv=2).tolist() == [1.0, 1.0]
    search = GridSearchCV(Copycat(), {"wrong": ["B-PER", "O"]}, scoring=scorer, cv=2).fit(y, y)
    assert search.best_params_ == {"wrong": "O"}


def test_entity_scorer_reads_as_evaluate_and_refuses_other_labels():
    y = [["U-X", "U-X", "O"]]
    assert entity_f1_scorer(Copycat("U-X"), y, y) == evaluate(y, [["U-X"] * 3]).entity_scores.micro.f1 == 0.8
    assert entity_f1_scorer(Copycat(), [["O"]], [["O"]]) == 0.0
    for labels in ([["O", "NOUN"]], [[1, 2]]):
        with pytest.raises(DataError, match=r"encode no segments.*label_f1_scorer"):
            entity_f1_scorer(Copycat(), labels, labels)


# --- a
# corpus --------------------------------------------------------------------------------------


def test_the_spanish_test_set_is_measured_as_by_seqeval():
    path = CONLL / "esp.testb"
    if not path.exists():
        pytest.skip("the CoNLL-2002 corpus is not there: ../shared/data/conll2002")
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    y_true = [[line.split()[-1] for line in block.splitlines()] for block in blocks]
    rng = np.random.default_rng(0)
    labels = sorted({label for row in y_true for label in row})
    y_pred = [[gold if rng.random() < 0.95 else str(rng.choice(labels)) for gold in row] for row in y_true]
    assert evaluate(y_true, y_pred).tokens == 51533
    for scheme in (None, "IOB2"):
        assert_equals_seqeval(y_true[:400], y_pred[:400], scheme)
